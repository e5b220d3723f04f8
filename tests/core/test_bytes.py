"""Test rows of integers from 0 to 255 as bytes: the same bits as any other exact form."""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from reference import kernel_values, kernels_with
from storages import run_on

from dcsvm import _core
from dcsvm.data.rows import Rows
from dcsvm.kernel.kernel_rows import KernelEvalOptions, KernelRows
from dcsvm.kernel.kernels import ABSOLUTE_DISTANCE, Kernel

KERNELS = kernels_with(1e-5, 0.1, 3)
FALLING = [one for one in KERNELS if one.type.is_of_distance]
every_falling = pytest.mark.parametrize("kernel", FALLING, ids=lambda one: one.name)


def byte_rows(n, d, seed=0, largest=255):
    rng = np.random.default_rng(seed)
    X = rng.integers(0, largest + 1, size=(n, d)) * (rng.random((n, d)) < 0.6)
    X[0], X[-1] = 0, largest
    return X.astype(np.float32)


def matrix(data):
    return _core.kernel_matrix(data.setup, data.points, None, data.points, None, 2)


def encoded(X, kernel):
    if not _core.may_be_bytes(X.shape[1], kernel.type.argument):
        pytest.skip("this processor has no instruction for such sums of bytes")
    data = KernelRows(Rows.from_array(X), kernel, 1, coded=True)
    assert data.points.has_bytes and data.setup.form == "bytes"
    return data


@pytest.mark.parametrize("kernel", KERNELS, ids=lambda kernel: kernel.name)
@pytest.mark.parametrize("d", [16, 65, 66, 67, 300, 784])
def test_the_values_are_those_of_exact_products(kernel, d):
    X = byte_rows(77, d)
    bytes_, plain = encoded(X, kernel), KernelRows(Rows.from_array(X), kernel, 1)
    assert plain.setup.form in ("product", "difference")
    if plain.setup.form == "product":
        assert np.array_equal(matrix(bytes_), matrix(plain))
    np.testing.assert_allclose(matrix(bytes_), matrix(plain), rtol=2e-6, atol=1e-30)
    assert np.array_equal(matrix(bytes_), matrix(bytes_).T)
    weights = np.random.default_rng(1).normal(size=77)
    exact = X.astype(np.float64) @ X.T.astype(np.float64)
    if kernel.name == "linear":
        args = (bytes_.points, None, bytes_.points, None, weights, True, 1)
        assert np.allclose(_core.kernel_product(bytes_.setup, *args)[:, 0], exact @ weights)


@pytest.mark.parametrize("d", [16, 17, 20, 54, 100, 301, 784])
@pytest.mark.parametrize("stored", [np.uint8, np.float32])
def test_absolute_differences_are_exact(d, stored):
    X = byte_rows(141, d).astype(stored)
    exact = np.abs(X[:, None].astype(np.int64) - X.astype(np.int64)).sum(axis=2)
    data = encoded(X, Kernel(ABSOLUTE_DISTANCE))
    assert np.array_equal(data.matrix(), exact.astype(np.float32))
    some = np.array([140, 3, 77, 0], np.int32)
    assert np.array_equal(data.matrix(target_rows=some), exact[some].astype(np.float32))
    part = data.part(np.arange(100, 109))  # fewer rows than a panel
    assert np.array_equal(data.matrix(targets=part), exact[100:109].astype(np.float32))
    assert np.array_equal(part.matrix(targets=data), exact[:, 100:109].astype(np.float32))
    laplacian = encoded(X, Kernel("laplacian", 0.02 / d))
    values = np.exp(-0.02 / d * exact)
    np.testing.assert_allclose(laplacian.matrix(), values, rtol=3e-7)
    weights = np.random.default_rng(1).normal(size=141)
    sums = laplacian.product(weights, evaluation=KernelEvalOptions(float64=True))[:, 0]
    np.testing.assert_allclose(sums, values @ weights, atol=1e-11)


def test_the_largest_sums_do_not_overflow():
    X = np.full((33, 8192), 255, np.float32)
    X[1], X[2, ::2] = 0, 0
    data = encoded(X, Kernel("linear"))
    exact = X.astype(np.float64) @ X.T.astype(np.float64)
    assert np.array_equal(matrix(data), exact.astype(np.float32))
    far = matrix(encoded(X, Kernel("rbf", 1e-9)))
    assert np.isclose(far[0, 1], np.exp(-1e-9 * 8192 * 255**2), rtol=1e-6)


