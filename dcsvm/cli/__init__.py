"""The commands. Only this package uses Click, tqdm and the terminal."""
