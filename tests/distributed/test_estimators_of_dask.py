"""Test DaskSVC and DaskSVR: the local estimators' parameters and fits, lazy predictions."""

import inspect
import pickle
import sys
import warnings

import numpy as np
import pytest

pytest.importorskip("sklearn")
import dask
import dask.array as da
import dask.dataframe as dd  # noqa: E402
import pandas as pd  # noqa: E402
from scipy.sparse import csr_matrix  # noqa: E402
from sklearn.base import clone  # noqa: E402

import dcsvm  # noqa: E402
from dcsvm.distributed import DaskSVC, DaskSVR, train  # noqa: E402
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


@pytest.mark.parametrize(
    "kind",
    [
        lambda y: y > 0,
        lambda y: y.astype(np.int8),
        lambda y: y.astype(np.int64),
        lambda y: y.astype(np.float32),
        lambda y: np.where(y > 0, "in", "out"),
        lambda y: np.where(y > 0, "in", "out").astype(object),
    ],
    ids=["bool", "int8", "int64", "float32", "str", "object"],
)
def test_classes_have_the_type_of_the_labels_as_here(client, rows_in_spots, kind):
    X, y = (one[:300] for one in rows_in_spots)
    labels, rows = kind(y), da.from_array(X, (100, -1))
    found = DaskSVC(client=client).fit(rows, da.from_array(labels, 100))
    here = SVC().fit(X, labels)
    lazy = client.compute(found.predict(rows)).result()
    for ours in (found.predict(X), lazy):
        assert ours.dtype == here.predict(X).dtype == labels.dtype
        assert np.array_equal(ours, here.predict(X))
    assert found.classes_.dtype == here.classes_.dtype
    assert np.array_equal(found.classes_, here.classes_)


def test_types_of_labels_are_those_of_chunks_with_rows(client, rows_in_spots):
    X, y = (one[:200] for one in rows_in_spots)
    rows, labels = (
        [dask.delayed(one) for one in cut]
        for cut in ([X[:0], X[:100], X[100:]], [np.array([]), y[:100] > 0, y[100:].astype(int)])
    )
    assert DaskSVC(client=client).fit(rows, labels).classes_.dtype == np.int64


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


@pytest.fixture(scope="module")
def frames(rows_in_spots):
    """Return rows and labels as data frames of pandas, and as those of dask."""
    pandas, dataframe = pytest.importorskip("pandas"), pytest.importorskip("dask.dataframe")
    X, y = rows_in_spots
    rows = pandas.DataFrame(X[:900], columns=[f"x{k}" for k in range(X.shape[1])])
    labels = pandas.Series(y[:900])
    return rows, labels, *(dataframe.from_pandas(one, npartitions=3) for one in (rows, labels))


@pytest.mark.parametrize("kind", [DaskSVC, DaskSVR])
def test_columns_have_names_and_an_order(client, frames, kind):
    rows, _, remote, labels = frames
    names = list(rows.columns)
    found = kind(client=client).fit(remote, labels)
    for one in (found, found.to_local()):
        assert one.feature_names_in_.tolist() == names
        assert one.n_features_in_ == len(names)
    expected = found.to_local().predict(rows)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert np.array_equal(client.compute(found.predict(remote)).result(), expected)
    for wrong in (remote[names[::-1]], rows[names[::-1]], remote.rename(columns={"x0": "a"})):
        with pytest.raises(ValueError, match="The feature names should match those that were"):
            found.predict(wrong)


@pytest.mark.parametrize("kind", [DaskSVC, DaskSVR])
def test_partitions_without_rows_are_predicted(client, frames, kind):
    rows, labels, remote, remote_labels = frames
    found = kind(client=client, **({"probability": True} if kind is DaskSVC else {}))
    found.fit(remote, remote_labels)
    local, second = found.to_local(), remote.index.to_dask_array(lengths=True) >= 300
    array = remote.to_dask_array(lengths=True)
    frame = remote.map_partitions(lambda part: part[part.index >= 300])
    names = ["predict", *(["decision_function", "predict_proba"] if kind is DaskSVC else [])]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # the arrays have no names
        for name in names:
            expected = getattr(local, name)(rows[300:])
            for some in (array[second], frame):
                assert np.array_equal(client.compute(getattr(found, name)(some)).result(), expected)
        kept = remote_labels.to_dask_array(lengths=True)[second]
        score = found.score(array[second], kept)
        assert score == pytest.approx(local.score(rows[300:], labels[300:]))
    assert len(client.compute(found.predict(frame.partitions[:1])).result()) == 0


