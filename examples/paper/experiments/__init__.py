"""A module per table or figure of the paper, with what paper.run and paper.measure need:

DATA_SETS                      the paper's data sets in it
cells(scale, names, threads)   its cells for the available ones (or their substitutes)
measure(settings, folder)      the result of a cell, a dict for JSON
fewer(scale, cell)             optional: the cell to measure on fewer rows if this one exceeds the
                               time limit or the memory; None if there is none
ours(scale, cell)              with fewer: DC-SVM's cell on the rows and threads of this one
LIMITED                        optional: the methods whose limit is of competitors
UNTIMED                        optional: True if no seconds are shown, so that once is enough
EVERY_STAND_IN                 optional: True if a data set has all its substitutes
"""

from __future__ import annotations

from paper.cells import Cell
from paper.problems import DATA_SETS

FEWER, LARGEST_DIVISOR = 4, 4**6  # every further try has a quarter of the rows
MIN_ROWS = 50


def rbf(gamma: float) -> dict:
    return {"name": "rbf", "gamma": gamma}


def polynomial_kernel(gamma: float) -> dict:
    return {"name": "polynomial", "gamma": gamma, "coef0": 0.0, "degree": 3}


def problem(name: str, rows: int | None, test_rows: int | None = None) -> dict:
    return {"data": name, "rows": rows, "test_rows": test_rows}


def divisor(cell: Cell) -> int:
    return cell.settings["problem"].get("divisor", 1)


def divided(cell: Cell, by: int) -> Cell:
    """Return the cell with a part of all training rows: a half of them for 2, all for 1."""
    name = cell.name.removesuffix(f"-by-{divisor(cell)}")
    rows = {key: value for key, value in cell.settings["problem"].items() if key != "divisor"}
    if by == 1:
        return Cell(cell.experiment, name, {**cell.settings, "problem": rows})
    settings = {**cell.settings, "problem": {**rows, "divisor": by}}
    return Cell(cell.experiment, f"{name}-by-{by}", settings)


def quarter(cell: Cell) -> Cell | None:
    """Return the cell on a quarter of its training rows; None if those are too few."""
    by, rows = FEWER * divisor(cell), cell.settings["problem"]["rows"]
    too_few = by > LARGEST_DIVISOR or (rows is not None and rows // by < MIN_ROWS)
    return None if too_few else divided(cell, by)


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
