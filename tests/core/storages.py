"""Check that two storage formats of the same rows give equal bits, on every instruction set."""

import os
import subprocess
import sys

import numpy as np
import pytest

from dcsvm import _core
from dcsvm.kernel.kernels import Kernel
from dcsvm.kernel.row_components import find_components


def require_equal_values(pair, kernel, form):
    """Compare kernel products and tiles of 130 rows in one evaluation form."""
    values = []
    for rows in pair:
        points = _core.Points(rows, 1)
        setup = _core.Setup(kernel, points, _core.Form[form])
        points = points.prepared(setup, 2)
        sides = points, None, points, None
        weights = np.random.default_rng(1).normal(size=130)
        some, few = (np.arange(0, 130, step, dtype=np.int32) for step in (3, 7))
        found = [_core.kernel_product(setup, *sides, weights, double, 2) for double in (0, 1)]
        found.append(_core.kernel_matrix(setup, *sides, 2))
        found.append(_core.kernel_matrix(setup, points, some, points, few, 1))
        values.append(found)
    for one, other in zip(*values, strict=True):
        assert np.array_equal(one, other)


def require_equal_groups(pair):
    """Compare the components (there must be several) and the spatial order."""
    one, other = (find_components(rows, Kernel("rbf", 0.5), 3000.0, 1e-3, 2) for rows in pair)
    assert np.array_equal(one.order, other.order) and np.array_equal(one.start, other.start)
    assert one.n_components > 2 and one.within == other.within
    orders = [_core.neighbour_order(_core.Points(rows, 1), 1) for rows in pair]
    assert np.array_equal(*orders)


def run_on(isa, file):
    """Run the tests of a file on an instruction set, unless one is already chosen."""
    if "DCSVM_ISA" in os.environ:
        pytest.skip("on an instruction set already")
    command = [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", file]
    environment = os.environ | {"DCSVM_ISA": isa}
    done = subprocess.run(command, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout
