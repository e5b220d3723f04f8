"""Test that packed and coded rows give the bits of float rows, in every evaluation form."""

import pickle
from dataclasses import replace

import numpy as np
import pytest
from reference import forms_of, kernels_with, libsvm_text, one_hot_rows
from runs import train_rows
from storages import require_equal_groups, require_equal_values, run_on

import dcsvm
from dcsvm import _core
from dcsvm.data import arrays as allocation
from dcsvm.data.dataset import Dataset
from dcsvm.data.rows import Rows, Storage, stacked, storage_of
from dcsvm.kernel import encodings
from dcsvm.kernel.encodings import find_coding, find_uniform_grid
from dcsvm.kernel.kernel_rows import KernelRows, two_sides
from dcsvm.kernel.kernels import ABSOLUTE_DISTANCE, SQUARED_DISTANCE, Kernel
from dcsvm.problem.options import TrainOptions

KERNELS = kernels_with(0.3, 1.0, 2)


def mixed(n, seed=0, sizes=(6, 37, 60), n_numeric=4):
    """Return numbers and one-hot groups between zero columns; some rows miss a category."""
    X = np.pad(one_hot_rows(n, sizes, n_numeric, 0.2, seed), [(0, 0), (0, 1)])
    return np.insert(X, [n_numeric] * 2, 0, axis=1)


def both(X):
    """Return the rows packed and as floats."""
    floats = Rows(*X.shape, dense=np.ascontiguousarray(X))
    rows = floats.in_storage(Storage.PACKED)
    assert rows.is_packed and rows.is_dense and rows.nbytes < floats.nbytes
    return rows, floats


def labels_of(X):
    return np.where(X[:, 0] + X[:, 6] - X[:, 13] > 0.2, 1.0, -1.0)


def text_of(X, y):
    return libsvm_text(X, y).encode()


@pytest.mark.parametrize("kernel", KERNELS, ids=lambda kernel: kernel.name)
@pytest.mark.parametrize("form", ["difference", "product"])
@pytest.mark.parametrize("n_numeric", [0, 1, 9])
def test_kernel_values_of_rows_that_are_not_encoded(kernel, form, n_numeric):
    if form not in forms_of(kernel):
        return
    require_equal_values(both(mixed(130, n_numeric=n_numeric)), kernel, form)


@pytest.mark.parametrize("kernel", KERNELS, ids=lambda kernel: kernel.name)
def test_encoded_rows_are_those_that_are_there(kernel):
    found = []
    for rows in both(mixed(400)):
        data = KernelRows(rows, kernel, 1, coded=True)
        assert data.points.n_codes == 3 and (data.copy_bytes == 0) == rows.is_packed
        part = data.part(np.arange(0, 400, 3, dtype=np.int32))
        sample = KernelRows(rows.take(np.arange(20)), kernel, 1, coded=True)
        points = sample.encode_others(_core.Points(rows, 1), rows, 1)[0]
        assert points.n_codes > 0
        points = points.prepared(sample.setup, 1)
        met = _core.kernel_matrix(sample.setup, points, None, sample.points, None, 1)
        found.append([data.matrix(), part.matrix(targets=data), met])
    assert all(np.array_equal(*pair) for pair in zip(*found, strict=True))


def test_groups_orders_and_grids():
    X = mixed(3000)
    X[:, :2] = np.random.default_rng(5).integers(0, 5, (3000, 1)) * 60
    require_equal_groups(both(X))
    X = np.round(X[:, 4:]) + np.float32(0)
    X[:, 0] = np.arange(3000) % 3 / 2
    grids = [find_uniform_grid(some, 10**9) for some in both(X)]
    assert grids[0] == grids[1] is not None
    assert np.array_equal(*(grids[0].codes(some) for some in both(X)))
    values = [KernelRows(some, Kernel("rbf", 0.1), 1, coded=True).matrix() for some in both(X)]
    assert np.array_equal(*values)


