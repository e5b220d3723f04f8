"""Test how the columns of tables and data frames become features."""

import json

import numpy as np
import pytest

from dcsvm.data import frames
from dcsvm.data.columns import (
    Column,
    Frame,
    TableEncoding,
    Texts,
    joined,
    label_column,
    labels_of,
)
from dcsvm.data.files import DataError
from dcsvm.data.notations import Notation
from dcsvm.data.reading import TableRows
from dcsvm.data.scaling import Extremes, quantile_scaling
from dcsvm.model.writer import table_lines, table_of


def frame_of(**columns):
    """Make a frame of float64, bool and text columns; None is missing text."""
    plain = {
        name: Texts.of(one) if isinstance(one, list) else np.asarray(one)
        for name, one in columns.items()
    }
    n_rows = len(next(iter(columns.values())))
    return Frame("t.csv", tuple(plain), n_rows, plain.__getitem__)


def dense(encoding, frame):
    rows = np.zeros((frame.n_rows, encoding.n_features))
    first = 0
    for indptr, indices, values in TableRows(encoding, frame):
        for k in range(len(indptr) - 1):
            own = slice(indptr[k], indptr[k + 1])
            rows[first + k, indices[own]] = values[own]
        first += len(indptr) - 1
    return rows


def test_numbers_booleans_and_categories_become_features():
    frame = frame_of(
        age=np.array([1.0, np.nan, 3.0, 8.0]),
        old=np.array([True, False, True, False]),
        job=["clerk", None, "smith", "clerk"],
    )
    encoding = TableEncoding.of(frame)
    assert encoding.feature_names == [
        "age", "age is missing", "old", "job=clerk", "job=smith", "job=missing",
    ]  # fmt: skip
    assert encoding.one_hot.tolist() == [False, False, False, True, True, True]
    expected = [
        [1, 0, 1, 0.5, 0, 0],
        [3, 1, 0, 0, 0, 0.5],
        [3, 0, 1, 0, 0.5, 0],
        [8, 0, 0, 0.5, 0, 0],
    ]
    assert np.array_equal(dense(encoding, frame), expected)


def test_columns_are_matched_by_name_and_unknown_categories_are_zeros():
    encoding = TableEncoding.of(frame_of(a=np.array([1.0, 2.0]), b=["x", "y"]))
    other = frame_of(extra=np.zeros(3), b=["y", "z", None], a=np.array([5.0, np.nan, 0.0]))
    rows = TableRows(encoding, other)
    assert np.array_equal(dense(encoding, other), [[5, 0, 0.5], [1.5, 0, 0], [0, 0, 0]])
    assert rows.warnings() == [
        "column b: 2 rows with categories that the training set lacks: missing, 'z'"
    ]
    with pytest.raises(DataError, match="t.csv: no column b, which the model needs"):
        TableRows(encoding, frame_of(a=np.zeros(1)))


def test_columns_without_names_are_matched_by_position():
    encoding = TableEncoding((Column("1", "number"), Column("3", "number")), "2", has_names=False)
    named = Frame("t.csv", ("1", "2"), 1, lambda name: np.array([float(name)]), None, False)
    assert np.array_equal(dense(encoding, named), [[1, 2]])
    with pytest.raises(DataError, match="3 columns, the model needs 2"):
        TableRows(encoding, Frame("t.csv", ("4", "5", "6"), 1, lambda _: np.zeros(1), None, False))


def test_one_hot_features_keep_their_values_under_each_scaling():
    rng = np.random.default_rng(0)
    frame = frame_of(a=rng.normal(size=50), b=list("xyz") * 16 + ["x", "y"])
    encoding = TableEncoding.of(frame)
    rows = TableRows(encoding, frame)
    minmax = Extremes.of(rows).scaling("t", one_hot=encoding.one_hot)
    scaled = minmax.scaled_rows(rows, "t").features
    assert set(np.unique(scaled[:, 1:])) == {0, 1}
    assert np.ptp(scaled[:, 0]) == 2
    quantile = quantile_scaling(rows, "t", one_hot=encoding.one_hot)
    assert set(np.unique(quantile.scaled_rows(rows, "t").features[:, 1:])) == {0, 0.5}


