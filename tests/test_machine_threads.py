"""Test that small work gets one thread, unless the caller asks for more."""

import numpy as np
import pytest
from scipy import sparse

import dcsvm
from dcsvm import machine
from dcsvm.data.rows import Rows
from dcsvm.machine import threads_that_pay, threads_to_train


@pytest.fixture(autouse=True)
def two_cores(monkeypatch):
    monkeypatch.setattr(machine, "default_threads", lambda: 2)


def rows_of(n, d):
    return Rows.from_array(np.full((n, d), 0.5, np.float32))


def work(rows):
    return rows.work_with(rows.n_samples)


def test_few_rows_are_trained_on_by_one_thread_and_many_by_all():
    assert [threads_to_train(None, work(rows_of(n, 64))) for n in (100, 1797, 4000)] == [1, 1, 2]
    assert [threads_to_train(None, work(rows_of(1000, d))) for d in (100, 1000)] == [1, 2]
    assert threads_to_train(3, work(rows_of(100, 64))) == 3


def test_bytes_are_less_work_than_floats_and_sparse_rows_more():
    assert [threads_to_train(None, work(rows_of(n, 500))) for n in (900, 1100)] == [1, 2]
    of_bytes = [Rows.from_array(np.ones((n, 500), np.uint8)) for n in (3000, 4000)]
    assert [threads_to_train(None, work(rows)) for rows in of_bytes] == [1, 2]
    of_csr = [Rows.from_array(sparse.random(n, 5000, 0.01, "csr")) for n in (1000, 1500)]
    assert [threads_to_train(None, work(rows)) for rows in of_csr] == [1, 2]


def test_a_few_rows_to_predict_are_small_work_too():
    assert [threads_that_pay(4, rows_of(n, 50).work_with(2000)) for n in (1, 1000, 10_000)] == [
        1,
        1,
        4,
    ]


def test_a_run_says_how_many_threads_it_has():
    X = np.random.default_rng(0).random((300, 3))
    y = np.where(X[:, 0] > 0.5, 1.0, -1.0)
    assert dcsvm.train(X, y).report.threads == 1
    assert dcsvm.train(X, y, threads=2).report.threads == min(2, dcsvm._core.usable_threads(2))
