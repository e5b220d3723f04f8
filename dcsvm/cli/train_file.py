"""The work of dcsvm-train and dcsvm-easy: read, train or choose, write the model, its quality."""

import os
import shlex
import time
from contextlib import ExitStack
from functools import partial
from typing import Any

from dcsvm._core import Stop
from dcsvm.cli.easy import EasyJob
from dcsvm.cli.guard import NOT_CONVERGED, Interrupts, status_of
from dcsvm.cli.options import AUTO, QUANTILE, print_result, print_status, show_beside
from dcsvm.cli.predict import PredictJob
from dcsvm.cli.predict_file import predict_file
from dcsvm.cli.reading import (
    TerminalProgress,
    apply_feature_weights,
    print_warnings,
    read_other_set,
    read_training_set,
    telling_warnings,
    write_report,
)
from dcsvm.cli.train import TrainJob
from dcsvm.data.dataset import Dataset
from dcsvm.model.reader import load_model
from dcsvm.problem.options import TrainOptions
from dcsvm.selection.easy import easy
from dcsvm.training.probability import cross_validate
from dcsvm.training.state import Checkpoint
from dcsvm.training.train import train

FLAGS = ("lenient", "header", "no_header")  # options of reading


def train_file(job: TrainJob, options: TrainOptions) -> int:
    """Run a training job; return the exit status."""
    start, options = time.perf_counter(), options.with_threads()
    progress, stop = TerminalProgress(job.quiet), Stop(job.time_limit)
    checkpoint = checkpoint_of(job)
    init_model = None
    if job.init_model_file is not None:
        init_model = load_model(job.init_model_file, threads=options.threads)
    with ExitStack() as at_end:
        data = training_set(job, options, init_model, at_end)
        if job.n_folds is not None:
            return cross_validate_data(data, options, job.n_folds, progress)
        data, learned = apply_feature_weights(job, data, options)
        test = None
        if job.test_file is not None:
            test = read_other_set(
                job.test_file, job, data, is_lazy=learned is not None, threads=options.threads,
                kernel_values=options.kernel_type.is_precomputed,
            )  # fmt: skip
        read = time.perf_counter()
        # until here a signal ends the command; from here it ends training, and the model is written
        interrupts = at_end.enter_context(Interrupts(stop))
        progress.explain_stops(partial(stop_sentence, job, checkpoint, interrupts))
        model = train(
            data, progress=progress, stop=stop, checkpoint=checkpoint, init_model=init_model,
            test=test, feature_weights=learned, **options.values,
        )  # fmt: skip
        trained = time.perf_counter()
        assert job.model_file is not None  # only cross-validation writes no model
        model.save(job.model_file, job.model_format, threads=options.threads)
        written = time.perf_counter()
    report = model.report
    if job.report_file is not None:
        seconds = {"read": read - start, "write": written - trained, "total": written - start}
        values = report.as_dict()
        values["seconds"] |= seconds
        values["feature_weights"] = model.weights_by_index if job.feature_weights else None
        write_report(job.report_file, values)
    if not job.quiet:
        print_line = show_beside(job.model_file, job.report_file)
        for line in report.lines(is_classifier=model.is_classifier):
            print_line(line)
        if report.outcome:
            print_status(report.outcome)
    progress.finish()
    if report.stopped:
        return status_of(interrupts.received, NOT_CONVERGED)
    if checkpoint is not None:
        checkpoint.remove()
    return 0 if report.converged else NOT_CONVERGED


def training_set(
    job: TrainJob, options: TrainOptions, init_model: Any, at_end: ExitStack
) -> Dataset:
    """Read the training set, in this process or on workers, which `at_end` releases."""
    if job.is_remote:
        try:
            from dcsvm.distributed.dataset import file_on_workers
        except ImportError as error:
            raise ValueError(
                f"workers require {error.name}, which is not installed: pip install 'dcsvm[dask]'"
            ) from None
        remote = at_end.enter_context(
            file_on_workers(
                job.training_set_file, **job.workers, threads=options.threads, scale=job.scale,
                lenient=job.lenient,
            )
        )  # fmt: skip
        return remote.disposable()
    data = read_training_set(job, options, init_model=init_model).disposable()
    if not job.quiet:
        print_warnings(data, options)
    return data


def cross_validate_data(
    data: Dataset, options: TrainOptions, n_folds: int, progress: TerminalProgress
) -> int:
    """Cross-validate and print the result, on stdout even when quiet; return the exit status.

    If there are more folds than rows, leave-one-out is used.
    """
    if n_folds > data.n_rows:
        progress.warn(f"{n_folds} folds, but {data.n_rows} rows: leave-one-out instead")
    measured, n_failed = cross_validate(data, options, min(n_folds, data.n_rows), progress)
    for line in measured.lines_of_folds():
        print_result(line)
    return NOT_CONVERGED if n_failed else 0


