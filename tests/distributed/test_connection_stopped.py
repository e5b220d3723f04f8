"""Test that tasks end once their results are no longer needed."""

import time

from dcsvm.distributed.connection import stop_of_task


def wait_for_a_stop(seconds):
    end = time.monotonic() + seconds
    with stop_of_task() as stop:
        while not stop.is_requested and time.monotonic() < end:
            time.sleep(0.02)
        return stop.is_requested


def nothing():
    return None


def test_a_task_that_is_cancelled_makes_room_for_the_next(client):
    workers = list(client.scheduler_info()["workers"])[:1]
    cancelled = [client.submit(wait_for_a_stop, 20, workers=workers, pure=False) for _ in range(2)]
    time.sleep(0.5)
    start = time.monotonic()
    client.cancel(cancelled, force=True)
    client.submit(nothing, workers=workers, pure=False).result(timeout=60)
    assert time.monotonic() - start < 10


def test_a_task_whose_result_is_wanted_is_not_stopped(client):
    assert client.submit(wait_for_a_stop, 1, pure=False).result(timeout=60) is False