@pytest.mark.parametrize(
    "options",
    [
        {"kernel": "linear", "C": 0.1},
        {"kernel": "linear", "C": 0.1, "bias": True},
        {"kernel": "polynomial", "gamma": 0.1, "levels": 1},
        {"gamma": 0.3, "levels": 1, "bias": True},
        {"gamma": 0.5, "levels": 0},
        {"gamma": 0.3, "early": True},
        {"gamma": 0.3, "svm_type": "epsilon_svr"},
        {"gamma": 0.3, "C": 100, "three": True},
    ],
    ids=str,
)
@pytest.mark.parametrize("has_codes", [True, False])
def test_models_do_not_depend_on_the_storage(options, has_codes, tmp_path):
    options = dict(options)
    X = mixed(900, seed=2)[:, :-1] if has_codes else sparse_numbers(900)
    y = labels_of(X)
    if options.pop("three", False):
        y[::3] = 2.0
    if "svm_type" in options:
        y = X[:, 0].astype(np.float64) + X[:, 6]
    files, args = [], TrainOptions(threads=1, **options)
    read = Dataset.of_text(text_of(X, y), "rows").rows
    floats = Rows(*X.shape, dense=np.ascontiguousarray(X))
    assert read.storage is Rows.from_array(X).storage is Storage.PACKED
    assert (find_coding(read, 1) is not None) == has_codes
    for rows in (read, floats):
        model, report = train_rows(rows, y, args)
        assert report.converged or options.get("early")
        model.save(tmp_path / "model")
        files.append((tmp_path / "model").read_bytes())
        method = "early" if options.get("early") else "exact"
        values = model.pair_values(floats, method, 1)
        again = pickle.loads(pickle.dumps(model))
        assert np.array_equal(again.pair_values(read, method, 1), values)
        files.append(values.tobytes())
    assert files[:2] == files[2:]


