"""Progress of a training run while it works, also as a bar, and its TrainReport at the end."""

from __future__ import annotations

import sys
import time
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field, is_dataclass, replace
from typing import Any, overload

import numpy as np

from dcsvm import _core
from dcsvm.model.metrics import table_html

EVALUATION_COUNTS = ("kernel_evaluations", "pairs_skipped", "rows_computed", "rows_reused",
                     "iterations", "outer_steps", "newton_steps", "rebuilds")  # fmt: skip
METRICS = ERROR_RATE, SQUARED_ERROR = "error_rate", "squared_error"
MAX_PAIRS = 10  # 5 classes; more pairs are printed on one line
STEPS = ("levels", "refine", "gradient", "conquer", "check")
# phases of a run, and how threads spend them
PHASES = ("prepare", "clusters", "levels", "refine", "gradient", "conquer", "check", "model")
USES_OF_THREADS = ("work", "waits", "serial")
PHASE_SECONDS = ("tiles", "inner", "newton", "selection", "rebuild")
# fields of a report in JSON, before and after the seconds
REPORTED = (
    ("objective", "objective_error", "violation", "violation_scale", "duality_gap", "relative_gap",
     "kernel_error", "n_duplicates", "n_negligible", "n_row_components", "problems", "n_sv",
     "n_bsv", "converged", "usable", "stopped", "missing", "n_variables_checked", "threads",
     "gamma"),
    ("levels", "early_choice", "refine_seconds", "conquer_seconds", "evaluations_by_phase",
     "seconds_by_phase", "threads_by_phase", "traffic"),
)  # fmt: skip


@dataclass
class LevelReport:
    """Report of one level.

    `objective` is the sum over its clusters, `overlap` the mean number of clusters per row.
    """

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

    def __str__(self) -> str:
        return (
            f"level {self.level}: {self.n_clusters} clusters, largest {self.largest_cluster}; "
            f"clustering {self.seconds_clustering:.2f} s, training {self.seconds_training:.2f} s; "
            f"{self.n_sv} support vectors"
        )


@dataclass
class EarlyChoice:
    """Choice of the early level.

    Attributes
    ----------
    level : the chosen level.
    finest, coarsest : first and last level of the search.
    loss : mean of the `metric` over `n_rows`; None if unknown.
    standard_error : standard error of the loss.
    metric : "error_rate" or "squared_error".
    on_test_rows : whether the rows are test rows, not rows of the leave-one-out estimate.
    """

    level: int
    finest: int
    coarsest: int
    loss: float | None
    standard_error: float | None
    n_rows: int
    metric: str
    on_test_rows: bool = False

    def __str__(self) -> str:
        assert self.loss is not None and self.standard_error is not None  # known at the end
        coarsest, finest = sorted((self.coarsest, self.finest))
        levels = "" if coarsest == finest else f" (searched {coarsest}-{finest})"
        rows = "test" if self.on_test_rows else "LOO"
        if self.metric == ERROR_RATE:
            error = f"{rows} error {100 * self.loss:.2f} +- {100 * self.standard_error:.2f} %"
        else:
            error = f"{rows} mean squared error {self.loss:.6g} +- {self.standard_error:.2g}"
        return f"early level {self.level}{levels}: {error} ({self.n_rows} rows)"


@dataclass
class ProblemReport:
    """Solution of one binary problem of a task, with the values that svm-train prints.

    `parameter` is the parameter that LIBSVM prints too: ("nu", value) for C-SVC with equal bounds
    and epsilon-SVR, ("C", value) for nu-SVC, ("epsilon", value) for nu-SVR. `iterations` counts
    coordinate updates, including the updates at levels.
    """

    objective: float | None
    rho: float
    n_sv: int
    n_bsv: int
    parameter: tuple[str, float] | None = None
    iterations: int = 0

    def lines(self) -> Iterator[str]:
        """Yield the lines of svm-train."""
        if self.parameter is not None:
            yield "{} = {:.6f}".format(*self.parameter)
        yield f"obj = {_objective_text(self.objective)}, rho = {self.rho:.6f}"
        yield f"nSV = {self.n_sv}, nBSV = {self.n_bsv}"


@dataclass(frozen=True, eq=False)
class ProblemReports(Sequence[ProblemReport]):
    """Reports of all problems of a task, with an array (n_problems,) for each field.

    An unknown objective or parameter is NaN. All problems have the same `parameter_name`.
    """

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
    """Work of one worker in a distributed run."""

    tasks: int = 0
    seconds_computing: float = 0.0
    seconds_moving: float = 0.0


