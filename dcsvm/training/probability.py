"""Cross-validation, and probabilities fitted to held-out decision values (-b 1).

One model per fold, trained to the tolerance, predicts the held-out rows. The folds add problems
over the same rows. They share everything that does not depend on labels: duplicates, encoded rows,
components, clusters and kernel values.

For probabilities, five folds are solved side by side. Folds of small problems share the kernel
matrix of each problem. Others start from the solution of all rows, with alpha of their held-out
rows removed, if its objective is low enough, else from levels.
"""

from __future__ import annotations

import time
from collections.abc import Iterable
from dataclasses import replace

import numpy as np

from dcsvm import _core
from dcsvm.data.arrays import distinct, slices
from dcsvm.data.dataset import Dataset
from dcsvm.data.used_columns import UsedColumns
from dcsvm.kernel.cluster_tree import Tree
from dcsvm.kernel.kernel_rows import KernelEvalOptions
from dcsvm.model.metrics import Measurement, Outcome
from dcsvm.model.parts import N_MARKS, ModelParts, Probability
from dcsvm.problem.data_gamma import number_of_gamma
from dcsvm.problem.folds import FOLDS_FOR_PROBABILITY, Folds
from dcsvm.problem.formulation import Formulation, pairs_of
from dcsvm.problem.option_table import CLASSIFIERS, label_text
from dcsvm.problem.options import CENTERED, TrainOptions
from dcsvm.training.certificate import Subproblems
from dcsvm.training.engine import Prepared, prepare_rows
from dcsvm.training.held_out import Layout, folds_of, formulation_of_folds, held_out_values
from dcsvm.training.memory import Plan
from dcsvm.training.report import PartOfProgress, Progress
from dcsvm.training.run import Run, divided, find_early_level, improve
from dcsvm.training.solver import FormulationSolver, LevelSolver
from dcsvm.training.state import Budget, RunControl
from dcsvm.training.warm_start import PathWarmStart

MAX_STEPS = 100  # Newton steps
MIN_STEP = 1e-10  # fraction of a Newton step; shorter steps do not improve the fit
SMALL_GRADIENT = 1e-5
RIDGE = 1e-12  # keeps the Hessian positive definite
DECREASE = 1e-4  # fraction of the linear decrease required by the line search (Armijo)
# The objective of a start may exceed that of all rows by this share. Beyond it, levels are faster
# for narrow kernels: on covtype (gamma 2 to 8, C 1 to 512), shares of 0.27, 0.5, 0.83, 2.7 and 46
# take 1.1, 1.0, 1.4, 1.6 and 2.1 times as long as levels; on ijcnn1 0.24 and 2.3 take 0.5 times and
# as long; on a9a 0.21 and 0.89 take 0.5 and 0.6 times as long.
MAX_LOSS = 0.8
# The folds of a problem of at most this many rows share a kernel matrix; its bytes per pair of rows
# are for all rows and for those of a fold. As many problems are solved between two progress calls.
MAX_IN_MEMORY, MATRIX_BYTES, PROBLEMS_AT_ONCE = 2048, 8, 32
MAX_TOLD = 5  # pairs of classes in a warning
OUTLIER = 5  # in standard deviations of the noise


