"""The commands. Click, tqdm and the terminal are known only here."""
