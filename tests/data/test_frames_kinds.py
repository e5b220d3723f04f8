"""Test what is a data frame, and which frames are encoded."""

from datetime import date, datetime, time, timedelta
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest
from scipy import sparse

from dcsvm.data.columns import joined
from dcsvm.data.dataset import Dataset
from dcsvm.data.files import DataError
from dcsvm.data.frames import column_at, has_only_numbers, known_frame, matrix_of
from dcsvm.data.reading import MatrixRows

pandas = pytest.importorskip("pandas")


def test_streams_of_arrow_become_tables_and_other_frames_remain():
    pyarrow = pytest.importorskip("pyarrow")
    frame = pandas.DataFrame({"a": [1.0, 2.0]})
    table = pyarrow.Table.from_pandas(frame)

    class Stream:
        def __arrow_c_stream__(self, requested_schema=None):
            return table.__arrow_c_stream__(requested_schema)

    assert known_frame(frame) is frame
    assert known_frame(Stream()).equals(table) and known_frame(table).equals(table)
    for other in (np.eye(2), sparse.eye(2), [[1.0]], "text"):
        assert known_frame(other) is None


@pytest.mark.parametrize("library", ["pandas", "polars", "arrow"])
@pytest.mark.parametrize(
    ("column", "is_plain"),
    [([1.5, 2.0], True), ([1, 2], True), ([True, False], True), ([1.0, None], False),
     (["a", "b"], False), (["a", None], False), ([True, None], False)],
)  # fmt: skip
def test_text_and_gaps_are_encoded(library, column, is_plain):
    columns = {"x": [0.0, 1.0], "column": column}
    if library == "polars":
        frame = pytest.importorskip("polars").DataFrame(columns)
    elif library == "arrow":
        frame = pytest.importorskip("pyarrow").table(columns)
    else:
        frame = pandas.DataFrame(columns)
    assert has_only_numbers(frame) is is_plain
    if is_plain:
        assert matrix_of(frame).tolist() == [[0, column[0]], [1, column[1]]]


def test_numbers_may_have_equal_names():
    assert has_only_numbers(pandas.DataFrame(np.eye(2), columns=["a", "a"]))


def test_a_sparse_matrix_is_copied_only_to_sum_duplicates():
    plain = sparse.random(20, 5, 0.3, format="csr", random_state=0)
    assert MatrixRows(plain).matrix is plain
    double = sparse.csr_matrix(([1.0, 2.0], [1, 1], [0, 2]), shape=(1, 3))
    assert Dataset(double).rows.count_values() == 1
    assert double.nnz == 2


def test_sorted_sparse_rows_of_float32_are_shared_and_left_as_they_are():
    plain = sparse.random(60, 200, 0.02, format="csr", random_state=0, dtype=np.float32)
    plain.data = np.append(plain.data, np.float32(9))  # spare room
    plain.indices = np.append(plain.indices, np.int32(9))
    given = plain.data, plain.indices, plain.indptr
    csr = Dataset(plain).rows.csr
    assert np.shares_memory(csr.values, plain.data) and np.shares_memory(csr.indices, plain.indices)
    assert plain.data is given[0] and plain.indices is given[1] and plain.indptr is given[2]
    unsorted = sparse.csr_matrix((np.ones(2, np.float32), [150, 3], [0, 2]), shape=(1, 200))
    assert Dataset(unsorted).rows.csr.indices.tolist() == [3, 150]
    assert unsorted.indices.tolist() == [150, 3]
    with_zero = sparse.csr_matrix((np.array([0, 1], np.float32), [3, 150], [0, 2]), shape=(1, 200))
    assert Dataset(with_zero).rows.csr.indices.tolist() == [150] and with_zero.nnz == 2


