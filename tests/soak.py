"""Train and predict with random settings for a while, and check the results:
`python tests/soak.py SECONDS [SEED]`, or `make soak SOAK=3600`.

Each trial trains a model, checks it against NumPy float64, saves it, loads it and predicts. Then it
trains again: with another number of threads (the same bits), with a stop and a resume, or with a
warm start (the same objective). The first failing trial ends the program with status 1; its
settings are the last line before the traceback.
"""

import sys
import tempfile
import time
from pathlib import Path

import numpy as np
from reference import certificate, csr_rows, dense, dense_rows, kernel_values
from runs import ready

from dcsvm import _core
from dcsvm.model.reader import load_model
from dcsvm.problem.options import TrainOptions
from dcsvm.training.fit import finish
from dcsvm.training.report import Progress
from dcsvm.training.state import Checkpoint, RunControl

SUMS = ("c_svc", "nu_svc", "one_class", "epsilon_svr", "nu_svr")


def random_rows(rng):
    """Return (X, is_sparse): continuous, one-hot, integer or sparse float32 rows, some repeated."""
    n, d = int(rng.integers(20, 3000)), int(rng.integers(1, 40))
    kind = rng.choice(["continuous", "one-hot", "integers", "sparse"])
    X = rng.random((n, d), dtype=np.float32)
    if kind == "one-hot":
        X = np.concatenate([X[:, :3], np.eye(7, dtype=np.float32)[rng.integers(7, size=n)]], axis=1)
    elif kind == "integers":
        X = np.floor(X * 200)
    elif kind == "sparse":
        X = np.where(rng.random((n, 120)) < 0.05, rng.random((n, 120)), 0).astype(np.float32)
    if rng.random() < 0.3:
        X = X[rng.integers(n // 2 + 1, size=n)]
    return np.ascontiguousarray(X, dtype=np.float32), kind == "sparse"


def random_labels(rng, X, svm_type):
    scale = max(float(np.abs(X).max()), 1e-3)
    surface = np.sin(5 * X[:, 0] / scale) + X[:, -1] / scale
    if svm_type in ("epsilon_svr", "nu_svr"):
        return surface + rng.normal(0, 0.1, len(X))
    n_classes = int(rng.choice([2, 2, 2, 3, 5]))
    ranks = np.argsort(np.argsort(surface + rng.normal(0, rng.choice([0.01, 0.5]), len(X))))
    return np.floor(ranks * n_classes / len(X)) + 1.0


def random_options(rng, X):
    svm_type = str(rng.choice(SUMS, p=[0.6, 0.1, 0.1, 0.1, 0.1]))
    kernel = str(rng.choice(["rbf", "rbf", "rbf", "linear", "polynomial"]))
    spread = max(float(np.mean(np.var(X.astype(np.float64), axis=0)) * X.shape[1]), 1e-6)
    return {
        "svm_type": svm_type,
        "C": float(2.0 ** rng.uniform(-8, 8) / (max(spread, 1.0) if kernel == "linear" else 1.0)),
        "gamma": float(2.0 ** rng.uniform(-6, 6 if kernel == "rbf" else 0) / spread),
        "kernel": kernel,
        "coef0": 1.0,
        "degree": int(rng.integers(1, 4)),
        "nu": float(rng.uniform(0.05, 0.6)),
        "bias": bool(rng.integers(2)),
        "levels": None if rng.random() < 0.3 else int(rng.integers(3)),
        "branching": int(rng.integers(2, 5)),
        "clustering": str(rng.choice(["tree", "adaptive", "random", "kmeans"])),
        "tolerance": float(rng.choice([1e-2, 1e-3, 1e-4])),
        "cache_mb": int(rng.choice([25, 100])),
        "threads": 2,
        "seed": int(rng.integers(1000)),
    }


class StopAfter(Progress):
    def __init__(self, n_calls):
        self.left, self.stop = n_calls, _core.Stop()

    def advance(self, *_where):
        self.left -= 1
        if self.left == 0:
            self.stop.request()


def solved(rows, y, options, progress=None, checkpoint=None, **how):
    stop = getattr(progress, "stop", None) or _core.Stop()
    control = RunControl(progress or Progress(), stop, checkpoint)
    with control.held():
        run = ready(rows, y, TrainOptions(**options), control, **how)
        model = finish(run)
    return run, model, model.report


def check_solution(run, report):
    """Check bounds, equality constraints, violation and gap of a run in float64."""
    kernel, X = run.solver.data.kernel, run.solver.data.rows
    K = kernel_values(kernel, dense(X), dense(X))
    for part, told in zip(run.solver.formulation.parts(), report.problems, strict=True):
        problem, alpha = run.solver.problem.part(part), run.solver.alpha[part]
        inside = K[np.ix_(problem.rows, problem.rows)]
        violation, gap = certificate(inside, problem, alpha)
        assert np.all((alpha >= problem.lower) & (alpha <= problem.upper))
        slack = 1e-9 * (1 + np.abs(inside) @ np.abs(alpha)).max()
        unit = problem.violation_scale
        if run.options.svm_type == "nu_svc":  # the margin, accurate to the tolerance
            unit = min(1.0, (1 + run.options.tolerance) / told.parameter[1])
        assert violation <= report.violation * unit * (1 + 1e-6) + slack
        if run.options.svm_type == "nu_svc":  # reported for a C-SVC, C = 1 / margin
            gap, slack = np.array([gap, slack]) * told.parameter[1] ** 2
        assert report.duality_gap is None or report.duality_gap >= gap * (1 - 1e-6) - slack
        for number in range(problem.n_constraints):
            own = problem.constraint_of == number
            wanted = run.solver.formulation.alpha[part][own].sum()
            total = np.abs(alpha[own]).sum() + np.abs(run.solver.formulation.alpha[part][own]).sum()
            # nu-SVC with almost no margin is solved as C-SVC, with nu within 2 %
            slack = 0.02 if run.options.svm_type == "nu_svc" else 1e-9
            assert abs(alpha[own].sum() - wanted) <= slack * (1 + total)


def check_file(model, rows, folder):
    """Check that a saved and loaded model predicts the same bits."""
    model.save(folder / "model")
    again = load_model(folder / "model")
    for method in ["exact"] if model.early is None else ["exact", "early"]:
        values = model.decision_function(rows, method=method, threads=2)
        same = again.decision_function(rows, method=method, threads=1)
        assert values.tobytes() == same.tobytes()
        assert np.all(np.isfinite(model.predict(rows, method=method)))


def check_again(rng, rows, y, options, model, report, folder):
    """Train again in a randomly chosen way and compare."""
    how = rng.choice(["threads", "stop", "start"])
    if how == "threads":
        other = solved(rows, y, options | {"threads": int(rng.choice([1, 3]))})[1]
        assert other.exact.dual_coef.tobytes() == model.exact.dual_coef.tobytes()
        return
    if how == "start":
        start = solved(rows, y, options | {"C": options["C"] * 2.0 ** rng.uniform(-2, 2)})[1]
        again = solved(rows, y, options, init_model=start)[2]
    else:
        progress, kept = StopAfter(int(rng.integers(1, 60))), Checkpoint(folder / "kept")
        try:
            again = solved(rows, y, options, progress, checkpoint=kept)[2]
        except _core.Stopped:
            again = None
        if again is None or again.stopped:
            kept = Checkpoint(folder / "kept", resume=True)
            again = solved(rows, y, options, checkpoint=kept)[2]
        kept.remove()
    assert again.converged
    if report.duality_gap is not None and options["svm_type"] != "nu_svc":
        worse = abs(again.objective - report.objective)
        assert worse <= max(again.duality_gap, report.duality_gap) + 1e-6 * abs(report.objective)


def trial(rng, folder):
    """Run one random setting; skip it if it does not fit the data."""
    X, is_sparse = random_rows(rng)
    options = random_options(rng, X)
    y = random_labels(rng, X, options["svm_type"])
    print(f"{X.shape} {options}", flush=True)
    rows = csr_rows(X) if is_sparse else dense_rows(X)
    try:
        run, model, report = solved(rows, y, options)
    except ValueError as error:
        assert any(word in str(error) for word in ("nu", "margin", "class")), error
        return
    if options["svm_type"] == "nu_svc" and not report.converged:  # almost no margin: a warning
        return
    assert report.converged
    check_solution(run, report)
    check_file(model, rows, folder)
    check_again(rng, rows, y, options, model, report, folder)


def main(seconds, seed=0):
    end, number = time.monotonic() + seconds, 0
    with tempfile.TemporaryDirectory() as folder:
        while time.monotonic() < end:
            trial(np.random.default_rng([seed, number]), Path(folder))
            number += 1
    print(f"{number} trials, all as they must be")


if __name__ == "__main__":
    main(float(sys.argv[1]), *map(int, sys.argv[2:]))
