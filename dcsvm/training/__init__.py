"""Algorithm 1 of the paper, with warm starts, probabilities, cross validation, grid search."""
