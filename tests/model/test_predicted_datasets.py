"""Test that models predict Datasets as the values they were made of."""

import numpy as np
import pytest

import dcsvm

rng = np.random.default_rng(0)
X = rng.normal(size=(200, 3))
y = np.where(X[:, 0] + np.abs(X[:, 1]) > 0.5, "up", "down")


@pytest.mark.parametrize("scale", [None, "auto", "quantile"])
@pytest.mark.parametrize("weights", [None, [1.0, 2.0, 0.5]])
def test_a_dataset_is_predicted_as_its_values(scale, weights):
    data = dcsvm.Dataset(X, y, scale=scale, feature_weights=weights)
    model = dcsvm.train(data, C=4)
    expected = model.decision_function(X)
    others = dcsvm.Dataset(X), dcsvm.Dataset(X, like=model), dcsvm.Dataset(X, y, like=data)
    for one in (data, *others):
        assert np.array_equal(model.decision_function(one), expected)
        assert np.array_equal(model.predict(one), model.predict(X))


def test_encoded_columns_are_those_of_the_training_rows():
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(X, columns=["a", "b", "c"]).assign(w=np.where(X[:, 2] > 0, "p", "q"))
    data = dcsvm.Dataset(frame, y)
    model = dcsvm.train(data, C=4)
    for one in (data, dcsvm.Dataset(frame, like=model)):
        assert np.array_equal(model.predict(one), model.predict(frame))
    with pytest.raises(ValueError, match="other columns than the training rows"):
        model.predict(dcsvm.Dataset(frame))


def test_a_dataset_of_other_features_is_refused():
    model = dcsvm.train(X, y)
    with pytest.raises(ValueError, match="rows have 6 features, the model was trained on 3"):
        model.predict(dcsvm.Dataset(np.hstack([X, X])))


def test_a_dataset_of_a_file_is_predicted(tmp_path, write_libsvm):
    path = write_libsvm(X, np.where(y == "up", 1, 2), "data")
    model = dcsvm.train(dcsvm.Dataset.read(path, scale="auto"), C=4)
    assert np.array_equal(model.predict(dcsvm.Dataset.read(path, like=model)), model.predict(X))


def test_a_dataset_describes_itself():
    assert repr(dcsvm.Dataset(X, y)) == "Dataset(200 rows of 3 features, labels)"
    assert repr(dcsvm.Dataset(X)) == "Dataset(200 rows of 3 features, no labels)"
