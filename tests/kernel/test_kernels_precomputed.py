"""Test precomputed kernels: tiles, files, models, and training against the original kernel."""

import re

import numpy as np
import pytest
from click.testing import CliRunner
from made_models import svm_train_text
from reference import kernel_values, labelled_rows, libsvm
from scipy.sparse import csr_array

import dcsvm
from dcsvm import _core
from dcsvm.cli.predict import main as predict_command
from dcsvm.cli.train import main as train_command
from dcsvm.data.dataset import Dataset
from dcsvm.data.files import DataError
from dcsvm.data.reading import Encoding
from dcsvm.data.rows import Rows
from dcsvm.data.used_columns import data_warnings
from dcsvm.kernel.kernel_rows import KernelRows, two_sides
from dcsvm.kernel.kernels import Kernel
from dcsvm.model.reader import ModelError, load_model
from dcsvm.training.engine import BLOCK, training_matrix

RBF = ("rbf", 2.0, 0.0, 3)
FAST = {"C": 4.0, "threads": 2, "cache_mb": 50}


def gram(X, Z):
    return kernel_values(RBF, X, Z).astype(np.float32)


@pytest.fixture(scope="module")
def problem():
    """Return training and test rows with labels, and their kernel matrices."""
    X, y = labelled_rows(900, 4, seed=5)
    T, truth = labelled_rows(200, 4, seed=6)
    return X, y, T, truth, gram(X, X), gram(T, X)


@pytest.fixture(scope="module")
def model(problem):
    """Train a model with an exact and an early part."""
    _, y, _, _, K, _ = problem
    return dcsvm.train(K, y, kernel="precomputed", levels=1, **FAST)


def write_kernel(path, K, labels, serials):
    """Write a precomputed kernel as LIBSVM text, every number with all its digits."""
    with open(path, "w", encoding="ascii") as file:
        for values, label, serial in zip(K, labels, serials, strict=True):
            pairs = " ".join(f"{j + 1}:{float(v)!r}" for j, v in enumerate(values))
            file.write(f"{label:g} 0:{serial} {pairs}\n")


def matrix_rows(n, n_columns, seed=0):
    """Return rows of distinct random values, each with a random column."""
    rng = np.random.default_rng(seed)
    dense = rng.permutation(n * n_columns).reshape(n, n_columns).astype(np.float32)
    columns = rng.choice(n_columns, n, replace=n > n_columns).astype(np.int32)
    return Rows(n, n_columns, dense=dense, columns=columns)


# ---------------------------------------------------------------------------------------- tiles


@pytest.mark.parametrize("n", [1, 31, 33, 200, 300])
@pytest.mark.parametrize("threads", [1, 3])
def test_a_tile_has_the_entry_of_the_row_at_the_others_column(n, threads):
    rows = matrix_rows(n, 257)
    data = KernelRows(rows, Kernel("precomputed"), threads, coded=True)
    assert data.setup.form == "precomputed"
    expected = rows.dense[:, rows.columns]
    some = np.arange(0, n, 2, dtype=np.int32)[::-1].copy()
    values = _core.kernel_matrix(data.setup, data.points, some, data.points, None, threads)
    assert np.array_equal(values, expected[some])
    weights = np.random.default_rng(1).normal(size=len(some))
    for double in (False, True):
        args = (data.points, None, data.points, some, weights, double, threads)
        product = _core.kernel_product(data.setup, *args)[:, 0]
        np.testing.assert_allclose(product, weights @ expected[some].astype(float), rtol=1e-11)


@pytest.mark.parametrize("n", [1, 40, 300])
def test_rows_without_values_meet_those_that_have_them(n):
    sources, targets = matrix_rows(n, 150), matrix_rows(70, 150, seed=1)
    targets = Rows(70, 150, dense=targets.dense)
    a, b = two_sides(targets, sources.take_for_model(np.arange(n)), Kernel("precomputed"), 2)
    expected = targets.dense[:, sources.columns]
    assert np.array_equal(_core.kernel_matrix(b.setup, a.points, None, b.points, None, 2), expected)
    assert np.array_equal(
        _core.kernel_matrix(b.setup, b.points, None, a.points, None, 2), expected.T
    )
    weights = np.ones(n)
    for double in (False, True):
        product = _core.kernel_product(b.setup, a.points, None, b.points, None, weights, double, 2)
        np.testing.assert_allclose(product[:, 0], expected.astype(float).sum(axis=1), rtol=1e-12)


