"""Test that workers shift columns for float32 as one process does."""

import dask.array as da
import dask.dataframe as dd
import numpy as np
import pandas
import pytest
from scipy import sparse

import dcsvm
from dcsvm.distributed import DaskSVC, RemoteDataset, train
from dcsvm.distributed.dataset import read_on_workers
from dcsvm.kernel.kernels import TYPES

OPTIONS = {"C": 10.0, "gamma": 2.0, "bias": True}


@pytest.fixture(scope="module")
def made():
    X = [500000, 4649776, 0] + np.random.default_rng(0).uniform(0, 2, (600, 3))
    return X, np.where(np.hypot(*(X[:, :2] - [500001, 4649777]).T) < 0.8, 1.0, -1.0)


def shifted(data):
    return data.shifted(TYPES["rbf"], pytest.fail)


@pytest.mark.parametrize("form", ["array", "sparse", "frame", "file"])
def test_the_shift_is_that_of_one_process(client, made, form, tmp_path):
    X, y = made
    if form == "file":
        lines = [f"{label:g} " + " ".join(f"{j}:{value!r}" for j, value in enumerate(row, 1))
                 for row, label in zip(X.tolist(), y, strict=True)]  # fmt: skip
        (tmp_path / "rows").write_text("\n".join([*lines, ""]))
        data = read_on_workers(client, str(tmp_path / "rows"))
    else:
        X_given = da.from_array(X, (250, -1))
        if form == "sparse":
            X_given = X_given.map_blocks(sparse.csr_matrix).to_delayed().ravel().tolist()
        if form == "frame":
            X_given = dd.from_pandas(pandas.DataFrame(X, columns=list("abc")), npartitions=3)
        y_given = da.from_array(y, 250)
        if form != "array":
            y_given = y_given.to_delayed().ravel().tolist()
        if form == "frame":
            y_given = dd.from_pandas(pandas.Series(y), npartitions=3)
        data = RemoteDataset(client, X_given, y_given)
    found = shifted(data)
    assert found.scaling.columns.tolist() == [0, 1]
    assert found.scaling.features.offset.tolist() == X[:, :2].min(axis=0).tolist()
    model = dcsvm.train(found, **OPTIONS)
    wanted = dcsvm.train(X, y, **OPTIONS)
    given = pandas.DataFrame(X, columns=list("abc")) if form == "frame" else X
    assert model.decision_function(given) == pytest.approx(wanted.decision_function(X), abs=0.01)


def test_training_and_the_estimator_shift(client, made):
    X, y = made
    given = da.from_array(X, (250, -1)), da.from_array(y, 250)
    model = train(client, *given, **OPTIONS)
    assert model.scaling.is_shift and np.mean(model.predict(X) == y) > 0.98
    fitted = DaskSVC(C=10, gamma=2.0, client=client).fit(*given)
    assert fitted.support_vectors_ == pytest.approx(X[fitted.support_], rel=1e-7)
    assert np.array_equal(client.compute(fitted.predict(given[0])).result(), fitted.predict(X))
    assert fitted.score(*given) > 0.98


def test_ordinary_rows_stay_and_other_kernels_warn(client, made):
    X, y = made
    data = RemoteDataset(client, da.from_array(X[:, 2:], (250, -1)), da.from_array(y, 250))
    assert shifted(data) is data
    with pytest.warns(UserWarning, match=r"feature 0 \(1 more alike\) is rounded to float32"):
        train(client, da.from_array(X, (250, -1)), da.from_array(y, 250), kernel="linear", C=1e-9)
