"""Fit scikit-learn's SVC, or scikit-learn-intelex's, once in a separate process.

    python fit_sklearn.py sklearn|sklearnex SPEC_JSON SOLUTION_NPZ

bench.py starts this. SPEC_JSON is JSON text, not a path. Only fit() is timed. Results: one line of
JSON on stdout (seconds, version, accuracy); indices and coefficients of the support vectors in the
.npz file.
"""

import importlib.metadata
import json
import sys
import time

import numpy as np

KERNELS = ("linear", "poly", "rbf", "sigmoid")


def load_svc(package: str, threads: int):
    if package == "sklearnex":
        import daal4py
        from sklearnex.svm import SVC

        daal4py.daalinit(threads)
    else:
        from sklearn.svm import SVC
    return SVC


def main(package: str, spec_text: str, solution: str) -> None:
    spec = json.loads(spec_text)
    svc = load_svc(package, spec["threads"])
    rows = np.load(spec["rows"]).astype(spec["dtype"], order="C", copy=False)
    labels = np.load(spec["labels"])
    model = svc(
        C=spec["C"],
        kernel=KERNELS[spec["kernel"]],
        gamma=spec["gamma"],
        degree=spec["degree"],
        coef0=spec["coef0"],
        tol=spec["tolerance"],
        cache_size=spec["cache_mb"],
    )
    begin = time.perf_counter()
    model.fit(rows, labels)
    result = {"seconds": time.perf_counter() - begin, "version": version(package)}
    support, coefficients = np.asarray(model.support_), np.asarray(model.dual_coef_, dtype=float)
    np.savez(solution, support=support, coefficients=coefficients[0])
    if spec["test_rows"]:
        test = np.load(spec["test_rows"]).astype(spec["dtype"], order="C", copy=False)
        begin = time.perf_counter()
        predicted = model.predict(test)
        result["predict_seconds"] = time.perf_counter() - begin
        result["accuracy"] = float(np.mean(predicted == np.load(spec["test_labels"])))
    print(json.dumps(result))


def version(package: str) -> str:
    names = {"sklearn": "scikit-learn", "sklearnex": "scikit-learn-intelex"}
    return importlib.metadata.version(names[package])


if __name__ == "__main__":
    main(*sys.argv[1:])
