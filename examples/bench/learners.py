"""Learners of tables, each fitted in a process of its own: python learners.py NAME FOLDER SECONDS.

FOLDER has a split (Task.save). The process writes the predictions of the test rows to
predicted.npy, and probabilities of classes, if the learner has them, to probabilities.npy. It
prints JSON: the version of the package, seconds of the fit and of the prediction (with what it
encodes), bytes of the model. The exit status is MISSING if the package is not installed.
"""

import json
import pickle
import sys
import tempfile
import time
import warnings
from dataclasses import dataclass
from importlib import import_module, metadata
from pathlib import Path

import numpy as np
import tabular

MISSING = 3
FEW = 5  # rows of a class that none is held out of
LONG = 60.0  # seconds of AutoGluon, and of the longer tuning


@dataclass(frozen=True, eq=False)
class Task:
    """Rows to train and to test. Features are numbers, or indices of categories in the columns
    `categories`; missing numbers are nan. `y` are targets, or indices of `n_classes` classes, of
    which the training rows may lack some. `metric` is what tuning chooses by: None for errors."""

    X: np.ndarray
    y: np.ndarray
    X_test: np.ndarray
    categories: list[int]
    n_classes: int  # 0 for a regression
    metric: str | None = None

    def save(self, folder: Path) -> None:
        (folder / "task").write_bytes(pickle.dumps(vars(self)))

    @staticmethod
    def load(folder: Path) -> "Task":
        return Task(**pickle.loads((folder / "task").read_bytes()))

    @property
    def is_regression(self) -> bool:
        return self.n_classes == 0

    def held_out(self, share: float) -> tuple[tuple, tuple]:
        """Divide the training rows at random: rows and labels to fit, and a share held out.

        All rows of classes with few rows are fitted.
        """
        held = np.random.default_rng(0).permutation(len(self.y)) < share * len(self.y)
        if not self.is_regression:
            held &= np.bincount(self.y)[self.y] >= FEW
        return (self.X[~held], self.y[~held]), (self.X[held], self.y[held])


class Fitted:
    """A fitted model of scikit-learn's interface, the bytes of its file, and its classes."""

    def __init__(self, model, n_bytes: int, *, encode=lambda X: X, classes=None):
        self.model, self.n_bytes, self.encode = model, n_bytes, encode
        self.classes = getattr(model, "classes_", None) if classes is None else classes

    def predict(self, task: Task) -> tuple[np.ndarray, np.ndarray | None]:
        X = self.encode(task.X_test)
        if task.is_regression:
            return np.asarray(self.model.predict(X), float).reshape(-1), None
        p = self.probabilities(X, task.n_classes)
        return p.argmax(axis=1), p

    def probabilities(self, X, n_classes: int) -> np.ndarray:
        """Return probabilities of all classes; those that the training rows lacked have 0."""
        found = np.asarray(self.model.predict_proba(X), float)
        p = np.zeros((len(found), n_classes))
        p[:, np.asarray(self.classes, int)] = found
        return p


def lightgbm(task: Task, seconds: float) -> Fitted:
    model = tabular.lightgbm_of(task.is_regression)
    model.fit(task.X, task.y, categorical_feature=task.categories)
    return Fitted(model, len(model.booster_.model_to_string()))


def tuned_lightgbm(task: Task, seconds: float) -> Fitted:
    """Fit random settings with early stopping on a fifth of the rows, then the best on all rows."""
    start, rng = time.perf_counter(), np.random.default_rng(0)
    parts, how = task.held_out(0.2), {"categorical_feature": task.categories}
    found = []
    for model, settings in tabular.random_boosters(rng, 8, task.is_regression, *parts, **how):
        settings["n_estimators"] = model.best_iteration_ or 100
        if task.metric:
            p = Fitted(model, 0).probabilities(parts[1][0], task.n_classes)
            error = tabular.loss_of(task.metric, p, parts[1][1])
        else:
            error = tabular.error_of(task.is_regression, model.predict(parts[1][0]), parts[1][1])
        found.append((error, settings))
        if time.perf_counter() - start >= 0.8 * seconds:
            break
    best = min(found, key=lambda one: one[0])[1]
    model = tabular.lightgbm_of(task.is_regression, **best).fit(task.X, task.y, **how)
    return Fitted(model, len(model.booster_.model_to_string()))


