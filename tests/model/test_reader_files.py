"""Test model files: they read back bit for bit; svm-predict reads them; damage is an error."""

import os
import re
import shutil
import subprocess
from dataclasses import fields, is_dataclass, replace
from pathlib import Path

import numpy as np
import pytest
from made_models import svm_train_text
from reference import kernels_with

from dcsvm.data.rows import Rows
from dcsvm.data.scaling import Interval, Offsets, Quantiles, Scaling
from dcsvm.kernel.kernels import Kernel
from dcsvm.kernel.sources import partition_of
from dcsvm.model import model as model_module
from dcsvm.model.model import Model
from dcsvm.model.parts import ConvergenceStatus, EarlyModel, ExactModel, Probability
from dcsvm.model.reader import ModelError, load_model
from dcsvm.model.writer import model_text
from dcsvm.problem.option_table import SVM_TYPES

KERNELS = [*kernels_with(0.1, -0.3, 4), *kernels_with(1e-7, 0.1, 4)]
RBF = Kernel("rbf", 1 / 3)
VECTORS = "1 1:0.5 3:-1 \n0.5 2:2 \n-1.5 \n"
LIBSVM_TEXT = svm_train_text(VECTORS)
# of versions 4 and later of the section of dcsvm
WRITTEN = Path(__file__).resolve().parents[1] / "fuzz" / "corpus" / "model"


def rows_of(X, sparse):
    rows = Rows.from_array(X)
    return rows if rows.is_dense != sparse else rows.in_form_of(other_form(rows), 1)


def other_form(rows):
    if rows.is_dense:
        return Rows(0, rows.n_features, indptr=np.zeros(1, np.int64))
    return Rows(0, rows.n_features, dense=np.empty((0, rows.n_features), np.float32))


def bits(*shape, seed=0):
    """Return finite float32 of any size, denormal ones included; some are zero."""
    rng = np.random.default_rng(seed)
    values = rng.integers(0, 2**32, shape, dtype=np.uint32).view(np.float32)
    values[~np.isfinite(values)] = 1.5
    return np.where(rng.random(shape) < 0.3, np.float32(0), values)


def made_model(
    kernel=RBF,
    *,
    sparse=False,
    exact=True,
    early=True,
    seed=0,
    labels=(1.0, -1.0),
    svm_type="c_svc",
    probability=False,
):
    """Make a model with random numbers: 9 exact support vectors, 12 early ones in 3 clusters."""
    rng = np.random.default_rng(seed)
    X = bits(40, 6, seed=seed)
    X[4] = 0
    rows = rows_of(X, sparse)
    exact_part = early_part = None
    labels = np.array(labels if svm_type.endswith("svc") else ())
    k = max(len(labels), 2)
    n_pairs = k * (k - 1) // 2
    if exact:
        numbers = rng.choice(40, 9, replace=False)
        coef = rng.normal(size=(k - 1, 9)) * 10.0 ** rng.integers(-300, 300, (k - 1, 9))
        n_sv = np.bincount(rng.integers(0, k, 9), minlength=k) if len(labels) else None
        rho = np.round(rng.normal(size=n_pairs) * 3, rng.integers(0, 9))
        exact_part = ExactModel(rows.take(numbers), coef, rho, n_sv, numbers)
    if early:
        numbers = rng.choice(40, 8, replace=False)
        numbers = np.concatenate((numbers, rng.choice(numbers[:5], 4, replace=False)))
        cluster = np.repeat(np.arange(3, dtype=np.int32), [5, 3, 4])  # some rows twice
        class_ = rng.integers(0, k, 12).astype(np.int32) if len(labels) else None
        coarse = np.sort(np.concatenate(([0, 1], rng.integers(0, 2, 2))))
        fine = np.sort(np.concatenate(([1, 2], rng.integers(1, 3, 3))))  # of the second cluster
        n_parts, blend = np.array([2, 1, 2]), rng.choice([0.0, 0.37])
        sample = rows.take(rng.choice(40, 9))
        rho = rng.normal(size=(3, n_pairs))
        rho[1, rng.random(n_pairs) < 0.5] = np.nan
        early_part = EarlyModel(
            level=2,
            partition=partition_of(Kernel("rbf", 0.1), sample, n_parts, [coarse, fine], blend),
            cluster=cluster,
            class_=class_,
            rows=rows.take(numbers),
            dual_coef=rng.normal(size=(k - 1, 12)),
            rho=rho,
            row_numbers=numbers,
        )
    said = None
    if probability and svm_type != "one_class":
        A, B = rng.normal(size=(2, n_pairs))
        said = Probability(A, B if len(labels) else None)
    elif probability:
        said = Probability(np.sort(rng.normal(size=10)))
    return Model(kernel, labels, exact_part, early_part, svm_type, said)


