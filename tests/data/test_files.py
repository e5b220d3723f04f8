"""Test batches of text: whole lines from files, pipes and archives, as soon as they arrive."""

import bz2
import gzip
import lzma
import os
import threading

import numpy as np
import pytest

from dcsvm.data import files
from dcsvm.data.dataset import Dataset
from dcsvm.data.files import DataError, FileText, text_pieces

LINES = [f"{k % 2} 1:{k} 3:{k / 7:.5f}\n".encode() for k in range(3000)]
TEXT = b"".join(LINES)
PACKED = {"plain": bytes, "gzip": gzip.compress, "bz2": bz2.compress, "xz": lzma.compress}


@pytest.fixture(autouse=True)
def small_pieces(monkeypatch):
    monkeypatch.setattr(files, "PIECE_BYTES", 5000)
    monkeypatch.setattr(files, "BATCH_READ", 700)


@pytest.fixture
def pipe(tmp_path):
    """Return a function that writes parts to a pipe in a thread and returns its name."""
    path = str(tmp_path / "pipe")
    os.mkfifo(path)

    def write(parts):
        def work():
            with open(path, "wb", buffering=0) as file:
                for part in parts:
                    file.write(part)

        threading.Thread(target=work, daemon=True).start()
        return path

    return write


@pytest.mark.parametrize("kind", PACKED)
@pytest.mark.parametrize("is_pipe", [False, True])
@pytest.mark.parametrize("text", [TEXT, TEXT[:-1], LINES[0], b"1", TEXT[:9000] + b" " * 20_000])
def test_pieces_are_the_text_in_whole_lines(kind, is_pipe, text, tmp_path, pipe):
    data = PACKED[kind](text)
    if is_pipe:
        name = pipe([data])
    else:
        name = str(tmp_path / "file")
        (tmp_path / "file").write_bytes(data)
    pieces = list(text_pieces(name))
    found = list(map(bytes, pieces))
    assert b"".join(found) == text
    assert all(piece.endswith(b"\n") for piece in found[:-1])
    if not is_pipe or kind != "plain":
        assert max(map(len, found)) <= 5000 + 700 + 20_100
    if not is_pipe and kind == "plain":
        assert all(isinstance(piece, FileText) for piece in pieces)  # not in memory
        assert sum(piece.count(b"\n") for piece in pieces) == text.count(b"\n")


def test_a_line_of_a_pipe_is_a_piece_when_it_comes(pipe):
    gates = [threading.Event() for _ in range(4)]

    def lines():
        for gate, line in zip(
            gates, [b"1 1:1\n1 2", b":2\n", b"1 3:3\n1 4:4\n", b"1 5:5"], strict=True
        ):
            assert gate.wait(10)
            yield line

    source = pipe(lines())
    gates[0].set()
    found = text_pieces(source)
    assert next(found) == b"1 1:1\n"
    gates[1].set()
    assert next(found) == b"1 2:2\n"
    gates[2].set()
    assert next(found) == b"1 3:3\n1 4:4\n"
    gates[3].set()
    assert list(found) == [b"1 5:5"]


def test_who_reads_no_further_need_not_wait(pipe):
    never = threading.Event()

    def lines():
        yield LINES[0]
        never.wait(10)

    found = text_pieces(pipe(lines()))
    assert next(found) == LINES[0]
    found.close()
    assert not never.is_set()


def test_nothing_is_no_rows(tmp_path):
    (tmp_path / "empty").write_bytes(b"")
    assert list(text_pieces(str(tmp_path / "empty"))) == []
    with pytest.raises(DataError, match="empty: no rows"):
        list(Dataset.pieces(tmp_path / "empty"))


def test_what_cannot_be_read_is_said(tmp_path):
    with pytest.raises(DataError, match="missing: no such file"):
        list(text_pieces(str(tmp_path / "missing")))
    with pytest.raises(DataError, match="is a directory"):
        list(text_pieces(str(tmp_path)))
    (tmp_path / "half").write_bytes(gzip.compress(TEXT)[:-200])
    with pytest.raises(DataError, match="half: the gzip data is damaged"):
        list(text_pieces(str(tmp_path / "half")))


def test_rows_in_pieces_are_those_of_the_whole(tmp_path):
    (tmp_path / "rows").write_bytes(TEXT)
    whole = Dataset.read(tmp_path / "rows")
    parts = list(Dataset.pieces(tmp_path / "rows"))
    assert len(parts) > 10
    np.testing.assert_array_equal(np.concatenate([one.labels for one in parts]), whole.labels)
    np.testing.assert_array_equal(
        np.vstack([one.rows.with_features(3).dense for one in parts]), whole.rows.dense
    )


def test_what_is_wrong_has_the_line_of_the_file(tmp_path):
    (tmp_path / "rows").write_bytes(TEXT + b"1 1:oops\n")
    with pytest.raises(DataError, match=r"rows:3001:5: "):
        list(Dataset.pieces(tmp_path / "rows"))