def test_a_model_of_a_data_frame_has_its_encoding(client, frames):
    rows, labels, _, _ = frames
    table = rows.assign(kind=np.where(labels > 0, "x", "?"), number="1.5")
    table.loc[400:500, "number"] = "?"
    table.loc[7, "x1"] = np.nan
    collection = pytest.importorskip("dask.dataframe").from_pandas(table, npartitions=3)
    found = train(client, collection, frames[3], C=4, gamma="2/median", kernel="laplacian")
    here = dcsvm.train(table, labels, C=4, gamma="2/median", kernel="laplacian")
    assert found.table == here.table
    others = table[table.columns[::-1]]
    values = here.decision_function(table)
    assert found.decision_function(others) == pytest.approx(values, abs=1e-2)


@pytest.fixture(scope="module")
def tables(frames):
    """Return a frame with words and gaps, targets, and both as collections."""
    dataframe = pytest.importorskip("dask.dataframe")
    rows, labels, _, _ = frames
    table = rows.assign(word=np.where(rows["x0"] > 0, "plus", "minus"), flag=rows["x1"] > 0)
    table.loc[::9, "x1"] = np.nan
    target = rows["x0"] + rows["x1"]
    return table, target, *(dataframe.from_pandas(one, npartitions=3) for one in (table, target))


@pytest.mark.parametrize("scale", [None, "auto"])
@pytest.mark.parametrize(("remote", "local"), [(DaskSVC, SVC), (DaskSVR, SVR)])
def test_words_and_gaps_are_encoded_as_here(client, tables, remote, local, scale):
    table, target, collection, targets = tables
    y = np.where(target > 0, "above", "below") if remote is DaskSVC else target
    parts = targets.to_dask_array(lengths=True)
    if remote is DaskSVC:
        parts = da.where(parts > 0, "above", "below")
    found = remote(client=client, scale=scale, C=4).fit(collection, parts)
    here = local(scale=scale, C=4).fit(table, y)
    assert found.model_.table == here.model_.table
    assert found.feature_names_in_.tolist() == list(table.columns)
    assert found.n_features_in_ == here.n_features_in_ == 5
    assert found._gamma == pytest.approx(here._gamma, rel=1e-4)
    expected = found.to_local().predict(table)
    if remote is DaskSVC:
        assert np.mean(expected == here.predict(table)) > 0.99
    else:
        assert np.allclose(expected, here.predict(table), atol=0.05)
    for one in (collection, collection[list(table.columns)[::-1]]):
        lazy = found.predict(one)
        assert isinstance(lazy, da.Array)
        assert np.array_equal(client.compute(lazy).result(), expected)
    with pytest.raises(ValueError, match="feature names should match"):
        found.predict(collection.rename(columns={"word": "z"}))
    assert found.score(collection, parts) == pytest.approx(found.to_local().score(table, y))


def test_values_of_words_have_a_column_for_each_class(client, tables):
    table, target, collection, targets = tables
    y = targets.map_partitions(lambda one: (one > 0).astype(int) + (one > 1))
    found = DaskSVC(client=client, probability=True).fit(collection, y)
    local = found.to_local()
    for name in ("decision_function", "predict_proba"):
        lazy = getattr(found, name)(collection)
        assert lazy.shape[1] == 3
        assert np.array_equal(client.compute(lazy).result(), getattr(local, name)(table))


def test_delayed_chunks_are_predicted(client, rows_in_spots):
    X, y = (one[:300] for one in rows_in_spots)
    cut = [slice(0, 0), slice(0, 200), slice(200, 300)]
    rows, labels = ([dask.delayed(one[part]) for part in cut] for one in (X, y))
    found = DaskSVC(C=4, client=client, probability=True).fit(rows, labels)
    local = found.to_local()
    sparse = [dask.delayed(csr_matrix(X[part])) for part in cut]
    for name in ("predict", "decision_function", "predict_proba"):
        for chunks in (rows, sparse, dask.delayed(X)):
            lazy = getattr(found, name)(chunks)
            assert np.array_equal(client.compute(lazy).result(), getattr(local, name)(X))
    assert found.score(rows, labels) == local.score(X, y)


