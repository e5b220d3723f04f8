"""Fixtures: a Dask cluster of two processes for this folder's tests, and rows with labels."""

import importlib.util

import numpy as np
import pytest

if importlib.util.find_spec("dask") is None:
    collect_ignore_glob = ["test_*.py"]


@pytest.fixture(scope="session")
def client():
    from dcsvm.distributed.connection import workers_of_this_machine

    with workers_of_this_machine(2, threads=2) as one:
        yield one


@pytest.fixture(scope="session")
def rows_in_spots():
    """Return 4,500 rows of 3 features in 12 spots, and labels +1 and -1, some of them wrong."""
    rng = np.random.default_rng(7)
    spots = rng.uniform(-4, 4, (12, 3))
    which = rng.integers(12, size=4500)
    X = (spots[which] + rng.normal(0, 0.6, (4500, 3))).astype(np.float32)
    y = np.where((which % 2 == 0) ^ (rng.random(4500) < 0.05), 1.0, -1.0)
    return X, y
