"""Arrays on their way between client and workers: those of few different values, as bounds and what
nothing is known of, become a table and a byte each, or less."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from dcsvm.kernel.kernel_sums import Terms
from dcsvm.kernel.partition import Placed
from dcsvm.problem.formulation import BoxProblem
from dcsvm.solving.iterate import AT_BASE, NOTHING, Iterate

LARGEST_TABLE, TRIED = 16, 1000


@dataclass(frozen=True, eq=False)
class Packed:
    """`size` values: the number uint8 of each in the `table`, None where it has only one; or, where
    the table is empty, the numbers from 0."""

    table: np.ndarray
    codes: np.ndarray | None
    size: int


def packed(array: np.ndarray | None) -> np.ndarray | Packed | None:
    """The array, packed where it has few different values, or counts."""
    if array is None or len(array) == 0:
        return array
    if array[-1] == len(array) - 1 and np.array_equal(array, np.arange(len(array))):
        return Packed(array[:0].copy(), None, len(array))
    table = np.unique(array[:: -(-len(array) // TRIED)])
    if len(table) > LARGEST_TABLE:
        return array
    codes = _codes(array, table)
    if not np.array_equal(table[codes], array):  # there are others than those that were tried
        table = np.unique(array)
        if len(table) > LARGEST_TABLE:
            return array
        codes = _codes(array, table)
    return Packed(table, None if len(table) == 1 else codes, len(array))


def _codes(array: np.ndarray, table: np.ndarray) -> np.ndarray:
    """The place in the table, ascending, of each value that is in it, uint8."""
    codes = np.zeros(len(array), np.uint8)
    for value in table[1:]:
        codes += array >= value
    return codes


def unpacked(array: np.ndarray | Packed | None) -> np.ndarray | None:
    """The array that was packed; one's own."""
    if not isinstance(array, Packed):
        return None if array is None else np.array(array)
    if len(array.table) == 0:
        return np.arange(array.size, dtype=array.table.dtype)
    if array.codes is None:
        return np.full(array.size, array.table[0])
    return array.table[array.codes]


def packed_problem(problem: BoxProblem) -> BoxProblem:
    return _each(problem, packed)


def unpacked_problem(problem: BoxProblem) -> BoxProblem:
    return _each(problem, unpacked)


def _each(problem: BoxProblem, change) -> BoxProblem:
    names = ("linear", "lower", "upper", "sum_of", "row")
    return replace(problem, **{name: change(getattr(problem, name)) for name in names})


def packed_iterate(iterate: Iterate) -> Iterate:
    """The iterate without what is not known: gradients, and the base where they are not of it."""
    known = iterate.known
    return Iterate(
        packed(iterate.alpha),
        packed(np.where(known == NOTHING, 0.0, iterate.gradient)),
        packed(np.where(known == AT_BASE, iterate.base, 0.0)),
        packed(known),
    )


def unpacked_iterate(iterate: Iterate) -> Iterate:
    return Iterate(*(unpacked(one) for one in vars(iterate).values()))


def packed_places(placed: Placed) -> Placed:
    return Placed(*(packed(one) for one in vars(placed).values()))


def unpacked_places(placed: Placed) -> Placed:
    return Placed(*(unpacked(one) for one in vars(placed).values()))


def packed_terms(terms: Terms) -> Terms:
    return Terms(packed(terms.row.astype(np.int32)), packed(terms.unit), packed(terms.family))


def unpacked_terms(terms: Terms) -> Terms:
    return Terms(*(unpacked(one) for one in vars(terms).values()))