def fit_sigmoid(
    values: np.ndarray,
    is_first: np.ndarray,
    weights: np.ndarray | None = None,
    *,
    centered: bool = False,
) -> tuple[float, float]:
    """Fit A and B of P(first class) = 1 / (1 + exp(A f + B)) to decision values f.

    Minimizes equation (2) of Lin, Lin and Weng, "A note on Platt's probabilistic outputs for
    support vector machines", Machine Learning 68 (2007), by their Newton method with backtracking.
    `values` float64 (n,) should be positive for rows of the first class, marked by `is_first` bool
    (n,). `weights` float64 (n,) is the number of rows that each value represents, 1 by default.
    With `centered`, or if the values contradict the classes (`is_contradicted`), B is 0 and A
    negative, so P > 1/2 exactly for f > 0. Raises ValueError if values are not finite or differ in
    shape from `is_first`.
    """
    values, is_first = np.asarray(values, np.float64), np.asarray(is_first, bool)
    if values.shape != is_first.shape or values.ndim != 1 or len(values) == 0:
        raise ValueError(f"{values.shape} decision values do not fit {is_first.shape} classes")
    if not np.isfinite(values).all():
        raise ValueError("decision values must be finite numbers")
    weights = np.ones(len(values)) if weights is None else weights
    centered = centered or is_contradicted(values, is_first, weights)
    # targets of Platt, smoothed by the number of rows of each class
    n_first, n_other = weights[is_first].sum(), weights[~is_first].sum()
    target = np.where(is_first, (n_first + 1) / (n_first + 2), 1 / (n_other + 2))
    point = np.array([0.0, 0.0 if centered else np.log((n_other + 1) / (n_first + 1))])
    free = slice(0, 1 if centered else 2)
    # Newton steps with a line search (Lin, Lin and Weng, 2007)
    loss = log_loss(point, values, target, weights)
    for _ in range(MAX_STEPS):
        gradient, hessian = derivatives(point, values, target, weights)
        if np.abs(gradient[free]).max() < SMALL_GRADIENT:
            break
        direction, curvature = np.zeros(2), (hessian + RIDGE * np.eye(2))[free, free]
        direction[free] = -np.linalg.solve(curvature, gradient[free])
        step = 1.0
        while step >= MIN_STEP:
            new_loss = log_loss(point + step * direction, values, target, weights)
            if new_loss < loss + DECREASE * step * (gradient @ direction):
                break
            step /= 2
        else:
            break
        point, loss = point + step * direction, new_loss
    return float(min(point[0], -RIDGE) if centered else point[0]), float(point[1])


def is_contradicted(values: np.ndarray, is_first: np.ndarray, weights: np.ndarray) -> bool:
    """Return whether values (n,) of the first class are smaller on average than the others.

    Exactly then A of `fit_sigmoid` with a free B would be positive, and the probability would fall
    with the decision value: its loss is convex, and at A = 0 with the best B its slope in A is the
    covariance of values and targets. `weights` (n,) are those of the rows.
    """
    if is_first.all() or not is_first.any():
        return False
    first, other = (np.average(values[own], weights=weights[own]) for own in (is_first, ~is_first))
    return bool(first < other - RIDGE * np.abs(values).max())


def log_loss(
    point: np.ndarray, values: np.ndarray, target: np.ndarray, weights: np.ndarray
) -> float:
    """Compute -sum w (t log p + (1 - t) log(1 - p)) at a point (A, B).

    Uses the formula of section 3 of Lin, Lin and Weng, which avoids cancellation and overflow.
    """
    z = point[0] * values + point[1]
    losses = np.where(z >= 0, target, target - 1) * z + np.log1p(np.exp(-np.abs(z)))
    return float(np.sum(weights * losses))


