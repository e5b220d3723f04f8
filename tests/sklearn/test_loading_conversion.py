"""Test conversion from and to scikit-learn's estimators, model files and ONNX."""

import logging
import pickle

import numpy as np
import pytest
import sklearn.svm
from scipy import sparse
from sklearn.datasets import load_iris, make_classification, make_regression

import dcsvm
import dcsvm.sklearn as ours

NAMES = ["SVC", "NuSVC", "SVR", "NuSVR", "OneClassSVM"]


def data_of(name, n_classes=3):
    if name in ("SVR", "NuSVR"):
        X, y = make_regression(150, 5, noise=5.0, random_state=0)
        return X, y / y.std()
    X, y = load_iris(return_X_y=True)
    return X[y < n_classes], y[y < n_classes]


def values(fitted, X):
    return getattr(fitted, "decision_function", fitted.predict)(X)


def rbf(A, B):
    return np.exp(-0.3 * ((np.asarray(A)[:, None] - np.asarray(B)[None]) ** 2).sum(axis=2))


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("kernel", ["rbf", "linear", "poly", rbf])
@pytest.mark.parametrize("form", [np.asarray, sparse.csr_matrix])
def test_scikit_learns_estimator_has_the_same_values(name, n_classes, kernel, form):
    if callable(kernel) and form is not np.asarray:
        return
    X, y = data_of(name, n_classes)
    X = form(X)
    fitted = getattr(ours, name)(kernel=kernel).fit(X, y)
    theirs = fitted.to_sklearn()
    assert type(theirs) is getattr(sklearn.svm, name)
    expected = values(fitted, X)
    close = 1e-5 * max(1.0, np.abs(expected).max())
    np.testing.assert_allclose(values(theirs, X), expected, atol=close)
    np.testing.assert_array_equal(theirs.predict(X).shape, fitted.predict(X).shape)
    back = ours.from_sklearn(theirs)
    np.testing.assert_allclose(values(back, X), expected, atol=close)
    np.testing.assert_allclose(values(pickle.loads(pickle.dumps(theirs)), X), values(theirs, X))


@pytest.mark.parametrize("name", NAMES)
def test_a_fit_of_scikit_learn_predicts_the_same_here(name):
    X, y = data_of(name)
    theirs = getattr(sklearn.svm, name)(kernel="rbf", gamma=0.3).fit(X, y)
    taken = ours.from_sklearn(theirs)
    np.testing.assert_allclose(values(taken, X), values(theirs, X), atol=1e-5)
    np.testing.assert_array_equal(taken.support_, theirs.support_)
    taken.fit(X, y)
    assert taken.report_.converged


def test_probabilities_go_with_a_conversion():
    X, y = load_iris(return_X_y=True)
    fitted = ours.SVC(probability=True, random_state=0).fit(X, y)
    theirs = fitted.to_sklearn()
    np.testing.assert_allclose(theirs.predict_proba(X), fitted.predict_proba(X), atol=1e-4)
    np.testing.assert_allclose(
        ours.from_sklearn(theirs).predict_proba(X), fitted.predict_proba(X), atol=1e-6
    )


def test_what_cannot_be_converted_is_told():
    with pytest.raises(TypeError, match="expected one of scikit-learn's SVC"):
        ours.from_sklearn(sklearn.svm.LinearSVC())
    X, y = make_classification(3000, 4, random_state=0)
    early = ours.SVC(early=True, early_level=1, levels=1).fit(X, y)
    with pytest.raises(ValueError, match="decision function for each cluster"):
        early.to_sklearn()


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("format", ["dcsvm", "libsvm"])
def test_a_model_file_comes_back(name, format, tmp_path):
    X, y = data_of(name)
    y = 3 - 2 * y if "SVC" in name else y  # LIBSVM stores these labels in another order
    fitted = getattr(ours, name)().fit(X, y)
    fitted.save(tmp_path / "model", format=format)
    again = ours.load(tmp_path / "model")
    assert type(again) is type(fitted)
    np.testing.assert_allclose(values(again, X), values(fitted, X), rtol=1e-6, atol=1e-6)
    np.testing.assert_array_equal(again.predict(X).dtype, fitted.predict(X).dtype)
    np.testing.assert_allclose(values(again.to_sklearn(), X), values(fitted, X), atol=1e-5)


def test_a_model_of_sparse_rows_comes_back(tmp_path):
    X = sparse.random(200, 20, density=0.2, format="csr", random_state=0)
    y = np.asarray(X.sum(axis=1)).ravel() > 2
    fitted = ours.SVC().fit(X, y)
    fitted.save(tmp_path / "model")
    for rows in (X, X.toarray()):
        np.testing.assert_allclose(
            ours.load(tmp_path / "model").decision_function(rows), fitted.decision_function(X)
        )


def test_an_early_model_file_comes_back(tmp_path):
    X, two = make_classification(3000, 4, random_state=0)
    for y in (two, two + (X[:, 0] > 1)):
        fitted = ours.SVC(early=True, early_level=1, levels=1).fit(X, y)
        fitted.save(tmp_path / "model")
        again = ours.load(tmp_path / "model")
        np.testing.assert_allclose(again.decision_function(X), fitted.decision_function(X))
        np.testing.assert_array_equal(again.predict(X), fitted.predict(X))


