"""Test compressed models: fewer vectors, nearly the same predictions, their messages."""

import numpy as np
import pytest
from made_models import made_model
from reference import csr_rows, dense, labelled_rows
from scipy import sparse

import dcsvm
from dcsvm import _core
from dcsvm.data.rows import Rows
from dcsvm.kernel.sources import EncodedSources
from dcsvm.model.reader import load_model


def disc(n, seed):
    return labelled_rows(n, 3, seed=seed, noise=0.02)


def three(n, seed):
    X = np.random.default_rng(seed).uniform(-1, 1, (n, 2)).astype(np.float32)
    return X, np.digitize(np.hypot(*X.T), [0.5, 0.9]).astype(float)


TRAINED = {"C": 10, "gamma": 4, "threads": 1}


@pytest.fixture(scope="module")
def exact():
    return dcsvm.train(*disc(2000, 0), levels=0, **TRAINED)


@pytest.fixture(scope="module")
def early():
    return dcsvm.train(*disc(2000, 0), early=True, early_level=2, **TRAINED)


@pytest.fixture(scope="module")
def classes():
    return dcsvm.train(*three(1500, 0), levels=1, **TRAINED)


def changed(model, small, X):
    return np.mean(model.predict(X, threads=1) != small.predict(X, threads=1))


def test_an_exact_model_of_a_tenth_predicts_nearly_the_same(exact, tmp_path):
    n_vectors = exact.exact.rows.n_samples // 10
    small = exact.compress(disc(2000, 0)[0], vectors=n_vectors, threads=1)
    assert small.exact.rows.n_samples == n_vectors == small.report.vectors
    assert changed(exact, small, disc(4000, 1)[0]) < 0.03
    small.save(tmp_path / "small")
    again, X = load_model(tmp_path / "small"), disc(500, 2)[0]
    np.testing.assert_array_equal(again.decision_function(X), small.decision_function(X))


def test_an_early_model_of_a_tenth_predicts_nearly_the_same(early, tmp_path):
    n_vectors = early.early.rows.n_samples // 5
    small = early.compress(disc(2000, 0)[0], vectors=n_vectors, threads=1)
    assert small.exact is None
    assert small.early.rows.n_samples == n_vectors
    assert changed(early, small, disc(4000, 1)[0]) < 0.05
    small.save(tmp_path / "small")
    again, X = load_model(tmp_path / "small"), disc(500, 2)[0]
    np.testing.assert_array_equal(again.decision_function(X), small.decision_function(X))


@pytest.mark.parametrize("method", ["exact", "early"])
def test_several_classes_share_landmarks_by_their_classes(classes, method, tmp_path):
    small = classes.compress(three(1500, 0)[0], vectors=60, method=method, threads=1)
    part = small.exact or small.early
    assert part.dual_coef.shape == (2, 60)
    X = three(3000, 1)[0]
    before = classes.predict(X, method=method, threads=1)
    assert np.mean(before != small.predict(X, threads=1)) < 0.06
    small.save(tmp_path / "small")
    again = load_model(tmp_path / "small")
    np.testing.assert_array_equal(again.predict(X[:99]), small.predict(X[:99]))


