"""Fewer vectors for a sum of kernel values."""
