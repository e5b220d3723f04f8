"""Test the readers of CSV, TSV, Parquet and Arrow files."""

import gzip
import io
import random

import numpy as np
import pytest

from dcsvm.data import tables as table_file
from dcsvm.data.columns import Texts
from dcsvm.data.dataset import Dataset
from dcsvm.data.files import DataError, table_format
from dcsvm.data.tables import read_table

pyarrow = pytest.importorskip("pyarrow")

CSV = 'age,job,income\n39,"clerk, senior",low\n,smith,high\n50,"two\nlines",low\n28,?,high\n'


def read(tmp_path, text, name="t.csv"):
    path = tmp_path / name
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return read_table(str(path), table_format(str(path)))


@pytest.mark.parametrize("name", ["t.parquet", "t.feather"])
def test_a_file_has_the_categories_of_its_frame(tmp_path, name):
    from pyarrow import feather, parquet

    columns = {"zip": [10115, 20095, None] * 4, "flag": [True, False, True] * 4}
    table = pyarrow.table(
        {key: pyarrow.array(one).dictionary_encode() for key, one in columns.items()}
        | {"label": [0, 1, 1] * 4}
    )
    path = tmp_path / name
    if name == "t.parquet":
        parquet.write_table(table, path)
    else:
        feather.write_feather(table, str(path))
    data = Dataset.read(path)
    assert data.table.feature_names == [
        "zip=10115", "zip=20095", "zip=missing", "flag=false", "flag=true",
    ]  # fmt: skip
    frame = Dataset(table.drop_columns("label"))
    np.testing.assert_array_equal(data.rows.features, frame.rows.features)
    head = read_table(str(path), table_format(str(path)), is_head=True)
    assert head.column("zip").values == ("10115", "20095")
    (tmp_path / "t.csv").write_text("flag,zip\nTrue,20095\n0,10115\n1,\n")
    again = Dataset.read(tmp_path / "t.csv", like=data)
    assert again.unknown_categories == []
    np.testing.assert_array_equal(2 * again.rows.features, [[0, 1, 0, 0, 1], [1, 0, 0, 1, 0],
                                                            [0, 0, 1, 0, 1]])  # fmt: skip


def test_a_type_that_is_refused_is_named_in_words_for_commands(tmp_path):
    from pyarrow import parquet

    parquet.write_table(pyarrow.table({"day": [[1], [2]]}), tmp_path / "t.parquet")
    with pytest.raises(DataError, match="column day has the type list.*; --drop it"):
        read_table(str(tmp_path / "t.parquet"), "parquet").column("day")


@pytest.mark.parametrize(
    "name, format",
    [("a.csv", "csv"), ("A.CSV.gz", "csv"), ("a.tab", "tsv"), ("a.pq", "parquet"),
     ("a.feather", "arrow"), ("a.txt", None), ("csv", None)],
)  # fmt: skip
def test_the_name_tells_the_format(name, format):
    assert table_format(name) == format
    assert table_format(name, "libsvm") is None


def test_a_csv_file_has_columns_with_missing_values(tmp_path):
    frame = read(tmp_path, CSV)
    assert frame.names == ("age", "job", "income")
    assert np.array_equal(frame.column("age"), [39, np.nan, 50, 28], equal_nan=True)
    jobs = frame.column("job")
    assert [jobs.values[k] if k >= 0 else None for k in jobs.codes] == [
        "clerk, senior", "smith", "two\nlines", None,
    ]  # fmt: skip
    assert [frame.line_of(k) for k in range(4)] == [2, 3, 4, 6]


def test_the_formats_are_the_same_table(tmp_path):
    from pyarrow import csv, feather, parquet

    table = csv.read_csv(io.BytesIO(b"a,b\n1,x\n2.5,y\n"))
    parquet.write_table(table, tmp_path / "t.parquet")
    feather.write_feather(table, str(tmp_path / "t.feather"))
    (tmp_path / "t.tsv").write_text("a\tb\n1\tx\n2.5\ty\n")
    (tmp_path / "t.csv.gz").write_bytes(gzip.compress(b"a;b\n1;x\n2.5;y\n"))
    for name in ("t.parquet", "t.feather", "t.tsv", "t.csv.gz"):
        frame = read_table(str(tmp_path / name), table_format(name))
        assert frame.column("a").tolist() == [1.0, 2.5]
        assert frame.column("b").values == ("x", "y")


