"""Generated data: problems that need a kernel, and substitutes for unavailable data sets."""
