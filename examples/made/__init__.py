"""Data that are made: problems that need a kernel, and stand-ins for sets that cannot be had."""
