"""Test killed workers: their data is recomputed and the results stay the same."""

import os
import random
import signal
import threading
import time

import dask.array as da
import numpy as np
import pytest

import dcsvm
from dcsvm.distributed import connection, train
from dcsvm.distributed.connection import Tasks, WorkersError, workers_of_this_machine
from dcsvm.training.remote_engine import RemoteTree

OPTIONS = {"C": 4, "gamma": 0.5, "levels": 2}


@pytest.fixture
def own_client():
    with workers_of_this_machine(2, threads=2) as client:
        yield client


def running(client):
    """Return the worker processes that Dask restarts, by address.

    Dask does not restart a worker that dies during its start.
    """
    there, nannies = client.nthreads(), client.cluster.workers.values()
    return {
        one.worker_address: one.process.pid
        for one in nannies
        if one.worker_address in there and one.process and one.process.status.name == "running"
    }


class Killer(dcsvm.Progress):
    """Progress that kills the worker with most data at the start of a phase."""

    def __init__(self, client, phases):
        self.client, self.phases, self.killed = client, set(phases), []

    def begin(self, name, n_rows):
        if name not in self.phases:
            return
        end = time.monotonic() + 120
        while len(pids := running(self.client)) < 2:
            assert time.monotonic() < end, "Dask did not restart a killed worker"
            time.sleep(0.1)
        held = self.client.has_what()
        os.kill(pids[max(pids, key=lambda worker: len(held.get(worker, ())))], signal.SIGKILL)
        self.killed.append(name)


def test_a_worker_that_dies_in_any_phase_changes_no_bit(own_client, client, rows_in_spots):
    X, y = rows_in_spots
    X, y = da.from_array(X, (1500, -1)), da.from_array(y, 1500)
    killer = Killer(own_client, ["level 2", "refine", "conquer"])
    found = train(own_client, X, y, progress=killer, **OPTIONS)
    assert killer.killed == ["level 2", "refine", "conquer"]
    wanted = train(client, X, y, **OPTIONS)
    assert found.report.converged
    assert np.array_equal(found.exact.dual_coef, wanted.exact.dual_coef)
    assert np.array_equal(found.exact.row_numbers, wanted.exact.row_numbers)


def test_a_worker_that_dies_between_levels_of_clusters_changes_no_bit(
    own_client, client, rows_in_spots, monkeypatch
):
    """The worker stored the assignment of its rows in the previous level."""
    X, y = rows_in_spots
    X, y = da.from_array(X, (1500, -1)), da.from_array(y, 1500)
    options = {"C": 4, "gamma": 0.5, "early": True, "early_level": 2}
    wanted = train(client, X, y, **options)
    killer, grow = Killer(own_client, ["grow"]), RemoteTree.grow

    def killing(tree, *what, **how):
        if tree.splits:
            killer.begin("grow", 0)
        grow(tree, *what, **how)

    monkeypatch.setattr(RemoteTree, "grow", killing)
    found = train(own_client, X, y, **options)
    assert killer.killed == ["grow"]
    assert np.array_equal(found.early.cluster, wanted.early.cluster)
    assert np.array_equal(found.early.dual_coef, wanted.early.dual_coef)


def test_a_run_goes_on_with_other_workers(own_client, client, rows_in_spots, tmp_path):
    X, y = rows_in_spots
    X, y = da.from_array(X, (1500, -1)), da.from_array(y, 1500)

    class Lost(Exception):
        pass

    class Ends(dcsvm.Progress):
        def begin(self, name, n_rows):
            if name == "conquer":
                raise Lost

    with pytest.raises(Lost):
        train(own_client, X, y, checkpoint=dcsvm.Checkpoint(tmp_path), progress=Ends(),
              **OPTIONS)  # fmt: skip
    resumed = []

    class Notes(dcsvm.Progress):
        def resume(self, name):
            resumed.append(name)

    checkpoint = dcsvm.Checkpoint(tmp_path, resume=True)
    model = train(client, X, y, checkpoint=checkpoint, progress=Notes(), **OPTIONS)
    assert resumed == ["conquer"] and model.report.converged
    assert model.report.levels[0].level == 2


def test_a_task_at_which_too_many_workers_die_is_given_up_with_its_name(monkeypatch):
    monkeypatch.setitem(connection.CONFIG, "distributed.scheduler.allowed-failures", 1)
    with workers_of_this_machine(1, threads=1) as client:
        tasks = Tasks(client)
        deadly = tasks.submit("deadly", os._exit, 1)
        with pytest.raises(WorkersError, match="workers died repeatedly at task deadly-.*memory"):
            tasks.results([deadly])


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(5))
def test_random_kills_change_no_bit(own_client, client, rows_in_spots, seed):
    X, y = rows_in_spots
    X, y = da.from_array(X, (500, -1)), da.from_array(y, 500)
    wanted, rng, done = train(client, X, y, **OPTIONS), random.Random(seed), threading.Event()

    def kill():
        for _ in range(5):
            if done.wait(rng.uniform(0.2, 3)):
                return
            if pids := running(own_client):
                os.kill(rng.choice(list(pids.values())), signal.SIGKILL)

    killer = threading.Thread(target=kill)
    killer.start()
    try:
        found = train(own_client, X, y, **OPTIONS)
    finally:
        done.set()
        killer.join()
    assert np.array_equal(found.exact.dual_coef, wanted.exact.dual_coef)
