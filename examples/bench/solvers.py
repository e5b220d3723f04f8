"""The compared programs: how to run each, read its time and read its solution.

dcsvm's time is the training time of its report, without reading. svm-train's is the whole
command; a run that reads and stops at once is measured beside it, and the median of those is
subtracted. For scikit-learn and scikit-learn-intelex only fit() is timed. A solver's `train` times
it, its `run` also reads the solution and predicts.
"""

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

import numpy as np
import process
import rows as row
from cases import Case
from certificate import Solution, from_support, read_model

STOP_AT_ONCE = "1e9"  # a tolerance that svm-train meets before its first iteration


@dataclass(frozen=True)
class Setup:
    threads: int
    cache_mb: int
    timeout: float
    work: Path  # folder for models, reports and predictions
    dcsvm_train: str
    dcsvm_predict: str
    svm_train: str
    svm_predict: str
    python_peers: str
    dcsvm_options: tuple[str, ...] = ()

    def run(self, command: list) -> process.Finished:
        return process.run(command, self.timeout, self.threads)


@dataclass(frozen=True)
class Job:
    """A case with its files, read once for all solvers."""

    case: Case
    train: Path
    test: Path | None
    work: Path

    @cached_property
    def rows(self) -> row.Rows:
        return row.read(self.train)

    @cached_property
    def test_rows(self) -> row.Rows | None:
        return row.read(self.test) if self.test else None

    @cached_property
    def distinct(self) -> dict[Callable, tuple[row.Rows, row.Distinct]]:
        return {}

    def distinct_rows(self, change: Callable) -> tuple[row.Rows, row.Distinct]:
        """Return the rows after the solver's rounding, and the distinct ones."""
        if change not in self.distinct:
            changed = self.rows.with_values(change)
            self.distinct[change] = changed, row.distinct(changed)
        return self.distinct[change]

    def arrays(self, part: str) -> tuple[Path, Path]:
        """Write the rows and labels of `train` or `test` as dense .npy files, for other Pythons."""
        paths = self.work / f"{part}.rows.npy", self.work / f"{part}.labels.npy"
        if not paths[1].exists():
            data = self.rows if part == "train" else self.test_rows
            width = max(self.rows.n_features, self.test_rows.n_features if self.test_rows else 0)
            np.save(paths[0], data.dense(np.arange(len(data)), width))
            np.save(paths[1], data.labels)
        return paths


@dataclass
class Run:
    """One run of one solver. `status`: ok, timeout, failed or missing."""

    solver: str
    status: str
    seconds: float | None = None  # training time
    reading: float = 0.0  # subtracted from `seconds`
    wall: float | None = None
    processor: float | None = None
    peak_mb: float | None = None
    accuracy: float | None = None
    predict_seconds: float | None = None
    message: str = ""
    report: dict = field(default_factory=dict)
    check: dict | None = None
    solution: Solution | None = None

    @classmethod
    def of(cls, solver: str, finished: process.Finished, good_codes=(0,)) -> "Run":
        good = finished.code in good_codes and not finished.timed_out
        status = "ok" if good else "timeout" if finished.timed_out else "failed"
        run = cls(solver, status, message="" if good else finished.stderr[-2000:])
        run.wall, run.processor = finished.wall, finished.processor
        run.peak_mb = finished.peak_mb
        return run

    def as_dict(self) -> dict:
        return {key: value for key, value in vars(self).items() if key != "solution"}


class Dcsvm:
    """This project's solver. Models that did not converge (exit code 3) are checked too."""

    slack, change = 1e-9, staticmethod(row.as_float32)

    def __init__(self, name: str = "dcsvm", options: tuple[str, ...] = (), *, bias: bool = False):
        self.name, self.bias = name, bias
        self.options = (*options, "--bias") if bias else options

    def program(self, setup: Setup) -> str:
        return setup.dcsvm_train

    def train(self, job: Job, setup: Setup) -> Run:
        command = [setup.dcsvm_train, "-q", *solver_options(job.case, setup)]
        command += ["--threads", setup.threads, "--report", self.path(setup, "json")]
        command += [*setup.dcsvm_options, *job.case.extra, *self.options]
        finished = setup.run([*command, job.train, self.path(setup, "model")])
        run = Run.of(self.name, finished, good_codes=(0, 3))
        if run.status == "ok":
            run.report = json.loads(self.path(setup, "json").read_text())
            run.seconds = run.report["seconds"]["train"]
        return run

    def run(self, job: Job, setup: Setup, with_accuracy: bool) -> Run:
        run, model = self.train(job, setup), self.path(setup, "model")
        if run.status == "ok":
            run.solution = read_model(model, job.distinct_rows(self.change)[1], self.change)
            if with_accuracy and job.test:
                predict(run, job, setup, [setup.dcsvm_predict, "-q", job.test, model])
        return run

    def path(self, setup: Setup, kind: str) -> Path:
        return setup.work / f"{self.name}.{kind}"


