"""Output of the commands: progress and status on stderr, LIBSVM's result lines on stdout."""

import json
import resource
import sys
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from dcsvm.cli.files import print_status
from dcsvm.data.files import write_beside
from dcsvm.problem.option_table import REGRESSIONS
from dcsvm.solving.report import ERROR_RATE, EarlyChoice, LevelReport, Progress, TrainReport

if TYPE_CHECKING:
    from dcsvm.solving.checkpoint import Checkpoint

MAX_PAIRS = 10  # 5 classes; more pairs are printed on one line


class TerminalProgress(Progress):
    """Progress on stderr: a line per phase, and a bar on a terminal; silent if `quiet`."""

    def __init__(self, quiet: bool):
        self.quiet = quiet
        self.bar: Any = None  # tqdm bar

    def plan(self, text: str) -> None:
        self.print_status(text)

    def begin(self, name: str, n_rows: int, unit: str = "row") -> None:
        if self.quiet or not sys.stderr.isatty():
            return
        from tqdm import tqdm

        self.bar = tqdm(total=n_rows, desc=name, unit=unit, leave=False, file=sys.stderr)

    def advance(
        self, rows_done: float, violation: float | None = None, n_active: int | None = None
    ) -> None:
        if self.bar is None:
            return
        if violation is not None:
            self.bar.set_postfix_str(f"violation {violation:.2g}, active {n_active}", refresh=False)
        self.bar.update(rows_done - self.bar.n)

    def end_level(self, report: LevelReport) -> None:
        self.print_status(
            f"level {report.level}: {report.n_clusters} clusters, "
            f"largest {report.largest_cluster}; "
            f"clustering {report.seconds_clustering:.2f} s, "
            f"training {report.seconds_training:.2f} s; "
            f"{report.n_sv} support vectors"
        )

    def end_choice(self, choice: EarlyChoice) -> None:
        assert choice.loss is not None and choice.standard_error is not None  # known at the end
        coarsest, finest = sorted((choice.coarsest, choice.finest))
        levels = "" if coarsest == finest else f" (searched {coarsest}-{finest})"
        rows = "test" if choice.on_test_rows else "LOO"
        if choice.metric == ERROR_RATE:
            error = f"{rows} error {100 * choice.loss:.2f} +- {100 * choice.standard_error:.2f} %"
        else:
            error = f"{rows} mean squared error {choice.loss:.6g} +- {choice.standard_error:.2g}"
        self.print_status(f"early level {choice.level}{levels}: {error} ({choice.n_rows} rows)")

    def end(self, name: str, seconds: float, n_sv: int | None = None) -> None:
        vectors = "" if n_sv is None else f"; {n_sv} support vectors"
        self.print_status(f"{name}: {seconds:.2f} s{vectors}")

    def clear(self) -> None:
        """Hide the bar until its next update, so that a line can be printed."""
        if self.bar is not None:
            self.bar.clear()

    def close(self) -> None:
        if self.bar is not None:
            self.bar.close()
            self.bar = None

    def print_status(self, line: str) -> None:
        """End the bar, and print a line unless quiet."""
        self.close()
        if not self.quiet:
            print_status(line)

    def resume(self, name: str) -> None:
        self.print_status(f"resuming from checkpoint: {name}")

    def warn(self, sentence: str) -> None:
        self.close()
        print_status(f"warning: {sentence}")


def say_result(
    report: TrainReport, print_line: Callable[[str], None], *, is_classifier: bool
) -> None:
    """Print the closing lines of svm-train, and the certificate on stderr.

    More than MAX_PAIRS pairs of classes are printed on one line.
    """
    lines = lines_of_pair if len(report.problems) <= MAX_PAIRS else line_of_pairs
    for line in lines(report):
        print_line(line)
    if is_classifier or not report.problems:
        print_line(f"Total nSV = {report.n_sv}")
    if report.stopped and not report.converged:
        return
    outcome = "converged: " if report.converged else ""
    time = f"{report.seconds_train:.2f} s with {report.threads} thread{'s'[: report.threads > 1]}"
    if report.violation is None:
        if report.converged:
            print_status(f"{outcome}each cluster to the tolerance; {time}")
        return
    gap = "stationary point (indefinite kernel, no gap)"
    if report.duality_gap is not None:
        gap = f"duality gap {report.duality_gap:.3g}"
    print_status(
        f"{outcome}violation {report.violation:.2g}, {gap}, "
        f"kernel error {report.kernel_error:.2g}; {time}"
    )


def lines_of_pair(report: TrainReport) -> Iterator[str]:
    """Yield svm-train's lines for each binary problem."""
    for problem in report.problems:
        if problem.parameter is not None:
            yield "{} = {:.6f}".format(*problem.parameter)
        yield f"obj = {objective_text(problem.objective)}, rho = {problem.rho:.6f}"
        yield f"nSV = {problem.n_sv}, nBSV = {problem.n_bsv}"


def line_of_pairs(report: TrainReport) -> Iterator[str]:
    """Yield one line for all pairs of classes."""
    ranges = []
    for name, counts in (("nSV", report.problems.n_sv), ("nBSV", report.problems.n_bsv)):
        ranges.append(f"{name} = {counts.min()} to {counts.max()}")
    yield (
        f"{len(report.problems)} pairs of classes (each in --report): "
        f"total obj = {objective_text(report.objective)}, {', '.join(ranges)}"
    )


