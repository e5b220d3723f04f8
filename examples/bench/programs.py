"""The compared programs: how to run each, read its time and read its solution.

dcsvm's time is the training time of its report, without reading. svm-train's is the whole
command; a run that reads and stops at once is measured beside it, and the median of those is
subtracted. For scikit-learn and scikit-learn-intelex only fit() is timed. A solver's `train` times
it, its `run` also reads the solution and predicts.
"""

import json
import shutil
import sys
import tempfile
from argparse import Namespace
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

import numpy as np
import process
import rows as row
from cases import Files
from certificate import Solution, from_support, read_model
from measure import talk

STOP_AT_ONCE = "1e9"  # a tolerance that svm-train meets before its first iteration


@dataclass(frozen=True)
class Job:
    """A case with its files, read once for all programs; `options` are those of the suite."""

    case: Files
    train: Path
    test: Path | None
    work: Path  # folder for models, reports and predictions
    options: Namespace
    known: dict = field(default_factory=dict)

    def run(self, command: list) -> process.Finished:
        return process.run(command, self.options.timeout, self.options.threads)

    @cached_property
    def rows(self) -> row.Rows:
        return row.read(str(self.train))

    @cached_property
    def test_rows(self) -> row.Rows | None:
        return row.read(str(self.test)) if self.test else None

    @cached_property
    def width(self) -> int:
        return max(data.n_features for data in (self.rows, self.test_rows) if data)

    def distinct_rows(self, change: Callable) -> tuple[row.Rows, row.Distinct]:
        """Return the rows after the solver's rounding, and the distinct ones."""
        if change not in self.known:
            changed = self.rows.with_values(change)
            self.known[change] = changed, row.distinct(changed)
        return self.known[change]

    def saved(self, part: str) -> str:
        """Write the rows of `train` or `test` as an .npz file; return its path."""
        path = self.work / f"{part}.npz"
        if not path.exists():
            row.save(path, self.rows if part == "train" else self.test_rows, self.width)
        return str(path)


def jobs(cases: Iterable[Files], options: Namespace) -> Iterator[Job]:
    """Yield the job of each case whose training file is there, in a folder of its own."""
    for case in cases:
        train = options.data / case.train
        test = options.data / case.test if case.test else None
        if not train.exists():
            talk(f"{case.name}: no file {train}, skipped")
            continue
        with tempfile.TemporaryDirectory(prefix="dcsvm-bench-") as work:
            if case.rows:
                train = Path(work, "rows")
                row.sample_lines(options.data / case.train, train, case.rows, case.seed)
            yield Job(case, train, test if test and test.exists() else None, Path(work), options)


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
        measured = {name: getattr(finished, name) for name in ("wall", "processor", "peak_mb")}
        return cls(solver, status, message="" if good else finished.stderr[-2000:], **measured)

    def as_dict(self) -> dict:
        return {key: value for key, value in vars(self).items() if key != "solution"}

    def __str__(self) -> str:
        time = f"{self.seconds - self.reading:.3f} s" if self.status == "ok" else self.status
        check = f", violation {self.check['violation']:.2e}" if self.check else ""
        return f"{self.solver}: {time}{check} {self.message.strip()[-300:]}".rstrip()


class Solver:
    """A solver that is a command, named by an option, and writes a LIBSVM model."""

    program, predictor, slack = "", "", 1e-9

    def run(self, job: Job, with_accuracy: bool) -> Run:
        run, model = self.train(job), self.path(job, "model")
        if run.status == "ok":
            run.solution = read_model(model, job.distinct_rows(self.change)[1], self.change)
            if with_accuracy and job.test:
                output = job.work / "predictions"
                finished = job.run([getattr(job.options, self.predictor), job.test, model, output])
                if finished.code == 0:
                    run.predict_seconds = finished.wall
                    run.accuracy = float(np.mean(np.loadtxt(output) == job.test_rows.labels))
        return run

    def path(self, job: Job, kind: str) -> Path:
        return job.work / f"{self.name}.{kind}"

    def command(self, job: Job) -> list:
        """Return the command with the options common to dcsvm-train and svm-train."""
        case, program = job.case, getattr(job.options, self.program)
        options = ["-e", repr(case.tolerance), "-m", str(job.options.cache)]
        return [program, "-q", *case.options(), *options]


class Dcsvm(Solver):
    """This project's solver. Models that did not converge (exit code 3) are checked too."""

    program, predictor, change = "dcsvm_train", "dcsvm_predict", staticmethod(row.as_float32)

    def __init__(self, name: str = "dcsvm", *options: str, bias: bool = False):
        self.name, self.bias, self.options = name, bias, [*options, *["--bias"] * bias]

    def train(self, job: Job) -> Run:
        report, threads = self.path(job, "json"), ["--threads", job.options.threads]
        command = [*self.command(job), *job.case.extra, *self.options, *threads]
        command += ["--report", report, job.train, self.path(job, "model")]
        run = Run.of(self.name, job.run(command), good_codes=(0, 3))
        if run.status == "ok":
            run.report = json.loads(report.read_text())
            run.seconds = run.report["seconds"]["train"]
        return run


class SvmTrain(Solver):
    program, predictor, change = "svm_train", "svm_predict", staticmethod(row.as_svm_train_writes)
    name, bias = "svm-train", True

    def train(self, job: Job) -> Run:
        command = self.command(job)
        run = Run.of(self.name, job.run([*command, job.train, self.path(job, "model")]))
        if run.status == "ok":
            reading = job.run([*command, "-e", STOP_AT_ONCE, job.train, self.path(job, "none")])
            run.seconds, run.reading = run.wall, reading.wall or 0.0
        return run


class Sklearn(Solver):
    """The SVC of a package, on dense rows."""

    program, bias = "python_peers", True

    def __init__(self, name: str, package: str, dtype: str):
        self.name, self.package, self.dtype = name, package, dtype
        self.slack = 1e-6 if dtype == "float32" else 1e-9
        self.change = row.as_float32 if dtype == "float32" else row.exact

    def train(self, job: Job, with_accuracy: bool = False) -> Run:
        case = job.case
        params = {"C": case.C, "gamma": case.gamma, "tol": case.tolerance}
        params |= {"cache_size": job.options.cache}
        more = {"dtype": self.dtype, "solution": str(self.path(job, "npz"))}
        finished, found = fitted_apart(self.package, "SVC", params, job, with_accuracy, **more)
        run = Run.of(self.name, finished)
        if "ModuleNotFoundError" in finished.stderr and run.status == "failed":
            run.status = "missing"
        run.report, run.seconds = found, found.get("fit")
        run.accuracy, run.predict_seconds = found.get("score"), found.get("predict")
        return run

    def run(self, job: Job, with_accuracy: bool) -> Run:
        run = self.train(job, with_accuracy)
        if run.status == "ok":
            with np.load(self.path(job, "npz")) as saved:
                known = job.distinct_rows(self.change)[1]
                run.solution = from_support(saved["support"], saved["coefficients"], known)
        return run


def fitted_apart(
    library: str, estimator: str, params: dict, job: Job, with_test: bool, **more
) -> tuple[process.Finished, dict]:
    """Fit an estimator by fit_sklearn.py; return what it found: {} if it failed.

    `more`: `dtype` and `is_sparse` of the rows; `solution`, a path for support and coefficients;
    `short`, the seconds below which all is measured three times; `grid`, values for GridSearchCV.
    Found are the seconds `fit` and `predict`, the `score` (accuracy, R2, or the share of rows that
    are inside), and the `best` parameters of a grid.
    """
    spec = {"estimator": estimator, "params": params, "threads": job.options.threads, **more}
    spec["train"] = job.saved("train")
    if with_test and job.test:
        spec["test"] = job.saved("test")
    python = getattr(job.options, "python_peers", sys.executable)
    script = Path(__file__).with_name("fit_sklearn.py")
    finished = job.run([python, script, library, json.dumps(spec)])
    good = finished.code == 0 and not finished.timed_out
    return finished, json.loads(finished.stdout.splitlines()[-1]) if good else {}


PEERS = {
    "svm-train": SvmTrain(),
    "sklearnex": Sklearn("sklearnex", "sklearnex", "float32"),
    "sklearnex64": Sklearn("sklearnex64", "sklearnex", "float64"),
    "sklearn": Sklearn("sklearn", "sklearn", "float64"),
}


def attempt(solver, job: Job, with_accuracy: bool | None = None) -> Run:
    """Run a solver without raising: an error becomes the status and message of the run.

    Without `with_accuracy` only train, without reading the solution.
    """
    program = getattr(job.options, solver.program)
    if shutil.which(program) is None:
        return Run(solver.name, "missing", message=f"no program {program}")
    try:
        return solver.train(job) if with_accuracy is None else solver.run(job, with_accuracy)
    except Exception as error:
        return Run(solver.name, "failed", message=f"{type(error).__name__}: {error}")
