"""Test models in ONNX against their own predictions, and against float64 NumPy."""

import sys
from dataclasses import replace

import numpy as np
import pytest
from made_models import made_model
from onnx_runs import SAME, close, outputs, same_labels, values_in_float64
from reference import csr_rows, dense, dense_rows, kernel_values, kernels_with, spots, surface

import dcsvm
from dcsvm.kernel.kernels import ABSOLUTE_DISTANCE, PRODUCT, SQUARED_DISTANCE, Kernel
from dcsvm.model import onnx_graph, onnx_kernel, onnx_values

KERNELS = kernels_with(0.7, 0.4, 3)
every_kernel = pytest.mark.parametrize("kernel", KERNELS, ids=[one.name for one in KERNELS])
PARTS = {
    "exact": {},
    "early": {"early": True, "early_level": 1, "levels": 1, "branching": 3},
    "two levels": {"early": True, "early_level": 2, "levels": 2, "branching": 2},
}


def trained(kernel, n_classes, part, seed=0, **options):
    X, y = spots(600, n_classes, seed)
    how = {"kernel": kernel.name, **kernel.parameters, "C": 4.0}
    return dcsvm.train(X, y, **(how | PARTS[part] | options))


def new_rows(n=500, seed=9):
    return np.random.default_rng(seed).uniform(-0.2, 1.2, (n, 3)).astype(np.float32)


# --------------------------------------------------------------------------- decision values


@every_kernel
@pytest.mark.parametrize("n_classes", [2, 4])
@pytest.mark.parametrize("part", PARTS)
@pytest.mark.parametrize("overlap", [1.0, 1.5])
def test_values_and_labels_are_those_of_the_model(kernel, n_classes, part, overlap):
    if part == "exact" and overlap > 1:
        return
    model, X = trained(kernel, n_classes, part, overlap=overlap), new_rows()
    found = outputs(model, X)
    values = values_in_float64(model, X)
    close(found["values"], values, SAME)
    same_labels(found["label"], model.predict(X), values)


@every_kernel
def test_exact_values_are_those_of_float64(kernel):
    model, X = trained(kernel, 2, "exact"), new_rows()
    exact = model.exact
    K = kernel_values(kernel, X, dense(exact.rows))
    expected = K @ exact.dual_coef[0] - exact.rho
    found = outputs(model, X)["values"][:, 0]
    assert (
        np.abs(found - expected).max() <= 1e-12 * np.abs(K * exact.dual_coef[0]).sum(axis=1).max()
    )


@every_kernel
def test_early_values_are_those_of_float64(kernel):
    model, X = trained(kernel, 2, "early", overlap=1.0), new_rows()
    early = model.early
    cluster = early.partition.assign(dense_rows(X), 1)
    assert len(np.unique(cluster)) > 2
    found = outputs(model, X)["values"][:, 0]
    for c in np.unique(cluster):
        own, vectors = cluster == c, early.cluster == c
        coef = early.dual_coef[0, vectors]
        K = kernel_values(kernel, X[own], dense(early.rows)[vectors])
        expected = K @ coef - early.rho[c, 0]
        assert np.abs(found[own] - expected).max() <= 1e-12 * (1 + np.abs(K * coef).sum())


@pytest.mark.parametrize("form", [dense_rows, csr_rows])
@pytest.mark.parametrize("k", [2, 3, 6])
@pytest.mark.parametrize("method", ["exact", "early"])
def test_pairs_that_a_cluster_lacks_are_nan(k, form, method):
    """Clusters have all classes, one, two, or none, as in models of rare classes."""
    model = made_model(k, form=form)
    X = np.random.default_rng(9).uniform(-1, 1, (100, 3)).astype(np.float32)
    found = outputs(model, X, method=method)
    values = model.decision_function(X, method=method).reshape(100, -1)
    assert np.array_equal(np.isnan(found["values"]), np.isnan(values))
    close(found["values"], values)
    same_labels(found["label"], model.predict(X, method=method), values)
    expected = model.predict_probability(X, method=method)
    np.testing.assert_allclose(found["probabilities"], expected, atol=1e-6)


@pytest.mark.parametrize("n_classes", [2, 3])
def test_a_row_near_a_boundary_has_the_value_of_the_only_cluster_with_classes(n_classes):
    model = made_model(n_classes)
    early = replace(model.early, partition=replace(model.early.partition, blend=0.5))
    model = replace(model, exact=None, early=early)
    X = np.random.default_rng(3).uniform(-1, 1, (300, 3)).astype(np.float32)
    values = model.decision_function(X).reshape(300, -1)
    close(outputs(model, X)["values"], values)


