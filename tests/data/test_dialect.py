"""Test how the dialect of a text table is found: delimiter, names, first row, decimal mark."""

import csv
import io

import numpy as np
import pytest

from dcsvm.data.columns import Column, TableEncoding
from dcsvm.data.dataset import Dataset
from dcsvm.data.dialect import find_dialect, table_hint
from dcsvm.data.files import DataError

ROWS = [(f"{k * 0.37 - 2:.2f}", str(k % 5), "yes" if k % 3 else "no") for k in range(40)]
NAMES = ("a", "b", "y")


def written(rows, delimiter=",", names=NAMES):
    text = io.StringIO()
    lines = rows if names is None else [names, *rows]
    csv.writer(text, delimiter=delimiter, lineterminator="\n").writerows(lines)
    return text.getvalue()


def dialect_of(text, **keywords):
    return find_dialect(text.splitlines(keepends=True), **keywords)


@pytest.mark.parametrize("delimiter", [",", ";", "\t", "|", " "])
@pytest.mark.parametrize("names", [NAMES, None])
def test_delimiter_and_names_are_found(delimiter, names):
    dialect = dialect_of(written(ROWS, delimiter, names))
    assert dialect.delimiter == delimiter
    assert dialect.has_names == (names is not None)
    assert dialect.names == (names or ("1", "2", "3"))
    assert dialect.n_lines == (names is not None)


@pytest.mark.parametrize(
    "above, n_lines",
    [
        ("\n\n", 2),
        ("sep=,\n", 1),
        ("# a comment, with commas; and more\n#\n", 2),
        ("Results of the laboratory\n", 1),
        ("Results,,\n", 1),
        ("Results,,\n,,\n", 2),
        ("Results\n\nof 2023\n\n", 4),
    ],
)
def test_lines_above_the_names(above, n_lines):
    dialect = dialect_of(above + written(ROWS))
    assert (dialect.names, dialect.line_of_names) == (NAMES, n_lines + 1)
    assert dialect.n_lines == n_lines + 1


def test_a_separator_line_gives_the_delimiter():
    assert dialect_of("sep=|\n" + written(ROWS, "|")).delimiter == "|"
    assert dialect_of('"sep=;"\n' + written(ROWS, ";")).delimiter == ";"


def test_a_comment_may_have_the_names():
    dialect = dialect_of("# made by hand\n#a,b,y\n" + written(ROWS, names=None))
    assert (dialect.names, dialect.has_names, dialect.n_lines) == (NAMES, True, 2)
    dialect = dialect_of("# made by hand\n" + written(ROWS, names=None))
    assert (dialect.names, dialect.n_lines) == (("1", "2", "3"), 1)


@pytest.mark.parametrize(
    "first, has_names",
    [
        (("0", "1", "2"), True),
        (("1", "2", "3"), True),
        (("", "0", "1"), True),
        (("2019", "2020", "2021"), True),
        (("0.5", "1", "yes"), False),
        (("?", "1", "no"), False),
        (("7", "8", "no"), False),
        (("price", "2", "result"), True),
        (("1", "2", "yes"), False),
        (("3", "4", "5"), False),
    ],
)
def test_numbers_in_the_first_line(first, has_names):
    assert dialect_of(written([first, *ROWS], names=None)).has_names == has_names


def test_a_first_line_of_text_recurs_if_it_is_a_row():
    mushrooms = [("x", "s", "n"), ("b", "s", "w"), ("x", "y", "w")] * 5
    assert not dialect_of(written(mushrooms, names=None)).has_names
    assert dialect_of(written(mushrooms, names=("cap", "surface", "colour"))).has_names
    assert not dialect_of(written([("p", "p", "q"), *mushrooms], names=None)).has_names


def test_names_are_given_or_those_of_the_model():
    text = written(ROWS)
    assert dialect_of(text, header=False).n_lines == 0
    assert dialect_of(written(ROWS, names=None), header=True).names == ROWS[0]
    known = TableEncoding((Column("k", "category", categories=("u", "v")),), "y")
    assert dialect_of("k\nu\n", known=known).has_names
    numbers = TableEncoding((Column("1", "number"), Column("2", "category")), "3", False)
    assert not dialect_of("4.5,yes\n", known=numbers).has_names


