"""Implementation of dcsvm-easy: read, search, train, write the model, predict the test file."""

import os
import shlex
import time
from dataclasses import fields, replace
from typing import Any

import numpy as np

from dcsvm._core import Stopped
from dcsvm.cli.files import print_result, print_status
from dcsvm.cli.guard import FAILED, NOT_CONVERGED, Interrupts, status_of
from dcsvm.cli.job_data import (
    check_first_rows,
    model_for_file,
    read_training_set,
    read_unscaled_set,
)
from dcsvm.cli.jobs import EasyJob, PredictJob
from dcsvm.cli.predict_file import predict_file
from dcsvm.cli.report import TerminalProgress, say_not_converged, write_report
from dcsvm.data.dataset import Dataset, UnscaledSet
from dcsvm.data.files import write_beside
from dcsvm.machine import usable_threads
from dcsvm.model.writer import model_text
from dcsvm.problem.option_table import Option, option_of
from dcsvm.problem.options import TrainOptions
from dcsvm.selection.easy import Choice, Clock, EasySearch, choose, task_of
from dcsvm.selection.trials import Candidate, Problem, Trial
from dcsvm.solving.checkpoint import RunControl
from dcsvm.solving.report import TrainReport, report_dict
from dcsvm.training.feature_weights import FeatureWeights, weighted_rows
from dcsvm.training.train import train_rows


def easy_file(job: EasyJob, given: dict[str, Any]) -> int:
    """Run a job of dcsvm-easy; `given` are its training options. Return the exit status."""
    start = time.perf_counter()
    threads = usable_threads(given.get("threads"))
    raw = read_unscaled_set(job, threads)
    check_first_rows(job.test_file, job, raw.table, raw.first_index)
    read = time.perf_counter()
    base = TrainOptions(**{"svm_type": task_of(raw.labels), **given, "threads": threads})
    problem, clock = Problem.of(raw.labels, job.metric, base), Clock(job.time_limit)
    told = SearchProgress(job, problem, raw)
    with Interrupts(clock) as interrupts:
        try:
            one_hot = None if raw.table is None else raw.table.one_hot
            search = EasySearch(
                raw.rows, raw.labels, problem, clock, one_hot, raw.sample_weight, told.tell
            )
            loader = Loader(job, base)
            choice = choose(search, lambda scale: loader.data(scale).rows)
            del raw
            told.end(search, choice)
            data, options = loader.weighted(choice), choice.options
            stop = clock.stop_of_last(early=options.early)
            control = RunControl(TerminalProgress(job.quiet), stop)
            model, report = train_rows(
                data.rows, data.labels, options, control, sample_weight=data.sample_weight,
                consume=True,
            )  # fmt: skip
        except Stopped as stopped:
            print_status(f"error: {stopped}")
            return status_of(interrupts.received, FAILED)
    if clock.used > clock.limit + 1:
        print_status(f"the time limit of {clock.limit:g} s was exceeded: {clock.used:.0f} s")
    # without a range file, since dcsvm-predict reads only the model
    write_beside(job.model_file, model_text(model_for_file(model, loader.job, data)))
    if not report.converged:
        say_not_converged(report, options.tolerance, options.gap)
    command = shlex.join(command_of(job, choice, report))
    if job.report_file is not None:
        seconds = {"read": read - start, "total": time.perf_counter() - start}
        selection = search.described(choice) | {"command": command}
        values = report_dict(report) | {"selection": selection}
        values["seconds"] |= seconds
        write_report(job.report_file, values)
    progress = told.progress
    progress.print_status(f"model file: {job.model_file}; this command trains it again:")
    print_result(command)
    print_result(f"held-out {told.quality(choice.loss, choice.error)} ({choice.n_held} rows)")
    status = 0 if report.converged else NOT_CONVERGED
    if job.test_file is not None:
        status = predict_test(job, probability=base.probability is True) or status
        progress.print_status(f"predictions of {job.test_file}: {job.output_file}")
    return status_of(interrupts.received, status)


class Loader:
    """Reads the training set as dcsvm-train does with a scaling; keeps the last one."""

    def __init__(self, job: EasyJob, options: TrainOptions):
        self.options, self.easy = options, job
        self.job = job.train_job("")
        self.kept: Dataset | None = None

    def data(self, scale: str) -> Dataset:
        """Return the scaled training set."""
        if self.kept is None or self.job.scale_file != scale:
            self.job = self.easy.train_job(scale)
            self.kept = read_training_set(self.job, self.options)
        return self.kept

    def weighted(self, choice: Choice) -> Dataset:
        """Return the training set of a choice, scaled and weighted."""
        data = self.data(choice.scale)
        if choice.weights is None:
            return data
        n_known = min(data.rows.n_features, len(choice.weights))
        weights = FeatureWeights(choice.weights[:n_known], np.arange(n_known))
        rows, scaling = weighted_rows(
            data.rows, weights, data.scaling, self.job.training_set_file, data.first_index
        )
        return replace(data, rows=rows, scaling=scaling)


