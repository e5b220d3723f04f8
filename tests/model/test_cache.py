"""The cache beside a model file."""

import os
from dataclasses import fields

import numpy as np
import pytest
from made_models import made_model
from reference import csr_rows, dense_rows

import dcsvm
from dcsvm.data.rows import Rows
from dcsvm.model import file as model_file
from dcsvm.model.cache import SUFFIX, read_cache
from dcsvm.model.file import load_model


def same(a, b):
    """Whether all that two models hold is the same bits, of the same types."""
    if isinstance(a, np.ndarray):
        return a.dtype == b.dtype and np.array_equal(a, b, equal_nan=a.dtype.kind == "f")
    if isinstance(a, tuple):
        return len(a) == len(b) and all(map(same, a, b))
    if hasattr(a, "__dataclass_fields__"):
        return type(a) is type(b) and all(
            same(getattr(a, one.name), getattr(b, one.name)) for one in fields(a)
        )
    return type(a) is type(b) and a == b


def cached(path):
    """The model from its text, which leaves a cache, and the one from that."""
    first = load_model(path, cache=True)
    return first, read_cache(os.fspath(path))


@pytest.mark.parametrize("form", [dense_rows, csr_rows])
@pytest.mark.parametrize("k", [2, 4])
def test_a_cache_holds_all_of_a_model(k, form, tmp_path):
    made_model(k, form=form).save(tmp_path / "m")
    first, again = cached(tmp_path / "m")
    assert same(first, again)


def test_models_of_bytes_of_regressions_and_of_precomputed_kernels(tmp_path):
    rng = np.random.default_rng(0)
    X = rng.integers(0, 256, (300, 70)).astype(np.uint8)
    y = np.where(X[:, :5].sum(axis=1) > 600, 1, -1)
    K = (X.astype(np.float32) @ X.T) / 1e6
    for name, model in (
        ("bytes", dcsvm.train(X, y, gamma=1e-6, levels=1, branching=2)),
        ("svr", dcsvm.train(X, y * 0.5, svm_type="epsilon_svr", gamma=1e-6, levels=0)),
        ("kernel", dcsvm.train(K, y, kernel="precomputed", levels=0)),
    ):
        model.save(tmp_path / name)
        first, again = cached(tmp_path / name)
        assert same(first, again), name
        rows = (K if name == "kernel" else X)[:30]
        assert np.array_equal(again.predict(rows), first.predict(rows))


@pytest.mark.parametrize("method", ["exact", "early"])
def test_a_model_from_a_cache_predicts_the_same(trained, wavy_test, method, tmp_path):
    trained[0].save(tmp_path / "m")
    model = cached(tmp_path / "m")[1]
    for X in (wavy_test[0], wavy_test[0][:1]):
        expected = trained[0].decision_function(X, method=method)
        assert np.array_equal(model.decision_function(X, method=method), expected)
    model.save(tmp_path / "again")
    assert (tmp_path / "again").read_bytes() == (tmp_path / "m").read_bytes()


def test_a_cache_of_another_text_is_replaced(tmp_path):
    path = tmp_path / "m"
    made_model(2).save(path)
    load_model(path, cache=True)
    made_model(2, seed=1).save(path)
    assert read_cache(os.fspath(path)) is None
    first, again = cached(path)
    assert same(first, again) and same(first, load_model(path))
    time = os.stat(path)
    text = path.read_bytes()
    path.write_bytes(text.replace(b"gamma 0.5", b"gamma 0.6"))  # as long, and at the same time
    os.utime(path, ns=(time.st_atime_ns, time.st_mtime_ns))
    assert load_model(path, cache=True).kernel.gamma == 0.6


def test_a_damaged_cache_is_none(tmp_path):
    path, rng = tmp_path / "m", np.random.default_rng(0)
    made_model(3).save(path)
    expected = load_model(path, cache=True)
    cache = tmp_path / ("m" + SUFFIX)
    data = cache.read_bytes()
    for part in (
        b"",
        data[:100],
        data[:-1],
        data[1:],
        data + b"1",
        data.replace(b"place", b"plaec"),
    ):
        cache.write_bytes(part)
        assert same(load_model(path, cache=True), expected)
        assert cache.read_bytes() == data
    for place in rng.choice(len(data), min(300, len(data)), replace=False):
        damaged = bytearray(data)
        damaged[place] ^= 1 << rng.integers(8)
        cache.write_bytes(damaged)
        assert read_cache(os.fspath(path)) is None


def test_no_cache_without_being_asked_or_where_it_cannot_be(tmp_path, monkeypatch):
    path = tmp_path / "m"
    made_model(2).save(path)
    load_model(path)
    assert os.listdir(tmp_path) == ["m"]
    (tmp_path / "m.cache").mkdir()
    assert same(load_model(path, cache=True), load_model(path))
    (tmp_path / "m.cache").rmdir()

    def full(*_given, **_more):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("dcsvm.model.cache.write_beside", full)
    assert same(load_model(path, cache=True), load_model(path))
    assert os.listdir(tmp_path) == ["m"]


def test_a_text_that_changes_while_it_is_read_has_no_cache(tmp_path, monkeypatch):
    path = tmp_path / "m"
    made_model(2).save(path)
    read = model_file.read_bytes

    def changed(name):
        text = read(name)
        made_model(2, seed=1).save(path)
        return text

    monkeypatch.setattr(model_file, "read_bytes", changed)
    load_model(path, cache=True)
    assert os.listdir(tmp_path) == ["m"]


def test_a_cache_has_the_mode_of_its_model(tmp_path):
    path = tmp_path / "m"
    made_model(2).save(path)
    path.chmod(0o600)
    load_model(path, cache=True)
    assert os.stat(tmp_path / "m.cache").st_mode & 0o777 == 0o600


def test_a_wrong_model_leaves_no_cache(tmp_path):
    (tmp_path / "m").write_text("svm_type nothing\n")
    with pytest.raises(ValueError, match="the file ends before the line SV"):
        load_model(tmp_path / "m", cache=True)
    with pytest.raises(ValueError, match="no such file"):
        load_model(tmp_path / "none", cache=True)
    assert os.listdir(tmp_path) == ["m"]


def test_rows_of_bytes_keep_what_is_behind_their_features(tmp_path):
    X = np.arange(300 * 67, dtype=np.uint8).reshape(300, 67)
    model = dcsvm.train(X, np.arange(300) % 2, gamma=1e-6, levels=0)
    model.save(tmp_path / "m")
    rows = cached(tmp_path / "m")[1].exact.rows
    assert isinstance(rows, Rows) and same(
        rows.stored, load_model(tmp_path / "m").exact.rows.stored
    )