def catboost(task: Task, seconds: float) -> Fitted:
    import catboost

    def encode(X):
        X = X.astype(object)
        X[:, task.categories] = X[:, task.categories].astype(int)
        return X

    kind = catboost.CatBoostRegressor if task.is_regression else catboost.CatBoostClassifier
    model = kind(verbose=0, thread_count=2, allow_writing_files=False,
                 cat_features=task.categories)  # fmt: skip
    model.fit(encode(task.X), task.y)
    with tempfile.NamedTemporaryFile() as file:
        model.save_model(file.name)
        n_bytes = Path(file.name).stat().st_size
    return Fitted(model, n_bytes, encode=encode)


def xrfm(task: Task, seconds: float) -> Fitted:
    """Fit xRFM on standardized numbers and flags of categories; a fifth of the rows is held out."""
    import torch
    from sklearn.compose import make_column_transformer
    from sklearn.impute import SimpleImputer
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import OneHotEncoder, StandardScaler
    from xrfm import xRFM

    numbers = [j for j in range(task.X.shape[1]) if j not in task.categories]
    encoder = make_column_transformer(
        (make_pipeline(SimpleImputer(), StandardScaler()), numbers),
        (OneHotEncoder(handle_unknown="ignore", sparse_output=False), task.categories),
    ).fit(task.X)

    def encode(X):
        return torch.tensor(encoder.transform(X), dtype=torch.float32)

    def targets(y):
        if task.is_regression:
            return torch.tensor((y - mean) / spread, dtype=torch.float32)[:, None]
        return torch.tensor(np.searchsorted(known, y), dtype=torch.long)

    mean, spread = (task.y.mean(), task.y.std()) if task.is_regression else (0.0, 1.0)
    known, (fit, held) = np.unique(task.y), task.held_out(0.2)
    model = xRFM(device=torch.device("cpu"), n_threads=2, verbose=False)
    model.fit(encode(fit[0]), targets(fit[1]), encode(held[0]), targets(held[1]))

    class InUnits:
        classes_ = known

        def predict(self, X):
            return np.asarray(model.predict(X)) * spread + mean

        def predict_proba(self, X):
            return model.predict_proba(X)

    return Fitted(InUnits(), len(pickle.dumps(model)), encode=encode)


def autogluon(task: Task, seconds: float) -> Fitted:
    import pandas
    from autogluon.tabular import TabularPredictor

    def encode(X):
        frame = pandas.DataFrame(X, columns=[f"c{j}" for j in range(X.shape[1])])
        for j in task.categories:
            frame[f"c{j}"] = [f"v{int(index)}" for index in X[:, j]]
        return frame

    folder = tempfile.mkdtemp(prefix="autogluon-")
    kind = "regression" if task.is_regression else "binary" if task.n_classes == 2 else "multiclass"
    ranked = "roc_auc" if task.n_classes == 2 else "roc_auc_ovr"
    metric = {None: None, "auc": ranked, "log-loss": "log_loss"}[task.metric]
    model = TabularPredictor(
        "target", problem_type=kind, path=folder, verbosity=0, eval_metric=metric
    )
    rows = encode(task.X).assign(target=task.y)
    model.fit(rows, time_limit=seconds, presets="medium_quality", num_cpus=2)
    n_bytes = sum(path.stat().st_size for path in Path(folder).rglob("*") if path.is_file())
    return Fitted(model, n_bytes, encode=encode, classes=model.class_labels)


# name: the function, its package, and the seconds that it is given (None: those of dcsvm-easy)
LEARNERS = {
    "LightGBM": (lightgbm, "lightgbm", 0.0),
    "LightGBM, tuned": (tuned_lightgbm, "lightgbm", None),
    "LightGBM, tuned 60 s": (tuned_lightgbm, "lightgbm", LONG),
    "CatBoost": (catboost, "catboost", 0.0),
    "xRFM": (xrfm, "xrfm", 0.0),
    "AutoGluon": (autogluon, "autogluon.tabular", LONG),
}


def main(name: str, folder: str, seconds: str) -> None:
    learner, package, _ = LEARNERS[name]
    try:
        version = metadata.version(package)
    except metadata.PackageNotFoundError:
        sys.exit(MISSING)
    warnings.simplefilter("ignore")
    import_module(package)  # its seconds are not those of the fit
    task, start = Task.load(Path(folder)), time.perf_counter()
    fitted = learner(task, float(seconds))
    fit = time.perf_counter()
    predicted, probabilities = fitted.predict(task)
    end = time.perf_counter()
    np.save(Path(folder, "predicted.npy"), predicted)
    if probabilities is not None:
        np.save(Path(folder, "probabilities.npy"), probabilities)
    print(json.dumps({"version": version, "seconds": fit - start, "predict_seconds": end - fit,
                      "bytes": fitted.n_bytes}))  # fmt: skip


if __name__ == "__main__":
    main(*sys.argv[1:])
