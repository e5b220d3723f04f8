"""Compare dcsvm-easy with boosted trees on whole tables, within the same seconds.

    python easy.py --raw DIR --data DIR --out PREFIX [--only NAME] [--splits 2] [--seconds 60]

RAW has tables/*.tsv.gz with the column `target` and the raw census-income files; DATA is the output
folder of datasets.py. Three quarters of the rows of a table are for training, the others for the
test. The columns are those of PREFIX.csv: error rate or RMSE on the test rows, and seconds of the
whole command or fit. LightGBM, tuned: random settings with early stopping on a fifth of the rows,
in the seconds that dcsvm-easy took; the best one is fitted again on all rows. A peer that is not
installed is left out.
"""

from __future__ import annotations

import argparse
import csv
import gzip
import json
import lzma
import subprocess
import sys
import tempfile
import time
import warnings
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import csv_table
import machine
import numpy as np
from boosters import random_settings

from dcsvm.data.dataset import Dataset

REGRESSIONS = {"houses", "wind", "cpu_small"}
CATEGORICAL = {"connect_4"}
FILES = {"letter": ("letter", "letter.t"), "cpu_small": ("cpu_small.tr", "cpu_small.te"),
         "covtype": ("covtype.tr", "covtype.te")}  # fmt: skip
TEST_SHARE = 0.25
PEERS = ("LightGBM", "LightGBM, tuned", "CatBoost")
PROGRAMS = Path(sys.executable).parent


@dataclass(frozen=True, eq=False)
class Split:
    """Rows of a table, text columns included, with the label in the last column."""

    train: list[list[str]]
    test: list[list[str]]
    is_text: list[bool]
    is_regression: bool

    @staticmethod
    def of(rows: list[list[str]], name: str, split: int) -> Split:
        order = np.random.default_rng(split).permutation(len(rows))
        n_test = int(TEST_SHARE * len(rows))
        is_text = [
            name in CATEGORICAL
            or any(not is_number(rows[k][j]) for k in range(min(len(rows), 500)))
            for j in range(len(rows[0]) - 1)
        ]
        test, train = np.split(order, [n_test])
        return Split(
            [rows[k] for k in train], [rows[k] for k in test], is_text, name in REGRESSIONS
        )

    def write(self, folder: Path) -> tuple[Path, Path]:
        """Write CSV files; categories of digits get a letter."""
        names = [f"c{j}" for j in range(len(self.is_text))] + ["target"]
        paths = folder / "train.csv", folder / "test.csv"
        for path, rows in zip(paths, (self.train, self.test), strict=True):
            with path.open("w", newline="", encoding="utf-8") as file:
                writer = csv.writer(file)
                writer.writerow(names)
                for row in rows:
                    cells = [
                        f"v{cell}" if text and is_number(cell) else cell
                        for cell, text in zip(row, [*self.is_text, False], strict=True)
                    ]
                    writer.writerow(cells)
        return paths

    def arrays(self) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        """Return X, y, X_test, y_test as numbers; categories and classes are indices."""
        both = [*self.train, *self.test]
        columns = [
            np.unique([row[j] for row in both], return_inverse=True)[1].astype(float)
            if text
            else np.array([float(row[j]) if is_number(row[j]) else np.nan for row in both])
            for j, text in enumerate(self.is_text)
        ]
        labels = [row[-1] for row in both]
        y = np.array(labels, float) if self.is_regression else np.unique(
            labels, return_inverse=True
        )[1]  # fmt: skip
        X, n = np.column_stack(columns), len(self.train)
        return X[:n], y[:n], X[n:], y[n:]

    def error(self, predicted: np.ndarray, y: np.ndarray) -> float:
        if self.is_regression:
            return float(np.sqrt(np.mean((predicted - y) ** 2)))
        return float(np.mean(predicted != y))


