"""Test that chunks are matched by the names of their columns, or refused if they differ."""

import dask
import numpy as np
import pytest
from scipy import sparse

import dcsvm
from dcsvm.distributed import DaskSVC, RemoteDataset, train

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