def test_quoted_newlines_and_row_names():
    dialect = dialect_of('"price\n(USD)";b;y\n' + written(ROWS, ";", None))
    assert dialect.names == ("price\n(USD)", "b", "y")
    assert dialect.n_lines == 2
    dialect = dialect_of('"a" "y"\n"r 1" 1.5 u\n"r 2" 2.5 v\n')
    assert dialect.names == ("", "a", "y")


@pytest.mark.parametrize(
    "numbers, delimiter, decimal",
    [
        (["1,5", "2,25"], ";", ","),
        (["1,500", "2,250"], ";", ","),
        (["1,500", "2,250"], "\t", "."),
        (["1,5", "2,25"], "\t", ","),
        (["1.5", "2,25"], ";", "."),
        (["1", "2"], ";", "."),
    ],
)
def test_the_decimal_mark(numbers, delimiter, decimal):
    rows = [(number, "yes") for number in numbers] * 3
    assert dialect_of(written(rows, delimiter, ("a", "y"))).decimal == decimal


def test_a_cut_record_is_no_evidence():
    text = written(ROWS)[:-3]
    assert dialect_of(text, is_cut=True).names == NAMES
    assert find_dialect([]) is None
    assert find_dialect(["\n", "# nothing\n"]) is None


@pytest.fixture
def read(tmp_path):
    def read_text(text, name="t.csv", **keywords):
        path = tmp_path / name
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        return Dataset.read(path, **keywords)

    return read_text


pyarrow = pytest.importorskip("pyarrow")


@pytest.mark.parametrize("delimiter", [",", ";", "\t", "|", " "])
@pytest.mark.parametrize("names", [NAMES, None])
def test_each_dialect_gives_the_same_rows(read, delimiter, names):
    expected = read(written(ROWS))
    data = read(written(ROWS, delimiter, names), "other.csv")
    np.testing.assert_array_equal(data.rows.features, expected.rows.features)
    assert data.labels.tolist() == expected.labels.tolist()
    same = read(written(ROWS, delimiter, names), "other.csv", like=data)
    np.testing.assert_array_equal(same.rows.features, expected.rows.features)


def test_decimal_commas_are_numbers(read):
    rows = [(a.replace(".", ","), b, y) for a, b, y in ROWS]
    expected = read(written(ROWS))
    data = read(written(rows, ";"), "comma.csv")
    np.testing.assert_array_equal(data.rows.features, expected.rows.features)


def test_runs_of_blanks_are_one_delimiter(read):
    text = "  a   b  y\n" + "".join(f" {a}    {b}  {y} \n" for a, b, y in ROWS)
    np.testing.assert_array_equal(
        read(text).rows.features, read(written(ROWS), "t2.csv").rows.features
    )


def test_an_index_without_a_name_is_left_out(read):
    rows = [(k, *row) for k, row in enumerate(ROWS)]
    with pytest.warns(UserWarning, match="column 1 has no name and numbers the rows: left out"):
        data = read(written(rows, names=("", "0", "1", "2")))
    assert data.table.feature_names == ["0", "1"]
    assert "line 1 (, 0, 1, 2) contains the column names" in data.description


def test_a_table_without_a_feature_is_refused(read):
    with pytest.raises(DataError, match="no column is left for features: columns are separated"):
        read("y\n1\n0\n1\n")
    with pytest.raises(DataError, match="t.csv: no column is left for features$"):
        read("a,y\n1,1\n2,0\n", drop=["a"])


def test_types_are_those_of_the_model(read):
    """Codes, truths and times that look like other types in the rows to predict stay text."""
    train = "a,b,c,y\n" + "01,True,10:30,u\n02,False,11:00,v\nA,maybe,noon,u\n" * 4
    data = read(train)
    rows = read("a,b,c,y\n01,True,10:30,u\n02,False,11:00,v\n", "p.csv", like=data)
    assert rows.unknown_categories == []
    features = data.rows.features[:2, : rows.rows.n_features]
    np.testing.assert_array_equal(rows.rows.features, features)
    assert not data.rows.features[:2, rows.rows.n_features :].any()