def run_onnx(fitted, X, options):
    """Return the outputs of an estimator after conversion to ONNX."""
    skl2onnx = pytest.importorskip("skl2onnx")
    runtime = pytest.importorskip("onnxruntime")
    model = skl2onnx.to_onnx(fitted.to_sklearn(), X[:1], options=options)
    session = runtime.InferenceSession(model.SerializeToString())
    return session.run(None, {session.get_inputs()[0].name: X})


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", ["SVC", "NuSVC", "SVR", "OneClassSVM"])
def test_onnx_has_the_same_values(name):
    X, y = data_of(name)
    X = X.astype(np.float32)
    fitted = getattr(ours, name)(gamma=0.3).fit(X, y)
    outputs = run_onnx(fitted, X, {"zipmap": False} if "SVC" in name else None)
    expected = values(fitted, X)
    close = 1e-5 * max(1.0, np.abs(expected).max())
    np.testing.assert_allclose(outputs[-1].reshape(expected.shape), expected, atol=close)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("n_classes", [2, 3])
def test_a_compressed_model_becomes_onnx(n_classes, tmp_path):
    X = np.random.default_rng(0).uniform(-1, 1, (900, 3)).astype(np.float32)
    y = np.digitize(np.hypot(*X[:, :2].T), [0.5, 0.9][: n_classes - 1])
    small = dcsvm.train(X, y, C=10, gamma=4, levels=0).compress(X, vectors=12 * n_classes)
    small.save(tmp_path / "small")
    fitted = ours.load(tmp_path / "small").set_params(decision_function_shape="ovo")
    labels, outputs = run_onnx(fitted, X, {"zipmap": False})
    expected = fitted.decision_function(X)
    found = outputs[:, 0] if n_classes == 2 else outputs  # the second column is minus the first
    np.testing.assert_allclose(found, expected, atol=1e-5 * max(1.0, np.abs(expected).max()))
    assert np.mean(labels == small.predict(X)) > 0.999


@pytest.fixture
def patched():
    ours.patch()
    yield
    ours.unpatch()


def test_replaced_classes_are_ours_until_they_are_put_back(capsys):
    theirs = sklearn.svm.SVC
    ours.patch()
    ours.patch()
    assert isinstance(sklearn.svm.SVC(), ours.SVC)
    told = capsys.readouterr().err
    assert told.count("dcsvm: SVC, NuSVC, SVR, NuSVR, OneClassSVM of scikit-learn") == 1
    X, y = load_iris(return_X_y=True)
    fitted = sklearn.svm.SVC().fit(X, y)
    ours.unpatch()
    assert sklearn.svm.SVC is theirs
    again = pickle.loads(pickle.dumps(fitted))
    np.testing.assert_array_equal(again.predict(X), fitted.predict(X))


def test_a_gamma_that_scikit_learn_lacks_is_not_left_to_it(patched):
    X, y = data_of("SVC")
    with pytest.raises(ValueError, match="gamma must be a number for kernel polynomial"):
        sklearn.svm.SVC(kernel="poly", gamma="2/median").fit(X, y)


def test_a_kernel_that_scikit_learn_lacks_is_not_left_to_it(patched):
    X, y = data_of("SVC")
    with pytest.raises(ValueError, match="squares of features of .* are beyond float32"):
        sklearn.svm.SVC(kernel="laplacian").fit(1e30 * X, y)


def test_what_ours_refuses_is_left_to_scikit_learn(patched, caplog):
    caplog.set_level(logging.INFO, "dcsvm.sklearn")
    X, y = load_iris(return_X_y=True)
    K = rbf(X, X)
    K[0, 1] += 0.1
    fitted = sklearn.svm.SVC(kernel="precomputed").fit(K, y)
    assert "fitted by scikit-learn, the kernel matrix is not symmetric" in caplog.text
    assert isinstance(fitted, ours.SVC) and np.mean(fitted.predict(K) == y) > 0.9
    with pytest.raises(ValueError, match="greater than one"):
        sklearn.svm.SVC().fit(X, np.zeros(len(X)))
    with pytest.raises(ValueError, match="NaN"):
        sklearn.svm.SVC().fit(X * np.nan, y)
    with pytest.raises(ValueError, match="'levels' parameter of SVC must be .* from 0 to 30"):
        sklearn.svm.SVC(levels=99).fit(X, y)


@pytest.mark.parametrize("probability", [False, True])
def test_a_model_with_labels_of_text_is_loaded(tmp_path, probability):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 3))
    y = np.array(["b", "a", "c d"])[(X[:, 0] > 0).astype(int) + (X[:, 1] > 1)]
    fitted = ours.SVC(probability=probability, random_state=0).fit(X, y)
    fitted.save(tmp_path / "model")
    loaded = ours.load(tmp_path / "model")
    assert loaded.classes_.tolist() == ["a", "b", "c d"]
    assert np.array_equal(loaded.predict(X), fitted.predict(X))
    assert np.array_equal(loaded.decision_function(X), fitted.decision_function(X))