@pytest.mark.parametrize(
    "columns, message",
    [
        ({"a": np.array([1.0, np.inf])}, "t.csv: row 1, column a: inf is not a finite number"),
        ({"a": ["1"] * 30 + ["12a"]}, "column a: '12a' is not a number; leave the cell empty"),
    ],
)
def test_wrong_values_are_named(columns, message):
    with pytest.raises(DataError, match=message):
        TableEncoding.of(frame_of(**columns))


def test_text_in_a_column_of_numbers_is_named():
    encoding = TableEncoding.of(frame_of(a=np.zeros(2)))
    with pytest.raises(DataError, match="row 1, column a: 'x' is not a number"):
        TableRows(encoding, frame_of(a=["1", "x"]))


def test_a_column_without_values_is_left_out():
    encoding = TableEncoding.of(frame_of(a=np.full(3, np.nan), b=np.ones(3)))
    assert [one.name for one in encoding.columns] == ["b"]


WORDS = ["?", "NA", "N/A", "n/a", "nan", "NaN", "NAN", "null", "NULL", "None", "", " ?", "NA "]


@pytest.mark.parametrize("word", WORDS)
def test_a_word_for_a_missing_value_is_missing_in_a_data_frame(word):
    pandas = pytest.importorskip("pandas")
    table = pandas.DataFrame({"a": ["1.5", word, "2"], "b": ["x", word, " y "]})
    table["c"] = [2, word, 3.5]
    table["d"], table["e"] = table["b"].astype("category"), ["True", word, "False"]
    table["f"], table["g"] = table["b"].astype("string"), [True, None, False]
    assert TableEncoding.of(frames.frame_of(table)).columns == (
        Column("a", "number", 1.75, has_indicator=True),
        Column("b", "category", categories=("x", "y", "")),
        Column("c", "number", 2.75, has_indicator=True),
        Column("d", "category", categories=("x", "y", "")),
        Column("e", "category", categories=("false", "true", "")),
        Column("f", "category", categories=("x", "y", "")),
        Column("g", "category", categories=("false", "true", "")),
    )


def test_text_of_numbers_without_a_missing_value_is_a_category():
    table = pytest.importorskip("pandas").DataFrame({"a": ["01", "2"], "b": ["01", None]})
    kinds = [one.kind for one in TableEncoding.of(frames.frame_of(table)).columns]
    assert kinds == ["category", "category"]


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_values_that_are_missing_only_in_rows_to_predict(library):
    made = pytest.importorskip(library).DataFrame
    encoding = TableEncoding.of(
        frame_of(a=np.array([1.0, 2.0]), b=["x", "y"], c=np.array([True, True]))
    )
    table = made({"a": ["?", "7"], "b": ["?", "y"], "c": ["NA", "true"]})
    assert np.array_equal(dense(encoding, frames.frame_of(table)), [[1.5, 0, 0, 1], [7, 0, 0.5, 1]])
    assert TableRows(encoding, frames.frame_of(table)).warnings() == [
        "column b: 1 row with categories that the training set lacks: missing"
    ]


def test_text_of_booleans_belongs_to_a_column_of_booleans():
    encoding = TableEncoding.of(frame_of(truth=np.array([True, False]), number=np.array([1.0, 2])))
    zeros = np.zeros(3)
    for words in (["true", "false", None], ["True", "FALSE", None]):
        rows = dense(encoding, frame_of(truth=words, number=zeros))
        assert rows[:2, 0].tolist() == [1, 0]
        with pytest.raises(DataError, match="column number: '[Tt]rue' is not a number"):
            dense(encoding, frame_of(truth=zeros, number=words))