@pytest.mark.parametrize("form", [np.array, list], ids=["array", "lists"])
def test_objects_that_are_numbers_are_rows(form):
    X = [[1, 2.5, True], [Decimal("0.5"), np.float32(3), 0]]
    rows = form(X) if form is list else np.array(X, object)
    assert Dataset(rows).table is None
    assert Dataset(rows).rows.features.tolist() == [[1, 2.5, 1], [0.5, 3, 0]]
    gaps = [[1.0, None], [2, 3], [0, 1]]
    gaps = gaps if form is list else np.array(gaps, object)
    data = Dataset(gaps)
    assert data.table.feature_names == ["x0", "x1", "x1 is missing"]
    assert data.rows.features.tolist() == [[1, 2, 1], [2, 3, 0], [0, 1, 0]]
    assert Dataset([[None, None]], like=data).rows.features.tolist() == [[1, 2, 1]]


@pytest.mark.parametrize(
    ("X", "found"),
    [(np.array([[1.0, 2.0], [3.0, "red"]], object), "'red' in row 1, column 1"),
     ([["1", "2"]], "'1' in row 0, column 0"),
     (np.array([[1.0, 2j]], object), "2j in row 0, column 1"),
     (np.array([[pandas.Timestamp("2020-01-01")]], object), "Timestamp.* in row 0, column 0")],
)  # fmt: skip
def test_an_object_that_is_no_number_is_named(X, found):
    with pytest.raises(ValueError, match=f"expected real numbers, got {found}; words need a data"):
        Dataset(X)


def test_integers_beyond_float64_are_not_finite():
    with pytest.raises(ValueError, match="row 0, column 1 is not finite"):
        _ = Dataset(np.array([[1, -(10**400)]], object)).rows


def test_labels_may_be_strings_of_any_kind_and_a_missing_one_is_named():
    X = np.eye(3)
    if np.lib.NumpyVersion(np.__version__) >= "2.0.0":
        labels = Dataset(X, np.array(["a", "b", "a"], np.dtypes.StringDType())).labels
        assert labels.dtype.kind == "U" and labels.tolist() == ["a", "b", "a"]
    for labels in (["a", None, "b"], [1, None, 2], ["a", np.nan, "b"], ["a", pandas.NA, "b"]):
        with pytest.raises(ValueError, match="the label of row 1 is missing"):
            Dataset(X, pandas.Series(labels, dtype=object))


def test_labels_that_are_set_are_taken_as_they_are():
    data = Dataset(pandas.DataFrame({"word": ["a", "b", "a"]}))
    assert not data.has_labels
    indices = np.array([0, 1, 0], np.uint32)
    labelled = data.with_labels(indices, np.array([1.0, 2.0, 0.0]))
    assert labelled.labels is indices and labelled.has_labels
    assert labelled.sample_weight.tolist() == [1, 2, 0] and data.sample_weight is None
    with pytest.raises(ValueError, match="sample weights must have shape"):
        data.with_labels(indices, np.ones(2))


CATEGORIES = {
    "integers": ([10115, None, 80331], ["c=10115", "c=80331", "c=missing"]),
    "floats": ([1.5, None, 2.0], ["c=1.5", "c=2", "c=missing"]),
    "booleans": ([True, None, False], ["c=false", "c=true", "c=missing"]),
    "text": (["x", None, "y"], ["c=x", "c=y", "c=missing"]),
}


def categories_of(library, values):
    """Return a frame with a column of categories, c, and one of numbers."""
    if library == "pandas":
        return pandas.DataFrame({"c": pandas.Categorical(values), "b": 1.0})
    pyarrow = pytest.importorskip("pyarrow")
    column = pyarrow.array(values).dictionary_encode()
    if library == "pandas of Arrow":
        return pandas.DataFrame({"c": pandas.arrays.ArrowExtensionArray(column), "b": 1.0})
    return pyarrow.table({"c": column, "b": [1.0] * len(values)})


