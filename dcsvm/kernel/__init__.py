"""Kernel values and sums over them, and what is known about distances."""
