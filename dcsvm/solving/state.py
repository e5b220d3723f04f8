"""The state of a run: exactly the data that a checkpoint stores to resume the run."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field, fields
from math import isfinite
from typing import TYPE_CHECKING, Any

import numpy as np

from dcsvm import _core
from dcsvm.model.parts import EarlyModel
from dcsvm.problem.formulation import BoxQP
from dcsvm.problem.options import TrainOptions
from dcsvm.solving.certificate import Certificate, CheckState
from dcsvm.solving.iterate import Iterate
from dcsvm.solving.report import METRICS, Costs, EarlyChoice, LevelReport

if TYPE_CHECKING:
    from numpy.typing import DTypeLike

CERTIFICATE, LEVEL, BEST = "certificate_", "level_", "best_"  # prefixes of array names
DONE = "done"  # value of `next_step` after the last step
JSON_FIELDS = ("next_step", "neglected", "is_global", "has_begun", "n_bsv", "checks",
               "last_violation", "float64", "rounding", "n_moves")  # fmt: skip
UNKNOWN_AT_FIRST = ("multiplier", "move", "missing", "weight", "gap_tolerance")
# Work that an option limits, by its name in SOLVE_REPORT and in `Limits` of csrc/solver/solve.h.
LIMITS = {"iterations": "max_iterations"}


@dataclass(eq=False)
class Budget:
    """Remaining work, by its names in LIMITS; work without a limit is absent."""

    left: dict[str, int]

    @staticmethod
    def of(options: TrainOptions) -> Budget:
        """Make the budget that these options set; a negative option means no limit."""
        most = {name: getattr(options, option) for name, option in LIMITS.items()}
        return Budget({name: limit for name, limit in most.items() if limit >= 0})

    def at_most(self, work: dict[str, int]) -> Budget:
        """Return a new budget of the remaining work, limited to `work`."""
        return Budget(self.left | {k: min(n, self.left.get(k, n)) for k, n in work.items()})

    @property
    def is_used_up(self) -> bool:
        return 0 in self.left.values()

    def use(self, solved: np.ndarray, n_folds: int = 1) -> None:
        """Subtract the work of a SOLVE_REPORT array, a mean over `n_folds` folds."""
        self.left = {
            name: max(0, left - int(solved[name].sum()) // n_folds)
            for name, left in self.left.items()
        }


@dataclass(eq=False)
class BestSolution:
    """Solutions of the folds: alpha and gradient, float64, and `excess`, inf for absent ones.

    `excess` float64 (n_folds,) is the violation or the relative gap.
    """

    alpha: np.ndarray
    gradient: np.ndarray
    excess: np.ndarray

    @staticmethod
    def nothing(size: int, n_folds: int) -> BestSolution:
        return BestSolution(np.zeros(size), np.zeros(size), np.full(n_folds, np.inf))


@dataclass(eq=False, kw_only=True)
class RunState:
    """State of a run, exactly as a checkpoint stores it.

    Attributes
    ----------
    iterate : alpha and its gradient, as far as known.
    whole_tolerance : float64 (n_units,), tolerance to which a level solved a component as a whole,
        or inf.
    budget : remaining work of all steps.
    n_iterations : int64 (n_problems,), coordinate updates of each problem in finished solves.
    converged : bool (n_folds,), convergence of each fold.
    costs : cost of the run.
    next_step : name of the step that is next or in progress, "" before the first, or DONE.
    neglected : bound on the truncation error of each entry of the gradient.
    is_global : whether the gradient belongs to the whole problem, not to separate clusters.
    has_begun : whether the level in progress has changed its starting point.
    solve : state of the solve in progress, without its iterate; None between solves. `costs`
        includes a solve only after its end.
    begun_with : int32, variables selected at the start of the refine or gradient step; None outside
        these steps.
    level : arrays of the LevelSolver of the level in progress, by name; or None.
    sample : int32, sample rows of the clustering of the level in progress, if it used no tree.
    early : model of the early level, or of the last level before it.
    n_bsv : number of bounded support vectors of `early`.
    multiplier : multiplier of the relaxed constraint (relaxation.py), or None.
    n_moves, move, missing : number of changes of the multiplier, the current or next change, and
        the required minus the actual sum of alpha at the last measurement.
    weight : sum of |alpha| before the conquer solve in progress, else None.
    checked : state of the float64 check in progress, or None.
    checks : number of finished checks of the whole problem.
    last_violation : violation of the last check, inf before.
    gap_tolerance : tolerance of the solve of the whole problem for the duality gap, or None.
    float64 : whether float32 kernel values were not accurate enough.
    rounding : largest error of a float32 gradient in a check.
    best : solutions of the folds with the smallest violation in a check, while another solve
        follows; or None.
    certificate : certificate of the solution, or None.
    levels, support_by_level : reports of the levels, and the input rows of their support vectors.
    early_choice : choice of the early level, or None.
    """

    iterate: Iterate
    whole_tolerance: np.ndarray
    budget: Budget
    n_iterations: np.ndarray
    converged: np.ndarray
    costs: Costs = field(default_factory=Costs)
    next_step: str = ""
    neglected: float = 0.0
    is_global: bool = True
    has_begun: bool = False
    solve: _core.SolveState | None = None
    begun_with: np.ndarray | None = None
    level: dict[str, np.ndarray] | None = None
    sample: np.ndarray | None = None
    early: EarlyModel | None = None
    n_bsv: int = 0
    multiplier: float | None = None
    n_moves: int = 0
    move: float | None = None
    missing: float | None = None
    weight: float | None = None
    checked: CheckState | None = None
    checks: int = 0
    last_violation: float = np.inf
    gap_tolerance: float | None = None
    float64: bool = False
    rounding: float = 0.0
    best: BestSolution | None = None
    certificate: Certificate | None = None
    levels: list[LevelReport] = field(default_factory=list)
    support_by_level: list[np.ndarray] = field(default_factory=list)
    early_choice: EarlyChoice | None = None

    def to_arrays(self) -> dict[str, np.ndarray]:
        """Return the state, without the early model, as arrays by name; "values" is JSON."""
        arrays: dict[str, np.ndarray] = {**vars(self.iterate)}
        if self.checked is not None:
            arrays |= vars(self.checked)
        if self.solve is not None:
            arrays["solve"] = self.solve.to_array()
        if self.level is not None:
            arrays |= {LEVEL + name: values for name, values in self.level.items()}
        if self.best is not None:
            arrays |= {BEST + name: values for name, values in vars(self.best).items()}
        if self.certificate is not None:
            arrays |= {CERTIFICATE + name: v for name, v in vars(self.certificate).items()}
        for number, support in enumerate(self.support_by_level):
            arrays[f"support_{number}"] = support
        values: dict[str, Any] = {f"{name}_left": n for name, n in self.budget.left.items()}
        for name in (one.name for one in fields(self)):
            value = getattr(self, name)
            if isinstance(value, np.ndarray):
                arrays[name] = value
            elif name in JSON_FIELDS or name in UNKNOWN_AT_FIRST:
                values[name] = value
        values["costs"] = asdict(self.costs)
        values["early_choice"] = self.early_choice and asdict(self.early_choice)
        values["levels"] = [asdict(level) for level in self.levels]
        values["has_early"] = self.early is not None
        arrays["values"] = np.frombuffer(json.dumps(values).encode(), np.uint8)
        return arrays

    def set_arrays(
        self, arrays: dict[str, np.ndarray], problem: BoxQP, n_rows: int, n_groups: int
    ) -> bool:
        """Restore the state from the arrays of `to_arrays`.

        The run has `n_rows` rows in `n_groups` components. Returns whether it had an early model.
        Raises ValueError, KeyError, TypeError, AttributeError, OverflowError or RecursionError if
        the arrays do not fit this problem.
        """
        values = json.loads(arrays["values"].tobytes())
        self.budget = Budget({name: _whole(values[f"{name}_left"]) for name in self.budget.left})
        for name in JSON_FIELDS:
            setattr(self, name, _like(getattr(self, name), values[name]))
        for name in UNKNOWN_AT_FIRST:
            setattr(self, name, _number(values[name], unknown=True))
        n_units = len(self.whole_tolerance)
        if self.multiplier is not None:
            if problem.n_constraints != 1 or n_units != 1:
                raise ValueError("multiplier")
            n_units = n_groups
        self.iterate = Iterate(*(arrays[one.name] for one in fields(Iterate)))
        _check_iterate(self.iterate, problem)
        self.checked = None
        if "is_exact" in arrays:
            self.checked = CheckState(*(arrays[one.name] for one in fields(CheckState)))
            check_floats(self.checked.difference, problem.size)
            for flags in (self.checked.is_exact, self.checked.drawn, self.checked.wanted):
                check_array(flags, np.uint8, problem.size)
                if flags.max(initial=0) > 1:
                    raise ValueError("what is checked")
        self.solve = None
        if "solve" in arrays:
            self.solve = _core.SolveState.from_array(arrays["solve"])
        self.whole_tolerance = arrays["whole_tolerance"]
        check_floats(self.whole_tolerance, n_units, infinite=True)
        check_array(arrays["n_iterations"], np.int64, len(self.n_iterations), least=0)
        check_array(arrays["converged"], np.bool_, len(self.converged))
        self.n_iterations, self.converged = arrays["n_iterations"], arrays["converged"]
        self.begun_with, self.sample = (arrays.get(name) for name in ("begun_with", "sample"))
        self.level = {
            name.removeprefix(LEVEL): values
            for name, values in arrays.items()
            if name.startswith(LEVEL)
        } or None
        for numbers, end in ((self.begun_with, problem.size), (self.sample, n_rows)):
            if numbers is not None:
                _check_numbers(numbers, end)
        self.costs = Costs(**_like(asdict(self.costs), values["costs"]))
        self.levels = [
            LevelReport(**{name: _number(value, unknown=True) for name, value in level.items()})
            for level in values["levels"]
        ]
        self.support_by_level = [arrays[f"support_{k}"] for k in range(len(self.levels))]
        self.early_choice = _choice(values["early_choice"])
        self.best = _best(arrays, problem, len(self.converged))
        self.certificate = None
        if CERTIFICATE + "units" in arrays:
            n_problems = len(self.n_iterations)
            self.certificate = _certificate(arrays, n_problems, problem.n_constraints)
        return _like(False, values["has_early"])


def _number(value: Any, *, unknown: bool = False) -> Any:
    """Check that a value is a finite number, or None if `unknown` is set, and return it."""
    if value is None and unknown:
        return None
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not isfinite(value):
        raise ValueError("not a number")
    return value


def _whole(value: Any, *, least: int = 0) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or not least <= value < 2**63:
        raise ValueError("not a count")
    return value


def _like(known: Any, value: Any) -> Any:
    """Check that a value has the type of `known` (bool, str, int, float or dict); return it."""
    if isinstance(known, dict):
        if value.keys() != known.keys():
            raise ValueError("keys")
        return {key: _like(one, value[key]) for key, one in known.items()}
    if isinstance(known, (bool, str)):
        if not isinstance(value, type(known)):
            raise ValueError("not of its type")
        return value
    if isinstance(known, int):
        return _whole(value)
    return value if value == np.inf else float(_number(value))


def _choice(values: dict | None) -> EarlyChoice | None:
    """Check and return the stored choice of the early level."""
    if values is None:
        return None
    metric, on_test_rows = values.pop("metric"), bool(values.pop("on_test_rows"))
    numbers = {name: _number(one, unknown=True) for name, one in values.items()}
    choice = EarlyChoice(**numbers, metric=metric, on_test_rows=on_test_rows)
    if metric not in METRICS:
        raise ValueError("metric")
    if not all(isinstance(one, int) for one in (choice.level, choice.finest, choice.coarsest)):
        raise ValueError("early level")
    return choice


def _best(arrays: dict[str, np.ndarray], problem: BoxQP, n_folds: int) -> BestSolution | None:
    """Check and return the stored best solution."""
    if BEST + "alpha" not in arrays:
        return None
    best = BestSolution(*(arrays[BEST + one.name] for one in fields(BestSolution)))
    for solution in (best.alpha, best.gradient):
        check_floats(solution, problem.size)
    _check_bounds(best.alpha, problem)
    check_floats(best.excess, n_folds, infinite=True)
    return best


def _certificate(arrays: dict[str, np.ndarray], n_problems: int, n_constraints: int) -> Certificate:
    """Check and return the stored certificate."""
    found = Certificate(*(arrays[CERTIFICATE + one.name] for one in fields(Certificate)))
    if found.multipliers.shape != (n_problems, n_constraints):
        raise ValueError("multipliers")
    check_floats(found.multipliers.reshape(-1), found.multipliers.size)
    check_array(found.counts, np.int64, n_problems, least=0)
    for values in (found.units, found.violations):
        check_floats(values, n_problems)
    for values in (found.objectives, found.gaps, found.kernel_errors, found.objective_errors):
        check_array(values, np.float64, n_problems)
    return found


def check_array(
    values: np.ndarray, dtype: DTypeLike, size: int, *, least: int | None = None
) -> None:
    if values.shape != (size,) or values.dtype != dtype:
        raise ValueError("size")
    if least is not None and np.any(values < least):
        raise ValueError("values")


def check_floats(values: np.ndarray, size: int, *, infinite: bool = False) -> None:
    check_array(values, np.float64, size)
    if np.any(np.isnan(values) if infinite else ~np.isfinite(values)):
        raise ValueError("values")


def _check_numbers(numbers: np.ndarray, end: int) -> None:
    if numbers.ndim != 1 or numbers.dtype != np.int32 or np.any(np.diff(numbers) <= 0):
        raise ValueError("numbers do not ascend")
    if len(numbers) and not 0 <= numbers[0] <= numbers[-1] < end:
        raise ValueError("numbers out of range")


def _check_bounds(alpha: np.ndarray, problem: BoxQP) -> None:
    if np.any(alpha < problem.lower) or np.any(alpha > problem.upper):
        raise ValueError("alpha out of its bounds")


def _check_iterate(iterate: Iterate, problem: BoxQP) -> None:
    for values in (iterate.alpha, iterate.gradient, iterate.base):
        check_floats(values, problem.size)
    for alpha in (iterate.alpha, iterate.base):
        _check_bounds(alpha, problem)
    check_array(iterate.known, np.uint8, problem.size)
    if iterate.known.max(initial=0) > 2:
        raise ValueError("what is known of the iterate")
