"""Test each kernel of the table everywhere: values, files, training, single rows, checkpoints,
estimators, compression. A new kernel fails here for each place that lacks it."""

import ast
import pickle
import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import sklearn.svm
from made_models import made_model
from reference import (
    allowed_error,
    c_svc,
    certificate,
    csr_rows,
    dense_rows,
    distances,
    full_alpha,
    grid_rows,
    kernel_values,
    kernels_with,
    labelled_rows,
    one_hot_rows,
)
from runs import train_rows

import dcsvm
from dcsvm import _core
from dcsvm.data.rows import Rows
from dcsvm.kernel.cluster_tree import clustering_kernel
from dcsvm.kernel.distances import Cutoff, is_flat
from dcsvm.kernel.kernel_rows import KernelEvalOptions, KernelRows
from dcsvm.kernel.kernels import (
    DEGREES,
    KERNEL_TYPES,
    NAMES,
    TYPES,
    Kernel,
    median_words,
    numbered_names,
    other_names,
    users_of,
)
from dcsvm.kernel.row_components import MIN_ROWS
from dcsvm.kernel.sources import EncodedSources
from dcsvm.model.writer import model_text
from dcsvm.problem.options import TrainOptions
from dcsvm.sklearn import SVC
from dcsvm.sklearn.loading import load
from dcsvm.training.report import Progress
from dcsvm.training.state import Checkpoint, RunControl

ROOT = Path(__file__).resolve().parents[2]
every_kernel = pytest.mark.parametrize(
    "kernel", kernels_with(0.5, 0.5, 2), ids=lambda one: one.name
)
falling = [one for one in kernels_with() if one.type.is_of_distance]
every_falling = pytest.mark.parametrize("kernel", falling, ids=lambda one: one.name)


def byte_rows(n, d, seed):
    return np.random.default_rng(seed).integers(0, 4, (n, d)).astype(np.float32)


def one_hot(n, d, seed):
    return one_hot_rows(n, (5, d - 5), 3, 0.2, seed)


def rows_near_100(n, d, seed):
    return 100 + grid_rows(n, d, seed)


KINDS = {  # generator of rows, number of features, storage, form of the allowed error
    "few features": (grid_rows, 7, dense_rows, "difference"),
    "negative": (lambda n, d, seed: labelled_rows(n, d, seed)[0], 7, dense_rows, "difference"),
    "near 100": (rows_near_100, 7, dense_rows, "difference"),
    "many features": (grid_rows, 300, dense_rows, "product"),
    "integers": (byte_rows, 70, dense_rows, "product"),
    "bytes": (byte_rows, 70, lambda X: Rows.from_array(X.astype(np.uint8)), "product"),
    "one-hot": (one_hot, 40, dense_rows, "product"),
    "sparse": (grid_rows, 50, csr_rows, "product"),
    "sparse near 100": (rows_near_100, 50, csr_rows, "difference"),
}
PLACES = {  # of rows in a cube: arguments may not be of differences alone
    "from -1 to 1": lambda n, d, seed: labelled_rows(n, d, seed)[0],
    "from 0 to 1": grid_rows,
    "near 100": rows_near_100,
}
in_every_place = pytest.mark.parametrize("place", PLACES)


def model_of(kernel):
    return replace(made_model(2), kernel=kernel, early=None)


def options_of(kernel):
    return {"kernel": kernel.name, **kernel.parameters, "C": 4.0, "threads": 1}


@pytest.fixture(scope="module")
def data():
    return labelled_rows(900, 4, seed=3)


# --------------------------------------------------------------------------------------- values


@pytest.mark.parametrize("kind", KINDS)
@every_kernel
def test_values_of_every_kind_of_rows(kernel, kind):
    make, d, stored, form = KINDS[kind]
    Z, X = make(90, d, 1), make(70, d, 2)
    kernel = Kernel(kernel.name, kernel.gamma / d, kernel.coef0, kernel.degree)
    error = allowed_error(kernel, form, X, Z, 3e-6)
    exact = kernel_values(kernel, X, Z)
    for how in ("coded", "plain"):
        values = np.full(exact.shape, np.nan)
        doubles = np.full(exact.shape, np.nan)
        sources = EncodedSources(stored(Z), kernel)
        if how == "plain" and stored != csr_rows:
            sources = EncodedSources(dense_rows(Z), kernel)
        for batch in sources.batches(stored(X), 1):
            own = batch.place
            those = {"targets": batch.targets, "target_rows": batch.numbers}
            values[own] = batch.sources.matrix(**those)
            ones = np.arange(91, dtype=np.int64), np.arange(90, dtype=np.int32), np.ones(90), 90
            doubles[own] = batch.sources.product(
                ones, **those, evaluation=KernelEvalOptions(float64=True)
            )
        assert np.all(np.abs(values - exact) <= error)
        assert np.all(np.abs(doubles - exact) <= 1e-5 * error)


