"""Test that text in other encodings and with other line ends is read as UTF-8 with newlines."""

import codecs
import gzip
import io
import os
import threading
import zipfile

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

import dcsvm
from dcsvm.data import files
from dcsvm.data.dataset import Dataset
from dcsvm.data.files import DataError, FileText, first_lines, read_text, text_pieces
from dcsvm.data.scaling import load_scaling

LINES = [f"{k % 2} 1:{k} 3:{k / 7:.5f}" for k in range(3000)]
TEXT = "\n".join([*LINES, ""])
FORMS = {
    "mark": TEXT.encode("utf-8-sig"),
    "UTF-16": TEXT.encode("utf-16"),
    "UTF-16 big-endian": codecs.BOM_UTF16_BE + TEXT.encode("utf-16-be"),
    "UTF-16 without a mark": TEXT.encode("utf-16-le"),
    "UTF-16 big-endian without a mark": TEXT.encode("utf-16-be"),
    "UTF-32": TEXT.encode("utf-32"),
    "carriage returns": TEXT.replace("\n", "\r").encode(),
    "UTF-16 and carriage returns": TEXT.replace("\n", "\r").encode("utf-16"),
}
forms = pytest.mark.parametrize("form", FORMS)


@pytest.fixture
def small_pieces(monkeypatch):
    monkeypatch.setattr(files, "PIECE_BYTES", 5000)
    monkeypatch.setattr(files, "BATCH_READ", 701)  # cuts characters
    monkeypatch.setattr(files, "PIECE", 1001)


@forms
@pytest.mark.parametrize("pack", [bytes, gzip.compress])
@pytest.mark.parametrize("held", [2**25, 1000])
def test_text_comes_as_utf8(form, pack, held, tmp_path, small_pieces, monkeypatch):
    monkeypatch.setattr(files, "HELD", held)
    path = str(tmp_path / "t.txt")
    (tmp_path / "t.txt").write_bytes(pack(FORMS[form]))
    text = read_text(path)
    assert bytes(text[:]) == TEXT.encode()
    assert isinstance(text, FileText) == (held == 1000 or (form == "mark" and pack is bytes))
    assert b"".join(map(bytes, text_pieces(path))) == TEXT.encode()
    assert TEXT.encode().startswith(first_lines(path)) and first_lines(path).endswith(b"\n")


@forms
def test_a_pipe_has_any_form(form, tmp_path, small_pieces):
    path = str(tmp_path / "pipe")
    os.mkfifo(path)

    def write():
        with open(path, "wb", buffering=0) as pipe:
            for k in range(0, len(FORMS[form]), 333):
                pipe.write(FORMS[form][k : k + 333])

    threading.Thread(target=write, daemon=True).start()
    assert b"".join(map(bytes, text_pieces(path))) == TEXT.encode()


@forms
def test_errors_name_the_line_and_the_column(form, tmp_path):
    lines = [*LINES[:7], "1 1:x", *LINES[7:]]
    end = "\r" if "returns" in form else "\n"
    data = {"mark": "utf-8-sig", "carriage returns": "utf-8"}.get(form, "utf-16")
    (tmp_path / "t.txt").write_bytes(end.join(lines).encode(data))
    with pytest.raises(DataError, match='t.txt:8:5: value "x" is not a decimal number$'):
        Dataset.read(str(tmp_path / "t.txt"))
    (tmp_path / "t.txt").write_bytes(end.join(["1 x", *LINES]).encode(data))
    with pytest.raises(DataError, match='t.txt:1:3: no colon in "x"'):
        list(Dataset.pieces(str(tmp_path / "t.txt")))


def test_ordinary_text_is_not_copied(tmp_path):
    for text in (TEXT, TEXT.replace("\n", "\r\n"), "\ufeff" + TEXT):
        (tmp_path / "t.txt").write_bytes(text.encode())
        assert isinstance(read_text(str(tmp_path / "t.txt")), FileText)


def test_a_carriage_return_in_a_field_stays(tmp_path):
    for text in (b'a,b\n"x\ry",1\n', b'a,b\r\n"x\r\ny",1\r\n'):
        (tmp_path / "t.csv").write_bytes(text)
        assert bytes(read_text(str(tmp_path / "t.csv"))[:]) == text


