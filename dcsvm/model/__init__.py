"""Trained models: parts, prediction, compression and model files."""
