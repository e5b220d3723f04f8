"""What a training run tells: its Progress while it works, and a TrainReport of what it did."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, is_dataclass
from typing import Any, overload

import numpy as np

EVALUATION_COUNTS = ("kernel_evaluations", "pairs_skipped", "rows_computed", "rows_reused",
                     "iterations", "outer_steps", "newton_steps", "rebuilds")  # fmt: skip
STEPS = ("levels", "refine", "gradient", "conquer", "check")
PHASE_SECONDS = ("tiles", "inner", "newton", "selection", "rebuild")
# what JSON has of a report, before the seconds and after them
REPORTED = (
    ("objective", "objective_error", "violation", "duality_gap", "relative_gap", "kernel_error",
     "n_merged", "n_negligible", "n_groups", "problems", "n_sv", "n_bsv", "converged", "usable",
     "stopped", "missing", "n_checked", "threads"),
    ("levels", "early_choice", "refine_seconds", "conquer_seconds", "values", "phases", "traffic"),
)  # fmt: skip


@dataclass
class LevelReport:
    """What one level did; `objective` is the sum over its clusters, `overlap` in how many clusters
    a row is on average."""

    level: int
    n_clusters: int
    largest_cluster: int
    seconds_clustering: float
    seconds_training: float
    n_sv: int
    objective: float
    kernel_evaluations: int
    pairs_skipped: int
    overlap: float = 1.0


@dataclass
class EarlyChoice:
    """Which of the levels `finest` to `coarsest` makes the early model: `loss` is the mean over
    `n_rows` rows left out, or test rows where it `is_test`: the part of them that `is_wrong`, or
    the squared error of a regression; `error` is its standard error. None until it is known."""

    level: int
    finest: int
    coarsest: int
    loss: float | None
    error: float | None
    n_rows: int
    is_wrong: bool
    is_test: bool = False


@dataclass
class ProblemReport:
    """The solution of one of the problems of a task (one against one), as svm-train states it.

    `parameter` is what LIBSVM says beside it: ("nu", value) for C-SVC with equal bounds and
    epsilon-SVR, ("C", value) for nu-SVC, ("epsilon", value) for nu-SVR. `iterations` are its
    coordinate updates, of the levels too.
    """

    objective: float | None
    rho: float
    n_sv: int
    n_bsv: int
    parameter: tuple[str, float] | None = None
    iterations: int = 0


@dataclass(eq=False)
class ProblemReports(Sequence[ProblemReport]):
    """Reports of all problems of a task, an array (n_problems,) for each of their fields; NaN is an
    objective or a parameter that is not known. `parameter_name` is the same for all."""

    objective: np.ndarray
    rho: np.ndarray
    n_sv: np.ndarray
    n_bsv: np.ndarray
    parameter_name: str
    parameter: np.ndarray
    iterations: np.ndarray

    @staticmethod
    def none() -> ProblemReports:
        empty, none = np.zeros(0), np.zeros(0, np.int64)
        return ProblemReports(empty, empty, none, none, "", empty, none)

    def __len__(self) -> int:
        return len(self.rho)

    @overload
    def __getitem__(self, number: int) -> ProblemReport: ...

    @overload
    def __getitem__(self, number: slice) -> list[ProblemReport]: ...

    def __getitem__(self, number: int | slice) -> ProblemReport | list[ProblemReport]:
        if isinstance(number, slice):
            return [self[k] for k in range(len(self))[number]]
        objective, parameter = float(self.objective[number]), float(self.parameter[number])
        return ProblemReport(
            objective=None if np.isnan(objective) else objective,
            rho=float(self.rho[number]),
            n_sv=int(self.n_sv[number]),
            n_bsv=int(self.n_bsv[number]),
            parameter=None if np.isnan(parameter) else (self.parameter_name, parameter),
            iterations=int(self.iterations[number]),
        )


@dataclass
class WorkerTraffic:
    """What a worker has done of a run on several."""

    tasks: int = 0
    seconds_computing: float = 0.0
    seconds_moving: float = 0.0


@dataclass
class Traffic:
    """What a run on several workers moved: bytes `sent` to them and `received` by the client, of
    rows `moved` between them at most; `tasks` and `rounds` of active sets there were; `workers` by
    their addresses."""

    sent: int = 0
    received: int = 0
    moved: int = 0
    tasks: int = 0
    rounds: int = 0
    workers: dict[str, WorkerTraffic] = field(default_factory=dict)


@dataclass
class Costs:
    """What a run has cost: `counts` of the solver, kernel `values` of each of STEPS, those of the
    check in float64, and seconds: of the solver's `phases`, of steps, and in all."""

    counts: dict[str, int] = field(default_factory=lambda: dict.fromkeys(EVALUATION_COUNTS, 0))
    values: dict[str, int] = field(default_factory=lambda: dict.fromkeys(STEPS, 0))
    phases: dict[str, float] = field(default_factory=lambda: dict.fromkeys(PHASE_SECONDS, 0.0))
    seconds_train: float = 0.0
    seconds_verify: float = 0.0
    refine_seconds: float = 0.0
    conquer_seconds: float = 0.0

    def add(self, solved: np.ndarray) -> None:
        """Count what the core reports of solved parts (SOLVE_REPORT)."""
        for name in EVALUATION_COUNTS:
            self.counts[name] += int(solved[name].sum())
        for name in PHASE_SECONDS:
            self.phases[name] += float(solved[f"seconds_{name}"].sum())

    def count_values_of(self, step: str) -> None:
        """Count the kernel values that are of no step yet."""
        known = sum(n for name, n in self.values.items() if name != "check")
        self.values[step] += self.counts["kernel_evaluations"] - known

    def include(self, other: Costs) -> None:
        """Count the work of another solver as work of this one."""
        for name in EVALUATION_COUNTS:
            self.counts[name] += other.counts[name]
        for name in PHASE_SECONDS:
            self.phases[name] += other.phases[name]


