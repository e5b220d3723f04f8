"""Test what is a data frame, and which frames are encoded."""

import numpy as np
import pytest
from scipy import sparse

from dcsvm.data.arrays import Float64Parts
from dcsvm.data.dataset import Dataset
from dcsvm.data.frames import has_only_numbers, known_frame, matrix_of

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
    assert Float64Parts(plain).rows is plain
    double = sparse.csr_matrix(([1.0, 2.0], [1, 1], [0, 2]), shape=(1, 3))
    assert Dataset(double).rows.count_values() == 1
    assert double.nnz == 2


def test_labels_that_are_set_are_taken_as_they_are():
    data = Dataset(pandas.DataFrame({"word": ["a", "b", "a"]}))
    assert not data.has_labels
    indices = np.array([0, 1, 0], np.uint32)
    labelled = data.with_labels(indices, np.array([1.0, 2.0, 0.0]))
    assert labelled.labels is indices and labelled.has_labels
    assert labelled.sample_weight.tolist() == [1, 2, 0] and data.sample_weight is None
    with pytest.raises(ValueError, match="sample weights must have shape"):
        data.with_labels(indices, np.ones(2))
