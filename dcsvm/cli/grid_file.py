"""Implementation of dcsvm-grid: read, score the settings, train the best one."""

import math
import re
import time
from contextlib import closing
from dataclasses import replace
from typing import Any, TextIO

import numpy as np

from dcsvm._core import Stop, Stopped
from dcsvm.cli.files import print_result, print_status
from dcsvm.cli.grid_picture import check_can_draw, save_picture
from dcsvm.cli.guard import FAILED, NOT_CONVERGED, Interrupts, status_of
from dcsvm.cli.job_data import model_for_file, read_test_set, read_training_set
from dcsvm.cli.jobs import GridJob
from dcsvm.cli.report import TerminalProgress, say_not_converged, write_report
from dcsvm.data.dataset import Dataset
from dcsvm.data.files import DataError, naming, read_text, write_beside
from dcsvm.data.rows import Rows
from dcsvm.machine import usable_threads
from dcsvm.model.metrics import DEFINITIONS
from dcsvm.problem.data_gamma import RowStatistics, median_unit, with_number
from dcsvm.problem.option_table import CLASSIFIERS, MEDIAN, checked_metric
from dcsvm.problem.options import TrainOptions
from dcsvm.selection.grid_search import with_test_rows
from dcsvm.solving.checkpoint import RunControl
from dcsvm.solving.report import report_dict
from dcsvm.training.setting_search import Search, fold_of_rows
from dcsvm.training.settings import Grid, Score, Setting, best_of
from dcsvm.training.train import train_rows


def grid_file(job: GridJob, options: TrainOptions) -> int:
    """Run a grid job: score the grid, train the best setting; return the exit status."""
    options = replace(options, threads=usable_threads(options.threads))
    if job.png_file is not None:
        check_can_draw()
    stop, start = Stop(job.time_limit), time.perf_counter()
    data, rows, labels, fold = read_rows(job, options)
    read = time.perf_counter()
    statistics = RowStatistics.of(data.rows, 1)
    options, unit = with_number(options, statistics), 1.0
    if job.gamma_unit == MEDIAN:
        unit = median_unit(options, statistics)
    grid = job.grid(options).in_gamma_unit(unit)
    searched = {"C": job.log2c, "gamma": grid.gammas[0] is not None, "epsilon": job.log2p}
    names = [name for name, is_searched in searched.items() if is_searched]
    lines = GridLines(names, options, int(np.count_nonzero(fold >= 0)), unit, job.metric)
    known = [] if job.resume_file is None else lines.read(job.resume_file, grid)
    with Interrupts(stop) as interrupts, closing(Outputs(job, lines, known, grid)) as outputs:
        weights = data.sample_weight
        if weights is not None:  # test rows count once
            weights = np.append(weights, np.ones(len(labels) - len(weights)))
        search = Search(
            rows, labels, fold, options, sample_weight=weights, every=job.every,
            metric=job.metric, stop=stop, tell=outputs.advance,
        )  # fmt: skip
        is_stopped = outputs.follow(search, grid, known)
    end_of_search = time.perf_counter()
    best = best_of(outputs.scores)
    if best is None:
        print_status("error: stopped before any setting was scored")
        return status_of(interrupts.received, NOT_CONVERGED)
    if job.png_file is not None:
        title = job.training_set_file
        save_picture(job.png_file, outputs.scores, title=title, metric=lines.metric)
    say_caveats(outputs.scores, best, grid, is_stopped=is_stopped)
    print_result(lines.last(best))
    seconds = {"read": read - start, "search": end_of_search - read}
    training, status = None, 0
    if job.model_file is not None and not is_stopped:
        del search, rows, labels, fold  # frees memory for training
        best_options = best.setting.options(options)
        training, status = train_best(job, job.model_file, best_options, data)
        seconds["train"] = time.perf_counter() - end_of_search
    seconds["total"] = time.perf_counter() - start
    if job.report_file is not None:
        settings = [as_dict(score) for score in outputs.scores]
        values = {"best": as_dict(best), "settings": settings, "seconds": seconds}
        write_report(job.report_file, {**values, "training": training})
    if is_stopped:
        return status_of(interrupts.received, NOT_CONVERGED)
    return status if best.converged else NOT_CONVERGED