def require_same(a, b):
    """Require the same bits in two models, or parts of them.

    -0.0 and 0.0 are the same feature value: neither is stored.
    """
    assert (a is None) == (b is None)
    if isinstance(a, np.ndarray):
        assert (a.dtype, a.shape) == (b.dtype, b.shape)
        a, b = (one + np.float32(0) if one.dtype == np.float32 else one for one in (a, b))
        assert a.tobytes() == b.tobytes()
    elif is_dataclass(a):
        for field in fields(a):
            if field.name != "report":
                require_same(getattr(a, field.name), getattr(b, field.name))
    elif isinstance(a, tuple):
        for one, other in zip(a, b, strict=True):
            require_same(one, other)
    else:
        assert a == b


# --------------------------------------------------------------------------------- bit for bit


@pytest.mark.parametrize("kernel", KERNELS, ids=lambda kernel: kernel.name)
@pytest.mark.parametrize("sparse", [False, True], ids=["dense", "sparse"])
@pytest.mark.parametrize(
    ("exact", "early"), [(True, True), (True, False), (False, True)], ids=["both", "exact", "early"]
)
@pytest.mark.parametrize("seed", range(3))
def test_a_saved_model_comes_back_bit_for_bit(tmp_path, seed, exact, early, sparse, kernel):
    model = made_model(kernel, sparse=sparse, exact=exact, early=early, seed=seed)
    path = tmp_path / "a.model"
    model.save(path)
    loaded = load_model(path)
    require_same(model, loaded)
    loaded.save(tmp_path / "b.model")
    assert path.read_bytes() == (tmp_path / "b.model").read_bytes()


@pytest.mark.parametrize("labels", [(1.0, 2.0), (-1.5, 1e-300), (1e300, -0.25), (2.0**60, 3.0)])
def test_labels_come_back_bit_for_bit(tmp_path, labels):
    made_model(labels=labels).save(tmp_path / "a.model")
    assert load_model(tmp_path / "a.model").labels.tolist() == list(labels)


@pytest.mark.parametrize("svm_type", SVM_TYPES)
@pytest.mark.parametrize(
    "labels", [(3.0, 1.0), (3.0, 1.0, -2.0), (5.0, 4.0, 3.5, 2.0, 1.0)], ids=len
)
@pytest.mark.parametrize("sparse", [False, True], ids=["dense", "sparse"])
@pytest.mark.parametrize(
    ("exact", "early"), [(True, True), (True, False), (False, True)], ids=["both", "exact", "early"]
)
def test_every_type_comes_back_bit_for_bit(tmp_path, exact, early, sparse, labels, svm_type):
    for probability in (False, True):
        how = {"labels": labels, "svm_type": svm_type, "probability": probability}
        model = made_model(sparse=sparse, exact=exact, early=early, **how)
        model.save(tmp_path / "a.model")
        require_same(model, load_model(tmp_path / "a.model"))


def test_a_trained_model_predicts_the_same_bits_after_loading(tmp_path, trained, wavy_test):
    model, _ = trained
    model.save(tmp_path / "a.model")
    loaded = load_model(tmp_path / "a.model", threads=2)
    require_same(model, loaded)
    for method in ("exact", "early"):
        values = loaded.decision_function(wavy_test[0], method=method)
        assert values.tobytes() == model.decision_function(wavy_test[0], method=method).tobytes()


