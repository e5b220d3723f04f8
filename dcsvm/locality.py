"""Rows that provably do not matter to each other (the paper's Theorem 1 with D(pi) taken as zero).

Where all kernel values between two groups of rows are so small that, summed with any weights the
bounds allow, they change no gradient by more than a small part of the tolerance, the groups are
problems of their own, and no kernel value between them is ever computed.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from dcsvm import _core
from dcsvm.dataset import Rows
from dcsvm.formulation import BoxProblem
from dcsvm.kernels import Kernel

NEGLIGIBLE = 1e-6  # of the tolerance: what all neglected kernel values together may add
SMALLEST_GROUP = 1000  # rows; smaller groups are solved together
SAMPLE = 2048  # rows; where these are one group, all are taken to be


@dataclass(frozen=True, eq=False)
class Locality:
    """Independent groups: `order` lists the rows group by group, `start` int64 where each begins in
    it, and the end. A kernel value between groups is at most `largest_value`."""

    order: np.ndarray
    start: np.ndarray
    largest_value: float

    @property
    def n_groups(self) -> int:
        return len(self.start) - 1

    def sizes_of(self, variables: np.ndarray) -> np.ndarray:
        """How many of these variables, ascending places in the order, are in each group."""
        return np.diff(np.searchsorted(variables, self.start))

    def neglected(self, alpha: np.ndarray) -> float:
        """Bound of what the neglected kernel values add to any entry of the gradient."""
        return self.largest_value * float(np.abs(alpha).sum())


def find_locality(
    rows: Rows, kernel: Kernel, problem: BoxProblem, tolerance: float, threads: int
) -> Locality:
    """The independent groups of a problem; one group with all rows, in order, when nothing is
    negligible. Only RBF kernels on dense rows have others."""
    everything = np.arange(rows.n_samples, dtype=np.int32)
    whole = Locality(everything, np.array([0, rows.n_samples], dtype=np.int64), 0.0)
    if kernel.name != "rbf" or not rows.is_dense or rows.n_samples < 2 * SMALLEST_GROUP:
        return whole
    weight = float(np.maximum(np.abs(problem.lower), np.abs(problem.upper)).sum())
    largest_value = NEGLIGIBLE * tolerance / weight
    squared_distance = -math.log(largest_value) / kernel.gamma if kernel.gamma > 0 else math.inf
    some = rows.take(np.arange(0, rows.n_samples, -(-rows.n_samples // SAMPLE)))
    for tried, smallest in ((some, 1), (rows, SMALLEST_GROUP)):
        points = _core.Points(tried, threads)
        order, start = _core.find_groups(points, squared_distance, smallest, threads)
        if len(start) == 2:
            return whole
    return Locality(order, start, largest_value)
