"""Test learned feature weights: they find the features that matter, and models apply them."""

import numpy as np
import pytest
from scipy import sparse

import dcsvm
from dcsvm.data.rows import Rows
from dcsvm.kernel.distances import median_distance
from dcsvm.kernel.kernels import KERNEL_TYPES, Kernel
from dcsvm.problem.options import TrainOptions
from dcsvm.training.train import learn_weights

DISTANCES = [one.name for one in KERNEL_TYPES if one.is_of_distance]


def rows_with_noise(n, n_noise=8, seed=0):
    """Return rows with labels that only the first two features decide."""
    X = np.random.default_rng(seed).uniform(-1, 1, (n, 2 + n_noise)).astype(np.float32)
    return X, np.where(np.sin(4 * X[:, 0]) + X[:, 1] > 0, 1.0, -1.0)


@pytest.mark.parametrize("kernel", DISTANCES)
def test_features_that_matter_get_the_largest_weights(kernel):
    X, y = rows_with_noise(1500)
    options = TrainOptions.of(kernel=kernel, gamma=0.3, C=8.0)
    weights = learn_weights(Rows.from_array(X), y, options)
    assert weights[:2].min() > 1.5 * weights[2:].max()
    of_kernel = Kernel(kernel)
    weighted = median_distance(Rows.from_array(X * weights.astype(np.float32)), of_kernel, 1)
    assert weighted == pytest.approx(median_distance(Rows.from_array(X), of_kernel, 1), rel=0.1)


@pytest.mark.parametrize("scale", [None, "auto", "quantile"])
def test_a_model_with_learned_weights_is_better_and_applies_them(scale, tmp_path):
    (X, y), (X_test, y_test) = rows_with_noise(1500), rows_with_noise(1000, seed=1)
    plain, learned = (
        dcsvm.train(
            X, y, kernel="laplacian", gamma=0.3, C=8.0, scale=scale, feature_weights=weights
        )
        for weights in (None, "learn")
    )
    errors = [np.mean(model.predict(X_test) != y_test) for model in (plain, learned)]
    assert errors[1] < 0.8 * errors[0]
    learned.save(tmp_path / "a.model")
    again = dcsvm.load_model(tmp_path / "a.model")
    values = learned.decision_function(X_test)
    assert np.array_equal(again.decision_function(X_test), values)
    assert np.array_equal(again.decision_function(sparse.csr_matrix(X_test)), values)
    assert learned.decision_function(X_test[:1]) == pytest.approx(values[:1], abs=1e-5)


def test_several_classes_and_regressions_have_weights():
    X, _ = rows_with_noise(1200)
    three = np.digitize(X[:, 0] + X[:, 1], [-0.5, 0.5]).astype(float)
    options = TrainOptions.of(kernel="laplacian", gamma=0.3, C=8.0)
    weights = learn_weights(Rows.from_array(X), three, options)
    assert weights[:2].min() > 1.5 * weights[2:].max()
    options = TrainOptions.of(kernel="laplacian", gamma=0.3, C=8.0, svm_type="epsilon_svr")
    weights = learn_weights(Rows.from_array(X), X[:, 0] * X[:, 1], options)
    assert weights[:2].min() > 1.5 * weights[2:].max()


def test_constant_features_and_given_weights_of_0_are_not_used():
    X, y = rows_with_noise(600)
    X[:, 5] = 3.0
    options = TrainOptions.of(kernel="laplacian", gamma=0.3)
    assert learn_weights(Rows.from_array(X), y, options)[5] == 0
    given = np.r_[1.0, 2.0, np.zeros(8)]
    model = dcsvm.train(X, y, kernel="laplacian", gamma=0.3, feature_weights=given)
    assert model.scaling.columns.tolist() == [0, 1]
    X_other = X.copy()
    X_other[:, 2:] = 7.0
    assert np.array_equal(model.decision_function(X_other), model.decision_function(X))


@pytest.mark.parametrize("size", [1e38, 1e39, 1e300])
@pytest.mark.filterwarnings("error")
def test_weights_beyond_float32_are_refused(size):
    X, y = rows_with_noise(50)
    for values in (100 * X, sparse.csr_matrix(100 * X * (X > 0.8))):
        with pytest.raises(ValueError, match="weights of up to .* features of X too large for"):
            dcsvm.train(values, y, feature_weights=np.full(10, size))


def test_given_weights_are_those_of_the_columns_of_the_data():
    X, y = rows_with_noise(300)
    X[:, -1] = 5.0  # dropped by the scaling
    given = np.arange(10.0)
    model = dcsvm.train(X, y, kernel="laplacian", scale="auto", feature_weights=given)
    assert model.scaling.columns.tolist() == list(range(1, 9))
    assert model.scaling.weights.tolist() == list(range(1, 9))


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        ({"feature_weights": "other"}, "feature_weights must be an array or 'learn', got 'other'"),
        ({"feature_weights": [1.0]}, r"feature_weights must have shape \(10,\), got \(1,\)"),
        ({"feature_weights": -np.ones(10)}, "feature_weights must be finite and at least 0"),
        ({"feature_weights": "learn", "kernel": "linear"},
         "feature_weights can be learned for a kernel of a distance only, got linear"),
        ({"feature_weights": "learn", "svm_type": "one_class"},
         "feature_weights are learned from labels or targets, got one_class"),
        ({"scale": "other"}, "scale must be one of auto, quantile, got 'other'"),
    ],
)  # fmt: skip
def test_what_cannot_be_is_refused(arguments, reason):
    X, y = rows_with_noise(50)
    with pytest.raises(ValueError, match=reason):
        dcsvm.train(X, y, **arguments)
    with pytest.raises(ValueError, match="can be learned for at most 1000 features, got 1001"):
        dcsvm.train(np.ones((4, 1001)), [1, 2, 1, 2], feature_weights="learn")