def test_the_core_refuses_what_has_no_values():
    rows = matrix_rows(10, 10)
    kernel = Kernel("precomputed")
    columns = KernelRows(rows.take_for_model(np.arange(10)), kernel, 1)
    dense = KernelRows(Rows(10, 10, dense=rows.dense), kernel, 1)
    wide = KernelRows(matrix_rows(10, 12), kernel, 1)
    csr = Rows.from_array(csr_array((10, 100), dtype=np.float32))
    sparse = _core.Points(csr, 1)
    for a, b, message in (
        (columns, columns, "neither side has"),
        (dense, dense, "neither side has"),
        (wide, columns, "12 and 10"),
    ):
        with pytest.raises(ValueError, match=message):
            _core.kernel_matrix(a.setup, a.points, None, b.points, None, 1)
    with pytest.raises(ValueError, match="neither side has"):
        _core.kernel_matrix(columns.setup, sparse, None, sparse, None, 1)
    with pytest.raises(ValueError, match="without features"):
        KernelRows(columns.rows, Kernel("linear"), 1)
    with pytest.raises(ValueError, match="form"):
        _core.Setup(kernel, wide.points, 1)
    with pytest.raises(ValueError, match="form"):
        _core.Setup(Kernel("linear"), wide.points, 4)
    for wrong in ([-1, 0], [0, 10]):
        bad = Rows(2, 10, dense=rows.dense[:2], columns=np.array(wrong, np.int32))
        with pytest.raises(ValueError, match="column number"):
            _core.Points(bad, 1)


# ------------------------------------------------------------------------------------- training


@pytest.mark.parametrize("levels", [0, 1])
def test_training_gives_the_model_of_the_kernel_it_was_computed_of(problem, levels):
    X, y, T, _, K, K_test = problem
    options = {**FAST, "levels": levels, "tolerance": 1e-5}
    expected = dcsvm.train(X, y, gamma=RBF[1], **options)
    found = dcsvm.train(K, y, kernel="precomputed", **options)
    assert found.report.converged and found.report.duality_gap is not None
    assert found.report.objective == pytest.approx(expected.report.objective, rel=1e-6)
    ours, theirs = found.decision_function(K_test), expected.decision_function(T)
    assert np.max(np.abs(ours - theirs)) < 1e-3
    if levels:
        early = found.predict(K_test, method="early")
        assert np.mean(early == expected.predict(T, method="early")) > 0.9


def test_the_clusters_of_a_precomputed_kernel_are_those_of_its_points():
    rng = np.random.default_rng(0)
    X = np.concatenate([rng.normal(c, 0.3, (300, 2)) for c in (-3, 3)]).astype(np.float32)
    y = np.where(X[:, 1] > np.repeat([-3, 3], 300), 1.0, -1.0)
    K = kernel_values(("rbf", 0.1, 0, 3), X, X)
    found = dcsvm.train(K, y, kernel="precomputed", levels=1, branching=2, **FAST)
    cluster = found.early.partition.assign(Rows.from_array(K), 1)
    assert len(set(cluster[:300])) == len(set(cluster[300:])) == 1 and cluster[0] != cluster[-1]
    assert np.array_equal(found.predict(K, method="early"), found.predict(K))


def test_a_sparse_matrix_is_as_good_as_a_dense_one(problem):
    _, y, _, _, K, K_test = problem
    K, K_test = (np.where(values < 0.5, 0, values) for values in (K, K_test))
    options = {**FAST, "levels": 0}
    dense = dcsvm.train(K, y, kernel="precomputed", **options)
    sparse = dcsvm.train(csr_array(K), y, kernel="precomputed", **options)
    assert np.array_equal(dense.exact.dual_coef[0], sparse.exact.dual_coef[0])
    assert np.array_equal(
        dense.decision_function(K_test), sparse.decision_function(csr_array(K_test))
    )


