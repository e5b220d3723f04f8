"""The four (C, gamma) grids, their sums, and the figures of robustness."""

from __future__ import annotations

from itertools import product

from paper.cells import Cell
from paper.experiments import fit_cell, problem, rbf
from paper.measure import fit_and_test as measure
from paper.scales import Scale

__all__ = ["DATA_SETS", "EXPONENTS", "cell", "cells", "measure", "methods"]

DATA_SETS = ("ijcnn1", "webspam", "covtype", "census")
EXPONENTS = (-10, -6, 1, 6, 10)  # of 2, for C and for gamma


def methods(name: str) -> tuple[str, ...]:
    """The paper has LaSVM on ijcnn1 only, and its LIBSVM has no bias: direct stands in."""
    return ("early", "dcsvm", "direct", "libsvm") + ("lasvm",) * (name == "ijcnn1")


def cells(scale: Scale, names: list[str], threads: int) -> list[Cell]:
    return [
        cell(scale, name, c, g, method, threads)
        for name in names
        for c, g in product(EXPONENTS, EXPONENTS)
        for method in methods(name)
    ]


def cell(scale: Scale, name: str, c: int, g: int, method: str, threads: int) -> Cell:
    chosen = problem(name, scale.grid_rows, scale.grid_test_rows)
    label = f"{name}-C{c}-gamma{g}-{method}"
    return fit_cell("grid", label, chosen, method, threads, C=2.0**c, kernel=rbf(2.0**g))