@dataclass(kw_only=True)
class TrainReport(Costs):
    """What a training run did and what its answer is worth; the manual's page on the report has
    the fields. `missing` lists what was asked for beside the solution and not done when the run
    was stopped. It is `usable` where the violation is smaller than what decision values are
    compared with. `traffic` is that of workers, where there were any."""

    objective: float | None = None
    objective_error: float | None = None
    problems: ProblemReports = field(default_factory=ProblemReports.none)
    violation: float | None = None
    duality_gap: float | None = None
    relative_gap: float | None = None
    kernel_error: float | None = None
    n_merged: int = 0
    n_negligible: int = 0
    n_groups: int = 1
    n_sv: int = 0
    n_bsv: int = 0
    converged: bool = False
    usable: bool = True
    stopped: bool = False
    missing: list[str] = field(default_factory=list)
    n_checked: int | None = None
    threads: int = 1
    levels: list[LevelReport] = field(default_factory=list)
    early_choice: EarlyChoice | None = None
    support_by_level: list[np.ndarray] = field(default_factory=list, repr=False)
    traffic: Traffic | None = None

    @property
    def kernel_evaluations(self) -> int:
        return self.counts["kernel_evaluations"]


class Progress:
    """Told what happens; the default ignores all but warnings."""

    def plan(self, text: str) -> None:
        """What will be done, in one sentence, before it starts."""

    def resume(self, name: str) -> None:
        """Training goes on from a checkpoint, in this phase."""

    def warn(self, sentence: str) -> None:
        """A failure that does not end training; by default it becomes a Python warning."""
        warnings.warn(sentence, stacklevel=2)

    def begin(self, name: str, n_rows: int) -> None:
        """A phase of n_rows rows or variables starts: "level 3", "refine", "conquer"."""

    def advance(
        self, rows_done: int, violation: float | None = None, n_active: int | None = None
    ) -> None:
        """Rows that are done so far, and where the solver at work is."""

    def end_level(self, report: LevelReport) -> None:
        """A level is done."""

    def end_choice(self, choice: EarlyChoice) -> None:
        """The early level is found."""

    def end(self, name: str, seconds: float, n_sv: int | None = None) -> None:
        """A phase other than a level is done; `n_sv` rows are support vectors, where that may have
        changed."""


class PartOfProgress(Progress):
    """Some of `n_phases` phases inside one phase of another Progress: passes on no names, but that
    `n_done` and then more and more of its next `n_rows` rows are done with."""

    def __init__(self, whole: Progress, n_phases: int, n_done: int, n_rows: int):
        self.whole, self.n_phases = whole, n_phases
        self.n_done, self.n_rows = n_done, n_rows
        self.phase, self.phase_rows = -1, 1

    def warn(self, sentence: str) -> None:
        self.whole.warn(sentence)

    def begin(self, name: str, n_rows: int) -> None:
        self.phase, self.phase_rows = self.phase + 1, max(n_rows, 1)

    def advance(
        self, rows_done: int, violation: float | None = None, n_active: int | None = None
    ) -> None:
        done = (self.phase + min(rows_done / self.phase_rows, 1)) / self.n_phases
        self.whole.advance(self.n_done + int(done * self.n_rows), violation, n_active)


def report_dict(report: TrainReport) -> dict:
    """The report as plain values for JSON, without what only the command knows."""
    before, after = ({name: _plain(getattr(report, name)) for name in own} for own in REPORTED)
    seconds = {"train": report.seconds_train, "verify": report.seconds_verify}
    return {**before, "seconds": seconds, **after, **report.counts}


def _plain(value: Any) -> Any:
    if isinstance(value, (list, ProblemReports)):
        return [_plain(one) for one in value]
    return asdict(value) if is_dataclass(value) and not isinstance(value, type) else value
