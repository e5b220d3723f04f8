"""Test scaling: range files, malformed ones, and rows against the real svm-scale."""

import math

import numpy as np
import pytest
from reference import dense, libsvm, libsvm_text
from scipy import sparse
from scipy.stats import norm, rankdata

from dcsvm.data import reading as svmlight_file
from dcsvm.data import scaling as module
from dcsvm.data.dataset import Dataset
from dcsvm.data.files import DataError
from dcsvm.data.scaling import load_scaling, quantile_scaling, range_text

RANGE = "x\n-1 1\n1 2 4\n2 0 1\n4 0 7\n"


@pytest.fixture
def load(tmp_path):
    def load_text(text):
        path = tmp_path / "some.range"
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        return load_scaling(path)

    return load_text


def rows_of(data):
    """Return the rows as a dense array; check that no zero is stored."""
    assert data.rows.is_dense or (data.rows.values != 0).all()
    return dense(data.rows)


def test_values_are_mapped_linearly_and_beyond_the_limits(load):
    data = Dataset.of_text(b"1 1:2.5 2:1 4:3.5 6:5\n2 2:3 3:9\n3\n", "rows", scale=load(RANGE))
    assert rows_of(data).tolist() == [[-0.5, 1, 0, 0], [-3, 5, 0, -1], [-3, -1, 0, -1]]
    assert data.labels.tolist() == [1, 2, 3]


def test_the_text_is_scaled_before_it_is_rounded(load):
    data = Dataset.of_text(
        b"1 1:1000000000.25\n", "rows", scale=load("x\n0 1\n1 1000000000 1000000001")
    )
    assert rows_of(data).tolist() == [[0.25]]


@pytest.mark.parametrize("absent", [0, 3, 8])
@pytest.mark.parametrize("sign", [1, -1])
def test_a_feature_that_one_row_lacks_is_found_to_begin_at_0(absent, sign):
    values = sign * (np.arange(9) + 2)
    lines = (f"1 1:{v}{f' 2:{v}' * (k != absent)}\n" for k, v in enumerate(values.tolist()))
    data = Dataset.of_text("".join(lines).encode(), "rows", scale="auto")
    lacking = np.where(np.arange(9) == absent, 0, values)
    ends = [(one.min(), one.max()) for one in (values, lacking)]
    found = data.scaling.features
    assert list(zip(found.minimum, found.maximum, strict=True)) == ends
    (low, high), scaled = ends[1], rows_of(data)[:, 1]
    np.testing.assert_allclose(scaled, 2 * (lacking - low) / (high - low) - 1, rtol=1e-6)


def test_no_scaled_value_is_a_negative_zero(load):
    data = Dataset.of_text(b"1 1:-1e-60\n2 1:1\n", "rows", scale=load("x\n0 1\n1 0 10"))
    assert rows_of(data).tolist()[0] == [0] and not np.signbit(rows_of(data)).any()


def test_labels_are_scaled_by_a_y_section(load):
    scaling = load("y\n0 1\n-1 3\n" + RANGE)
    data = Dataset.of_text(b"-1 2:1\n3 2:1\n2 2:1\n7 2:1\n", "rows", scale=scaling)
    assert data.labels.tolist() == [0, 1, 0.75, 2]


def test_a_feature_of_one_value_is_dropped(load):
    data = Dataset.of_text(b"1 1:5 2:5\n", "rows", scale=load("x\n0 1\n1 3 3\n2 0 10\n3 4 4"))
    assert rows_of(data).tolist() == [[0, 0.5]]


def test_nothing_may_be_left(load):
    data = Dataset.of_text(b"1 1:5\n-1 1:2", "rows", scale=load("x\n0 1\n"))
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
        ("x\n0 1\n2147483647 0 1\n", "3: the feature index 2147483647 is above 2147483646"),
        ("x\n0 1\n3 0 1\n3 0 1\n", "4: feature indices must ascend: 3 follows 3"),
        (b"\xfe\n", "1: this is not a range file of svm-scale: expected a line x"),
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
            Dataset.of_text(text, "rows", scale=scaling)
    far = load("x\n-1e30 1e30\n1 1 1.0000000000000002\n")
    with pytest.raises(DataError, match="^rows: 0 of feature 1 is too large for float32 when"):
        Dataset.of_text(b"1 1:1\n", "rows", scale=far)


def test_a_huge_index_does_not_need_huge_memory(load):
    scaling = load("x\n0 1\n1 0 2\n2147483646 0 2\n")
    rows = Dataset.of_text(b"1 1:1\n-1 2147483646:1\n", "rows", scale=scaling).rows
    assert (rows.n_features, rows.indices.tolist()) == (2147483646, [0, 2147483645])
    shifted = load("x\n0 1\n1 0 2\n2147483646 -2 2\n")
    rows = Dataset.of_text(b"1 1:1\n-1 2147483646:-2\n", "rows", scale=shifted).rows
    assert rows.indptr.tolist() == [0, 2, 2]
    assert rows.values.tolist() == [0.5, 0.5]


def found(text, **how):
    return Dataset.of_text(text, "rows", scale="auto", **how)


def test_ranges_are_found_in_the_rows_where_features_that_are_missing_are_0():
    data = found(b"1 1:2 2:5 3:7 9:0\n-1 1:4 3:7\n3 1:3 2:-1 3:7\n")
    assert range_text(data.scaling) == b"x\n-1 1\n1 2 4\n2 -1 5\n"
    assert rows_of(data).tolist() == [[-1, 1], [1, pytest.approx(-2 / 3)], [0, -1]]
    assert data.labels.tolist() == [1, -1, 3]