@pytest.mark.parametrize("kind", CATEGORIES)
@pytest.mark.parametrize("library", ["pandas", "pandas of Arrow", "arrow"])
def test_categories_of_any_type_are_categories(library, kind):
    values, names = CATEGORIES[kind]
    frame = categories_of(library, values)
    data = Dataset(frame)
    assert data.table.feature_names == [*names, "b"]
    assert not has_only_numbers(frame)
    expected = np.zeros((3, 4))
    expected[:, 3] = 1.0
    for row, value in enumerate(values):
        text = "missing" if value is None else f"{value:g}" if kind == "floats" else str(value)
        expected[row, names.index(f"c={text.lower()}")] = 0.5
    np.testing.assert_array_equal(data.rows.features, expected)
    plain = pandas.DataFrame({"c": pandas.Series(values, dtype=object), "b": 1.0})
    for other in (frame, plain):
        again = Dataset(other, like=data)
        assert again.unknown_categories == []
        np.testing.assert_array_equal(again.rows.features, expected)
    blocks = joined([column_at(frame, 0, "c")] * 2)  # as a client of workers has them
    assert sorted(blocks.counts.tolist()) == [2, 2] and blocks.is_declared


def test_chunks_of_an_arrow_table_may_have_other_categories():
    pyarrow = pytest.importorskip("pyarrow")
    chunks = [pyarrow.array(one).dictionary_encode() for one in ([5, 7], [9, 7])]
    data = Dataset(pyarrow.table({"c": pyarrow.chunked_array(chunks)}))
    assert data.table.feature_names == ["c=5", "c=7", "c=9"]
    assert data.rows.features.argmax(axis=1).tolist() == [0, 1, 2, 1]


@pytest.mark.parametrize("values", [[True, None, False], ["True", None, "False"]])
def test_categories_of_truth_are_found_in_every_spelling(values):
    data = Dataset(pandas.DataFrame({"flag": values}))
    expected = data.rows.features[[0, 2], :2]
    for dtype in (bool, int, float, "category"):
        other = Dataset(pandas.DataFrame({"flag": [True, False]}).astype(dtype), like=data)
        assert other.unknown_categories == []
        np.testing.assert_array_equal(other.rows.features, expected)
    for texts in (["true", "false"], ["TRUE", "FALSE"], ["1", "0"]):
        other = Dataset(pandas.DataFrame({"flag": texts}), like=data)
        np.testing.assert_array_equal(other.rows.features, expected)
    other = Dataset(pandas.DataFrame({"flag": [2, 1]}), like=data)
    assert "categories that the training set lacks: '2'" in other.unknown_categories[0]


@pytest.mark.parametrize("library", ["pandas", "pandas of Arrow", "polars", "arrow"])
def test_decimals_are_numbers(library):
    values = [Decimal("1.50"), None, Decimal("-2.25")]
    if library == "pandas":
        frame = pandas.DataFrame({"price": values})
    elif library == "polars":
        frame = pytest.importorskip("polars").DataFrame({"price": values})
    else:
        frame = pytest.importorskip("pyarrow").table({"price": values})
    if library == "pandas of Arrow":
        frame = frame.to_pandas(types_mapper=pandas.ArrowDtype)
    data = Dataset(frame)
    assert data.table.feature_names == ["price", "price is missing"]
    assert data.rows.features.tolist() == [[1.5, 0], [-0.375, 1], [-2.25, 0]]


def test_integers_of_128_bits_are_numbers():
    polars = pytest.importorskip("polars")
    if not hasattr(polars, "Int128"):
        pytest.skip("this polars has no integers of 128 bits")
    frame = polars.DataFrame({"a": polars.Series([2**70, None, -1], dtype=polars.Int128)})
    assert Dataset(frame).rows.features.tolist() == [[2**70, 0], [2**69, 1], [-1, 0]]