def sparse_numbers(n):
    """Return rows that fit no encoding; a tenth of the values is nonzero."""
    rng = np.random.default_rng(1)
    X = np.where(rng.random((n, 80)) < 0.1, rng.normal(size=(n, 80)), 0).astype(np.float32)
    X[n // 2 :] = X[: n - n // 2] if n % 2 == 0 else X[n // 2 :]  # many duplicates
    return X


def test_codes_are_found_batch_by_batch(monkeypatch):
    X = mixed(1000, seed=3)
    X[500:, 7] = 0
    X[:700, 40] = 0  # a category that appears late
    whole = [find_coding(rows, 2) for rows in both(X)]
    monkeypatch.setattr(encodings, "BATCH_VALUES", X.shape[1] * 90)
    assert whole[0] == whole[1] == find_coding(both(X)[0], 1) is not None
    found = [KernelRows(rows, Kernel("rbf", 0.3), 1, coded=True).matrix() for rows in both(X)]
    assert np.array_equal(*found)


def test_what_comes_late_may_end_it(monkeypatch):
    X = mixed(1000, seed=3)
    X[900:, 6:] = np.random.default_rng(0).normal(size=(100, X.shape[1] - 6))
    monkeypatch.setattr(encodings, "BATCH_VALUES", X.shape[1] * 90)
    assert all(find_coding(rows, 1) is None for rows in both(X))


def test_scaled_rows_are_packed():
    X = mixed(1000, seed=4)
    text = text_of(X, labels_of(X))
    plain = Dataset.of_text(text, "rows", scale="auto")
    features = plain.scaling.features
    scaling = replace(plain.scaling, features=replace(features, lower=0.0, upper=1.0))
    rows = Dataset.of_text(text, "rows", scale=scaling).rows
    assert rows.is_packed and not plain.rows.is_packed and find_coding(rows, 1) is not None


def test_rows_without_features_and_without_codes():
    assert Dataset.of_text(b"1\n-1\n", "rows").rows.storage is Storage.FLOATS
    rng = np.random.default_rng(0)
    for X in (rng.normal(size=(50, 20)), np.zeros((0, 20)), np.zeros((50, 20))):
        assert find_coding(Rows.from_array(X), 1) is None


def test_integers_are_coded_where_codes_are_cheaper_than_bytes():
    X = mixed(300, sizes=(25, 25), n_numeric=1)
    X[:, 0] = np.arange(300) % 50
    rows = Rows.from_array(X)
    assert rows.is_bytes and find_coding(rows, 1) is not None
    pixels = Rows.from_array(np.random.default_rng(0).integers(0, 200, (300, 40)))
    has_bytes = _core.may_be_bytes(40, SQUARED_DISTANCE)
    assert pixels.is_bytes and (not has_bytes or find_coding(pixels, 1) is None)
    if _core.may_be_bytes(50, ABSOLUTE_DISTANCE):
        assert find_coding(rows, 1, ABSOLUTE_DISTANCE) is not None
        many = one_hot_rows(300, (3,) * 20, 0, 0.2, 0)
        assert find_coding(Rows.from_array(many), 1, ABSOLUTE_DISTANCE) is None


def test_rows_keep_their_storage():
    X = mixed(50)
    rows, floats = both(X)
    order = np.random.default_rng(0).permutation(50)
    for changed in (
        lambda one: one.take(order),
        lambda one: one.part(slice(10, 20)),
        lambda one: one.with_features(X.shape[1] + 5),
        lambda one: stacked(one, one.part(slice(3, 9))),
        lambda one: pickle.loads(pickle.dumps(one)),
    ):
        made = changed(rows)
        assert made.is_packed
        assert np.array_equal(made.features, changed(floats).dense)
        assert np.array_equal(made.as_floats().dense, made.features)
    assert np.array_equal(both(X)[0].reordered(order[:30]).features, X[order[:30]])
    joined = stacked(rows, floats)
    assert joined.is_packed and np.array_equal(joined.features, np.concatenate((X, X)))
    wide, wide_floats = (one.with_features(9000) for one in (rows, floats))
    assert not wide.is_dense and np.array_equal(wide.values, wide_floats.values)
    assert rows.mean_squared_distance() == floats.mean_squared_distance()
    assert rows.n_features == rows.row_size == X.shape[1]
    sparse = rows.in_storage(Storage.SPARSE)
    assert not sparse.is_dense and sparse.in_form_of(rows, 1).is_packed
    assert np.array_equal(sparse.in_form_of(floats, 1).dense, X)


def test_parts_of_a_file_choose_as_the_whole():
    for n_values, are_bytes, storage in (
        (4999, False, Storage.SPARSE),
        (4999, True, Storage.SPARSE),
        (5000, True, Storage.BYTES),
        (5000, False, Storage.PACKED),
        (12499, False, Storage.PACKED),
        (12500, False, Storage.FLOATS),
    ):
        assert storage_of(1000, 100, n_values, are_bytes=are_bytes) is storage
    assert storage_of(1000, 64, 1, are_bytes=False) is Storage.FLOATS
    assert storage_of(1000, 9000, 900_000, are_bytes=True) is Storage.PACKED


def test_packed_rows_meet_others():
    rows, floats = both(mixed(80))
    for changed in (floats, Rows.from_array(floats.dense + np.float32(0.25))):
        found = []
        for sources in (rows, floats):
            targets, meeting = two_sides(changed, sources, Kernel("rbf", 0.3), 1)
            found.append(meeting.matrix(targets=targets))
        assert np.array_equal(*found)


@pytest.mark.parametrize("has_codes", [True, False])
def test_rows_in_a_file(has_codes, monkeypatch, tmp_path):
    X = mixed(5000) if has_codes else sparse_numbers(5000)
    y = labels_of(X)
    wanted = dcsvm.train(X, y, gamma=0.3, threads=2, cache_mb=60)
    monkeypatch.setattr(allocation, "fits_memory", lambda n_bytes: n_bytes < 100_000)
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    rows = Dataset.of_text(text_of(X, y), "rows", threads=2).rows
    assert rows.is_mapped and rows.is_packed and not rows.is_in_file
    model, report = train_rows(rows, y, TrainOptions(gamma=0.3, threads=2, cache_mb=60))
    assert report.converged
    assert report.objective == pytest.approx(wanted.report.objective, rel=1e-5)


def test_shapes_are_checked():
    rows = both(mixed(50))[0]
    coding = find_coding(rows, 1)
    few = np.zeros((50, 4), np.uint8)
    with pytest.raises(ValueError, match="rows with codes do not have the stated shape"):
        _core.Points.of_codes(coding, few, rows.n_features, 1)
    with pytest.raises(ValueError, match="shape of the rows with codes"):
        coding.encode(_core.Points(rows, 1), few, 1)
    with pytest.raises(ValueError, match="of the same features"):
        _core.CodingSearch(7).see(_core.Points(rows, 1), 1)
    with pytest.raises(ValueError, match="as they are"):
        coded = KernelRows(rows, Kernel(), 1, coded=True).points
        _core.CodingSearch(rows.n_features).see(coded, 1)


@pytest.mark.parametrize("isa", ["baseline", "avx2", "avx512"])
def test_other_instruction_sets(isa):
    run_on(isa, __file__)
