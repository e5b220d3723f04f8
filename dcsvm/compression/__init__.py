"""Approximation of kernel sums by fewer vectors, the landmarks."""
