"""scaling: range files, each kind of malformed one, and rows as the real svm-scale writes them."""

import math
import shutil
import subprocess

import numpy as np
import pytest

from dcsvm.data.dataset import parse_dataset, read_dataset
from dcsvm.data.input_file import DataError
from dcsvm.data.range_file import load_scaling

RANGE = "x\n-1 1\n1 2 4\n2 0 1\n4 0 7\n"


@pytest.fixture
def load(tmp_path):
    def load_text(text):
        path = tmp_path / "some.range"
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        return load_scaling(path)

    return load_text


def rows_of(data):
    """Dense rows, whatever their form."""
    rows = data.rows
    if rows.is_dense:
        return rows.dense
    dense = np.zeros((rows.n_samples, rows.n_features), np.float32)
    row = np.repeat(np.arange(rows.n_samples), np.diff(rows.indptr))
    assert (rows.values != 0).all()
    dense[row, rows.indices] = rows.values
    return dense


def test_values_are_mapped_linearly_and_beyond_the_limits(load):
    data = parse_dataset(b"1 1:2.5 2:1 4:3.5 6:5\n2 2:3 3:9\n3\n", "rows", scaling=load(RANGE))
    assert rows_of(data).tolist() == [[-0.5, 1, 0, 0], [-3, 5, 0, -1], [-3, -1, 0, -1]]
    assert data.labels.tolist() == [1, 2, 3]


def test_the_text_is_scaled_before_it_is_rounded(load):
    data = parse_dataset(
        b"1 1:1000000000.25\n", "rows", scaling=load("x\n0 1\n1 1000000000 1000000001")
    )
    assert rows_of(data).tolist() == [[0.25]]


def test_labels_are_scaled_by_a_y_section(load):
    scaling = load("y\n0 1\n-1 3\n" + RANGE)
    data = parse_dataset(b"-1 2:1\n3 2:1\n2 2:1\n7 2:1\n", "rows", scaling=scaling)
    assert data.labels.tolist() == [0, 1, 0.75, 2]


def test_a_feature_of_one_value_is_dropped(load):
    data = parse_dataset(b"1 1:5 2:5\n", "rows", scaling=load("x\n0 1\n1 3 3\n2 0 10\n3 4 4"))
    assert rows_of(data).tolist() == [[0, 0.5]]


def test_nothing_may_be_left(load):
    data = parse_dataset(b"1 1:5\n-1 1:2", "rows", scaling=load("x\n0 1\n"))
    assert (data.rows.n_samples, data.rows.n_features) == (2, 0)


@pytest.mark.parametrize(
    "text, message",
    [
        ("", "1: the range file ends too early"),
        ("y\n0 1\n", "2: the range file ends too early"),
        ("x\n", "1: the range file ends too early"),
        ("z\n0 1\n", "1: this is not a range file of svm-scale: expected a line x"),
        ("\nx\n0 1\n", "1: this is not a range file of svm-scale: expected a line x"),
        ("y\n0 1\n3 4\n0 1\n", "4: this is not a range file of svm-scale: expected a line x"),
        ("x\n0\n", "2: expected a lower and an upper limit, found '0'"),
        ("x\n0 1 2\n", "2: expected a lower and an upper limit, found '0 1 2'"),
        ("x\n1 0\n", "2: the lower limit 1 is not below the upper limit 0"),
        ("x\n0 inf\n", "2: a lower and an upper limit must be finite numbers"),
        ("x\n0 1\n1 2\n", "3: expected a minimum and a maximum, found '2'"),
        ("x\n0 1\n1 2 nan\n", "3: a minimum and a maximum must be finite numbers"),
        ("x\n0 1\n1 2 1\n", "3: the minimum 2 is above the maximum 1"),
        ("y\n0 1\n2 1\n", "3: the minimum 2 is above the maximum 1"),
        ("x\n0 1\n1 0 1\n\n", "4: the feature index '' is not a whole number"),
        ("x\n0 1\n1.0 0 1\n", "3: the feature index '1.0' is not a whole number"),
        ("x\n0 1\n0 0 1\n", "3: the feature index 0 is not in 1..2147483646"),
        ("x\n0 1\n2147483647 0 1\n", "3: the feature index 2147483647 is not in 1..2147483646"),
        ("x\n0 1\n3 0 1\n3 0 1\n", "4: feature indices must ascend: 3 follows 3"),
        (b"\xff\xfe\n", "1: this is not a range file of svm-scale: expected a line x"),
    ],
)
def test_malformed_range_files_are_refused_with_their_line(load, text, message):
    with pytest.raises(DataError) as error:
        load(text)
    assert str(error.value).endswith(f"some.range:{message}")


