"""Test kernel products of clusters: the bits of one kernel_product() per cluster."""

import numpy as np
import pytest
from reference import grid_rows, points_of, prepared
from test_core import ALL, random_weights

from dcsvm import _core
from dcsvm.kernel.distances import Cutoff
from dcsvm.kernel.kernels import Kernel

N_TARGETS, N_SOURCES = 2500, 300
STARTS = np.array([0, 3, 3, 40, 2100, 2500])  # no targets in cluster 1, several blocks in 3
BEGINS, ENDS = np.array([0, 20, 60, 60, 280]), np.array([20, 60, 60, 280, 300])
EVERY = np.arange(N_SOURCES, dtype=np.int32)


def rows_of(kernel, form):
    X, Z = grid_rows(N_TARGETS, 5, 40, 0.7), grid_rows(N_SOURCES, 5, 41, 0.7)
    a, b = points_of(X, form, 1), points_of(Z, form, 1)
    setup, b = prepared(kernel, b, form)
    return setup, a.prepared(setup, 1), b


@pytest.mark.parametrize("float64", [False, True])
@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize("n_columns", [1, 6])
@pytest.mark.parametrize(("kernel", "form"), ALL)
def test_each_cluster_has_its_own_product(kernel, form, n_columns, threads, float64):
    setup, targets, sources = rows_of(kernel, form)
    rng = np.random.default_rng(42)
    order = rng.permutation(N_TARGETS).astype(np.int32)
    csr = random_weights(N_SOURCES, n_columns)[0]
    weights = rng.normal(size=N_SOURCES) if n_columns == 1 else csr
    found = _core.cluster_product(
        setup, targets, order, STARTS, sources, EVERY, BEGINS, ENDS, weights, float64, threads
    )
    for a, b, begin, end in zip(STARTS[:-1], STARTS[1:], BEGINS, ENDS, strict=True):
        some = np.arange(begin, end, dtype=np.int32)
        if n_columns == 1:
            own = weights[begin:end]
        else:
            indptr = csr[0][begin : end + 1]
            own = indptr - indptr[0], *(one[indptr[0] : indptr[-1]] for one in csr[1:3]), n_columns
        if begin < end:
            alone = _core.kernel_product(
                setup, targets, order[a:b], sources, some, own, float64, threads
            )
            assert found[a:b].tobytes() == alone.tobytes()
        else:
            assert not found[a:b].any()


@pytest.mark.parametrize("threads", [1, 3])
def test_values_beyond_a_cutoff_are_omitted_in_each_cluster(threads):
    kernel = ("rbf", 2.0, 0.0, 0)
    setup, targets, sources = rows_of(kernel, "difference")
    order, cutoff = np.arange(N_TARGETS, dtype=np.int32), Cutoff.of(Kernel("rbf", 2.0), 0.5)
    found = _core.cluster_product(
        setup, targets, order, STARTS, sources, EVERY, BEGINS, ENDS, np.ones(N_SOURCES), False,
        threads, cutoff,
    )  # fmt: skip
    own, some = order[STARTS[3] : STARTS[4]], EVERY[BEGINS[3] : ENDS[3]]
    alone = _core.kernel_product(
        setup, targets, own, sources, some, np.ones(len(some)), False, 1, cutoff
    )
    assert found[STARTS[3] : STARTS[4]].tobytes() == alone.tobytes()
    stop = _core.Stop()
    stop.request()
    with pytest.raises(_core.Stopped):
        _core.cluster_product(
            setup, targets, order, STARTS, sources, EVERY, BEGINS, ENDS, np.ones(N_SOURCES), False,
            threads, cutoff, stop,
        )  # fmt: skip


@pytest.mark.parametrize(
    ("starts", "begins", "ends"),
    [
        (STARTS[:-1], BEGINS, ENDS),
        (STARTS, BEGINS[:-1], ENDS),
        (STARTS[::-1].copy(), BEGINS, ENDS),
        (STARTS, BEGINS - 1, ENDS),
        (STARTS, BEGINS, ENDS + 1),
        (STARTS, ENDS, BEGINS),
    ],
)
def test_clusters_of_rows_that_there_are_not_are_refused(starts, begins, ends):
    kernel, form = ALL[0].values
    setup, targets, sources = rows_of(kernel, form)
    order, weights = np.arange(N_TARGETS, dtype=np.int32), np.ones(N_SOURCES)
    with pytest.raises(ValueError, match="clusters|source"):
        _core.cluster_product(
            setup, targets, order, starts, sources, EVERY, begins, ends, weights, False, 1
        )
