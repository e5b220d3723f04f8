"""What turns decision values into probabilities (-b 1): five folds, solved side by side from the
solution of all rows less what each holds out, give values of rows that were not seen.
"""

from __future__ import annotations

import time

import numpy as np

from dcsvm.model.parts import Probability
from dcsvm.problem.dual_problems import pairs_of
from dcsvm.problem.folds import FOLDS_FOR_PROBABILITY, Folds
from dcsvm.problem.formulation import Formulation
from dcsvm.problem.options import CENTERED
from dcsvm.solving.checkpoint import Control
from dcsvm.solving.conquer import conquer
from dcsvm.solving.level_solver import LevelSolver
from dcsvm.solving.preparation import Prepared
from dcsvm.solving.report import PartOfProgress
from dcsvm.solving.solver import FormulationSolver
from dcsvm.training.early_level import EARLY_TOLERANCE
from dcsvm.training.held_out import folds_of, formulation_of_folds, held_out_values
from dcsvm.training.run import Run

LARGEST_STEPS = 100
SMALLEST_STEP = 1e-10  # of a Newton direction; a shorter step does not improve the fit
SMALL_GRADIENT = 1e-5
RIDGE = 1e-12  # keeps the Hessian positive definite
DECREASE = 1e-4  # of what the gradient promises, that a step has to keep
OUTLIER = 5  # standard deviations of the noise


def fit_sigmoid(
    values: np.ndarray,
    is_first: np.ndarray,
    weights: np.ndarray | None = None,
    *,
    centered: bool = False,
) -> tuple[float, float]:
    """(A, B) such that P(first class) = 1 / (1 + exp(A f + B)) fits decision values f best.

    `values` float64 (n,), positive for the first class; `is_first` bool (n,); `weights` float64
    (n,), as how many values each counts, None is one. The minimum of
    equation (2) of Lin, Lin and Weng, "A note on Platt's probabilistic outputs for support vector
    machines", Machine Learning 68 (2007), by their Newton's method with backtracking.
    `centered` keeps B at 0 and A below: the first class has more than 1/2 where f is above 0.
    Raises ValueError for values that are not finite or do not fit the rows.
    """
    values, is_first = np.asarray(values, np.float64), np.asarray(is_first, bool)
    if values.shape != is_first.shape or values.ndim != 1 or len(values) == 0:
        raise ValueError(f"{values.shape} decision values do not fit {is_first.shape} classes")
    if not np.isfinite(values).all():
        raise ValueError("decision values must be finite numbers")
    weights = np.ones(len(values)) if weights is None else weights
    n_first, n_other = weights[is_first].sum(), weights[~is_first].sum()
    target = np.where(is_first, (n_first + 1) / (n_first + 2), 1 / (n_other + 2))
    at = np.array([0.0, 0.0 if centered else np.log((n_other + 1) / (n_first + 1))])
    free = slice(0, 1 if centered else 2)
    loss = log_loss(at, values, target, weights)
    for _ in range(LARGEST_STEPS):
        gradient, hessian = derivatives(at, values, target, weights)
        if np.abs(gradient[free]).max() < SMALL_GRADIENT:
            break
        direction, curved = np.zeros(2), (hessian + RIDGE * np.eye(2))[free, free]
        direction[free] = -np.linalg.solve(curved, gradient[free])
        step = 1.0
        while step >= SMALLEST_STEP:
            reached = log_loss(at + step * direction, values, target, weights)
            if reached < loss + DECREASE * step * (gradient @ direction):
                break
            step /= 2
        else:
            break
        at, loss = at + step * direction, reached
    return float(min(at[0], -RIDGE) if centered else at[0]), float(at[1])


def log_loss(at: np.ndarray, values: np.ndarray, target: np.ndarray, weights: np.ndarray) -> float:
    """-sum w (t log p + (1 - t) log(1 - p)) at (A, B), without cancellation or overflow (section
    3 of Lin, Lin and Weng)."""
    z = at[0] * values + at[1]
    losses = np.where(z >= 0, target, target - 1) * z + np.log1p(np.exp(-np.abs(z)))
    return float(np.sum(weights * losses))


def derivatives(at: np.ndarray, values: np.ndarray, target: np.ndarray, weights: np.ndarray):
    """Gradient (2,) and Hessian (2, 2) of `log_loss`."""
    p = sigmoid(values, *at)
    slope, curvature = weights * (target - p), weights * p * (1 - p)
    mixed = curvature @ values
    gradient = np.array([slope @ values, slope.sum()])
    hessian = np.array([[curvature @ values**2, mixed], [mixed, curvature.sum()]])
    return gradient, hessian


def sigmoid(values: np.ndarray, A: float, B: float) -> np.ndarray:
    """1 / (1 + exp(A f + B)) for decision values f, without overflow."""
    z = A * values + B
    small = np.exp(-np.abs(z))
    return np.where(z >= 0, small, 1.0) / (1.0 + small)


