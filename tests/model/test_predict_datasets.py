"""Test that Datasets are predicted, and are test rows, as the values they were made of."""

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


@pytest.mark.parametrize("scale", [None, "auto", "quantile"])
@pytest.mark.parametrize("weights", [None, [1.0, 20.0, 0.5]])
def test_a_dataset_of_test_rows_is_scaled_as_the_training_rows(scale, weights):
    rows, other = X * [1, 100, 1], X[::-1] * [1, 100, 1] + 0.1
    how = {"scale": scale, "feature_weights": weights}
    tests = (
        (other, y[::-1]),
        dcsvm.Dataset(other, y[::-1]),
        dcsvm.Dataset(other, y[::-1], scale="auto"),
    )
    grids = [dcsvm.grid_search(rows, y, Cs=[1, 8], gammas=[1.0], test=one, **how) for one in tests]
    assert len({tuple(one.table["loss"]) for one in grids}) == 1
    early = {"early": True, "early_level": "auto", "gamma": 1.0, "levels": 2, "branching": 2}
    many, labels = np.tile(rows, (8, 1)) + rng.normal(size=(1600, 3)) * 0.3, np.tile(y, 8)
    models = [dcsvm.train(many, labels, test=one, **early, **how) for one in tests]
    choices = [one.report.early_choice for one in models]
    assert choices[0].on_test_rows
    assert choices[0] == choices[1] == choices[2]


def test_rows_that_are_not_kept_cannot_be_scaled_anew():
    model = dcsvm.train(X, y, scale="auto")
    with pytest.raises(ValueError, match="rows before scaling are not kept"):
        model.predict(dcsvm.Dataset(X, y).disposable())
