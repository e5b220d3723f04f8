"""The figure of objective and accuracy against time for the polynomial kernel of degree 3."""

from __future__ import annotations

from dataclasses import replace

from paper.baselines import ours_beside, threads_of
from paper.cells import Cell
from paper.experiments import convergence, divided, divisor, fit_cell, polynomial_kernel, problem
from paper.measure import fit_and_test as measure
from paper.problems import POLYNOMIAL
from paper.scales import Scale

__all__ = [
    "DATA_SETS", "LIMITED", "METHODS", "REFERENCE", "cell", "cells", "compared", "fewer", "measure",
    "ours", "steps",
]  # fmt: skip

DATA_SETS = ("webspam", "covtype")
METHODS = ("early", "dcsvm", "single", "direct", "libsvm", "lasvm")
LIMITED = convergence.LIMITED
REFERENCE = convergence.REFERENCE


def cells(scale: Scale, names: list[str], threads: int) -> list[Cell]:
    points = [(method, step) for method in METHODS for step in steps(scale, method)]
    return [
        cell(scale, name, method, options, threads)
        for name in names
        for method, options in [("dcsvm", REFERENCE), *points]
    ]


def steps(scale: Scale, method: str) -> list[dict]:
    return convergence.steps(sized(scale), method)


def compared(scale: Scale, method: str) -> dict:
    return convergence.compared(sized(scale), method)


def sized(scale: Scale) -> Scale:
    return replace(scale, convergence_rows=scale.polynomial_rows)


def cell(scale: Scale, name: str, method: str, options: dict, threads: int) -> Cell:
    (key, value), *_ = options.items()
    C, gamma = POLYNOMIAL[name]
    chosen = problem(name, scale.polynomial_rows, scale.test_rows)
    return fit_cell(
        "polynomial",
        f"{name}-{method}-{key}-{value:g}",
        chosen,
        method,
        threads_of(method, threads),
        C=C,
        kernel=polynomial_kernel(gamma),
        options=options,
    )


def fewer(scale: Scale, one: Cell) -> Cell | None:
    return convergence.fewer(sized(scale), one)


def ours(scale: Scale, one: Cell) -> Cell:
    name, threads = one.settings["problem"]["data"], one.settings["threads"]
    beside = cell(scale, name, ours_beside(one.method), convergence.DEFAULT, threads)
    return divided(beside, divisor(one))
