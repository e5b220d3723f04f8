"""Test that every instruction set of this processor gives the same kernel values."""

import os
import subprocess
import sys

import numpy as np
import pytest

PROGRAM = """
import sys
import numpy as np
from scipy.sparse import csr_array
from dcsvm import _core
from dcsvm.data.rows import Rows
from dcsvm.kernel.kernel_rows import KernelRows
from dcsvm.kernel.kernels import Kernel
from dcsvm.problem.options import TrainOptions
from dcsvm.data.dataset import Dataset
from dcsvm.training.fit import fit

rng = np.random.default_rng(0)
values = []
for d in (1, 7, 30, 90, 300):
    X = rng.normal(size=(75, d)).astype(np.float32)
    integers = rng.integers(0, 200, size=(75, d)).astype(np.float32)
    one_hot = np.concatenate([X[:, :3], np.eye(d)[rng.integers(d, size=75)]], 1).astype(np.float32)
    sparse = Rows.from_array(csr_array(X * (rng.random((75, d)) < 0.05)))
    for rows in (Rows.from_array(X), Rows.from_array(integers), Rows.from_array(one_hot), sparse):
        size = float(np.square(rows.dense).sum(1).mean()) if rows.dense is not None else 0.05 * d
        for kernel in (Kernel("rbf", 1 / size), Kernel("linear"), Kernel("sigmoid", 1 / size)):
            data = KernelRows(rows, kernel, 1, coded=True)
            args = data.points, None, data.points, None
            values.append(_core.kernel_matrix(data.setup, *args, 1).ravel().astype(np.float64))
            weights = np.linspace(-1, 1, 75)
            for double in (False, True):
                values.append(_core.kernel_product(data.setup, *args, weights, double, 1).ravel())
    pulls = rng.normal(size=(75, 75)).astype(np.float32)
    values.append(_core.sign_sums(integers, integers[::-1].copy(), pulls).ravel().astype(float))
X = rng.random((700, 5)).astype(np.float32)
y = np.where(np.sin(9 * X[:, 0]) + X[:, 1] > 0.8, 1.0, -1.0)
for C, gamma in ((1, 5.0), (1e4, 0.01)):
    data = Dataset(Rows.from_array(X), y)
    report = fit(data, TrainOptions(C=C, gamma=gamma, levels=1)).report
    values.append([report.objective, report.converged])
K = np.exp(-5 * np.square(X[:, None] - X).sum(2))
for levels in (0, 1):
    options = TrainOptions(kernel="precomputed", levels=levels, threads=1)
    model = fit(Dataset(Rows.from_array(K), y), options)
    report = model.report
    values.append([report.objective, report.converged])
np.save(sys.argv[1], np.concatenate(values))
print(_core.instruction_set())
"""


def run(isa, path):
    environment = {**os.environ, "DCSVM_ISA": isa}
    finished = subprocess.run(
        [sys.executable, "-c", PROGRAM, str(path)], env=environment, capture_output=True, text=True
    )
    assert finished.returncode == 0, finished.stderr
    return finished.stdout.strip(), np.load(path)


@pytest.mark.parametrize("isa", ["avx2", "avx512"])
def test_an_instruction_set_gives_the_values_of_the_baseline(isa, tmp_path):
    name, values = run(isa, tmp_path / "values.npy")
    if name != isa:
        pytest.skip(f"this processor does not run {isa}")
    expected = run("baseline", tmp_path / "baseline.npy")[1]
    np.testing.assert_allclose(values, expected, rtol=2e-6, atol=3e-5)
