"""Compare compressed models with their originals and with the paper's methods of the same size.

An exact and an early model are trained on each data set, and compressed to a tenth, a hundredth and
a ten thousandth of the kernel evaluations per row. All models predict the test rows with one
thread, in this process. The microseconds per row are the median of three rounds; the first
prediction also prepares the model and does not count. LLSVM, FastFood and SpSVM (two classes only,
with scikit-learn) have one feature per vector of a compressed exact model. A row "alone" is the
median of 200 calls from Python. The table keeps the lines of data sets that --only skips.
"""

import argparse
import sys
from collections.abc import Iterator
from pathlib import Path
from statistics import median

import figures
import measure
import numpy as np
from cases import Case
from measure import talk
from programs import Job, jobs

from dcsvm import load_model
from dcsvm.data.dataset import Dataset
from dcsvm.data.rows import Rows
from dcsvm.kernel.kernels import Kernel
from dcsvm.model.compress import values_of_row

TIMES = (10, 100, 10_000)
PEERS = {"LLSVM": "llsvm", "FastFood": "fastfood", "SpSVM": "spsvm"}
MIN_FEATURES = 2  # for a peer: FastFood makes pairs of features
MAX_FEATURES = 2000  # beyond this SpSVM takes minutes
ROUNDS = 3
ALONE = 200  # rows predicted one by one
COLUMNS = ("data", "model", "vectors", "bytes", "kernel values", "accuracy", "microseconds",
           "alone")  # fmt: skip
LOOKS = {  # color, marker, line
    "exact": (figures.BLACK, "s", "-"),
    "early": (figures.BLUE, "o", "-"),
    "LLSVM": (figures.GREY, "^", ""),
    "FastFood": (figures.GREY, "v", ""),
    "SpSVM": (figures.GREY, "D", ""),
}
SHOWN = 11.0  # percent below the best; lower points are in the table only
LEVELS = {  # early level of each case
    Case("covtype", "covtype.tr", "covtype.te", 32, 32): "4",
    Case("MNIST, ten classes", "digits.tr", "digits.te", 10, 0.02 / 255**2): "auto",
    Case("ijcnn1", "ijcnn1", "ijcnn1.t", 32, 2): "auto",
    Case("a9a", "a9a", "a9a.t", 32, 2**-7): "auto",
    Case("letter", "letter", "letter.t", 10, 5): "auto",
}


def main() -> None:
    names = "data out redraw only threads dcsvm-train dcsvm-compress"
    options = measure.parser_of(__doc__, names).parse_args()
    measure.tabled(options, COLUMNS, all_lines(options), picture, **{"threads of prediction": 1})


def all_lines(options: argparse.Namespace) -> Iterator[tuple]:
    cases = measure.chosen(LEVELS, options.only)
    again = {case.name for case in cases if (options.data / case.train).exists()}
    path = options.out.with_suffix(".csv")
    old = measure.read(path) if path.exists() else []
    yield from (tuple(line.values()) for line in old if line["data"] not in again)
    for job in jobs(cases, options):
        yield from ((job.case.name, *line) for line in lines_of(job))


def lines_of(job: Job) -> Iterator[tuple]:
    """Measure all models of a data set; yield the columns after the first."""
    test, threads = Dataset.read(job.test), ("--threads", job.options.threads)
    for kind in ("exact", "early"):
        path = job.work / kind
        extra = ["--early", "--early-level", LEVELS[job.case]] if kind == "early" else []
        words = [*threads, *job.case.options(), *extra, job.train, path]
        measure.run(job.options.dcsvm_train, "-q", *words)
        yield kind, *predicted(path, test)
        for times in TIMES:
            small = job.work / f"{kind}.{times}"
            words = [*threads, "--times", times, "--rows", job.train, path, small]
            try:
                measure.run(job.options.dcsvm_compress, "-q", *words)
            except RuntimeError as error:
                talk(f"{job.case.name}, {kind}, {times} times: {error}")
                continue
            line = predicted(small, test)
            yield f"{kind}, {times} times", *line
            if kind == "exact" and MIN_FEATURES <= line[0] <= MAX_FEATURES:
                yield from peers(job, test, line[0])


def predicted(path: Path, test) -> tuple:
    """Measure a model: (vectors, bytes, kernel values, accuracy, microseconds, for a row alone)."""
    model = load_model(path)
    part = model.exact or model.early
    seconds, labels = timed(lambda: model.predict(test.rows, threads=1))
    accuracy = 100 * np.mean(labels == test.labels)
    values = values_of_row(model, test.rows, 1)
    return (
        part.rows.n_samples, path.stat().st_size, f"{values:.0f}", f"{accuracy:.2f}",
        f"{1e6 * seconds / len(labels):.3f}", f"{1e6 * alone(model, test.rows):.1f}",
    )  # fmt: skip


def alone(model, rows) -> float:
    """Return the median seconds for one row."""
    width = (model.exact or model.early).rows.n_features
    X = rows.take(np.arange(min(ALONE, rows.n_samples))).with_features(width)
    X = X.in_form_of(Rows(0, 0, dense=np.empty((0, 0))), 1).as_floats().dense
    model.predict(X[:1], threads=1)
    calls = (lambda row=row: model.predict(row[None], threads=1) for row in X)
    return median(map(measure.seconds_of, calls))


def timed(predict) -> tuple[float, np.ndarray]:
    """Return the median seconds and the predictions."""
    labels = predict()
    return median(measure.seconds_of(predict) for _ in range(ROUNDS)), labels


def peers(job: Job, test, n_features: int) -> Iterator[tuple]:
    """Measure the paper's methods with this number of features."""
    try:
        import sklearn  # noqa: F401
    except ImportError:
        return
    sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
    from paper.baselines import fitter

    train = Dataset.read(job.train)
    if len(np.unique(train.labels)) != 2:
        return
    width = max(train.rows.n_features, test.rows.n_features)
    X, T = (one.rows.with_features(width).as_floats().dense for one in (train, test))
    y, expected = (np.where(one.labels == train.labels[0], 1.0, -1.0) for one in (train, test))
    kernel = Kernel("rbf", job.case.gamma)
    for title, name in PEERS.items():
        size = {"basis" if name == "spsvm" else "features": n_features}
        fitted = fitter(name)(X, y, job.case.C, kernel, threads=job.options.threads, **size)
        seconds, values = timed(lambda fitted=fitted: fitted.decision_function(T))
        accuracy = 100 * np.mean((values > 0) == (expected > 0))
        cost = f"{1e6 * seconds / len(T):.3f}"
        yield title, n_features, "", n_features, f"{accuracy:.2f}", cost, ""


def picture(lines: list[dict], path: Path) -> None:
    panels = {name: series_of(own) for name, own in measure.grouped(lines, "data").items()}
    labels = {"xlabel": "microseconds of a row", "ylabel": "% of the test rows right"}
    figures.draw(path, figures.in_rows(panels, 2, x=10, **labels), inches=(11.0, 6.2))


def series_of(lines: list[dict]) -> list[figures.Series]:
    best, found = max(float(line["accuracy"]) for line in lines), []
    lines = [line for line in lines if float(line["accuracy"]) > best - SHOWN]
    for kind, (color, marker, line) in LOOKS.items():
        own = [line for line in lines if line["model"].split(",")[0] == kind]
        points = [(float(one["microseconds"]), float(one["accuracy"])) for one in own]
        look = {"color": color, "marker": marker, "linestyle": line, "label": kind}
        found.append(figures.Series(points, look, notes=[one["vectors"] for one in own]))
    return found


if __name__ == "__main__":
    main()