@pytest.mark.parametrize("labels", [(4.0,), (1.0, -1.0), (2.0, 3.0, 1.0)], ids=len)
def test_a_model_without_support_vectors_is_saved(tmp_path, labels):
    k = len(labels)
    none = Rows(0, 3, dense=np.empty((0, 3), np.float32))
    exact = ExactModel(none, np.empty((k - 1, 0)), np.zeros(k * (k - 1) // 2),
                       np.zeros(k, np.int64), np.empty(0, np.int64))  # fmt: skip
    Model(RBF, np.array(labels), exact, None).save(tmp_path / "a.model")
    loaded = load_model(tmp_path / "a.model")
    assert loaded.predict(np.ones((2, 3))).tolist() == [labels[-1]] * 2


def test_a_model_of_rows_without_features_is_saved(tmp_path):
    rows = Rows(2, 0, dense=np.empty((2, 0), np.float32))
    exact = ExactModel(rows, np.array([[0.1, -0.2]]), np.zeros(1), np.ones(2, int), np.arange(2))
    Model(RBF, np.array([1.0, -1.0]), exact, None).save(tmp_path / "a.model")
    assert load_model(tmp_path / "a.model").exact.dual_coef.tolist() == [[0.1, -0.2]]


SCALINGS = [
    Interval(-1.0, 1.0, np.array([0.0, 0.5]), np.array([1.0, 3.0])),
    Quantiles(np.array([0, 3, 5]), np.array([0.0, 0.5, 1.0, 0.1, 9.0]), np.arange(5) / 7.0),
    Offsets(np.array([0.1, 20180101.0])),
]


@pytest.mark.parametrize(
    ("exact", "early"), [(True, True), (True, False), (False, True)], ids=["both", "exact", "early"]
)
@pytest.mark.parametrize("weights", [None, np.array([0.5, 2.0])], ids=["plain", "weighted"])
@pytest.mark.parametrize("features", SCALINGS, ids=["minmax", "quantile", "offsets"])
def test_a_scaling_comes_back(tmp_path, exact, early, features, weights):
    plain = made_model(exact=exact, early=early)
    scaling = Scaling("a", np.array([0, 3]), features, None, weights=weights)
    model = replace(plain, scaling=scaling)
    model.save(tmp_path / "a.model")
    found = load_model(tmp_path / "a.model").scaling
    assert np.array_equal(found.columns, scaling.columns) and found.first_index == 1
    values = np.array([-5.0, 0.1, 0.5, 2.0, 9.0])
    for j in (0, 1):
        which = np.full(5, j)
        assert np.array_equal(features.scaled_at(which, values),
                              found.features.scaled_at(which, values))  # fmt: skip
    assert (found.weights is None) == (weights is None)
    assert weights is None or np.array_equal(found.weights, weights)
    if model.scaling.is_shift:  # vectors are in the units of the data
        return
    lines = text_of(model).splitlines(keepends=True)
    assert b"".join(one for one in lines if not one.startswith(b"scaling")) == text_of(plain)


@pytest.mark.parametrize(
    ("kind", "key", "text", "reason"),
    [
        (0, "scaling", "other", "scaling must be minmax, quantile or shift, got 'other'"),
        (0, "scaling_columns", "3 3", "scaling_columns must be ascending indices of features"),
        (0, "scaling_minima", "1.0", "scaling_minima must have 2 numbers, got 1"),
        (0, "scaling_maxima", "0.0 nan", "scaling_maxima"),
        (0, "scaling_maxima", "0.0 0.5", "a minimum of the scaling is not below its maximum"),
        (0, "scaling_limits", "1.0 0.0", "a minimum of the scaling is not below its maximum"),
        (0, "scaling_weights", "1.0 -1.0", "scaling_weights must be at least 0"),
        (1, "scaling_n_knots", "2 2", "scaling_n_knots must be at least 2 each, 5 in all"),
        (1, "scaling_n_knots", "1 4", "scaling_n_knots must be at least 2 each, 5 in all"),
        (1, "scaling_knots", "0.0 0.0 0.1 1.0 2.0", "scaling_levels of a column must ascend"),
        (1, "scaling_levels", "0.0 9.0 0.1 1.0 2.0", "scaling_levels of a column must ascend"),
        (1, "scaling_levels", "0.0", "scaling_levels must have 5 numbers, got 1"),
        (2, "scaling_minima", "0.0", "scaling_minima must have 2 numbers, got 1"),
        (2, "scaling_columns", "1 9", "scaling_columns must be ascending indices of features"),
    ],
)
def test_a_scaling_that_cannot_be_is_an_error(tmp_path, kind, key, text, reason):
    scaling = Scaling("a", np.array([0, 3]), SCALINGS[kind], None, weights=np.ones(2))
    lines = text_of(replace(made_model(), scaling=scaling)).decode().splitlines()
    lines = [f"{key} {text}" if one.split()[0] == key else one for one in lines]
    (tmp_path / "a.model").write_text("\n".join([*lines, ""]))
    with pytest.raises(ModelError, match=re.escape(reason)) as caught:
        load_model(tmp_path / "a.model")
    line = int(str(caught.value).split("a.model:")[1].split(":")[0])
    assert lines[line - 1].startswith("scaling")
    lines = [one for one in lines if not one.startswith("scaling ")]
    (tmp_path / "a.model").write_text("\n".join([*lines, ""]))
    with pytest.raises(ModelError, match="the key scaling is missing"):
        load_model(tmp_path / "a.model")


@pytest.mark.parametrize("svm_type", ["c_svc", "epsilon_svr"])
def test_the_format_of_libsvm_has_no_place_for_what_is_ours(tmp_path, svm_type):
    model = replace(
        made_model(svm_type=svm_type), scaling=Scaling("a", np.array([0, 3]), SCALINGS[0], None)
    )
    model.save(tmp_path / "a.model", format="libsvm")
    assert not re.search(rb"scaling|dcsvm", (tmp_path / "a.model").read_bytes())
    with pytest.raises(ValueError, match="format must be one of dcsvm, libsvm, got 'x'"):
        model.save(tmp_path / "a.model", format="x")


# --------------------------------------------------------------------------------------- LIBSVM


def test_a_model_written_by_libsvm_is_read(tmp_path):
    path = tmp_path / "libsvm.model"
    for text in (LIBSVM_TEXT, LIBSVM_TEXT.replace("\n", "\r\n"), LIBSVM_TEXT + "\n"):
        path.write_text(text, newline="")
        model = load_model(path)
        assert model.kernel == Kernel("rbf", 0.5)
        assert model.labels.tolist() == [1.0, -1.0]
        assert model.early is None
        assert model.exact.row_numbers is None
        X = np.array([[0.5, 0, -1], [0, 2, 0], [0, 0, 0]])
        squared = ((X[:, None] - X) ** 2).sum(axis=2)
        expected = np.exp(-0.5 * squared) @ [1, 0.5, -1.5] + 0.25
        assert np.allclose(model.decision_function(X), expected, atol=1e-6)
        model.save(tmp_path / "again.model")
        same = load_model(tmp_path / "again.model")
        assert same.exact.dual_coef.tobytes() == model.exact.dual_coef.tobytes()
        require_same(same.exact.rows, model.exact.rows)


def test_the_beginning_of_a_model_is_libsvms(tmp_path):
    model = made_model()
    model.exact.rho[0] = 0.0
    model.save(tmp_path / "a.model")
    lines = (tmp_path / "a.model").read_text().splitlines()
    assert lines[:3] == ["svm_type c_svc", "kernel_type rbf", f"gamma {1 / 3!r}"]
    assert lines[3:6] == ["nr_class 2", "total_sv 9", "rho 0"]
    assert lines[6] == "label 1 -1"
    assert lines[8] == "SV dcsvm_section"
    assert lines[18] == "dcsvm_section 4"


@pytest.mark.parametrize(
    "worth", [ConvergenceStatus(True, 1e-4, None), ConvergenceStatus(False, 0.1, -0.25), None]
)
def test_what_a_solution_is_worth_comes_back(tmp_path, worth):
    model = made_model()
    model = replace(model, exact=replace(model.exact, status=worth))
    model.save(tmp_path / "again.model")
    assert load_model(tmp_path / "again.model").exact.status == worth


@pytest.mark.parametrize("exact", [True, False])
def test_features_of_a_row_are_written_once(exact):
    model = made_model(exact=exact)
    lines = text_of(model).decode().split("EARLY_SV\n")[-1].splitlines()
    early = zip(model.early.row_numbers, lines, strict=True)
    written = [number for number, line in early if ":" in line]
    others = set(model.early.row_numbers) - set(model.exact.row_numbers if exact else ())
    assert len(written) == len(set(written)) and set(written) <= others


@pytest.mark.skipif(not shutil.which("svm-predict"), reason="LIBSVM is not installed")
def test_svm_predict_refuses_an_early_model(tmp_path, write_libsvm):
    made_model(exact=False).save(tmp_path / "a.model")
    test = write_libsvm(np.ones((2, 3)), [1, 1])
    command = ["svm-predict", str(test), str(tmp_path / "a.model"), str(tmp_path / "out.txt")]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode != 0
    assert not (tmp_path / "out.txt").exists() or not (tmp_path / "out.txt").read_text()


# -------------------------------------------------------------------------------------- damage


def text_of(model):
    return b"".join(model_text(model))


MANY = {"nr_class": 99, "label": " ".join(map(str, range(99))), "rho": "0 " * 4851}
DAMAGED = {  # text or changed keys, position of the error, its message
    "empty": ("", "", "the file is empty"),
    "not a model": ("+1 1:0.5\n", "1", "this is not a model file"),
    "svm type": ({"svm_type": "d_svc"}, "1:", "d_svc is not supported"),
    "kernel": ({"kernel_type": "chi2"}, "2:", "chi2 is not supported"),
    "gamma": ({"gamma": None}, "8", "the key gamma is missing"),
    "gamma word": ({"gamma": "x"}, "3:", "gamma must be one float, got 'x'"),
    "gamma sign": ({"gamma": -2}, "3:", "gamma must be at least 0"),
    "rho": ({"rho": ""}, "6:", "rho must have 1 numbers, got 0"),
    "labels": ({"label": "1 2 3"}, "7:", "label must have 2 numbers, got 3"),
    "labels twice": ({"label": "1 1"}, "7:", "duplicate label"),
    "no classes": ({"nr_class": 0}, "7:", "label must have 0 numbers, got 2"),
    "three classes": ({"nr_class": 3, "label": "2 1 -1"}, "6:", "rho must have 3 numbers, got 1"),
    "one class": ({"nr_class": 1, "label": 1, "rho": "", "nr_sv": 3}, "9",
                  "a model of one class cannot have support vectors"),
    "many classes": (MANY | {"nr_sv": "2 1" + " 0" * 97}, "9",
                     "3 lines are too short for 98 numbers each"),
    "sizes": ({"nr_sv": "1 1"}, "8:", "sum of nr_sv must be total_sv"),
    "sizes beyond": ({"nr_sv": "9e15 1"}, "8:", "sum of nr_sv"),
    "no sizes": ({"nr_sv": None}, "8", "the key nr_sv is missing"),
    "probability": ({"probA": 1}, "10", "key probB is missing"),
    "probabilities": ({"probA": "1 2"}, "9:", "must have 1 numbers, got 2"),
    "underscore": ({"rho": "1_0"}, "6:", "rho must be numbers, got '1_0'"),
    "key": ({"rhoo": 1}, "9", "unknown key rhoo"),
    "no labels": ({"label": None}, "8", "the key label is missing"),
    "count": ({"total_sv": 4, "nr_sv": "3 1"}, "9", "expected 4 lines, got 3"),
    "count sign": ({"total_sv": -3}, "5:", "total_sv must be from 0 to 2147483646, got -3"),
    "no SV": (LIBSVM_TEXT.partition("SV\n")[0], "8", "the file ends before the line SV"),
    "index": (LIBSVM_TEXT.replace("3:-1", "0:-1"), "10:9", "."),
    "value": (LIBSVM_TEXT.replace("2:2", "2:nan"), "11:7", "."),
    "coefficient": (LIBSVM_TEXT.replace("\n0.5 2", "\nhalf 2"), "11:1", "coefficient"),
    "blank row": (LIBSVM_TEXT.replace("-1.5 \n", "\n"), "12", "blank line"),
    "blank": (LIBSVM_TEXT.replace("gamma 0.5", ""), "3", "blank line"),
}  # fmt: skip


@pytest.mark.parametrize("kind", DAMAGED)
def test_a_damaged_model_is_refused_with_its_place(tmp_path, kind):
    text, place, message = DAMAGED[kind]
    path = tmp_path / "bad.model"
    path.write_text(text if isinstance(text, str) else svm_train_text(VECTORS, **text))
    with pytest.raises(ModelError, match=message) as caught:
        load_model(path)
    assert str(caught.value).startswith(f"{path}:{place}")


@pytest.mark.parametrize("format", ["dcsvm", "libsvm"])
@pytest.mark.parametrize(
    "changes", [{}, {"early": False}, {"exact": False}, {"labels": (3, 1, -2)}]
)
def test_a_model_that_is_cut_off_anywhere_is_refused(tmp_path, changes, format):
    model, path = made_model(probability=True, **changes), tmp_path / "cut.model"
    if format == "libsvm" and model.exact is None:
        return
    model.save(path, format)
    text = path.read_bytes()
    ends = [k + shift for k, byte in enumerate(text) if byte == ord("\n") for shift in (-1, 0, 1)]
    for end in sorted({*ends, *range(0, len(text), 29), *range(len(text) - 60, len(text))}):
        if 0 < end < len(text):
            path.write_bytes(text[:end])
            with pytest.raises(ModelError, match=r"cut\.model:\d+: "):
                load_model(path)


LINE_TOO_MANY = "total_sv is 3, but there is a further line"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (LIBSVM_TEXT + "0.5 2:2 \n", f":13: {LINE_TOO_MANY}"),
        (LIBSVM_TEXT + "dcsvm_sect\n", f":13: {LINE_TOO_MANY}"),
        (LIBSVM_TEXT.replace("gamma 0.5", "gamma 0.5\ngamma 0.5"), ":4: duplicate key gamma"),
        (LIBSVM_TEXT.replace("SV\n", "SV dcsvm_section\n"), ":12: the file is cut off before"),
        (LIBSVM_TEXT[:-1], ":12: the file is cut off: its last line does not end"),
    ],
)
def test_what_svm_train_does_not_write_is_refused(tmp_path, text, message):
    (tmp_path / "a.model").write_text(text)
    with pytest.raises(ModelError, match="a.model" + message):
        load_model(tmp_path / "a.model")


