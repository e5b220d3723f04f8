"""Test byte ranges of a file: each line is in one range, and errors name the file's line."""

import fsspec
import numpy as np
import pytest

from dcsvm.data import chunks as module
from dcsvm.data.chunks import FileRange, chunks_of_ranges, file_ranges, sections_of
from dcsvm.data.dataset import Dataset
from dcsvm.data.files import DataError
from dcsvm.data.reading import Encoding
from dcsvm.distributed.dataset import open_file, worker_name

TEXT = b"1 1:0.5 3:2\n-1 2:1\n1\n-1 1:3 2:4 3:5\n1 3:1"


def part_of(path, begin, end):
    return FileRange(str(path), begin, end, open_file, worker_name)


def ranges_of(path):
    return file_ranges(str(path), open_file, worker_name)


def read(part):
    """Return the rows and the labels of a range."""
    return sections_of([part], None, 0, Encoding(), lenient=False)[0]


@pytest.mark.parametrize("text", [TEXT, TEXT + b"\n", b"\n".join([b"1 1:1"] * 9)])
@pytest.mark.parametrize("step", range(1, 45))
def test_every_line_is_in_one_range(tmp_path, text, step):
    path = tmp_path / "rows"
    path.write_bytes(text)
    ends = range(0, len(text), step)
    parts = [read(part_of(path, begin, min(begin + step, len(text)))) for begin in ends]
    whole = Dataset.read(path)
    assert np.array_equal(np.concatenate([labels for _, labels in parts]), whole.labels)
    dense = [rows.with_features(whole.rows.n_features).dense for rows, _ in parts]
    assert np.array_equal(np.concatenate(dense), whole.rows.dense)


def test_ranges_cover_the_file_and_depend_on_its_size_alone(tmp_path, monkeypatch):
    monkeypatch.setattr(module, "MIN_RANGE", 10)
    path = tmp_path / "rows"
    path.write_bytes(b"1 1:1\n" * 100)
    parts = ranges_of(path)
    assert 10 < len(parts) <= module.MAX_RANGES
    assert [part.begin for part in parts] == [0, *(part.end for part in parts[:-1])]
    assert parts[-1].end == 600


@pytest.mark.parametrize(
    ("n_threads", "smallest", "n_chunks"),
    [(1, 1, 2), (4, 1, 8), (8, 1, 16), (100, 1, 17), (4, 30, 5), (4, 1000, 4)],
)
def test_chunks_are_consecutive_ranges_up_to_two_for_each_thread(
    monkeypatch, n_threads, smallest, n_chunks
):
    monkeypatch.setattr(module, "MIN_CHUNK", smallest)
    ranges = [part_of("rows", begin, begin + 10) for begin in range(0, 170, 10)]
    chunks = chunks_of_ranges(ranges, n_threads)
    assert [one for chunk in chunks for one in chunk] == ranges
    assert len(chunks) == n_chunks and all(chunks)


def test_chunks_have_a_largest_size(monkeypatch):
    monkeypatch.setattr(module, "MAX_CHUNK", 50)
    ranges = [part_of("rows", begin, begin + 10) for begin in range(0, 170, 10)]
    assert max(map(len, chunks_of_ranges(ranges, 1))) == 5


@pytest.mark.parametrize("begin", [0, 7, 13, 14])
def test_an_error_names_the_line_of_the_file(tmp_path, begin):
    path = tmp_path / "rows"
    path.write_bytes(b"1 1:1\n1 1:1\n1 1:1\n1 1:x\n")
    with pytest.raises(DataError, match=r"rows:4:5: value"):
        read(part_of(path, begin, 24))


@pytest.mark.parametrize("protocol", ["file", "memory"])
def test_urls_of_fsspec_are_read(tmp_path, protocol):
    url = f"{protocol}://{tmp_path}/rows"
    with fsspec.open(url, "wb") as file:
        file.write(TEXT)
    (part,) = ranges_of(url)
    assert read(part)[1].tolist() == [1, -1, 1, -1, 1]


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (None, "no such file"),
        (b"", "no rows"),
        (b"\x1f\x8b\x08\x00", "unpack it first"),
        (b"PK\x03\x04", "the file is a zip archive or an Excel file"),
        (TEXT.decode().encode("utf-16"), "workers cannot read UTF-16 text: save it as UTF-8 first"),
        (TEXT.replace(b"\n", b"\r"), "workers cannot read lines that end in carriage returns"),
    ],
)
def test_a_file_that_cannot_be_cut_is_an_error(tmp_path, content, reason):
    path = tmp_path / "rows"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(DataError, match=reason):
        ranges_of(path)


@pytest.mark.parametrize("step", [2, 4, 45])
def test_a_byte_order_mark_is_skipped(tmp_path, step):
    path = tmp_path / "rows"
    path.write_bytes(b"\xef\xbb\xbf" + TEXT)
    ends = range(0, len(TEXT) + 3, step)
    parts = [read(part_of(path, begin, min(begin + step, len(TEXT) + 3))) for begin in ends]
    assert np.concatenate([labels for _, labels in parts]).tolist() == [1, -1, 1, -1, 1]
    path.write_bytes(b"\xef\xbb\xbf1 1:x\n")
    with pytest.raises(DataError, match="rows:1:5: value"):
        read(ranges_of(path)[0])


def test_a_table_and_the_query_of_a_ranking_file_are_named(tmp_path):
    path = tmp_path / "rows"
    path.write_bytes(b"a;b\n1;2\n")
    with pytest.raises(DataError, match="looks like a table with semicolons: give --format csv"):
        read(ranges_of(path)[0])
    path.write_bytes(b"1 qid:3 1:0.5 2:4\n")
    with pytest.raises(DataError, match='"qid:3" is the query of a ranking file'):
        read(ranges_of(path)[0])
    ((rows, labels),) = sections_of(ranges_of(path), None, 0, Encoding(), lenient=True)
    assert rows.dense.tolist() == [[0.5, 4]] and labels.tolist() == [1]


def test_an_unknown_protocol_and_a_folder_are_errors(tmp_path):
    with pytest.raises(DataError, match="nosuch"):
        ranges_of("nosuch://rows")
    with pytest.raises(DataError, match="directory"):
        ranges_of(tmp_path)


def test_a_worker_that_does_not_see_the_file_is_named(client):
    part = part_of("/nowhere/rows", 0, 10)
    task = client.submit(sections_of, [part], None, 0, Encoding(), lenient=False)
    with pytest.raises(DataError, match=r"/nowhere/rows: no such file on the worker tcp://"):
        task.result()


def test_a_path_is_that_of_the_client_wherever_workers_are(tmp_path, monkeypatch):
    (tmp_path / "rows").write_bytes(TEXT)
    monkeypatch.chdir(tmp_path)
    (part,) = ranges_of("rows")
    monkeypatch.chdir("/")
    assert len(read(part)[1]) == 5