def checkpoint_of(job: TrainJob) -> Checkpoint | None:
    """Return the checkpoint of a job, or None.

    With --checkpoint, training starts anew if --resume finds no checkpoint.
    """
    if job.resume_folder is None:
        return None if job.checkpoint_folder is None else Checkpoint(job.checkpoint_folder)
    may_start = job.checkpoint_folder is not None
    resume = not may_start or Checkpoint.exists(job.resume_folder)
    return Checkpoint(job.resume_folder, resume=resume)


def stop_sentence(
    job: TrainJob, checkpoint: Checkpoint | None, interrupts: Interrupts, state: str
) -> str:
    """Tell why training stopped, the state of the model, and how to resume."""
    why = "interrupted"
    if interrupts.received is None and job.time_limit is not None:
        why = f"stopped at the time limit of {job.time_limit:g} s"
    resume = ""
    if checkpoint is not None and checkpoint.error is None:
        resume = f"; resume with --resume {checkpoint.folder}"
    return f"{why}, {state}{resume}"


def easy_file(job: EasyJob, options: TrainOptions) -> int:
    """Run a job of dcsvm-easy; return the exit status."""
    start, options = time.perf_counter(), options.with_threads()
    assert job.model_file is not None
    data = read_training_set(job, options, is_lazy=True)
    if job.test_file is not None:  # an error in it should be told before the search
        with telling_warnings(quiet=True):
            Dataset.check_first_rows(job.test_file, data, **job.reading)
    data, _ = apply_feature_weights(job, data, options)
    read = time.perf_counter()
    progress, stop = TerminalProgress(job.quiet), Stop()
    given = {name: value for name, value in options.values.items() if name in options.of_easy}
    with Interrupts(stop) as interrupts:
        model = easy(
            data, time_limit=job.time_limit, metric=job.metric, svm_type=job.svm_type, stop=stop,
            progress=progress, **given,
        )  # fmt: skip
    report = model.report
    chosen = report.selection
    if chosen["seconds"] > job.time_limit + 1:
        used = chosen["seconds"]
        progress.note(f"the time limit of {job.time_limit:g} s was exceeded: {used:.0f} s")
    # without a range file, since dcsvm-predict reads only the model
    model.save(job.model_file, has_range_file=False, threads=options.threads)
    progress.finish()
    command = shlex.join(command_of(job, report.options, chosen))
    if job.report_file is not None:
        seconds = {"read": read - start, "total": time.perf_counter() - start}
        values = report.as_dict() | {"selection": chosen | {"command": command}}
        values["seconds"] |= seconds
        write_report(job.report_file, values)
    is_whole = chosen.get("n_trained", data.n_rows) == data.n_rows
    again = "trains it again" if is_whole else "trains it on all rows"
    progress.note(f"model file: {job.model_file}; this command {again}:")
    print_result(command)
    print_result(f"held-out {chosen['quality']} ({chosen['n_held']} rows)")
    status = 0 if report.converged else NOT_CONVERGED
    if job.test_file is not None:
        progress.note(f"test file {job.test_file}, predictions in {job.output_file}:")
        status = predict_test(job) or status
    return status_of(interrupts.received, status)


def command_of(job: EasyJob, options: TrainOptions, chosen: dict[str, Any]) -> list[str]:
    """Return the dcsvm-train command that trains the model of these options and this choice."""
    words = ["dcsvm-train"]
    # threads and memory belong to the machine, not to the model
    for name, option, default in options.entries():
        value = getattr(options, name)
        if value != default and option.spelling and name not in ("threads", "cache_mb"):
            words += words_of(option, value)
    scale = job.scale if chosen["scale"] == "given" else chosen["scale"]
    words += ["--scale", scale or ""]
    if chosen["has_weights"] or job.feature_weights:
        words += ["--weights", job.model_file or ""]
    words += job.spellings([name for name in FLAGS if getattr(job, name)]).values()
    for name in ("format", "label", "weight"):
        if getattr(job, name) is not None:
            words += [f"--{name}", getattr(job, name)]
    for name in ("drop", "category"):
        for columns in getattr(job, name):
            words += [f"--{name}", columns]
    return [*words, job.training_set_file, f"{os.path.basename(job.training_set_file)}.again"]


def words_of(option: Any, value: Any) -> list[str]:
    """Return the words of an option on the command line."""
    if not option.value:
        return [option.names[0]]
    if option.value == "0|1":
        return [option.names[0], str(int(value))]
    if isinstance(value, dict):
        labels = [f"{label:g}" if isinstance(label, float) else label for label in value]
        pairs = zip(labels, value.values(), strict=True)
        return [word for label, factor in pairs for word in (f"-w{label}", repr(factor))]
    return [option.names[0], value if isinstance(value, str) else repr(value)]


def predict_test(job: EasyJob) -> int:
    """Predict the test file as dcsvm-predict does; return the exit status."""
    assert job.test_file is not None and job.output_file is not None and job.model_file is not None
    test = PredictJob(
        test_file=job.test_file, model_file=job.model_file, output_file=job.output_file,
        probability=job.probability, has_metrics=True,
        format=job.format, label=job.label, **{name: getattr(job, name) for name in FLAGS},
        scale=None if job.scale in (AUTO, QUANTILE) else job.scale,
    )  # fmt: skip
    return predict_file(test, None)
