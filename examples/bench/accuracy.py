"""Compare kernels, scalings and learned weights with LightGBM and scikit-learn's SVC on tables.

--raw has tables/*.tsv.gz with the column `target`. Each table is split anew into training, held-out
and test rows. Settings are chosen on the held-out rows, and nothing is trained again on all rows.
Classification: error rate; regression: RMSE in standard deviations of the target. The table has a
line for each data set, split and method, the picture the mean error relative to rbf on [-1, 1]. A
peer that is not installed is left out.
"""

import time
import warnings
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path

import figures
import measure
import numpy as np
import tabular

import dcsvm

COLUMNS = ("table", "split", "method", "held", "test", "setting")
C_LIMIT, N_SEARCHED, N_BOOSTERS, SECONDS = 1000.0, 9, 30, 30.0
STARTS = {"rbf": 2, "laplacian": 2, "exponential": 1}  # gamma, over the median distance
FILES = {"letter": ("letter",), "cpu_small": ("cpu_small.tr",), "census": ("census.tr",),
         "covtype": ("covtype.20000.tr", "covtype.te")}  # fmt: skip
SIZES = {"covtype": (16_000, 4000, 8000), "census": (3000, 1500, 5000)}  # train, held, test
SIZE = (3000, 1000, 5000)


def main() -> None:
    options = measure.parser_of(__doc__, "raw data out redraw only splits").parse_args()
    warnings.simplefilter("ignore")  # LightGBM's, and ours of unscaled data
    lines = measure.tabled(options, COLUMNS, lines_of(options), picture)
    for method, ratio in tabular.relative(lines, "test", "rbf").items():
        print(f"{method:28s} {ratio:.3f}")


def lines_of(options) -> Iterator[tuple]:
    for name, X, y in tabular.tables(options.raw, options.data, FILES, options.only):
        if name in tabular.CATEGORICAL:  # |u - v| of one-hot columns times 1/2 is 1
            X = 0.5 * np.hstack([X[:, [k]] == np.unique(X[:, k]) for k in range(X.shape[1])])
        for split in range(options.splits):
            table, start = Table.of(name, X.astype(float), y.astype(float), split), time.time()
            found = [(method, one.held, one.test, str(one)) for method, one in machines(table)]
            for method, peer in (("LightGBM", booster), ("SVC, default", default_svc)):
                errors = tabular.if_installed(peer, table)
                found += [(method, *errors, "")] if errors else []
            for method, held, test, setting in found:
                yield name, split, method, f"{held:.5f}", f"{test:.5f}", setting
            said = ", ".join(f"{method} {test:.4f}" for method, _, test, _ in found)
            print(f"{name} {split} ({time.time() - start:.0f} s): {said}", flush=True)


@dataclass(frozen=True, eq=False)
class Table:
    """Rows of a split: (X, y) of training, held-out and test rows."""

    train: tuple[np.ndarray, np.ndarray]
    held: tuple[np.ndarray, np.ndarray]
    test: tuple[np.ndarray, np.ndarray]
    is_regression: bool

    @staticmethod
    def of(name: str, X: np.ndarray, y: np.ndarray, split: int) -> "Table":
        order = np.random.default_rng(split).permutation(len(y))
        n_train, n_held, n_test = SIZES.get(name, SIZE)
        n_train, n_held = min(n_train, int(0.6 * len(y))), min(n_held, int(0.2 * len(y)))
        ends = np.cumsum([n_train, n_held, n_test])
        parts = np.split(order[: ends[2]], ends[:2])
        is_regression = name in tabular.REGRESSIONS
        if is_regression:
            y = (y - y[parts[0]].mean()) / y[parts[0]].std()
        return Table(*((X[part], y[part]) for part in parts), is_regression)

    def errors(self, predict) -> tuple[float, float]:
        """Return the errors on the held-out and the test rows."""
        pairs = self.held, self.test
        return tuple(tabular.error_of(self.is_regression, predict(X), y) for X, y in pairs)


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
        start, weights, options = STARTS[setting.kernel], setting.weights, {}
        if table.is_regression:
            options = {"svm_type": "epsilon_svr", "epsilon": setting.epsilon}
        if weights is not None:
            options["feature_weights"] = np.array(weights)
        if learn:
            options["feature_weights"] = "learn"
        model = dcsvm.train(
            *table.train, kernel=setting.kernel, C=setting.C, scale=setting.scale,
            gamma=f"{float(start * setting.gamma)}/median", threads=2, **options,
        )  # fmt: skip
        self.held, self.test = table.errors(model.predict)
        if learn:
            weights = np.zeros(table.train[0].shape[1])
            weights[model.scaling.columns] = model.scaling.weights
            setting = replace(setting, weights=tuple(weights))
        self.setting = setting

    def __str__(self) -> str:
        s = self.setting
        return f"{s.kernel} {s.scale} C={s.C:g} gamma={s.gamma:.3g} weights={s.weights is not None}"


