"""Rows and labels: what comes in and goes out as files."""
