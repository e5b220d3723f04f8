"""Test decision values that need float64 kernel values against NumPy's sums over the support
vectors."""

from dataclasses import replace

import numpy as np
import pytest
from made_models import made_model, svm_train_text
from reference import csr_rows, dense, dense_rows, kernel_values

import dcsvm
from dcsvm.kernel.kernels import Kernel
from dcsvm.model.reader import load_model

METHODS = ("exact", "early")


def with_weights(model, factor):
    """Return the model with its coefficients scaled by `factor`."""
    exact = replace(model.exact, dual_coef=factor * model.exact.dual_coef)
    early = replace(model.early, dual_coef=factor * model.early.dual_coef)
    return replace(model, exact=exact, early=early)


def float64_values(model, T):
    """Compute the exact decision values of two classes in float64."""
    part = model.exact
    K = kernel_values(model.kernel, np.asarray(T, np.float32), dense(part.rows))
    return K @ part.dual_coef[0] - part.rho[0]


@pytest.mark.parametrize("C", [1e3, 1e5])
def test_a_parabola_that_was_fitted_is_a_parabola(C):
    rng = np.random.default_rng(0)
    X = np.sort(rng.uniform(0, 5, 40))
    y = np.sin(X) + 0.05 * rng.standard_normal(40)
    model = dcsvm.train(
        X[:, None], y, svm_type="epsilon_svr", kernel="polynomial", degree=2, gamma=0.5, C=C
    )
    assert model.report.converged
    T = np.linspace(0, 5, 161)  # few digits: float32 holds them
    values = model.predict(T[:, None])
    assert np.abs(np.polyval(np.polyfit(T, values, 2), T) - values).max() < 1e-8
    # terms of up to 160 C, rounded to 2^-53 of them
    assert values == pytest.approx(float64_values(model, T[:, None]), abs=1e-12 * C)


@pytest.mark.parametrize("form", [dense_rows, csr_rows])
@pytest.mark.parametrize("C", [1e4, 1e7])
def test_values_of_large_weights_are_those_of_float64(C, form):
    model = with_weights(made_model(2, form=form), C)
    T = np.random.default_rng(5).uniform(-1, 1, (500, model.exact.rows.n_features))
    expected = float64_values(model, T)
    assert model.predictor("exact").needs_float64
    found = model.decision_function(form(np.asarray(T, np.float32)))
    assert found == pytest.approx(expected, abs=1e-13 * C * model.exact.rows.n_samples)


@pytest.mark.parametrize("method", METHODS)
def test_every_method_takes_float64_where_weights_are_large(method, wavy, wavy_test):
    small = dcsvm.train(*wavy, C=4, gamma=2.0, levels=1, branching=4, threads=1)
    large = with_weights(small, 2.0**20)
    values = [model.decision_function(wavy_test[0], method=method) for model in (small, large)]
    # the same sums; the large model computes them more exactly
    difference = np.abs(values[1] / 2.0**20 - values[0]).max()
    assert 0 < difference < 1e-5
    assert large.predictor(method).needs_float64
    assert not small.predictor(method).needs_float64


@pytest.mark.parametrize("method", ["exact", "early"])
@pytest.mark.parametrize("gamma", [0.01, 2.0])  # kernel values near 1, and not
def test_a_row_alone_has_the_same_bits_in_float64(wavy, wavy_test, method, gamma):
    model = dcsvm.train(*wavy, C=4, gamma=gamma, levels=1, branching=4, overlap=1.5, threads=1)
    model = with_weights(model, 1e6)
    assert model.predictor(method).needs_float64
    found = [model.few_values(row[None], method) for row in wavy_test[0][:50]]
    expected = model.decision_function(wavy_test[0], method=method)[:50]
    assert np.array_equal(np.concatenate(found)[:, 0], expected)


