"""Test kernel values and products against NumPy float64; batches do not change the bits."""

import time
from contextlib import suppress

import numpy as np
import pytest
from reference import (
    allowed_error,
    csr_rows,
    dense_rows,
    forms_of,
    grid_rows,
    kernel_values,
    kernels_with,
    points_of,
    prepared,
    setup_of,
)

from dcsvm import _core
from dcsvm.data.rows import Rows

SIZES = (1, 31, 32, 33, 129)
N_FEATURES = (1, 3, 64, 255, 256, 257, 600)
THREADS = (1, 2, 3, 7)


def kernels_for(n_features):
    """Return kernel parameters by name that give arguments near 1 for grid_rows()."""
    return {one.name: one for one in kernels_with(2.0 / n_features, -0.25, 3)}


ALL = [
    pytest.param(kernel, form, id=f"{kernel.name}-{form}")
    for kernel in kernels_for(5).values()
    for form in forms_of(kernel)
]


def matrix(kernel, form, X, Z, targets=None, sources=None, threads=1):
    a, b = points_of(X, form, threads), points_of(Z, form, threads)
    setup, b = prepared(kernel, b, form)
    return _core.kernel_matrix(setup, a.prepared(setup, 1), targets, b, sources, threads)


def product(kernel, form, X, Z, weights, targets=None, sources=None, double=False, threads=1):
    a, b = points_of(X, form, threads), points_of(Z, form, threads)
    setup, b = prepared(kernel, b, form)
    return _core.kernel_product(
        setup, a.prepared(setup, 1), targets, b, sources, weights, double, threads
    )


def identity_weights(n):
    ones = np.ones(n)
    return np.arange(n + 1, dtype=np.int64), np.arange(n, dtype=np.int32), ones, n


def random_weights(n_sources, n_columns, seed=0):
    """Return CSR weights with empty rows, repeated and empty columns; also as a matrix."""
    rng = np.random.default_rng(seed)
    lengths = rng.integers(0, 4, n_sources)
    indptr = np.concatenate(([0], np.cumsum(lengths))).astype(np.int64)
    columns = rng.integers(0, n_columns, indptr[-1]).astype(np.int32)
    values = rng.normal(size=indptr[-1])
    W = np.zeros((n_sources, n_columns))
    np.add.at(W, (np.repeat(np.arange(n_sources), lengths), columns), values)
    return (indptr, columns, values, n_columns), W


# ----------------------------------------------------------------------------------- the values


@pytest.mark.parametrize("n_features", N_FEATURES)
@pytest.mark.parametrize("name", kernels_for(1))
def test_kernel_values_are_those_of_numpy(name, n_features):
    kernel = kernels_for(n_features)[name]
    Z = grid_rows(33, n_features, 1, density=0.6)
    unit = 2e-7 if n_features <= 24 else 5e-7 if kernel.type.is_of_distance else 2e-6
    for form in forms_of(kernel):
        for size in SIZES:
            X = grid_rows(size, n_features, 2, density=0.6)
            K = matrix(kernel, form, X, Z)
            assert K.dtype == np.float32
            error = np.abs(K - kernel_values(kernel, X, Z))
            allowed = allowed_error(kernel, form, X, Z, unit)
            assert np.all(error <= allowed), (form, size, error.max())


@pytest.mark.parametrize("n_features", N_FEATURES)
@pytest.mark.parametrize("name", kernels_for(1))
def test_float64_tiles_are_accurate_to_float64(name, n_features):
    kernel = kernels_for(n_features)[name]
    X, Z = grid_rows(33, n_features, 3, density=0.6), grid_rows(129, n_features, 4, density=0.6)
    for form in forms_of(kernel):
        K = product(kernel, form, X, Z, identity_weights(129), double=True)
        error = np.abs(K - kernel_values(kernel, X, Z))
        assert np.all(error <= allowed_error(kernel, form, X, Z, 1e-12)), (form, error.max())


