"""Test sums over the support vectors of several problems against plain matrix products."""

import numpy as np
import pytest
from reference import kernel_values

from dcsvm import _core
from dcsvm.data.rows import Rows
from dcsvm.kernel.kernel_rows import (
    KernelEvalOptions,
    KernelRows,
    TermIndex,
    component_sums,
    weighted_sums,
)
from dcsvm.kernel.kernels import Kernel

N = 300
X = np.random.default_rng(0).random((N, 3)).astype(np.float32)
K = kernel_values(("rbf", 2.0, 0, 0), X, X)
DATA = KernelRows(Rows.from_array(X), Kernel("rbf", 2.0), 2)


def variables(n_units, share, seed):
    """Return random ascending rows for every component; two components form a fold family."""
    rng = np.random.default_rng(seed)
    rows = [np.sort(rng.permutation(N)[: int(share * N)]) for _ in range(n_units)]
    unit = np.repeat(np.arange(n_units), [len(own) for own in rows])
    return TermIndex(np.concatenate(rows).astype(np.int32), unit, unit // 2)


def expected(targets, sources, alpha):
    same = targets.component[:, None] == sources.component
    return (K[np.ix_(targets.row, sources.row)] * same) @ alpha


@pytest.mark.parametrize("float64", [False, True])
@pytest.mark.parametrize("share", [0.05, 0.9])
def test_the_sum_of_a_target_is_over_the_sources_of_its_unit(share, float64):
    targets, sources = variables(6, share, 1), variables(6, 0.3, 2)
    alpha = np.random.default_rng(3).standard_normal(len(sources.row))
    sums, _ = component_sums(DATA, targets, sources, alpha, KernelEvalOptions(float64))
    wanted = expected(targets, sources, alpha)
    assert np.allclose(sums, wanted, atol=1e-9 if float64 else 1e-5)


def test_units_that_share_rows_share_their_kernel_values():
    targets, sources = variables(2, 0.9, 1), variables(2, 0.9, 2)
    alpha = np.ones(len(sources.row))
    _, together = component_sums(DATA, targets, sources, alpha, KernelEvalOptions())
    assert together <= N * N < 2 * 0.9**2 * N * N
    apart = TermIndex(targets.row, targets.component, targets.component)
    other = TermIndex(sources.row, sources.component, sources.component)
    _, n_apart = component_sums(DATA, apart, other, alpha, KernelEvalOptions())
    assert n_apart == 2 * int(0.9 * N) ** 2


def test_units_without_folds_may_come_in_any_order_with_any_rows():
    rng = np.random.default_rng(4)
    sides = [variables(5, 0.4, 1), variables(4, 0.3, 2)]
    sides = [one.take(rng.integers(len(one.row), size=700)) for one in sides]
    targets, sources = (TermIndex(one.row, one.component, one.component) for one in sides)
    alpha = rng.standard_normal(700)
    sums, n_values = component_sums(DATA, targets, sources, alpha, KernelEvalOptions(True))
    assert np.allclose(sums, expected(targets, sources, alpha), atol=1e-9)
    counts = [
        np.bincount(np.unique(one.component * N + one.row) // N, minlength=5)
        for one in (targets, sources)
    ]
    assert n_values == np.sum(counts[0] * counts[1])


def test_units_that_share_few_rows_are_multiplied_apart():
    targets, sources = variables(2, 0.1, 1), variables(2, 0.1, 2)
    alpha = np.ones(len(sources.row))
    _, n_values = component_sums(DATA, targets, sources, alpha, KernelEvalOptions())
    assert n_values == 2 * int(0.1 * N) ** 2


def test_targets_of_a_unit_without_sources_have_none():
    targets, sources = variables(4, 0.5, 1), variables(4, 0.5, 2)
    sources = sources.take(sources.component % 2 == 1)
    alpha = np.ones(len(sources.row))
    sums, _ = component_sums(DATA, targets, sources, alpha, KernelEvalOptions())
    assert np.all(sums[targets.component % 2 == 0] == 0)
    assert np.allclose(sums, expected(targets, sources, alpha), atol=1e-5)


def test_rows_may_repeat():
    rows = np.array([4, 4, 9, 2], np.int32)
    column, alpha = np.array([0, 1, 0, 1]), np.array([1.0, 2.0, -1.0, 0.5])
    targets = np.arange(N, dtype=np.int32)
    sums, n = weighted_sums(DATA, targets, rows, column, alpha, 2, KernelEvalOptions(True))
    assert n == 3 * N
    assert np.allclose(sums, np.stack([K[:, 4] - K[:, 9], 2 * K[:, 4] + 0.5 * K[:, 2]], axis=1))
    one, _ = weighted_sums(DATA, targets, rows, 0 * column, alpha, 1, KernelEvalOptions(True))
    assert np.allclose(one, sums.sum(axis=1, keepdims=True))


@pytest.mark.parametrize("float64", [False, True])
def test_many_small_units_take_their_kernel_values_from_those_of_all_rows(float64):
    targets, sources = variables(200, 0.03, 1), variables(250, 0.02, 2)
    alpha = np.random.default_rng(3).standard_normal(len(sources.row))
    sums, n_values = component_sums(DATA, targets, sources, alpha, KernelEvalOptions(float64))
    wanted = expected(targets, sources, alpha)
    assert np.allclose(sums, wanted, atol=1e-9 if float64 else 1e-5)
    assert n_values <= N * N
    none = TermIndex(sources.row, sources.component + 300, sources.component + 300)
    assert not component_sums(DATA, targets, none, alpha, KernelEvalOptions(float64))[0].any()


@pytest.mark.parametrize(
    ("rows", "groups", "columns", "n_columns"),
    [
        ([4], [0], [1], 3),
        ([0], [2], [1], 3),
        ([0], [0], [3], 3),
        ([0], [0], [1], 4),
        ([0, 1], [0], [1], 3),
    ],
)
def test_sums_of_a_stored_matrix_stay_inside_it(rows, groups, columns, n_columns):
    matrix = np.arange(12.0).reshape(4, 3)
    indptr, one = np.array([0, 0, 1]), np.ones(1)
    good = indptr, np.array([2], np.int32), 2 * one, 3
    pairs = np.array([3, 3], np.int32), np.array([0, 1], np.int32)
    assert _core.sparse_sums(matrix, good, *pairs, 2).tolist() == [0.0, 22.0]
    weights = indptr, np.array(columns, np.int32), one, n_columns
    with pytest.raises(ValueError, match=r"row|group|column|fit"):
        _core.sparse_sums(matrix, weights, np.int32(rows), np.int32(groups), 1)
