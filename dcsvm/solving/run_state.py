"""The state of a run: with its data and options, all that is needed to go on from any point.

A run moves through the steps of its plan; `steps_done` of them are done.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from math import isfinite

import numpy as np

from dcsvm.model.parts import EarlyModel
from dcsvm.problem.formulation import BoxProblem
from dcsvm.solving.certificate import Checked
from dcsvm.solving.iterate import Iterate
from dcsvm.solving.report import EarlyChoice, LevelReport, TrainReport

REPORTED = ("refine_seconds", "conquer_seconds", "seconds_train", "seconds_verify", "counts",
            "values", "phases")  # fmt: skip


@dataclass(eq=False)
class RunState:
    """`n_iterations` int64 (n_problems,): coordinate updates of each problem in finished solves.
    `whole_tolerance` float64 (n_units,): a level solved the unit as a whole to it, or inf.
    `has_begun`: the level in progress is no longer what it began with; `begun_with` int32: the
    variables that refine began with, None before and after. `level_alpha` float64: where the
    clusters of a level are, each for itself, or None. `sample` int32: the rows that the level in
    progress was found from, where it was found alone.
    `is_global`: what is known of the gradient is of the whole problem, not of clusters. `early` is
    the model of the early level, or of the last level before it. `checked`: how far the float64
    check of alpha is, where that goes on, after `checks` that found a violation. `multiplier` is
    that of the sum while it is relaxed (relaxation.py), or None. `neglected` bounds what the solver
    left out of any entry of the gradient, `seconds_before` are those of earlier processes."""

    iterate: Iterate
    whole_tolerance: np.ndarray
    iterations_left: int
    n_iterations: np.ndarray
    report: TrainReport
    steps_done: int = 0
    neglected: float = 0.0
    has_begun: bool = False
    begun_with: np.ndarray | None = None
    level_alpha: np.ndarray | None = None
    sample: np.ndarray | None = None
    is_global: bool = True
    seconds_before: float = 0.0
    early: EarlyModel | None = None
    checked: Checked | None = None
    checks: int = 0
    multiplier: float | None = None

    def to_plain(self) -> tuple[dict, dict[str, np.ndarray]]:
        """(values for JSON, arrays by name), without the early model."""
        report = self.report
        values = {
            "steps_done": self.steps_done,
            "neglected": self.neglected,
            "checks": self.checks,
            "multiplier": self.multiplier,
            "is_global": self.is_global,
            "iterations_left": self.iterations_left,
            "has_begun": self.has_begun,
            "early_choice": report.early_choice and asdict(report.early_choice),
            "report": {name: getattr(report, name) for name in REPORTED},
            "levels": [asdict(level) for level in report.levels],
        }
        arrays = {
            "alpha": self.iterate.alpha,
            "gradient": self.iterate.gradient,
            "base": self.iterate.base,
            "known": self.iterate.known,
            "whole_tolerance": self.whole_tolerance,
            "n_iterations": self.n_iterations,
        }
        if self.begun_with is not None:
            arrays["begun_with"] = self.begun_with
        if self.level_alpha is not None:
            arrays["level_alpha"] = self.level_alpha
        if self.sample is not None:
            arrays["sample"] = self.sample
        if self.checked is not None:
            arrays["is_exact"] = self.checked.is_exact
            arrays["difference"] = self.checked.difference
        for number, support in enumerate(report.support_by_level):
            arrays[f"support_{number}"] = support
        return values, arrays

    def take_plain(
        self,
        values: dict,
        arrays: dict[str, np.ndarray],
        problem: BoxProblem,
        n_rows: int,
    ) -> None:
        """Become what `to_plain` gave, of a run on `n_rows` rows. Raises ValueError, KeyError,
        TypeError, AttributeError or OverflowError for what is not of a run of this problem."""
        iterate = Iterate(*(arrays[name] for name in ("alpha", "gradient", "base", "known")))
        _check_iterate(iterate, problem)
        if "is_exact" in arrays:
            self.checked = Checked(arrays["is_exact"], arrays["difference"])
            _check_checked(self.checked, problem)
        self.multiplier = _number(values.get("multiplier"), unknown=True)
        n_units = len(self.whole_tolerance)
        if self.multiplier is not None:
            if problem.n_sums != 1 or n_units != 1:
                raise ValueError("multiplier")
            n_units = self.report.n_groups
        _check_floats(arrays["whole_tolerance"], n_units, infinite=True)
        self.iterate, self.whole_tolerance = iterate, arrays["whole_tolerance"]
        self.steps_done = int(values["steps_done"])
        self.neglected = _number(values["neglected"])
        self.checks = int(values.get("checks", 0))
        n_iterations = arrays.get("n_iterations", self.n_iterations)
        _check_counts(n_iterations, len(self.n_iterations))
        self.n_iterations = n_iterations
        self.is_global = bool(values["is_global"])
        self.iterations_left = int(values["iterations_left"])
        self.has_begun = bool(values["has_begun"])
        self.report.early_choice = _choice(values["early_choice"])
        self.begun_with, self.level_alpha = arrays.get("begun_with"), arrays.get("level_alpha")
        self.sample = arrays.get("sample")
        if self.sample is not None:
            _check_numbers(self.sample, n_rows)
        if self.steps_done < 0 or self.checks < 0:
            raise ValueError("steps_done")
        if self.begun_with is not None:
            _check_numbers(self.begun_with, problem.size)
        if self.level_alpha is not None:
            _check_floats(self.level_alpha, len(self.level_alpha))
        values["report"].setdefault("values", self.report.values)
        for name in REPORTED:
            setattr(self.report, name, _as(getattr(self.report, name), values["report"][name]))
        self.seconds_before = self.report.seconds_train
        self.report.levels = [
            LevelReport(**{name: _number(value, unknown=True) for name, value in level.items()})
            for level in values["levels"]
        ]
        n_levels = range(len(self.report.levels))
        self.report.support_by_level = [arrays[f"support_{number}"] for number in n_levels]


def _number(value, *, unknown: bool = False):
    """The value, if it is a finite number, or None where that is `unknown`."""
    if value is None and unknown:
        return None
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not isfinite(value):
        raise ValueError("not a number")
    return value


def _choice(values: dict | None) -> EarlyChoice | None:
    """The early level that was found, if it is one."""
    if values is None:
        return None
    flags = {name: bool(values.pop(name)) for name in ("is_wrong", "is_test")}
    choice = EarlyChoice(
        **{name: _number(one, unknown=True) for name, one in values.items()}, **flags
    )
    if not all(isinstance(one, int) for one in (choice.level, choice.finest, choice.coarsest)):
        raise ValueError("early level")
    return choice


def _as(known, value):
    """The value, if it is a number, or a dict of numbers with the keys of what is known."""
    if not isinstance(known, dict):
        return _number(value)
    if value.keys() != known.keys():
        raise ValueError("keys")
    return {key: _number(one) for key, one in value.items()}


def _check_floats(values: np.ndarray, size: int, *, infinite: bool = False) -> None:
    if values.shape != (size,) or values.dtype != np.float64:
        raise ValueError("size")
    if np.any(np.isnan(values) if infinite else ~np.isfinite(values)):
        raise ValueError("values")


def _check_counts(counts: np.ndarray, size: int) -> None:
    if counts.shape != (size,) or counts.dtype != np.int64 or np.any(counts < 0):
        raise ValueError("counts")


def _check_numbers(numbers: np.ndarray, end: int) -> None:
    if numbers.dtype != np.int32 or np.any(np.diff(numbers) <= 0):
        raise ValueError("numbers do not ascend")
    if len(numbers) and not 0 <= numbers[0] <= numbers[-1] < end:
        raise ValueError("numbers out of range")


def _check_checked(checked: Checked, problem: BoxProblem) -> None:
    if checked.is_exact.shape != (problem.size,) or checked.is_exact.dtype != np.uint8:
        raise ValueError("what is checked")
    _check_floats(checked.difference, problem.size)


def _check_iterate(iterate: Iterate, problem: BoxProblem) -> None:
    for values in (iterate.alpha, iterate.gradient, iterate.base):
        _check_floats(values, problem.size)
    for alpha in (iterate.alpha, iterate.base):
        if np.any(alpha < problem.lower) or np.any(alpha > problem.upper):
            raise ValueError("alpha out of its bounds")
    if iterate.known.shape != (problem.size,) or iterate.known.dtype != np.uint8:
        raise ValueError("size of the iterate")
    if iterate.known.max(initial=0) > 2:
        raise ValueError("what is known of the iterate")
