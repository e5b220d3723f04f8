"""Test for bugs that were fixed: one test per bug, which failed before the fix."""

import os
import subprocess
import sys

import numpy as np
import pytest
from made_models import svm_train_text
from reference import c_svc, dense_rows, labelled_rows, prepared

import dcsvm
from dcsvm import _core
from dcsvm.data.rows import Rows
from dcsvm.kernel.kernels import Kernel
from dcsvm.model.reader import ModelError, load_model
from dcsvm.problem.formulation import BoxQP
from dcsvm.training.certificate import Iterate, SolverSettings, Subproblems
from dcsvm.training.state import SolveControl

MODEL = svm_train_text("1 1:0.5\n", kernel_type="polynomial", degree=3, coef0=0, nr_sv="1 0")
MODEL += "dcsvm_section 4\nn_features 1\nrows dense\nrow_numbers 1\n"


def dense(d=5, n=50):
    return _core.Points(dense_rows(np.ones((n, d))), 1)


def sparse(indptr=(0, 1, 2), indices=(0, 1), d=5):
    arrays = np.array(indptr, np.int64), np.array(indices, np.int32), np.ones(2, np.float32)
    return _core.Points(Rows(2, d, None, *arrays), 1)


def matrix(a, b, form=None):
    _core.kernel_matrix(_core.Setup(Kernel(), b, form), a, None, b, None, 1)


def weighted(indptr=np.arange(51), columns=np.zeros(50)):  # noqa: B008
    setup, p = prepared(Kernel(), dense())
    weights = np.array(indptr, np.int64), np.array(columns, np.int32), np.ones(50), 3
    _core.kernel_product(setup, p, None, p, None, weights, False, 1)


def solve(start=(0, 50), members=range(50), row=None, threads=1, n=50, group=None, limits=None):  # noqa: B008
    q = c_svc(np.where(np.arange(n) % 2, 1.0, -1.0), 1.0)
    q = BoxQP(q.linear, q.lower, q.upper, group, 0 if group is None else 1, row)
    setup, p = prepared(Kernel(), dense())
    parts = Subproblems(q, np.array(start, np.int64), np.array(members, np.int32))
    settings = SolverSettings(1e-3, limits or {}, 10**6, threads, None)
    control = SolveControl(_core.SolveState(parts.sizes), _core.Stop())
    _core.solve_clusters(setup, p, parts, Iterate.of(np.zeros(n)), settings, control)


# inconsistent arguments: the core read or wrote outside its arrays
CALLS = {
    "sides of different features": lambda: matrix(dense(5), dense(3)),
    "dense rows against sparse ones": lambda: matrix(dense(5), sparse()),
    "sparse rows against dense ones": lambda: matrix(sparse(), dense(5)),
    "the sparse form for dense rows": lambda: matrix(dense(), dense(), 2),
    "a column beyond the features": lambda: matrix(*(sparse(indices=(0, 10**8)) for _ in "ab")),
    "row starts beyond the values": lambda: sparse(indptr=(0, 10**9, 2)),
    "a column beyond the weights": lambda: weighted(columns=np.full(50, 10**8)),
    "fewer columns than weights": lambda: weighted(columns=np.zeros(49)),
    "weight starts that fall": lambda: weighted(indptr=[0, 10**9, *range(2, 51)]),
    "a member that does not exist": lambda: solve(members=np.full(50, 10**8)),
    "cluster starts that fall": lambda: solve(start=(0, 10**6, 50)),
    "a first start below zero": lambda: solve(start=(-5, 50)),
    "a variable on a row that does not exist": lambda: solve(row=np.full(50, 10**8, np.int32)),
    "more variables than rows": lambda: solve(n=60, members=range(60), start=(0, 60)),
    "a group below -1": lambda: solve(group=np.full(50, -7, np.int8)),
    "no threads": lambda: solve(threads=0),
    "a limit of unknown work": lambda: solve(limits={"rounds": 3}),
}


