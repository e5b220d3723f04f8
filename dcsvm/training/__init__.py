"""Algorithm 1 of the paper, with warm starts, probabilities and cross validation."""
