"""Test that rows larger than the memory budget are memory-mapped with equal results."""

import errno
import mmap
import os
import tempfile
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from reference import libsvm_text
from runs import train_rows

from dcsvm import system
from dcsvm.data import arrays as allocation
from dcsvm.data.dataset import Dataset
from dcsvm.data.files import DataError
from dcsvm.data.rows import Rows
from dcsvm.problem.options import TrainOptions
from dcsvm.training import engine
from dcsvm.training import solver as chunking
from dcsvm.training.engine import prepare_rows


@pytest.fixture
def little_memory(monkeypatch):
    monkeypatch.setattr(allocation, "available_memory", lambda: 10_000)


def text_of(X, y):
    return libsvm_text(X, y).encode()


def numbers(kind):
    rng = np.random.default_rng(1)
    if kind == "sparse":
        X = np.zeros((600, 400))
        columns = rng.integers(0, 400, (600, 9))
        X[np.arange(600)[:, None], columns] = rng.integers(1, 9, (600, 9)) / 4
        X[:, :3] = rng.integers(0, 5, (600, 3))
        return X
    X = rng.integers(0, 9, (600, 18)).astype(np.float64)
    return X if kind == "bytes" else X / 4 - 1


@pytest.mark.parametrize("kind", ["bytes", "floats", "sparse"])
@pytest.mark.parametrize("repeats", [0, 200])
def test_models_are_those_of_rows_in_memory(kind, repeats, monkeypatch):
    X = numbers(kind)
    y = np.where(X[:, 0] * X[:, 1] > X[:, 2] * 3, 1.0, -1.0)
    X, y = np.concatenate([X, X[:repeats]]), np.concatenate([y, y[:repeats]])
    found = []
    for memory in (10**9, 10_000):
        monkeypatch.setattr(allocation, "available_memory", lambda memory=memory: memory)
        data = Dataset.of_text(text_of(X, y), "rows")
        assert data.rows.is_mapped == (memory == 10_000)
        assert data.rows.is_bytes == (kind == "bytes")
        options = TrainOptions(C=4, gamma=0.1, levels=1, threads=1)
        for consume in (False, True):
            model, report = train_rows(data.rows, data.labels, options, consume=consume)
            found.append((report.objective, None if consume else model.decision_function(X)))
            assert report.converged and report.violation <= options.tolerance
    in_memory, mapped = found[0], found[2]  # solved in another order
    assert found[1][0] == in_memory[0] and found[3][0] == mapped[0]
    assert mapped[0] == pytest.approx(in_memory[0], rel=options.tolerance)
    assert np.abs(mapped[1] - in_memory[1]).max() < 10 * options.tolerance


def test_copies_are_mapped_too(little_memory):
    rows = Dataset.of_text(text_of(numbers("bytes"), np.ones(600)), "rows").rows
    order = np.random.default_rng(0).integers(0, 600, 900)
    taken = rows.take(order)
    assert taken.is_mapped and np.array_equal(taken.dense, rows.dense[order])
    assert not rows.take(np.arange(10)).is_mapped
    assert rows.part(slice(3, 9)).is_mapped


def test_copies_of_sparse_rows_are_mapped_too(little_memory):
    X = numbers("sparse")
    rows = Dataset.of_text(text_of(X, np.ones(600)), "rows").rows
    assert rows.is_mapped and not rows.is_dense and rows.nbytes_in_memory == rows.indptr.nbytes
    order = np.random.default_rng(0).integers(0, 600, 900)
    taken = rows.take(order)
    assert taken.is_mapped and not rows.take(np.arange(10)).is_mapped
    every = replace(taken, indices=np.array(taken.indices), values=np.array(taken.values))
    assert np.array_equal(every.in_form_of(Rows.from_array(X[:, :9]), 1).dense, X[order])