def test_a_matrix_that_is_not_square_is_refused():
    with pytest.raises(ValueError, match="must be square, got 4 rows and 3 columns"):
        dcsvm.train(np.ones((4, 3)), [1, -1, 1, -1], kernel="precomputed")


@pytest.mark.parametrize("place", [(1, 0), (3, 1500), (1300, 1200), (1499, 0)])
def test_a_matrix_that_is_not_symmetric_is_refused(place):
    n = BLOCK + 500
    K = np.eye(n, dtype=np.float32) + 0.5
    K[place] += 0.01
    rows = Rows.from_array(K)
    with pytest.raises(ValueError, match="matrix is not symmetric") as caught:
        training_matrix(rows, Kernel("precomputed"), 1)
    found = re.search(
        r"row (\d+) has 0.51? with row (\d+), which has 0.51? with", str(caught.value)
    )
    assert {int(number) - 1 for number in found.groups()} == set(place)
    K[place] += np.float32(1e-4) - np.float32(0.01)
    before = K.copy()
    found, kernel = training_matrix(Rows.from_array(K), Kernel("precomputed"), 1)
    assert not kernel.indefinite
    assert np.array_equal(K, before)
    assert np.array_equal(found.dense, (before + before.T) / 2)


def test_a_symmetric_matrix_is_not_copied():
    K = np.eye(5, dtype=np.float32) + 0.5
    rows, _ = training_matrix(Rows.from_array(K), Kernel("precomputed"), 1)
    assert np.shares_memory(rows.dense, K)


