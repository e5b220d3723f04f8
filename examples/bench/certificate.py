"""Check a solver's solution in float64 NumPy, from its dual coefficients alone.

Signed alpha a minimises 1/2 a'Ka - y'a with 0 <= y a <= C, and with sum(a) = 0 when the model has
a bias. The violation is the usual stopping measure: with a bias m - M of Keerthi and others,
without one the largest projected gradient. The solver's own report is not read.
"""

import re
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path

import numpy as np
from cases import Case
from rows import Distinct, Rows, keys, read

BLOCK = 2**24  # kernel values in memory at a time
SAMPLE = 5000  # random rows to check if all rows cost too much


@dataclass(frozen=True)
class Solution:
    """Sum of the signed alphas of every distinct row, and the number of support vectors."""

    totals: np.ndarray
    n_sv: int


@dataclass(frozen=True)
class Check:
    violation: float
    infeasibility: float  # largest distance of an alpha from its bounds, over C
    sum: float  # of the signed alphas: 0 with a bias
    objective: float | None  # None: too many support vectors to compute it
    duality_gap: float | None  # only without a bias and if all rows were checked
    n_sv: int
    n_bsv: int
    rows_checked: int


def read_model(path: Path, known: Distinct, change) -> Solution:
    """Read the solution of a two-class LIBSVM model; `change` rounds features as its writer did."""
    header, rest = re.split(rb"\nSV\b.*\n", path.read_bytes(), maxsplit=1)
    fields = dict(line.split(maxsplit=1) for line in header.splitlines())
    lines = rest.split(b"\n", int(fields[b"total_sv"]))[: int(fields[b"total_sv"])]
    vectors = read(BytesIO(b"\n".join(lines))).with_values(change)
    if float(fields[b"label"].split()[0]) < 0:
        vectors.labels[:] = -vectors.labels
    totals = np.zeros(len(known.count))
    for key, coefficient in zip(keys(vectors), vectors.labels, strict=True):
        if key not in known.by_key:
            raise ValueError("the model has a support vector that is no training row")
        totals[known.by_key[key]] += coefficient
    return Solution(totals, len(vectors))


def from_support(support: np.ndarray, coefficients: np.ndarray, known: Distinct) -> Solution:
    groups = known.group_of[support]
    return Solution(np.bincount(groups, coefficients, len(known.count)), len(support))


def check(solution: Solution, rows: Rows, known: Distinct, case: Case, solver, budget) -> Check:
    """Check a solution of a solver, which says whether it has a `bias`, and its `slack`: the
    relative rounding of alpha at its bounds. `budget` is the limit on multiply-adds."""
    C, totals = case.C, solution.totals
    inside = known.sign * totals / known.count
    lower, upper = inside <= solver.slack * C, inside >= (1 - solver.slack) * C
    support, free = np.flatnonzero(totals), np.flatnonzero(~lower & ~upper)
    chosen = rows_to_check(support, free, len(inside), rows.n_features, budget)
    pairs = known.first[chosen], known.first[support]
    product = kernel_product(rows, *pairs, totals[support], case.gamma)
    gradient = product - known.sign[chosen]
    violation_of = pair_violation if solver.bias else projected_violation
    violation = violation_of(gradient, known.sign[chosen], lower[chosen], upper[chosen])
    outside = max(0.0, np.max(-inside), np.max(inside - C)) / C
    objective = gap = None
    if len(np.intersect1d(chosen, support)) == len(support):
        objective = float(totals[chosen] @ product / 2 - np.abs(totals).sum())
        if len(chosen) == len(inside) and not solver.bias:
            gap = duality_gap(known.sign * gradient, inside, C, known.count)
    counts = solution.n_sv, int(known.count[upper].sum()), len(chosen)
    return Check(violation, float(outside), float(totals.sum()), objective, gap, *counts)


def rows_to_check(support, free, n_rows: int, n_features: int, budget: float) -> np.ndarray:
    """Select all distinct rows if affordable, else a sample and the (free) support vectors."""
    affordable = budget / (max(len(support), 1) * (n_features + 30))
    if n_rows <= affordable:
        return np.arange(n_rows)
    sample = np.random.default_rng(0).permutation(n_rows)[:SAMPLE]
    return np.union1d(support if len(support) + SAMPLE <= affordable else free, sample)


def projected_violation(gradient, sign, lower, upper) -> float:
    slope = sign * gradient
    slope = np.where(lower, np.minimum(slope, 0), np.where(upper, np.maximum(slope, 0), slope))
    return float(np.abs(slope).max(initial=0))


def pair_violation(gradient, sign, lower, upper) -> float:
    may_rise = np.where(sign > 0, ~upper, ~lower)
    may_fall = np.where(sign > 0, ~lower, ~upper)
    highest = np.max(-gradient[may_rise], initial=-np.inf)
    return float(max(0.0, highest - np.min(-gradient[may_fall], initial=np.inf)))


def duality_gap(slope, inside, C: float, count) -> float:
    """Compute the duality gap in closed form: every term is >= 0 for a feasible alpha."""
    return float(np.sum(count * np.where(slope >= 0, inside * slope, (inside - C) * slope)))


def kernel_product(rows: Rows, left, right, weights: np.ndarray, gamma: float) -> np.ndarray:
    """Return the sums of the weighted kernel values of rows `left` with rows `right`."""
    n = rows.n_features
    points, step = rows.dense(right, n), max(1, BLOCK // max(len(right), n, 1))
    blocks = (rows.dense(left[i : i + step], n) for i in range(0, len(left), step))
    return np.concatenate([kernel_values(block, points, gamma) @ weights for block in blocks])


def kernel_values(left: np.ndarray, right: np.ndarray, gamma: float) -> np.ndarray:
    products = left @ right.T
    products *= -2
    products += np.einsum("ij,ij->i", left, left)[:, None]
    products += np.einsum("ij,ij->i", right, right)
    np.maximum(products, 0, out=products)
    products *= -gamma
    return np.exp(products, out=products)
