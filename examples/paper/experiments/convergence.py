"""The figure of objective and accuracy against time, rbf kernel.

Every point is a separate run: DC-SVM stopped at its levels and at decreasing tolerances, exact
solvers at decreasing tolerances, LaSVM with more passes, approximate methods with larger models.
SpSVM is the exception: its points show the growing basis of one run.
"""

from __future__ import annotations

from dcsvm.training.memory import make_plan
from paper.baselines import COMPETITORS, ours_beside, threads_of
from paper.baselines.dc_svm import BRANCHING, LEVELS
from paper.cells import Cell
from paper.experiments import divided, divisor, fit_cell, problem, quarter
from paper.measure import fit_and_test as measure
from paper.scales import Scale

__all__ = [
    "DATA_SETS", "LIMITED", "METHODS", "REFERENCE", "cell", "cells", "compared", "fewer", "measure",
    "ours", "steps",
]  # fmt: skip

DATA_SETS = ("webspam", "covtype", "mnist8m", "kddcup99", "cifar")
METHODS = (
    "early",
    "dcsvm",
    "single",
    "direct",
    "libsvm",
    "lasvm",
    "cascade",
    "llsvm",
    "fastfood",
    "spsvm",
    "ltpu",
)
LIMITED = COMPETITORS
REFERENCE = {"tolerance": 1e-5}  # for DC-SVM: its objective counts as the optimum
DEFAULT = {"tolerance": 1e-3}  # of LIBSVM and of DC-SVM
TOLERANCES = (1, 1e-1, 1e-2, 1e-3, 1e-4)
PASSES = (1, 2)
SHARES = (8, 4, 2, 1)  # divisors of the scale's features


def cells(scale: Scale, names: list[str], threads: int) -> list[Cell]:
    points = [(method, step) for method in METHODS for step in steps(scale, method)]
    return [
        cell(scale, name, method, options, threads)
        for name in names
        for method, options in [("dcsvm", REFERENCE), *points]
    ]


def steps(scale: Scale, method: str) -> list[dict]:
    """List the options of a method's runs, one per point, from the fastest."""
    if method == "early":
        plan = make_plan(scale.convergence_rows, LEVELS, BRANCHING, None)
        return [{"early_level": level} for level in plan.levels]
    if method == "single":
        return [DEFAULT]
    if method in ("dcsvm", "direct", "libsvm", "cascade"):
        first = method == "cascade"  # with tolerance 1, alpha = 0 solves each subproblem
        return [{"tolerance": tolerance} for tolerance in TOLERANCES[first:]]
    if method == "lasvm":
        return [{"passes": passes} for passes in PASSES]
    if method == "spsvm":
        return [scale.options(method)]
    return [{"features": scale.features // share} for share in SHARES]


def compared(scale: Scale, method: str) -> dict:
    """Return the options of the run that stands for a method: by default tolerance, or fastest."""
    fastest = steps(scale, method)[0]
    return DEFAULT if "tolerance" in fastest else fastest


def cell(scale: Scale, name: str, method: str, options: dict, threads: int) -> Cell:
    (key, value), *_ = options.items()
    label = f"{name}-{method}-{key}-{value:g}"
    chosen = problem(name, scale.convergence_rows, scale.test_rows)
    return fit_cell(
        "convergence",
        label,
        chosen,
        method,
        threads_of(method, threads),
        options=options,
        history=method == "spsvm",
    )


def fewer(scale: Scale, one: Cell) -> Cell | None:
    """Return the cell on fewer rows, for the run that stands for a method only."""
    method, options = one.settings["method"], one.settings["options"]
    return quarter(one) if options == compared(scale, method) else None


def ours(scale: Scale, one: Cell) -> Cell:
    name, threads = one.settings["problem"]["data"], one.settings["threads"]
    beside = cell(scale, name, ours_beside(one.method), DEFAULT, threads)
    return divided(beside, divisor(one))