def test_ranges_may_be_found_where_there_is_nothing_to_scale():
    for text in (b"1\n-1\n", b"1 3:2\n-1 3:2\n", b"1 1:0\n"):
        data = found(text)
        assert range_text(data.scaling) == b"x\n-1 1\n"
        assert (data.rows.n_samples, data.rows.n_features) == (text.count(b"\n"), 0)


def test_ranges_are_those_of_all_parts_of_a_text(monkeypatch):
    rng = np.random.default_rng(5)
    shown = [[f"{j}:{v:.6g}" for j, v in zip(sorted(rng.choice(40, 6, replace=False) + 1),
              rng.normal(size=6), strict=True)] for _ in range(200)]  # fmt: skip
    text = "".join(f"1 {' '.join(line)}\n" for line in shown).encode()
    whole = found(text)
    monkeypatch.setattr(svmlight_file, "PART_BYTES", 100)
    parts = found(text, threads=2)
    assert range_text(parts.scaling) == range_text(whole.scaling)
    assert rows_of(parts).tobytes() == rows_of(whole).tobytes()


def test_a_scaling_that_was_found_is_the_one_of_its_range_file(load):
    rng = np.random.default_rng(6)
    X = rng.normal(size=(50, 5)) * 10.0 ** rng.integers(-30, 30, 5)
    text = libsvm_text(X, np.ones(50)).encode()
    data = found(text)
    again = Dataset.of_text(text, "rows", scale=load(range_text(data.scaling)))
    assert rows_of(again).tobytes() == rows_of(data).tobytes()
    assert range_text(again.scaling) == range_text(data.scaling)


def test_a_huge_index_does_not_need_huge_memory_for_its_range():
    data = found(b"1 2147483646:1\n-1 2147483646:3\n")
    assert range_text(data.scaling) == b"x\n-1 1\n2147483646 1 3\n"


def parts_of(X):
    """Return the rows of a dense array as two parts of CSR arrays."""
    halves = np.array_split(X, 2)
    rows = [sparse.csr_matrix(half.astype(np.float64)) for half in halves]
    return [(one.indptr, one.indices, one.data) for one in rows]


def test_quantiles_are_normal_quantiles_of_the_mean_rank_of_equal_values():
    rng = np.random.default_rng(0)
    X = np.stack([rng.exponential(size=300), rng.integers(0, 4, 300), np.ones(300)], axis=1)
    scaling = quantile_scaling(parts_of(X), "a")
    assert scaling.columns.tolist() == [0, 1]  # the constant column is dropped
    found = scaling.scaled_rows(parts_of(X), "a").features
    for k in (0, 1):
        ranks = (rankdata(X[:, k]) - 0.5) / 300
        wanted = norm.ppf(np.clip(ranks, 1 / 300, 1 - 1 / 300))
        # a column of more values than knots is interpolated
        assert np.abs(found[:, k] - wanted).max() < (0.02 if k == 0 else 1e-6)
    assert np.diff(scaling.features.start).max() <= 256
    beyond = scaling.features.scaled_at(np.zeros(2, int), np.array([-1e9, 1e9]))
    assert beyond == pytest.approx([-norm.ppf(1 - 1 / 300), norm.ppf(1 - 1 / 300)])


def test_weights_multiply_scaled_columns_and_0_drops_a_column():
    X = np.random.default_rng(1).normal(size=(50, 3))
    scaling = quantile_scaling(parts_of(X), "a")
    plain = scaling.scaled_rows(parts_of(X), "a").features
    weighted = scaling.weighted(np.array([2.0, 0.0, 0.5])).scaled_rows(parts_of(X), "a").features
    assert np.array_equal(weighted[:, [0, 2]], plain[:, [0, 2]] * np.float32([2, 0.5]))
    assert not weighted[:, 1].any()


def test_quantiles_of_large_data_are_those_of_sampled_rows(monkeypatch):
    monkeypatch.setattr(module, "RANKED_VALUES", 200)
    X = np.random.default_rng(1).normal(size=(1000, 2))
    scaling = quantile_scaling(parts_of(X), "a")
    sampled = X[::10]
    assert scaling.features.knots[0] == sampled[:, 0].min()


def test_ranges_are_not_found_of_a_precomputed_kernel():
    with pytest.raises(
        DataError, match="rows: the values of a precomputed kernel cannot be scaled"
    ):
        found(b"1 0:1 1:1\n", kernel_values=True)


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
    scaled = {
        train: libsvm("svm-scale", *limits, "-s", ranges, train),
        test: libsvm("svm-scale", "-r", ranges, test),
    }
    scaling = load_scaling(ranges)
    for path, text in scaled.items():
        ours, theirs = Dataset.read(path, scale=scaling), Dataset.of_text(text.encode(), "theirs")
        assert ours.rows.is_dense == theirs.rows.is_dense
        assert ours.rows.n_features == theirs.rows.n_features
        left, right = rows_of(ours), rows_of(theirs)
        assert ((left == 0) == (right == 0)).all()
        np.testing.assert_allclose(left, right, rtol=5.2e-6, atol=0)
        np.testing.assert_allclose(ours.labels, theirs.labels, rtol=5.2e-6)
        for array in (left, right):
            assert not math.isnan(array.sum())
    if not limits:
        assert range_text(Dataset.read(train, scale="auto").scaling) == ranges.read_bytes()