@pytest.mark.parametrize("kind", ["List", "Array", "Struct"])
def test_a_nested_column_of_polars_is_refused(kind):
    polars = pytest.importorskip("polars")
    dtype = {
        "List": polars.List(polars.Int64),
        "Array": polars.Array(polars.Int64, 2),
        "Struct": polars.Struct({"a": polars.Int64}),
    }[kind]
    cell = {"a": 1} if kind == "Struct" else [1, 2]
    frame = polars.DataFrame({"l": polars.Series([cell, cell], dtype=dtype)})
    with pytest.raises(DataError, match=rf"X: column l has values of type {kind}.*drop the column"):
        Dataset(frame)
    with pytest.raises(DataError, match=f"column l has values of type {kind}"):
        has_only_numbers(frame)


@pytest.mark.parametrize(
    ("values", "found"),
    [([np.ones(2), np.ones(2)], "ndarray"), ([[1], [2]], "list"), ([{"a": 1}, None], "dict"),
     (pandas.interval_range(0, 2), "Interval")],
)  # fmt: skip
def test_cells_that_are_no_numbers_or_text_are_refused(values, found):
    frame = pandas.DataFrame({"l": pandas.Series(values), "b": 1.0})
    with pytest.raises(DataError, match=f"column l has values of type {found}: .*drop the column"):
        Dataset(frame)


def test_a_type_of_arrow_that_is_refused_is_named():
    pyarrow = pytest.importorskip("pyarrow")
    encoded = pyarrow.RunEndEncodedArray.from_arrays([2], pyarrow.array(["x"]).dictionary_encode())
    for column in (pyarrow.array([[1], [2]]), encoded):
        with pytest.raises(DataError, match="has the type .*, which is no number or text; drop"):
            Dataset(pyarrow.table({"day": column}))
    with pytest.raises(DataError, match="column day has bytes that are not UTF-8; drop"):
        Dataset(pyarrow.table({"day": pyarrow.array([b"\xff"])}))
    intervals = pandas.DataFrame({"i": pandas.cut(np.arange(4.0), 2)})
    with pytest.raises(DataError, match="column i has the type dictionary"):
        Dataset(pyarrow.Table.from_pandas(intervals))


@pytest.mark.filterwarnings("error")
def test_a_lazy_frame_and_a_single_column_are_told():
    polars, pyarrow = pytest.importorskip("polars"), pytest.importorskip("pyarrow")
    for work in (Dataset, known_frame):
        with pytest.raises(DataError, match=r"a LazyFrame: call \.collect\(\) first"):
            work(polars.LazyFrame({"a": [1.0]}))
    for one in (polars.Series([1.0]), pyarrow.chunked_array([[1.0]]), pandas.Series([1.0])):
        assert known_frame(one) is None
        with pytest.raises(ValueError, match="expected rows and columns, got .* 1 dimensions"):
            Dataset(one)


@pytest.mark.parametrize("library", ["pandas", "polars", "arrow"])
def test_a_frame_for_the_model_of_an_array_has_numbers_only(library):
    columns = {"a": [1.5, 2.0], "w": ["3", "red"], "t": [True, False]}
    make = pandas.DataFrame
    if library == "polars":
        make = pytest.importorskip("polars").DataFrame
    elif library == "arrow":
        make = pytest.importorskip("pyarrow").table
    data = Dataset(np.eye(3))
    with pytest.raises(DataError, match="the rows: row 1, column w: 'red' is not a number"):
        Dataset(make(columns), like=data)
    rows = Dataset(make(columns | {"w": [3, 4]}), like=data).rows.features
    assert rows.tolist() == [[1.5, 3, 1], [2, 4, 0]]


def in_library(library, values):
    """Return a frame with a column a of Python values."""
    if library == "pandas":
        return pandas.DataFrame({"a": pandas.Series(values, dtype=object)})
    if library == "polars":
        return pytest.importorskip("polars").DataFrame({"a": values})
    table = pytest.importorskip("pyarrow").table({"a": values})
    return table if library == "arrow" else table.to_pandas(types_mapper=pandas.ArrowDtype)


