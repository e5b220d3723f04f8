"""Test encoded sources: targets that fit the encoding use it, others use the plain rows."""

import numpy as np
import pytest
from reference import csr_rows, dense_rows, kernel_values, kernels_with, one_hot_rows

from dcsvm import _core
from dcsvm.kernel.kernel_rows import KernelRows
from dcsvm.kernel.kernels import SQUARED_DISTANCE, Kernel
from dcsvm.kernel.sources import EncodedSources

HAS_BYTES = _core.may_be_bytes(16, SQUARED_DISTANCE)
KERNELS = kernels_with(0.3, 0.1, 3)
FALLING = [one for one in kernels_with(0.1) if one.type.is_of_distance]


def one_hot(n, seed, n_numeric=2):
    """Return numeric columns, one-hot groups of 6, 5, 30 and 30 columns, and a zero column."""
    return np.pad(one_hot_rows(n, (6, 5, 30, 30), n_numeric, seed=seed), [(0, 0), (0, 1)])


def matrix_of(batch):
    """Compute the kernel values of the targets with all sources."""
    return batch.sources.matrix(targets=batch.targets, target_rows=batch.numbers)


def matrix(sources, X, threads=1):
    """Compute the kernel values of X with the sources; count the encoded rows of X."""
    values, n_coded = np.full((len(X), sources.rows.n_samples), np.nan), 0
    for batch in sources.batches(dense_rows(X), threads):
        values[batch.place] = matrix_of(batch)
        is_coded = batch.sources.points.n_codes > 0 or batch.sources.points.has_bytes
        n_coded += is_coded * len(batch.rows.dense)
        assert np.array_equal(batch.rows.dense, X[batch.place])
    return values, n_coded


@pytest.mark.parametrize("n_numeric", [2, 70])
@pytest.mark.parametrize("kernel", KERNELS, ids=lambda kernel: kernel.name)
def test_rows_meet_codes_where_they_fit(kernel, n_numeric):
    X, T = one_hot(80, 1, n_numeric), one_hot(60, 2, n_numeric)
    k = n_numeric
    T[:5, k : k + 2] = 1  # two columns of a code are set
    T[5, k] = 0.5
    T[6, k] = -1
    T[7, k] = np.float32(np.nextafter(np.float32(1), np.float32(2)))
    T[10:20, -1] = np.linspace(-2, 1, 10)  # every source has 0 here
    T[20:30, k : k + 6] = 0
    values, n_coded = matrix(EncodedSources(dense_rows(X), kernel), T)
    assert n_coded == 60 - 8
    expected = kernel_values(kernel, T, X)
    np.testing.assert_allclose(values, expected, rtol=2e-5, atol=2e-6 * np.abs(expected).max())


def test_rows_meet_bytes_where_they_are_bytes():
    rng = np.random.default_rng(3)
    X, T = (rng.integers(0, 256, (n, 40)).astype(np.float32) for n in (50, 30))
    T[3, 7], T[4, 0], T[5, 39] = 0.5, 256, -1
    sources = EncodedSources(dense_rows(X), Kernel("rbf", 1e-6))
    values, n_coded = matrix(sources, T)
    has_bytes = KernelRows(dense_rows(X), Kernel(), 1, coded=True).points.has_bytes
    assert n_coded == (27 if has_bytes else 0)
    np.testing.assert_allclose(values, kernel_values(("rbf", 1e-6, 0, 3), T, X), rtol=1e-5)


@pytest.mark.parametrize("kernel", FALLING, ids=lambda kernel: kernel.name)
@pytest.mark.parametrize("form", [dense_rows, csr_rows])
def test_rows_meet_evenly_spaced_values_where_they_have_no_others(form, kernel):
    if not _core.may_be_bytes(40, kernel.type.argument):
        pytest.skip("no tiles for bytes")
    rng = np.random.default_rng(10)
    X, T = (rng.choice([-1, -0.5, 0, 0.5], (n, 40), p=[0.2, 0.1, 0.6, 0.1]) for n in (60, 30))
    T[2, 3], T[4, 5], T[5], T[7, 39], T[8, 0] = 0.25, -1.5, 0, 1e30, 200
    X, T = X.astype(np.float32), T.astype(np.float32)
    batches = EncodedSources(form(X), kernel).batches(form(T), 1)
    assert [len(m.numbers) for m in batches] == [26, 4]
    assert batches[0].sources.points.has_bytes
    expected = kernel_values(kernel, T, X)
    for batch in batches:
        np.testing.assert_allclose(matrix_of(batch), expected[batch.place], rtol=1e-5, atol=1e-37)