def test_range_files_and_models_have_any_form(tmp_path):
    ranges = "x\n-1 1\n1 0 5\n2 -1 3\n"
    X = np.random.default_rng(0).normal(size=(60, 2))
    trained = dcsvm.train(X, np.sign(X[:, 0]))
    trained.save(tmp_path / "m")
    model = (tmp_path / "m").read_text()
    for encoding in ("utf-8-sig", "utf-16"):
        (tmp_path / "r").write_text(ranges, encoding)
        assert load_scaling(tmp_path / "r").features.maximum.tolist() == [5, 3]
        (tmp_path / "m").write_text(model, encoding)
        assert np.array_equal(dcsvm.load_model(tmp_path / "m").predict(X), trained.predict(X))
    (tmp_path / "r").write_bytes(ranges.replace("\n", "\r").encode())
    assert load_scaling(tmp_path / "r").features.maximum.tolist() == [5, 3]


@pytest.mark.parametrize("cut", [1, 2, 3])
def test_a_cut_character_is_a_sentence(cut, tmp_path):
    text = "1 1:\U0001f600".encode("utf-16")
    (tmp_path / "t.txt").write_bytes(text[:-cut])
    message = "t.txt: the UTF-16 text is damaged or cut: (truncated|unexpected)"
    for read in (lambda path: Dataset.read(path), lambda path: list(text_pieces(path))):
        with pytest.raises(DataError, match=message):
            read(str(tmp_path / "t.txt"))


def test_a_mark_alone_has_no_rows(tmp_path):
    for mark in files.MARKS:
        (tmp_path / "t.txt").write_bytes(mark)
        with pytest.raises(DataError, match=r"t\.txt:? ?.*no rows"):
            Dataset.read(str(tmp_path / "t.txt"))
        with pytest.raises(DataError, match="no rows"):
            list(Dataset.pieces(str(tmp_path / "t.txt")))


@settings(max_examples=200, deadline=None)
@given(st.sampled_from([b"", *files.MARKS, *files.FOREIGN, *files.BINARY_TABLES]), st.binary())
@example(b"", b"1\r")
@example(codecs.BOM_UTF16_LE, b"1\0\r\0")
def test_any_bytes_are_text_or_a_sentence(tmp_path_factory, mark, data):
    path = tmp_path_factory.getbasetemp() / "any.txt"
    path.write_bytes(mark + data)
    for read in (read_text, lambda name: list(text_pieces(name)), Dataset.read, first_lines):
        try:
            read(str(path))
        except DataError as error:
            assert "\n" not in str(error)


def zipped(text):
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr("t.csv", text)
    return file.getvalue()


@pytest.mark.parametrize(
    "data, hint",
    [
        (zipped("a,b\n1,2\n"), "t: the file is a zip archive or an Excel file: unpack it, or save"),
        (b"\x28\xb5\x2f\xfd12", "t: the file is compressed by zstd, which is not read: unpack it"),
        (b"PAR1\x15\x04", "the file has the format parquet: give --format parquet"),
        (b"ARROW1\0\0", "the file has the format arrow: give --format arrow"),
        (b"a,b,y\n1,2,x\n", "the file looks like a table with commas: give --format csv"),
        (b"1;2\n1;2", "the file looks like a table with semicolons: give --format csv"),
        (b"a\tb\n1\t2\n", "the file looks like a table with tabs: give --format tsv"),
        (b"a|b\n1|2\n", "the file looks like a table with vertical bars: give --format csv"),
        (b"1 2 3\n4 5 6\n", "the file looks like a table with blanks: give --format csv"),
    ],
    ids=["zip", "zstd", "parquet", "arrow", "commas", "semicolons", "tabs", "bars", "blanks"],
)
def test_other_files_than_libsvm_text_are_named(data, hint, tmp_path):
    (tmp_path / "t").write_bytes(data)
    path = str(tmp_path / "t")
    for read in (
        Dataset.read,
        lambda name: list(Dataset.pieces(name)),
        lambda name: Dataset.check_first_rows(name, dcsvm.Dataset(np.eye(2), [0, 1])),
    ):
        with pytest.raises(DataError) as error:
            read(path)
        assert hint in str(error.value)


def test_archives_are_named_whatever_their_ending(tmp_path):
    for ending in ("csv", "parquet", "txt", "range"):
        (tmp_path / f"t.{ending}").write_bytes(zipped("a,b\n1,2\n"))
        read = load_scaling if ending == "range" else Dataset.read
        with pytest.raises(DataError, match="the file is a zip archive or an Excel file"):
            read(str(tmp_path / f"t.{ending}"))
