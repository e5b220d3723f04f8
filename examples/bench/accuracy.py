"""Compare kernels, scalings and learned weights with LightGBM and scikit-learn's SVC on tables.

    python accuracy.py --raw DIR --data DIR --out PREFIX [--only NAME] [--splits 2]

RAW has tables/*.tsv.gz with the column `target`; DATA is the output folder of datasets.py. Each
table is split anew into training, held-out and test rows. Settings are chosen on the held-out rows,
and nothing is trained again on all rows. Classification: error rate; regression: RMSE in standard
deviations of the target. PREFIX.csv has a line for each table, split and method, PREFIX.png is a
plot of the mean error relative to rbf on [-1, 1]. A peer that is not installed is left out.
"""

import argparse
import csv
import gzip
import sys
import time
import warnings
from dataclasses import dataclass, replace
from pathlib import Path

import csv_table
import machine
import numpy as np
from boosters import random_settings

import dcsvm
from dcsvm.data.dataset import Dataset

C_LIMIT, N_SEARCHED, N_BOOSTERS, SECONDS = 1000.0, 9, 30, 30.0
# gamma of a start, relative to the median distance
STARTS = {"rbf": "2/median", "laplacian": "2/median", "exponential": "1/median"}
REGRESSIONS = {"houses", "wind", "cpu_small"}
CATEGORICAL = {"connect_4"}
FILES = {"letter": "letter", "cpu_small": "cpu_small.tr", "covtype": "covtype.20000.tr",
         "census": "census.tr"}  # fmt: skip
TEST_FILES = {"covtype": "covtype.te"}
SIZES = {"covtype": (16_000, 4000, 8000), "census": (3000, 1500, 5000)}  # train, held, test
SIZE = (3000, 1000, 5000)


@dataclass(frozen=True, eq=False)
class Table:
    """Rows of a split: training, held-out and test rows with their targets."""

    X: np.ndarray
    y: np.ndarray
    X_held: np.ndarray
    y_held: np.ndarray
    X_test: np.ndarray
    y_test: np.ndarray
    is_regression: bool

    @staticmethod
    def of(name: str, X: np.ndarray, y: np.ndarray, split: int) -> "Table":
        order = np.random.default_rng(split).permutation(len(y))
        n_train, n_held, n_test = SIZES.get(name, SIZE)
        n_train = min(n_train, int(0.6 * len(y)))
        n_held = min(n_held, int(0.2 * len(y)))
        train, held, test = np.split(
            order[: n_train + n_held + n_test], [n_train, n_train + n_held]
        )
        is_regression = name in REGRESSIONS
        if is_regression:
            y = (y - y[train].mean()) / y[train].std()
        return Table(X[train], y[train], X[held], y[held], X[test], y[test], is_regression)

    def errors(self, predict) -> tuple[float, float]:
        """Return the errors on the held-out and the test rows."""
        pairs = (self.X_held, self.y_held), (self.X_test, self.y_test)
        return tuple(self._error(predict(X), y) for X, y in pairs)

    def _error(self, found, y) -> float:
        if self.is_regression:
            return float(np.sqrt(np.mean((found - y) ** 2)))
        return float(np.mean(found != y))


@dataclass(frozen=True)
class Setting:
    kernel: str
    scale: str
    C: float
    gamma: float  # times that of the start
    epsilon: float = 0.05
    weights: tuple[float, ...] | None = None


class Trained:
    """A machine of a setting with its held-out and test errors."""

    def __init__(self, table: Table, setting: Setting, learn: bool = False):
        start = float(STARTS[setting.kernel].split("/")[0])
        given = None if setting.weights is None else np.array(setting.weights)
        options = (
            {"svm_type": "epsilon_svr", "epsilon": setting.epsilon} if table.is_regression else {}
        )
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model = dcsvm.train(
                table.X, table.y, kernel=setting.kernel, C=setting.C, scale=setting.scale,
                gamma=f"{start * setting.gamma}/median", threads=2,
                feature_weights="learn" if learn else given, **options,
            )  # fmt: skip
        self.held, self.test = table.errors(model.predict)
        if learn:
            weights = np.zeros(table.X.shape[1])
            weights[model.scaling.columns] = model.scaling.weights
            setting = replace(setting, weights=tuple(weights))
        self.setting = setting


