"""Trained models: their parts, prediction, the model file."""