def test_support_vectors_of_rows_in_a_file_are_solved_apart(tmp_path, little_memory, monkeypatch):
    monkeypatch.setattr(chunking, "LARGE", 100)
    X = np.random.default_rng(0).integers(0, 9, (2000, 20)).astype(np.uint8)
    y = np.where(X[:, 0] > X[:, 1] + 0.5, 1.0, -1.0)
    mapped = np.lib.format.open_memmap(tmp_path / "X.npy", "w+", np.uint8, X.shape)
    mapped[:] = X
    options = TrainOptions(C=4, gamma=0.001, levels=1, threads=1)
    here, there = (train_rows(Rows.from_array(one), y, options)[0] for one in (X, mapped))
    assert there.report.n_sv < engine.MAX_COPIED * len(X)
    assert there.report.converged
    assert there.report.objective == pytest.approx(here.report.objective, rel=options.tolerance)
    assert isinstance(there.exact.rows, Rows) and isinstance(there.early.rows, Rows)


def test_mapped_rows_take_no_memory_in_the_plan(tmp_path):
    X = np.lib.format.open_memmap(tmp_path / "X.npy", "w+", np.uint8, (500, 20))
    X[:] = np.random.default_rng(0).integers(0, 9, (500, 20))
    prepared = prepare_rows(Rows.from_array(X), np.arange(500) % 2.0, TrainOptions(gamma=1.0))
    assert prepared.memory.data == 0


def test_rows_in_memory_stay_floats_where_there_is_none_for_bytes(little_memory):
    X = numbers("bytes").astype(np.float32)
    assert Rows.from_array(X).dense is X


def test_what_is_memory_is_not_mapped():
    anonymous = np.frombuffer(mmap.mmap(-1, 10_000), np.uint8).reshape(500, 20)
    assert not Rows.from_array(anonymous).is_mapped


def test_a_full_disk_is_said_before_anything_is_read(little_memory, monkeypatch):
    text = text_of(numbers("bytes"), np.ones(600))
    monkeypatch.setattr(allocation.shutil, "disk_usage", lambda folder: SimpleNamespace(free=5000))
    with pytest.raises(DataError, match="rows: the rows take 1 MB, .*: only 1 MB are free"):
        Dataset.of_text(text, "rows")
    monkeypatch.undo()
    monkeypatch.setattr(allocation, "available_memory", lambda: 10_000)

    def full(*_):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    def unknown(*_):
        raise OSError(errno.EOPNOTSUPP, os.strerror(errno.EOPNOTSUPP))

    monkeypatch.setattr(system.os, "posix_fallocate", unknown, raising=False)
    assert Dataset.of_text(text, "rows").rows.is_mapped
    monkeypatch.setattr(system, "is_in_memory", lambda folder: True)
    with pytest.raises(DataError, match="it is a file system in memory"):
        Dataset.of_text(text, "rows")
    monkeypatch.setattr(system, "is_in_memory", lambda folder: False)
    monkeypatch.setattr(system.os, "posix_fallocate", full, raising=False)
    with pytest.raises(DataError, match=rf"in {tempfile.gettempdir()} \(TMPDIR\): no space left"):
        Dataset.of_text(text, "rows")


def test_rows_are_gathered_in_any_order(monkeypatch):
    monkeypatch.setattr(allocation, "BLOCK_BYTES", 7 * 12)
    rng = np.random.default_rng(0)
    source = rng.normal(size=(100, 3)).astype(np.float32)
    for numbers_ in (rng.permutation(100), rng.integers(0, 100, 250), np.arange(5), np.arange(0)):
        out = np.empty((len(numbers_), 3), np.float32)
        allocation.gather(source, numbers_, out)
        assert np.array_equal(out, source[numbers_])


def test_mapped_rows_are_in_the_order_of_their_clusters(little_memory):
    rows = Dataset.of_text(text_of(numbers("bytes"), np.ones(600)), "rows").rows
    prepared = prepare_rows(
        rows, np.arange(600) % 2.0, TrainOptions(gamma=0.1, levels=1, threads=1)
    )
    cluster = prepared.tree.placed[1].nearest
    assert np.all(np.diff(cluster) >= 0) and len(np.unique(cluster)) == 4
    again = prepared.tree.partition(1).assign(prepared.data.rows, 1)
    assert np.array_equal(again, cluster)
    order = prepared.row_map.first
    assert np.array_equal(prepared.data.rows.dense, rows.dense[order])
