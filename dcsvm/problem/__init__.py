"""What is to be solved, before anything is."""