@dataclass
class Traffic:
    """Traffic of a run on several workers.

    Attributes
    ----------
    bytes_sent, bytes_received : bytes sent to the workers, and received from them.
    bytes_moved : upper bound on the bytes of rows moved between workers.
    tasks, rounds : numbers of tasks and of chunking rounds.
    workers : work of each worker, by its address.
    """

    bytes_sent: int = 0
    bytes_received: int = 0
    bytes_moved: int = 0
    tasks: int = 0
    rounds: int = 0
    workers: dict[str, WorkerTraffic] = field(default_factory=dict)


@dataclass
class Costs:
    """Cost of a run.

    Attributes
    ----------
    counts : counters of the solver.
    evaluations_by_phase : kernel evaluations of each step in STEPS; the check uses float64.
    seconds_by_phase : seconds of the solver's phases.
    threads_by_phase : seconds of each of PHASES: `work` and `waits` of threads in parallel loops,
        summed over the threads, and `serial`, outside of loops.

    The other fields are seconds, in total and of single steps.
    """

    counts: dict[str, int] = field(default_factory=lambda: dict.fromkeys(EVALUATION_COUNTS, 0))
    evaluations_by_phase: dict[str, int] = field(default_factory=lambda: dict.fromkeys(STEPS, 0))
    seconds_by_phase: dict[str, float] = field(
        default_factory=lambda: dict.fromkeys(PHASE_SECONDS, 0.0)
    )
    threads_by_phase: dict[str, dict[str, float]] = field(
        default_factory=lambda: {name: dict.fromkeys(USES_OF_THREADS, 0.0) for name in PHASES}
    )
    seconds_train: float = 0.0
    seconds_verify: float = 0.0
    refine_seconds: float = 0.0
    conquer_seconds: float = 0.0

    def add(self, solved: np.ndarray) -> None:
        """Add the core's reports of solved parts (SOLVE_REPORT)."""
        for name in EVALUATION_COUNTS:
            self.counts[name] += int(solved[name].sum())
        for name in PHASE_SECONDS:
            self.seconds_by_phase[name] += float(solved[f"seconds_{name}"].sum())

    def count_values_of(self, step: str) -> None:
        """Count unassigned kernel evaluations as evaluations of `step`."""
        known = sum(n for name, n in self.evaluations_by_phase.items() if name != "check")
        self.evaluations_by_phase[step] += self.counts["kernel_evaluations"] - known

    def end_phase(self, phase: str) -> None:
        """Add the use of threads since this thread's last lap to a phase."""
        for name, seconds in zip(USES_OF_THREADS, _core.next_lap(), strict=True):
            self.threads_by_phase[phase][name] += seconds

    def include(self, other: Costs) -> None:
        """Add the counts of another solver and the seconds of its phases."""
        for phase, seconds in other.threads_by_phase.items():
            for name in USES_OF_THREADS:
                self.threads_by_phase[phase][name] += seconds[name]
        for name in EVALUATION_COUNTS:
            self.counts[name] += other.counts[name]
        for name in PHASE_SECONDS:
            self.seconds_by_phase[name] += other.seconds_by_phase[name]