@pytest.mark.parametrize("form", ["difference", "product", "sparse"])
@pytest.mark.parametrize("gamma", [0.0, 1e-6, 1.0, 50.0, 1e4, 1e12])
def test_rbf_is_accurate_for_every_gamma_the_form_is_chosen_for(gamma, form):
    X = grid_rows(65, 8, 5)
    if form == "product":  # chosen only if gamma |x|^2 2^-24 is tiny
        X = X * np.float32(min(1.0, 0.3 / np.sqrt(max(gamma, 1.0))))
    K = matrix(("rbf", gamma, 0.0, 0), form, X, X)
    exact = kernel_values(("rbf", gamma, 0.0, 0), X, X)
    assert np.all(np.isfinite(K))
    assert np.abs(K - exact).max() <= 2e-7
    assert np.all(np.diag(K) == 1) or (form == "product" and np.all(np.diag(K) > 1 - 2e-7))
    assert np.all((K >= 0) & (K <= 1))


@pytest.mark.parametrize("form", ["product", "sparse"])
@pytest.mark.parametrize("degree", [0, 1, 2, 3, 4, 7, 10])
def test_every_degree_of_the_polynomial_is_a_power(degree, form):
    X = grid_rows(40, 6, 6)
    kernel = ("polynomial", 0.5, 0.25, degree)
    error = np.abs(matrix(kernel, form, X, X) - kernel_values(kernel, X, X))
    assert np.all(error <= allowed_error(kernel, form, X, X, 5e-7))


@pytest.mark.parametrize("form", ["product", "sparse"])
@pytest.mark.parametrize("double", [False, True])
def test_the_sigmoid_saturates_at_one_for_large_arguments(form, double):
    X = np.array([[1000.0, 0], [-1000.0, 0], [0, 0], [1e-4, 0]], np.float32)
    kernel = ("sigmoid", 1.0, 0.0, 0)
    K = product(kernel, form, X, X, identity_weights(4), double=double)
    assert np.allclose(K, kernel_values(kernel, X, X), rtol=0, atol=1e-12 if double else 2e-7)


def test_large_norms_are_refused_to_the_product_form_by_default():
    X = grid_rows(50, 100, 7) * np.float32(1000)
    points = points_of(X)
    assert setup_of(("rbf", 1e-4, 0.0, 0), points).form == "difference"
    assert setup_of(("rbf", 1e-12, 0.0, 0), points).form == "product"
    assert setup_of(("rbf", 1.0, 0.0, 0), points_of(np.round(X))).form == "difference"
    assert setup_of(("rbf", 1.0, 0.0, 0), points_of(np.round(X / 100))).form == "product"
    assert setup_of(("rbf", 1.0, 0.0, 0), points_of(X[:, :8])).form == "difference"
    assert setup_of(("linear", 1.0, 0.0, 0), points).form == "product"
    assert setup_of(("rbf", 1.0, 0.0, 0), points_of(X, "sparse")).form == "sparse"


def test_the_chosen_form_keeps_its_promise_of_accuracy():
    for scale, gamma in [(1, 1e-3), (1, 1.0), (100, 1e-6), (0.01, 5.0), (100, 1e-4)]:
        X = grid_rows(80, 200, 8) * np.float32(scale)
        kernel = ("rbf", gamma, 0.0, 0)
        setup, points = prepared(kernel, points_of(X))
        K = _core.kernel_matrix(setup, points, None, points, None, 1)
        assert np.abs(K - kernel_values(kernel, X, X)).max() <= 1e-6


@pytest.mark.parametrize(("kernel", "form"), ALL)
@pytest.mark.parametrize("double", [False, True])
def test_rows_of_zeros_and_equal_rows_are_nothing_special(kernel, form, double):
    X = grid_rows(40, 5, 9)
    X[3:7] = 0
    X[10:20] = X[9]
    K = product(kernel, form, X, X, identity_weights(40), double=double)
    error = np.abs(K - kernel_values(kernel, X, X))
    assert np.all(error <= allowed_error(kernel, form, X, X, 1e-12 if double else 2e-7) + 1e-15)
    assert np.array_equal(K[10:20], np.repeat(K[9:10], 10, axis=0))