def is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def easy(split: Split, seconds: float) -> tuple[float, float, str]:
    """Return the test error, the seconds of the command, and the setting."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        train, test = split.write(folder)
        start = time.perf_counter()
        command = [PROGRAMS / "dcsvm-easy", "-q", "--time-limit", str(seconds), train]
        done = subprocess.run(
            [*command, "--report", "report.json"], cwd=folder, capture_output=True, text=True
        )
        taken = time.perf_counter() - start
        if done.returncode not in (0, 3):
            raise RuntimeError(done.stderr)
        command = [PROGRAMS / "dcsvm-predict", "-q", test, "train.csv.model", "out"]
        subprocess.run([*command, "--report", "test.json"], cwd=folder, check=True)
        found = json.loads((folder / "test.json").read_text())["metrics"]
        setting = json.loads((folder / "report.json").read_text())["selection"]["command"]
        error = found["rmse"] if split.is_regression else 1 - found["accuracy"]
        options = setting.removeprefix("dcsvm-train ").split(" --weights")[0].split()
        return error, taken, " ".join(one for one in options if "train.csv" not in one)


def default_lightgbm(split: Split) -> tuple[float, float] | None:
    try:
        import lightgbm
    except ImportError:
        return None
    X, y, X_test, y_test = split.arrays()
    kind = lightgbm.LGBMRegressor if split.is_regression else lightgbm.LGBMClassifier
    start = time.perf_counter()
    fitted = kind(verbose=-1, n_jobs=2).fit(X, y, categorical_feature=text_columns(split))
    return split.error(fitted.predict(X_test), y_test), time.perf_counter() - start


def text_columns(split: Split) -> list[int]:
    return np.flatnonzero(split.is_text).tolist()


def tuned_lightgbm(split: Split, seconds: float) -> tuple[float, float] | None:
    try:
        import lightgbm
    except ImportError:
        return None
    X, y, X_test, y_test = split.arrays()
    rng, start = np.random.default_rng(0), time.perf_counter()
    kind = lightgbm.LGBMRegressor if split.is_regression else lightgbm.LGBMClassifier
    held = rng.permutation(len(y)) < len(y) // 5
    texts = text_columns(split)
    best: tuple[float, dict] = (np.inf, {})
    while time.perf_counter() - start < 0.8 * seconds or not best[1]:
        options = random_settings(rng, 8)
        stop = lightgbm.early_stopping(50, verbose=False)
        model = kind(n_estimators=1500, verbose=-1, n_jobs=2, **options)
        model.fit(
            X[~held], y[~held], eval_set=[(X[held], y[held])], callbacks=[stop],
            categorical_feature=texts,
        )  # fmt: skip
        error = split.error(model.predict(X[held]), y[held])
        best = min(best, (error, options | {"n_estimators": model.best_iteration_ or 100}),
                   key=lambda one: one[0])  # fmt: skip
    fitted = kind(verbose=-1, n_jobs=2, **best[1]).fit(X, y, categorical_feature=texts)
    return split.error(fitted.predict(X_test), y_test), time.perf_counter() - start


def default_catboost(split: Split) -> tuple[float, float] | None:
    try:
        import catboost
    except ImportError:
        return None
    X, y, X_test, y_test = split.arrays()
    kind = catboost.CatBoostRegressor if split.is_regression else catboost.CatBoostClassifier
    texts = text_columns(split)
    rows, tests = (one.astype(object) for one in (X, X_test))
    for one in (rows, tests):
        one[:, texts] = one[:, texts].astype(int)
    start = time.perf_counter()
    fitted = kind(verbose=0, thread_count=2, allow_writing_files=False, cat_features=texts).fit(
        rows, y
    )
    return split.error(fitted.predict(tests).reshape(-1), y_test), time.perf_counter() - start


def tables(raw: Path, data: Path, only: str):
    """Yield (name, rows) of all tables that are there; the label is the last cell of a row."""
    for path in sorted((raw / "tables").glob("*.tsv.gz")):
        name = path.name.removesuffix(".tsv.gz")
        if only in name:
            with gzip.open(path, "rt", encoding="utf-8") as file:
                header, *lines = csv.reader(file, delimiter="\t")
            target = header.index("target")
            yield name, [[*row[:target], *row[target + 1 :], row[target]] for row in lines]
    for name, files in FILES.items():
        if only in name and (data / files[0]).exists():
            found = [Dataset.read(data / one) for one in files if (data / one).exists()]
            rows = []
            for one in found:
                X = one.rows.features.tolist()
                rows += [
                    [*map(repr, row), f"{label:g}"]
                    for row, label in zip(X, one.labels, strict=True)
                ]
            yield name, rows
    path = raw / "census-income.data.xz"
    if only in "census" and path.exists():
        with lzma.open(path, "rt", encoding="latin-1") as file:
            lines = [line.strip().rstrip(".").split(", ") for line in file if line.strip()]
        yield "census", lines


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--raw", type=Path, required=True)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--out", type=Path, required=True, help="beginning of the output file")
    parser.add_argument("--only", default="", help="tables with this in their name")
    parser.add_argument("--splits", type=int, default=2)
    parser.add_argument("--seconds", type=float, default=60.0, help="--time-limit of dcsvm-easy")
    parser.add_argument("--peers", nargs="*", default=PEERS, choices=PEERS)
    options = parser.parse_args()
    warnings.simplefilter("ignore")  # LightGBM's
    lines = [("table", "split", "method", "error", "seconds", "setting")]
    for name, rows in tables(options.raw, options.data, options.only):
        for number in range(options.splits):
            split = Split.of(rows, name, number)
            error, taken, setting = easy(split, options.seconds)
            found = {"dcsvm-easy": (error, taken)}
            peers = {
                "LightGBM": default_lightgbm,
                "LightGBM, tuned": partial(tuned_lightgbm, seconds=taken),
                "CatBoost": default_catboost,
            }
            outcomes = {method: peers[method](split) for method in options.peers}
            found |= {method: one for method, one in outcomes.items() if one is not None}
            for method, (error, seconds) in found.items():
                text = setting if method == "dcsvm-easy" else ""
                lines.append((name, number, method, f"{error:.5g}", f"{seconds:.1f}", text))
            csv_table.write(options.out.with_suffix(".csv"), machine.describe("dcsvm-easy"), lines)
            said = ", ".join(f"{one} {e:.4g} ({s:.0f} s)" for one, (e, s) in found.items())
            print(f"{name} {number}, {len(split.train)} rows: {said}", flush=True)
    for method, ratio in relative(lines[1:]).items():
        print(f"{method:20s} {ratio:.3f}")
    return 0


def relative(lines: list[tuple]) -> dict[str, float]:
    """Return the geometric mean of each method's error over that of LightGBM's defaults."""
    base = {line[:2]: float(line[3]) for line in lines if line[2] == "LightGBM"}
    ratios: dict[str, list[float]] = {}
    for name, split, method, error, *_ in lines:
        if (name, split) in base:
            ratios.setdefault(method, []).append(float(error) / base[name, split])
    return {method: float(np.exp(np.mean(np.log(several)))) for method, several in ratios.items()}


if __name__ == "__main__":
    sys.exit(main())
