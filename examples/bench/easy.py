"""Compare dcsvm-easy with other learners of tables, each in a process of its own.

--raw has tables/*.tsv.gz with the column `target` and the raw census-income files. Three quarters
of the rows of a table are for training, the others for the test: error rate or RMSE on the test
rows, or 1 - AUC or the log loss of probabilities (--metric); seconds of the fit and of predicting
the test rows; kilobytes of the model. LightGBM is tuned in the seconds that dcsvm-easy took, and in
60. A learner that is not installed is left out; --pythons names other environments for some.
"""

import csv
import json
import lzma
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import measure
import numpy as np
import process
import tabular
from learners import LEARNERS, MISSING, Task

COLUMNS = ("table", "split", "method", "version", "error", "seconds", "predict_seconds",
           "kilobytes", "setting")  # fmt: skip
FILES = {"letter": ("letter", "letter.t"), "cpu_small": ("cpu_small.tr", "cpu_small.te"),
         "covtype": ("covtype.tr", "covtype.te")}  # fmt: skip
TEST_SHARE = 0.25
METRICS = {"auc": "auc", "log-loss": "log_loss"}  # --metric of dcsvm-easy, name in its report
TIMEOUT = 3600.0  # seconds of a learner


def main() -> None:
    parser = measure.parser_of(__doc__, "raw data out redraw only splits")
    parser.add_argument("--seconds", type=float, default=60.0, help="--time-limit of dcsvm-easy")
    parser.add_argument(
        "--peers", nargs="*", default=[*LEARNERS], choices=LEARNERS, help="of these"
    )
    parser.add_argument("--metric", choices=METRICS, help="of probabilities, in place of errors")
    parser.add_argument("--pythons", nargs="*", default=[], metavar="NAME=PATH", help="of peers")
    options = parser.parse_args()
    options.pythons = dict(one.split("=", 1) for one in options.pythons)
    lines = measure.tabled(options, COLUMNS, lines_of(options))
    print(measure.heading(["method", "error", "seconds", "prediction", "size"]))
    base = "LightGBM"
    columns = ("error", "seconds", "predict_seconds", "kilobytes")
    ratios = [tabular.relative(lines, column, base) for column in columns]
    for method in ratios[0]:
        print(measure.markdown([method, *(f"{one.get(method, np.nan):.3g}" for one in ratios)]))


def lines_of(options) -> Iterator[tuple]:
    for name, X, y in tables(options):
        for number in range(options.splits):
            split = Split.of(name, X, y, number)
            if options.metric and split.is_regression:
                continue
            found = easy(split, options.seconds, options.metric)
            outcomes = {"dcsvm-easy": found}
            for method in options.peers:
                outcome = peer(method, split, found.seconds, options)
                outcomes |= {method: outcome} if outcome else {}
            for method, one in outcomes.items():
                yield name, number, method, *one.cells()
            said = ", ".join(f"{method} {one.error:.4g} ({one.seconds:.0f} s)"
                             for method, one in outcomes.items())  # fmt: skip
            print(f"{name} {number}, {len(split.y)} rows: {said}", flush=True)


@dataclass(frozen=True)
class Outcome:
    version: str
    error: float
    seconds: float
    predict_seconds: float
    n_bytes: int
    setting: str = ""

    def cells(self) -> tuple:
        kilobytes = f"{self.n_bytes / 1000:.0f}"
        times = f"{self.seconds:.1f}", f"{self.predict_seconds:.3f}"
        return self.version, f"{self.error:.5g}", *times, kilobytes, self.setting


def tables(options) -> Iterator[tuple[str, np.ndarray, np.ndarray]]:
    """Yield all tables that are there, with targets as text."""
    for name, X, y in tabular.tables(options.raw, options.data, FILES, options.only):
        yield name, X, y if y.dtype == object else np.array([f"{one:g}" for one in y], object)
    path = options.raw / "census-income.data.xz"
    if options.only in "census" and path.exists():
        with lzma.open(path, "rt", encoding="latin-1") as file:
            lines = [line.strip().rstrip(".").split(", ") for line in file if line.strip()]
        cells = np.array(lines, object)
        yield "census", cells[:, :-1], cells[:, -1]