# --------------------------------------------------------------------------------- the products


@pytest.mark.parametrize(("kernel", "form"), ALL)
@pytest.mark.parametrize("double", [False, True])
@pytest.mark.parametrize(("n_targets", "n_sources"), [(1, 1), (31, 129), (129, 33), (700, 1100)])
def test_a_product_with_a_vector_is_that_of_numpy(n_targets, n_sources, kernel, form, double):
    X, Z = grid_rows(n_targets, 5, 10, 0.7), grid_rows(n_sources, 5, 11, 0.7)
    w = np.random.default_rng(12).normal(size=n_sources)
    result = product(kernel, form, X, Z, w, double=double)
    assert result.shape == (n_targets, 1)
    assert result.dtype == np.float64
    error = np.abs(result[:, 0] - kernel_values(kernel, X, Z) @ w)
    assert np.all(error <= allowed_error(kernel, form, X, Z, 1e-12 if double else 2e-7) @ np.abs(w))


@pytest.mark.parametrize(("kernel", "form"), ALL)
@pytest.mark.parametrize("n_columns", [1, 2, 5, 64])
def test_a_product_with_csr_weights_is_that_of_numpy(n_columns, kernel, form):
    X, Z = grid_rows(70, 5, 13, 0.7), grid_rows(200, 5, 14, 0.7)
    weights, W = random_weights(200, n_columns)
    for double in (False, True):
        result = product(kernel, form, X, Z, weights, double=double)
        error = np.abs(result - kernel_values(kernel, X, Z) @ W)
        limit = allowed_error(kernel, form, X, Z, 1e-12 if double else 2e-7) @ np.abs(W)
        assert np.all(error <= limit + 1e-14 * n_columns)


def test_a_product_is_a_sum_of_the_same_float32_values():
    X, Z = grid_rows(50, 9, 15), grid_rows(90, 9, 16)
    w = np.random.default_rng(17).normal(size=90)
    kernel = ("rbf", 2.0, 0.0, 0)
    K = matrix(kernel, "difference", X, Z).astype(np.float64)
    result = product(kernel, "difference", X, Z, w)[:, 0]
    assert np.allclose(result, K @ w, rtol=0, atol=1e-13)


@pytest.mark.parametrize(("kernel", "form"), ALL)
def test_row_subsets_may_repeat_and_come_in_any_order(kernel, form):
    X, Z = grid_rows(60, 5, 18, 0.8), grid_rows(80, 5, 19, 0.8)
    targets = np.array([59, 0, 7, 7, 31, 32, 0], np.int32)
    sources = np.random.default_rng(20).integers(0, 80, 45).astype(np.int32)
    full = matrix(kernel, form, X, Z)
    part = matrix(kernel, form, X, Z, targets, sources)
    assert np.array_equal(part, full[np.ix_(targets, sources)])
    w = np.random.default_rng(21).normal(size=45)
    direct = product(kernel, form, X[targets], Z[sources], w)
    assert np.array_equal(product(kernel, form, X, Z, w, targets, sources), direct)


@pytest.mark.parametrize("form", ["difference", "product", "sparse"])
def test_empty_lists_of_rows_give_empty_or_zero_results(form):
    X = grid_rows(5, 3, 22)
    kernel, none = ("rbf", 1.0, 0.0, 0), np.empty(0, np.int32)
    assert matrix(kernel, form, X, X, none, None).shape == (0, 5)
    assert matrix(kernel, form, X, X, None, none).shape == (5, 0)
    assert product(kernel, form, X, X, np.ones(5), none, None).shape == (0, 1)
    assert np.array_equal(product(kernel, form, X, X, np.empty(0), None, none), np.zeros((5, 1)))
    weights = (np.zeros(6, np.int64), none, np.empty(0), 3)
    assert np.array_equal(product(kernel, form, X, X, weights), np.zeros((5, 3)))


