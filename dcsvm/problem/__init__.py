"""The problem to solve: options, tasks, dual problems, duplicates and folds."""