@pytest.mark.parametrize("kind", CALLS)
def test_core_arguments_that_do_not_fit_are_refused_instead_of_crashing(kind):
    with pytest.raises(ValueError):
        CALLS[kind]()


def test_a_training_report_comes_with_the_model():
    """dcsvm.train promised model.report and dropped it."""
    X, y = labelled_rows(50, 3, seed=1)
    assert dcsvm.train(X, y, threads=1).report.converged


@pytest.mark.parametrize(
    ("old", "new"),
    [("degree 3", "degree " + "9" * 30), ("row_numbers 1", "row_numbers " + "9" * 30),
     ("row_numbers 1", "row_numbers 0"), ("row_numbers 1", "row_numbers \u00b2"),
     ("n_features 1\n", f"n_features {'9' * 30}\n"), ("n_features 1\n", "n_features 2147483647\n")],
    ids=["degree", "row-number", "row-number-zero", "row-number-digit", "features", "features-beyond"],  # noqa: E501
)  # fmt: skip
def test_a_model_with_a_number_out_of_range_is_refused(tmp_path, old, new):
    """NumPy or Cython raised OverflowError; memory for a huge n_features was allocated."""
    path = tmp_path / "m"
    path.write_text(MODEL)
    load_model(path)
    path.write_text(MODEL.replace(old, new), encoding="utf-8")
    with pytest.raises(ModelError):
        model = load_model(path)
        if "degree" in new:
            model.predict(np.ones((1, 1)))


def test_merged_rows_at_their_bound_are_counted_as_such():
    """The last of equal rows got C minus a rounding error: n_bsv was 980 instead of 1041."""
    X, y = labelled_rows(100, 3, seed=1, noise=0.3)
    again = np.random.default_rng(0).integers(0, 100, 700)
    report = dcsvm.train(X[again], y[again], C=0.3, gamma=2, threads=1).report
    assert report.n_duplicates > 500
    assert report.n_bsv == report.problems[0].n_bsv > 300


@pytest.mark.parametrize("svm_type, options", [("nu_svr", {"nu": 0.4}), ("epsilon_svr", {})])
@pytest.mark.parametrize("C", [0.1, 1.0, 2.0])
def test_a_linear_regression_with_nearly_all_rows_at_a_bound_is_solved(svm_type, options, C):
    """With targets near 100 and features near 0.01, descent in w stopped far from the optimum."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(400, 10)) / 20
    y = 150 + 70 * rng.normal(size=400) + 200 * X[:, 0]
    linear = dcsvm.train(X, y, svm_type=svm_type, kernel="linear", C=C, **options)
    same = {"kernel": "polynomial", "degree": 1, "gamma": 1.0}
    other = dcsvm.train(X, y, svm_type=svm_type, C=C, **same, **options)
    assert linear.report.converged
    assert linear.report.objective == pytest.approx(other.report.objective, rel=1e-6)


def test_iterations_are_counted_for_every_pair_of_classes():
    X, y = labelled_rows(600, 4, seed=2)
    y = np.where(X[:, 0] > 0.4, 3.0, y)
    report = dcsvm.train(X, y, C=4, gamma=1.0).report
    counts = [problem.iterations for problem in report.problems]
    assert min(counts) > 0 and sum(counts) == report.counts["iterations"]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork")
def test_a_forked_process_uses_one_thread():
    """OpenMP's threads do not exist after a fork; the process waited for them forever."""
    done = subprocess.run(
        [sys.executable, "-c", FORKED], timeout=60, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr


FORKED = """
import os
import numpy as np
import dcsvm
X = np.random.default_rng(0).normal(size=(3000, 3))
y = np.where(X[:, 0] > 0, 1, -1)
dcsvm.train(X, y, threads=2)
child = os.fork()
if child == 0:
    os._exit(dcsvm.train(X, y).report.threads - 1)
assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
"""
