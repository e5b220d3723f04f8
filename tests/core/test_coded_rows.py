"""Rows held as codes give the bits of the same rows held as floats, in every form."""

import pickle
from dataclasses import replace

import numpy as np
import pytest
from reference import forms_of, kernels_with, libsvm_text, one_hot_rows
from storages import require_equal_groups, require_equal_values, run_on

import dcsvm
from dcsvm import _core
from dcsvm.data import dataset, room
from dcsvm.data.dataset import DataError, parse_dataset
from dcsvm.data.rows import Rows, coded, coded_parts, stacked
from dcsvm.kernel.kernel_rows import KernelRows, two_sides
from dcsvm.kernel.kernels import Kernel
from dcsvm.kernel.lattice import find_lattice
from dcsvm.model.predict import decision_values
from dcsvm.problem.options import TrainOptions
from dcsvm.training import train as training
from dcsvm.training.train import train_rows

KERNELS = kernels_with(0.3, 1.0, 2)


def mixed(n, seed=0, sizes=(6, 17, 30), n_numeric=4):
    """Numbers, then one-hot groups, of which some rows have none, between columns of zeros."""
    X = np.pad(one_hot_rows(n, sizes, n_numeric, 0.2, seed), [(0, 0), (0, 1)])
    return np.insert(X, [n_numeric] * 2, 0, axis=1)


def both(X):
    """The rows as codes and as floats."""
    floats = Rows(*X.shape, dense=np.ascontiguousarray(X))
    rows = coded(floats, 2)
    assert rows.coding is not None and not rows.is_bytes and rows.nbytes < floats.nbytes / 2
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
        assert data.points.n_codes == 3 and (data.copy_bytes == 0) == (rows.coding is not None)
        part = data.part(np.arange(0, 400, 3, dtype=np.int32))
        sample = KernelRows(rows.take(np.arange(20)), kernel, 1, coded=True)
        points = _core.Points(rows, 1)
        assert sample.encode(points, rows, 1) is None or points.n_codes > 0
        points.prepare(sample.setup, 1)
        met = _core.kernel_matrix(sample.setup, points, None, sample.points, None, 1)
        found.append([data.matrix(), part.matrix(targets=data), met])
    assert all(np.array_equal(*pair) for pair in zip(*found, strict=True))


def test_groups_orders_and_lattices():
    X = mixed(3000)
    X[:, :2] = np.random.default_rng(5).integers(0, 5, (3000, 1)) * 60
    require_equal_groups(both(X))
    halves = both(np.round(X[:, 4:]) + np.float32(0))
    X = halves[1].dense.copy()
    X[:, 0] = np.arange(3000) % 3 / 2
    lattices = [find_lattice(some, 10**9) for some in both(X)]
    assert lattices[0] == lattices[1] is not None
    codes = [lattices[0].codes(some) for some in both(X)]
    assert np.array_equal(*codes)


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
def test_models_do_not_depend_on_the_form(options, monkeypatch, tmp_path):
    options = dict(options)
    X = mixed(900, seed=2)[:, :-1]
    y = labels_of(X)
    if options.pop("three", False):
        y[::3] = 2.0
    if "svm_type" in options:
        y = X[:, 0].astype(np.float64) + X[:, 6]
    files, args = [], TrainOptions(threads=1, **options)
    for is_coded in (True, False):
        if not is_coded:
            monkeypatch.setattr(training, "coded", lambda rows, threads: rows)
        data = parse_dataset(text_of(X, y), "rows", to_train=is_coded)
        assert (data.rows.coding is not None) == is_coded
        rows = Rows.from_array(X)
        for given in (data.rows, rows):
            model, report = train_rows(given, y, args)
            assert report.converged or options.get("early")
            model.save(tmp_path / "model")
            files.append((tmp_path / "model").read_bytes())
            method = "early" if options.get("early") else "exact"
            values = decision_values(model, rows, method, 1)
            again = pickle.loads(pickle.dumps(model))
            assert np.array_equal(decision_values(again, rows, method, 1), values)
            files.append(values.tobytes())
    assert files[:2] == files[2:4] == files[4:6] == files[6:]


def test_parts_are_coded_as_the_whole(monkeypatch):
    X = mixed(1000, seed=3)
    X[500:, 7] = 0
    X[:700, 40] = 0  # a category that comes late
    y = labels_of(X)
    whole = both(X)[0]
    monkeypatch.setattr(dataset, "PART_VALUES", 61 * 90)
    data = parse_dataset(text_of(X, y), "rows", threads=2, to_train=True)
    X = X[:, : data.rows.n_features]
    assert data.rows.coding == whole.coding and np.array_equal(data.rows.features, X)
    assert np.array_equal(data.labels, y)
    assert np.array_equal(parse_dataset(text_of(X, y), "rows", to_train=False).rows.dense, X)