def best_of(several: list[Trained]) -> Trained:
    """Return the machine of the smallest held-out error, then the smallest gamma and C."""
    return min(several, key=lambda one: (one.held, one.setting.gamma, one.setting.C))


def searched(table: Table, start: Trained) -> Trained:
    """Search C and gamma by a pattern, at most N_SEARCHED trainings.

    The factors are 4 and 3, and their square roots once no neighbour is better.
    """
    known, best, power = {(start.setting.C, start.setting.gamma): start}, start, 1.0
    while power > 0.4:
        s, steps = best.setting, ((1, 3.0), (4.0, 1), (1, 1 / 3), (0.25, 1))
        for c_factor, gamma_factor in steps:
            key = min(s.C * c_factor**power, C_LIMIT), s.gamma * gamma_factor**power
            if len(known) <= N_SEARCHED and key not in known:
                known[key] = Trained(table, replace(s, C=key[0], gamma=key[1]))
        found = best_of(list(known.values()))
        power = power if found is not best else power / 2
        best = found
        if len(known) > N_SEARCHED:
            break
    return best


def with_epsilon(table: Table, found: Trained) -> Trained:
    """Choose epsilon of a regression by the held-out error: a tenth of it."""
    if not table.is_regression:
        return found
    return Trained(table, replace(found.setting, epsilon=0.1 * found.held))


def machines(table: Table) -> dict[str, Trained]:
    """Train all machines of a table, by method."""
    screened = {
        (kernel, scale): best_of(
            [Trained(table, Setting(kernel, scale, C, 1.0)) for C in (2.0, 16.0)]
        )
        for kernel in STARTS
        for scale in ("auto", "quantile")
    }
    methods = {"rbf": searched(table, with_epsilon(table, screened["rbf", "auto"]))}
    for kernel in STARTS:
        start = best_of([screened[kernel, scale] for scale in ("auto", "quantile")])
        start = with_epsilon(table, start)
        plain = searched(table, start)
        methods[f"{kernel}, scaling chosen"] = plain
        if kernel != "rbf":
            weighted = searched(table, Trained(table, start.setting, learn=True))
            methods[f"{kernel}, weights"] = best_of([plain, weighted])
    start = best_of([one for (kernel, _), one in screened.items() if kernel != "rbf"])
    start = with_epsilon(table, start)
    weighted = best_of([start, Trained(table, start.setting, learn=True)])
    methods["procedure"] = searched(table, weighted)
    return methods


def booster(table: Table) -> tuple[float, float] | None:
    """Return the errors of LightGBM, the best of random settings with early stopping."""
    try:
        import lightgbm
    except ImportError:
        return None
    rng, best, start = np.random.default_rng(0), (np.inf, np.inf), time.perf_counter()
    kind = lightgbm.LGBMRegressor if table.is_regression else lightgbm.LGBMClassifier
    for _ in range(N_BOOSTERS):
        options = random_settings(rng, 7)
        model = kind(n_estimators=1500, verbose=-1, n_jobs=2, **options)
        stop = lightgbm.early_stopping(50, verbose=False)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model.fit(table.X, table.y, eval_set=[(table.X_held, table.y_held)], callbacks=[stop])
            best = min(best, table.errors(model.predict))
        if time.perf_counter() - start > SECONDS:
            break
    return best


def default_svc(table: Table) -> tuple[float, float] | None:
    """Return the errors of scikit-learn's SVC or SVR by default, on [0, 1]."""
    try:
        from sklearn.pipeline import make_pipeline
        from sklearn.preprocessing import MinMaxScaler
        from sklearn.svm import SVC, SVR
    except ImportError:
        return None
    fitted = make_pipeline(MinMaxScaler(), SVR() if table.is_regression else SVC())
    return table.errors(fitted.fit(table.X, table.y).predict)


