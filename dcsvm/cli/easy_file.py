"""Implementation of dcsvm-easy: read, choose and train, write the model, predict the test file."""

import os
import shlex
import time
from typing import Any

from dcsvm._core import Stop
from dcsvm.cli.easy import EasyJob
from dcsvm.cli.files import AUTO, QUANTILE, print_result
from dcsvm.cli.guard import NOT_CONVERGED, Interrupts, status_of
from dcsvm.cli.predict import PredictJob
from dcsvm.cli.predict_file import predict_file
from dcsvm.cli.reading import read_training_set, telling_warnings, weights_of
from dcsvm.cli.report import TerminalProgress, write_report
from dcsvm.data.dataset import Dataset
from dcsvm.problem.options import TrainOptions
from dcsvm.selection.easy import easy


def easy_file(job: EasyJob, options: TrainOptions) -> int:
    """Run a job of dcsvm-easy; return the exit status."""
    start, options = time.perf_counter(), options.with_threads()
    assert job.model_file is not None
    data = read_training_set(job, options, is_lazy=True)
    if job.test_file is not None:
        with telling_warnings(quiet=True):
            Dataset.check_first_rows(job.test_file, data, **job.reading)
    data, _ = weights_of(job, data, options)
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
    model.save(job.model_file, has_range_file=False)
    progress.finish()
    command = shlex.join(command_of(job, report.options, chosen))
    if job.report_file is not None:
        seconds = {"read": read - start, "total": time.perf_counter() - start}
        values = report.as_dict() | {"selection": chosen | {"command": command}}
        values["seconds"] |= seconds
        write_report(job.report_file, values)
    progress.note(f"model file: {job.model_file}; this command trains it again:")
    print_result(command)
    print_result(f"held-out {chosen['quality']} ({chosen['n_held']} rows)")
    status = 0 if report.converged else NOT_CONVERGED
    if job.test_file is not None:
        status = predict_test(job) or status
        progress.note(f"predictions of {job.test_file}: {job.output_file}")
    return status_of(interrupts.received, status)


def command_of(job: EasyJob, options: TrainOptions, chosen: dict[str, Any]) -> list[str]:
    """Return the dcsvm-train command that trains the model of these options and this choice."""
    words = ["dcsvm-train"]
    for name, option, default in options.entries():
        value = getattr(options, name)
        if value != default and option.spelling and name not in ("threads", "cache_mb"):
            words += words_of(option, value)
    scale = job.scale if chosen["scale"] == "given" else chosen["scale"]
    words += ["--scale", scale or ""]
    if chosen["has_weights"] or job.feature_weights:
        words += ["--weights", job.model_file or ""]
    if job.lenient:
        words.append("--lenient")
    for name in ("format", "label", "weight"):
        if getattr(job, name) is not None:
            words += [f"--{name}", getattr(job, name)]
    for names in job.drop:
        words += ["--drop", names]
    return [*words, job.training_set_file, f"{os.path.basename(job.training_set_file)}.again"]


def words_of(option: Any, value: Any) -> list[str]:
    """Return the words of an option on the command line."""
    if not option.value:
        return [option.names[0]]
    if option.value == "0|1":
        return [option.names[0], str(int(value))]
    if isinstance(value, dict):
        return [word for label, one in value.items() for word in _factor_words(label, one)]
    return [option.names[0], value if isinstance(value, str) else repr(value)]


def _factor_words(label: float | str, factor: float) -> list[str]:
    return [f"-w{label:g}" if isinstance(label, float) else f"-w{label}", repr(factor)]


def predict_test(job: EasyJob) -> int:
    """Predict the test file as dcsvm-predict does; return the exit status."""
    assert job.test_file is not None and job.output_file is not None and job.model_file is not None
    test = PredictJob(
        test_file=job.test_file, model_file=job.model_file, output_file=job.output_file,
        probability=job.probability, has_metrics=True, format=job.format, label=job.label,
        lenient=job.lenient, scale=None if job.scale in (AUTO, QUANTILE) else job.scale,
    )  # fmt: skip
    return predict_file(test, None)