def test_a_range_file_that_cannot_be_opened_is_named(tmp_path):
    with pytest.raises(DataError, match="none: no such file"):
        load_scaling(tmp_path / "none")


def test_values_that_grow_too_large_are_refused(load):
    scaling = load("y\n0 1\n0 1e-300\nx\n-1 1\n1 0 1\n2 0 1e-40\n")
    for text, message in (
        (b"1e-300 1:1\n0 1:0 2:1\n", "rows:2: feature 2 is too large for float32 when scaled by"),
        (b"0 1:1\n1 1:2\n", "rows:2: the label is too large for float32 when scaled by"),
    ):
        with pytest.raises(DataError, match=f"^{message} .*some.range$"):
            parse_dataset(text, "rows", scaling=scaling)
    far = load("x\n-1e30 1e30\n1 1 1.0000000000000002\n")
    with pytest.raises(DataError, match="^rows: 0 of feature 1 is too large for float32 when"):
        parse_dataset(b"1 1:1\n", "rows", scaling=far)


def test_a_huge_index_does_not_need_huge_memory(load):
    scaling = load("x\n0 1\n1 0 2\n2147483646 0 2\n")
    rows = parse_dataset(b"1 1:1\n-1 2147483646:1\n", "rows", scaling=scaling).rows
    assert (rows.n_features, rows.indices.tolist()) == (2147483646, [0, 2147483645])
    shifted = load("x\n0 1\n1 0 2\n2147483646 -2 2\n")
    rows = parse_dataset(b"1 1:1\n-1 2147483646:-2\n", "rows", scaling=shifted).rows
    assert rows.indptr.tolist() == [0, 2, 2]
    assert rows.values.tolist() == [0.5, 0.5]


def svm_scale(*arguments):
    run = subprocess.run(["svm-scale", *map(str, arguments)], capture_output=True, check=True)
    return run.stdout


@pytest.mark.skipif(shutil.which("svm-scale") is None, reason="svm-scale is not installed")
@pytest.mark.parametrize("limits", [[], ["-l", 0], ["-l", 0.5, "-u", 3], ["-y", -2, 5]])
@pytest.mark.parametrize(("n_features", "density"), [(6, 0.7), (300, 0.01), (300, 0.5)])
def test_rows_are_those_of_the_real_svm_scale(tmp_path, write_libsvm, limits, n_features, density):
    rng = np.random.default_rng(n_features)
    shape = (120, n_features)
    X = np.where(rng.random(shape) < density, rng.normal(size=shape) * 10.0 ** rng.integers(
        -4, 5, n_features), 0)  # fmt: skip
    X[:, 2] = 0
    X[:, 4] = 7
    y = rng.normal(size=120)
    train, test = write_libsvm(X[:60], y[:60], "train"), write_libsvm(X[60:] * 1.5, y[60:], "test")
    ranges = tmp_path / "ranges"
    scaled = {train: svm_scale(*limits, "-s", ranges, train), test: svm_scale("-r", ranges, test)}
    scaling = load_scaling(ranges)
    for path, text in scaled.items():
        ours, theirs = read_dataset(path, scaling=scaling), parse_dataset(text, "theirs")
        assert ours.rows.is_dense == theirs.rows.is_dense
        assert ours.rows.n_features == theirs.rows.n_features
        left, right = rows_of(ours), rows_of(theirs)
        assert ((left == 0) == (right == 0)).all()
        np.testing.assert_allclose(left, right, rtol=5.2e-6, atol=0)
        np.testing.assert_allclose(ours.labels, theirs.labels, rtol=5.2e-6)
        for array in (left, right):
            assert not math.isnan(array.sum())