def test_rows_without_any_stored_value_are_handled():
    X = np.zeros((4, 70), np.float32)
    for form in ("product", "sparse"):
        assert np.array_equal(matrix(("rbf", 1.0, 0.0, 0), form, X, X), np.ones((4, 4)))
        assert np.array_equal(matrix(("linear", 1.0, 0.0, 0), form, X, X), np.zeros((4, 4)))


# -------------------------------------------------------------------------------- the same bits


@pytest.mark.parametrize("n_features", [1, 3, 64, 257])
@pytest.mark.parametrize("name", kernels_for(1))
def test_a_kernel_matrix_is_symmetric_bit_for_bit(name, n_features):
    kernel = kernels_for(n_features)[name]
    X, Z = grid_rows(47, n_features, 23, 0.6), grid_rows(131, n_features, 24, 0.6)
    for form in forms_of(kernel):
        assert matrix(kernel, form, X, Z).tobytes() == matrix(kernel, form, Z, X).T.tobytes()
        double = product(kernel, form, X, Z, identity_weights(131), double=True)
        turned = product(kernel, form, Z, X, identity_weights(47), double=True)
        assert np.array_equal(double, turned.T)


@pytest.mark.parametrize(("kernel", "form"), ALL)
def test_threads_do_not_change_a_bit(kernel, form):
    X, Z = grid_rows(333, 5, 25, 0.7), grid_rows(1500, 5, 26, 0.7)
    weights, _ = random_weights(1500, 7)
    w = np.random.default_rng(27).normal(size=1500)

    def all_results(threads):
        yield matrix(kernel, form, X, Z, threads=threads).tobytes()
        for double in (False, True):
            yield product(kernel, form, X, Z, w, double=double, threads=threads).tobytes()
            yield product(kernel, form, X, Z, weights, double=double, threads=threads).tobytes()

    first = list(all_results(THREADS[0]))
    for threads in THREADS[1:]:
        assert list(all_results(threads)) == first


@pytest.mark.parametrize(("kernel", "form"), ALL)
def test_the_way_targets_are_cut_does_not_change_a_bit(kernel, form):
    X, Z = grid_rows(200, 5, 28, 0.7), grid_rows(600, 5, 29, 0.7)
    w = np.random.default_rng(30).normal(size=600)
    weights, _ = random_weights(600, 5)
    for double in (False, True):
        for given in (w, weights):
            whole = product(kernel, form, X, Z, given, double=double)
            for size in (1, 7, 32, 65):
                parts = [
                    product(
                        kernel, form, X, Z, given, np.arange(i, min(i + size, 200), dtype=np.int32),
                        double=double,
                    )
                    for i in range(0, 200, size)
                ]  # fmt: skip
                assert np.concatenate(parts).tobytes() == whole.tobytes()


# ------------------------------------------------------------------------------------ the errors


@pytest.mark.parametrize("number", [-1, 5, 2**31 - 1, -(2**31)])
@pytest.mark.parametrize("side", ["targets", "sources"])
def test_a_row_number_outside_the_rows_is_refused(side, number):
    X = grid_rows(5, 3, 33)
    rows = {side: np.array([0, number], np.int32)}
    with pytest.raises(ValueError, match=r"row number .* is outside 0\.\.4"):
        matrix(("rbf", 1.0, 0.0, 0), "difference", X, X, **rows)
    with pytest.raises(ValueError, match="row number"):
        product(("rbf", 1.0, 0.0, 0), "difference", X, X, np.ones(5), **rows)


@pytest.mark.parametrize("size", [0, 4, 6])
def test_weights_of_the_wrong_length_are_refused(size):
    X = grid_rows(5, 3, 34)
    with pytest.raises(ValueError, match="one entry per source"):
        product(("rbf", 1.0, 0.0, 0), "difference", X, X, np.ones(size))
    with pytest.raises(ValueError, match="one row per source"):
        product(("rbf", 1.0, 0.0, 0), "difference", X, X, identity_weights(size))