@pytest.mark.parametrize("labels", [("True", "False"), ("TRUE", "FALSE"), ("01", "A")])
def test_labels_are_spelled_as_in_the_file(read, labels):
    text = "a,label\n" + "".join(f"{k},{labels[k % 2]}\n" for k in range(6))
    assert set(read(text).labels) == set(labels)


def test_rows_to_predict_may_lack_labels(read):
    data = read(written(ROWS))
    empty = [(a, b, "") for a, b, _ in ROWS]
    assert not read(written(empty), "p.csv", like=data).has_labels
    half = [(a, b, y if k % 2 else "?") for k, (a, b, y) in enumerate(ROWS)]
    rows = read(written(half), "p.csv", like=data)
    assert rows.has_labels
    assert rows.labels.tolist() == [y if k % 2 else "" for k, (*_, y) in enumerate(ROWS)]
    with pytest.raises(DataError, match="t.csv:2: column y: the label is missing"):
        read(written(half))


def test_columns_are_dropped_by_name_number_or_list(read):
    text = '"distance, km",b,c,y\n' + "1,2,3,u\n4,5,6,v\n"
    for drop, left in (
        (["distance, km"], ["b", "c"]),
        (['"distance, km", c'], ["b"]),
        (["1"], ["b", "c"]),
        (["b, c"], ["distance, km"]),
        (["b", "3"], ["distance, km"]),
    ):
        assert read(text, drop=drop).table.feature_names == left
    with pytest.raises(DataError, match="no column d to drop; the columns are distance, km, b"):
        read(text, drop=["d"])


def test_a_pandas_index_in_parquet_is_no_column(tmp_path):
    from pyarrow import feather

    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"a": [3.0, 1, 2], "b": [1, 2, 3], "income": ["u", "v", "u"]})
    for changed in (frame.sort_values("a"), frame.set_index(pandas.Index(list("pqr"), name="p"))):
        for name in ("t.parquet", "t.feather"):
            path = tmp_path / name
            if name == "t.parquet":
                changed.to_parquet(path)
            else:
                feather.write_feather(pyarrow.Table.from_pandas(changed), str(path))
            data = Dataset.read(path)
            assert (data.table.label, data.table.feature_names) == ("income", ["a", "b"])
        assert Dataset(pyarrow.Table.from_pandas(changed[["a", "b"]])).n_features == 2


@pytest.mark.parametrize(
    "text, name",
    [
        (b"2020-01-01 12:30,5\n2020-01-02 12:45,6\n", "commas"),
        (b'"a,b";c\n1;2\n', "semicolons"),
        (b"# about\na,b\n\n1,2\n", "commas"),
        (b"1 1:0,5 2:0,7\n1 1:0,5 2:0,7\n", ""),
        (b"1 1:2 2:x\n1 1:2 2:x\n", ""),
        (b"1\t1:2\t2:x\n1\t1:2\t2:x\n", ""),
        (b"a,b\n", ""),
        (b"a,b\n1\n", ""),
        (b"1,2\n1,2\n1,", "commas"),
        (b"yes\nno\n", ""),
        (b"", ""),
    ],
)
def test_the_first_lines_tell_a_table(text, name):
    assert table_hint(text) == (
        name and f": the file looks like a table with {name}: give --format csv"
    )


def test_targets_in_another_notation_are_numbers(read):
    text = "a,price\n" + "".join(f'{k},"${1000 + k * k / 7:,.2f}"\n' for k in range(40))
    data = read(text)
    np.testing.assert_allclose(data.labels, [round(1000 + k * k / 7, 2) for k in range(40)])
    rows = read('a,price\n1,"$1,000.14"\n2,\n', "p.csv", like=data)
    np.testing.assert_allclose(rows.labels, [1000.14, np.nan])
    assert read('a,size\n1,"$1"\n2,"$2"\n', "c.csv").labels.tolist() == ["$1", "$2"]


def test_rows_to_predict_are_read_in_the_notation_of_the_model(read):
    text = "price;b;y\n" + "".join(f"{k}.{100 + k}.000;{k % 3};u{k % 2}\n" for k in range(1, 40))
    data = read(text)
    rows = read("price;b;y\n350.000;1;u1\n1.101.000;1;u1\n", "p.csv", like=data)
    assert rows.rows.features[:, 0].tolist() == [350_000, 1_101_000]