@pytest.mark.parametrize("degree", [0, 1, 2, 5, 6])
def test_every_degree_is_a_power(degree):
    kernel = Kernel("polynomial", 0.5, 1.0, degree)
    model = replace(made_model(2), kernel=kernel)
    X = np.random.default_rng(9).uniform(-1, 1, (50, 3)).astype(np.float32)
    close(outputs(model, X)["values"][:, 0], model.decision_function(X))


@every_kernel
def test_rows_far_from_zero_keep_their_differences(kernel):
    if kernel.type.argument == PRODUCT:
        return
    X, y = spots(400, 2)
    X += np.float32(2**20)  # whose squares are 2^40
    model = dcsvm.train(X, y, kernel=kernel.name, gamma=2.0, C=4.0)
    T = new_rows() + np.float32(2**20)
    if model.scaling is None:
        close(outputs(model, T)["values"][:, 0], model.decision_function(T))


def few_values(X):
    return np.round(8 * X) / 8


@pytest.mark.parametrize("change", [few_values, lambda X: np.c_[few_values(X[:, :2]), X[:, 2]]])
@pytest.mark.parametrize("part", ["exact", "early"])
def test_sums_of_absolute_differences_of_few_values_are_products(change, part):
    X, y = spots(600, 2)
    model = dcsvm.train(change(X).astype(np.float32), y, kernel="laplacian", gamma=2.0, C=4.0,
                        **PARTS[part])  # fmt: skip
    T = np.concatenate([new_rows(), change(new_rows())]).astype(np.float32)
    close(outputs(model, T)["values"][:, 0], model.decision_function(T))


@pytest.mark.parametrize("part", ["exact", "early"])
def test_many_features_are_added_in_a_loop(part, monkeypatch):
    model, X = trained(Kernel("laplacian", 2.0), 2, part), new_rows()
    unrolled = outputs(model, X)["values"]
    monkeypatch.setattr(onnx_kernel, "MAX_NODES", 2)
    close(outputs(model, X)["values"], unrolled, SAME)


@pytest.mark.parametrize("part", PARTS)
@pytest.mark.parametrize("n_classes", [2, 4])
def test_a_linear_model_is_a_vector_for_each_pair(part, n_classes, monkeypatch):
    model, X = trained(Kernel("linear"), n_classes, part), new_rows()
    few = outputs(model, X)["values"]
    size = len(model.to_onnx())
    monkeypatch.setattr(onnx_values.LinearMachines, "suits", lambda *_: False)
    assert size < len(model.to_onnx())
    close(few, outputs(model, X)["values"])


# ---------------------------------------------------------------------------------- blocks, sizes


@pytest.mark.parametrize("part", PARTS)
@pytest.mark.parametrize("n", [1, 2, 7, 500])
def test_blocks_of_rows_do_not_change_an_answer(part, n, monkeypatch):
    model, X = trained(Kernel("rbf", 2.0), 4, part, probability=True), new_rows(n)
    whole = outputs(model, X)
    small = dict.fromkeys((PRODUCT, SQUARED_DISTANCE, ABSOLUTE_DISTANCE), 2000)
    monkeypatch.setattr(onnx_kernel, "BLOCK_VALUES", small)
    monkeypatch.setattr(onnx_kernel, "MIN_ROWS", 1)
    monkeypatch.setattr(onnx_graph, "BLOCK", 160)
    for name, numbers in outputs(model, X).items():
        np.testing.assert_allclose(numbers, whole[name], atol=1e-12)


@pytest.mark.parametrize("part", PARTS)
def test_no_rows_have_no_labels(part):
    model = trained(Kernel("rbf", 2.0), 4, part, probability=True)
    found = outputs(model, new_rows(0))
    assert found["label"].shape == (0,)
    assert found["values"].shape == (0, 6) and found["probabilities"].shape == (0, 4)


@pytest.mark.parametrize("n_classes", [2, 5])
@pytest.mark.parametrize("part", ["exact", "early"])
def test_a_file_has_the_size_of_its_numbers(n_classes, part):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(4000, 20)).astype(np.float32)
    y = rng.integers(0, n_classes, 4000)
    options = {"early": True, "early_level": 1, "overlap": 1.0} if part == "early" else {}
    model = dcsvm.train(X, y, C=1.0, gamma=0.2, **options)
    own = model.part()
    numbers = 4 * X.shape[1] * len(np.unique(own.row_numbers)) + own.dual_coef.nbytes
    if part == "early":
        numbers += 4 * X.shape[1] * own.partition.sample.n_samples + own.rho.nbytes
    assert len(model.to_onnx()) <= 1.2 * numbers