def test_a_regression_and_a_one_class_model_are_compressed():
    X, _ = disc(800, 0)
    y = 100 * np.sin(2 * X[:, 0])
    curve = dcsvm.train(X, y, svm_type="epsilon_svr", epsilon=1.0, **TRAINED)
    test = disc(500, 1)[0]
    small = curve.compress(X, test=test, vectors=30, threads=1)
    assert small.report.error < 5
    np.testing.assert_allclose(
        small.report.error,
        np.sqrt(np.mean((small.predict(test) - curve.predict(test)) ** 2)),
        rtol=1e-6,
    )
    inside = dcsvm.train(X, y, svm_type="one_class", nu=0.1, gamma=2, threads=1)
    small = inside.compress(X, vectors=inside.exact.rows.n_samples // 2, threads=1)
    assert changed(inside, small, test) < 0.05


def test_more_steps_change_fewer_labels(exact):
    X, test = disc(2000, 0)[0], disc(9000, 1)[0]
    few, many = (
        exact.compress(X, test=test, vectors=30, steps=steps, threads=1).report.changed
        for steps in (10, 2000)
    )
    assert many < 0.8 * few


def test_without_rows_the_support_vectors_are_fitted(exact):
    small = exact.compress(vectors=100, threads=1)
    assert small.report.changed is None
    assert changed(exact, small, disc(2000, 1)[0]) < 0.06


def test_sparse_landmarks_are_rows():
    X, y = disc(600, 0)
    wide = sparse.csr_matrix((X.ravel(), np.arange(1800) * 7 % 5000 // 9 * 9,
                              np.arange(0, 1801, 3)), shape=(600, 5000))  # fmt: skip
    wide.sum_duplicates()
    model = dcsvm.train(wide, y, C=10, gamma=1, levels=0, threads=1)
    small = model.compress(wide, vectors=100, threads=1)
    kept = {row.tobytes() for row in dense(small.exact.rows)}
    assert kept <= {row.tobytes() for row in wide.toarray().astype(np.float32)}


def test_any_number_of_threads_finds_the_same_landmarks(early, exact):
    for model in (exact, early):
        X = disc(2000, 0)[0]
        one, two = (model.compress(X, vectors=40, threads=n) for n in (1, 2))
        a, b = (each.exact or each.early for each in (one, two))
        np.testing.assert_array_equal(dense(a.rows), dense(b.rows))
        np.testing.assert_array_equal(a.dual_coef, b.dual_coef)


@pytest.mark.parametrize("method", ["exact", "early"])
def test_times_is_the_ratio_of_kernel_values_of_a_row(exact, early, method):
    model, times = (exact, 10) if method == "exact" else (early, 60)
    report = model.compress(disc(2000, 0)[0], times=times, threads=1).report
    assert report.values_before / report.values == pytest.approx(times, rel=0.1)


@pytest.mark.parametrize("seed", range(3))
def test_the_loss_that_is_stated_is_kept_on_other_rows(exact, seed):
    test, other = disc(3000, 30 + seed)[0], disc(20_000, 40 + seed)[0]
    small = exact.compress(disc(2000, 0)[0], test=test, loss=5, seed=seed, threads=1)
    report = small.report
    assert report.changed == changed(exact, small, test)
    assert report.changed < report.changed_at_most <= 0.05
    assert changed(exact, small, other) <= report.changed_at_most


@pytest.mark.parametrize(
    ("how", "sentence"),
    [({}, "exactly one of them, got 0"),
     ({"vectors": 3, "loss": 1}, "exactly one of them, got 2"),
     ({"vectors": 0}, "vectors must be at least 1, got 0"),
     ({"vectors": 10**6}, "vectors must be below the"),
     ({"times": 1}, "times must be above 1"),
     ({"times": 1e6}, "no vector is left"),
     ({"loss": 100}, "loss must be above 0 and below 100"),
     ({"loss": 1}, "loss requires test rows"),
     ({"loss": 0.001, "test": disc(100, 5)[0]}, "requires at least .* test rows, got 100"),
     ({"loss": 0.2, "test": disc(3000, 5)[0]}, "up to .* % of the labels may change"),
     ({"vectors": 9, "test": disc(2000, 0)[0]}, "test rows include most of the support vectors"),
     ({"vectors": 9, "steps": 0}, "steps must be at least 1"),
     ({"vectors": 9, "method": "all"}, "method must be one of exact, early"),
     ({"vectors": 9, "method": "early"}, "the model has no early level"),
     ({"vectors": 9, "X": np.zeros((5, 9))}, "9 features"),
     ({"vectors": 9, "X": np.zeros((0, 3))}, "no rows to fit to"),
     ({"vectors": 9, "test": np.zeros((0, 3))}, "no test rows")],
    ids=lambda one: one if isinstance(one, str) else " ".join(one),
)  # fmt: skip
def test_what_cannot_be_done_is_said(exact, how, sentence):
    with pytest.raises(ValueError, match=sentence):
        exact.compress(**{"threads": 1, **how})


def test_an_unknown_option_is_named(exact):
    with pytest.raises(TypeError, match="unknown option 'vector'; did you mean 'vectors'?"):
        exact.compress(vector=3)
    with pytest.raises(TypeError, match=r"unknown option 'early'; help\(dcsvm.Model.compress\)"):
        exact.compress(vectors=3, early=True)


def test_what_has_no_vectors_cannot_be_compressed():
    X, y = disc(100, 0)
    matrix = dcsvm.train(X @ X.T, y, kernel="precomputed", threads=1)
    with pytest.raises(ValueError, match="precomputed kernel cannot be compressed"):
        matrix.compress(vectors=5)
    single = dcsvm.train([[0.0], [1.0]], [1, 2], class_weight={1: 1e-9}, threads=1)
    single = single.compress(vectors=1) if single.exact.rows.n_samples > 1 else single
    with pytest.raises(ValueError, match="2 support vectors or more, got 1"):
        single.compress(vectors=1)


@pytest.mark.parametrize("form", [np.asarray, sparse.csr_matrix])
@pytest.mark.parametrize("n_classes", [2, 4])
def test_a_linear_model_becomes_a_vector_for_each_pair(form, n_classes, tmp_path):
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, (400, 100)).astype(np.float32) * (rng.random((400, 100)) < 0.04)
    y = rng.integers(0, n_classes, 400) + (X[:, 0] > 0)
    model = dcsvm.train(form(X), y % n_classes, kernel="linear", bias=True, threads=1)
    small = model.compress(vectors=model.n_pairs + 1, threads=1)
    assert small.exact.rows.n_samples == model.n_pairs
    small.save(tmp_path / "small")
    for one in (small, load_model(tmp_path / "small")):
        found, expected = (each.decision_function(form(X)) for each in (one, model))
        np.testing.assert_allclose(found, expected, atol=1e-5)