def test_a_model_without_names_reads_the_first_line_as_a_row(read):
    mushrooms = [("x", "s", "e"), ("b", "n", "p"), ("x", "n", "e"), ("b", "s", "p")] * 5
    data = read(written(mushrooms, names=None))
    for text in ("x,s\nb,n\n", "x,s,e\nb,n,p\n", "x,s\n"):
        assert read(text, "p.csv", like=data).n_rows == text.count("\n")
    named = read(written(mushrooms, names=("cap", "surface", "y")))
    rows = read("x,s,e\nb,n,p\n", "p.csv", like=named)
    assert (rows.n_rows, rows.labels.tolist()) == (2, ["e", "p"])


@pytest.mark.parametrize(
    "names",
    [("1stFlrSF", "2ndFlrSF", "y"), ("400", "410", "octane"), ("2020", "2019", "2018"),
     ("2000", "2005", "2010"), ("2019 sales", "2020 sales", "50+ years")],
)  # fmt: skip
def test_names_with_digits(names):
    rows = [(a, b, f"{k}.5") for k, (a, b, _) in enumerate(ROWS)]
    assert dialect_of(written(rows, names=names)).names == names


def test_codes_and_words_are_text_and_words_among_targets_are_errors(read):
    codes = ["01", "02", "10"] * 20 + ["A"]
    text = "k,y\n" + "".join(f"{code},{k % 2}\n" for k, code in enumerate(codes))
    assert read(text).table.feature_names == ["k=01", "k=02", "k=10", "k=A"]
    targets = [str(k * 0.5) for k in range(60)]
    targets[7] = "unknown"
    with pytest.raises(DataError, match="t.csv:9: column y: 'unknown' is not a number, as other"):
        read("k,y\n" + "".join(f"{k},{one}\n" for k, one in enumerate(targets)))


def test_labels_of_other_spellings_are_those_of_the_model(read):
    data = read("a,y\n" + "1,True\n2,False\n" * 3)
    rows = read("a,y\n1,TRUE\n2,false\n", "p.csv", like=data)
    assert rows.labels.tolist() == ["True", "False"]
    assert set(read("a,y\n" + "1,01\n2,02\n" * 3, "z.csv").labels) == {"01", "02"}


def test_padded_lines_and_blank_lines(read):
    text = "".join(line + ",\n" for line in written(ROWS).splitlines())
    with pytest.warns(UserWarning, match="column 4 has no values"):
        data = read(text + "  \n")
    assert (data.table.label, data.n_rows) == ("y", len(ROWS))


def test_a_frame_without_a_feature_is_refused_by_all_doors():
    import dcsvm
    from dcsvm.sklearn import SVC

    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"id": [f"u{k}" for k in range(60)]})
    for train in (dcsvm.train, SVC().fit):
        with (
            pytest.warns(UserWarning, match="column id has 60 different texts"),
            pytest.raises(ValueError, match="no column is left for features"),
        ):
            train(frame, [0, 1] * 30)


@pytest.mark.parametrize(
    ("drop", "features"), [("1", [2, 3, 4]), ("5", [0, 2, 3]), ("1,5", [2, 3])]
)
def test_rows_without_names_are_known_where_the_training_set_has_other_columns(
    tmp_path, drop, features
):
    rng = np.random.default_rng(0)
    rows = [
        [rng.choice(["u", "v", "w"]), "yes" if a > 0.5 else "no", f"{a:.3f}", f"{b:.3f}", f"{k}x"]
        for k, (a, b) in enumerate(rng.random((200, 2)))
    ]
    for name, columns in (("all.csv", range(5)), ("few.csv", features)):
        lines = (",".join(row[k] for k in columns) for row in rows)
        (tmp_path / name).write_text("\n".join([*lines, ""]))
    data = Dataset.read(tmp_path / "all.csv", label="2", drop=[drop])
    for name in ("all.csv", "few.csv"):
        again = Dataset.read(tmp_path / name, like=data)
        np.testing.assert_array_equal(again.rows.features, data.rows.features)
