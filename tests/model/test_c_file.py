"""Test models in C: every kernel, part, number of classes and type; labels and probabilities."""

import subprocess
from dataclasses import replace

import numpy as np
import pytest
from c_runs import EXACT, Program, check, compile_with, numpy_values, same_labels
from made_models import made_model
from reference import csr_rows, kernels_with, spots, surface

import dcsvm
from dcsvm.kernel.kernels import Kernel

PARTS = {
    "exact": {"levels": 0},
    "early": {"early": True, "early_level": 1},
    "two levels": {"early": True, "early_level": 2, "branching": 2},
    "no overlap": {"early": True, "early_level": 2, "branching": 2, "overlap": 1.0},
}
N = 1000


@pytest.fixture
def program(tmp_path):
    return lambda model, **how: Program(model.to_c(**how), tmp_path)


def new_rows(n=N, seed=7):
    return np.random.default_rng(seed).uniform(-0.2, 1.2, (n, 3))


def trained(kernel, n_classes, part, **how):
    X, y = spots(600, n_classes, seed=n_classes)
    C = 0.05 if kernel.name == "polynomial" else 4.0  # else larger terms cancel than float can hold
    return dcsvm.train(X, y, kernel=kernel.name, C=C, **kernel.parameters, **PARTS[part], **how)


@pytest.mark.parametrize("kernel", kernels_with(0.8, 0.5, 3), ids=lambda one: one.name)
@pytest.mark.parametrize("n_classes", [2, 4])
@pytest.mark.parametrize("part", PARTS)
def test_values_and_labels_are_those_of_the_model(program, kernel, n_classes, part):
    model, X = trained(kernel, n_classes, part), new_rows()
    made = program(model)
    _, values = check(model, made, X, X)
    same_labels(made.labels(X), model.predict(X), values)
    assert np.array_equal(made.sparse_values(X), made.values(X), equal_nan=True)


@pytest.mark.parametrize("method", ["exact", "early"])
@pytest.mark.parametrize("k", [2, 3, 6])
@pytest.mark.parametrize("form", [None, csr_rows], ids=["dense", "sparse"])
def test_machines_of_few_classes_have_values_that_are_missing(program, method, k, form):
    model = made_model(k) if form is None else made_model(k, form=form)
    X = np.random.default_rng(1).uniform(-1.5, 1.5, (N, 3))
    made = program(model, method=method)
    found, values = check(model, made, X, X, method)
    assert np.isnan(found).any() == (method == "early")
    expected = model.predict(X, method=method)
    assert np.mean(made.labels(X) == expected) > 0.99
    probabilities = model.predict_probability(X, method=method)
    np.testing.assert_allclose(made.probabilities(X), probabilities, atol=1e-5)


@pytest.mark.parametrize("part", PARTS)
def test_a_regression_has_a_value_for_its_label(program, part):
    X, y = surface(400)
    model = dcsvm.train(X, 1e3 * y, svm_type="epsilon_svr", C=100.0, gamma=3.0, **PARTS[part])
    made = program(model)
    check(model, made, new_rows(), new_rows())
    assert np.array_equal(made.labels(new_rows()), made.values(new_rows())[:, 0])


@pytest.mark.parametrize("probability", [False, True])
def test_one_class_has_signs(program, probability):
    X, _ = spots(400, 2)
    model = dcsvm.train(X, svm_type="one_class", nu=0.2, gamma=3.0, probability=probability)
    made, T = program(model), new_rows()
    _, values = check(model, made, T, T)
    same_labels(made.labels(T), model.predict(T), values)
    if probability:
        np.testing.assert_allclose(made.probabilities(T), model.predict_probability(T))
    else:
        assert not hasattr(made.library, "dcsvm_probabilities")


@pytest.mark.filterwarnings("ignore:decision values of held-out rows contradict")
@pytest.mark.parametrize("n_classes", [2, 3, 7])
@pytest.mark.parametrize("part", ["exact", "early"])
def test_probabilities_are_those_of_the_model(program, n_classes, part):
    model = trained(Kernel("rbf", 2.0), n_classes, part, probability=True)
    found = program(model).probabilities(new_rows())
    np.testing.assert_allclose(found, model.predict_probability(new_rows()), atol=1e-5)
    assert np.allclose(found.sum(axis=1), 1.0)


def test_labels_of_text_are_names(program):
    names = np.array(["a", 'b "c"\\', "Äpfel ??= 1"])
    X, y = spots(300, 3)
    model = dcsvm.train(X, names[y.astype(int)], C=4.0, gamma=2.0)
    made = program(model)
    _, values = check(model, made, new_rows(), new_rows())
    same_labels(made.named_labels(new_rows()), model.predict(new_rows()), values)


def test_labels_are_any_numbers(program):
    X, y = spots(300, 3)
    model = dcsvm.train(X, np.array([0.1, -1.5, 1e20])[y.astype(int)], C=4.0, gamma=2.0)
    assert set(program(model).labels(new_rows())) == set(model.labels)


