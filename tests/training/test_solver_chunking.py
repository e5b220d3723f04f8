"""Test the chunking solver: the same solution with few passes over all rows."""

import numpy as np
import pytest
from reference import labelled_rows
from runs import train_rows

from dcsvm.data import arrays as allocation
from dcsvm.data import rows
from dcsvm.data.rows import Rows
from dcsvm.problem.options import TrainOptions
from dcsvm.training import engine
from dcsvm.training import solver as chunking


@pytest.mark.parametrize(
    "options",
    [{"C": 4.0}, {"C": 4.0, "bias": True}, {"svm_type": "epsilon_svr", "C": 2.0}],
    ids=["plain", "bias", "svr"],
)
def test_the_solution_is_that_of_the_whole_part(monkeypatch, options):
    X, y = labelled_rows(3000, 3, seed=5)
    own, options = Rows.from_array(X), TrainOptions(gamma=2.0, levels=1, threads=1, **options)
    wanted = train_rows(own, y, options)[1]
    rounds = []
    monkeypatch.setattr(engine.LocalEngine, "is_out_of_core", True)
    monkeypatch.setattr(engine.LocalEngine, "count_rounds", lambda self, n: rounds.append(n))
    monkeypatch.setattr(chunking, "LARGE", 1000)
    found = train_rows(own, y, options)[1]
    assert rounds[0] > 1
    assert found.converged and found.violation <= 1e-3
    assert found.objective == pytest.approx(wanted.objective, rel=1e-5)


@pytest.mark.parametrize("levels", [0, 1, None])
@pytest.mark.parametrize("dtype", [np.uint8, np.float32])
def test_rows_of_a_file(monkeypatch, tmp_path, levels, dtype):
    X, y = labelled_rows(4000, 20, seed=6)
    X = np.clip(np.round(X * 20 + 100), 0, 255).astype(dtype)
    if dtype == np.float32:
        X /= 255
    mapped = np.lib.format.open_memmap(tmp_path / "X.npy", "w+", dtype, X.shape)
    mapped[:] = X
    assert Rows.from_array(mapped).is_mapped
    rounds = []
    solve = chunking.ChunkingSolver.solve
    monkeypatch.setattr(
        chunking.ChunkingSolver,
        "solve",
        lambda self, control: (rounds.append(1), solve(self, control))[1],
    )
    monkeypatch.setattr(chunking, "LARGE", 1000)
    for module in (rows, allocation):
        monkeypatch.setattr(module, "fits_memory", lambda n_bytes: n_bytes < X.nbytes)
    options = TrainOptions(
        C=2.0, gamma=1e-4 if dtype == np.uint8 else 6.0, levels=levels, threads=1
    )
    found = [train_rows(Rows.from_array(one), y, options) for one in (X, mapped)]
    (in_memory, wanted), (model, report) = found
    assert bool(rounds) == (levels != 0)
    assert report.converged and report.violation <= 1e-3
    assert report.objective == pytest.approx(wanted.objective, rel=1e-5)
    expected = in_memory.decision_function(X[:100])
    assert np.allclose(model.decision_function(X[:100]), expected, atol=5e-3)