def best_of(several: list[Trained]) -> Trained:
    """Return the machine of the smallest held-out error, then the smallest gamma and C."""
    return min(several, key=lambda one: (one.held, one.setting.gamma, one.setting.C))


def searched(table: Table, start: Trained) -> Trained:
    """Search C and gamma by a pattern, at most N_SEARCHED trainings.

    The factors are 4 and 3, and their square roots once no neighbour is better.
    """
    known, best, power = {(start.setting.C, start.setting.gamma): start}, start, 1.0
    while power > 0.4 and len(known) <= N_SEARCHED:
        s, steps = best.setting, ((1, 3.0), (4.0, 1), (1, 1 / 3), (0.25, 1))
        for c_factor, gamma_factor in steps:
            key = min(s.C * c_factor**power, C_LIMIT), s.gamma * gamma_factor**power
            if len(known) <= N_SEARCHED and key not in known:
                known[key] = Trained(table, replace(s, C=key[0], gamma=key[1]))
        found = best_of(list(known.values()))
        power = power if found is not best else power / 2
        best = found
    return best


def with_epsilon(table: Table, found: Trained) -> Trained:
    """Choose epsilon of a regression by the held-out error: a tenth of it."""
    if not table.is_regression:
        return found
    return Trained(table, replace(found.setting, epsilon=0.1 * found.held))


def machines(table: Table) -> Iterator[tuple[str, Trained]]:
    """Train all machines of a table; yield them with their method."""
    screened = {
        (kernel, scale): best_of(
            [Trained(table, Setting(kernel, scale, C, 1.0)) for C in (2.0, 16.0)]
        )
        for kernel in STARTS
        for scale in ("auto", "quantile")
    }
    yield "rbf", searched(table, with_epsilon(table, screened["rbf", "auto"]))
    for kernel in STARTS:
        start = best_of([screened[kernel, scale] for scale in ("auto", "quantile")])
        start = with_epsilon(table, start)
        plain = searched(table, start)
        yield f"{kernel}, scaling chosen", plain
        if kernel != "rbf":
            weighted = searched(table, Trained(table, start.setting, learn=True))
            yield f"{kernel}, weights", best_of([plain, weighted])
    start = best_of([one for (kernel, _), one in screened.items() if kernel != "rbf"])
    start = with_epsilon(table, start)
    weighted = best_of([start, Trained(table, start.setting, learn=True)])
    yield "procedure", searched(table, weighted)


def booster(table: Table) -> tuple[float, float]:
    """Return the errors of LightGBM, the best of random settings with early stopping."""
    rng, start, found = np.random.default_rng(0), time.perf_counter(), []
    models = tabular.random_boosters(rng, 7, table.is_regression, table.train, table.held)
    for model, _ in islice(models, N_BOOSTERS):
        found.append(table.errors(model.predict))
        if time.perf_counter() - start > SECONDS:
            break
    return min(found)


def default_svc(table: Table) -> tuple[float, float]:
    """Return the errors of scikit-learn's SVC or SVR by default, on [0, 1]."""
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import MinMaxScaler
    from sklearn.svm import SVC, SVR

    fitted = make_pipeline(MinMaxScaler(), SVR() if table.is_regression else SVC())
    return table.errors(fitted.fit(*table.train).predict)


def picture(lines: list[dict], path: Path) -> None:
    means = tabular.relative(lines, "test", "rbf").items()
    bars = sorted((value, name) for name, value in means)
    series = [figures.Series(bars, {"color": figures.BLUE})]
    label = "test error relative to rbf on [-1, 1] (geometric mean)"
    panel = figures.Panel(label, "", series, line=1.0, form="%.2f")
    figures.draw(path, [[panel]], inches=(7, 3.5))


if __name__ == "__main__":
    main()
