"""The two main tables: every method on every data set, rbf kernel, the paper's C and gamma."""

from __future__ import annotations

from paper.baselines import COMPETITORS, METHODS, ours_beside, threads_of
from paper.cells import Cell
from paper.experiments import data_sets, divided, divisor, fit_cell, problem, quarter
from paper.measure import fit_and_test as measure
from paper.scales import Scale

__all__ = ["DATA_SETS", "EVERY_STAND_IN", "LIMITED", "cells", "fewer", "measure", "ours"]

DATA_SETS = data_sets.DATA_SETS
EVERY_STAND_IN = data_sets.EVERY_STAND_IN
LIMITED = COMPETITORS


def cells(scale: Scale, names: list[str], threads: int) -> list[Cell]:
    return [
        cell(scale, chosen, method, threads)
        for chosen in problems(scale, names)
        for method in METHODS
    ]


def problems(scale: Scale, names: list[str]) -> list[dict]:
    whole = [problem(name, scale.rows, scale.test_rows) for name in names]
    return whole + [problem(n, rows, scale.test_rows) for n, rows in scale.subsets if n in names]


def cell(scale: Scale, chosen: dict, method: str, threads: int) -> Cell:
    label = f"{chosen['data']}-{chosen['rows'] or 'all'}-{method}"
    options = scale.options(method)
    threads = threads_of(method, threads)
    return fit_cell("comparison", label, chosen, method, threads, options=options)


def fewer(scale: Scale, one: Cell) -> Cell | None:
    return quarter(one)


def ours(scale: Scale, one: Cell) -> Cell:
    whole, threads = divided(one, 1).settings["problem"], one.settings["threads"]
    return divided(cell(scale, whole, ours_beside(one.method), threads), divisor(one))