@dataclass(frozen=True, eq=False)
class Split:
    """Rows of a table for training and for the test; the columns are numbers or text."""

    X: np.ndarray
    y: np.ndarray
    X_test: np.ndarray
    y_test: np.ndarray
    texts: list[int]  # columns
    is_regression: bool

    @staticmethod
    def of(name: str, X: np.ndarray, y: np.ndarray, split: int) -> "Split":
        order = np.random.default_rng(split).permutation(len(y))
        test, train = np.split(order, [int(TEST_SHARE * len(y))])
        texts = Split.texts_of(name, X)
        is_regression = name in tabular.REGRESSIONS
        return Split(X[train], y[train], X[test], y[test], texts, is_regression)

    @staticmethod
    def texts_of(name: str, X: np.ndarray) -> list[int]:
        """Return the columns of categories."""
        is_text = name in tabular.CATEGORICAL
        return [j for j in range(X.shape[1]) if is_text or not all(map(is_number, X[:500, j]))]

    def write(self, folder: Path) -> tuple[Path, Path]:
        """Write CSV files; categories of digits get a letter."""
        paths = folder / "train.csv", folder / "test.csv"
        parts = (self.X, self.y), (self.X_test, self.y_test)
        for path, (X, y) in zip(paths, parts, strict=True):
            X = X.copy() if self.texts else X
            for j in self.texts:
                X[:, j] = [f"v{cell}" if is_number(cell) else cell for cell in X[:, j]]
            with path.open("w", newline="", encoding="utf-8") as file:
                writer = csv.writer(file)
                writer.writerow([*(f"c{j}" for j in range(X.shape[1])), "target"])
                writer.writerows([*row, label] for row, label in zip(X.tolist(), y, strict=True))
        return paths

    def task(self, metric: str | None) -> tuple[Task, np.ndarray]:
        """Return what learners are given, and test targets; categories and classes are indices."""
        both, labels = np.concatenate((self.X, self.X_test)), [*self.y, *self.y_test]
        X = np.empty(both.shape)
        for j, column in enumerate(both.T):
            if j in self.texts:
                X[:, j] = indices(column.astype(str))
            else:
                X[:, j] = [float(cell) if is_number(cell) else np.nan for cell in column]
        y = np.array(labels, float) if self.is_regression else indices(labels)
        n, n_classes = len(self.y), 0 if self.is_regression else int(y.max()) + 1
        return Task(X[:n], y[:n], X[n:], self.texts, n_classes, metric), y[n:]


def indices(labels: list[str]) -> np.ndarray:
    return np.unique(labels, return_inverse=True)[1]


def is_number(cell: str | float) -> bool:
    try:
        float(cell)
    except ValueError:
        return False
    return True


def easy(split: Split, seconds: float, metric: str | None) -> Outcome:
    """Run dcsvm-easy and dcsvm-predict on files of the split."""
    with tempfile.TemporaryDirectory(prefix="dcsvm-easy-") as name:
        train, test = split.write(Path(name))
        model, output = f"{train}.model", Path(name, "out")
        more = ["--metric", metric, "-b", 1] if metric else []
        kind = ["-s", 3 if split.is_regression else 0]
        program = measure.beside_python("dcsvm-easy")
        words = [*more, *kind, "--time-limit", seconds, "--model", model, train]
        report = measure.reported(program, *words, good=(0, 3))
        predict = measure.beside_python("dcsvm-predict")
        predicted = measure.reported(predict, *more[2:], test, model, output)
        n_bytes = Path(model).stat().st_size
    found = predicted["metrics"]
    if metric:
        error = found[METRICS[metric]]
        error = 1 - error if metric == "auc" else error
    else:
        error = found["rmse"] if split.is_regression else 1 - found["accuracy"]
    setting = report["selection"]["command"].removeprefix("dcsvm-train ").split(" --weights")[0]
    version = measure.run(program, "--version").stdout.split()[1]
    return Outcome(
        version, error, report["wall"], predicted["wall"], n_bytes,
        " ".join(one for one in setting.split() if "train.csv" not in one),
    )  # fmt: skip


def peer(method: str, split: Split, seconds: float, options) -> Outcome | None:
    """Fit a learner in a process of its own; None if it is missing, fails or takes too long."""
    python = options.pythons.get(method, sys.executable)
    own = LEARNERS[method][2]
    with tempfile.TemporaryDirectory(prefix="dcsvm-easy-") as name:
        folder = Path(name)
        task, y_test = split.task(options.metric)
        task.save(folder)
        script = Path(__file__).with_name("learners.py")
        command = [python, script, method, folder, seconds if own is None else own]
        finished = process.run(command, timeout=TIMEOUT, threads=None)
        if finished.timed_out or finished.code:
            if finished.code != MISSING:
                end = "too slow" if finished.timed_out else f"exit status {finished.code}"
                measure.talk(f"{method}: {finished.stderr.strip()[-300:] or end}")
            return None
        about = json.loads(finished.stdout.splitlines()[-1])
        predicted = np.load(folder / "predicted.npy")
        if options.metric:
            error = tabular.loss_of(options.metric, np.load(folder / "probabilities.npy"), y_test)
        else:
            error = tabular.error_of(split.is_regression, predicted, y_test)
    return Outcome(about["version"], error, about["seconds"], about["predict_seconds"],
                   about["bytes"])  # fmt: skip


if __name__ == "__main__":
    main()