def read_rows(job: GridJob, options: TrainOptions) -> tuple[Dataset, Rows, np.ndarray, np.ndarray]:
    """Return the training set, and the rows, labels and folds of the search.

    The folds, int64 (n,), give the index of the fold that holds out each row, or -1 for none.
    """
    data = read_training_set(job, options)
    if job.test_file is None:
        n_folds = min(job.n_folds, len(data.labels))
        return data, data.rows, data.labels, fold_of_rows(data.labels, options, n_folds)
    test = read_test_set(job.test_file, job, options, data)
    if options.svm_type in CLASSIFIERS and not np.isin(test.labels, data.labels).any():
        print_status(f"warning: no label in {job.test_file} is one of the training set's")
    rows, labels, fold = with_test_rows(data.rows, data.labels, test.rows, test.labels)
    return data, rows, labels, fold


class Outputs:
    """Outputs of a search: printed scores, the -out file, and the progress bar."""

    def __init__(self, job: GridJob, lines: "GridLines", known: list[Score], grid: Grid):
        self.job, self.lines = job, lines
        self.scores: list[Score] = []
        self.file: TextIO | None = None
        if job.out_file is not None:
            write_beside(job.out_file, [f"{lines.stored(score)}\n".encode() for score in known])
            self.file = open(job.out_file, "a", encoding="ascii")  # noqa: SIM115 (see close)
        self.progress = TerminalProgress(job.quiet)
        self.n_settings = len(grid.settings)
        for score in known:
            self.add(score, "resumed", is_new=False)

    def close(self) -> None:
        if self.file is not None:
            with naming(self.file.name):
                self.file.close()

    def follow(self, search: Search, grid: Grid, known: list[Score]) -> bool:
        """Run a search and add its scores; return whether it was stopped."""
        self.progress.begin("settings", self.n_settings, unit="setting")
        try:
            for score in search.run(grid, known, refine=self.job.refine):
                self.add(score, "local", is_new=True)
        except Stopped:
            if not any(score.is_complete for score in self.scores):
                for score in search.estimates:
                    self.add(score, "estimate", is_new=False)
            return True
        finally:
            self.progress.close()
        return False

    def add(self, score: Score, source: str, *, is_new: bool) -> None:
        """Print a score and its source; write the score to the -out file if it is new."""
        self.scores.append(score)
        if self.file is not None and is_new and score.n_rows:
            with naming(self.file.name):
                self.file.write(self.lines.stored(score) + "\n")
                self.file.flush()
        if not self.job.quiet:
            self.progress.clear()
            print_result(self.lines.printed(source, score, best_of(self.scores)))

    def advance(self, n_done: float) -> None:
        self.progress.advance(round(n_done, 1))


def say_caveats(scores: list[Score], best: Score, grid: Grid, *, is_stopped: bool) -> None:
    """Print warnings and notes about the best setting."""
    n_failed = sum(not score.converged for score in scores)
    if n_failed:
        print_status(f"warning: {n_failed} of {len(scores)} settings did not converge: not chosen")
    if is_stopped:
        print_status("warning: stopped; the best setting so far is printed")
    edges = grid.edges(best.setting) if best.setting in grid.settings else []
    if edges:
        print_status(
            f"note: the best setting has {' and '.join(edges)} of the grid: extend the grid"
        )
    n_pruned = sum(not score.is_complete for score in scores)
    if n_pruned and not is_stopped:
        print_status(
            f"{n_pruned} of {len(scores)} settings pruned; scores are estimates (see --every)"
        )


def train_best(
    job: GridJob, model_file: str, options: TrainOptions, data: Dataset
) -> tuple[dict[str, Any] | None, int]:
    """Train the best setting on all rows, write the model; return its report and exit status."""
    control = RunControl(TerminalProgress(job.quiet))
    with Interrupts(control.stop) as interrupts:
        try:
            model, report = train_rows(
                data.rows, data.labels, options, control, sample_weight=data.sample_weight,
                consume=True,
            )  # fmt: skip
        except Stopped:
            print_status("error: stopped before a model existed")
            return None, status_of(interrupts.received, FAILED)
    model_for_file(model, job, data).save(model_file)
    if not report.converged:
        say_not_converged(report, options.tolerance, options.gap)
    status = 0 if report.converged else NOT_CONVERGED
    return report_dict(report), status_of(interrupts.received, status)


def as_dict(score: Score) -> dict[str, Any]:
    """Convert a score for JSON; infinite losses become None."""
    values = vars(score.setting).copy()
    names = ("loss", "losses", "n_rows", "is_complete", "converged", "n_sv", "seconds")
    values |= {name: getattr(score, name) for name in names}
    values["losses"] = [loss if math.isfinite(loss) else None for loss in score.losses]
    return values | {"loss": score.loss if math.isfinite(score.loss) else None}


NUMBER = r"(-?[0-9]+(?:\.[0-9]*)?(?:e[-+]?[0-9]+)?)(?![\w.])"
LETTERS = {"C": "c", "gamma": "g", "epsilon": "p"}


