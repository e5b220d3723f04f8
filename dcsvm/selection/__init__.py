"""Model selection: C, gamma and epsilon of a grid, scored on held-out rows."""