@every_falling
def test_a_kernel_falls_from_one_as_the_table_says(kernel):
    X = np.sqrt(np.linspace(0, 9, 40))[:, None]
    values = kernel_values(kernel, X, np.zeros((1, 1)))[:, 0]
    assert values[0] == 1 and np.all(np.diff(values) < 0)
    assert kernel.values_of_distances(X, np.zeros((1, 1)))[:, 0] == pytest.approx(values)
    for value, x in zip(values[1:], X[1:, 0], strict=True):
        argument = x ** DEGREES[kernel.type.argument]
        assert kernel.type.argument_at(1.0, value) == pytest.approx(argument)
        assert kernel.type.gamma_at(argument, value) == pytest.approx(1.0)
    scaled = Kernel(kernel.name, 4.0**kernel.type.length_power)
    assert kernel_values(scaled, X / 4, np.zeros((1, 1)))[:, 0] == pytest.approx(values)


def in_order(X):
    """Return rows in spatial order, and points of them."""
    X = X[_core.neighbour_order(_core.Points(dense_rows(X), 1), 1)]
    return X, _core.Points(dense_rows(X), 1)


@in_every_place
@every_falling
def test_values_out_of_reach_and_values_less_one(kernel, place):
    X, points = in_order(PLACES[place](1000, 2, 5))
    s = distances(kernel, X, X)
    median = np.median(s)
    far = Kernel(kernel.name, kernel.type.gamma_at(0.03 * median, 1e-6))
    K, cutoff = kernel_values(far, X, X), Cutoff.of(far, 1e-6)
    assert np.all(K[s >= cutoff.distance] <= 1e-6)
    assert _core.share_apart(points, np.arange(1000, dtype=np.int32), cutoff, 100, 1) > 0.1
    rows = KernelRows(Rows.from_array(X), far, 1)
    w = np.random.default_rng(0).normal(size=1000)
    found = rows.product(w, evaluation=KernelEvalOptions(cutoff=cutoff))[:, 0]
    bound = 1e-6 * np.abs(w).sum() + 1e-3
    assert np.abs(found - K @ w).max() <= bound
    flat = Kernel(kernel.name, kernel.type.gamma_at(8 * median, 0.999))
    rows = KernelRows(Rows.from_array(X), flat, 1)
    assert is_flat(rows.rows, flat) and not is_flat(rows.rows, far)
    error = np.abs(rows.product(w)[:, 0] - kernel_values(flat, X, X) @ w).max()
    assert error <= 1e-9 * np.abs(w).sum()