def test_a_model_with_texts_that_are_missing_words_or_have_blanks_keeps_its_categories():
    encoding = TableEncoding((Column("a", "category", categories=(" x", "?", "y")),))
    table = pytest.importorskip("pandas").DataFrame({"a": [" x", "?", "y"]})
    assert np.array_equal(dense(encoding, frames.frame_of(table)), np.eye(3) / 2)


def test_text_in_other_notations_is_numbers_or_dates_with_a_sentence():
    frame = frame_of(
        price=["$1,200.50", "$7", "$9", None],
        size=["1.5", "unknown", "2.5", "4"],
        when=["31/01/2020", "01/02/2020", "-", "02/02/2020"],
        at=["10:30", "12:00", "10:30", "10:30"],
    )
    encoding = TableEncoding.of(frame)
    assert encoding.feature_names == [
        "price", "price is missing", "size", "size is missing", "when (days)", "when (month)",
        "when (weekday)", "when is missing", "at (hours)",
    ]  # fmt: skip
    assert encoding.notes == [
        "column price: 3 numbers such as '$1,200.50'", "column at: 4 times such as '10:30'",
    ]  # fmt: skip
    assert encoding.warnings == [
        "column size: 3 numbers, 1 of 'unknown' as missing",
        "column when: 3 dates, 1 of '-' as missing",
    ]
    assert dense(encoding, frame).tolist() == [
        [1200.5, 0, 1.5, 0, 0, 1, 4, 0, 10.5],
        [7, 0, 2.5, 1, 1, 2, 5, 0, 12],
        [9, 0, 2.5, 0, 1, 2, 5, 1, 10.5],
        [9, 1, 4, 0, 2, 2, 6, 0, 10.5],
    ]
    columns, label = (line.split() for line in table_lines(encoding))
    again = table_of(columns[1:], label[1:])
    columns = {
        "price": ["8", "($2)"],
        "size": ["unknown", None],
        "when": ["2020-01-31", "-"],
        "at": ["9:30", "9:30"],
    }
    other = frame_of(**columns)
    assert dense(again, other)[:, [0, 2, 3, 4, 7]].tolist() == [
        [8, 2.5, 1, 0, 0],
        [-2, 2.5, 1, 1, 1],
    ]
    for column, message in [
        ({"size": ["?!", "1"]}, "column size: '\\?!' is not a number; leave the cell empty"),
        ({"when": ["13/13/2020", "-"]}, "column when: '13/13/2020' is not a date; leave"),
        ({"at": np.ones(2)}, "row 0, column at: 1.0 is not a time"),
    ]:
        with pytest.raises(DataError, match=message):
            dense(again, frame_of(**columns | column))


def test_many_words_among_numbers_are_an_error_that_says_how_to_keep_them():
    texts = [*map(str, range(96)), "a", "b", "c", "d"]
    with pytest.raises(DataError, match="'a' is not a number; .* or --category n .* keeps it"):
        TableEncoding.of(frame_of(n=texts))
    assert TableEncoding.of(frame_of(n=texts), categories=["n"]).n_features == 100
    with pytest.raises(DataError, match="t.csv: no column m of categories"):
        TableEncoding.of(frame_of(n=texts), categories=["m"])


def test_text_that_names_rows_is_left_out_unless_it_is_a_category():
    words = [f"w{k}" for k in range(40)]
    encoding = TableEncoding.of(frame_of(a=words, b=words[:20] * 2, c=[*words[:19], *["x"] * 21]))
    assert [one.name for one in encoding.columns] == ["b", "c"]
    assert encoding.warnings == [
        "column a has 40 different texts in 40 rows: dropped; --category a (in a data frame, dtype "
        "category) keeps it"
    ]
    assert encoding.n_features == 40 and encoding.n_columns == 2