@pytest.mark.parametrize("library", ["pandas", "polars", "arrow", "pandas of Arrow"])
@pytest.mark.parametrize(
    ("values", "rows"),
    [
        ([date(2020, 1, 1), None, date(2020, 3, 1)], [[0, 1, 2, 0], [30, 1, 4, 1], [60, 3, 6, 0]]),
        ([datetime(2020, 1, 1, 6), datetime(2020, 1, 1, 18)], [[0, 6], [0.5, 18]]),
        ([time(10, 30), None, time(12)], [[10.5, 0], [11.25, 1], [12, 0]]),
        ([timedelta(days=1), timedelta(hours=-6)], [[24], [-6]]),
        ([b"x", b"y"], [[0.5, 0], [0, 0.5]]),
    ],
)  # fmt: skip
def test_dates_times_and_bytes(library, values, rows):
    frame = in_library(library, values)
    data = Dataset(frame)
    assert data.rows.features.tolist() == rows and not has_only_numbers(frame)
    empty = Dataset(in_library("pandas", [None]), like=data)
    assert empty.n_rows == 1 and empty.n_features == data.n_features


def test_dates_of_pandas_with_zones_and_periods():
    dates = pandas.to_datetime(pandas.Series(["2020-01-01 12:00", "2020-01-03 18:00"]))
    names = ["a (days)", "a (weekday)", "a (hour)"]
    for column in (dates, dates.dt.tz_localize("UTC"), dates.dt.tz_localize("UTC").astype(object)):
        data = Dataset(pandas.DataFrame({"a": column}))
        assert data.table.feature_names == names
        assert data.rows.features.tolist() == [[0, 2, 12], [2.25, 4, 18]]
        text = Dataset(pandas.DataFrame({"a": ["2020-01-01T14:00+02:00"]}), like=data)
        assert text.rows.features.tolist() == [[0, 2, 12]]
    periods = pandas.DataFrame({"a": pandas.period_range("2020-01", periods=2, freq="M")})
    assert Dataset(periods).rows.features.tolist() == [[0, 1, 2], [31, 2, 5]]


def test_text_of_arrow_by_another_name():
    pyarrow = pytest.importorskip("pyarrow")
    texts = pyarrow.array(["x", None, "y"])
    columns = [texts.cast(kind) for kind in ("large_string", "binary", "large_binary")]
    if hasattr(pyarrow, "string_view"):
        view = pyarrow.array(["x", "y"], pyarrow.string_view())
        columns += [
            pyarrow.array(["x", None, "y"], pyarrow.string_view()),
            pyarrow.DictionaryArray.from_arrays(pyarrow.array([0, None, 1], "uint32"), view),
        ]
    for column in columns:
        assert Dataset(pyarrow.table({"a": column})).table.feature_names == [
            "a=x", "a=y", "a=missing"
        ]  # fmt: skip
    runs = pyarrow.RunEndEncodedArray.from_arrays([2, 3], [1.5, 2.0])
    assert Dataset(pyarrow.table({"a": runs})).rows.features.tolist() == [[1.5], [1.5], [2]]


@pytest.mark.parametrize("kind", ["Categorical", "Enum"])
def test_categories_of_polars_are_categories_whatever_their_texts(kind):
    polars = pytest.importorskip("polars")
    texts = [f"{k}.5" for k in range(40)]
    dtype = polars.Categorical if kind == "Categorical" else polars.Enum(texts)
    frame = polars.DataFrame({"a": polars.Series(texts, dtype=dtype)})
    for one in (frame, frame.to_arrow()):
        assert Dataset(one).n_features == 40


def test_targets_may_be_decimals_or_fractions():
    for labels in ([Decimal("1.5"), 2, Decimal(1)], [Fraction(3, 2), Fraction(2), 1]):
        y = Dataset(np.eye(3), np.array(labels, object)).labels
        assert y.dtype == np.float64 and y.tolist() == [1.5, 2, 1]
    assert Dataset(np.array([[Fraction(1, 2)], [1]], object)).rows.features.tolist() == [[0.5], [1]]
