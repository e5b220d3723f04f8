"""DC-SVM, DC-SVM (early), and this project's solver run directly on the whole problem.

The last replaces the paper's LIBSVM without bias: no levels, from alpha = 0.
"""

from __future__ import annotations

import time
from dataclasses import replace

import numpy as np

import dcsvm
from dcsvm.data.rows import Rows
from dcsvm.kernel.kernels import Kernel
from dcsvm.problem.duplicates import find_duplicates
from dcsvm.training.memory import Plan, make_plan
from dcsvm.training.report import LevelReport, Progress
from paper.fitted import Fitted, part_objective
from paper.problems import UnusableError

LEVELS, BRANCHING = 4, 4  # as in the paper: 256, 64, 16, 4 clusters, then all rows


class History(Progress):
    """Progress that records seconds and support vectors after every level and step."""

    def __init__(self):
        self.start = time.perf_counter()
        self.points: list[dict] = []

    def record(self, step: str, n_sv: int) -> None:
        seconds = time.perf_counter() - self.start
        self.points.append({"seconds": seconds, "step": step, "n_sv": n_sv})

    def end_level(self, report: LevelReport) -> None:
        self.record(f"level {report.level}", report.n_sv)

    def end(self, name: str, seconds: float, n_sv: int) -> None:
        self.record(name, n_sv)


def fit(
    X,
    y,
    C,
    kernel,
    *,
    threads,
    seed=0,
    evaluate=None,
    levels=LEVELS,
    branching=BRANCHING,
    **options,
) -> Fitted:
    """Train DC-SVM, Algorithm 1 with a tree of clusters; `options` are further TrainOptions.

    The history has no accuracies: fit_early at other levels gives the intermediate models.
    """
    history = History()
    model = dcsvm.train(
        X,
        y,
        C=C,
        kernel=kernel.name,
        gamma=kernel.gamma,
        coef0=kernel.coef0,
        degree=kernel.degree,
        levels=levels,
        branching=branching,
        threads=threads,
        seed=seed,
        progress=history,
        **options,
    )
    report = model.report
    facts = {
        "objective": report.objective,
        "violation": report.violation,
        "n_sv": report.n_sv,
        "kernel_evaluations": report.kernel_evaluations,
        "converged": report.converged,
    }

    def decide(rows: np.ndarray) -> np.ndarray:
        return model.decision_function(rows, threads=threads)

    return Fitted(decide, report.seconds_train, history.points, facts, model)


def fit_early(
    X, y, C, kernel, *, threads, levels=LEVELS, branching=BRANCHING, early_level=None, **options
) -> Fitted:
    """Train an early model as in the paper, with every row in one cluster.

    Training stops after the early level (None: the paper's), or after the finest level if that
    one's clusters would be too small. The objective is f(alpha bar) of the combined solution of all
    clusters.
    """
    plan = plan_of(X, y, levels, branching)
    if early_level is not None:
        plan = replace(plan, early_level=min(early_level, plan.deepest))
    fitted = fit(
        X,
        y,
        C,
        kernel,
        threads=threads,
        levels=levels,
        branching=branching,
        early=True,
        early_level=plan.early_level,
        overlap=1,
        **options,
    )
    fitted.facts["objective"] = part_objective(kernel, fitted.model.early, threads)
    return fitted


def plan_of(X: np.ndarray, y: np.ndarray, levels: int, branching: int) -> Plan:
    """Plan the levels, from the finest; the early one has 64 clusters. Duplicates are one row.

    Raises UnusableError for too few rows.
    """
    distinct = find_duplicates(Rows.from_array(X), y, np.ones(len(y))).first
    plan = make_plan(len(distinct), levels, branching, None)
    if not plan.levels:
        raise UnusableError(f"{len(distinct)} different rows are too few for a level of clusters")
    return plan


def fit_direct(X: np.ndarray, y: np.ndarray, C: float, kernel: Kernel, **options) -> Fitted:
    """Solve the full problem directly, from alpha = 0."""
    return fit(X, y, C, kernel, levels=0, **options)


def fit_biased(X: np.ndarray, y: np.ndarray, C: float, kernel: Kernel, **options) -> Fitted:
    """Solve the full problem directly, with LIBSVM's bias."""
    return fit(X, y, C, kernel, levels=0, bias=True, **options)