def test_what_comes_late_may_end_it(monkeypatch):
    X = mixed(1000, seed=3)
    X[900:, 6:] = np.random.default_rng(0).normal(size=(100, X.shape[1] - 6))
    monkeypatch.setattr(dataset, "PART_VALUES", 61 * 90)
    data = parse_dataset(text_of(X, labels_of(X)), "rows", to_train=True)
    assert data.rows.coding is None and np.array_equal(data.rows.dense, X)
    lines = text_of(X, labels_of(X)).splitlines()
    lines[931] = b"1 3:x"
    with pytest.raises(DataError, match="rows:932:5: "):
        parse_dataset(b"\n".join(lines), "rows", to_train=True)


def test_scaled_rows_are_coded(monkeypatch):
    X = mixed(1000, seed=4)
    text = text_of(X, labels_of(X))
    plain = parse_dataset(text, "rows", scaling=dataset.OWN_RANGES)
    features = plain.scaling.features
    scaling = replace(plain.scaling, features=replace(features, lower=0.0, upper=1.0))
    made = [parse_dataset(text, "rows", scaling=scaling, to_train=one).rows for one in (0, 1)]
    assert made[0].coding is None and made[1].coding is not None
    assert np.array_equal(made[1].features, made[0].dense)


def test_rows_without_features_and_without_codes():
    assert parse_dataset(b"1\n-1\n", "rows", to_train=True).rows.coding is None
    rng = np.random.default_rng(0)
    for X in (rng.normal(size=(50, 20)), np.zeros((0, 20)), np.ones((50, 20))):
        rows = Rows.from_array(X)
        assert coded(rows, 1) is rows
    assert coded_parts([], 20, 1, np.zeros) is None


def test_integers_are_coded_where_codes_are_cheaper_than_bytes():
    X = mixed(300, sizes=(25, 25), n_numeric=1)
    X[:, 0] = np.arange(300) % 50
    rows = Rows.from_array(X)
    assert rows.is_bytes and coded(rows, 1).coding is not None
    pixels = Rows.from_array(np.random.default_rng(0).integers(0, 200, (300, 40)))
    assert pixels.is_bytes and coded(pixels, 1) is pixels


def test_rows_keep_their_form():
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
        assert made.coding == rows.coding
        assert np.array_equal(made.features, changed(floats).dense)
        assert np.array_equal(made.as_floats().dense, made.features)
    assert np.array_equal(both(X)[0].reordered(order[:30]).features, X[order[:30]])
    assert np.array_equal(stacked(rows, floats).dense, np.concatenate((X, X)))
    wide, wide_floats = (one.with_features(9000) for one in (rows, floats))
    assert not wide.is_dense and np.array_equal(wide.values, wide_floats.values)
    assert rows.mean_squared_distance() == floats.mean_squared_distance()
    assert rows.n_features == 60 and rows.row_size == 60


def test_coded_rows_meet_others():
    rows, floats = both(mixed(80))
    for changed in (floats, Rows.from_array(floats.dense + np.float32(0.25))):
        found = []
        for sources in (rows, floats):
            targets, meeting = two_sides(changed, sources, Kernel("rbf", 0.3), 1)
            found.append(meeting.matrix(targets=targets))
        assert np.array_equal(*found)


def test_rows_in_a_file(monkeypatch, tmp_path):
    X = mixed(5000)
    y = labels_of(X)
    wanted = dcsvm.train(X, y, gamma=0.3, threads=2, cache_mb=60)
    monkeypatch.setattr(room, "fits_memory", lambda n_bytes: n_bytes < 100_000)
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    rows = parse_dataset(text_of(X, y), "rows", threads=2, to_train=True).rows
    assert rows.is_mapped and rows.coding is not None
    model, report = train_rows(rows, y, TrainOptions(gamma=0.3, threads=2, cache_mb=60))
    assert report.converged
    assert report.objective == pytest.approx(wanted.report.objective, rel=1e-5)


def test_shapes_are_checked():
    rows = both(mixed(50))[0]
    with pytest.raises(ValueError, match="coded rows do not have the stated shape"):
        _core.Points(replace(rows, dense=np.zeros((50, 3), np.uint8)), 1)
    with pytest.raises(ValueError, match="shape of the coded rows"):
        rows.coding.encode(_core.Points(rows, 1), np.zeros((50, 3), np.uint8), 1)
    with pytest.raises(ValueError, match="of the same features"):
        _core.CodingSearch(7).see(_core.Points(rows, 1), 1)
    with pytest.raises(ValueError, match="not encoded|as they are"):
        points = _core.Points(rows, 1)
        points.encode(1.3, 10**9, 1, True)
        points.features(1)


@pytest.mark.parametrize("isa", ["baseline", "avx2", "avx512"])
def test_other_instruction_sets(isa):
    run_on(isa, __file__)
