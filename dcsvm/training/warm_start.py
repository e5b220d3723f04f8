"""Start training from a model of the same rows or of the first rows, or along a path of C.

The model may have another C, gamma, kernel or tolerance. Training runs its levels from this start.
On 50,000 rows of covtype, a start from a model of the first 48,000 saves a third of the time. A
start from a model with half the C saves little. Without levels, a start costs more time than it
saves. Support vectors at the old bound start at the new bound, others at their alpha. The equality
constraints are then restored by changing support vectors.

Folds follow a path of increasing C. Since K (r alpha) = r K alpha, scaling alpha by the ratio r of
two C requires no kernel values. Bounded variables stay at their bound (Chu et al., KDD 2015). Such
a start is good if nearly all support vectors are bounded. A much larger C is then reached in steps.
If hardly any are bounded, alpha is kept without scaling. Otherwise training with levels requires
fewer kernel values than a warm start. Kernel sums of held-out rows are reused in every case.

Duplicate rows with opposite classes are bounded for every C. Both can move to the new bound
together, because this changes no kernel sum.
"""

import math
from collections.abc import Collection, Iterable
from dataclasses import dataclass, replace

import numpy as np

from dcsvm.data.rows import Rows
from dcsvm.data.used_columns import UsedColumns
from dcsvm.model.model import Model
from dcsvm.model.parts import EarlyModel, ExactModel
from dcsvm.model.writer import with_label_order
from dcsvm.problem.duplicates import opposite_twins
from dcsvm.problem.formulation import BoxQP, Formulation, Task, pairs_of
from dcsvm.problem.options import TrainOptions
from dcsvm.training.engine import Prepared
from dcsvm.training.held_out import KernelSums
from dcsvm.training.run import LEVEL_TOLERANCE
from dcsvm.training.solver import FormulationSolver

AT_BOUND = 1.0 - 1e-9  # fraction of the bound or of the largest coefficient


class OtherModelError(ValueError):  # noqa: N818 (renamed together with its users)
    """Error: training cannot start from the given model."""


def check_rows(model: Model, rows: Rows, options: TrainOptions, columns: UsedColumns) -> None:
    """Check that the support vectors of a model are training rows. Raises OtherModelError.

    The rows have only the used ones of the `columns`; the model has all.
    """
    part, numbers = _support_of(model)
    if numbers.max(initial=-1) >= rows.n_samples:
        raise OtherModelError(
            f"the initial model has row {numbers.max() + 1}, there are {rows.n_samples} rows"
        )
    is_precomputed = options.kernel_type.is_precomputed
    if model.kernel.is_precomputed != is_precomputed:
        raise OtherModelError(
            "the initial model and the rows must both have a kernel matrix, or none"
        )
    if is_precomputed:
        return
    # the model has all columns, the rows only used ones
    taken = columns.all_of(rows.take_for_model(numbers))
    if not _are_equal(taken, part.rows, options.threads or 1):
        raise OtherModelError(
            "the initial model has other rows, another scaling or other feature weights: "
            "support vectors differ"
        )


def first_alpha(prepared: Prepared, model: Model) -> np.ndarray:
    """Make a feasible alpha for prepared rows from a model of these rows.

    Raises OtherModelError if the model has other labels or another problem type.
    """
    task, formulation = prepared.task, prepared.formulation
    part, numbers = _support_of(_of_task(task, model))
    # coefficients of input rows, per unit of weight
    weight = prepared.row_map.weight_of_input
    mask = weight[numbers] > 0
    numbers, stored = numbers[mask], part.dual_coef[:, mask]
    row, weight = prepared.row_map.row_of_input[numbers], weight[numbers]
    targets = prepared.targets[row]
    bound = task.bound_of(targets)
    alpha = np.zeros(formulation.problem.size)
    for number, variables in enumerate(formulation.parts()):
        coef = _coefficients(task, number, targets, stored) / weight
        largest = np.abs(coef).max(initial=0.0)
        if task.divides_by_margin and largest > 0:
            coef = coef / largest
            largest = 1.0
        # vectors at the old bound go to the new one
        at_bound = np.abs(coef) >= AT_BOUND * largest
        size = weight * np.where(at_bound, bound, np.minimum(np.abs(coef), bound))
        signed = np.where(coef == 0, 0.0, np.copysign(size, coef))
        _add(prepared, variables, row, signed, alpha)
    return formulation.with_constraints(alpha)


def _support_of(model: Model) -> tuple[ExactModel | EarlyModel, np.ndarray]:
    """Return the model part used as the start, and the row indices of its support vectors."""
    part = model.exact or model.early
    if part is None or part.row_numbers is None:
        raise OtherModelError("the initial model has no row numbers of its support vectors")
    return part, part.row_numbers


def _of_task(task: Task, model: Model) -> Model:
    """Return the model with its classes in the order of the task. Raises OtherModelError."""
    if model.svm_type != task.svm_type:
        raise OtherModelError(f"the initial model has type {model.svm_type}, not {task.svm_type}")
    try:
        model = with_label_order(model, task.labels)
    except ValueError:
        raise OtherModelError("the initial model has other labels") from None
    part, numbers = _support_of(model)
    classes = part.class_
    if classes is not None and not np.array_equal(classes, task.targets[numbers]):
        raise OtherModelError("the initial model has other rows: support vectors differ")
    return model