def test_the_largest_differences_do_not_overflow():
    X = np.full((33, 8192), 255, np.float32)
    X[1], X[2, ::2] = 0, 0
    found = encoded(X, Kernel(ABSOLUTE_DISTANCE)).matrix()
    assert (found[0, 1], found[1, 2], found[2, 0]) == (8192 * 255, 4096 * 255, 4096 * 255)


CHANGES = [lambda X: X + 0.5, lambda X: X - 1, lambda X: X + 1, lambda X: X * 2.0**20]


@pytest.mark.parametrize("change", CHANGES)
def test_other_values_are_not_bytes(change):
    X = change(byte_rows(50, 80)).astype(np.float32)
    for kernel in (Kernel("linear"), Kernel("polynomial", 0.5)):
        assert not KernelRows(Rows.from_array(X), kernel, 1, coded=True).points.has_bytes
    X[7, 3] = np.pi
    assert not KernelRows(Rows.from_array(X), Kernel(), 1, coded=True).points.has_bytes


@every_falling
@pytest.mark.parametrize("change", CHANGES)
def test_evenly_spaced_values_meet_as_bytes_by_their_distances(change, kernel):
    X = change(byte_rows(50, 80)).astype(np.float32)
    step = float(np.unique(np.diff(np.unique(X))).min())
    kernel = Kernel(kernel.name, 1e-5 / step**kernel.type.length_power)
    data = encoded(X, kernel)
    assert data.copy_bytes == 50 * 84
    assert np.allclose(data.matrix(), kernel_values(kernel, X, X), rtol=3e-7)


@every_falling
@pytest.mark.parametrize("stored", [(1, 2, 3), (-1, 1), (-3, -1), (-1.5, 1.5, 3)])
def test_zeros_that_are_not_stored_meet_as_bytes_too(stored, kernel):
    rng = np.random.default_rng(3)
    X = (rng.choice(stored, (200, 90)) * (rng.random((200, 90)) < 0.04)).astype(np.float32)
    rows = Rows.from_array(X)
    assert not rows.is_dense
    kernel = Kernel(kernel.name, 0.1)
    data = encoded(X, kernel)
    assert np.allclose(data.matrix(), kernel_values(kernel, X, X), rtol=3e-7)
    tight = KernelRows(rows, kernel, 1, coded=True, memory_bytes=1000)
    assert tight.setup.form == "sparse"


def test_rows_that_are_not_encoded_are_refused():
    X = byte_rows(40, 70)
    with_bytes, plain = encoded(X, Kernel()), KernelRows(Rows.from_array(X), Kernel(), 1)
    with pytest.raises(ValueError, match="not encoded as bytes"):
        _core.kernel_matrix(with_bytes.setup, plain.points, None, with_bytes.points, None, 1)


AMX_OR_NOT = """
import sys
import numpy as np
from dcsvm import _core
from test_bytes import KERNELS, byte_rows, encoded, matrix

kernels = [one for one in KERNELS if _core.is_from_products(one.type.argument)]
rows = [byte_rows(n, d) for n in (17, 77, 300) for d in (16, 54, 64, 65, 300, 784)]
values = [matrix(encoded(X, kernel)) for X in rows for kernel in kernels]
np.save(sys.argv[1], np.concatenate(values, axis=None))
print(_core.byte_loop_name("product"))
"""


TESTS = os.pathsep.join(map(str, (Path(__file__).parent, Path(__file__).parents[1], *sys.path)))


def test_amx_gives_the_bits_of_the_other_products(tmp_path):
    found, isas = [], [("amx_emulated", "amx_emulated"), ("", "amx"), ("avx512", "avx512")]
    has_amx = _core.byte_loop_name("product") == "amx"
    for isa, name in isas if has_amx else isas[:1]:
        path = tmp_path / f"{name}.npy"
        done = subprocess.run(
            [sys.executable, "-c", AMX_OR_NOT, path],
            env=os.environ | {"DCSVM_ISA": isa, "PYTHONPATH": TESTS},
            capture_output=True,
            text=True,
        )
        assert done.stdout.strip() == name, done.stderr
        found.append(np.load(path))
    if not has_amx:
        pytest.skip("this processor has no AMX, or DCSVM_ISA excludes it")
    assert np.array_equal(found[1], found[2])
    np.testing.assert_allclose(found[0], found[1], rtol=2e-6)  # other functions of the same sums


@pytest.mark.parametrize("isa", ["baseline", "avx2", "avx512", "amx_emulated"])
def test_other_instruction_sets(isa):
    run_on(isa, __file__)
