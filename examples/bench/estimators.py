"""Compare the estimators of dcsvm.sklearn with scikit-learn's and scikit-learn-intelex's.

    python estimators.py --data FOLDER [--only NAME,...] [--rounds 3] [--peers sklearn,sklearnex]

Each case is fitted and predicted in its own process, in turn, with two threads or --threads.
`dcsvm.train` runs with the same options, to show the overhead of the estimator. Prints a line per
run, then a table. If a peer exceeds --timeout seconds on a case, the table shows ">" and the limit,
and the case is not repeated.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import time
from dataclasses import dataclass, field

import numpy as np

OURS, WRAPPED = "ours", "train"  # the estimator, and dcsvm.train alone
PEERS = ("sklearn", "sklearnex")
SHORT = 2.0  # seconds: shorter fits are repeated three times, the median counts


@dataclass(frozen=True)
class Case:
    name: str
    estimator: str
    params: dict = field(default_factory=dict)
    train: str | None = None  # LIBSVM file; None: scikit-learn's digits
    test: str | None = None
    is_sparse: bool = False


CASES = [
    Case("digits", "SVC"),
    Case(
        "cpu_small",
        "SVR",
        {"C": 1024, "gamma": 0.5, "epsilon": 1.0},
        "cpu_small.tr",
        "cpu_small.te",
    ),
    Case("letter", "SVC", {"C": 10, "gamma": 5.0}, "letter", "letter.t"),
    Case("one-class", "OneClassSVM", {"nu": 0.1, "gamma": 2.0}, "ijcnn1", "ijcnn1.t"),
    Case("ijcnn1", "SVC", {"C": 32, "gamma": 2.0}, "ijcnn1", "ijcnn1.t"),
    Case("covtype 20k, 32", "SVC", {"C": 32, "gamma": 32.0}, "covtype.20000.tr", "covtype.te"),
    Case("covtype 20k, 2", "SVC", {"C": 32, "gamma": 2.0}, "covtype.20000.tr", "covtype.te"),
    Case("a9a sparse", "SVC", {"C": 32, "gamma": 2.0**-7}, "a9a", "a9a.t", is_sparse=True),
    Case("MNIST, ten", "SVC", {"C": 10, "gamma": 2.0**-21}, "digits.tr", "digits.te"),
]


def load(case: Case, folder: str):
    """Load rows and labels to fit, and rows and labels to predict."""
    if case.train is None:
        from sklearn.datasets import load_digits

        X, y = load_digits(return_X_y=True)
        return X, y, X, y
    X, y = read(os.path.join(folder, case.train), case.is_sparse)
    X_test, y_test = read(os.path.join(folder, case.test), case.is_sparse)
    if not case.is_sparse and X_test.shape[1] < X.shape[1]:
        X_test = np.hstack([X_test, np.zeros((len(X_test), X.shape[1] - X_test.shape[1]))])
    elif case.is_sparse:
        X_test.resize((X_test.shape[0], X.shape[1]))
    return X, y, X_test, y_test


def read(path: str, is_sparse: bool):
    """Return float64 rows, the usual type; cache them beside the file."""
    kept = f"{path}.npz"
    from scipy import sparse

    if not os.path.exists(kept):
        from sklearn.datasets import load_svmlight_file

        X, y = load_svmlight_file(path)
        sparse.save_npz(kept, X.tocsr())
        np.save(f"{path}.y.npy", y)
    X, y = sparse.load_npz(kept), np.load(f"{path}.y.npy")
    return (X.tocsr() if is_sparse else X.toarray()), y


def run(case: Case, folder: str, library: str, threads: int) -> dict:
    """Measure seconds of fit and predict, medians of three if they are short."""
    X, y, X_test, y_test = load(case, folder)
    params = dict(case.params)
    make = maker(case, library, threads, params)
    fits, predictions = [], []
    while not fits or (len(fits) < 3 and sum(fits) < SHORT):
        model = make(params)
        begin = time.perf_counter()
        model.fit(X, y)
        fits.append(time.perf_counter() - begin)
        begin = time.perf_counter()
        predicted = model.predict(X_test)
        predictions.append(time.perf_counter() - begin)
    score = np.mean(predicted == y_test)
    if case.estimator == "SVR":
        score = 1 - np.mean((predicted - y_test) ** 2) / np.var(y_test)
    elif case.estimator == "OneClassSVM":
        score = np.mean(predicted == 1)
    return {
        "fit": statistics.median(fits),
        "predict": statistics.median(predictions),
        "score": float(score),
    }


def maker(case: Case, library: str, threads: int, params: dict):
    if library == WRAPPED:
        return lambda params: Trained(case, threads, params)
    if library == OURS:
        import dcsvm.sklearn as package
    elif library == "sklearnex":
        import daal4py
        import sklearnex.svm as package

        daal4py.daalinit(threads)
        if not hasattr(package, case.estimator):
            raise SystemExit("this estimator is not there")
    else:
        from sklearn import svm as package
    kind = getattr(package, case.estimator)
    return lambda params: kind(**params)


class Trained:
    """dcsvm.train with the options that the estimator uses."""

    def __init__(self, case: Case, threads: int, params: dict):
        types = {"SVC": "c_svc", "SVR": "epsilon_svr", "OneClassSVM": "one_class"}
        self.options = {**params, "svm_type": types[case.estimator], "threads": threads}
        self.options["bias"] = case.estimator == "SVC"

    def fit(self, X, y):
        import dcsvm

        if "gamma" not in self.options:
            self.options["gamma"] = 1 / (X.shape[1] * X.var())
        self.model = dcsvm.train(X, y, **self.options)

    def predict(self, X):
        return self.model.predict(X)


def in_process(name: str, args, library: str) -> dict | None:
    command = [sys.executable, __file__, "--data", args.data, "--run", library, "--only", name]
    command += ["--threads", str(args.threads)]
    env = {**os.environ, "OMP_NUM_THREADS": str(args.threads)}
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=args.timeout, env=env
        )
    except subprocess.TimeoutExpired:
        return None
    if done.returncode != 0:
        return {"error": done.stderr.strip().splitlines()[-1]}
    return json.loads(done.stdout)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--data", required=True)
    parser.add_argument("--only", default="")
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--peers", default=",".join(PEERS))
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--timeout", type=float, default=900)
    parser.add_argument("--run", help="one library, in this process; results as JSON")
    args = parser.parse_args()
    only = args.only.split(";") if args.only else [case.name for case in CASES]
    cases = [case for case in CASES if case.name in only]
    if args.run:
        print(json.dumps(run(cases[0], args.data, args.run, args.threads)))
        return
    libraries = [OURS, WRAPPED, *filter(None, args.peers.split(","))]
    found: dict = {}
    for case in cases:
        load(case, args.data)
        for _ in range(args.rounds):
            for library in libraries:
                known = found.setdefault((case.name, library), [])
                if None in known:
                    continue
                known.append(in_process(case.name, args, library))
                print(case.name, library, known[-1], flush=True)
    table(cases, libraries, found, args.timeout)


def table(cases, libraries, found, timeout) -> None:
    print("| case | " + " | ".join(f"{one}: fit, predict s, score" for one in libraries) + " |")
    print("|---" * (len(libraries) + 1) + "|")
    for case in cases:
        cells = [cell(found[case.name, library], timeout) for library in libraries]
        print(f"| {case.name} | " + " | ".join(cells) + " |")


def cell(results: list, timeout: float) -> str:
    if None in results:
        return f"> {timeout:g}"
    if "error" in results[0]:
        return "-"
    fit, predict = (statistics.median(one[name] for one in results) for name in ("fit", "predict"))
    return f"{fit:.3f}, {predict:.3f}, {results[0]['score']:.4f}"


if __name__ == "__main__":
    main()