def test_a_file_of_numbers_needs_no_header_and_no_pyarrow(tmp_path, monkeypatch):
    with_arrow = read(tmp_path, "1,2,NA\n4,1e300,6\n")
    monkeypatch.setattr(table_file, "_pyarrow", lambda *_: None)
    frame = read(tmp_path, "1,2,NA\n4,1e300,6\n")
    for one in (frame, with_arrow):
        assert not one.has_names
        assert one.names == ("1", "2", "3")
        assert one.column("2").tolist() == [2, 1e300]
        assert np.isnan(one.column("3")[0])
    with pytest.raises(DataError, match=r"t.csv:3: column a: 'x' is not a number; text needs"):
        read(tmp_path, "a,b\n1,2\nx,3\n")


def test_byte_order_marks_and_latin_1(tmp_path):
    assert read(tmp_path, b"\xef\xbb\xbfa,b\n1,2\n").names == ("a", "b")
    with pytest.warns(UserWarning, match="not UTF-8: read as Latin-1"):
        frame = read(tmp_path, "a,b\n1,\u00e9t\u00e9\n".encode("latin-1"))
    assert frame.column("b").values == ("\u00e9t\u00e9",)


def test_a_late_text_makes_a_column_text(tmp_path):
    numbers = "a,b\n" + "1,2\n" * 3_000_000
    frame = read(tmp_path, numbers + "x,2\n")
    assert isinstance(frame.column("a"), Texts)


@pytest.mark.parametrize(
    "text, message",
    [
        ("", "no rows"),
        ("a,b\n", "no rows"),
        ("a,a\n1,2\n", ":1: two columns have the name a"),
        ("a,b\n1,2\n3\n", ":3: 1 column, the first line has 2"),
        ("a,b\n1,2\n3,4,5\n", ":3: 3 columns, the first line has 2"),
        (b"PK\x00\x01", "not a text file"),
    ],
)
def test_a_damaged_csv_file_is_explained(tmp_path, text, message):
    with pytest.raises(DataError, match=message):
        read(tmp_path, text)


def test_dates_are_read(tmp_path):
    frame = read(tmp_path, "when,y\n2020-01-01,1\n2020-01-02,2\n")
    assert np.diff(frame.column("when")) == np.timedelta64(1, "D")


def damaged(content, rng):
    """Change, drop or repeat some bytes."""
    data = bytearray(content)
    for _ in range(rng.randint(1, 4)):
        at = rng.randrange(len(data))
        kind = rng.randrange(4)
        if kind == 0:
            data[at] = rng.randrange(256)
        elif kind == 1:
            del data[at : at + rng.randint(1, 20)]
        elif kind == 2:
            data[at:at] = data[max(at - rng.randint(1, 20), 0) : at]
        else:
            del data[rng.randint(1, len(data)) :]
        if not data:
            data = bytearray(b"\n")
    return bytes(data)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", ["t.csv", "t.parquet", "t.feather"])
def test_200_damaged_files_give_rows_or_one_sentence(tmp_path, name):
    from pyarrow import csv, feather, parquet

    text = "a,b,c,y\n" + "".join(f"{k},{k % 7}.5,t{k % 3},{k % 2}\n" for k in range(40))
    content = text.encode()
    if name != "t.csv":
        write = parquet.write_table if name == "t.parquet" else feather.write_feather
        write(csv.read_csv(io.BytesIO(content)), str(tmp_path / "whole"))
        content = (tmp_path / "whole").read_bytes()
    rng, path = random.Random(0), tmp_path / name
    n_errors = 0
    for _ in range(200):
        path.write_bytes(damaged(content, rng))
        try:
            data = Dataset.read(path)
            Dataset.read(path, like=data)
        except DataError as error:
            n_errors += 1
            assert str(error).startswith(str(path))
            assert "\n" not in str(error)
    assert n_errors > 20


