"""Test models of --scale auto in Python: their range file is applied, and saved with them."""

import os
import pickle
from dataclasses import replace

import numpy as np
import pytest
from reference import libsvm_text, uneven_rows
from runs import train_rows
from scipy import sparse

import dcsvm
from dcsvm.data.dataset import Dataset


@pytest.fixture(scope="module", params=[False, True], ids=["exact", "early"])
def saved(request, tmp_path_factory):
    """Return (path of a model of scaled rows with its range file, raw test rows, decision values of
    these rows after scaling them here)."""
    folder = tmp_path_factory.mktemp("scaled")
    X, y = uneven_rows(400, 3)
    (folder / "train").write_text(libsvm_text(X, y))
    data = Dataset.read(folder / "train", scale="auto")
    how = {"early": True, "levels": 1} if request.param else {}
    options = dcsvm.TrainOptions.of(C=4.0, gamma=1.0, threads=1, **how)
    model, _ = train_rows(data.rows, data.labels, options)
    path = folder / "a.model"
    replace(model, scaling=data.scaling).save(path)
    X_test, _ = uneven_rows(100, 4)
    low, high = X[:, :4].min(axis=0), X[:, :4].max(axis=0)
    scaled = -1 + 2 * (X_test[:, :4] - low) / (high - low)
    return path, X_test, model.decision_function(scaled)


def test_a_loaded_model_scales_the_rows_that_it_predicts(saved):
    path, X, wanted = saved
    model = dcsvm.load_model(path)
    given = (X, X.tolist(), sparse.csr_matrix(X), X[:, :4], np.asfortranarray(X))
    for rows in given:
        np.testing.assert_allclose(model.decision_function(rows), wanted, atol=1e-5)
    np.testing.assert_allclose(model.decision_function(X[:1]), wanted[:1], atol=1e-5)
    assert np.array_equal(model.predict(X), np.where(wanted >= 0, *model.labels))
    assert "rows are scaled by" in repr(model)
    again = pickle.loads(pickle.dumps(model))
    assert np.array_equal(again.decision_function(X), model.decision_function(X))


def test_values_are_those_of_the_command_bit_for_bit(saved, write_libsvm):
    path, X, _ = saved
    model = dcsvm.load_model(path)
    file = write_libsvm(X, np.ones(len(X)), "test")
    rows = Dataset.read(file, scale=model.scaling).rows
    assert np.array_equal(model.decision_function(rows), model.decision_function(X))


def test_a_scaled_model_needs_no_other_file(saved, tmp_path):
    path, X, wanted = saved
    os.link(path, tmp_path / "a.model")
    model = dcsvm.load_model(tmp_path / "a.model")
    np.testing.assert_allclose(model.decision_function(X), wanted, atol=1e-5)


def test_the_range_file_goes_with_a_model_that_is_saved_or_compressed(saved, tmp_path):
    path, X, wanted = saved
    model = dcsvm.load_model(path)
    model.save(tmp_path / "b.model")
    small = dcsvm.load_model(tmp_path / "b.model").compress(X, vectors=150)
    assert np.mean((small.decision_function(X) > 0) == (wanted > 0)) > 0.95
    small.save(tmp_path / "small.model")
    again = dcsvm.load_model(tmp_path / "small.model")
    assert np.array_equal(again.decision_function(X), small.decision_function(X))


def test_rows_that_a_scaled_model_cannot_take_are_errors(saved):
    path, X, _ = saved
    model = dcsvm.load_model(path)
    with pytest.raises(ValueError, match="rows have 3 features, the model was trained on 4"):
        model.predict(X[:, :3])
    for wrong in (np.nan, np.inf):
        X_wrong = X.copy()
        X_wrong[2, 1] = wrong
        with pytest.raises(ValueError, match="the value in row 2, column 1 is not finite"):
            model.predict(X_wrong)
    X_far = X.copy()
    X_far[2, 1] = 1e38
    with pytest.raises(ValueError, match="feature 2 is too large for float32 when scaled by"):
        model.predict(X_far)


def test_an_estimator_of_a_scaled_model_takes_raw_rows(saved):
    ours = pytest.importorskip("dcsvm.sklearn")
    path, X, wanted = saved
    fitted = ours.load(path)
    np.testing.assert_allclose(fitted.decision_function(X), wanted, atol=1e-5)
    np.testing.assert_allclose(fitted.decision_function(sparse.csr_matrix(X)), wanted, atol=1e-5)
    if fitted.model_.exact is not None:
        with pytest.raises(ValueError, match="scikit-learn's estimator cannot scale"):
            fitted.to_sklearn()


def test_an_estimator_of_a_linear_scaled_model_takes_raw_rows(saved, tmp_path):
    ours = pytest.importorskip("dcsvm.sklearn")
    path, X, _ = saved
    scaling = dcsvm.load_model(path).scaling
    X_train, y = uneven_rows(300, 5)
    unscaled = dcsvm.train(X_train[:50, 2:3], y[:50], kernel="linear")
    one = replace(scaling, columns=np.array([0]), features=scaling.features.of(np.array([2])))
    replace(unscaled, scaling=one).save(tmp_path / "linear.model")
    low, high = one.features.minimum, one.features.maximum
    wanted = unscaled.decision_function(-1 + 2 * (X[:, 2:3] - low) / (high - low))
    found = ours.load(tmp_path / "linear.model").decision_function(X[:, 2:3])
    np.testing.assert_allclose(found, wanted, atol=1e-5)
