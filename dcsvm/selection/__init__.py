"""Choosing the settings of training: C, gamma and epsilon of a grid, by rows that were held out."""