def test_csr_weights_that_do_not_hold_together_are_refused():
    X = grid_rows(5, 3, 35)
    indptr, columns, values, n_columns = identity_weights(5)
    with pytest.raises(ValueError, match="one row per source"):
        product(("rbf", 1.0, 0.0, 0), "product", X, X, (indptr, columns, values[:4], n_columns))


@pytest.mark.parametrize(
    "rows",
    [
        Rows(4, 3, dense=np.zeros((5, 3), np.float32)),
        Rows(5, 2, dense=np.zeros((5, 3), np.float32)),
        Rows(2, 3, indptr=np.zeros(2, np.int64), indices=np.empty(0, np.int32),
             values=np.empty(0, np.float32)),
        Rows(1, 3, indptr=np.array([0, 1]), indices=np.zeros(1, np.int32),
             values=np.zeros(2, np.float32)),
    ],
)  # fmt: skip
def test_rows_that_do_not_have_their_stated_shape_are_refused(rows):
    with pytest.raises(ValueError, match="stated shape"):
        _core.Points(rows, 1)


def test_arrays_of_another_type_are_refused():
    X = grid_rows(5, 3, 36)
    with pytest.raises(ValueError, match="Buffer dtype mismatch"):
        product(("rbf", 1.0, 0.0, 0), "product", X, X, np.ones(5, np.float32))
    with pytest.raises(ValueError, match="Buffer dtype mismatch"):
        matrix(("rbf", 1.0, 0.0, 0), "product", X, X, np.arange(3))
    with pytest.raises(ValueError, match="Buffer dtype mismatch"):
        _core.Points(Rows(2, 2, dense=np.zeros((2, 2))), 1)


def test_rows_that_are_not_prepared_for_a_kernel_meet_none():
    a, b = (points_of(np.eye(20, dtype=np.float32)) for _ in range(2))
    setup, b = prepared(("rbf", 1.0, 0.0, 0), b)
    with pytest.raises(ValueError, match="not prepared for this setup"):
        _core.kernel_matrix(setup, a, None, b, None, 1)
    a = a.prepared(setup_of(("linear", 1.0, 0.0, 0), a), 1)
    with pytest.raises(ValueError, match="not prepared for this setup"):
        _core.kernel_matrix(setup, a, None, b, None, 1)
    encoded = b.as_bytes(1)
    with pytest.raises(ValueError, match="not prepared for this setup"):
        _core.kernel_matrix(setup, encoded, None, encoded, None, 1)


def test_points_keep_their_arrays_alive():
    expected = matrix(("linear", 1.0, 0.0, 0), "product", np.eye(3), np.eye(3))
    points = [_core.Points(make(np.eye(3, dtype=np.float32)), 1) for make in (dense_rows, csr_rows)]
    for one in points:
        assert one.n_samples == 3
        setup, one = prepared(("linear", 1, 0, 0), one)
        K = _core.kernel_matrix(setup, one, None, one, None, 1)
        assert np.array_equal(K, expected)


def test_a_stop_ends_a_product_inside_its_one_block():
    """With wide rows a block may take seconds."""
    X = np.random.default_rng(3).random((3000, 2000))
    setup, points = prepared(("rbf", 1e-3, 0.0, 0), _core.Points(dense_rows(X), 1))
    targets, weights = np.arange(100, 116, dtype=np.int32), np.ones(3000)

    def seconds_of(stop=None):
        start = time.thread_time()
        with suppress(_core.Stopped):
            _core.kernel_product(setup, points, targets, points, None, weights, True, 1, None, stop)
        return time.thread_time() - start

    whole = min(seconds_of() for _ in range(3))
    stopped = [seconds_of(_core.Stop(seconds=share * whole)) for share in np.linspace(0.1, 0.5, 9)]
    assert min(stopped) < 0.8 * whole
