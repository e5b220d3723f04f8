"""Settings of a grid scored on workers: the scores are those of one process."""

import numpy as np
import pytest

pytest.importorskip("distributed")
da = pytest.importorskip("dask.array")

from dcsvm import _core  # noqa: E402
from dcsvm.data.rows import Rows  # noqa: E402
from dcsvm.distributed.collections import chunks_of  # noqa: E402
from dcsvm.distributed.preparation import remote_data  # noqa: E402
from dcsvm.distributed.search import RemoteSearch  # noqa: E402
from dcsvm.distributed.tasks import Tasks  # noqa: E402
from dcsvm.problem.options import TrainOptions  # noqa: E402
from dcsvm.selection import search  # noqa: E402
from dcsvm.selection.grid import Grid  # noqa: E402
from dcsvm.selection.search import Search, fold_of_rows  # noqa: E402
from dcsvm.solving.control import Control  # noqa: E402

CASES = {
    "early": {"early": True},
    "early with overlap": {"early": True, "overlap": 1.5},
    "exact": {"tolerance": 1e-4},
    "bias": {"early": True, "bias": True},
    "regression": {"svm_type": "epsilon_svr", "early": True},
    "three classes": {"early": True},
}


@pytest.fixture
def remote(client):
    """Makes remote data of arrays."""

    def make(X, y):
        tasks = Tasks(client)
        X, y = da.from_array(X, (500, -1)), da.from_array(y, 500)
        return remote_data(tasks, chunks_of(tasks, X, y), Control())

    return make


def targets_of(name, X, y):
    if name == "regression":
        return np.sin(X[:, 0].astype(np.float64))
    return np.abs(X[:, 0]) // 1.5 if name == "three classes" else y


def both(X, y, options, remote, **how):
    fold = fold_of_rows(y, options, 3)
    here = Search(Rows.from_array(X), y, fold, options, **how)
    return here, RemoteSearch(remote(X, y), fold, options, **how)


def is_equal(one, other):
    same = [getattr(one, name) == getattr(other, name) for name in ("setting", "n_rows", "n_sv")]
    return all(same) and one.loss == pytest.approx(other.loss, rel=1e-6)


@pytest.mark.parametrize("name", CASES)
def test_scores_are_those_of_one_process(name, remote, rows_in_spots):
    X, y = (one[:2500] for one in rows_in_spots)
    y = targets_of(name, X, y)
    options = TrainOptions(threads=1, cache_mb=100, **CASES[name])
    epsilons = (0.1, 0.4) if name == "regression" else None
    grid = Grid.of(options, (0.5, 4.0), (0.1, 1.0), epsilons)
    here, there = both(X, y, options, remote)
    wanted, found = list(here.run(grid)), list(there.run(grid))
    assert len(found) == len(grid.settings)
    assert all(map(is_equal, wanted, found))


def test_a_fine_grid_and_few_rows_that_are_one_cluster(remote, rows_in_spots):
    X, y = (one[:400] for one in rows_in_spots)
    options = TrainOptions(threads=1, cache_mb=100)
    grid = Grid.of(options, (1.0, 4.0), (0.1, 0.4))
    here, there = both(X, y, options, remote)
    wanted, found = (list(one.run_coarse_to_fine(grid)) for one in (here, there))
    assert len(found) > 4 and all(map(is_equal, wanted, found))


def test_rows_are_brought_together_once(remote, rows_in_spots, monkeypatch):
    X, y = rows_in_spots
    monkeypatch.setattr(search, "ROWS_OF_CLUSTER", 200)
    options = TrainOptions(threads=1, cache_mb=100, early=True)
    _, there = both(X, y, options, remote, every=True)
    traffic = there.data.rows.tasks.traffic
    list(there.run(Grid.of(options, (1.0,), (0.4,))))
    once = traffic.moved
    assert len(y) * there.data.rows.row_bytes <= once
    list(there.run(Grid.of(options, (1.0, 8.0), (0.1, 0.4))))
    assert traffic.moved == once


def test_a_search_is_stopped(remote, rows_in_spots):
    X, y = rows_in_spots
    stop = _core.Stop()
    options = TrainOptions(threads=1, cache_mb=100, early=True)
    _, there = both(X, y, options, remote, stop=stop)
    run = there.run(Grid.of(options, (1.0, 8.0), (0.1, 0.4)))
    next(run)
    stop.request()
    with pytest.raises(_core.Stopped):
        list(run)