def test_numbers_that_are_declared_categories_are_text():
    frame = frame_of(a=np.array([1.0, 2.5, np.nan]), b=np.array([True, False, True]))
    encoding = TableEncoding.of(frame, categories=["a", "b"])
    assert encoding.feature_names == ["a=1", "a=2.5", "a=missing", "b=false", "b=true"]


def test_dates_that_could_be_of_two_orders_are_text():
    encoding = TableEncoding.of(frame_of(when=["01/02/2020", "03/04/2020"]))
    assert encoding.feature_names == ["when=01/02/2020", "when=03/04/2020"]
    assert encoding.warnings == [
        "column when: dates whose days and months could change places are text: write 2020-12-31"
    ]
    days = [f"{k % 12 + 1:02d}/{k % 11 + 1:02d}/2020" for k in range(132)]
    assert "change places" in TableEncoding.of(frame_of(when=days)).warnings[0]


def test_parts_of_a_column_are_joined_whatever_types_they_have():
    gap, none = np.array([np.nan]), Texts.of([None])
    day = np.array(["2020-01-01"], "M8[D]")
    assert joined([np.array([True]), np.array([False])]).dtype.kind == "b"
    assert joined([np.array([1.5]), none, gap, np.array([True])])[[0, 3]].tolist() == [1.5, 1]
    assert np.isnat(joined([day, gap, none])).tolist() == [False, True, True]
    assert joined([gap, none]).tolist() != []
    for parts, values in [
        ([np.array([True]), none], ("false", "true")),
        ([np.array([2.0]), Texts.of(["x"]), day], ("2", "x", "2020-01-01")),
    ]:
        assert joined(parts).values == values
    texts = joined([Texts.of(["b", "?"]).read(), Texts.of(["a", "b"])])
    assert texts.values == ("b", "a") and texts.codes.tolist() == [0, -1, 1, 0] and texts.has_words


def test_100_000_categories_stay_sparse():
    frame = frame_of(a=[str(k) for k in range(100_000)])
    encoding = TableEncoding.of(frame, categories=["a"])
    assert encoding.n_features == 100_000
    n_values = sum(len(values) for _, _, values in TableRows(encoding, frame))
    assert n_values == 100_000


@pytest.mark.parametrize(
    "names, given, found",
    [
        (["a", "class", "Label"], None, ("Label", "the last column")),
        (["a", "b"], None, ("b", "the last column")),
        (["a", "b"], "a", ("a", "given")),
        (["a", "b"], "1", ("a", "column 1")),
        (["1", "0"], "1", ("1", "given")),
    ],
)
def test_the_label_column_is_found(names, given, found):
    assert label_column(names, given, "t.csv") == found


def test_another_column_with_the_name_of_a_label_is_a_question():
    with pytest.raises(DataError, match="t.csv: the label may be column Label or the last column, "
                       "b: give --label Label or --label b"):  # fmt: skip
        label_column(["a", "Y", "Label", "b"], None, "t.csv")


def test_labels():
    assert labels_of(frame_of(y=np.array([1.0, 2.5])), "y").tolist() == [1.0, 2.5]
    assert labels_of(frame_of(y=np.array([True, False])), "y").tolist() == ["true", "false"]
    assert labels_of(frame_of(y=["b", "a"]), "y").tolist() == ["b", "a"]
    for column in (["a", None], np.array([1.0, np.nan])):
        with pytest.raises(DataError, match="row 1, column y: the label is missing"):
            labels_of(frame_of(y=column), "y")


def test_a_model_file_has_the_encoding():
    odd = 'a b\\ \u2028"é'
    notation = Notation(",", ".", odd, words=("-", odd))
    encoding = TableEncoding(
        (Column(odd, "number", 0.1, True), Column("b", "boolean", 1.0),
         Column("c", "category", categories=(odd, "")), Column("d", "number", notation=notation),
         Column("e", "date", 1.5, True, notation=Notation(order="mdy"), first=-7.25,
                parts=("days", "hour")),
         Column("f", "time", 0.5)),
        odd,
    )  # fmt: skip
    columns, label = (line.split() for line in table_lines(encoding))
    assert table_of(columns[1:], label[1:]) == encoding