def test_rows_with_few_values_are_stored_without_zeros():
    rng = np.random.default_rng(0)
    X = np.where(rng.random((800, 300)) < 0.03, rng.normal(size=(800, 300)), 0).astype(np.float32)
    y = np.where(X.sum(axis=1) > 0, 1.0, -1.0)
    for part in ("exact", "early"):
        model = dcsvm.train(X, y, C=1.0, gamma=0.1, **PARTS[part])
        close(outputs(model, X)["values"][:, 0], model.decision_function(X))
    n_values = model.early.rows.count_values() + model.early.partition.sample.count_values()
    assert len(model.to_onnx()) < 6 * n_values + 10 * model.early.rows.n_samples + 30_000


# ------------------------------------------------------------------------- types, labels, errors


@pytest.mark.parametrize("part", ["exact", "early"])
@pytest.mark.parametrize("svm_type", ["epsilon_svr", "nu_svr"])
def test_a_regression_has_values_for_labels(svm_type, part):
    if part == "early" and svm_type == "nu_svr":
        return
    X, y = surface(400)
    model = dcsvm.train(X, 1e3 * y, svm_type=svm_type, C=100.0, gamma=3.0, **PARTS[part])
    found = outputs(model, new_rows())
    assert "probabilities" not in found
    close(found["label"], model.predict(new_rows()))
    assert np.array_equal(found["values"][:, 0], found["label"])


@pytest.mark.parametrize("probability", [False, True])
def test_one_class_has_signs(probability):
    X, _ = spots(400, 2)
    model = dcsvm.train(X, svm_type="one_class", nu=0.2, gamma=3.0, probability=probability)
    found, T = outputs(model, new_rows()), new_rows()
    assert found["label"].dtype == np.int64
    same_labels(found["label"], model.predict(T), model.decision_function(T)[:, None])
    assert ("probabilities" in found) == probability
    if probability:
        np.testing.assert_allclose(found["probabilities"], model.predict_probability(T), atol=1e-9)


@pytest.mark.parametrize("n_classes", [2, 3, 7])
@pytest.mark.parametrize("part", ["exact", "early"])
def test_probabilities_are_those_of_the_model(n_classes, part):
    model = trained(Kernel("rbf", 2.0), n_classes, part, probability=True)
    found = outputs(model, new_rows())
    np.testing.assert_allclose(
        found["probabilities"], model.predict_probability(new_rows()), atol=1e-5
    )


@pytest.mark.parametrize(
    "names, kind",
    [(["a", "b c", "Ä"], np.object_), ([3, -1, 7], np.int64), ([0.5, 1.5, 2.0], np.float64)],
)
def test_labels_are_text_whole_numbers_or_numbers(names, kind):
    X, y = spots(300, 3)
    model = dcsvm.train(X, np.array(names)[y.astype(int)], C=4.0, gamma=2.0)
    found = outputs(model, new_rows())["label"]
    assert found.dtype == kind
    assert np.array_equal(found.astype(model.labels.dtype), model.predict(new_rows()))


def test_a_model_of_one_class_predicts_it():
    model = replace(made_model(2), labels=np.array([4.0]), probability=None)
    exact = replace(model.exact, n_sv=np.array([30]), rho=np.zeros(0))
    found = outputs(replace(model, exact=exact, early=None), new_rows())
    assert np.array_equal(found["label"], np.full(500, 4))
    assert found["values"].shape == (500, 0)


def test_a_model_without_vectors_has_its_constant():
    X, y = surface(50)
    model = dcsvm.train(X, 0 * y + 3, svm_type="epsilon_svr", epsilon=0.1)
    assert model.exact.rows.n_samples == 0
    assert np.allclose(outputs(model, new_rows())["label"], model.predict(new_rows()))


def test_a_loaded_and_a_compressed_model_are_exported(tmp_path):
    model, X = trained(Kernel("rbf", 2.0), 3, "exact"), new_rows()
    model.save(tmp_path / "model")
    assert dcsvm.load_model(tmp_path / "model").to_onnx() == model.to_onnx()
    model.save(tmp_path / "libsvm", format="libsvm")
    small = dcsvm.load_model(tmp_path / "libsvm").compress(X, vectors=30)
    close(outputs(small, X)["values"], small.decision_function(X))


def test_what_cannot_be_exported_is_told(monkeypatch):
    K = np.eye(20) + 1
    model = dcsvm.train(K, np.arange(20) % 2, kernel="precomputed")
    with pytest.raises(ValueError, match="precomputed kernel cannot be exported: its rows are not"):
        model.to_onnx()
    model = trained(Kernel("rbf"), 2, "exact")
    with pytest.raises(ValueError, match="the model has no early level"):
        replace(model, early=None).to_onnx(method="early")
    monkeypatch.setitem(sys.modules, "onnx", None)
    with pytest.raises(ImportError, match=r"pip install 'dcsvm\[onnx\]'"):
        model.to_onnx()