def objective_text(objective: float | None) -> str:
    return "unknown" if objective is None else f"{objective:.6f}"


def say_not_converged(report: TrainReport, tolerance: float, gap: float | None) -> None:
    """Warn that training ended above the tolerance, or above the `gap` if given."""
    reached = ""
    if gap is not None and report.relative_gap is not None:
        reached = f": relative duality gap {report.relative_gap:.3g} > {gap:g}"
    elif report.violation is not None:
        reached = f": violation {report.violation:.3g} > {tolerance:g}"
    print_status(f"warning: not converged{reached}; {_usability(report)}")


def _usability(report: TrainReport) -> str:
    return "the model is usable" if report.usable else "the model may be far from the solution"


def say_stopped(
    report: TrainReport, time_limit: float | None, checkpoint: "Checkpoint | None"
) -> None:
    """Warn of a stop: the reason, the state of the model, and how to resume."""
    why = "interrupted" if time_limit is None else f"stopped at the time limit of {time_limit:g} s"
    missing = f"; missing: {', '.join(report.missing)}" if report.missing else ""
    resume = ""
    if checkpoint is not None and checkpoint.error is None:
        resume = f"; resume with --resume {checkpoint.folder}"
    print_status(f"warning: {why}, {state_of_solution(report)}{missing}{resume}")


def state_of_solution(report: TrainReport) -> str:
    """Describe a solution: converged or not, its violation and gap."""
    if report.converged:
        return "the model is converged"
    if report.violation is None:
        return "model of " + ("the last completed level" if report.levels else "completed clusters")
    if report.objective is None:
        state = f">= {report.violation:.3g}, {report.n_variables_checked} variables checked"
    else:
        gap = "" if report.duality_gap is None else f", duality gap {report.duality_gap:.3g}"
        state = f"{report.violation:.3g}{gap}"
    return f"not converged: violation {state}; {_usability(report)}"


def peak_rss_mb() -> float:
    """Return the peak memory of this program in MB; getrusage may include its parent's."""
    try:
        with open("/proc/self/status", encoding="ascii") as file:
            peak = next(int(line.split()[1]) for line in file if line.startswith("VmHWM:"))
    except (OSError, StopIteration):
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return round(peak * (1 if sys.platform == "darwin" else 1024) / 1e6, 1)


def write_report(path: str, values: dict[str, Any]) -> None:
    """Write values and the peak memory as one JSON object."""
    values["peak_rss_mb"] = peak_rss_mb()
    write_beside(path, [json.dumps(values, indent=1).encode(), b"\n"])


def quality_of_folds(svm_type: str, predicted: np.ndarray, labels: np.ndarray) -> list[str]:
    """Format svm-train's lines of a cross-validation."""
    quality = Quality(svm_type, np.empty(0))
    quality.add(predicted, labels)
    if svm_type in REGRESSIONS:
        error, correlation = quality.regression_errors()
        return [
            f"Cross Validation Mean squared error = {error:g}",
            f"Cross Validation Squared correlation coefficient = {correlation:g}",
        ]
    return [f"Cross Validation Accuracy = {100 * quality.n_correct / quality.n_rows:g}%"]


class Quality:
    """Quality of predictions, accumulated over pieces of a file.

    `known` are the labels of the model. The caller sets `n_features`.
    """

    def __init__(self, svm_type: str, known: np.ndarray):
        self.svm_type, self.known = svm_type, known
        self.n_rows = self.n_correct = self.n_features = 0
        self.has_known_label = False
        self.squared_error = 0.0
        self.mean, self.spread = np.zeros(2), np.zeros((2, 2))

    def add(self, predicted: np.ndarray, labels: np.ndarray) -> None:
        """Add at least one row; moments are merged as by Chan, Golub and LeVeque (1983)."""
        before, n = self.n_rows, len(predicted)
        self.n_rows += n
        if self.svm_type not in REGRESSIONS:
            self.n_correct += int(np.count_nonzero(predicted == labels))
            self.has_known_label |= bool(np.isin(labels, self.known).any())
            return
        self.squared_error += float(((predicted - labels) ** 2).sum())
        both = np.stack((predicted, labels))
        mean = both.mean(axis=1)
        deviation, shift = both - mean[:, None], mean - self.mean
        between = np.outer(shift, shift) * (before * n / self.n_rows)
        self.spread += deviation @ deviation.T + between
        self.mean += shift * (n / self.n_rows)

    def lines(self) -> list[str]:
        """Format svm-predict's lines; none without labels."""
        if self.n_rows == 0:
            return []
        if self.svm_type not in REGRESSIONS:
            correct, total = self.n_correct, self.n_rows
            return [f"Accuracy = {100 * correct / total:g}% ({correct}/{total}) (classification)"]
        error, correlation = self.regression_errors()
        return [
            f"Mean squared error = {error:g} (regression)",
            f"Squared correlation coefficient = {correlation:g} (regression)",
        ]

    def regression_errors(self) -> tuple[float, float]:
        """Return mean squared error and squared correlation, nan if predictions are constant."""
        (p, cross), (_, y) = self.spread
        correlation = float(cross**2 / (p * y)) if p * y > 0 else float("nan")
        return self.squared_error / self.n_rows, correlation
