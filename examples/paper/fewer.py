"""Cells on fewer rows in place of one that exceeds its time limit or the memory."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from importlib import import_module

from paper.cells import Cell, Results
from paper.scales import Scale


def on_fewer_rows(scale: Scale, cell: Cell, exceeds: Callable[[Cell], bool]) -> Iterator[Cell]:
    """Yield cells on ever fewer rows until one does not exceed its limit, then DC-SVM's beside it.

    `exceeds` says whether a cell does; it is asked for a cell after the caller had it. There is
    nothing for a cell that does not exceed its limit, and for an experiment without `fewer`.
    """
    module = import_module(f"paper.experiments.{cell.experiment}")
    if not exceeds(cell) or not hasattr(module, "fewer"):
        return
    while exceeds(cell):
        cell = module.fewer(scale, cell)
        if cell is None:
            return
        yield cell
    yield module.ours(scale, cell)


def pair(scale: Scale, cell: Cell, results: Results) -> tuple[dict, dict | None] | None:
    """Return the result of a cell on the most rows that it could be measured on, and DC-SVM's.

    None if the cell did not exceed its limit, or exceeded it on the fewest rows too.
    """
    *_, last, ours = [None, None, *on_fewer_rows(scale, cell, results.exceeded)]
    found = last and results.of(last)
    return (found, results.of(ours)) if found else None