def test_rounding_of_long_sums_in_float32_is_no_asymmetry():
    """A float32 matrix product may sum in different orders for both triangles."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(80, 5)).astype(np.float32)
    y = np.where(X[:, 0] > 0, 1.0, -1.0)
    K = np.exp(-0.5 * ((X[:, None] - X[None]) ** 2).sum(axis=2))
    uneven = K * (1 + 5e-4 * np.triu(rng.uniform(-1, 1, K.shape), 1)).astype(np.float32)
    mean = (uneven + uneven.T) / 2
    models = [dcsvm.train(one, y, kernel="precomputed", threads=1) for one in (uneven, mean)]
    assert np.array_equal(models[0].exact.dual_coef, models[1].exact.dual_coef)
    with pytest.raises(ValueError, match="not symmetric"):
        dcsvm.train(K * (1 + 5e-3 * np.triu(np.ones(K.shape), 1)), y, kernel="precomputed")


@pytest.mark.parametrize("name", ["negative diagonal", "large value"])
def test_an_indefinite_matrix_has_no_duality_gap(problem, name):
    _, y, _, _, K, K_test = problem
    K = K.copy()
    if name == "negative diagonal":
        K[5, 5] = -0.5
    else:
        K[5, 800] = K[800, 5] = 1.5
    found = dcsvm.train(K, y, kernel="precomputed", levels=0, **FAST)
    assert found.report.converged and found.report.duality_gap is None
    assert np.all(np.isfinite(found.decision_function(K_test)))
    with pytest.raises(ValueError, match="gap cannot be stated"):
        dcsvm.train(K, y, kernel="precomputed", gap=0.1)


def test_prediction_needs_the_values_with_all_training_rows(model, problem):
    K_test = problem[5]
    for method in ("exact", "early"):
        expected = model.decision_function(K_test, method=method)
        more = np.concatenate([K_test, np.full((len(K_test), 3), np.float32(9))], axis=1)
        of_a_file = Rows.from_array(more)
        assert np.array_equal(model.decision_function(of_a_file, method=method), expected)
        with pytest.raises(ValueError, match="903 kernel values, the model was trained on 900"):
            model.predict(more, method=method)
        with pytest.raises(ValueError, match="with all 900 training rows, got 899"):
            model.predict(K_test[:, :-1], method=method)


def test_euclidean_clusters_are_refused(problem):
    with pytest.raises(ValueError, match="kmeans requires features"):
        dcsvm.train(problem[4], problem[1], kernel="precomputed", clustering="kmeans")


# ---------------------------------------------------------------------------------------- files

GOOD = "1 0:1 1:1 2:.5\n-1 0:2 1:.5 2:1\n"
DAMAGED = {
    "no serial": ("1 1:1 2:.5\n", '1:3: 0:serial_number is missing before "1:1"'),
    "label only": (GOOD + "1\n", "3:2: 0:serial_number is missing at the end of the line"),
    "serial 0": (GOOD.replace("0:2", "0:0"), '2:4: the serial number in "0:0" is not one of'),
    "serial 3": (GOOD.replace("0:2", "0:3"), "2:4: .* is not one of the columns 1 to 2"),
    "serial -1": (GOOD.replace("0:2", "0:-1"), "2:4: the serial number"),
    "serial 1.5": (GOOD.replace("0:2", "0:1.5"), "2:4: the serial number"),
    "serial word": (GOOD.replace("0:2", "0:x"), '2:6: value "x" is not a decimal number'),
    "serial nan": (GOOD.replace("0:2", "0:nan"), '2:6: value "nan" is not finite'),
    "serial huge": (GOOD.replace("0:2", "0:1e99"), "2:4: the serial number"),
    "no serial value": (GOOD.replace("0:2", "0:"), "2:4: no value after the colon"),
    "gap": ("1 0:1 1:1 2:.5 3:0\n1 0:2 1:.5 3:1\n", "2:12: the kernel value 2:value is missing be"),
    "short row": ("1 0:1 1:1 2:.5\n1 0:2 1:.5\n", "2:11: the kernel value 2:value is missing at"),
    "short first": ("1 0:1 1:1\n1 0:2 1:.5 2:1\n", "1:10: the kernel value 2:value is missing at"),
    "repeat": (GOOD.replace("2:1", "1:1"), "2:13: indices must ascend: 1 follows 1"),
    "behind": (GOOD.replace("2:1\n", "2:1 2:4\n"), "2:17: indices must ascend: 2 follows 2"),
    "second serial": (GOOD.replace("1:.5 2:1", "0:1 1:1"), "2:8: feature indices start at 1"),
    "sign": (GOOD.replace("0:2", "+:2"), "2:4: "),
    "far": ("1 0:1 1:1 2147483646:1\n", "1:11: the kernel value 2:value is missing before"),
    "too far": (GOOD.replace("2:1", "2147483648:1"), "2:13: .* above"),
}  # fmt: skip


@pytest.mark.parametrize("kind", DAMAGED)
def test_a_damaged_line_is_refused_with_its_place(kind):
    text, message = DAMAGED[kind]
    for threads in (1, 3):
        with pytest.raises(DataError, match=f"^k.txt:{message}"):
            Dataset.of_text(text.encode(), "k.txt", kernel_values=True, threads=threads)


def test_serial_numbers_are_any_in_rows_to_predict():
    data = Dataset.of_text(
        b"1 0:7.5 1:1 2:0\n-1 0:-3 1:.5 2:1", "k.txt", like=Encoding(), kernel_values=True
    )
    assert data.rows.columns is None
    assert data.rows.dense.tolist() == [[1, 0], [0.5, 1]] and data.labels.tolist() == [1, -1]


def test_lenient_text_is_read_as_svm_train_does():
    text = b"1 0: 2 1:0x1p-1 2: 1 word\r\n-1 +0:1 01:1 2:5e-1\n"
    data = Dataset.of_text(text, "k.txt", kernel_values=True, lenient=True)
    assert data.rows.columns.tolist() == [1, 0]
    assert data.rows.dense.tolist() == [[0.5, 1], [1, 0.5]]
    with pytest.raises(DataError, match="1:12: the kernel value 2:value is missing"):
        Dataset.of_text(b"1 0:1 1:.5 3:1", "k.txt", kernel_values=True, lenient=True)


@pytest.mark.parametrize("more", [b"", b" 1000:1"])
def test_rows_with_serial_numbers_are_warned_of_with_other_kernels(more):
    text = b"".join(b"%d 0:%d 1:1%s\n" % (k % 2, k + 1, more) for k in range(5))
    data = Dataset.of_text(text, "k.txt")
    assert data.rows.is_dense == (more == b"")
    (sentence,) = data_warnings(data.rows, data.labels, data.first_index)
    assert "as in files of a precomputed kernel (-t 4)" in sentence
    assert data_warnings(data.rows, data.labels, 1) == []


def test_a_long_text_is_read_bit_for_bit_with_any_threads(tmp_path):
    rows = matrix_rows(1500, 120)
    values = (rows.dense / np.float32(7e5)).astype(np.float32)
    labels = np.where(np.arange(1500) % 2, 1.0, -1.0)
    write_kernel(tmp_path / "k", values, labels, rows.columns + 1)
    for threads in (1, 4):
        text = (tmp_path / "k").read_bytes()
        data = Dataset.of_text(text, "k", kernel_values=True, threads=threads)
        assert np.array_equal(data.rows.dense, values)
        assert np.array_equal(data.rows.columns, rows.columns)
        assert np.array_equal(data.labels, labels)


# --------------------------------------------------------------------------------------- models


@pytest.mark.parametrize("early", [False, True])
def test_a_model_comes_back_bit_for_bit(problem, model, tmp_path, early):
    _, y, _, _, K, K_test = problem
    if early:
        model = dcsvm.train(K, y, kernel="precomputed", levels=1, early=True, **FAST)
    model.save(tmp_path / "a.model")
    again = load_model(tmp_path / "a.model")
    for method in ("early",) if early else ("exact", "early"):
        assert np.array_equal(
            model.decision_function(K_test, method=method),
            again.decision_function(K_test, method=method),
        )
    again.save(tmp_path / "b.model")
    assert (tmp_path / "a.model").read_bytes() == (tmp_path / "b.model").read_bytes()


def test_the_model_has_serial_numbers_where_features_are(model, tmp_path):
    model.save(tmp_path / "a.model")
    lines = (tmp_path / "a.model").read_text().splitlines()
    assert lines[:3] == ["svm_type c_svc", "kernel_type precomputed", "nr_class 2"]
    first = lines[lines.index("SV dcsvm_section") + 1].split()
    assert first == [
        repr(float(model.exact.dual_coef[0][0])),
        f"0:{model.exact.row_numbers[0] + 1}",
    ]


LIBSVM_TEXT = svm_train_text(
    "1.5 0:3 \n-0.5 0:1 \n", kernel_type="precomputed", gamma=None, rho=0.25
)


def test_a_model_of_svm_train_is_read(tmp_path):
    (tmp_path / "a.model").write_text(LIBSVM_TEXT)
    model = load_model(tmp_path / "a.model")
    assert model.decision_function(np.array([[1.0, 5.0, 2.0]])).tolist() == [2.25]
    with pytest.raises(ValueError, match="with all 3 training rows, got 2"):
        model.predict(np.ones((1, 2)))


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("0:3 ", "", "9:5: 0:serial_number is missing"),
        ("0:3", "0:0", "model:9: a serial number must be an integer from 1"),
        ("0:3", "0:1.5", "model:9: a serial number must be an integer from 1"),
        ("0:3", "0:1e12", "model:9: a serial number must be an integer from 1"),
        ("0:3", "0:3 1:2", "missing"),
        ("0:3", "1:3", "missing before"),
    ],
)
def test_a_damaged_model_of_svm_train_is_refused(tmp_path, old, new, message):
    (tmp_path / "a.model").write_text(LIBSVM_TEXT.replace(old, new))
    with pytest.raises(ModelError, match=message):
        load_model(tmp_path / "a.model")


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        (
            "kernel_type precomputed\nnr_class",
            "kernel_type linear\nnr_class",
            "rows must be dense or sparse, got serials",
        ),
        ("center_kernel_type precomputed", "center_kernel_type linear", "centers cannot have"),
        ("center_products ", "center_products nan ", "center_products must be finite"),
        ("center_products ", "center_products 1 ", "more nodes or inner products"),
        ("center_products ", "center_products x ", "center_products must be numbers"),
        ("center_products ", "something else ", "unknown key"),
        ("rows serials", "rows dense", "rows must be serials, got dense"),
        ("n_features 900", "n_features 10", "above n_features 10"),
    ],
)
def test_a_damaged_section_is_refused(model, tmp_path, old, new, message):
    model.save(tmp_path / "a.model")
    text = (tmp_path / "a.model").read_text()
    assert old in text
    (tmp_path / "a.model").write_text(text.replace(old, new))
    with pytest.raises(ModelError, match=message):
        load_model(tmp_path / "a.model")


# ------------------------------------------------------------------------------------- commands


def run(command, *arguments):
    return CliRunner().invoke(command, [str(argument) for argument in arguments])


@pytest.fixture
def files(problem, tmp_path):
    """Write a training file with shuffled rows of the matrix, not all of them, and a test file."""
    _, y, _, truth, K, K_test = problem
    chosen = np.random.default_rng(0).permutation(len(y))[:700]
    write_kernel(tmp_path / "train", K[chosen], y[chosen], chosen + 1)
    write_kernel(tmp_path / "test", K_test, truth, np.arange(len(truth)) - 5)
    return tmp_path, chosen


def test_serial_numbers_say_which_columns_the_rows_are(files, problem):
    folder, chosen = files
    _, y, _, _, K, K_test = problem
    trained = run(train_command, "-t", 4, "-c", 4, "-l", 1, folder / "train", folder / "model")
    assert trained.exit_code == 0, trained.stderr
    assert "700 rows of 900 kernel values" in trained.stderr and "warning" not in trained.stderr
    expected = dcsvm.train(
        K[np.ix_(chosen, chosen)], y[chosen], C=4, kernel="precomputed", levels=1
    )
    for option, method in ((), "exact"), (("--early",), "early"):
        done = run(
            predict_command, *option, "--decision-values",
            folder / "test", folder / "model", folder / "out",
        )  # fmt: skip
        assert done.exit_code == 0, done.stderr
        values = np.loadtxt(folder / "out")[:, 1]
        wanted = expected.decision_function(K_test[:, chosen], method=method)
        np.testing.assert_allclose(values, wanted, atol=1e-9)


def test_an_early_level_is_chosen_by_test_rows_of_a_precomputed_kernel(files, problem):
    folder, _ = files
    options = ["-q", "-t", 4, "-c", 4, "--early", "--early-level", "auto"]
    trained = run(
        train_command, *options, "--test", folder / "test", folder / "train", folder / "model"
    )
    assert trained.exit_code == 0, trained.stderr
    early = load_model(folder / "model")
    assert np.mean(early.predict(problem[5]) == problem[3]) > 0.8  # labels are noisy


def test_a_precomputed_kernel_is_not_scaled(files):
    folder, _ = files
    (folder / "range").write_text("x\n-1 1\n1 0 10\n")
    done = run(train_command, "-t", 4, "--scale", folder / "range", folder / "train", "m")
    assert done.exit_code == 2 and "cannot be scaled" in done.stderr


def test_svm_train_and_svm_predict_agree(files, problem):
    folder, _ = files
    truth = problem[3]
    assert run(train_command, "-t", 4, "-c", 4, folder / "train", folder / "ours").exit_code == 0
    libsvm("svm-train", "-q", "-t", 4, "-c", 4, folder / "train", folder / "theirs")
    for model in ("ours", "theirs"):
        done = run(predict_command, folder / "test", folder / model, folder / "out")
        assert done.exit_code == 0, done.stderr
        libsvm("svm-predict", folder / "test", folder / model, folder / "libsvm.out")
        ours, theirs = np.loadtxt(folder / "out"), np.loadtxt(folder / "libsvm.out")
        assert np.array_equal(ours, theirs) and np.mean(ours == truth) > 0.7