def _are_equal(rows: Rows, others: Rows, threads: int) -> bool:
    n_features = max(rows.n_features, others.n_features)
    rows = rows.with_features(n_features)
    others = others.with_features(n_features).in_form_of(rows, threads)
    names = ("dense", "indptr", "indices", "values", "columns")
    pairs = [(getattr(rows, name), getattr(others, name)) for name in names]
    return all((a is None) == (b is None) and (a is None or np.array_equal(a, b)) for a, b in pairs)


def _coefficients(task: Task, number: int, targets: np.ndarray, coef: np.ndarray) -> np.ndarray:
    """Return the signed alpha of support vectors in a binary problem, 0 for other classes."""
    if task.n_classes < 2:
        return coef[0]
    first, second = pairs_of(task.n_classes)[number]
    of_first = np.where(targets == first, coef[second - 1], 0.0)
    return np.where(targets == second, coef[first], of_first)


def _add(
    prepared: Prepared, variables: slice, row: np.ndarray, signed: np.ndarray, alpha: np.ndarray
) -> None:
    """Add each row's signed value to alpha of its variable of the same sign, in place."""
    problem = prepared.formulation.problem.part(variables)
    for negative in (False, True):
        of_row = np.full(prepared.data.rows.n_samples, -1)
        side = np.flatnonzero((problem.lower < 0) == negative)
        of_row[problem.rows[side]] = variables.start + side
        chosen = (signed != 0) & ((signed < 0) == negative) & (of_row[row] >= 0)
        np.add.at(alpha, of_row[row[chosen]], signed[chosen])


# The distance of a start, in support vectors, estimates its cost. Beyond n_sv a cold start is
# faster. If alpha is scaled, each free support vector adds FREE times the ratio of C. Times
# relative to a cold start on 50,000 rows of covtype with gamma=2: for a ratio of 4, 0.5 at distance
# 0.2 n_sv, 0.8 at 0.9 n_sv and 1.0 at 1.4 n_sv; for a ratio of 128, 2.0 at 4 n_sv.
FREE = 5.0
# If alpha is kept, each support vector that leaves its bound adds BOUNDED. Relative times on
# ijcnn1: 0.1 to 0.4 up to distance 0.6 n_sv with gamma=32, 1.1 at 0.7 n_sv with gamma=2.
BOUNDED = 20.0
# Largest factor of C in one step. On 100,000 rows of covtype, a single step by 16 takes 1.3 times
# as long as steps by 4.
MAX_STEP = 4.0
KEEPS_SUMS = ("c_svc", "epsilon_svr")  # types whose equality constraints do not depend on C
MEMORY_SHARE = 8  # all kept solutions use at most 1/8 of the spare memory


@dataclass(frozen=True, eq=False)
class FoldSolution:
    """Solution of a fold for one C.

    `alpha`, float64 (n_variables,), has the values of its variables, and `sums` K alpha of them,
    with truncation errors up to `neglected`. `held_out` is K alpha at its held-out entries.
    """

    C: float
    alpha: np.ndarray
    sums: np.ndarray
    held_out: np.ndarray
    neglected: float

    @property
    def nbytes(self) -> int:
        return self.alpha.nbytes + self.sums.nbytes + self.held_out.nbytes


class PathWarmStart:
    """Latest solution of each fold, a start for a larger C or for a smaller tolerance."""

    def __init__(self) -> None:
        self.of_fold: dict[int, FoldSolution] = {}

    @property
    def nbytes(self) -> int:
        return sum(solved.nbytes for solved in self.of_fold.values())

    def begin(self, solver: FormulationSolver, batch: Collection[int]) -> dict[int, KernelSums]:
        """Start the solver of a batch of folds from a solution for this C or a smaller one.

        Returns the scaled kernel sums of all folds that have a solution for such a C.
        """
        solver.reserve(self.nbytes)
        known, starts, distance, ratios = {}, [], 0.0, set()
        for k, fold in enumerate(batch):
            solved = self.of_fold.get(int(fold))
            if solved is not None and solved.C <= solver.options.C:
                variables = solver.formulation.variables_of_fold(k)
                start, ratio, distance_of_fold = _start(solved, solver, variables)
                distance += distance_of_fold
                ratios.add(ratio)
                starts.append(start)
                known[int(fold)] = start.alpha, start.held_out
        if not starts or len(starts) < len(batch):
            return known
        # a start that is farther from the solution than zero is no start
        alpha = np.concatenate([start.alpha for start in starts])
        if distance <= np.count_nonzero(alpha):
            sums = np.concatenate([start.sums for start in starts])
            neglected = max(start.neglected for start in starts)
            solver.begin_with(alpha, sums - solver.problem.linear, neglected)
            if len(ratios) == 1:
                _take_steps(solver, ratios.pop())
        return known

    def keep(
        self, solver: FormulationSolver, batch: Iterable[int], known: dict[int, KernelSums]
    ) -> None:
        """Keep the solutions of a batch of folds if memory allows.

        `known` has the kernel sums at the held-out entries of each fold.
        """
        variables = solver.problem.size + solver.prepared.formulation.problem.size
        budget = solver.prepared.memory.spare(variables) // MEMORY_SHARE
        if not solver.iterate.is_known.all():
            return
        sums = solver.gradient + solver.problem.linear
        for k, fold in enumerate(batch):
            (alpha, held_out), own = known[int(fold)], solver.formulation.variables_of_fold(k)
            neglected = solver.state.neglected
            solved = FoldSolution(solver.options.C, alpha, sums[own], held_out, neglected)
            self.of_fold.pop(int(fold), None)
            if self.nbytes + solved.nbytes <= budget:
                self.of_fold[int(fold)] = solved


