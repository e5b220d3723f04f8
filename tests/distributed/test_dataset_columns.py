"""Test that chunks are matched by the names of their columns, or refused if they differ."""

from decimal import Decimal

import dask
import dask.array
import numpy as np
import pytest
from scipy import sparse

import dcsvm
from dcsvm.distributed import DaskSVC, DaskSVR, RemoteDataset, train

pandas = pytest.importorskip("pandas")

N, HALF = 60, 30


@pytest.fixture(scope="module")
def numbers():
    X = np.random.default_rng(0).normal(size=(N, 3))
    return X, np.where(X[:, 0] + X[:, 1] ** 2 > 0.6, 1, -1)


@pytest.fixture(scope="module")
def frame(numbers):
    """Return a data frame of numbers, numbers with gaps, and words."""
    X, _ = numbers
    words = np.select([X[:, 2] > 0.3, X[:, 2] > -0.5], ["red", "blue"], "green").astype(object)
    gaps = np.where(np.arange(N) % 7 == 0, np.nan, 10 + X[:, 1])
    return pandas.DataFrame({"a": X[:, 0], "b": gaps, "w": words})


def chunks(*values):
    return [dask.delayed(one) for one in values]


def halves(values):
    return chunks(values[:HALF], values[HALF:])


def as_pandas(frame):
    return frame


def as_polars(frame):
    return pytest.importorskip("polars").from_pandas(frame)


def as_arrow(frame):
    return pytest.importorskip("pyarrow").Table.from_pandas(frame, preserve_index=False)


@pytest.mark.parametrize("kind", [as_pandas, as_polars, as_arrow])
@pytest.mark.parametrize("scale", [None, "auto", "quantile"])
def test_columns_in_another_order_are_matched_by_name(client, numbers, frame, kind, scale):
    y = numbers[1]
    rows = chunks(kind(frame[:HALF]), kind(frame[HALF:][["w", "b", "a"]]))
    model = train(client, rows, halves(y), scale=scale)
    here = dcsvm.train(frame, y, scale=scale)
    assert model.table == here.table
    assert model.table.feature_names[:3] == ["a", "b", "b is missing"]
    assert model.report.objective == pytest.approx(here.report.objective, rel=1e-5)


def test_columns_of_numbers_are_matched_by_name_for_estimators(client, numbers, frame):
    y, rows = numbers[1], frame[["a"]].assign(c=numbers[0][:, 2] * 9)
    order = chunks(rows[:HALF], rows[HALF:][["c", "a"]])
    found = DaskSVC(client=client, gamma=1.0).fit(order, halves(y))
    expected = DaskSVC(client=client, gamma=1.0).fit(halves(rows), halves(y))
    assert found.model_.table is None
    assert found.report_.objective == expected.report_.objective


def test_a_chunk_without_rows_does_not_name_the_columns(client, numbers, frame):
    y, empty = numbers[1], frame[:0].assign(more=1.0)
    rows = [*chunks(empty), *halves(frame)]
    model = train(client, rows, [*chunks(y[:0]), *halves(y)])
    assert model.table == dcsvm.Dataset(frame, y).table


@pytest.mark.parametrize(
    ("first", "second", "reason"),
    [
        ("frame", "without w", "chunk 1: no column w, which chunk 0 has"),
        ("without w", "frame", "chunk 0: no column w, which chunk 1 has"),
        ("without rows or columns", "frame", "chunk 0: no column a, which chunk 1 has"),
        ("frame", "array", "chunk 0 is a data frame, chunk 1 is not"),
        ("array", "frame", "chunk 1 is a data frame, chunk 0 is not"),
        ("array", "narrow", "chunk 1 has 2 features, chunk 0 has 3"),
        ("narrow", "array", "chunk 0 has 2 features, chunk 1 has 3"),
        ("sparse", "narrow", "chunk 1 has 2 features, chunk 0 has 3"),
        ("gaps", "narrow", "chunk 1 has 2 features, chunk 0 has 3"),
        ("gaps", "sparse", "chunk 0 has missing values, but chunk 1 is a sparse matrix, which"),
    ],
)
def test_chunks_with_other_columns_are_refused(client, numbers, frame, first, second, reason):
    X, y = numbers
    kinds = {
        "frame": frame,
        "without w": frame[["b", "a"]],
        "without rows or columns": pandas.DataFrame(),
        "array": X,
        "narrow": X[:, :2],
        "sparse": sparse.csr_matrix(X),
        "gaps": np.where(X > 1, np.nan, X),
    }
    rows = chunks(kinds[first][:HALF], kinds[second][HALF:])
    with pytest.raises(ValueError, match=f"^{reason}"):
        train(client, rows, halves(y))