def test_a_linear_regression_becomes_a_vector():
    X = disc(300, 0)[0]
    y = X @ [1, 2, 3]
    line = dcsvm.train(X, y, svm_type="epsilon_svr", kernel="linear", C=10, threads=1)
    small = line.compress(vectors=1, threads=1)
    np.testing.assert_allclose(small.predict(X), line.predict(X), atol=1e-5)


def test_finding_the_cluster_limits_the_times(early):
    with pytest.raises(ValueError, match="to assign a row to its cluster"):
        early.compress(disc(2000, 0)[0], times=1000, threads=1)


def test_a_loss_of_a_regression_is_refused():
    X, _ = disc(200, 0)
    curve = dcsvm.train(X, X[:, 0], svm_type="epsilon_svr", epsilon=0.01, threads=1)
    with pytest.raises(ValueError, match="loss requires a classifier"):
        curve.compress(X, test=X + 1, loss=1)


def test_clusters_without_rows_near_a_border_answer_with_their_class():
    model = made_model(3)
    X = np.random.default_rng(0).uniform(-1, 1, (400, 3)).astype(np.float32)
    small = model.compress(X, vectors=10, method="early", threads=1)
    assert small.early.rows.n_samples <= 10
    assert np.isin(small.predict(X), model.labels).all()


def test_rows_in_two_forms_may_meet(exact):
    X = disc(2000, 0)[0]
    small = exact.compress(csr_rows(X), test=Rows.from_array(disc(900, 3)[0]), vectors=30)
    assert small.report.n_test == 900


def pictures(n, seed, largest):
    """Return blobs of 36 pixels from 0 to `largest`; the position of a blob gives its class."""
    rng = np.random.default_rng(seed)
    at, width = rng.uniform(0, 5, (n, 2, 1)), rng.uniform(0.8, 2, (n, 1))
    one = np.exp(-(((np.arange(6) - at) / width[:, None]) ** 2))
    X = np.rint(largest * np.einsum("ni,nj->nij", *one.transpose(1, 0, 2)).reshape(n, 36))
    return X.astype(np.uint8), np.where(np.hypot(*at[..., 0].T - 2.5) < 1.4, 1, -1)


@pytest.mark.parametrize("method", ["exact", "early"])
@pytest.mark.parametrize("largest", [255, 3])
def test_landmarks_of_bytes_are_evenly_spaced_where_that_is_nothing(method, largest, tmp_path):
    X, y = pictures(1500, 0, largest)
    model = dcsvm.train(X, y, C=10, gamma=0.02 / largest**2, early=method == "early", early_level=1,
                        threads=1)  # fmt: skip
    n_vectors = getattr(model, method).rows.n_samples // 5
    small = model.compress(X, vectors=n_vectors, threads=1, steps=400)
    assert changed(model, small, pictures(1000, 1, largest)[0]) < 0.05
    small.save(tmp_path / "small")
    for one in (small, load_model(tmp_path / "small")):
        rows = getattr(one, method).rows
        values = rows.as_floats().dense
        are_integers = not (values % 1).any()
        is_stepped = are_integers and np.gcd.reduce(values.astype(np.int64), axis=None) > 1
        if largest == 255:
            # support vectors that stay are bytes; a landmark may be a step of 1 beyond them
            assert is_stepped or (are_integers and values.min() >= -1 and values.max() <= 256)
        else:
            assert not is_stepped
        if is_stepped and _core.may_be_bytes(36, one.kernel.type.argument):
            assert EncodedSources(rows, one.kernel).for_bytes() is not None