@pytest.mark.parametrize(
    "cells, expected",
    [
        (["1"] * 500 + ["2.5"], [1.0, 2.5]),
        ([""] * 500 + ["7"], [np.nan, 7.0]),
        (["0.5"] * 500 + ["much"], ("0.5", "much")),
        (["true"] * 500 + ["maybe"], ("true", "maybe")),
        (["2024-01-01"] * 500 + ["later"], ("2024-01-01", "later")),
    ],
)
def test_a_type_is_found_after_the_first_batch(tmp_path, monkeypatch, cells, expected):
    monkeypatch.setattr(table_file, "LARGE", 1000)
    lines = [f"{k},{cell},{cell}" for k, cell in enumerate(cells)]
    frame = read(tmp_path, "\n".join(["n,a,b", *lines]))
    assert frame.column("n").tolist() == list(range(len(cells)))
    for name in "ab":
        column = frame.column(name)
        if isinstance(expected, tuple):
            assert column.values == expected
        else:
            assert np.array_equal(column[[0, -1]], expected, equal_nan=True)


def test_a_line_may_be_longer_than_a_batch(tmp_path):
    text = "x" * 3_000_000
    frame = read(tmp_path, f"a,b\n1,y\n2,{text}\n")
    assert frame.column("b").values == ("y", text)


def test_a_table_beyond_the_memory_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr("dcsvm.data.files.available_memory", lambda: 1000)
    with pytest.raises(DataError, match=r"t\.csv: the rows take 1 MB of memory, more than"):
        read(tmp_path, "a,b\n" + "1,2\n" * 200)


def test_old_ends_of_lines_are_read(tmp_path):
    (tmp_path / "x.csv").write_bytes(b"a,label\r1,0\r2,1\r")
    frame = read_table(str(tmp_path / "x.csv"), "csv")
    assert frame.names == ("a", "label") and frame.column("a").tolist() == [1, 2]


def test_a_value_beyond_float32_has_its_line_and_column(tmp_path):
    (tmp_path / "x.csv").write_text("a,b,label\n1,2,0\n3,1e300,1\n")
    with pytest.raises(DataError, match="x.csv:3: column b: the value is too large for float32$"):
        Dataset.read(tmp_path / "x.csv")


@pytest.mark.parametrize("label", ["3", "c"])
@pytest.mark.parametrize("others", [{"drop": ["1"]}, {"weight": "1"}, {"weight": "a"}])
def test_the_number_of_the_label_counts_all_columns(tmp_path, label, others):
    path = tmp_path / "t.csv"
    path.write_text("a,b,c,d\n1,2,3,9\n4,5,6,8\n7,8,9,7\n")
    data = Dataset.read(path, label=label, **others)
    assert data.labels.tolist() == [3, 6, 9]
    assert data.table.feature_names == ["b", "d"]


@pytest.mark.parametrize("others", [{"drop": ["3"]}, {"weight": "c"}])
def test_the_label_is_neither_dropped_nor_a_weight(tmp_path, others):
    path = tmp_path / "t.csv"
    path.write_text("a,b,c,d\n1,2,3,9\n4,5,6,8\n")
    message = "t.csv: column c is the label: it can neither be dropped nor have the weights"
    with pytest.raises(DataError, match=message):
        Dataset.read(path, label="3", **others)


@pytest.mark.parametrize("version", ["9.0.0", "13.0.0", "14.0.2"])
def test_a_pyarrow_that_is_not_safe_reads_no_table(tmp_path, monkeypatch, version):
    from pyarrow import parquet

    table = pyarrow.table({"a": [1.0, 2.0], "y": [1, 2]})
    parquet.write_table(table, tmp_path / "t.parquet")
    monkeypatch.setattr(pyarrow, "__version__", version)
    with pytest.raises(DataError, match=rf"t.parquet: .* not the unsafe {version}: pip install"):
        Dataset.read(tmp_path / "t.parquet")
    with pytest.raises(DataError, match="needs pyarrow 15 or newer"):
        Dataset(table)
