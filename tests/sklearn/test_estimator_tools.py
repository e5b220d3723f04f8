"""Test the estimators in other tools: unchanged scripts, scikit-learn's tools, data frames, joblib,
limits of threads, pickle and metadata routing."""

import copy
import multiprocessing
import os
import pickle
import re
import subprocess
import sys
from pathlib import Path

import joblib
import numpy as np
import pytest
import sklearn
from scipy import sparse
from sklearn import ensemble, model_selection, svm
from sklearn.base import clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.inspection import permutation_importance
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.multiclass import OneVsRestClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from threadpoolctl import threadpool_limits

from dcsvm import machine
from dcsvm.machine import default_threads
from dcsvm.sklearn import SVC, SVR

SCRIPTS = Path(__file__).resolve().parents[2] / "examples" / "sklearn"
THEIR_TOL = 1e-6  # scikit-learn's tolerance, small enough to cause no difference
NUMBER = re.compile(r"-?\d+(?:\.\d+)?")


@pytest.fixture(scope="module")
def counts():
    """Return 160 rows of small integers, two in three of them 0, and labels that depend on them."""
    rng = np.random.default_rng(5)
    X = rng.integers(1, 6, (160, 8)) * (rng.random((160, 8)) < 1 / 3)
    return X, np.where(X[:, :4].sum(axis=1) + rng.integers(0, 3, 160) > 5, "many", "few")


# --- scripts without any mention of dcsvm ---


def started(*arguments, folder):
    command, pipe = [sys.executable, *map(str, arguments)], subprocess.PIPE
    return subprocess.Popen(command, stdout=pipe, stderr=pipe, text=True, cwd=folder)


@pytest.mark.parametrize("name", ["digits", "novelty", "regression", "grid_search"])
def test_an_unchanged_script_says_the_same_with_and_without_dcsvm(name, tmp_path):
    script = SCRIPTS / f"{name}.py"
    with (
        started(script, folder=tmp_path) as their_run,
        started("-m", "dcsvm.sklearn", script, folder=tmp_path) as our_run,
    ):
        theirs, their_errors = their_run.communicate(timeout=60)
        ours, our_errors = our_run.communicate(timeout=60)
    assert (their_run.returncode, their_errors) == (0, "")
    assert our_run.returncode == 0, our_errors
    assert NUMBER.sub("#", ours) == NUMBER.sub("#", theirs)
    numbers = NUMBER.findall(ours), NUMBER.findall(theirs)
    assert len(numbers[0]) >= 6
    for our, their in zip(*numbers, strict=True):
        error = abs(float(our) - float(their))
        assert error <= (0.02 if "." in their else max(1, 0.02 * float(their))), ours + theirs
    (said,) = our_errors.splitlines()
    assert said.startswith("dcsvm: SVC, NuSVC, SVR, NuSVR, OneClassSVM of scikit-learn")
    assert os.listdir(tmp_path) == []


# --- scikit-learn's tools ---


def searched(svm, X, y):
    grid = {"C": [0.5, 5], "gamma": [0.05, 0.3]}
    return GridSearchCV(svm, grid, cv=3, n_jobs=2).fit(X, y).cv_results_["mean_test_score"]


def scaled(svm, X, y):
    fitted = make_pipeline(StandardScaler(), svm).fit(X[::2] * [1, 5, 1, 9, 1, 1], y[::2])
    return fitted.predict(X[1::2] * [1, 5, 1, 9, 1, 1])


def predicted_by_folds(svm, X, y):
    method = "predict" if sklearn.base.is_regressor(svm) else "decision_function"
    return model_selection.cross_val_predict(svm, X, y, cv=3, method=method)


def importances(svm, X, y):
    found = permutation_importance(svm.fit(X, y), X, y, n_repeats=3, random_state=0)
    return found.importances_mean


def calibrated(svm, X, y):
    return CalibratedClassifierCV(svm, cv=3).fit(X[::2], y[::2]).predict_proba(X[1::2])


def bagged(svm, X, y):
    svm.set_params(gamma=0.1)  # rows are drawn by weights, which change our gamma="scale"
    bag = ensemble.BaggingClassifier(svm, n_estimators=4, max_features=5, random_state=0)
    return bag.fit(X[::2], y[::2]).predict_proba(X[1::2])


def one_against_rest(svm, X, y):
    return OneVsRestClassifier(svm).fit(X[::2], y[::2]).decision_function(X[1::2])


def stacked(svm, X, y):
    stack = ensemble.StackingClassifier(
        [("svm", svm), ("tree", ensemble.ExtraTreesClassifier(5, random_state=0))],
        LogisticRegression(),
        cv=3,
    )
    return stack.fit(X[::2], y[::2]).predict_proba(X[1::2])


