"""Compare dcsvm-easy with boosted trees on whole tables, within the same seconds.

--raw has tables/*.tsv.gz with the column `target` and the raw census-income files. Three quarters
of the rows of a table are for training, the others for the test: error rate or RMSE on the test
rows, and seconds of the whole command or fit. LightGBM, tuned: random settings with early stopping
on a fifth of the rows, in the seconds that dcsvm-easy took; the best one is fitted again on all
rows. A peer that is not installed is left out.
"""

import csv
import lzma
import tempfile
import time
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import measure
import numpy as np
import tabular

COLUMNS = ("table", "split", "method", "error", "seconds", "setting")
FILES = {"letter": ("letter", "letter.t"), "cpu_small": ("cpu_small.tr", "cpu_small.te"),
         "covtype": ("covtype.tr", "covtype.te")}  # fmt: skip
TEST_SHARE = 0.25


def main() -> None:
    parser = measure.parser_of(__doc__, "raw data out redraw only splits")
    parser.add_argument("--seconds", type=float, default=60.0, help="--time-limit of dcsvm-easy")
    parser.add_argument("--peers", nargs="*", default=[*PEERS], choices=PEERS, help="of these")
    options = parser.parse_args()
    warnings.simplefilter("ignore")  # LightGBM's
    lines = measure.tabled(options, COLUMNS, lines_of(options))
    for method, ratio in tabular.relative(lines, "error", "LightGBM").items():
        print(f"{method:20s} {ratio:.3f}")


def lines_of(options) -> Iterator[tuple]:
    for name, X, y in tables(options):
        for number in range(options.splits):
            split = Split.of(name, X, y, number)
            *found, setting = easy(split, options.seconds)
            outcomes = {"dcsvm-easy": found}
            for method in options.peers:
                outcome = tabular.if_installed(PEERS[method], split, found[1])
                outcomes |= {method: outcome} if outcome else {}
            for method, (error, seconds) in outcomes.items():
                text = setting if method == "dcsvm-easy" else ""
                yield name, number, method, f"{error:.5g}", f"{seconds:.1f}", text
            said = ", ".join(f"{one} {e:.4g} ({s:.0f} s)" for one, (e, s) in outcomes.items())
            print(f"{name} {number}, {len(split.y)} rows: {said}", flush=True)


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
        texts = [
            j
            for j in range(X.shape[1])
            if name in tabular.CATEGORICAL or not all(map(is_number, X[:500, j]))
        ]
        is_regression = name in tabular.REGRESSIONS
        return Split(X[train], y[train], X[test], y[test], texts, is_regression)

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

    def arrays(self) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        """Return X, y, X_test, y_test as numbers; categories and classes are indices."""
        both, labels = np.concatenate((self.X, self.X_test)), [*self.y, *self.y_test]
        X = np.empty(both.shape)
        for j, column in enumerate(both.T):
            if j in self.texts:
                X[:, j] = np.unique(column.astype(str), return_inverse=True)[1]
            else:
                X[:, j] = [float(cell) if is_number(cell) else np.nan for cell in column]
        y = np.array(labels, float) if self.is_regression else indices(labels)
        n = len(self.y)
        return X[:n], y[:n], X[n:], y[n:]

    def error(self, predicted: np.ndarray, y: np.ndarray) -> float:
        return tabular.error_of(self.is_regression, predicted, y)


def indices(labels: list[str]) -> np.ndarray:
    return np.unique(labels, return_inverse=True)[1]


def is_number(cell: str | float) -> bool:
    try:
        float(cell)
    except ValueError:
        return False
    return True


def easy(split: Split, seconds: float) -> tuple[float, float, str]:
    """Return the test error, the seconds of the command, and the setting."""
    with tempfile.TemporaryDirectory(prefix="dcsvm-easy-") as name:
        train, test = split.write(Path(name))
        model, output = f"{train}.model", Path(name, "out")
        program = measure.beside_python("dcsvm-easy")
        words = ["--time-limit", seconds, "--model", model, train]
        report = measure.reported(program, *words, good=(0, 3))
        predict = measure.beside_python("dcsvm-predict")
        found = measure.reported(predict, test, model, output)["metrics"]
        setting = report["selection"]["command"]
    error = found["rmse"] if split.is_regression else 1 - found["accuracy"]
    options = setting.removeprefix("dcsvm-train ").split(" --weights")[0].split()
    return error, report["wall"], " ".join(one for one in options if "train.csv" not in one)


def default_lightgbm(split: Split, _: float) -> tuple[float, float]:
    X, y, X_test, y_test = split.arrays()
    model, start = tabular.lightgbm_of(split.is_regression), time.perf_counter()
    model.fit(X, y, categorical_feature=split.texts)
    return split.error(model.predict(X_test), y_test), time.perf_counter() - start


def tuned_lightgbm(split: Split, seconds: float) -> tuple[float, float]:
    X, y, X_test, y_test = split.arrays()
    rng, start = np.random.default_rng(0), time.perf_counter()
    held, how = rng.permutation(len(y)) < len(y) // 5, {"categorical_feature": split.texts}
    parts = (X[~held], y[~held]), (X[held], y[held])
    found = []
    for model, settings in tabular.random_boosters(rng, 8, split.is_regression, *parts, **how):
        settings["n_estimators"] = model.best_iteration_ or 100
        found.append((split.error(model.predict(X[held]), y[held]), settings))
        if time.perf_counter() - start >= 0.8 * seconds:
            break
    best = min(found, key=lambda one: one[0])[1]
    fitted = tabular.lightgbm_of(split.is_regression, **best).fit(X, y, **how)
    return split.error(fitted.predict(X_test), y_test), time.perf_counter() - start


def default_catboost(split: Split, _: float) -> tuple[float, float]:
    import catboost

    X, y, X_test, y_test = split.arrays()
    kind = catboost.CatBoostRegressor if split.is_regression else catboost.CatBoostClassifier
    rows, tests = (one.astype(object) for one in (X, X_test))
    for one in (rows, tests):
        one[:, split.texts] = one[:, split.texts].astype(int)
    start, how = time.perf_counter(), {"allow_writing_files": False, "cat_features": split.texts}
    fitted = kind(verbose=0, thread_count=2, **how).fit(rows, y)
    return split.error(fitted.predict(tests).reshape(-1), y_test), time.perf_counter() - start


PEERS = {
    "LightGBM": default_lightgbm,
    "LightGBM, tuned": tuned_lightgbm,
    "CatBoost": default_catboost,
}

if __name__ == "__main__":
    main()