def test_masked_values_are_missing(client, rows_in_spots):
    X, y = (one[:300] for one in rows_in_spots)
    is_gap = np.random.default_rng(1).random(X.shape) < 0.1
    masked = da.ma.masked_array(da.from_array(X, (100, -1)), da.from_array(is_gap, (100, -1)))
    labels, gaps = da.from_array(y, 100), np.where(is_gap, np.nan, X)
    how = {"C": 4, "gamma": 1}
    model, local = train(client, masked, labels, **how), dcsvm.train(gaps, y, **how)
    assert np.allclose(model.decision_function(gaps), local.decision_function(gaps), atol=0.01)
    masked_here = np.ma.masked_array(X, is_gap)
    assert np.array_equal(model.predict(masked_here), model.predict(gaps))
    fitted = DaskSVC(client=client).fit(da.ma.masked_array(da.from_array(X, (100, -1))), labels)
    with pytest.raises(ValueError, match="Input X contains NaN"):
        DaskSVC(client=client).fit(masked, labels)
    with pytest.raises(ValueError, match="Input X contains NaN"):
        client.compute(fitted.predict(masked)).result()
    weights = da.ma.masked_array(da.ones(300, chunks=100), da.arange(300, chunks=100) == 123)
    with pytest.raises(ValueError, match=r"sample weights must be finite .* \(row 123\)"):
        train(client, masked, labels, sample_weight=weights, **how)


@pytest.mark.parametrize("fit", [train, lambda client, X, y: DaskSVC(client=client).fit(X, y)])
def test_an_error_names_the_row_of_the_collection(client, rows_in_spots, fit):
    X, y = (one[:300] for one in rows_in_spots)
    rows = da.from_array(X, (100, -1))
    for row, value in ((250, np.inf), (123, -np.inf)):
        wrong = X.copy()
        wrong[[row, 270], 1] = value
        with pytest.raises(ValueError, match=f"the value in row {row}, column 1 is not finite"):
            fit(client, da.from_array(wrong, (100, -1)), da.from_array(y, 100))
    words = np.where(y > 0, "in", "out").astype(object)
    words[[223, 290]] = None
    series = dd.from_pandas(pd.DataFrame({"a": X[:, 0], "b": X[:, 1], "y": words}), npartitions=3)
    numbers = da.ma.masked_array(da.from_array(y, 100), da.arange(300, chunks=100) >= 223)
    collections = [
        (rows, da.from_array(words, 100)),
        (rows, da.from_array(np.where(words == None, np.nan, y), 100)),  # noqa: E711
        (rows, numbers),
        (series[["a", "b"]], series.y),
    ]
    for collection in collections:
        with pytest.raises(ValueError, match="the label of row 223 is missing"):
            fit(client, *collection)


def test_nan_in_an_array_is_refused_as_here(client, data):
    X, y = data
    gaps = da.where(X > 0.9, np.nan, X)
    for kind in (DaskSVC, DaskSVR):
        with pytest.raises(ValueError, match=f"Input X contains NaN.\n{kind.__name__} does not"):
            kind(client=client, scale="auto").fit(gaps, y)


@pytest.mark.parametrize("given", [[2.0, 1.0, 0.0, 0.5], "learn"])
def test_weights_and_scale_are_those_of_the_local_estimator(client, frames, given):
    rows, labels, collection, remote_labels = frames
    given = np.resize(given, rows.shape[1]) if isinstance(given, list) else given
    options = {"C": 4, "scale": "auto", "feature_weights": given}
    found = DaskSVC(client=client, **options).fit(collection, remote_labels)
    here = SVC(**options).fit(rows, labels)
    assert found.model_.table is None and found.get_params()["scale"] == "auto"
    scalings = found.model_.scaling, here.model_.scaling
    assert scalings[0].weights == pytest.approx(scalings[1].weights, rel=1e-3)
    assert found._gamma == pytest.approx(here._gamma, rel=1e-4)
    assert np.allclose(found.decision_function(rows), here.decision_function(rows), atol=0.02)
    again = DaskSVC(client=client, scale=found.model_.scaling).fit(collection, remote_labels)
    assert np.array_equal(again.model_.scaling.weights, found.model_.scaling.weights)


def test_sample_and_class_weights_count_by_the_users_labels(client, data, rows_in_spots):
    X, y = rows_in_spots
    words = np.where(y > 0, "in", "out")
    weights = np.where(X[:, 0] > 0, 2.0, 0.5)
    options = {"C": 4, "gamma": 1.0, "class_weight": {"in": 5.0, "out": 0.2}}
    found = DaskSVC(client=client, **options).fit(
        data[0], da.from_array(words, 1500), sample_weight=da.from_array(weights, 1500)
    )
    here = SVC(**options).fit(X, words, sample_weight=weights)
    assert np.array_equal(found.class_weight_, here.class_weight_)
    assert np.allclose(found.decision_function(X), here.decision_function(X), atol=0.02)


def test_a_warm_start_goes_on_from_the_last_fit(client, data):
    cold = DaskSVC(C=100, gamma=1.0, client=client).fit(*data)
    warm = DaskSVC(C=50, gamma=1.0, client=client, warm_start=True).fit(*data)
    warm.set_params(C=100).fit(*data)
    assert warm.report_.objective == pytest.approx(cold.report_.objective, rel=1e-3)