def test_plain_columns_are_written_as_ever():
    encoding = TableEncoding((Column("a", "number", 0.5), Column("b", "boolean")))
    assert table_lines(encoding)[0] == (
        'table_columns {"name":"a","kind":"number","fill":0.5,"missing":false} '
        '{"name":"b","kind":"boolean"}'
    )


LABEL = ['{"name":null,"has_names":true}']


@pytest.mark.parametrize(
    "columns, label",
    [
        (["{"], LABEL),
        (["1"], LABEL),
        (['{"name":"a","kind":"x"}'], LABEL),
        (['{"name":"a","kind":"number","fill":1e999}'], LABEL),
        (['{"name":"a","kind":"category","categories":["b","b"]}'], LABEL),
        (['{"name":"a","kind":"boolean"}'] * 2, LABEL),
        ([], ['{"name":1,"has_names":true}']),
        ([], []),
    ],
)  # fmt: skip
def test_a_damaged_encoding_is_refused(columns, label):
    with pytest.raises(ValueError):
        table_of(columns, label)


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("parts", []), ("parts", ["second"]), ("parts", ["days", "days"]), ("parts", 7),
        ("first", 1e9), ("first", True), ("fill", 1e9), ("order", "xyz"), ("order", []),
        ("words", "x"), ("words", ["a", "b", "c", "d"]), ("decimal", ";"), ("decimal", 1),
        ("thousands", "x"), ("unit", None),
    ],
)  # fmt: skip
def test_a_damaged_column_of_dates_is_refused(key, value):
    column = {"name": "a", "kind": "date", "parts": ["days"]}
    assert table_of([json.dumps(column)], LABEL).feature_names == ["a (days)"]
    with pytest.raises(ValueError, match=f"column 'a' has a wrong .*{key}"):
        table_of([json.dumps(column | {key: value})], LABEL)


def test_data_frames_have_numbers_booleans_and_text():
    pandas = pytest.importorskip("pandas")
    table = pandas.DataFrame(
        {
            "a": [1, 2, 3],
            "b": [True, False, None],
            "c": pandas.Categorical(["x", None, "y"]),
            "d": pandas.array([1, None, 3], dtype="Int64"),
        }
    )
    frame = frames.frame_of(table)
    assert frame.column("a").tolist() == [1.0, 2.0, 3.0]
    assert frame.column("c").codes.tolist() == [0, -1, 1]
    assert np.isnan(frame.column("d")[1])
    with pytest.raises(DataError, match="two columns have the name a"):
        frames.frame_of(pandas.DataFrame(np.zeros((1, 2)), columns=["a", "a"]))


def test_a_data_frame_gives_the_same_features_whatever_types_hold_its_values():
    pandas, pyarrow = pytest.importorskip("pandas"), pytest.importorskip("pyarrow")
    table = pandas.DataFrame(
        {
            "integer": [1, 2, None, 4],
            "number": [1.5, np.nan, 2.5, 0],
            "truth": [True, None, False, True],
            "text": ["x", None, "y", "x"],
            "category": pandas.Categorical(["u", "v", None, "u"]),
        }
    )
    others = [
        table.convert_dtypes(),
        table.convert_dtypes(dtype_backend="pyarrow"),
        pyarrow.Table.from_pandas(table).to_pandas(types_mapper=pandas.ArrowDtype),
    ]
    encoding = TableEncoding.of(frames.frame_of(table))
    for other in others:
        found = TableEncoding.of(frames.frame_of(other))
        assert found.feature_names == encoding.feature_names
        assert np.array_equal(
            dense(found, frames.frame_of(other)), dense(encoding, frames.frame_of(table))
        )
