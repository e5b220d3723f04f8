"""Test DaskSVC and DaskSVR: the local estimators' parameters and fits, lazy predictions."""

import inspect
import pickle
import sys

import numpy as np
import pytest

pytest.importorskip("sklearn")
import dask.array as da
from sklearn.base import clone  # noqa: E402

from dcsvm.distributed import DaskSVC, DaskSVR  # noqa: E402
from dcsvm.sklearn import SVC, SVR  # noqa: E402


@pytest.fixture(scope="module")
def data(rows_in_spots):
    X, y = rows_in_spots
    return da.from_array(X, (1500, -1)), da.from_array(y, 1500)


@pytest.fixture(scope="module")
def fitted(client, data):
    return DaskSVC(C=4, client=client).fit(*data)


@pytest.mark.parametrize(("remote", "local"), [(DaskSVC, SVC), (DaskSVR, SVR)])
def test_constructors_have_the_parameters_and_defaults_of_the_local_ones(remote, local):
    ours, theirs = (dict(inspect.signature(one).parameters) for one in (remote, local))
    assert ours.pop("client").default is None
    assert ours == theirs


def test_a_fit_is_that_of_the_local_estimator(fitted, rows_in_spots):
    X, y = rows_in_spots
    here = SVC(C=4).fit(X, y)
    assert fitted._gamma == pytest.approx(here._gamma, rel=1e-5)
    assert fitted.report_.objective == pytest.approx(here.report_.objective, rel=1e-5)
    assert np.allclose(fitted.decision_function(X), here.decision_function(X), atol=0.01)
    assert np.array_equal(fitted.classes_, here.classes_)


def test_predictions_of_dask_arrays_are_lazy_and_those_of_the_local_estimator(client, fitted, data):
    local = fitted.to_local()
    assert type(local) is SVC and not hasattr(local, "client")
    X = data[0].compute()
    for name in ("predict", "decision_function"):
        found = getattr(fitted, name)(data[0])
        assert isinstance(found, da.Array)
        found = client.compute(found).result()
        assert np.array_equal(found, getattr(local, name)(X))


def test_pickles_have_no_client(fitted, data):
    again = pickle.loads(pickle.dumps(fitted))
    assert again.client is None
    X = data[0].compute()
    assert np.array_equal(again.predict(X), fitted.predict(X))


def test_clones_keep_the_client(client):
    one = clone(DaskSVR(C=7, client=client))
    assert one.C == 7 and one.client is client


def test_a_regression(client, rows_in_spots):
    X, _ = rows_in_spots
    y = np.sin(X[:, 0]).astype(np.float64)
    found = DaskSVR(C=2, client=client).fit(da.from_array(X, (1500, -1)), da.from_array(y, 1500))
    assert np.abs(found.predict(X) - SVR(C=2).fit(X, y).predict(X)).max() < 0.02


def test_rows_that_are_not_dasks_are_an_error(client, rows_in_spots):
    with pytest.raises(TypeError, match="dask collection"):
        DaskSVC(client=client).fit(*rows_in_spots)


def test_without_scikit_learn_a_sentence_says_what_to_install(monkeypatch):
    import dcsvm.distributed

    monkeypatch.setitem(sys.modules, "sklearn.utils.validation", None)
    for name in [one for one in sys.modules if one.startswith("dcsvm.")]:
        if name.startswith("dcsvm.sklearn") or name == "dcsvm.distributed.estimators":
            monkeypatch.delitem(sys.modules, name)
    monkeypatch.delattr(dcsvm.distributed, "estimators", raising=False)
    with pytest.raises(ImportError, match=r"pip install 'dcsvm\[sklearn\]'"):
        _ = dcsvm.distributed.DaskSVC


def test_a_median_is_that_of_the_local_estimator(client, data, rows_in_spots):
    fitted = DaskSVC(gamma="2/median", client=client).fit(*data)
    assert fitted._gamma == SVC(gamma="2/median").fit(*rows_in_spots)._gamma
