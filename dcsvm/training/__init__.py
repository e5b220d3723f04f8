"""Algorithm 1 of the paper, and what is built on it."""