def test_a_line_after_the_early_part_is_refused(tmp_path):
    text = text_of(made_model())
    (tmp_path / "a.model").write_bytes(text + text.splitlines(keepends=True)[-1])
    with pytest.raises(ModelError, match="the model ends before this line"):
        load_model(tmp_path / "a.model")


def test_a_section_of_another_version_is_refused(tmp_path):
    for model, key in (
        (made_model(), b"dcsvm_section"),
        (made_model(exact=False), b"dcsvm_early_model"),
    ):
        path = tmp_path / "new.model"
        path.write_bytes(text_of(model).replace(key + b" 4", key + b" 5"))
        with pytest.raises(ModelError, match="version 5 is not 4; a newer dcsvm wrote it"):
            load_model(path)
        for old in (b"2", b"3"):
            path.write_bytes(text_of(model).replace(key + b" 4", key + b" " + old))
            with pytest.raises(
                ModelError, match="earlier dcsvm wrote this file: train the model again"
            ):
                load_model(path)


# -------------------------------------------------------------------------------------- saving


def test_an_interrupted_save_leaves_the_old_file(tmp_path, monkeypatch):
    path = tmp_path / "a.model"
    made_model().save(path)
    before = path.read_bytes()

    def half(model, format, threads):
        yield b"svm_type c_svc\n"
        raise KeyboardInterrupt

    monkeypatch.setattr(model_module, "model_text", half)
    with pytest.raises(KeyboardInterrupt):
        made_model(seed=1).save(path)
    assert path.read_bytes() == before
    assert os.listdir(tmp_path) == ["a.model"]


def test_a_link_is_followed_and_the_mode_is_that_of_any_new_file(tmp_path):
    real = tmp_path / "folder" / "real.model"
    real.parent.mkdir()
    (tmp_path / "plain").touch()
    (tmp_path / "link.model").symlink_to(real)
    made_model().save(tmp_path / "link.model")
    assert (tmp_path / "link.model").is_symlink()
    assert real.stat().st_mode == (tmp_path / "plain").stat().st_mode
    require_same(load_model(real), made_model())


def test_a_folder_that_does_not_exist_is_an_os_error(tmp_path):
    with pytest.raises(OSError, match="No such file"):
        made_model().save(tmp_path / "nowhere" / "a.model")


@pytest.mark.parametrize("path", sorted(WRITTEN.iterdir()), ids=lambda path: path.name)
def test_a_model_of_the_first_release_is_read(path):
    """Later releases read it, too, as docs/stability.md promises: do not write these files anew."""
    model = load_model(path)
    assert model.exact is not None or model.early is not None
