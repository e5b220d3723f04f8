"""Read the data sets of a command; print warnings, progress on stderr, and reports as JSON."""

from __future__ import annotations

import json
import sys
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from dcsvm import system
from dcsvm.cli.options import LEARN, DataJob, TrainingJob, print_status
from dcsvm.data.dataset import Dataset
from dcsvm.data.files import write_beside
from dcsvm.model.reader import load_model
from dcsvm.problem.options import TrainOptions
from dcsvm.training.report import Progress

if TYPE_CHECKING:
    from dcsvm.cli.easy import EasyJob


class TerminalProgress(Progress):
    """Progress on stderr: a line per phase, and a bar on a terminal; silent if `quiet`."""

    def __init__(self, quiet: bool):
        self.quiet = quiet
        self.bar: Any = None  # tqdm bar
        self.step = ""  # of a search
        self.caveats: list[str] = []  # about the model
        self.stop_sentence: Callable[[str], str] | None = None

    def explain_stops(self, sentence_of: Callable[[str], str]) -> None:
        """Make the warning of a stopped run from the state of its model by `sentence_of`."""
        self.stop_sentence = sentence_of

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

    def trial(self, step: str, n_trials: int, best: str) -> None:
        if step != self.step:
            self.step = step
            self.begin(step, 8, unit="trial")
        self.advance(n_trials)
        if self.bar is not None:
            self.bar.set_postfix_str(best)

    def clear(self) -> None:
        """Hide the bar until its next update, so that a line can be printed."""
        if self.bar is not None:
            self.bar.clear()

    def close(self) -> None:
        if self.bar is not None:
            self.bar.close()
            self.bar = None

    def note(self, text: str) -> None:
        """End the bar, and print a line unless quiet."""
        self.close()
        if not self.quiet:
            print_status(text)

    def warn(self, sentence: str) -> None:
        self.close()
        print_status(f"warning: {sentence}")

    def caveat(self, report: Any, sentence: str) -> None:
        if report.stopped and self.stop_sentence is not None:
            sentence = self.stop_sentence(report.state)
        self.caveats.append(sentence)

    def finish(self) -> None:
        """Print the warnings about the model, after the results."""
        for sentence in self.caveats:
            self.warn(sentence)


def peak_rss_mb() -> float | None:
    """Return the peak memory of this program in MB, None if it is not known."""
    peak = system.peak_memory()
    return None if peak is None else round(peak / 1e6, 1)


def write_report(path: str, values: dict[str, Any]) -> None:
    """Write values and the peak memory as one JSON object."""
    values["peak_rss_mb"] = peak_rss_mb()
    write_beside(path, [json.dumps(values, indent=1).encode(), b"\n"])


def read_training_set(
    job: TrainingJob | EasyJob,
    options: TrainOptions,
    *,
    is_lazy: bool = False,
    init_model: Any = None,
) -> Dataset:
    """Read and scale a training set; print its description and warnings about it.

    Unless lazy, as a search chooses a scaling, columns are shifted; see Dataset.shifted.
    """
    with telling_warnings(quiet=job.quiet):
        data = Dataset.read(
            job.training_set_file, scale=job.scale, threads=options.threads, drop=job.drop,
            category=job.category, weight=job.weight,
            is_labelled=options.svm_type != "one_class",
            kernel_values=options.kernel_type.is_precomputed, is_lazy=is_lazy,
            **job.reading,
        )  # fmt: skip
    if not is_lazy:
        data = data.shifted(options.kernel_type, TerminalProgress(job.quiet).warn, init_model)
    if data.description and not job.quiet:
        print_status(data.description)
    return data


def print_warnings(data: Dataset, options: TrainOptions) -> None:
    """Print what is suspicious in a training set."""
    for sentence in data.warnings(has_classes=not options.is_regression):
        print_status(f"warning: {sentence}")


def read_other_set(path: str, job: DataJob, like: Any, **keywords: Any) -> Dataset:
    """Read rows to test or to fit, encoded and scaled as those of a data set or a model."""
    with telling_warnings(quiet=job.quiet):
        return Dataset.read(path, like=like, **job.reading, **keywords)


def apply_feature_weights(
    job: DataJob, data: Dataset, options: TrainOptions
) -> tuple[Dataset, str | None]:
    """Return the data set, with the feature weights of a model file, and LEARN or None."""
    if job.feature_weights in (None, LEARN):
        return data, job.feature_weights
    model = load_model(job.feature_weights, threads=options.threads)
    return data.weighted_as(model, job.feature_weights), None


@contextmanager
def telling_warnings(*, quiet: bool) -> Iterator[None]:
    """Print Python's warnings as lines of the command at the end, unless quiet."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        yield
    for warning in [] if quiet else caught:
        print_status(f"warning: {warning.message}")