class GridLines:
    """Format of the printed and stored lines of a search.

    `names` are the searched parameters among C, gamma and epsilon. `n_rows` rows are held out. The
    exponent of gamma is log2(gamma / gamma_unit).
    """

    def __init__(
        self,
        names: list[str],
        options: TrainOptions,
        n_rows: int,
        gamma_unit: float,
        metric: str | None = None,
    ):
        self.names, self.n_rows, self.C = names, n_rows, options.C
        self.units = {"C": 1.0, "gamma": gamma_unit, "epsilon": 1.0}
        self.metric = checked_metric(metric, options.svm_type)
        self.definition = DEFINITIONS[self.metric]
        self.word = "rate" if self.definition.is_percent else self.metric

    def rate(self, score: Score) -> float:
        return self.definition.shown(score.loss)

    def printed(self, source: str, score: Score, best: Score | None) -> str:
        """Format as `[local] 5.0 -7.0 96.15 (best c=32.0, g=0.0078125, rate=96.15)`."""
        exponents = " ".join(str(exponent) for exponent in self.exponents(score.setting).values())
        line = f"[{source}] {exponents} {self.rate(score):g}"
        if best is None:
            return line
        values = [f"{LETTERS[name]}={getattr(best.setting, name)!r}, " for name in self.names]
        return f"{line} (best {''.join(values)}{self.word}={self.rate(best):g})"

    def last(self, best: Score) -> str:
        """Format as `32.0 0.0078125 96.15`."""
        values = [repr(getattr(best.setting, name)) for name in self.names]
        return f"{' '.join(values)} {self.rate(best):g}"

    def stored(self, score: Score) -> str:
        """Format as `log2c=5.0 log2g=-7.0 rate=96.15`; mark partial and unconverged scores."""
        exponents = " ".join(
            f"log2{LETTERS[name]}={exponent}"
            for name, exponent in self.exponents(score.setting).items()
        )
        digits = 12 if self.definition.is_gain else 17
        partial = "" if score.is_complete else f" rows={score.n_rows}"
        failed = "" if score.converged else " not_converged"
        return f"{exponents} {self.word}={self.rate(score):.{digits}g}{partial}{failed}"

    def exponents(self, setting: Setting) -> dict[str, float]:
        return {
            name: round(math.log2(getattr(setting, name) / self.units[name]), 9)
            for name in self.names
        }

    def read(self, path: str, grid: Grid) -> list[Score]:
        """Read the scores of an -out file of dcsvm-grid or svm-grid. Raises DataError."""
        text = bytes(read_text(path)).decode("utf-8", "replace")
        scores: dict[Setting, Score] = {}
        # an interrupted search may leave an incomplete last line
        for number, line in enumerate(text.split("\n")[:-1], 1):
            if line.strip():
                score = self._parsed(line)
                if score is None:
                    raise DataError(
                        f"{path}:{number}: expected a line such as "
                        f"{' '.join(f'log2{LETTERS[name]}=1' for name in self.names)} "
                        f"{self.word}=90, found {line[:40]!r}"
                    )
                scores[score.setting] = score
        # exponents in the file are rounded: use the exact settings of the grid
        settings = {tuple(self.exponents(one).values()): one for one in grid.settings}
        return [
            replace(score, setting=settings.get(tuple(self.exponents(setting).values()), setting))
            for setting, score in scores.items()
        ]

    def _parsed(self, line: str) -> Score | None:
        values = {}
        for name in self.names:
            match = re.search(rf"\blog2{LETTERS[name]}={NUMBER}", line)
            if not match or abs(float(match[1])) > 1000:
                return None
            values[name] = 2.0 ** float(match[1]) * self.units[name]
        match, rows = re.search(rf"\b{self.word}={NUMBER}", line), re.search(r"\brows=(\d+)", line)
        n_rows = int(rows[1]) if rows else self.n_rows
        if not match or not 1 <= n_rows <= self.n_rows:
            return None
        loss = self.definition.loss_of_shown(float(match[1]))
        if self.metric == "accuracy":  # a whole number of rows, despite the digits of the file
            loss = round(n_rows * loss) / n_rows
        if not 0.0 <= loss <= (1.0 if self.definition.is_percent else math.inf):
            return None
        return Score(
            setting=Setting(values.get("C", self.C), values.get("gamma"), values.get("epsilon")),
            loss=loss,
            losses=(),
            n_rows=n_rows,
            weight=float(n_rows),
            is_complete=rows is None,
            converged="not_converged" not in line,
            n_sv=None,
            seconds=0.0,
        )