@pytest.mark.parametrize("other", [np.asarray, sparse.csr_matrix])
def test_sparse_chunks_may_lack_the_last_columns(client, numbers, other):
    X, y = numbers
    X = X * (np.arange(N)[:, None] >= [0, 0, HALF])
    rows = chunks(sparse.csr_matrix(X[:HALF, :2]), other(X[HALF:]))
    data = RemoteDataset(client, rows, halves(y))
    assert data.n_features == 3
    here = dcsvm.train(sparse.csr_matrix(X), y)
    objective = dcsvm.train(data).report.objective
    assert objective == pytest.approx(here.report.objective, rel=1e-5)


@pytest.mark.parametrize("kind", [as_pandas, as_polars, as_arrow])
def test_notations_dates_and_ids_are_found_over_all_chunks(client, numbers, kind):
    X, y = numbers
    rank = np.arange(N)
    rows = pandas.DataFrame(
        {
            "price": [f"{1000 * one:,.2f} €" if k else "-" for k, one in enumerate(X[:, 0])],
            "when": pandas.to_datetime("2020-01-01") + pandas.to_timedelta(rank * 7.25, "D"),
            "day": [f"{k % 28 + 1}/{1 + k // 28}/2021" for k in range(N)],
            "id": [f"row {k}" for k in range(N)],
            "code": np.where(rank < HALF, "2", "x1"),  # whole numbers in a chunk
            "kind": pandas.Categorical((rank % 3).astype(str)),
        }
    )
    with pytest.warns(UserWarning, match="column id has 60 different texts in 60 rows: dropped"):
        here = dcsvm.train(kind(rows), y, gamma=0.1)
    model = train(client, halves(kind(rows)), halves(y), gamma=0.1)
    assert model.table == here.table
    assert model.table.feature_names == [
        "price", "price is missing", "when (days)", "when (year)", "when (month)",
        "when (weekday)", "when (hour)", "day (days)", "day (month)", "day (weekday)",
        "code=2", "code=x1", "kind=0", "kind=1", "kind=2",
    ]  # fmt: skip
    found, expected = (one.decision_function(kind(rows[5:15])) for one in (model, here))
    np.testing.assert_allclose(found, expected, atol=1e-3)


def test_a_category_column_counts_once_in_the_default_gamma(client, numbers, frame):
    y = numbers[1]
    for model in (dcsvm.train(frame, y), train(client, halves(frame), halves(y))):
        assert model.table.n_features == 6 and model.kernel.gamma == 0.25


def test_targets_may_be_decimals(client, numbers):
    X = numbers[0]
    targets = np.array([Decimal(f"{one:.3f}") for one in X[:, 0]], object)
    plain = targets.astype(float)
    model = train(client, halves(X), halves(targets), svm_type="epsilon_svr")
    assert model.report.objective == pytest.approx(
        train(client, halves(X), halves(plain), svm_type="epsilon_svr").report.objective
    )
    estimator = DaskSVR(client=client).fit(halves(X), halves(targets))
    found = estimator.predict(dask.array.from_array(X, chunks=(HALF, 3))).compute()
    assert np.corrcoef(found, plain)[0, 1] > 0.9