def voted(svm, X, y):
    other = clone(svm).set_params(C=30)
    vote = ensemble.VotingClassifier([("mild", svm), ("strict", other)])
    return vote.fit(X[::2], y[::2]).transform(X[1::2])


@pytest.mark.parametrize(
    "tool",
    [searched, scaled, predicted_by_folds, importances, calibrated, bagged, one_against_rest,
     stacked, voted],
)  # fmt: skip
def test_a_tool_finds_with_our_svc_what_it_finds_with_theirs(tool, three_classes):
    ours, theirs = tool(SVC(C=2), *three_classes), tool(svm.SVC(C=2, tol=THEIR_TOL), *three_classes)
    np.testing.assert_allclose(ours, theirs, atol=1e-3)


@pytest.mark.parametrize("tool", [searched, scaled, predicted_by_folds, importances])
def test_a_tool_finds_with_our_svr_what_it_finds_with_theirs(tool, curve):
    ours, theirs = tool(SVR(C=2), *curve), tool(svm.SVR(C=2, tol=THEIR_TOL), *curve)
    np.testing.assert_allclose(ours, theirs, atol=1e-3)


# --- data frames ---


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_a_data_frame_gives_its_names_and_what_an_array_gives(library, counts):
    frames = pytest.importorskip(library)
    X, y = counts
    names = [f"word {number}" for number in range(X.shape[1])]
    columns = {name: X[:, number] for number, name in enumerate(names)}
    columns["word 0"] = columns["word 0"].astype(np.float32)  # two column types
    frame, labels = frames.DataFrame(columns), frames.Series(y)
    fitted, plain = SVC().fit(frame, labels), SVC().fit(X, y)
    assert list(fitted.feature_names_in_) == names
    assert not hasattr(plain, "feature_names_in_")
    assert fitted.predict(frame).tolist() == plain.predict(X).tolist()
    np.testing.assert_array_equal(fitted.decision_function(frame), plain.decision_function(X))
    with pytest.raises(ValueError, match="feature names should match"):
        fitted.predict(frame[names[::-1]])


# --- arrays of all kinds, and joblib ---


def read_only(X):
    X = X.astype(np.float64)
    X.flags.writeable = False
    return X


DENSE = {
    "float32": lambda X: X.astype(np.float32),
    "int64": lambda X: X.astype(np.int64),
    "uint8": lambda X: X.astype(np.uint8),
    "Fortran order": lambda X: np.asfortranarray(X, dtype=np.float64),
    "Fortran order, float32": lambda X: np.asfortranarray(X, dtype=np.float32),
    "read-only": read_only,
    "every second column": lambda X: np.repeat(X, 2, axis=1).astype(np.float64)[:, ::2],
    "list": lambda X: X.tolist(),
}
SPARSE = {
    f"{form}_{kind}": getattr(sparse, f"{form}_{kind}")
    for form in ("csr", "csc", "coo", "lil")
    for kind in ("matrix", "array")
}


@pytest.mark.parametrize("form", DENSE)
def test_dense_rows_of_all_forms_give_the_same_model(form, counts):
    X, y = counts
    given = DENSE[form](X)
    expected = SVC(C=5).fit(X.astype(np.float64), y)
    fitted = SVC(C=5).fit(given, y)
    np.testing.assert_array_equal(fitted.dual_coef_, expected.dual_coef_)
    np.testing.assert_array_equal(fitted.decision_function(given), expected.decision_function(X))
    np.testing.assert_array_equal(given, X)


def test_bool_features_are_0_and_1(counts):
    X, y = counts
    values = [
        SVC().fit(given, y).decision_function(given)
        for given in (X > 0, (X > 0).astype(float), sparse.csr_matrix(X > 0))
    ]
    np.testing.assert_array_equal(values[0], values[1])
    np.testing.assert_allclose(values[0], values[2], rtol=1e-9)


@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.int64])
@pytest.mark.parametrize("form", SPARSE)
def test_sparse_rows_of_all_forms_give_the_model_of_dense_ones(form, dtype, counts):
    X, y = counts
    given = SPARSE[form](X.astype(dtype))
    expected, fitted = SVC(C=5).fit(X, y), SVC(C=5).fit(given, y)
    assert sparse.issparse(fitted.support_vectors_)
    np.testing.assert_array_equal(fitted.support_, expected.support_)
    values = fitted.decision_function(given)
    np.testing.assert_allclose(values, expected.decision_function(X), atol=1e-5)
    np.testing.assert_array_equal(fitted.predict(X), expected.predict(X))
    assert (given != SPARSE[form](X)).nnz == 0


@pytest.mark.parametrize(
    "kind, offset", [(np.int8, 100), (np.uint8, 200), (np.int32, 50_000), (np.float32, 1000)]
)
def test_gamma_of_sparse_rows_is_that_of_dense_ones(kind, offset, counts):
    X = (counts[0] + offset).astype(kind)
    gammas = [SVC().fit(given, counts[1])._gamma for given in (sparse.csr_matrix(X), X)]
    np.testing.assert_allclose(*gammas, rtol=1e-6)


