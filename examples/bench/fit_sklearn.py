"""Fit an estimator of scikit-learn, scikit-learn-intelex or dcsvm in a process of its own.

    python fit_sklearn.py sklearn|sklearnex|ours|train SPEC_JSON

`fitted_apart` in programs.py starts this; it describes SPEC_JSON, which is JSON text, not a path,
and the result, a line of JSON on stdout. "train" is dcsvm.train with the options of the estimator.
"""

import json
import sys
import time
from importlib.metadata import version
from statistics import median

import numpy as np


def main(library: str, text: str) -> None:
    spec = json.loads(text)
    make = maker(library, spec["estimator"], spec["params"], spec["threads"])
    X, y = load(spec["train"], spec)
    found = searched(make(), spec["grid"], X, y) if "grid" in spec else fitted(make, spec, X, y)
    names = {"sklearn": "scikit-learn", "sklearnex": "scikit-learn-intelex"}
    print(json.dumps(found | {"version": version(names.get(library, "dcsvm"))}))


def load(path: str, spec: dict):
    """Load rows, as an array or a sparse matrix, and labels, which rows.save wrote."""
    from scipy import sparse

    rows = sparse.load_npz(path).astype(spec.get("dtype", "float64"))
    return (rows if spec.get("is_sparse") else rows.toarray()), np.load(f"{path}.labels.npy")


def maker(library: str, estimator: str, params: dict, threads: int):
    """Return a function that makes the estimator."""
    if library == "train":
        return lambda: Trained(estimator, params, threads)
    if library == "ours":
        import dcsvm.sklearn as package
    elif library == "sklearnex":
        import daal4py
        import sklearnex.svm as package

        daal4py.daalinit(threads)
    else:
        from sklearn import svm as package
    if not hasattr(package, estimator):
        raise SystemExit("this estimator is not there")
    return lambda: getattr(package, estimator)(**params)


class Trained:
    """dcsvm.train with the options that the estimator uses."""

    def __init__(self, estimator: str, params: dict, threads: int):
        kind = {"SVC": "c_svc", "SVR": "epsilon_svr", "OneClassSVM": "one_class"}[estimator]
        bias = estimator == "SVC"
        self.options = {**params, "svm_type": kind, "threads": threads, "bias": bias}

    def fit(self, X, y):
        import dcsvm

        if "gamma" not in self.options:
            self.options["gamma"] = 1 / (X.shape[1] * X.var())
        self.predict = dcsvm.train(X, y, **self.options).predict


def fitted(make, spec: dict, X, y) -> dict:
    X_test, y_test = load(spec["test"], spec) if spec.get("test") else (X[:1], y[:1])
    fits, predictions = [], []
    while not fits or (len(fits) < 3 and sum(fits) < spec.get("short", 0)):
        model, begin = make(), time.perf_counter()
        model.fit(X, y)
        fits.append(time.perf_counter() - begin)
        begin = time.perf_counter()
        predicted = model.predict(X_test)
        predictions.append(time.perf_counter() - begin)
    if "solution" in spec:
        alphas = np.asarray(model.dual_coef_, dtype=float)[0]
        np.savez(spec["solution"], support=np.asarray(model.support_), coefficients=alphas)
    if not spec.get("test"):
        return {"fit": median(fits)}
    score = np.mean(predicted == (1 if spec["estimator"] == "OneClassSVM" else y_test))
    if spec["estimator"] == "SVR":
        score = 1 - np.mean((predicted - y_test) ** 2) / np.var(y_test)
    return {"fit": median(fits), "predict": median(predictions), "score": float(score)}


def searched(estimator, grid: dict, X, y) -> dict:
    from sklearn.model_selection import GridSearchCV, StratifiedKFold

    folds = StratifiedKFold(5, shuffle=True, random_state=0)
    search, begin = GridSearchCV(estimator, grid, cv=folds, refit=False), time.perf_counter()
    search.fit(X, y)
    seconds = time.perf_counter() - begin
    return {"fit": seconds, "score": search.best_score_, "best": search.best_params_}


if __name__ == "__main__":
    main(*sys.argv[1:])
