"""A module per table or figure of the paper, with what paper.run and paper.measure need:

DATA_SETS                      the paper's data sets in it
cells(scale, names, threads)   its cells for the available ones (or their substitutes)
measure(settings, folder)      the result of a cell, a dict for JSON
"""

from __future__ import annotations

from paper.cells import Cell
from paper.problems import DATA_SETS


def rbf(gamma: float) -> dict:
    return {"name": "rbf", "gamma": gamma}


def polynomial(gamma: float) -> dict:
    return {"name": "polynomial", "gamma": gamma, "coef0": 0.0, "degree": 3}


def problem(name: str, rows: int | None, test_rows: int | None = None) -> dict:
    return {"data": name, "rows": rows, "test_rows": test_rows}


def fit_cell(
    experiment: str,
    label: str,
    chosen: dict,
    method: str,
    threads: int,
    *,
    C: float | None = None,
    kernel: dict | None = None,
    **more,
) -> Cell:
    """Make a cell for measure.fit_and_test; C and the kernel default to the paper's."""
    data_set = DATA_SETS[chosen["data"]]
    settings = {
        "problem": chosen,
        "method": method,
        "C": data_set.C if C is None else C,
        "kernel": kernel or rbf(data_set.gamma),
        "threads": threads,
        **more,
    }
    return Cell(experiment, label, settings)