def _start(
    solved: FoldSolution, solver: FormulationSolver, own: np.ndarray
) -> tuple[FoldSolution, float, float]:
    """Make a start from the solution for a smaller C. `own` are the variables of the fold.

    Alpha is kept if fewer variables then leave their bound than are free; otherwise it is scaled.
    Returns the start, the ratio by which alpha is scaled, and its distance in support vectors.
    """
    C = solver.options.C
    ratio = C / solved.C
    scaled, n_free = _feasible(ratio * solved.alpha, solver.problem.part(own))
    if solver.options.svm_type in KEEPS_SUMS:
        kept, n_inside = _kept(solved.alpha, ratio, solver, own)
        if n_inside < n_free:
            return replace(solved, C=C, alpha=kept), 1.0, BOUNDED * n_inside
    sums, held_out = ratio * solved.sums, ratio * solved.held_out
    start = FoldSolution(C, scaled, sums, held_out, ratio * solved.neglected)
    return start, ratio, FREE * ratio * n_free


def _kept(
    alpha: np.ndarray, ratio: float, solver: FormulationSolver, own: np.ndarray
) -> tuple[np.ndarray, int]:
    """Keep alpha for a C `ratio` times larger, but move duplicates of opposite classes.

    Such pairs of rows move towards the new bound, which leaves all kernel sums unchanged. `own` are
    the variables of the fold. Returns alpha and the number of variables that leave their bound.
    """
    problem = solver.problem.part(own)
    is_positive = problem.upper > 0
    bound = np.where(is_positive, problem.upper, -problem.lower)
    was_bounded = np.abs(alpha) >= AT_BOUND * bound / ratio
    if not solver.task.is_classification or not was_bounded.any():
        return alpha, int(np.count_nonzero(was_bounded))
    a, b = opposite_twins(
        solver.data.rows,
        problem.rows,
        solver.formulation.problem_index[own],
        np.where(is_positive, 1, -1),
    )
    kept = alpha.copy()
    limits = []  # upper limits of the change of each pair
    for side in (a, b):
        size = np.abs(alpha[side])
        limits += [np.where(was_bounded[side], (ratio - 1.0) * size, np.inf), bound[side] - size]
    change = np.minimum.reduce(limits)
    change[~(was_bounded[a] | was_bounded[b])] = 0.0
    kept[a] += change
    kept[b] -= change
    is_inside = was_bounded & (np.abs(kept) < AT_BOUND * bound)
    return kept, int(np.count_nonzero(is_inside))


def _feasible(alpha: np.ndarray, problem: BoxQP) -> tuple[np.ndarray, int]:
    """Set variables that reach their bound, up to rounding, exactly to the bound.

    Returns alpha and the number of free support vectors.
    """
    bound = np.where(alpha < 0, problem.lower, problem.upper)
    at_bound = np.abs(alpha) >= AT_BOUND * np.abs(bound)
    return np.where(at_bound, bound, alpha), int(np.count_nonzero(~at_bound & (alpha != 0)))


def _take_steps(solver: FormulationSolver, ratio: float) -> None:
    """Solve loosely for values of C between the old and the new C. Raises Stopped.

    The solver has the old solution, scaled by `ratio`.
    """
    target, variables = solver.formulation, np.arange(solver.problem.size, dtype=np.int32)
    steps = math.ceil(math.log(ratio, MAX_STEP) - 1e-9)
    scale = ratio ** (1 / max(steps, 1) - 1)  # from the new C back to the first step
    for k in range(1, steps):
        problem = target.problem.scaled(ratio ** (k / steps - 1))
        _scale(solver, scale, replace(target, problem=problem))
        tolerance = max(solver.options.tolerance, LEVEL_TOLERANCE)
        solver.solve(variables, solver.components.sizes(variables), tolerance)
        scale = ratio ** (1 / steps)
    if steps > 1:
        _scale(solver, scale, target)


def _scale(solver: FormulationSolver, scale: float, formulation: Formulation) -> None:
    """Scale alpha and the gradient of a solver, and set its formulation with another C."""
    sums = scale * (solver.gradient + solver.problem.linear)
    neglected = scale * solver.state.neglected
    alpha, _ = _feasible(scale * solver.alpha, formulation.problem)
    solver.set_formulation(formulation)
    solver.begin_with(alpha, sums - solver.problem.linear, neglected)
