"""Rows that do not fit the memory are in a mapped file, and everything stays the same."""

import errno
import mmap
import os
import tempfile
from types import SimpleNamespace

import numpy as np
import pytest

from dcsvm.data import room
from dcsvm.data.dataset import parse_dataset
from dcsvm.data.input_file import DataError
from dcsvm.data.rows import Rows
from dcsvm.problem.options import TrainOptions
from dcsvm.solving.preparation import prepare
from dcsvm.training.train import train_rows


@pytest.fixture
def little_memory(monkeypatch):
    monkeypatch.setattr(room, "available_memory", lambda: 10_000)


def text_of(X, y):
    lines = (
        " ".join([f"{label:g}", *(f"{k}:{v:g}" for k, v in enumerate(row, 1) if v)])
        for row, label in zip(X, y, strict=True)
    )
    return ("\n".join(lines) + "\n").encode()


def numbers(kind):
    rng = np.random.default_rng(1)
    X = rng.integers(0, 9, (600, 18)).astype(np.float64)
    return X if kind == "bytes" else X / 4 - 1


@pytest.mark.parametrize("kind", ["bytes", "floats"])
@pytest.mark.parametrize("repeats", [0, 200])
def test_models_are_those_of_rows_in_memory(kind, repeats, monkeypatch):
    X = numbers(kind)
    y = np.where(X[:, 0] * X[:, 1] > X[:, 2] * 3, 1.0, -1.0)
    X, y = np.concatenate([X, X[:repeats]]), np.concatenate([y, y[:repeats]])
    found = []
    for memory in (10**9, 10_000):
        monkeypatch.setattr(room, "available_memory", lambda memory=memory: memory)
        data = parse_dataset(text_of(X, y), "rows")
        assert data.rows.is_mapped == (memory == 10_000)
        assert data.rows.is_bytes == (kind == "bytes")
        options = TrainOptions(C=4, gamma=0.1, levels=1, threads=1)
        for consume in (False, True):
            model, report = train_rows(data.rows, data.labels, options, consume=consume)
            found.append((report.objective, report.n_sv, model.exact.dual_coef.tobytes()))
    assert len(set(found)) == 1


def test_copies_are_mapped_too(little_memory):
    rows = parse_dataset(text_of(numbers("bytes"), np.ones(600)), "rows").rows
    taken = rows.take(np.arange(599, -1, -1))
    assert taken.is_mapped and np.array_equal(taken.dense, rows.dense[::-1])
    assert not rows.take(np.arange(10)).is_mapped
    assert rows.part(slice(3, 9)).is_mapped


def test_mapped_rows_take_no_memory_in_the_plan(tmp_path):
    X = np.lib.format.open_memmap(tmp_path / "X.npy", "w+", np.uint8, (500, 20))
    X[:] = np.random.default_rng(0).integers(0, 9, (500, 20))
    prepared = prepare(Rows.from_array(X), np.arange(500) % 2.0, TrainOptions(gamma=1.0))
    assert prepared.memory.data == 0


def test_rows_in_memory_stay_floats_where_there_is_none_for_bytes(little_memory):
    X = numbers("bytes").astype(np.float32)
    assert Rows.from_array(X).dense is X


def test_what_is_memory_is_not_mapped():
    anonymous = np.frombuffer(mmap.mmap(-1, 10_000), np.uint8).reshape(500, 20)
    assert not Rows.from_array(anonymous).is_mapped


def test_a_full_disk_is_said_before_anything_is_read(little_memory, monkeypatch):
    text = text_of(numbers("bytes"), np.ones(600))
    monkeypatch.setattr(room.shutil, "disk_usage", lambda folder: SimpleNamespace(free=5000))
    with pytest.raises(DataError, match="rows: the rows take 1 MB, .*: only 1 MB are free"):
        parse_dataset(text, "rows")
    monkeypatch.undo()
    monkeypatch.setattr(room, "available_memory", lambda: 10_000)

    def full(*_):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    def unknown(*_):
        raise OSError(errno.EOPNOTSUPP, os.strerror(errno.EOPNOTSUPP))

    monkeypatch.setattr(room.os, "posix_fallocate", unknown, raising=False)
    assert parse_dataset(text, "rows").rows.is_mapped
    monkeypatch.setattr(room, "_is_memory", lambda folder: True)
    with pytest.raises(DataError, match="it is memory itself"):
        parse_dataset(text, "rows")
    monkeypatch.setattr(room, "_is_memory", lambda folder: False)
    monkeypatch.setattr(room.os, "posix_fallocate", full, raising=False)
    with pytest.raises(DataError, match=rf"in {tempfile.gettempdir()} \(TMPDIR\): no space left"):
        parse_dataset(text, "rows")
