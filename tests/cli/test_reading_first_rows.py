"""Test the check of the first rows of a test file: it refuses only what the whole file would be."""

import numpy as np
import pytest

from dcsvm.data.columns import Column, TableEncoding
from dcsvm.data.dataset import Dataset
from dcsvm.data.files import HEAD, DataError
from dcsvm.data.reading import Encoding
from dcsvm.data.tables import read_table

LINES = 30_000  # well beyond HEAD
COLUMNS = TableEncoding(
    (Column("name", "category", categories=("plain",)), Column("size", "number"))
)


def check(path, table=None, *, lenient=False):
    Dataset.check_first_rows(str(path), Encoding(table), lenient=lenient)


@pytest.fixture
def write(tmp_path):
    def write(name, text):
        (tmp_path / name).write_text(text)
        return tmp_path / name

    return write


@pytest.mark.parametrize("text", ["1 1:1e39\n", "# a comment\n" * (HEAD // 10) + "1 1:2\n"])
def test_lines_are_refused_only_if_they_are_wrong(write, text):
    check(write("a", text), lenient=True)
    with pytest.raises(DataError, match="not a decimal number"):
        check(write("b", f"{text}1 1:x\n" if len(text) < HEAD else f"1 1:x\n{text}"), lenient=True)


@pytest.mark.parametrize("first", ['5" tube,1', '"a\n""quote""",2', "plain,1e39"], ids=str)
@pytest.mark.parametrize("size", [3, LINES])
def test_a_csv_is_refused_only_if_it_is_wrong(write, first, size):
    pytest.importorskip("pyarrow")
    lines = ["name,size", first, *["plain,2"] * size, ""]
    path = write("a.csv", "\n".join(lines))
    assert read_table(str(path), "csv").n_rows == size + 1
    assert read_table(str(path), "csv", is_head=True).n_rows <= size + 1
    check(path, COLUMNS)
    lines[2] = "plain,much"
    with pytest.raises(DataError, match="'much' is not a number"):
        check(write("b.csv", "\n".join(lines)), COLUMNS)


def test_a_record_that_the_head_cuts_is_not_looked_at(write):
    pytest.importorskip("pyarrow")
    record = '"two\nlines",1\n'
    check(write("a.csv", "name,size\n" + record * (2 * HEAD // len(record))), COLUMNS)


@pytest.mark.parametrize("kind", ["parquet", "arrow", "feather"])
def test_of_other_formats_a_batch_is_read(tmp_path, kind):
    pyarrow = pytest.importorskip("pyarrow")
    from pyarrow import feather, parquet

    table = pyarrow.table({"name": ["plain"] * 5000, "size": np.arange(5000.0)})
    path = tmp_path / f"a.{kind}"
    if kind == "parquet":
        parquet.write_table(table, path)
    elif kind == "arrow":
        with pyarrow.ipc.new_file(path, table.schema) as file:
            file.write_table(table, max_chunksize=100)
    else:
        feather.write_feather(table, path, version=1)
    wanted = {"parquet": 1000, "arrow": 100, "feather": 5000}[kind]
    assert read_table(str(path), "parquet" if kind == "parquet" else "arrow",
                      is_head=True).n_rows == wanted  # fmt: skip
    check(path, COLUMNS)
