"""Fixtures: small data sets, trained models and files that several test files share."""

import os

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # small matrices: more threads only wait
os.environ.setdefault("OMP_WAIT_POLICY", "passive")  # waiting threads yield their cores

from functools import partialmethod  # noqa: E402
from inspect import signature  # noqa: E402

import pytest  # noqa: E402
from click.testing import CliRunner, Result  # noqa: E402
from reference import labelled_rows, libsvm_text  # noqa: E402

from dcsvm.data.dataset import Dataset  # noqa: E402
from dcsvm.problem.options import TrainOptions  # noqa: E402
from dcsvm.training.fit import fit  # noqa: E402

if "mix_stderr" in signature(CliRunner).parameters:  # before Click 8.2 stderr is apart or in output
    CliRunner.__init__ = partialmethod(CliRunner.__init__, mix_stderr=False)
    Result.output = property(lambda self: self.stdout + self.stderr)


@pytest.fixture(autouse=True)
def short_search(monkeypatch):
    """Shorten the search of `dcsvm.easy`, which would use the time that is left, and its folds."""
    short = {"MAX_ROUNDS": 1, "N_AGAIN": 4, "N_NEAR": 4, "N_DIVISIONS": 2, "MAX_REPEATED": 2}
    for name, value in short.items():
        monkeypatch.setattr(f"dcsvm.selection.search.{name}", value)
    monkeypatch.setattr("dcsvm.selection.trials.N_FOLDS", 2)


@pytest.fixture(scope="session")
def wavy():
    """1,000 rows of 4 features with labels +1 and -1, some of them wrong."""
    return labelled_rows(1000, 4, seed=3)


@pytest.fixture(scope="session")
def wavy_test():
    return labelled_rows(300, 4, seed=4)


@pytest.fixture(scope="session")
def trained(wavy):
    """Train a model with an exact and an early part; return it with its report."""
    X, y = wavy
    options = TrainOptions(C=4.0, gamma=2.0, levels=1, branching=4, threads=2, cache_mb=50)
    model = fit(Dataset(X, y), options)
    return model, model.report


@pytest.fixture
def write_libsvm(tmp_path):
    """Write rows as LIBSVM text and return the path."""

    def write(X, y, name="rows.txt"):
        path = tmp_path / name
        path.write_text(libsvm_text(X, y))
        return path

    return write