@dataclass(kw_only=True, repr=False)
class TrainReport(Costs):
    """Report of a training run; the manual has a page on its fields.

    `violation` is in multiples of `violation_scale`, as is the tolerance. `missing` lists requested
    results that a stopped run lacks. The model is `usable` if its violation is smaller than the
    scale of decision values. `gamma` is the gamma of the kernel, or None. `traffic` is None for
    rows in this process. `selection` describes the search of `dcsvm.easy`, `options` are the
    TrainOptions that it chose; both are None without one.
    """

    objective: float | None = None
    objective_error: float | None = None
    problems: ProblemReports = field(default_factory=ProblemReports.none)
    violation: float | None = None
    violation_scale: float = 1.0
    duality_gap: float | None = None
    relative_gap: float | None = None
    kernel_error: float | None = None
    n_duplicates: int = 0
    n_negligible: int = 0
    n_row_components: int = 1
    n_sv: int = 0
    n_bsv: int = 0
    converged: bool = False
    usable: bool = True
    stopped: bool = False
    missing: list[str] = field(default_factory=list)
    n_variables_checked: int | None = None
    threads: int = 1
    gamma: float | None = None
    levels: list[LevelReport] = field(default_factory=list)
    early_choice: EarlyChoice | None = None
    support_by_level: list[np.ndarray] = field(default_factory=list, repr=False)
    traffic: Traffic | None = None
    selection: dict[str, Any] | None = None
    options: Any = None

    def set_selection(self, selection: dict[str, Any], options: Any) -> None:
        """Add what a search has chosen: its description and the TrainOptions; gamma is a number."""
        self.selection, self.options = selection, replace(options, gamma=self.gamma)

    def caveat(self, tolerance: float, gap: float | None = None) -> str | None:
        """Return a warning if the run was stopped, or missed the tolerance or the `gap`."""
        if self.stopped:
            return f"stopped, {self.state}"
        if self.converged:
            return None
        reached = ""
        if gap is not None and self.relative_gap is not None:
            reached = f": relative duality gap {self.relative_gap:.3g} > {gap:g}"
        elif self.violation is not None and self.violation > tolerance:
            reached = f": violation {self.violation:.3g} > {tolerance:g}"
        return f"not converged{reached}; {self.usability}"

    def as_dict(self) -> dict[str, Any]:
        """Return the report as plain values for JSON; commands add their own fields."""
        before, after = ({name: _plain(getattr(self, name)) for name in own} for own in REPORTED)
        seconds = {"train": self.seconds_train, "verify": self.seconds_verify}
        return {**before, "seconds": seconds, **after, **self.counts}

    def lines(self, *, is_classifier: bool) -> Iterator[str]:
        """Yield the closing lines of svm-train; more than MAX_PAIRS pairs of classes share one."""
        if len(self.problems) <= MAX_PAIRS:
            for problem in self.problems:
                yield from problem.lines()
        else:
            ranges = [
                f"{name} = {counts.min()} to {counts.max()}"
                for name, counts in (("nSV", self.problems.n_sv), ("nBSV", self.problems.n_bsv))
            ]
            yield (
                f"{len(self.problems)} pairs of classes (each in --report): "
                f"total obj = {_objective_text(self.objective)}, {', '.join(ranges)}"
            )
        if is_classifier or not self.problems:
            yield f"Total nSV = {self.n_sv}"

    @property
    def outcome(self) -> str | None:
        """The certificate in a line; None for a stopped run, or without one."""
        if not self.converged and (self.stopped or self.violation is None):
            return None
        outcome = "converged: " if self.converged else ""
        time = f"{self.seconds_train:.2f} s with {self.threads} thread{'s'[: self.threads > 1]}"
        if self.violation is None:
            return f"{outcome}each cluster to the tolerance; {time}"
        gap = "stationary point (indefinite kernel, no gap)"
        if self.duality_gap is not None:
            gap = f"duality gap {self.duality_gap:.3g}"
            if self.relative_gap is not None:
                gap += f" ({self.relative_gap:.1e} of the objective)"
        return (
            f"{outcome}violation {self.violation:.2g}, {gap}, "
            f"kernel error {self.kernel_error:.2g}; {time}"
        )

    @property
    def state(self) -> str:
        """The solution of a stopped run: converged or not, its violation, what is missing."""
        missing = f"; missing: {', '.join(self.missing)}" if self.missing else ""
        if self.converged:
            return f"the model is converged{missing}"
        if self.violation is None:
            done = "the last completed level" if self.levels else "completed clusters"
            return f"model of {done}{missing}"
        if self.objective is None:
            state = f">= {self.violation:.3g}, {self.n_variables_checked} variables checked"
        else:
            gap = "" if self.duality_gap is None else f", duality gap {self.duality_gap:.3g}"
            state = f"{self.violation:.3g}{gap}"
        return f"not converged: violation {state}; {self.usability}{missing}"

    @property
    def usability(self) -> str:
        """Words on the model of a solution that did not converge."""
        return "the model is usable" if self.usable else "the model may be far from the solution"

    @property
    def kernel_evaluations(self) -> int:
        return self.counts["kernel_evaluations"]

    def __repr__(self) -> str:
        described = ", ".join(f"{name} {value}" for name, value in self._described())
        return f"TrainReport({described})"

    def _repr_html_(self) -> str:
        return table_html("dcsvm.TrainReport", self._described())

    def _described(self) -> Iterator[tuple[str, str]]:
        """Yield names and values of the main results."""
        yield "converged", str(self.converged)
        if self.violation is not None:
            yield "violation", f"{self.violation:.3g}"
        if self.duality_gap is not None:
            yield "duality gap", f"{self.duality_gap:.3g}"
        yield "support vectors", str(self.n_sv)
        yield "kernel evaluations", f"{self.kernel_evaluations:.3g}"
        yield "seconds", f"{self.seconds_train:.2f}"


class Progress:
    """Receiver of progress events; the default ignores all but warnings.

    The events that can be told in one line call `note` with this line by default.
    """

    def note(self, text: str) -> None:
        """Receive a line."""

    def plan(self, text: str) -> None:
        """Receive the description of the run, before it starts."""
        self.note(text)

    def resume(self, name: str) -> None:
        """Receive the name of the phase in which training resumes from a checkpoint."""
        self.note(f"resuming from checkpoint: {name}")

    def warn(self, sentence: str) -> None:
        """Receive a failure that does not end training; the default issues a Python warning."""
        warnings.warn(sentence, stacklevel=2)

    def caveat(self, report: TrainReport, sentence: str) -> None:  # noqa: ARG002 (for commands)
        """Receive a warning about the model of a report; the default calls `warn`."""
        self.warn(sentence)

    def begin(self, name: str, n_rows: int) -> None:
        """Receive the start of a phase ("level 3", "refine", "conquer") and its number of rows.

        Some phases count variables instead of rows.
        """

    def advance(
        self, rows_done: int, violation: float | None = None, n_active: int | None = None
    ) -> None:
        """Receive the number of rows done, the KKT violation and the number of active variables."""

    def end_level(self, report: LevelReport) -> None:
        """Receive the report of a finished level."""
        self.note(str(report))

    def end_choice(self, choice: EarlyChoice) -> None:
        """Receive the choice of the early level."""
        self.note(str(choice))

    def trial(self, step: str, n_trials: int, best: str) -> None:
        """Receive the end of a trial of a search: the trials of the step, and the best result."""

    def end(self, name: str, seconds: float, n_sv: int | None = None) -> None:
        """Receive the end of a phase other than a level.

        `n_sv` is the number of support vectors if it changed, else None.
        """
        vectors = "" if n_sv is None else f"; {n_sv} support vectors"
        self.note(f"{name}: {seconds:.2f} s{vectors}")


class PartOfProgress(Progress):
    """Progress of phases inside one phase of another Progress.

    It does not pass on names. Its `n_phases` phases together count as `n_rows` rows of the outer
    phase, after the `n_done` rows before.
    """

    def __init__(self, whole: Progress, n_phases: int, n_done: int, n_rows: int):
        self.whole, self.n_phases = whole, n_phases
        self.n_done, self.n_rows = n_done, n_rows
        self.phase, self.phase_rows = -1, 1

    def warn(self, sentence: str) -> None:
        self.whole.warn(sentence)

    def begin(self, name: str, n_rows: int) -> None:  # noqa: ARG002  # names are not passed on
        self.phase, self.phase_rows = self.phase + 1, max(n_rows, 1)

    def advance(
        self, rows_done: int, violation: float | None = None, n_active: int | None = None
    ) -> None:
        done = (self.phase + min(rows_done / self.phase_rows, 1)) / self.n_phases
        self.whole.advance(self.n_done + int(done * self.n_rows), violation, n_active)


def _objective_text(objective: float | None) -> str:
    return "unknown" if objective is None else f"{objective:.6f}"


def _plain(value: Any) -> Any:
    if isinstance(value, (list, ProblemReports)):
        return [_plain(one) for one in value]
    return asdict(value) if is_dataclass(value) and not isinstance(value, type) else value


DELAY = 2.0  # seconds before the first bar appears


class BarProgress(Progress):
    """A bar of tqdm.auto for each phase, once training takes over DELAY seconds."""

    def __init__(self) -> None:
        self.start = time.perf_counter()
        self.bar: Any = None  # tqdm bar

    def begin(self, name: str, n_rows: int) -> None:
        from tqdm.auto import tqdm

        self.close()
        left = max(DELAY - (time.perf_counter() - self.start), 0.0)
        self.bar = tqdm(total=n_rows, desc=name, unit="row", leave=False, delay=left)

    def advance(
        self, rows_done: float, violation: float | None = None, n_active: int | None = None
    ) -> None:
        if self.bar is not None:
            self.bar.update(rows_done - self.bar.n)

    def note(self, text: str) -> None:  # noqa: ARG002 (only the bar is shown)
        self.close()

    def close(self) -> None:
        if self.bar is not None:
            self.bar.close()
            self.bar = None


def default_progress() -> Progress:
    """Return a bar if someone can see it: in a notebook or on a terminal."""
    is_notebook = "ipykernel" in sys.modules
    is_terminal = sys.stderr is not None and sys.stderr.isatty()
    return BarProgress() if is_notebook or is_terminal else Progress()