def test_a_model_of_one_class_predicts_it(program):
    model = replace(made_model(2), labels=np.array([4.0]), probability=None)
    exact = replace(model.exact, n_sv=np.array([30]), rho=np.zeros(0))
    exact = replace(exact, dual_coef=np.zeros((0, 30)))
    made = program(replace(model, exact=exact, early=None))
    assert np.array_equal(made.labels(new_rows()), np.full(N, 4.0))
    assert made.values(new_rows()).shape == (N, 0)


def test_a_model_without_vectors_has_its_constant(program):
    X, y = surface(50)
    model = dcsvm.train(X, 0 * y + 3, svm_type="epsilon_svr", epsilon=0.1)
    assert model.exact.rows.n_samples == 0
    assert np.allclose(program(model).labels(new_rows()), model.predict(new_rows()))


def test_a_vector_of_two_clusters_is_stored_once():
    model = trained(Kernel("rbf", 2.0), 2, "early")
    assert len(np.unique(model.early.row_numbers)) < model.early.rows.n_samples
    assert "dcsvm_owner" in model.to_c()


def test_an_exact_linear_model_is_a_normal_vector(program):
    model = trained(Kernel("linear"), 4, "exact")
    text = model.to_c()
    assert "dcsvm_vectors" not in text and len(text) < 12_000
    found, unit = program(model).values(new_rows()), numpy_values(model, new_rows())[1]
    assert np.abs(found - numpy_values(model, new_rows())[0]).max() <= EXACT * unit.max()


def sparse_rows(n, n_features, seed):
    rng = np.random.default_rng(seed)
    X = np.zeros((n, n_features))
    for row in X:
        row[rng.choice(n_features, 8, replace=False)] = rng.uniform(0.1, 1, 8)
    return X, np.where(X[:, : n_features // 2].sum(axis=1) > 2.2, 1.0, -1.0)


@pytest.mark.parametrize("kernel", kernels_with(0.5, 0.5, 2), ids=lambda one: one.name)
@pytest.mark.parametrize("part", ["exact", "early"])
def test_sparse_rows_may_have_features_that_no_vector_has(program, kernel, part):
    sparse = pytest.importorskip("scipy.sparse")
    X, y = sparse_rows(500, 200, 0)
    X[:, 150:160] = 0
    T, _ = sparse_rows(N, 200, 1)
    model = dcsvm.train(sparse.csr_matrix(X), y, kernel=kernel.name, C=4.0, **kernel.parameters,
                        **PARTS[part])  # fmt: skip
    made = program(model)
    check(model, made, T, sparse.csr_matrix(T))
    assert np.array_equal(made.sparse_values(T), made.values(T), equal_nan=True)
    assert made.sizes["columns"] == 200 and made.sizes["features"] <= 190


def test_indices_far_apart_take_no_memory(program):
    text = "".join(f"{1 - k % 2 * 2} {1 + k % 3}:1 2000000000:{k / 9}\n" for k in range(30))
    sparse = pytest.importorskip("scipy.sparse")
    rows = [line.split()[1:] for line in text.splitlines()]
    column = [int(word.split(":")[0]) - 1 for row in rows for word in row]
    value = [float(word.split(":")[1]) for row in rows for word in row]
    X = sparse.csr_matrix((value, (np.repeat(np.arange(30), 2), column)))
    y = np.where(np.arange(30) % 2, -1.0, 1.0)
    made = program(dcsvm.train(X, y, gamma=1.0))
    assert made.sizes["features"] == 4


def test_a_loaded_and_a_compressed_model_are_exported(program, tmp_path):
    model, X = trained(Kernel("rbf", 2.0), 3, "exact"), new_rows()
    model.save(tmp_path / "model")
    assert dcsvm.load_model(tmp_path / "model").to_c() == model.to_c()
    model.save(tmp_path / "libsvm", format="libsvm")
    small = dcsvm.load_model(tmp_path / "libsvm").compress(X, vectors=30)
    check(small, program(small), X, X)
    assert len(small.to_c()) < len(model.to_c()) / 2


def test_declarations_alone_are_a_header(program, tmp_path):
    program(trained(Kernel("rbf", 2.0), 2, "exact"))  # writes model.c
    (tmp_path / "other.c").write_text(
        '#define DCSVM_DECLARATIONS\n#include "model.c"\n'
        "int main(void) {\n  const double row[DCSVM_COLUMNS] = {0.5, 0.25, 0.75};\n"
        "  return dcsvm_label(row) > 0.5;\n}\n"
    )
    compile_with("cc", tmp_path / "other.c", "-c", "-o", str(tmp_path / "other.o"))
    linked = [str(tmp_path / "other.o"), "-o", str(tmp_path / "both"), "-lm"]
    compile_with("cc", tmp_path / "model.c", *linked)
    assert subprocess.run([tmp_path / "both"]).returncode in (0, 1)


def test_what_cannot_be_exported_is_told():
    K = np.eye(20) + 1
    model = dcsvm.train(K, np.arange(20) % 2, kernel="precomputed")
    with pytest.raises(ValueError, match="precomputed kernel cannot be exported: its rows are not"):
        model.to_c()
    model = trained(Kernel("rbf"), 2, "exact")
    with pytest.raises(ValueError, match="the model has no early level"):
        replace(model, early=None).to_c(method="early")