def laplace_sigma(residuals: np.ndarray, weights: np.ndarray | None = None) -> float:
    """Scale sigma of Laplace noise, density exp(-|z| / sigma) / (2 sigma), of a regression.

    `residuals` float64 (n,) are label minus prediction of rows the prediction has not seen, each
    counted as often as `weights` float64 (n,) say, None is once. The mean absolute residual, again
    without those beyond 5 standard deviations sqrt(2) sigma: LIBSVM's rule, after Lin and Weng,
    "Simple probabilistic predictions for support vector regression" (2004). Raises ValueError
    without residuals.
    """
    size = np.abs(np.asarray(residuals, np.float64))
    if len(size) == 0:
        raise ValueError("noise cannot be estimated without residuals")
    weights = np.ones(len(size)) if weights is None else weights
    kept = size <= OUTLIER * np.sqrt(2.0) * np.average(size, weights=weights)
    return float(np.average(size[kept], weights=weights[kept]))


def fitted_probability(run: Run) -> Probability:
    """The probabilities of a run that is done; its report counts the work. Raises Stopped."""
    start, progress, prepared = time.perf_counter(), run.control.progress, run.prepared
    folds = folds_of(prepared, min(FOLDS_FOR_PROBABILITY, len(prepared.row_map.given)))
    some = _that_learn(prepared, folds)
    values = np.full((len(folds.row), run.solver.formulation.n_problems), np.nan)
    if len(some) == 0:
        return _fitted(prepared, folds, values)
    formulation = formulation_of_folds(prepared, folds, some)
    n_rows = prepared.data.rows.n_samples
    run.solver.begin_phase("probabilities", n_rows)
    control = Control(PartOfProgress(progress, 1, 0, n_rows), run.control.stop)
    if run.options.early:
        level = run.state.early.level
        division = run.levels.divided(level, run.solver)
        of_folds = LevelSolver(prepared, control, formulation, division, level)
        of_folds.solver.begin_phase("folds", of_folds.formulation.problem.size)
        of_folds.solve_clusters(max(run.options.tolerance, EARLY_TOLERANCE))
        costs = of_folds.solver.costs
    else:
        of_folds = FormulationSolver(prepared, control, formulation)
        of_folds.begin_with(alpha_without_held_out(run.solver, folds, some, formulation))
        of_folds.extend_gradient()
        conquer(of_folds)
        costs = of_folds.costs
    run.state.costs.include(costs)
    for entries, held_out in held_out_values(of_folds, folds, some):
        values[entries] = held_out
    found = _fitted(prepared, folds, values)
    progress.end("probabilities", time.perf_counter() - start)
    return found


def _that_learn(prepared: Prepared, folds: Folds) -> np.ndarray:
    """The folds that have rows of two classes left to learn from, or any of a regression."""
    if not prepared.task.is_classification:
        return np.arange(folds.n_folds)
    is_known = folds.learns(prepared.targets[folds.row], prepared.task.n_classes)
    return np.flatnonzero(is_known.sum(axis=1) > 1)


def alpha_without_held_out(
    solver: FormulationSolver, folds: Folds, some: np.ndarray, formulation: Formulation
) -> np.ndarray:
    """Start some folds from the solution of all rows: what they hold out is taken back, and the
    sums are brought to what they are in each fold."""
    rows = solver.problem.rows
    alpha = []
    for number, k in enumerate(some):
        kept = folds.left(k)[rows] > 0
        sizes = np.diff(formulation.start)[number * solver.formulation.n_problems :]
        kept &= sizes[solver.formulation.number] > 0
        alpha.append(solver.alpha[kept])
    problem = formulation.problem
    alpha = np.clip(np.concatenate(alpha), problem.lower, problem.upper)
    return formulation.with_sums(alpha)


def _fitted(prepared: Prepared, folds: Folds, values: np.ndarray) -> Probability:
    """The probabilities by the values of what folds hold out, nan where a fold has none."""
    task, truth = prepared.task, prepared.targets[folds.row]
    if task.is_regression:
        return Probability(np.array([laplace_sigma(truth - values[:, 0], folds.weight)]), None)
    one_class = _values_of_one_class(folds, truth, task.n_classes)
    is_centered = prepared.options.probability == CENTERED
    fits = []
    for pair, (first, second) in enumerate(pairs_of(task.n_classes)):
        own = np.flatnonzero((truth == first) | (truth == second))
        known = values[own, pair]
        known = np.where(np.isnan(known), one_class[folds.fold[own], first, second], known)
        is_first, weight = truth[own] == first, folds.weight[own]
        fits.append(fit_sigmoid(known, is_first, weight, centered=is_centered))
    A, B = np.array(fits).T
    return Probability(A, B)


def _values_of_one_class(folds: Folds, classes: np.ndarray, n_classes: int) -> np.ndarray:
    """Decision values (n_folds, n_classes, n_classes) of pairs of which a fold has not both classes
    to learn from, as in LIBSVM: 1 for the first, -1 for the second, 0 where it has neither."""
    is_known = folds.learns(classes, n_classes).astype(np.float64)
    return is_known[:, :, None] - is_known[:, None, :]
