"""Test that rows stored as bytes give the bits of float rows, in every evaluation form."""

import copy
import pickle
from dataclasses import replace

import numpy as np
import pytest
from reference import forms_of, kernels_with
from runs import train_rows
from storages import require_equal_groups, require_equal_values, run_on

import dcsvm
from dcsvm import _core
from dcsvm.data.rows import Rows
from dcsvm.kernel.kernel_rows import KernelRows, two_sides
from dcsvm.kernel.kernels import Kernel
from dcsvm.problem.options import TrainOptions

KERNELS = kernels_with(1e-3, 1.0, 2)


def pixels(n, d, seed=0, largest=40):
    """Return integer rows with a constant column, zero columns, and many zeros in the others."""
    rng = np.random.default_rng(seed)
    X = rng.integers(0, largest + 1, (n, d)) * (rng.random((n, d)) < 0.5)
    X[:, 3], X[:, 5:7] = 7, 0
    return X.astype(np.uint8)


def one_hot(n, d, seed=0):
    rng = np.random.default_rng(seed)
    return np.concatenate([np.eye(d, dtype=np.uint8)[rng.integers(d, size=n)] for _ in range(3)], 1)


def both(X):
    """Return the rows stored as bytes and as floats."""
    rows = Rows.from_array(X)
    assert rows.is_bytes and not rows.as_floats().is_bytes
    return rows, rows.as_floats()


@pytest.mark.parametrize("kernel", KERNELS, ids=lambda kernel: kernel.name)
@pytest.mark.parametrize("form", ["difference", "product"])
@pytest.mark.parametrize("d", [16, 37, 150])
def test_kernel_values(kernel, form, d):
    if form not in forms_of(kernel):
        return
    require_equal_values(both(pixels(130, d)), kernel, form)


@pytest.mark.parametrize("coded", [False, True])
def test_codes(coded):
    found = []
    for rows in both(one_hot(400, 20)):
        data = KernelRows(rows, Kernel("rbf", 0.2), 1, coded=coded)
        assert (data.points.n_codes > 0) == coded and not data.points.has_bytes
        some = rows.take(np.arange(0, 400, 7))
        others = _core.Points(some, 1)
        met = data.encode_others(others, some, 1)
        assert (met is None) == (not coded)
        others = (met[0] if met else others).prepared(data.setup, 1)
        found.append(
            [data.matrix(), _core.kernel_matrix(data.setup, others, None, data.points, None, 1)]
        )
    assert all(np.array_equal(*pair) for pair in zip(*found, strict=True))


def test_groups_and_orders():
    X = pixels(3000, 20, largest=3)
    X[:, :2] = np.random.default_rng(5).integers(0, 5, (3000, 1)) * 60
    require_equal_groups(both(X))


@pytest.mark.parametrize(
    "options",
    [
        {"kernel": "linear", "C": 0.01},
        {"kernel": "linear", "C": 0.01, "bias": True},
        {"kernel": "polynomial", "gamma": 1e-3, "levels": 1},
        {"gamma": 3e-3, "levels": 1},
        {"gamma": 0.5, "levels": 0},
        {"gamma": 3e-3, "early": True},
    ],
    ids=str,
)
def test_models_do_not_depend_on_what_the_rows_came_as(options, tmp_path):
    X = pixels(900, 18, seed=2, largest=9)
    y = np.where(X[:, 0] * 1.0 + X[:, 1] > X[:, 2] + 3.0, 1.0, -1.0)
    mapped = np.lib.format.open_memmap(tmp_path / "X.npy", "w+", np.uint8, X.shape)
    mapped[:] = X
    method = "early" if options.get("early") else "exact"
    found = []
    for given in (X, X.astype(np.float32), X.astype(np.int64), mapped, np.asfortranarray(X)):
        model, report = train_rows(Rows.from_array(given), y, TrainOptions(threads=1, **options))
        values = model.pair_values(Rows.from_array(given), method, 1)
        found.append((report.objective, report.n_sv, values))
    for objective, n_sv, values in found[1:]:
        assert objective == found[0][0] and n_sv == found[0][1]
        assert np.array_equal(values, found[0][2])


def test_bytes_meet_floats():
    X = pixels(80, 33)
    for changed in (X + 0.25, X * 30.0):
        sides = []
        for sources in both(X):
            targets, sources = two_sides(Rows.from_array(changed), sources, Kernel("rbf", 1e-4), 1)
            sides.append(sources.matrix(targets=targets))
        assert np.array_equal(*sides)


def test_rows_keep_their_form():
    X = pixels(50, 21)
    rows, floats = both(X)
    order = np.random.default_rng(0).permutation(50)
    own = Rows.from_array(X.astype(np.float32))
    for changed in (
        lambda one: one.take(order),
        lambda one: one.part(slice(10, 20)),
        lambda one: one.with_features(30),
        lambda one: replace(one).reordered(order[:30]),
    ):
        made = changed(own if "reordered" in changed.__code__.co_names else rows)
        assert made.is_bytes and not made.stored[:, made.n_features :].any()
        assert np.array_equal(made.dense, changed(floats.take(np.arange(50))).dense)
        _core.Points(made, 1)
    assert rows.with_features(9000).is_dense is False
    assert rows.mean_squared_distance() == floats.mean_squared_distance()


@pytest.mark.parametrize("d", [16, 17, 18, 19])
@pytest.mark.parametrize("early", [False, True])
def test_copies_of_models_predict_the_same(d, early):
    X = pixels(500, d, seed=d)
    y = np.where(X[:, 0] * 1.0 > X[:, 1], 1.0, -1.0)
    model = dcsvm.train(X, y, gamma=1e-3, early=early, threads=1)
    wanted = model.decision_function(X)
    for again in (pickle.loads(pickle.dumps(model)), copy.deepcopy(model), copy.copy(model)):
        assert np.array_equal(again.decision_function(X), wanted)


def test_bytes_that_are_no_such_rows_are_refused():
    rows = Rows(3, 17, dense=np.zeros((3, 17), np.uint8))
    with pytest.raises(ValueError, match="multiples of 4 bytes"):
        _core.Points(rows, 1)


@pytest.mark.parametrize("isa", ["baseline", "avx2", "avx512", "amx_emulated"])
def test_other_instruction_sets(isa):
    run_on(isa, __file__)
