"""Model selection: score the C, gamma and epsilon of a grid on held-out rows."""