@in_every_place
@every_falling
def test_boxes_bound_the_distances_of_their_rows(kernel, place):
    X, _ = in_order(PLACES[place](300, 2, 4))
    s = distances(kernel, X, X)
    for size in (1, 10):
        low, high = (end.reduceat(X, np.arange(0, 300, size)) for end in (np.minimum, np.maximum))
        for box in range(0, 300 // size, 5):
            argument = kernel.type.argument
            bound = _core.box_distances(argument, low[box], high[box], low, high)
            nearest = s[box * size : (box + 1) * size].min(axis=0).reshape(-1, size).min(axis=1)
            assert np.all(bound <= nearest * (1 + 1e-9))
            assert size > 1 or bound == pytest.approx(nearest, rel=1e-9)
    with pytest.raises(ValueError, match="boxes bound distances only"):
        _core.box_distances("product", low[0], high[0], low, high)
    with pytest.raises(ValueError, match="boxes do not have the same features"):
        _core.box_distances(argument, low[0, :1], high[0], low, high)


def test_a_function_of_a_root_takes_differences():
    points = _core.Points(dense_rows(grid_rows(50, 100)), 1)
    forms = [_core.Setup(Kernel(name, 0.001), points).form for name in ("rbf", "exponential")]
    assert forms == ["product", "difference"]


@in_every_place
@pytest.mark.parametrize("reach", [0.003, 0.1])
@every_falling
def test_a_narrow_model_is_optimal(kernel, reach, place):
    X = PLACES[place](MIN_ROWS, 3, 5)
    X[:, 0] = np.round(3 * X[:, 0]) / 3  # layers, which may be components
    y = np.where(np.random.default_rng(0).random(MIN_ROWS) < 0.5, 1.0, -1.0)
    s = distances(kernel, X, X)
    narrow = Kernel(kernel.name, kernel.type.gamma_at(reach * np.median(s), 0.1))
    model = dcsvm.train(X, y, **options_of(narrow))
    alpha = full_alpha(model, MIN_ROWS)
    violation = certificate(kernel_values(narrow, X, X), c_svc(y, 4.0), alpha)[0]
    assert violation <= 1.01 * model.report.violation <= 1.01e-3


@every_falling
def test_clusters_are_found_with_a_kernel_that_tells_rows_apart(kernel):
    X = 1000 * grid_rows(200, 3, 5)
    lowered = clustering_kernel(Rows.from_array(X), Kernel(kernel.name, 1e6), 1)
    median = np.median(kernel_values(lowered, X, X)[np.triu_indices(200, 1)])
    assert 0.15 < median < 0.8  # 1/e for the Euclidean distance; a kernel's own may be longer


@every_kernel
def test_what_the_table_says_of_values_is_so(kernel):
    X = labelled_rows(100, 4)[0]
    K, squares = kernel_values(kernel, X, X), (X.astype(np.float64) ** 2).sum(axis=1)
    if kernel.is_positive_semidefinite:
        assert np.linalg.eigvalsh(K).min() > -1e-9
    if kernel.type.is_within_one:
        assert np.abs(K).max() <= 1
    else:
        assert np.diag(K) == pytest.approx(kernel.type.diagonal(kernel, squares))
    assert np.abs(K).max() <= kernel.largest_value(squares.max()) * (1 + 1e-9)
    if kernel.type.is_linear:
        assert pytest.approx(X.astype(np.float64) @ X.T) == K


# ------------------------------------------------------------------------------- training, files


@every_kernel
def test_a_model_is_optimal_and_comes_back_from_its_file(kernel, data, tmp_path):
    X, y = data
    model = dcsvm.train(X, y, **options_of(kernel), tolerance=1e-4)
    assert model.report.converged
    assert (model.report.duality_gap is None) != kernel.is_positive_semidefinite
    K = kernel_values(kernel, X, model.exact.rows.dense)
    expected = K @ model.exact.dual_coef[0] - model.exact.rho[0]
    found = model.decision_function(X)
    assert np.abs(found - expected).max() <= 1e-5 * np.abs(model.exact.dual_coef).sum()
    model.save(tmp_path / "a.model")
    loaded = dcsvm.load_model(tmp_path / "a.model")
    assert loaded.kernel.describe() == model.kernel.describe()
    assert np.array_equal(loaded.decision_function(X), found)
    alone = np.array([model.decision_function(row[None])[0] for row in X[:30]])
    together = model.decision_function(X[:30]) if kernel.type.is_linear else found[:30]
    assert np.allclose(alone, together, rtol=0, atol=1e-12 * np.abs(K).max())


@every_kernel
def test_an_early_model_is_that_of_the_clusters(kernel, data):
    X, y = data
    model = dcsvm.train(X, y, **options_of(kernel), early=True, early_level=1, overlap=1)
    early, values = model.early, model.decision_function(X)
    cluster = early.partition.place(Rows.from_array(X), 1).nearest
    assert len(np.unique(cluster)) > 1
    for c in np.unique(cluster):
        own, vectors = cluster == c, early.cluster == c
        K = kernel_values(kernel, X[own], early.rows.dense[vectors])
        expected = K @ early.dual_coef[0, vectors] - early.rho[c, 0]
        known = np.isfinite(expected)
        error = np.abs(values[own] - expected)[known]
        assert error.max(initial=0) <= 1e-5 * (1 + np.abs(early.dual_coef).sum())
    alone = np.array([model.decision_function(row[None])[0] for row in X[:20]])
    assert np.array_equal(alone, values[:20], equal_nan=True)


class StopAfter(Progress):
    def __init__(self, phase):
        self.stop, self.phase = _core.Stop(), phase

    def end(self, name, *_what):
        if name == self.phase:
            self.stop.request()


@every_kernel
def test_a_run_goes_on_from_its_checkpoint(kernel, data, tmp_path):
    rows, y = Rows.from_array(data[0]), data[1]
    options = TrainOptions(**options_of(kernel), levels=2, branching=3)
    whole = train_rows(rows, y, options, RunControl())[0]
    progress = StopAfter("refine")
    train_rows(rows, y, options, RunControl(progress, progress.stop, Checkpoint(tmp_path / "a")))
    resumed = Checkpoint(tmp_path / "a", resume=True)
    model = train_rows(rows, y, options, RunControl(Progress(), _core.Stop(), resumed))[0]
    assert b"".join(model_text(model)) == b"".join(model_text(whole))


@every_kernel
def test_a_model_is_compressed(kernel, data):
    X, y = data
    model = dcsvm.train(X, y, **options_of(kernel), levels=0)
    small = model.compress(X, vectors=40, steps=60, threads=1)
    assert np.mean(small.predict(X) == model.predict(X)) > 0.9


# ----------------------------------------------------------------------------- LIBSVM, estimators


def test_lines_of_help_name_every_kernel_with_its_formula():
    assert numbered_names() == ", ".join(
        f"{number} {one.short_name}" for number, one in enumerate(KERNEL_TYPES)
    )
    lines = [other_names(), *(users_of(name) for name in ("degree", "gamma", "coef0"))]
    for one in KERNEL_TYPES:
        assert any(one.formula in line for line in lines), one.name
    assert users_of("degree") == "poly (gamma u'v + coef0)^degree"
    assert users_of("gamma").startswith("rbf exp(-gamma |u-v|^2), ")
    assert "of |u-v|^2 (rbf), |u-v|_1 (laplacian), |u-v| (exponential)" in median_words()


def test_the_pages_name_every_kernel():
    readme, commands, estimators = (
        " ".join((ROOT / page).read_text(encoding="utf-8").split())
        for page in ("README.md", "docs/dcsvm-train.md", "docs/scikit-learn.md")
    )
    names = ", ".join(f"{number} {name}" for number, name in enumerate(NAMES))
    assert f"| `-t TYPE` | kernel: {names} |" in readme
    for number, one in enumerate(KERNEL_TYPES):
        if not one.is_in_libsvm:
            assert f"`-t {number}` (`{one.name}`)" in commands
            assert f'`"{one.name}"`' in estimators


def test_the_numbers_are_those_of_libsvm():
    names = ("linear", "polynomial", "rbf", "sigmoid", "precomputed")
    assert tuple(one.name for one in KERNEL_TYPES if one.is_in_libsvm) == names == NAMES[:5]


@every_kernel
def test_a_file_for_libsvm_has_kernels_of_libsvm(kernel, tmp_path):
    model = model_of(kernel)
    if kernel.type.is_in_libsvm:
        model.save(tmp_path / "a.model", format="libsvm")
        return
    with pytest.raises(ValueError, match=f"LIBSVM has no kernel {kernel.name}"):
        model.save(tmp_path / "a.model", format="libsvm")


@every_kernel
def test_an_estimator_is_that_of_scikit_learn_where_this_has_the_kernel(kernel, data, tmp_path):
    X, y = data[0][:300], data[1][:300]
    fitted = SVC(kernel=kernel.type.short_name, C=4, **kernel.parameters, tol=1e-6).fit(X, y)
    values = fitted.decision_function(X)
    fitted.save(tmp_path / "a.model")
    again = load(tmp_path / "a.model")
    assert again.kernel == fitted.kernel
    assert again.decision_function(X) == pytest.approx(values, abs=1e-5)
    for one in (fitted, again):
        theirs = pickle.loads(pickle.dumps(one.to_sklearn()))
        assert theirs.decision_function(X) == pytest.approx(values, abs=1e-4)
    if kernel.type.sklearn_name is None:
        return
    name = kernel.type.sklearn_name
    theirs = sklearn.svm.SVC(kernel=name, C=4, **kernel.parameters, tol=1e-6).fit(X, y)
    if kernel.is_positive_semidefinite:
        assert values == pytest.approx(theirs.decision_function(X), abs=1e-3)


# -------------------------------------------------------------------------------------- the table


def test_an_unknown_kernel_raises():
    with pytest.raises(ValueError, match="the kernel must be one of linear, .*, got 'laplace'"):
        Kernel("laplace")
    unknown = type("Kernel", (), {"type": type("Type", (), {"argument": "x", "function": "power"})})
    with pytest.raises(ValueError, match="kernels have no x"):
        _core.Setup(unknown, _core.Points(dense_rows(np.ones((2, 2))), 1))


@every_kernel
def test_numbers_of_numpy_make_a_file_that_can_be_read(kernel, tmp_path):
    numbers = {name: np.float64(value) for name, value in kernel.parameters.items()}
    same = Kernel(kernel.name, **numbers)
    model_of(same).save(tmp_path / "a.model")
    assert "np." not in (tmp_path / "a.model").read_text()
    assert dcsvm.load_model(tmp_path / "a.model").kernel == kernel


SPELLED = {*NAMES, *(one.short_name for one in KERNEL_TYPES)}


def literals(node):
    """Return the strings of a literal, or of a tuple, list, set or dict of literals."""
    if isinstance(node, ast.Constant):
        return {node.value} if isinstance(node.value, str) else set()
    if isinstance(node, ast.Dict):
        return set().union(*(literals(key) for key in node.keys if key is not None))
    if isinstance(node, ast.Tuple | ast.List | ast.Set):
        return set().union(*map(literals, node.elts))
    return set()


def names_in(tree):
    """Yield the lines and names of kernels in comparisons and look-ups."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Compare):
            found = set().union(*map(literals, [node.left, *node.comparators]))
        elif isinstance(node, ast.Dict | ast.Set):
            found = literals(node)
        elif isinstance(node, ast.MatchValue):
            found = literals(node.value)
        elif isinstance(node, ast.Subscript):
            found = literals(node.slice)
        else:
            continue
        yield from ((node.lineno, name) for name in found & SPELLED)


def test_the_formula_of_the_help_is_that_of_the_values():
    u, v = np.array([0.5, -1.0, 2.0]), np.array([1.5, 0.25, 1.0])
    squared = "((u - v) @ (u - v))"
    arguments = {
        "u'v": "(u @ v)",
        "|u-v|^2": squared,
        "|u-v|_1": "np.abs(u - v).sum()",
        "|u-v|": f"np.sqrt{squared}",
    }
    for kernel in kernels_with(0.3, 0.4, 3):
        if kernel.is_precomputed:
            continue
        formula = kernel.type.formula
        for text, code in arguments.items():
            formula = formula.replace(text, code)
        formula = formula.replace("gamma ", "gamma * ").replace("^", "**")
        known = {"u": u, "v": v, "np": np, "exp": np.exp, "tanh": np.tanh, **kernel.parameters}
        value = eval(formula, known)
        assert value == pytest.approx(kernel_values(kernel, u[None], v[None])[0, 0])


def test_only_the_table_compares_names_of_kernels():
    """Other code asks the kernel's type for its properties."""
    modules = sorted((ROOT / "dcsvm").rglob("*.py"))
    found = {
        f"{path.relative_to(ROOT)}:{line} {name}"
        for path in modules
        if path.name != "kernels.py"
        for line, name in names_in(ast.parse(path.read_text(encoding="utf-8")))
    }
    assert not found


def test_the_comparison_of_a_name_is_found():
    for line in ('a == "rbf"', 'a in ("rbf", "b")', '{"poly": 1}', 'a["rbf"]', 'a not in ["rbf"]'):
        assert list(names_in(ast.parse(line))), line
    for line in ('Kernel("rbf")', 'kernel = "rbf"', 'a == "b"'):
        assert not list(names_in(ast.parse(line))), line


def test_only_their_definitions_know_arguments_and_functions():
    """Other files of the core ask is_distance(), is_linear() and the like."""
    known = {"kernel.h", "arguments_impl.h", "kernel_value_impl.h", "kernel_setup.cc"}
    for path in sorted((ROOT / "csrc").rglob("*.[ch]*")):
        found = re.findall(r"\b(?:Argument|Function)::\w+", path.read_text(encoding="utf-8"))
        assert path.name in known or not found, path
    for path in sorted((ROOT / "dcsvm").glob("*.p[yx]*")):
        found = re.findall(r"\b(?:Argument|Function)\.(\w+)", path.read_text(encoding="utf-8"))
        assert set(found) <= {"none"}, path


def test_every_argument_and_function_of_the_table_is_one_of_the_core():
    rows = _core.Points(dense_rows(np.ones((2, 2))), 1)
    given = _core.Points(Rows(2, 2, dense=np.eye(2, dtype=np.float32),
                              columns=np.arange(2, dtype=np.int32)), 1)  # fmt: skip
    for name, one in TYPES.items():
        _core.Setup(Kernel(name), given if one.is_precomputed else rows)