@pytest.mark.skipif(not HAS_BYTES, reason="no tiles for bytes")
@pytest.mark.parametrize("step", [2, 5])
def test_bytes_meet_evenly_spaced_integers_exactly(step):
    rng = np.random.default_rng(11)
    X = (step * rng.integers(-104, 152, (60, 784))).astype(np.float32)
    T = rng.integers(0, 256, (40, 784)).astype(np.float32)
    X[0, :2], X[0, 2], T[0], T[1] = -104 * step, 151 * step, 0, 255
    T[3, 7], T[4], T[5, 0] = 0.5, X[1], 256  # plain, on the sources' grid, plain
    sources, kernel = EncodedSources(dense_rows(X), Kernel("rbf", 1e-7)), ("rbf", 1e-7, 0, 3)
    batches = sources.batches(dense_rows(T), 1)
    assert [list(m.numbers[:4]) for m in batches] == [[0, 1, 2, 6], [4], [3, 5]]
    expected = kernel_values(kernel, T, X)
    stepped = batches[0]
    np.testing.assert_allclose(matrix_of(stepped), expected[stepped.place], rtol=2e-6)
    weights = rng.normal(size=len(X))
    sums = stepped.product(weights)[:, 0]
    np.testing.assert_allclose(sums, expected[stepped.place] @ weights, atol=1e-5)
    for batch in batches[1:]:
        np.testing.assert_allclose(matrix_of(batch), expected[batch.place], rtol=1e-4)


def test_differences_of_bytes_are_of_rows_with_the_same_step():
    rng = np.random.default_rng(12)
    X = (2 * rng.integers(-50, 150, (60, 100))).astype(np.float32)
    T = rng.integers(0, 256, (40, 100)).astype(np.float32)
    T[:10] = X[:10]
    kernel = Kernel("laplacian", 1e-4)
    sources = EncodedSources(dense_rows(X), kernel)
    assert sources.for_bytes() is None
    values = matrix(sources, T)[0]
    np.testing.assert_allclose(values, kernel_values(kernel, T, X), rtol=2e-6)
    if not _core.may_be_bytes(100, kernel.type.argument):
        return
    codes = rng.integers(0, 256, (60, 100)).astype(np.uint8)
    plain = _core.Points(dense_rows(X), 1)
    setup = _core.Setup(kernel, plain.with_bytes(codes))
    of_two, of_one = (plain.with_bytes(codes, 0, step).prepared(setup, 1) for step in (2, 1))
    for sides in ((of_two, None, of_one, None), (of_one, None, of_two, None)):
        with pytest.raises(ValueError, match="the same origin and step"):
            _core.kernel_matrix(setup, *sides, 1)


@pytest.mark.skipif(not HAS_BYTES, reason="no tiles for bytes")
def test_steps_that_would_overflow_are_not_taken():
    assert _core.may_step(784, -520, 5)
    for n, origin, step in ((784, -520, 20), (8192, -520, 5), (784, -519.5, 5), (784, 0, 2.5)):
        assert not _core.may_step(n, origin, step)
    X = (20 * np.random.default_rng(1).integers(-104, 152, (60, 784))).astype(np.float32)
    assert EncodedSources(dense_rows(X), Kernel("rbf", 1e-7)).for_bytes() is None


def test_rows_that_all_break_the_codes_are_computed_as_they_are():
    X, T = one_hot(40, 4), one_hot(9, 5)
    T[:, 2:4] = 1
    values, n_coded = matrix(EncodedSources(dense_rows(X), Kernel("rbf", 0.5)), T)
    assert n_coded == 0
    np.testing.assert_allclose(values, kernel_values(("rbf", 0.5, 0, 3), T, X), rtol=1e-5)


def test_sparse_rows_meet_as_they_are():
    X, T = one_hot(40, 6), one_hot(9, 7)
    sources = EncodedSources(csr_rows(X), Kernel("rbf", 0.5))
    (batch,) = sources.batches(csr_rows(T), 1)
    expected = kernel_values(("rbf", 0.5, 0, 3), T, X)
    np.testing.assert_allclose(matrix_of(batch), expected, rtol=1e-5)


def test_rows_of_other_columns_are_refused():
    data = KernelRows(dense_rows(one_hot(30, 8)), Kernel("rbf", 1.0), 1, coded=True)
    with pytest.raises(ValueError, match="not of the same columns"):
        _core.Points(dense_rows(np.ones((3, 5))), 1).encoded_as(data.points, data.setup, 1)


@pytest.mark.parametrize("threads", [1, 2])
def test_an_order_of_neighbours_names_every_row_once(threads):
    X = one_hot(500, 9)
    order = _core.neighbour_order(_core.Points(dense_rows(X), threads), threads)
    assert np.array_equal(np.sort(order), np.arange(500))
    steps = np.linalg.norm(np.diff(X[order], axis=0), axis=1)
    assert steps.mean() < 0.9 * np.linalg.norm(np.diff(X, axis=0), axis=1).mean()