def tables(raw: Path, data: Path, only: str):
    """Yield (name, X, y) of all tables that are there."""
    for path in sorted((raw / "tables").glob("*.tsv.gz")):
        name = path.name.removesuffix(".tsv.gz")
        if only in name:
            with gzip.open(path, "rt", encoding="utf-8") as file:
                header, *lines = csv.reader(file, delimiter="\t")
            values, target = np.array(lines, float), header.index("target")
            X, y = np.delete(values, target, axis=1), values[:, target]
            if name in CATEGORICAL:  # |u - v| of one-hot columns times 1/2 is 1
                X = 0.5 * np.hstack([X[:, [k]] == np.unique(X[:, k]) for k in range(X.shape[1])])
            yield name, X, y
    for name, file_name in FILES.items():
        if only in name and (data / file_name).exists():
            found = [Dataset.read(data / file_name)]
            if name in TEST_FILES:
                found.append(Dataset.read(data / TEST_FILES[name]))
            X = np.concatenate([np.asarray(one.rows.features, np.float64) for one in found])
            yield name, X, np.concatenate([one.labels for one in found])


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--raw", type=Path, required=True)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--out", type=Path, required=True, help="beginning of the output files")
    parser.add_argument("--only", default="", help="tables with this in their name")
    parser.add_argument("--splits", type=int, default=2)
    options = parser.parse_args()
    lines = [("table", "split", "method", "held", "test", "setting")]
    for name, X, y in tables(options.raw, options.data, options.only):
        for split in range(options.splits):
            start, table = time.perf_counter(), Table.of(name, X, y, split)
            found = machines(table)
            rows = [(method, one.held, one.test, describe(one)) for method, one in found.items()]
            for method, peer in (("LightGBM", booster), ("SVC, default", default_svc)):
                errors = peer(table)
                rows += [] if errors is None else [(method, *errors, "")]
            lines += [(name, split, method, f"{held:.5f}", f"{test:.5f}", setting)
                      for method, held, test, setting in rows]  # fmt: skip
            csv_table.write(options.out.with_suffix(".csv"), machine.describe("dcsvm-train"), lines)
            said = ", ".join(f"{method} {test:.4f}" for method, _, test, _ in rows)
            print(f"{name} {split} ({time.perf_counter() - start:.0f} s): {said}", flush=True)
    for method, ratio in relative(lines[1:]).items():
        print(f"{method:28s} {ratio:.3f}")
    plot(relative(lines[1:]), options.out.with_suffix(".png"))
    return 0


def describe(one: Trained) -> str:
    s = one.setting
    return f"{s.kernel} {s.scale} C={s.C:g} gamma={s.gamma:.3g} weights={s.weights is not None}"


def relative(lines: list[tuple]) -> dict[str, float]:
    """Return the geometric mean of each method's test error over that of rbf."""
    base = {line[:2]: float(line[4]) for line in lines if line[2] == "rbf"}
    ratios: dict[str, list[float]] = {}
    for table, split, method, _, test, _ in lines:
        if base[table, split] > 0 and float(test) > 0:
            ratios.setdefault(method, []).append(float(test) / base[table, split])
    return {method: float(np.exp(np.mean(np.log(several)))) for method, several in ratios.items()}


def plot(means: dict[str, float], path: Path) -> None:
    try:
        from matplotlib.figure import Figure
    except ImportError:
        return
    figure = Figure(figsize=(7, 3.5), layout="constrained")
    axes = figure.subplots()
    names = sorted(means, key=means.__getitem__, reverse=True)
    axes.barh(names, [means[name] for name in names], color="tab:blue")
    axes.axvline(1.0, color="black", linewidth=0.8)
    axes.set_xlabel("test error relative to rbf on [-1, 1] (geometric mean)")
    figure.savefig(path, dpi=120)


if __name__ == "__main__":
    sys.exit(main())
