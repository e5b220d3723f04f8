"""Test connections to Dask: workers do the work; without them the error is one sentence."""

import importlib.metadata

import dask.array as da
import numpy as np
import pytest
from distributed import Client, LocalCluster

from dcsvm.distributed import connection, train
from dcsvm.distributed.connection import (
    Tasks,
    WorkersError,
    check_workers,
    threads_of_hosts,
    threads_of_task,
    workers_of_scheduler,
    workers_of_this_machine,
)
from dcsvm.problem.options import OptionError
from dcsvm.training.memory import plan_worker_memory


@pytest.fixture
def at_once(monkeypatch):
    monkeypatch.setattr(connection, "SECONDS_TO_ANSWER", 0.2)


@pytest.fixture(scope="module")
def in_process():
    with (
        LocalCluster(1, processes=False, dashboard_address=":0", memory_limit="1GB") as cluster,
        Client(cluster, set_as_default=False) as client,
    ):
        yield client


def test_no_scheduler_is_an_error(at_once):
    with (
        pytest.raises(WorkersError, match="cannot reach Dask scheduler tcp://127.0.0.1:9"),
        workers_of_scheduler("tcp://127.0.0.1:9"),
    ):
        pass


def test_an_address_without_a_port_is_an_error():
    with (
        pytest.raises(WorkersError, match="cannot reach Dask scheduler foo: missing port number"),
        workers_of_scheduler("foo"),
    ):
        pass


@pytest.mark.parametrize(
    ("content", "reason"), [(None, "no such file"), ("{}", "not a Dask"), ("x", "not a Dask")]
)
def test_a_scheduler_file_that_is_none_is_an_error(at_once, tmp_path, content, reason):
    path = tmp_path / "scheduler.json"
    if content is not None:
        path.write_text(content)
    with pytest.raises(WorkersError, match=reason), workers_of_scheduler(None, str(path)):
        pass


def listening():
    """Return the addresses, with ports, at which this process and its children listen."""
    psutil = pytest.importorskip("psutil")
    own = psutil.Process()
    sockets = [
        one for process in (own, *own.children(recursive=True))
        for one in process.net_connections("inet") if one.status == psutil.CONN_LISTEN
    ]  # fmt: skip
    return {tuple(one.laddr) for one in sockets}


def test_no_other_machine_reaches_the_workers_of_this_one():
    before = listening()
    with workers_of_this_machine(1, threads=1):
        hosts = {host for host, _ in listening() - before}
    assert hosts == {"127.0.0.1"}


def test_a_scheduler_without_workers_is_an_error(at_once):
    with (
        LocalCluster(
            n_workers=0, threads_per_worker=1, processes=False, dashboard_address=":0"
        ) as cluster,
        Client(cluster, set_as_default=False) as client,
        pytest.raises(WorkersError, match="has no workers"),
    ):
        check_workers(client)


def test_another_version_on_a_worker_is_an_error(in_process, monkeypatch):
    monkeypatch.setattr(importlib.metadata, "version", lambda name: "0.0.7")
    with pytest.raises(WorkersError, match=r"has dcsvm 0\.0\.7, this is"):
        check_workers(in_process)


def test_too_little_memory_is_known_before_the_work(in_process):
    workers = Tasks(in_process).workers()
    with pytest.raises(
        OptionError, match="at most [1-9]\\d*, got 2000: the smallest worker has 1000 MB"
    ):
        plan_worker_memory(workers, 10**6, 2000)
    with pytest.raises(ValueError, match="add workers"):
        plan_worker_memory(workers, 10**9, None)


def test_chunks_that_do_not_belong_together_are_errors(in_process):
    X, y = np.zeros((6, 2)), np.array([1.0, -1, 1, -1, 1, -1])
    with pytest.raises(TypeError, match="must be dask arrays"):
        train(in_process, X, y)
    with pytest.raises(ValueError, match="6 rows have 5 labels"):
        train(in_process, da.from_array(X, 6).to_delayed().ravel().tolist(),
              da.from_array(y[:5], 5).to_delayed().ravel().tolist())  # fmt: skip
    with pytest.raises(ValueError, match="two classes"):
        train(in_process, da.from_array(X, (3, 2)), da.from_array(np.ones(6), 3))
    with pytest.raises(OptionError, match="precomputed"):
        train(in_process, da.from_array(X, (3, 2)), da.from_array(y, 3), kernel="precomputed")


def test_a_task_alone_has_the_threads_of_all_workers_of_its_machine(client):
    of_hosts = threads_of_hosts(client)
    threads = client.submit(lambda: (threads_of_task(None), threads_of_task(of_hosts))).result()
    assert threads == (1, 2)