def test_several_classes_alone_and_among_others_in_float64():
    model = with_weights(made_model(3), 1e6)
    T = np.random.default_rng(5).random((60, model.exact.rows.n_features), dtype=np.float32)
    assert model.predictor("exact").needs_float64
    expected = model.decision_function(T)
    found = [model.few_values(row[None], "exact") for row in T]
    assert np.array_equal(np.concatenate(found), expected)


@pytest.mark.parametrize("svm_type", ["c_svc", "epsilon_svr", "one_class"])
def test_ordinary_models_keep_float32(wavy, svm_type):
    X, y = wavy
    y = np.sin(3 * X[:, 0]) if svm_type == "epsilon_svr" else y
    model = dcsvm.train(X, y, svm_type=svm_type, C=10, gamma=2.0, threads=1)
    assert not model.predictor("exact").needs_float64


def test_what_is_left_out_of_float64_sums_is_nothing_to_them():
    """Many rows, sharp kernel values: far support vectors are omitted."""
    rng = np.random.default_rng(0)
    model = made_model(2)
    n, d = 3000, model.exact.rows.n_features
    exact = replace(
        model.exact,
        rows=dense_rows(rng.uniform(-1, 1, (n, d)).astype(np.float32)),
        dual_coef=1e6 * rng.standard_normal((1, n)),
        n_sv=np.array([n // 2, n - n // 2]),
        row_numbers=np.arange(n),
    )
    model = replace(model, kernel=Kernel("rbf", 30.0), exact=exact, early=None)
    T = rng.uniform(-1, 1, (2000, d)).astype(np.float32)
    assert model.predictor("exact").needs_float64
    found = model.decision_function(T)
    assert found == pytest.approx(float64_values(model, T), abs=1e-15 * 1e6 * n)


def test_kernel_values_beyond_float32_of_a_model_of_libsvm_are_predicted(tmp_path):
    """x'z is about 1e5, and its ninth power about 1e45."""
    path = tmp_path / "m"
    vectors = "1e-45 1:300 2:20 \n-1e-45 1:20 2:300 \n"
    cubic = {"kernel_type": "polynomial", "degree": 9, "gamma": 1, "coef0": 0, "rho": 0}
    path.write_text(svm_train_text(vectors, **cubic))
    model = load_model(path)
    T = np.array([[300.0, 40.0], [40.0, 300.0]])
    assert model.predict(T).tolist() == [1.0, -1.0]
    assert model.decision_function(T) == pytest.approx(float64_values(model, T), rel=1e-12)


@pytest.mark.parametrize("form", [dense_rows, csr_rows])
@pytest.mark.parametrize(
    ("kernel", "factor", "is_exact"),
    [
        (Kernel("rbf", 0.5), 1.0, False),
        (Kernel("rbf", 0.5), 1e5, True),
        (Kernel("polynomial", 1.0, 0.0, 3), 1.0, False),
        (Kernel("polynomial", 100.0, 0.0, 3), 1.0, True),
        (Kernel("precomputed", 0.0), 1e5, False),
    ],
)
def test_features_have_the_digits_that_libsvm_needs(tmp_path, form, kernel, factor, is_exact):
    """LIBSVM's tools read float64: the shortest digits of a float32 give another number."""
    model = with_weights(made_model(2, form=form), factor)
    model = replace(model, kernel=kernel, early=None)
    if kernel.is_precomputed:
        rows = replace(dense_rows(np.eye(30)), columns=np.arange(30, dtype=np.int32))
        model = replace(model, exact=replace(model.exact, rows=rows))
    model.save(tmp_path / "m")
    lines = (
        (tmp_path / "m")
        .read_text()
        .split("SV dcsvm_section\n")[1]
        .split("dcsvm")[0]
        .splitlines()[:30]
    )
    read = [float(pair.split(":")[1]) for line in lines for pair in line.split()[1:]]
    if not kernel.is_precomputed:
        held = dense(model.exact.rows).astype(np.float64)
        assert np.array_equal(read, held[held != 0]) == is_exact
        back = load_model(tmp_path / "m")
        assert np.array_equal(dense(back.exact.rows), dense(model.exact.rows))
