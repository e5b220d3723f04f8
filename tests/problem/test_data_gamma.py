"""Test gamma relative to the rows: the variance of every storage, medians, and rows without any."""

import re
from math import sqrt

import numpy as np
import pytest
from scipy import sparse
from scipy.spatial.distance import pdist

from dcsvm.data.columns import Column, TableEncoding
from dcsvm.data.rows import Rows, Storage
from dcsvm.kernel.distances import compared_rows
from dcsvm.problem.data_gamma import number_of_gamma, number_per_median, variance_of_rows
from dcsvm.problem.options import OptionError, TrainOptions

RNG = np.random.default_rng(4)
DENSITIES = {Storage.FLOATS: 1.0, Storage.PACKED: 0.1, Storage.SPARSE: 0.01}


def rows_of(storage):
    """Return rows and the same values as a float64 array."""
    if storage is Storage.BYTES:
        X = RNG.integers(0, 256, (200, 80)).astype(np.float64)
    else:
        X = sparse.random(200, 80, DENSITIES[storage], random_state=RNG).toarray()
        X = X.astype(np.float32).astype(np.float64)
    rows = Rows.from_array(X)
    assert rows.storage is storage
    return rows, X


def number(rows, gamma, **options):
    return number_of_gamma(TrainOptions(gamma=gamma, **options), rows).gamma


@pytest.mark.parametrize("storage", Storage)
def test_auto_is_by_the_variance_of_all_values(storage):
    rows, X = rows_of(storage)
    assert number(rows, "auto") == pytest.approx(1 / (80 * X.var()), rel=1e-14)


@pytest.mark.parametrize("storage", Storage)
@pytest.mark.parametrize("factor", [2, 0.3])
def test_a_median_is_that_of_the_distance_of_the_kernel(storage, factor):
    rows, X = rows_of(storage)
    medians = {
        "rbf": np.median(pdist(X, "sqeuclidean")),
        "laplacian": np.median(pdist(X, "cityblock")),
        "exponential": np.median(pdist(X)),
    }
    for kernel, median in medians.items():
        found = number(rows, f"{factor}/median", kernel=kernel)
        assert found == pytest.approx(factor / median, rel=1e-5)


def test_a_unit_is_one_by_the_median():
    rows, X = rows_of(Storage.FLOATS)
    unit = number_per_median("1/median", "exponential", rows)
    assert unit == pytest.approx(1 / sqrt(np.median(pdist(X, "sqeuclidean"))), rel=1e-5)


def test_far_from_zero_the_variance_keeps_its_digits():
    X = (RNG.random((500, 8)) + 30_000).astype(np.float32)
    assert variance_of_rows(Rows.from_array(X)) == pytest.approx(X.astype(np.float64).var(), 1e-12)


def test_a_number_is_kept_and_none_is_one_over_the_features():
    rows, _ = rows_of(Storage.FLOATS)
    assert (number(rows, 0.3), number(rows, None)) == (0.3, 1 / rows.n_features)
    assert number(rows, None, kernel="linear") is None
    assert number(rows, "auto", kernel="linear") is None


@pytest.mark.parametrize(
    ("X", "gamma", "sentence"),
    [
        (np.full((70, 3), 0.1), "auto", "for rows of variance 0, got 'auto'"),
        (np.zeros((0, 3)), "auto", "for rows of variance 0, got 'auto'"),
        (np.tile(RNG.random(3), (70, 1)), "2/median", ", got '2/median': all rows are equal"),
        (np.ones((1, 3)), "2/median", ", got '2/median': all rows are equal"),
        (np.eye(2), "1e308/median", None),
        (np.eye(2) * 1e-10, "1e300/median", "for rows of median distance 2e-20, got"),
    ],
    ids=str,
)
def test_rows_without_a_scale_are_an_error(X, gamma, sentence):
    rows = Rows.from_array(X.astype(np.float32))
    if sentence is None:
        assert number(rows, gamma) == pytest.approx(5e307)
        return
    with pytest.raises(OptionError, match=f"^gamma must be a number ?{re.escape(sentence)}"):
        number(rows, gamma)


DISTANCES = {"rbf": "sqeuclidean", "laplacian": "cityblock", "exponential": "euclidean"}


@pytest.mark.parametrize("storage", [Storage.FLOATS, Storage.PACKED, Storage.SPARSE])
@pytest.mark.parametrize("kernel", DISTANCES)
def test_the_median_of_mostly_equal_rows_is_that_of_different_rows(storage, kernel):
    _, X = rows_of(storage)
    X = np.concatenate([X, np.tile(X[:1], (1000, 1))])
    pairs = pdist(X[compared_rows(len(X))], DISTANCES[kernel])
    assert np.median(pairs) == 0
    found = number(Rows.from_array(X).in_storage(storage), "2/median", kernel=kernel)
    assert found == pytest.approx(2 / np.median(pairs[pairs > 0]), rel=1e-4)


@pytest.mark.parametrize("storage", [Storage.FLOATS, Storage.SPARSE])
def test_rare_rows_are_found_beyond_the_sample(storage):
    X = np.tile([1.0, 0.0, 3.0], (2000, 1))
    X[[3, 1001]] = [[1, 2, 3], [0, 0, 3]]
    rows = Rows.from_array(X).in_storage(storage)
    assert not {3, 1001} & set(compared_rows(len(X)))
    assert number(rows, "2/median", kernel="laplacian") == pytest.approx(2 / 1.5)


def test_auto_is_of_the_rows_where_the_median_is_zero():
    rows = Rows.from_array(np.tile([0.0, 1.0, 2.0], (70, 1)))
    assert number(rows, "auto") == pytest.approx(1 / (3 * 2 / 3))


def test_a_category_column_counts_once_in_the_default_gamma():
    rows = Rows.from_array(np.eye(7, dtype=np.float32))
    columns = (
        Column("a", "category", categories=("x", "y", "z")),
        Column("b", "number", 0.0, True),
    )
    table = TableEncoding(
        (*columns, Column("c", "category", categories=("x",)), Column("d", "time"))
    )
    assert table.n_features == 7
    assert number_of_gamma(TrainOptions(), rows, table=table).gamma == 1 / 5
    assert number_of_gamma(TrainOptions(), rows).gamma == 1 / 7
    gamma = number_of_gamma(TrainOptions(gamma="auto"), rows, table=table).gamma
    assert gamma == number(rows, "auto")