@pytest.mark.parametrize("order", ["C", "F"])
def test_rows_in_a_mapped_file_are_read_from_there(order, counts, tmp_path):
    X, y = counts
    mapped = np.memmap(tmp_path / "X", np.float64, "w+", shape=X.shape, order=order)
    mapped[:] = X
    mapped.flush()
    mapped = np.memmap(tmp_path / "X", np.float64, "r", shape=X.shape, order=order)
    expected = SVC().fit(X, y).decision_function(X)
    np.testing.assert_array_equal(SVC().fit(mapped, y).decision_function(mapped), expected)


@pytest.mark.parametrize("is_sparse", [False, True])
def test_joblib_keeps_an_estimator_in_a_file_and_maps_it(is_sparse, counts, tmp_path):
    X, y = counts
    given = sparse.csr_matrix(X, dtype=np.float64) if is_sparse else X
    fitted = SVC().fit(given, y)
    joblib.dump((fitted, given), tmp_path / "fitted.joblib")
    for mode in (None, "r", "c"):
        read, rows = joblib.load(tmp_path / "fitted.joblib", mmap_mode=mode)
        expected = fitted.decision_function(given)
        np.testing.assert_array_equal(read.decision_function(rows), expected)
        np.testing.assert_array_equal(SVC().fit(rows, y).decision_function(given), expected)


# --- threads ---


def threads_of_a_fit(X, y, threads=None):
    return SVC(threads=threads).fit(X, y).report_.threads


def test_a_fit_keeps_to_the_threads_that_threadpoolctl_leaves_it(counts, monkeypatch):
    assert threads_of_a_fit(*counts) == 1  # small work
    monkeypatch.setattr(machine, "SMALL_WORK", 0)
    with threadpool_limits(1):
        assert threads_of_a_fit(*counts) == 1
    assert threads_of_a_fit(*counts) == default_threads()


def test_fits_in_joblibs_workers_share_the_cores(counts):
    fits = [joblib.delayed(threads_of_a_fit)(*counts) for _ in range(4)]
    used = joblib.Parallel(n_jobs=2, backend="loky")(fits)
    assert max(used) <= max(1, joblib.cpu_count() // 2)


@pytest.mark.skipif(sys.platform != "linux", reason="joblib's multiprocessing forks there")
def test_a_fit_in_a_forked_process_ends(counts):
    threads_of_a_fit(*counts, threads=2)  # starts threads, which do not exist after a fork
    child = multiprocessing.get_context("fork").Process(target=threads_of_a_fit, args=counts)
    child.start()
    child.join(5)
    child.kill()
    child.join()
    assert child.exitcode == 0


# --- copies, and metadata routing ---


@pytest.mark.parametrize("copied", [lambda one: pickle.loads(pickle.dumps(one)), copy.deepcopy])
@pytest.mark.parametrize("estimator", [SVC(C=3, probability=True), SVC(kernel="linear"), SVR()])
def test_a_copy_predicts_bit_for_bit_as_the_fitted_estimator(copied, estimator, three_classes):
    X, y = three_classes
    fitted = clone(estimator).fit(X, y)
    again = copied(fitted)
    assert repr(again) == repr(fitted)
    np.testing.assert_array_equal(again.predict(X), fitted.predict(X))
    np.testing.assert_array_equal(again.dual_coef_, fitted.dual_coef_)
    assert (again.violation_, again.duality_gap_) == (fitted.violation_, fitted.duality_gap_)
    if hasattr(fitted, "predict_proba"):
        np.testing.assert_array_equal(again.predict_proba(X), fitted.predict_proba(X))


@pytest.mark.parametrize("ours, theirs", [(SVC, svm.SVC), (SVR, svm.SVR)])
def test_a_grid_search_routes_sample_weights_to_fit_and_score(ours, theirs, three_classes):
    X, y = three_classes
    weight = np.where(X[:, 0] > 0, 3.0, 0.25)

    def scores(estimator, **routed):
        estimator.set_params(gamma=0.1)
        estimator.set_fit_request(sample_weight=True).set_score_request(sample_weight=True)
        search = GridSearchCV(estimator, {"C": [0.3, 3]}, cv=3).fit(X, y, **routed)
        return search.cv_results_["mean_test_score"]

    with sklearn.config_context(enable_metadata_routing=True):
        weighted = scores(ours(), sample_weight=weight)
        expected = scores(theirs(tol=THEIR_TOL), sample_weight=weight)
        unweighted = scores(ours())
    np.testing.assert_allclose(weighted, expected, atol=1e-3)
    assert np.abs(weighted - unweighted).max() > 0.005
