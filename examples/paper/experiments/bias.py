"""What a bias changes, on small parts of the data sets: LIBSVM's, and none.

LIBSVM and this project's solver with a bias, and without one this project's solver and an
independent plain one. The settings are the paper's C and gamma, and for the data sets of its grids
those where most changes.
"""

from __future__ import annotations

from paper.cells import Cell
from paper.experiments import data_sets, fit_cell, grid, problem, rbf
from paper.measure import fit_and_test as measure
from paper.scales import Scale

__all__ = ["DATA_SETS", "LIMITED", "METHODS", "UNTIMED", "cell", "cells", "measure", "settings"]

DATA_SETS = data_sets.DATA_SETS
METHODS = ("libsvm", "biased", "plain", "direct")
LIMITED = ("libsvm", "plain")
UNTIMED = True
TEST_ROWS = 10_000  # at most
CORNERS = ((-10, -10), (-10, 6), (-10, 10), (10, -10), (10, 10))  # exponents of C and gamma


def cells(scale: Scale, names: list[str], threads: int) -> list[Cell]:
    return [
        cell(scale, name, method, exponents, threads)
        for name in names
        for exponents in settings(name)
        for method in METHODS
    ]


def settings(name: str) -> list[tuple[int, int] | None]:
    """List the exponents of C and gamma for a data set; None for the paper's C and gamma."""
    return [None, *(CORNERS if grid.has_peers(name) else ())]


def cell(
    scale: Scale, name: str, method: str, exponents: tuple[int, int] | None, threads: int
) -> Cell:
    test_rows = min(scale.test_rows or TEST_ROWS, TEST_ROWS)
    chosen, label = problem(name, scale.bias_rows, test_rows), f"{name}-{method}"
    if exponents is None:
        return fit_cell("bias", label, chosen, method, threads)
    c, g = exponents
    label = f"{label}-{c}-{g}"
    return fit_cell("bias", label, chosen, method, threads, C=2.0**c, kernel=rbf(2.0**g))