class SearchProgress:
    """Shows the search: a bar on a terminal, elsewhere a line for each step; silent with -q."""

    def __init__(self, job: EasyJob, problem: Problem, data: UnscaledSet):
        self.problem, self.progress = problem, TerminalProgress(job.quiet)
        self.step, self.n_trials = "", 0
        self.told: set[Candidate] = set()
        self.best: Trial | None = None
        kind = "regression"
        if not problem.is_regression:
            kind = f"classification, {len(np.unique(data.labels))} classes"
        threads, n = problem.options.threads, data.rows.n_features
        self.progress.print_status(
            f"{len(data.labels)} rows, {n} feature{'s'[: n != 1]}, {kind}; "
            f"at most {job.time_limit:g} s with {threads} thread{'s'[: threads != 1]}"
        )

    def tell(self, step: str, trial: Trial, best: Trial) -> None:
        """Receive a trial; a candidate that is scored again is not counted."""
        if step != self.step:
            self._end_step()
            self.step, self.n_trials = step, 0
            self.progress.begin(step, 8, unit="trial")
        self.n_trials += trial.candidate not in self.told
        self.told.add(trial.candidate)
        self.best = best
        self.progress.advance(self.n_trials)
        if self.progress.bar is not None:
            self.progress.bar.set_postfix_str(self.quality(best.loss, best.error))

    def _end_step(self) -> None:
        if self.best is None:
            return
        one = self.best.candidate
        weights = "" if one.source is None else ", weights"
        self.progress.print_status(
            f"{self.step}: {self.n_trials} trial{'s'[: self.n_trials != 1]}; best: {one.kernel}, "
            f"{SCALING_NAMES[one.scale]}{weights}, C={one.C * self.problem.unit:.4g}, "
            f"gamma={one.gamma:.3g}/median: {self.quality(self.best.loss, self.best.error)}"
        )

    def end(self, search: EasySearch, choice: Choice) -> None:
        """Print the end of the search, and what it left out."""
        self._end_step()
        if choice.options.early:
            self.progress.print_status(
                f"early model on all rows, C={choice.options.C:.4g}, "
                f"gamma={choice.options.gamma:.4g}: {self.quality(choice.loss, choice.error)}"
            )
        if search.skipped:
            self.progress.print_status(f"left out: {', '.join(search.skipped)}")

    def quality(self, loss: float, error: float) -> str:
        """Format a loss as its metric with a standard error."""
        return described_loss(self.problem.metric, loss, error)


SCALING_NAMES = {"auto": "ranges", "quantile": "quantiles"}
PERCENTAGES = ("accuracy", "balanced-accuracy", "f1", "auc")


def described_loss(metric: str, loss: float, error: float) -> str:
    """Format a loss: the metric, its value, and its standard error."""
    if metric in PERCENTAGES:
        return f"{metric} {100 * (1 - loss):.2f} +- {100 * error:.2f} %"
    return f"{metric} {1 - loss if metric == 'r2' else loss:.5g} +- {error:.2g}"


def command_of(job: EasyJob, choice: Choice, report: TrainReport) -> list[str]:
    """Return the dcsvm-train command that trains the same model."""
    options = replace(choice.options, gamma=report.gamma, threads=None, cache_mb=None)
    words = ["dcsvm-train"]
    for one in fields(TrainOptions):
        value = getattr(options, one.name)
        if value != one.default and option_of(one).spelling:
            words += words_of(option_of(one), value)
    words += ["--scale", choice.scale]
    if choice.weights is not None:
        words += ["--weights", job.model_file]
    if job.lenient:
        words.append("--lenient")
    for name in ("format", "label", "weight"):
        if getattr(job, name) is not None:
            words += [f"--{name}", getattr(job, name)]
    for names in job.drop:
        words += ["--drop", names]
    return [*words, job.training_set_file, f"{os.path.basename(job.training_set_file)}.again"]


def words_of(option: Option, value: Any) -> list[str]:
    """Return the words of an option on the command line."""
    if not option.value:
        return [option.names[0]]
    if option.value == "0|1":
        return [option.names[0], str(int(value))]
    return [option.names[0], value if isinstance(value, str) else repr(value)]


def predict_test(job: EasyJob, *, probability: bool) -> int:
    """Predict the test file as dcsvm-predict does; return the exit status."""
    assert job.test_file is not None and job.output_file is not None
    return predict_file(
        PredictJob(
            scale_file=None, lenient=job.lenient, quiet=False, test_file=job.test_file,
            model_file=job.model_file, output_file=job.output_file, early=False,
            probability=probability, decision_values=False, threads=None, format=job.format,
            label=job.label, has_metrics=True,
        )
    )  # fmt: skip
