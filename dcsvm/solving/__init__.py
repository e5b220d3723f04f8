"""A formulation being solved, checked, stored and reported."""
