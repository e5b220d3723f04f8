"""Rows and labels, read from and written to files."""
