"""Tables of any kind of columns, and models of LightGBM with random settings."""

import csv
import gzip
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from measure import talk

REGRESSIONS = {"houses", "wind", "cpu_small"}
CATEGORICAL = {"connect_4"}


def tables(
    raw: Path, data: Path, files: dict[str, tuple[str, ...]], only: str
) -> Iterator[tuple[str, np.ndarray, np.ndarray]]:
    """Yield the name, the columns and the target of the tables with `only` in their name.

    Those of raw/tables/*.tsv.gz are text in arrays of objects, with the target in the column of
    that name; those of LIBSVM `files` by name, which may lack all files but the first, are float64.
    """
    from dcsvm.data.dataset import Dataset  # learners in other environments do without

    for path in sorted((raw / "tables").glob("*.tsv.gz")):
        name = path.name.removesuffix(".tsv.gz")
        if only in name:
            with gzip.open(path, "rt", encoding="utf-8") as file:
                header, *lines = csv.reader(file, delimiter="\t")
            cells, target = np.array(lines, object), header.index("target")
            yield name, np.delete(cells, target, axis=1), cells[:, target]
    for name, paths in files.items():
        if only in name and (data / paths[0]).exists():
            found = [Dataset.read(data / one) for one in paths if (data / one).exists()]
            X = np.concatenate([np.asarray(one.rows.features, np.float64) for one in found])
            yield name, X, np.concatenate([one.labels for one in found])


def lightgbm_of(is_regression: bool, **settings):
    import lightgbm

    kind = lightgbm.LGBMRegressor if is_regression else lightgbm.LGBMClassifier
    return kind(verbose=-1, n_jobs=2, **settings)


def random_boosters(
    rng: np.random.Generator, max_log2_leaves: int, is_regression: bool, train, held, **how
) -> Iterator[tuple]:
    """Yield models of LightGBM with random settings, stopped early by the (X, y) of `held`, and
    their settings, without end."""
    from lightgbm import early_stopping

    while True:
        settings = {
            "num_leaves": int(2 ** rng.uniform(2, max_log2_leaves)),
            "learning_rate": 10 ** rng.uniform(-2, -0.5),
            "min_child_samples": int(2 ** rng.uniform(1, 6)),
            "subsample": rng.uniform(0.5, 1), "subsample_freq": 1,
            "colsample_bytree": rng.uniform(0.3, 1),
            "reg_lambda": 10 ** rng.uniform(-3, 1),
        }  # fmt: skip
        model = lightgbm_of(is_regression, n_estimators=1500, **settings)
        stop = early_stopping(50, verbose=False)
        yield model.fit(*train, eval_set=[held], callbacks=[stop], **how), settings


def error_of(is_regression: bool, predicted: np.ndarray, y: np.ndarray) -> float:
    """Return the RMSE of a regression, or the error rate."""
    if is_regression:
        return float(np.sqrt(np.mean((predicted - y) ** 2)))
    return float(np.mean(predicted != y))


def loss_of(metric: str, p: np.ndarray, y: np.ndarray) -> float:
    """Return 1 - AUC (one class against the rest, averaged) or the log loss of probabilities."""
    from sklearn.metrics import log_loss, roc_auc_score

    if metric == "log-loss":
        return float(log_loss(y, p, labels=range(p.shape[1])))
    if p.shape[1] == 2:
        return 1 - float(roc_auc_score(y, p[:, 1]))
    areas = [roc_auc_score(y == c, p[:, c]) for c in np.unique(y)]
    return 1 - float(np.mean(areas))


def if_installed(peer, *given):
    """Return what the peer finds, or None if its package is missing."""
    try:
        return peer(*given)
    except ImportError as error:
        talk(f"{peer.__name__}: {error}")
        return None


def relative(lines: list[dict[str, str]], column: str, base: str) -> dict[str, float]:
    """Return the geometric mean of each method's errors over those of the method `base`."""
    errors = {(one["table"], one["split"], one["method"]): float(one[column]) for one in lines}
    ratios: dict[str, list[float]] = {}
    for (table, split, method), error in errors.items():
        known = errors.get((table, split, base), 0.0)
        if known > 0 and error > 0:
            ratios.setdefault(method, []).append(error / known)
    return {method: float(np.exp(np.mean(np.log(several)))) for method, several in ratios.items()}