def derivatives(
    point: np.ndarray, values: np.ndarray, target: np.ndarray, weights: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Compute the gradient (2,) and the Hessian (2, 2) of `log_loss`."""
    p = sigmoid(values, *point)
    slope, curvature = weights * (target - p), weights * p * (1 - p)
    mixed = curvature @ values
    gradient = np.array([slope @ values, slope.sum()])
    hessian = np.array([[curvature @ values**2, mixed], [mixed, curvature.sum()]])
    return gradient, hessian


def sigmoid(values: np.ndarray, slope: float, offset: float) -> np.ndarray:
    """Compute 1 / (1 + exp(slope * values + offset)) without overflow."""
    z = slope * values + offset
    small = np.exp(-np.abs(z))
    return np.where(z >= 0, small, 1.0) / (1.0 + small)


def laplace_sigma(residuals: np.ndarray, weights: np.ndarray | None = None) -> float:
    """Estimate the scale sigma of Laplace noise, density exp(-|z| / sigma) / (2 sigma).

    Sigma is the mean absolute residual. It is computed again without residuals beyond 5 standard
    deviations, each sqrt(2) sigma. This is LIBSVM's rule, after Lin and Weng, "Simple probabilistic
    predictions for support vector regression" (2004). `residuals` float64 (n,) are label minus
    prediction of held-out rows. `weights` float64 (n,) is the number of rows that each residual
    represents, 1 by default. Raises ValueError if there are no residuals.
    """
    size = np.abs(np.asarray(residuals, np.float64))
    if len(size) == 0:
        raise ValueError("noise cannot be estimated without residuals")
    weights = np.ones(len(size)) if weights is None else weights
    kept = size <= OUTLIER * np.sqrt(2.0) * np.average(size, weights=weights)
    return float(np.average(size[kept], weights=weights[kept]))


def density_marks(values: np.ndarray, weights: np.ndarray) -> np.ndarray | None:
    """Return LIBSVM's prob_density_marks of one-class, float64 (N_MARKS,), ascending.

    They are midpoints between neighbours of a list: the least value of each fifth of the negative
    ones, 0, and the largest value of each fifth of the others. `values` (n,) are decision values of
    training rows, `weights` (n,) the number of rows that each represents. Returns None with fewer
    than N_MARKS / 2 rows on a side: too few.
    """
    order, n_parts, ends = np.argsort(values), N_MARKS // 2, np.zeros(N_MARKS + 1)
    negative, others = order[values[order] < 0], order[values[order] >= 0]
    if min(weights[negative].sum(), weights[others].sum()) < n_parts:
        return None
    # where each fifth of the negative ones begins
    total, part = np.cumsum(weights[negative]), np.arange(n_parts)
    place = np.searchsorted(total, np.floor(part * total[-1] / n_parts), "right")
    ends[:n_parts] = values[negative[place]]
    # where each fifth of the others ends
    total, part = np.cumsum(weights[others]), part + 1
    place = np.searchsorted(total, np.floor(part * total[-1] / n_parts), "left")
    ends[n_parts + 1 :] = values[others[place]]
    return (ends[1:] + ends[:-1]) / 2


def fitted_probability(run: Run) -> Probability | None:
    """Fit probabilities for a finished run and add the cost to the run. Raises Stopped.

    A one-class model of too few rows has none, with a warning.
    """
    start, progress, prepared = time.perf_counter(), run.control.progress, run.prepared
    if prepared.task.svm_type == "one_class":
        rho, _ = run.solver.offsets_and_margins(Subproblems.of_problems(run.solver.formulation))
        marks = density_marks(run.solver.gradient - rho[0], prepared.sample_weight)
        if marks is None:
            progress.warn(
                f"no probabilities: they need {N_MARKS // 2} training rows with a negative "
                f"decision value and {N_MARKS // 2} others"
            )
        return None if marks is None else Probability(marks)
    folds = folds_of(prepared, min(FOLDS_FOR_PROBABILITY, len(prepared.row_map.weighted_inputs)))
    batch = _learning_folds(prepared, folds)
    values = np.full((len(folds.row), run.solver.formulation.n_problems), np.nan)
    # without a fold of two classes the probabilities are those of the classes
    if len(batch) == 0:
        return _fit(run, folds, values)
    n_rows = prepared.data.rows.n_samples
    run.solver.begin_phase("probabilities", n_rows)
    if _is_small(run):
        _hold_out_in_memory(run, folds, values)
        progress.end("probabilities", time.perf_counter() - start)
        return _fit(run, folds, values)
    n_phases = 1 if run.options.early else len(prepared.plan.levels) + 3
    control = RunControl(PartOfProgress(progress, n_phases, 0, n_rows), run.control.stop)
    solver = _solve_folds(run, control, folds, batch)
    for entries, held_out in held_out_values(solver, folds, batch):
        values[entries] = held_out
    probability = _fit(run, folds, values)
    progress.end("probabilities", time.perf_counter() - start)
    return probability


def _learning_folds(prepared: Prepared, folds: Folds) -> np.ndarray:
    """Return the folds with at least two training classes, or all if not a classifier."""
    if not prepared.task.is_classification:
        return np.arange(folds.n_folds)
    has_class = folds.learns(prepared.targets[folds.row], prepared.task.n_classes)
    return np.flatnonzero(has_class.sum(axis=1) > 1)


def _is_small(run: Run) -> bool:
    """Whether `_hold_out_in_memory` can solve the folds: exactly, without limits of the work."""
    prepared, options, formulation = run.prepared, run.options, run.solver.formulation
    n_rows = int(np.diff(formulation.start).max()) // (2 if prepared.task.is_regression else 1)
    is_free = options.gap is None and not Budget.of(options).left and not options.early
    is_in_memory = not prepared.engine.is_out_of_core
    has_path = prepared.task.svm_type in ("c_svc", "epsilon_svr")
    fits = n_rows <= MAX_IN_MEMORY and MATRIX_BYTES * n_rows**2 <= run.solver.memory_bytes
    return is_free and is_in_memory and has_path and fits


def _hold_out_in_memory(run: Run, folds: Folds, values: np.ndarray) -> None:
    """Compute decision values of held-out rows, each problem with its kernel matrix in memory.

    The folds of a problem share its matrix, and need no other kernel values. Sets the entries of
    `values`, float64 (n_entries, n_pairs), whose rows belong to the problem. Raises Stopped.
    """
    prepared, options, costs = run.prepared, run.options, run.state.costs
    data, task, truth = prepared.data, prepared.task, prepared.targets[folds.row]
    # the folds have the weights of the rows
    formulation = task.formulate(prepared.targets, np.ones(len(prepared.targets)))
    pairs = pairs_of(task.n_classes) if task.is_classification else []
    entries = [np.flatnonzero((truth == first) | (truth == second)) for first, second in pairs]
    entries = entries or [np.arange(len(truth))]
    n_rows = np.diff(formulation.start) // (2 if task.is_regression else 1)
    most = run.solver.memory_bytes // (MATRIX_BYTES * int(n_rows.max()) ** 2)
    for batch in slices(formulation.n_problems, PROBLEMS_AT_ONCE):
        batch = slice(batch.start, min(batch.stop, formulation.n_problems))
        run.control.progress.advance(data.rows.n_samples * batch.start // formulation.n_problems)
        layout = Layout.of_problems(formulation, batch, folds, entries[batch])
        held, reports = _core.held_out_values(
            data.setup, data.points, formulation.problem, layout, [1.0], options.tolerance,
            task.is_classification, False, run.solver.memory_bytes, min(data.threads, most),
            run.control.stop,
        )  # fmt: skip
        problem = np.repeat(np.arange(batch.start, batch.stop), layout.sizes)
        values[layout.entries, problem] = held[0, :, 0]
        costs.counts["iterations"] += reports[0]["iterations"]
    costs.counts["kernel_evaluations"] += int((n_rows * (n_rows + 1) // 2).sum())


def _solve_folds(
    run: Run, control: RunControl, folds: Folds, batch: np.ndarray
) -> FormulationSolver | LevelSolver:
    """Solve folds like the run: by the clusters of the early level, or exactly."""
    prepared, formulation = run.prepared, formulation_of_folds(run.prepared, folds, batch)
    if run.options.early:
        assert run.state.early is not None
        level = run.state.early.level
        division = divided(run, level)
        level_solver = LevelSolver(prepared, control, formulation, division, level)
        level_solver.solver.begin_phase("folds", level_solver.formulation.problem.size)
        level_solver.solve_clusters(run.options.tolerance)
        run.state.costs.include(level_solver.solver.costs)
        return level_solver
    variables = variables_of_folds(run.solver, folds, batch, formulation)
    alpha = alpha_without_held_out(run.solver, variables, formulation)
    # levels of nu-SVC are slow: on covtype with nu = 0.3, this start takes 0.6 times as long
    is_good = prepared.task.divides_by_margin or is_good_start(run.solver, variables, alpha)
    # levels only give starts
    plan = replace(prepared.plan, early_level=None, levels=() if is_good else prepared.plan.levels)
    of_folds = Run(replace(prepared, plan=plan), control, formulation, tree=run.tree)
    if is_good:
        of_folds.solver.begin_with(alpha)
    # if float32 suffices for all rows it does without some of them
    state, has_gap = run.state, run.options.gap is not None
    of_folds.solver.is_checked = (
        state.checks > 1 or state.float64 or has_gap or prepared.task.divides_by_margin
    )
    improve(of_folds)
    run.state.costs.include(of_folds.solver.costs)
    return of_folds.solver


def alpha_without_held_out(
    solver: FormulationSolver, variables: list[np.ndarray], formulation: Formulation
) -> np.ndarray:
    """Make an initial alpha for folds from the solution of all rows.

    `variables` are those of the whole problem that each fold has. Alpha of the held-out rows is
    removed. The rest is changed to meet the constraints of each fold.
    """
    problem = formulation.problem
    alpha = np.clip(solver.alpha[np.concatenate(variables)], problem.lower, problem.upper)
    return formulation.with_constraints(alpha)


def variables_of_folds(
    solver: FormulationSolver, folds: Folds, batch: Iterable[int], formulation: Formulation
) -> list[np.ndarray]:
    """Return the variables of the whole problem that each fold has."""
    variables, rows = [], solver.problem.rows
    for number, k in enumerate(batch):
        kept = folds.train_weight(k)[rows] > 0
        sizes = np.diff(formulation.start)[number * solver.formulation.n_problems :]
        kept &= sizes[solver.formulation.problem_index] > 0
        variables.append(np.flatnonzero(kept))
    return variables


def is_good_start(
    solver: FormulationSolver, variables: list[np.ndarray], alpha: np.ndarray
) -> bool:
    """Return whether an initial alpha of folds has nearly the objective of all rows.

    `alpha` has the values of the `variables` of the folds, in order. A step d from the solution
    with the gradient g changes the objective by g'd + 1/2 d'Kd, which needs kernel values between
    moved variables only. With a large C, free variables balance each other: without some of them,
    the objective may be above 0, that of alpha = 0. Raises Stopped.
    """
    options = KernelEvalOptions(False, solver.cutoff, solver.control.stop)
    gradient, linear = solver.gradient, solver.problem.linear
    whole = 0.5 * float(solver.alpha @ (gradient - linear))
    total, begin = 0.0, 0
    for own in variables:
        step = -solver.alpha
        step[own] += alpha[begin : begin + len(own)]
        begin += len(own)
        moved = np.flatnonzero(step)
        terms, step = solver.components.terms(moved), step[moved]
        sums, n_values = solver.gradient_of(moved, options, (terms, step))
        solver.costs.counts["kernel_evaluations"] += n_values
        change = sums + linear[moved]
        total += whole + float(step @ (gradient[moved] + 0.5 * change))
    return total / len(variables) - whole <= MAX_LOSS * abs(whole)


def _fit(run: Run, folds: Folds, values: np.ndarray) -> Probability:
    """Fit probabilities to held-out decision values, float64 (n_entries, n_pairs).

    A value is nan if the training rows of its fold lack a class of the pair. Warns of pairs whose
    values contradict the classes.
    """
    prepared = run.prepared
    task, truth = prepared.task, prepared.targets[folds.row]
    if task.is_regression:
        return Probability(np.array([laplace_sigma(truth - values[:, 0], folds.weight)]), None)
    one_class = _values_of_one_class(folds, truth, task.n_classes)
    is_centered = prepared.options.probability == CENTERED
    fits, contradicted = [], []
    for pair, (first, second) in enumerate(pairs_of(task.n_classes)):
        own = np.flatnonzero((truth == first) | (truth == second))
        known = values[own, pair]
        known = np.where(np.isnan(known), one_class[folds.fold[own], first, second], known)
        is_first, weight = truth[own] == first, folds.weight[own]
        fits.append(fit_sigmoid(known, is_first, weight, centered=is_centered))
        if is_contradicted(known, is_first, weight):
            contradicted.append((first, second))
    if contradicted:
        run.control.progress.warn(_contradiction(task.labels, contradicted))
    return Probability(*np.array(fits).T)


def _contradiction(labels: np.ndarray, pairs: list[tuple[int, int]]) -> str:
    """Word the warning of pairs of classes (k,) whose held-out values contradict the classes."""
    # the estimators train with indices of their attribute classes_ for labels
    is_index = labels.dtype.kind == "u"
    names = [f"classes_[{k}]" if is_index else label_text(k) for k in labels.tolist()]
    told = ", ".join(f"{names[first]} and {names[second]}" for first, second in pairs[:MAX_TOLD])
    more = f" and {len(pairs) - MAX_TOLD} more pairs" if len(pairs) > MAX_TOLD else ""
    return (
        f"decision values of held-out rows contradict the labels {told}{more}: no pattern, or too "
        "few rows; the probabilities are near 1/2 and say no more than the labels"
    )


def _values_of_one_class(folds: Folds, classes: np.ndarray, n_classes: int) -> np.ndarray:
    """Return decision values to use for class pairs with a class missing in the fold.

    As in LIBSVM, a value is 1 if the second class is missing, -1 if the first is, 0 if both are.
    Returns float64 (n_folds, n_classes, n_classes).
    """
    has_class = folds.learns(classes, n_classes).astype(np.float64)
    return has_class[:, :, None] - has_class[:, None, :]


# A batch of folds has at most BATCH_VARIABLES variables or FOLD_FACTOR times the variables of the
# whole problem, whichever is more. The memory budget may allow fewer.
BATCH_VARIABLES = 2**20
FOLD_FACTOR = 4


def cross_validate(
    data: Dataset, options: TrainOptions, n_folds: int, progress: Progress | None = None
) -> tuple[Measurement, int]:
    """Predict every row by a model trained on the other folds.

    Returns the measured predictions, which keep their order, and how many folds did not converge.
    Classifiers use folds stratified by class, other types shuffled folds. The options give the
    seed. If the training rows of a fold have one class only, that class is predicted. Warns if
    folds do not converge. Raises ValueError for invalid input.
    """
    start = time.perf_counter()
    progress, rows, labels = progress or Progress(), data.rows, data.labels
    if options.svm_type in CLASSIFIERS and len(distinct(labels)) == 1:
        return _measured(options, labels, labels), 0
    progress.begin("cross validation", rows.n_samples)
    columns = UsedColumns.of_rows(rows)
    options = number_of_gamma(options, rows, table=data.table)
    narrow = columns.of(rows)
    prepared = prepare_rows(narrow, labels, options, consume=data.is_disposable)
    tree = None
    if not options.early:  # levels only give starts; the exact models predict
        prepared = replace(prepared, plan=replace(prepared.plan, early_level=None))
    elif prepared.plan.choices:
        plan, tree = _plan_of_best_level(prepared)
        prepared = replace(prepared, plan=plan)
    run = CrossValidationRun(prepared, folds_of(prepared, n_folds), progress, tree=tree)
    for batch in run.batches(run.open):
        run.solve(batch)
    progress.end("cross validation", time.perf_counter() - start)
    if run.n_failed:
        progress.warn(f"{run.n_failed} of {n_folds} folds did not converge")
    return _measured(options, run.predicted[run.folds.entry], labels), run.n_failed


def _measured(options: TrainOptions, predicted: np.ndarray, labels: np.ndarray) -> Measurement:
    """Measure the predictions of all rows, each by a model of other rows."""
    measured = Measurement(options.svm_type, np.zeros(0), is_kept=True)
    measured.add(Outcome(labels, predicted))
    return measured


class CrossValidationRun:
    """Cross-validation run that solves its folds in batches.

    Attributes
    ----------
    predicted : (n_entries,), predicted label or value of each entry of the folds.
    open : indices of the folds to solve; other folds have one training class and predict it.
    n_sv : number of support vectors of all solved folds.
    n_failed : number of folds that did not converge.
    largest : largest |alpha|, scaled to a row of weight 1; inf if a variable is at its bound.
    levels : clusters of all levels; runs with other labels on the same rows may share the tree.
    smaller : solutions for a smaller C, used as starts, or None.
    values : float64 (n_entries, n_pairs), the decision values of each entry, nan in folds with one
        training class; None unless they are kept (`keeps_values`).
    """

    def __init__(
        self,
        prepared: Prepared,
        folds: Folds,
        progress: Progress,
        stop: _core.Stop | None = None,
        tree: Tree | None = None,
        smaller: PathWarmStart | None = None,
        *,
        keeps_values: bool = False,
    ) -> None:
        self.prepared, self.folds, self.progress = prepared, folds, progress
        shape = len(folds.fold), prepared.formulation.n_problems
        self.values = np.full(shape, np.nan) if keeps_values else None
        self.tree = tree
        self.stop, self.smaller = stop or _core.Stop(), smaller
        task = prepared.task
        self.parts = ModelParts(prepared.data.kernel, task.labels, None, None, task.svm_type)
        self.predicted, self.open = _predict_single_classes(prepared, folds)
        self.n_done = self.n_sv = self.n_failed = 0
        self.largest = 0.0

    def batches(self, indices: np.ndarray) -> list[np.ndarray]:
        """Split folds into batches within the variable budget; each has at least one fold."""
        prepared, n_folds = self.prepared, self.folds.n_folds
        size = prepared.formulation.problem.size
        fold_size = size * (n_folds - 1) / n_folds if n_folds > 1 else size
        budget = min(max(BATCH_VARIABLES, FOLD_FACTOR * size), prepared.memory.most_variables(size))
        batch_size = max(int(budget / fold_size), 1)
        return np.array_split(indices, -(-len(indices) // batch_size)) if len(indices) else []

    def solve(self, batch: np.ndarray) -> None:
        """Solve a batch of folds and predict the rows they hold out. Raises Stopped."""
        prepared, folds = self.prepared, self.folds
        formulation = formulation_of_folds(prepared, folds, batch)
        n_rows = folds.n_held(batch)
        n_phases = len(prepared.plan.levels) + 3  # refine, gradient, conquer
        part = PartOfProgress(self.progress, n_phases, self.n_done, n_rows)
        run = Run(prepared, RunControl(part, self.stop), formulation, tree=self.tree)
        known = None if self.smaller is None else self.smaller.begin(run.solver, batch)
        improve(run)
        self.tree = run.tree  # batches share the clusters
        solved = run.early_solver or run.solver
        for entries, values in held_out_values(solved, folds, batch, known):
            self.predicted[entries] = self.parts.predicted_from(values)
            if self.values is not None:
                self.values[entries] = values
        if self.smaller is not None and known is not None:
            self.smaller.keep(run.solver, batch, known)
        self.n_done += n_rows
        self.n_sv += _n_sv(run.solver)
        self.n_failed += int(np.count_nonzero(~run.state.converged))
        self.largest = max(self.largest, _largest_alpha(run.solver))


def _predict_single_classes(prepared: Prepared, folds: Folds) -> tuple[np.ndarray, np.ndarray]:
    """Predict the entries of folds with a single training class.

    Returns predictions (n_entries,), unset for entries of other folds, and the indices of these
    other folds.
    """
    if not prepared.task.is_classification:
        return np.empty(len(folds.fold)), folds.nonempty
    predicted = np.empty(len(folds.fold), prepared.task.labels.dtype)
    classes = folds.classes_alone(prepared.targets[folds.row], prepared.task.n_classes)
    mask = classes >= 0
    predicted[mask] = prepared.task.labels[classes[mask]]
    return predicted, np.setdiff1d(folds.nonempty, folds.fold[mask])


def _plan_of_best_level(prepared: Prepared) -> tuple[Plan, Tree]:
    """Return a plan with only the best early level of all rows, and its cluster tree.

    The search uses leave-one-out values, so the label of a row does not affect its own loss.
    """
    run = Run(prepared)
    find_early_level(run)
    choice, tree = run.state.early_choice, run.tree
    assert choice is not None and tree is not None
    level = choice.level
    return replace(prepared.plan, levels=(level,), early_level=level, choices=()), tree


def _largest_alpha(solver: FormulationSolver) -> float:
    """Return the largest |alpha|, scaled to weight 1; inf if a variable is at its bound."""
    alpha, problem = np.abs(solver.alpha), solver.problem
    bound = np.maximum(problem.upper, -problem.lower)
    if np.any((alpha >= bound * (1 - 1e-12)) & (alpha > 0)):
        return np.inf
    unit_bound = solver.task.bound_of(solver.prepared.targets[problem.rows])
    return float(np.max(alpha / bound * unit_bound, initial=0.0))


def _n_sv(solver: FormulationSolver) -> int:
    """Count the support vectors of all folds, each duplicate separately."""
    support, targets = np.flatnonzero(solver.alpha), solver.prepared.targets
    row = solver.problem.rows[support]
    fold = solver.formulation.problem_index[support] // solver.formulation.n_problems_of_fold
    _, position = np.unique(fold * len(targets) + row, return_inverse=True)
    counts = np.zeros(len(support))
    size = np.abs(solver.alpha[support]) / solver.task.bound_of(targets[row])
    np.maximum.at(counts, position, np.ceil(size * (1 - 1e-12)))
    return int(counts.sum())
