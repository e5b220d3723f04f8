"""Test the arguments of a RemoteDataset, and who takes one."""

import dask
import numpy as np
import pytest

import dcsvm
from dcsvm.distributed import RemoteDataset, train

OPTIONS = {"C": 4, "gamma": 0.5}


def cut(values):
    return [dask.delayed(values[begin : begin + 250]) for begin in (0, 250)]


@pytest.fixture(scope="module")
def data(rows_in_spots):
    return tuple(one[:500] for one in rows_in_spots)


@pytest.mark.parametrize(
    "search",
    [
        lambda data: dcsvm.grid_search(data, Cs=[1], gammas=[1]),
        lambda data: dcsvm.easy(data, time_limit=1),
        lambda data: dcsvm.train(data, test=data, early=True),
    ],
    ids=["grid_search", "easy", "test rows"],
)
def test_only_train_takes_rows_on_workers(client, data, search):
    remote = RemoteDataset(client, *map(cut, data))
    with pytest.raises(TypeError, match=r"^only dcsvm\.train takes a RemoteDataset"):
        search(remote)


@pytest.mark.parametrize("scale", [None, "auto"])
def test_feature_weights_are_those_of_a_data_set(client, data, scale):
    X, y = data
    X = np.column_stack([X, np.ones(len(X), np.float32)])  # a scaling drops the last column
    given = {"scale": scale, "feature_weights": [2.0, 0.0, 0.5, 3.0]}
    remote = RemoteDataset(client, cut(X), cut(y), **given)
    here = dcsvm.Dataset(X, y, **given)
    assert np.array_equal(remote.scaling.weights, here.scaling.weights)
    found, expected = (dcsvm.train(one, **OPTIONS) for one in (remote, here))
    assert found.report.objective == pytest.approx(expected.report.objective, rel=1e-5)
    assert np.array_equal(found.predict(X), expected.predict(X))


def test_feature_weights_need_one_for_each_column(client, data):
    with pytest.raises(ValueError, match=r"feature_weights must have shape \(3,\), got \(2,\)"):
        RemoteDataset(client, *map(cut, data), feature_weights=[1, 2])


def test_rows_without_labels_are_weighted(client, data):
    given = {"feature_weights": [2.0, 0.0, 0.5]}
    options = {"svm_type": "one_class", "nu": 0.3, "gamma": 0.5}
    remote = dcsvm.train(RemoteDataset(client, cut(data[0]), **given), **options)
    here = dcsvm.train(dcsvm.Dataset(data[0], **given), **options)
    assert remote.report.objective == pytest.approx(here.report.objective, rel=1e-5)


def test_sample_weights_are_given_in_chunks(client, data):
    X, y = data
    weights = 0.5 + np.arange(500) % 3
    here = train(client, cut(X), cut(y), sample_weight=weights, **OPTIONS)
    models = [
        train(client, cut(X), cut(y), sample_weight=cut(weights), **OPTIONS),
        dcsvm.train(RemoteDataset(client, cut(X), cut(y)), sample_weight=cut(weights), **OPTIONS),
    ]
    assert [one.report.objective for one in models] == [here.report.objective] * 2