class SvmTrain:
    name, bias, slack, change = "svm-train", True, 1e-9, staticmethod(row.as_svm_train_writes)

    def program(self, setup: Setup) -> str:
        return setup.svm_train

    def train(self, job: Job, setup: Setup) -> Run:
        options = [setup.svm_train, "-q", *solver_options(job.case, setup)]
        run = Run.of(self.name, setup.run([*options, job.train, setup.work / "svm-train.model"]))
        if run.status == "ok":
            reading = setup.run([*options, "-e", STOP_AT_ONCE, job.train, setup.work / "no.model"])
            run.seconds, run.reading = run.wall, reading.wall or 0.0
        return run

    def run(self, job: Job, setup: Setup, with_accuracy: bool) -> Run:
        run, model = self.train(job, setup), setup.work / "svm-train.model"
        if run.status == "ok":
            run.solution = read_model(model, job.distinct_rows(self.change)[1], self.change)
            if with_accuracy and job.test:
                predict(run, job, setup, [setup.svm_predict, job.test, model])
        return run


class Sklearn:
    """The SVC of a package, on dense rows."""

    bias = True

    def __init__(self, name: str, package: str, dtype: str):
        self.name, self.package, self.dtype = name, package, dtype
        self.slack = 1e-6 if dtype == "float32" else 1e-9
        self.change = row.as_float32 if dtype == "float32" else row.exact

    def program(self, setup: Setup) -> str:
        return setup.python_peers

    def train(self, job: Job, setup: Setup, with_accuracy: bool = False) -> Run:
        script = Path(__file__).with_name("fit_sklearn.py")
        spec = json.dumps(self.spec(job, setup, with_accuracy))
        command = [setup.python_peers, script, self.package, spec, self.solution(setup)]
        finished = setup.run(command)
        run = Run.of(self.name, finished)
        if run.status == "ok":
            run.report = json.loads(finished.stdout.splitlines()[-1])
            run.seconds = run.report["seconds"]
        elif "ModuleNotFoundError" in finished.stderr:
            run.status = "missing"
        return run

    def run(self, job: Job, setup: Setup, with_accuracy: bool) -> Run:
        run = self.train(job, setup, with_accuracy)
        if run.status == "ok":
            run.accuracy = run.report.get("accuracy")
            run.predict_seconds = run.report.get("predict_seconds")
            with np.load(self.solution(setup)) as saved:
                known = job.distinct_rows(self.change)[1]
                run.solution = from_support(saved["support"], saved["coefficients"], known)
        return run

    def solution(self, setup: Setup) -> Path:
        return setup.work / f"{self.name}.npz"

    def spec(self, job: Job, setup: Setup, with_accuracy: bool) -> dict:
        case, kernel = job.case, job.case.kernel
        paths = dict(zip(("rows", "labels"), map(str, job.arrays("train")), strict=True))
        test = map(str, job.arrays("test")) if with_accuracy and job.test else (None, None)
        paths |= zip(("test_rows", "test_labels"), test, strict=True)
        values = {"C": case.C, "tolerance": case.tolerance, "kernel": kernel.type}
        values |= {"gamma": kernel.gamma, "degree": kernel.degree, "coef0": kernel.coef0}
        budget = {"cache_mb": setup.cache_mb, "threads": setup.threads, "dtype": self.dtype}
        return paths | values | budget


PEERS = {
    "svm-train": SvmTrain(),
    "sklearnex": Sklearn("sklearnex", "sklearnex", "float32"),
    "sklearnex64": Sklearn("sklearnex64", "sklearnex", "float64"),
    "sklearn": Sklearn("sklearn", "sklearn", "float64"),
}


def solver_options(case: Case, setup: Setup) -> list[str]:
    """Return the options common to dcsvm-train and svm-train."""
    options = ["-c", repr(case.C), *case.kernel.options()]
    return [*options, "-e", repr(case.tolerance), "-m", str(setup.cache_mb)]


def predict(run: Run, job: Job, setup: Setup, command: list) -> None:
    """Predict with a command that writes one label per line; set the run's accuracy."""
    output = setup.work / "predictions"
    finished = setup.run([*command, output])
    if finished.code == 0:
        run.predict_seconds = finished.wall
        run.accuracy = float(np.mean(np.loadtxt(output) == job.test_rows.labels))
