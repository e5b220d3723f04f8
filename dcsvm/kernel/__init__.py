"""Kernels, kernel products, clusters and components of rows."""
