"""Test input files: plain, mapped and compressed files; damaged archives."""

import bz2
import gzip
import lzma
import os
import subprocess
import sys

import pytest
from made_models import svm_train_text

from dcsvm import _svmlight
from dcsvm.data import files
from dcsvm.data.dataset import Dataset
from dcsvm.data.files import DataError, FileText, read_text
from dcsvm.data.tables import read_table
from dcsvm.model.reader import ModelError, load_model

TEXT = b"".join(b"%d 1:%d 2:0.5\n" % (k % 2, k) for k in range(5000))
COMPRESS = {"gzip": gzip.compress, "bz2": bz2.compress, "lzma": lzma.compress}


@pytest.fixture
def write(tmp_path):
    def write_bytes(data):
        path = tmp_path / "rows"
        path.write_bytes(data)
        return str(path)

    return write_bytes


def from_standard_input(data, name="-"):
    code = (
        "import sys; from dcsvm.data.files import DataError, FileText, read_text\n"
        f"try: sys.stdout.buffer.write(bytes(read_text({name!r})))\n"
        "except DataError as error: print('error', error, end='')"
    )
    return subprocess.run([sys.executable, "-c", code], input=data, capture_output=True).stdout


@pytest.mark.parametrize("kind", COMPRESS)
def test_compressed_files_are_known_by_their_first_bytes(write, kind):
    archive = COMPRESS[kind](TEXT)
    assert read_text(write(archive)) == TEXT
    assert from_standard_input(archive) == TEXT
    assert Dataset.read(write(archive)).labels.sum() == 2500


@pytest.mark.parametrize("kind", COMPRESS)
def test_archives_one_after_the_other_are_one_text(write, kind):
    archive = COMPRESS[kind](TEXT[:700]) + COMPRESS[kind](TEXT[700:])
    assert read_text(write(archive)) == TEXT


@pytest.mark.parametrize("kind", COMPRESS)
def test_large_text_goes_through_a_temporary_file(write, monkeypatch, kind):
    monkeypatch.setattr(files, "HELD", len(TEXT) // 2)
    monkeypatch.setattr(files, "PIECE", 1000)
    text = read_text(write(COMPRESS[kind](TEXT)))
    assert isinstance(text, FileText)
    assert text[:] == TEXT


def test_no_more_than_is_allowed_goes_through_a_temporary_file(write, monkeypatch):
    monkeypatch.setattr(files, "HELD", len(TEXT) // 4)
    monkeypatch.setattr(files, "PIECE", 1000)
    monkeypatch.setattr(files, "available_memory", lambda: len(TEXT))
    with pytest.raises(DataError, match="of text, half of the available memory"):
        read_text(write(gzip.compress(TEXT)))


@pytest.mark.parametrize("kind", COMPRESS)
def test_damaged_archives_are_named_in_one_sentence(write, kind):
    archive = COMPRESS[kind](TEXT)
    middle = len(archive) // 2
    flipped = archive[:middle] + bytes([archive[middle] ^ 0x55]) + archive[middle + 1 :]
    for damaged in (archive[:-9], archive[:middle], archive[:8], flipped):
        path = write(damaged)
        with pytest.raises(DataError) as error:
            read_text(path)
        message = str(error.value)
        assert message.startswith(f"{path}: the {kind} data is damaged: ")
        assert "\n" not in message
        if damaged is flipped:
            continue
        assert from_standard_input(damaged).startswith(b"error -: the %s data" % kind.encode())


def test_abbreviations_keep_their_capitals(write):
    archive = gzip.compress(TEXT)
    with pytest.raises(DataError, match="the gzip data is damaged: CRC check failed"):
        read_text(write(archive[:-8] + bytes([archive[-8] ^ 1]) + archive[-7:]))


def test_an_error_inside_an_archive_has_its_line(write):
    path = write(gzip.compress(b"1 1:1\n1 1:x\n"))
    with pytest.raises(DataError, match="rows:2:5: value"):
        Dataset.read(path)


def test_an_empty_archive_has_no_rows(write):
    with pytest.raises(DataError, match="rows: no rows"):
        Dataset.read(write(gzip.compress(b"")))


@pytest.mark.parametrize("name", ["-", "/dev/stdin"])
def test_standard_input_is_read_from_where_it_stands(tmp_path, name):
    path = tmp_path / "rows"
    path.write_bytes(TEXT)
    code = (
        "import os, sys; from dcsvm.data.files import read_text; os.lseek(0, 12, 0)\n"
        f"sys.stdout.buffer.write(bytes(read_text({name!r})))"
    )
    with open(path, "rb") as file:
        run = subprocess.run([sys.executable, "-c", code], stdin=file, capture_output=True)
    assert run.stdout == TEXT[12:]


@pytest.mark.skipif(not os.path.exists("/proc/self/stat"), reason="no /proc")
def test_files_without_a_size_are_read():
    assert bytes(read_text("/proc/self/stat")).startswith(b"%d " % os.getpid())


@pytest.fixture
def shrinking(monkeypatch):
    """Return a function that cuts a file off once its text has been scanned or begun."""

    def shrink(path, size):
        read, calls = os.pread, []

        def pread(*arguments):
            calls.append(arguments)
            if len(calls) == 2:
                os.truncate(path, size)
            return read(*arguments)

        monkeypatch.setattr(os, "pread", pread)

    return shrink


@pytest.mark.parametrize("kind", COMPRESS)
def test_a_compressed_file_that_shrinks_is_an_error(write, shrinking, kind):
    path = write(COMPRESS[kind](os.urandom(2**19)))
    shrinking(path, 1000)
    with pytest.raises(DataError, match="rows: the file became shorter while it was read"):
        read_text(path)


@pytest.mark.parametrize("size", [0, 7, 70_000])
def test_a_text_that_shrinks_is_an_error(write, size):
    path = write(TEXT * 8)
    text = read_text(path)
    os.truncate(path, size)
    for read in (Dataset.of_text, lambda *one: Dataset.of_text(*one, scale="auto")):
        with pytest.raises(DataError, match="rows: the file became shorter while it was read"):
            read(text, path)


def test_a_text_that_changes_between_its_two_passes_is_an_error(write):
    path = write(TEXT)
    text = _svmlight.Text(read_text(path))
    with open(path, "r+b") as file:
        file.write(b"0 1:1 2:2 3:3 4:4 5:5 6:6\n")
    with pytest.raises(_svmlight.ParseError, match="^ the file changed while it was read"):
        text.csr()


def test_a_file_that_grows_is_read_up_to_its_former_end(write):
    path = write(TEXT)
    text = read_text(path)
    with open(path, "ab") as file:
        file.write(b"nonsense")
    assert len(Dataset.of_text(text, path).labels) == 5000 and bytes(text) == TEXT


def test_a_model_that_shrinks_is_an_error(write, shrinking):
    path = write(svm_train_text("1 1:0.5 \n" * 600_000, total_sv=600_000).encode())
    shrinking(path, 1000)
    with pytest.raises(ModelError, match="rows: the file became shorter while it was read"):
        load_model(path)


def test_a_table_that_shrinks_is_an_error(write, shrinking):
    path = write(b"a,b,c\n" + b"1,2,x\n" * 500_000)
    shrinking(path, 1000)
    with pytest.raises(DataError, match="rows: the file became shorter while it was read"):
        read_table(path, "csv").column("c")
