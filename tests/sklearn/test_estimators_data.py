"""Test scale, feature_weights, sample weights, class weights and metrics of all estimators."""

import pickle
import re

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone, is_classifier, is_regressor
from sklearn.metrics import log_loss, roc_auc_score
from sklearn.model_selection import GridSearchCV, KFold, StratifiedKFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler

import dcsvm
from dcsvm.sklearn import SVC, SVCCV, SVR, SVRCV, AutoSVC, AutoSVR, NuSVC, NuSVR, OneClassSVM

N = 150
SEARCH = {"Cs": [1.0, 8.0], "gammas": [0.1, 1.0], "random_state": 0}
AUTO = {"time_limit": 60, "random_state": 0}
SINGLE = [SVC(C=4), NuSVC(nu=0.2), SVR(C=4), NuSVR(C=4), OneClassSVM(nu=0.2)]
SEARCHES = [SVCCV(**SEARCH), SVRCV(**SEARCH)]
ALL = [*SINGLE, *SEARCHES, AutoSVC(**AUTO), AutoSVR(**AUTO)]
SIZES = np.array([1.0, 30.0, 0.01, 5.0])


def named(estimator):
    return type(estimator).__name__


@pytest.fixture(scope="module")
def rows():
    """Return 150 rows of features of different sizes, and numbers that depend on them."""
    X = np.random.default_rng(0).uniform(-1, 1, (N, 4))
    return X * SIZES, np.sin(2 * X[:, 0]) + X[:, 1] * X[:, 2]


def targets_of(estimator, target):
    return np.where(target > 0, "above", "below") if is_classifier(estimator) else target


def values(fitted, X):
    return fitted.predict(X) if is_regressor(fitted) else fitted.decision_function(X)


# --- scale ---


@pytest.mark.parametrize("form", [np.asarray, sparse.csr_matrix])
@pytest.mark.parametrize("estimator", SINGLE, ids=named)
def test_auto_scales_as_a_pipeline(estimator, form, rows):
    X, target = rows
    y = targets_of(estimator, target)
    ours = clone(estimator).set_params(scale="auto").fit(form(X), y)
    theirs = make_pipeline(MinMaxScaler((-1, 1)), clone(estimator)).fit(X, y)
    assert ours._gamma == pytest.approx(theirs[-1]._gamma, rel=1e-5)
    # scaled in other roundings
    np.testing.assert_allclose(values(ours, form(X)), values(theirs, X), atol=2e-3)
    assert len(np.setxor1d(ours.support_, theirs[-1].support_)) <= 2
    vectors = ours.support_vectors_
    assert sparse.issparse(vectors) is (form is not np.asarray)
    np.testing.assert_array_equal(np.asarray(vectors.todense()) if sparse.issparse(vectors)
                                  else vectors, X[ours.support_])  # fmt: skip


@pytest.mark.parametrize("scale", ["auto", "quantile"])
@pytest.mark.parametrize("estimator", ALL, ids=named)
def test_another_models_scaling_is_one_too(estimator, scale, rows):
    X, target = rows
    y = targets_of(estimator, target)
    first = clone(estimator).set_params(scale=scale).fit(X, y)
    scaling = first.model_.scaling
    assert scaling is not None
    if estimator not in ALL[-2:]:  # these have weights, too
        again = clone(estimator).set_params(scale=scaling)
        again = pickle.loads(pickle.dumps(clone(again).fit(X, y)))
        np.testing.assert_allclose(values(again, X), values(first, X), atol=1e-5)
        assert "scale=" in repr(again)
    with pytest.raises(ValueError, match="'scale' parameter"):
        clone(estimator).set_params(scale="ranges").fit(X, y)


def test_a_kernel_matrix_has_no_scale(rows):
    X, target = rows
    for kernel in ("precomputed", lambda A, B: A @ B.T):
        with pytest.raises(ValueError, match="scale needs features"):
            SVC(kernel=kernel, scale="auto").fit(X @ X.T, target > 0)


def test_a_linear_kernel_has_coefficients_of_the_scaled_features(rows):
    X, target = rows
    for form in (np.asarray, sparse.csr_matrix):
        fitted = SVC(kernel="linear", scale="auto").fit(form(X), target > 0)
        scaled = MinMaxScaler((-1, 1)).fit_transform(X)
        coef = np.asarray(fitted.coef_.todense()) if sparse.issparse(fitted.coef_) else fitted.coef_
        expected = scaled @ coef[0] + fitted.intercept_[0]
        np.testing.assert_allclose(fitted.decision_function(form(X)), expected, atol=1e-4)


def test_a_large_offset_is_no_matter_if_rows_are_scaled(recwarn):
    X = (1.7e9 + np.arange(100.0))[:, None]
    fitted = SVC(scale="auto").fit(X, np.arange(100) // 50)
    assert fitted.score(X, np.arange(100) // 50) > 0.98
    assert not [one for one in recwarn if "mean" in str(one.message)]


# --- feature weights ---


@pytest.mark.parametrize("estimator", ALL, ids=named)
def test_weights_multiply_the_scaled_features(estimator, rows):
    X, target = rows
    y, weights = targets_of(estimator, target), np.array([2.0, 1.0, 1.0, 0.0])
    fitted = clone(estimator).set_params(scale="auto", feature_weights=weights).fit(X, y)
    assert fitted.model_.scaling.weights.tolist() == [2.0, 1.0, 1.0]
    if estimator in ALL[-2:]:
        return
    scaled = MinMaxScaler((-1, 1)).fit_transform(X)
    other = clone(estimator)
    if hasattr(other, "gamma"):
        other.set_params(gamma=fitted._gamma)
    other.fit(scaled * weights, y)
    np.testing.assert_allclose(values(fitted, X), values(other, scaled * weights), atol=1e-4)


@pytest.mark.parametrize("estimator", SEARCHES, ids=named)
def test_a_search_learns_weights_once(estimator, rows):
    rng = np.random.default_rng(1)
    X = rng.uniform(-1, 1, (400, 8))
    y = targets_of(estimator, np.sin(4 * X[:, 0]) + X[:, 1])
    plain = clone(estimator).set_params(kernel="laplacian").fit(X, y)
    learned = clone(plain).set_params(feature_weights="learn").fit(X, y)
    weights = learned.model_.scaling.weights
    assert weights[:2].min() > weights[2:].max()
    assert learned.best_score_ > plain.best_score_
    X_test = rng.uniform(-1, 1, (400, 8))
    y_test = targets_of(estimator, np.sin(4 * X_test[:, 0]) + X_test[:, 1])
    assert learned.score(X_test, y_test) > plain.score(X_test, y_test)


# --- sample weights and class weights ---


@pytest.mark.parametrize("scale", [None, "auto"])
@pytest.mark.parametrize("estimator", SINGLE, ids=named)
def test_weights_of_words_are_copies(estimator, scale):
    pandas = pytest.importorskip("pandas")
    rng = np.random.default_rng(2)
    frame = pandas.DataFrame({"word": rng.choice(list("abc"), N), "x": rng.normal(size=N)})
    y = targets_of(estimator, np.where(frame["word"] == "a", 1.0, -0.5) + frame["x"])
    counts = rng.integers(0, 4, N)
    copies = np.repeat(np.arange(N), counts)
    some = clone(estimator).set_params(scale=scale).fit(frame, y, sample_weight=counts)
    all_rows = clone(estimator).set_params(scale=scale).fit(frame.iloc[copies], y[copies])
    assert some._gamma == pytest.approx(all_rows._gamma, rel=1e-6)
    close = 1e-4 * max(1.0, np.abs(values(all_rows, frame)).max())
    np.testing.assert_allclose(values(some, frame), values(all_rows, frame), atol=close)


@pytest.mark.parametrize("estimator", ALL[-2:], ids=named)
def test_automatic_settings_heed_weights(estimator, rows):
    X, target = rows
    y = targets_of(estimator, target)
    kept = np.arange(N) % 3 > 0
    weights = np.where(kept, 1.0, 0.0)
    some, others = clone(estimator).fit(X, y, sample_weight=weights), clone(estimator)
    others.fit(X[kept], y[kept])
    np.testing.assert_allclose(values(some, X), values(others, X))
    with pytest.raises(ValueError, match="sample_weight and X have incompatible shapes"):
        clone(estimator).fit(X, y, sample_weight=weights[1:])


@pytest.mark.parametrize("estimator", ALL, ids=named)
def test_negative_weights_are_ignored_as_by_scikit_learn_but_not_by_automatic_settings(
    estimator, rows
):
    X, target = rows
    y = targets_of(estimator, target)
    weights = np.where(np.arange(N) % 3 > 0, 1.0, -1.0)
    if estimator in ALL[-2:]:
        with pytest.raises(ValueError, match=r"weights must be at least 0, got -1 \(row 0\)"):
            clone(estimator).fit(X, y, sample_weight=weights)
        return
    some = clone(estimator).fit(X, y, sample_weight=weights)
    others = clone(estimator).fit(X, y, sample_weight=np.maximum(weights, 0))
    np.testing.assert_array_equal(values(some, X), values(others, X))


@pytest.mark.parametrize("dtype", [complex, "M8[D]", "m8[D]", "U3", object])
@pytest.mark.parametrize("estimator", ALL, ids=named)
def test_weights_that_are_no_numbers_are_refused(estimator, dtype, rows):
    X, target = rows
    weights = np.ones(N).astype(int).astype(complex if dtype is object else dtype).astype(dtype)
    kind = "complex" if dtype is object else re.escape(str(weights.dtype))
    with pytest.raises(ValueError, match=f"sample weights must be numbers, got .* type {kind}"):
        clone(estimator).fit(X, targets_of(estimator, target), sample_weight=weights)


def test_weights_may_be_objects_that_are_numbers(rows):
    X, target = rows
    weights = np.arange(N) % 3
    some = SVR().fit(X, target, sample_weight=weights.astype(object))
    np.testing.assert_array_equal(some.predict(X), SVR().fit(X, target, weights).predict(X))


CLASSIFIERS = [one for one in ALL if is_classifier(one)]


@pytest.mark.parametrize("kind", [str, object])
@pytest.mark.parametrize("estimator", CLASSIFIERS, ids=named)
def test_class_weights_of_labels_that_are_texts_of_numbers(estimator, kind, rows):
    X, target = rows
    y = np.where(target > 0.6, "1", "2").astype(kind)
    fits = [
        clone(estimator).set_params(class_weight=weights).fit(X, y)
        for weights in ({"1": 2.0}, {1: 2.0}, {"1": 2.0, "2": 1.0})  # scikit-learn takes the second
    ]
    for fitted in fits:
        assert fitted.class_weight_.tolist() == [2.0, 1.0]
        np.testing.assert_array_equal(values(fitted, X), values(fits[0], X))


@pytest.mark.parametrize("estimator", CLASSIFIERS, ids=named)
def test_class_weights_of_other_labels_and_texts_are_refused(estimator, rows):
    X, target = rows
    numbers = np.where(target > 0, 1, 2)
    with pytest.raises(ValueError, match=r"The classes, \[1, 2\], are not in class_weight"):
        clone(estimator).set_params(class_weight={"1": 2}).fit(X, numbers)
    y = targets_of(estimator, target)
    with pytest.raises(ValueError, match="must be a number, got '2' for class 'above'"):
        clone(estimator).set_params(class_weight={"above": "2"}).fit(X, y)


def test_automatic_settings_heed_class_weights():
    rng = np.random.default_rng(3)
    X = rng.normal(size=(300, 2))
    y = np.where(X[:, 0] + rng.normal(size=300) > 1.0, "rare", "usual")
    plain, heavy = (AutoSVC(**AUTO, class_weight=one).fit(X, y) for one in (None, {"rare": 50.0}))
    assert heavy.model_.report.options.class_weight == {0.0: 50.0, 1.0: 1.0}
    shares = [np.mean(one.predict(X) == "rare") for one in (plain, heavy)]
    assert shares[0] < shares[1]
    balanced = AutoSVC(**AUTO, class_weight="balanced").fit(X, y)
    assert np.mean(balanced.predict(X) == "rare") > shares[0]
    expected = SVC(class_weight="balanced").fit(X, y).class_weight_
    np.testing.assert_array_equal(balanced.class_weight_, expected)
    with pytest.raises(ValueError, match="class_weight must be positive and finite"):
        AutoSVC(**AUTO, class_weight={"rare": 0.0}).fit(X, y)


def test_a_class_without_weight_is_left_out_of_automatic_settings(rows):
    X, target = rows
    y = np.digitize(target, [-0.3, 0.3])
    fitted = AutoSVC(**AUTO).fit(X, y, sample_weight=np.where(y == 1, 0, 2))
    assert fitted.classes_.tolist() == [0, 2] and set(fitted.predict(X)) == {0, 2}


# --- metrics ---

SCORERS = {"accuracy": "accuracy", "balanced-accuracy": "balanced_accuracy", "f1": "f1_macro",
           "auc": "roc_auc"}  # fmt: skip
SCORERS_OF_NUMBERS = {
    "mse": "neg_mean_squared_error",
    "rmse": "neg_root_mean_squared_error",
    "mae": "neg_mean_absolute_error",
    "r2": "r2",
}


def their_scores(kind, scoring, cv, X, y):
    grid = {"gamma": [0.1, 1.0], "C": [1.0, 8.0]}
    found = GridSearchCV(kind, grid, scoring=scoring, cv=cv).fit(X, y).cv_results_
    table = {(p["gamma"], p["C"]): k for k, p in enumerate(found["params"])}
    order = [table[gamma, C] for gamma in grid["gamma"] for C in grid["C"]]
    scores = [found[f"split{k}_test_score"][order] for k in range(cv.n_splits)]
    return np.array(scores).reshape(-1, 2, 2)


@pytest.mark.parametrize("metric", SCORERS)
def test_scores_of_classes_are_those_of_scikit_learns_scorers(metric, rows):
    X, target = rows
    X, y = X / SIZES, np.where(target > 0.2, "above", "below")
    cv = StratifiedKFold(3)
    ours = SVCCV(Cs=[1.0, 8.0], gammas=[0.1, 1.0], metric=metric, cv=cv, every=True).fit(X, y)
    theirs = their_scores(SVC(), SCORERS[metric], cv, X, y)
    np.testing.assert_allclose(ours.scores_, theirs, atol=0.021)
    assert ours.scores_.shape == (3, 2, 2) and ours.best_score_ <= 1.0
    assert ours.best_score_ == 1.0 - ours.table_["loss"].min()


@pytest.mark.parametrize("metric", SCORERS_OF_NUMBERS)
def test_scores_of_numbers_are_those_of_scikit_learns_scorers(metric, rows):
    X, y = rows
    X, cv = X / SIZES, KFold(3)
    ours = SVRCV(Cs=[1.0, 8.0], gammas=[0.1, 1.0], metric=metric, cv=cv, every=True).fit(X, y)
    theirs = their_scores(SVR(), SCORERS_OF_NUMBERS[metric], cv, X, y)
    np.testing.assert_allclose(ours.scores_[..., 0], theirs, rtol=5e-3)
    sign = 1.0 - ours.table_["loss"] if metric == "r2" else -ours.table_["loss"]
    assert ours.best_score_ == sign.max()


def test_log_loss_is_a_negative_error(rows):
    X, target = rows
    y = (target > 0).astype(int)
    ours = SVCCV(**SEARCH, scale="auto", metric="log-loss").fit(X, y)
    assert -np.log(2) < ours.best_score_ < 0
    fitted = SVC(C=ours.C_, gamma=ours.gamma_, scale="auto", probability=True).fit(X, y)
    assert log_loss(y, fitted.predict_proba(X)) < np.log(2)


def test_several_classes_have_an_auc(rows):
    X, target = rows
    y = np.digitize(target, [-0.3, 0.3])
    ours = SVCCV(**SEARCH, scale="auto", metric="auc").fit(X, y)
    fitted = SVC(C=ours.C_, gamma=ours.gamma_, scale="auto", probability=True).fit(X, y)
    own = roc_auc_score(y, fitted.predict_proba(X), multi_class="ovr")
    assert 0.6 < ours.best_score_ <= own + 0.05


def test_metrics_of_the_other_kind_are_refused(rows):
    X, target = rows
    for one, wrong in ((SVCCV(**SEARCH), "mse"), (AutoSVC(**AUTO), "r2")):
        with pytest.raises(ValueError, match="the metric of classes must be one of accuracy, "):
            clone(one).set_params(metric=wrong).fit(X, target > 0)
    for one in (SVRCV(**SEARCH), AutoSVR(**AUTO)):
        with pytest.raises(ValueError, match="the metric of a regression must be one of mse, "):
            clone(one).set_params(metric="auc").fit(X, target)
        with pytest.raises(ValueError, match="'metric' parameter of .* must be one of accuracy"):
            clone(one).set_params(metric="loss").fit(X, target)


@pytest.mark.parametrize("metric", ["accuracy", "balanced-accuracy", "f1", "auc", "log-loss"])
def test_automatic_settings_are_chosen_by_a_metric(metric, rows):
    X, target = rows
    fitted = AutoSVC(**AUTO, metric=metric).fit(X[:80], target[:80] > 0)
    assert fitted.selection_["metric"] == metric
    assert fitted.score(X, target > 0) > 0.7


# --- parameters ---


@pytest.mark.parametrize("estimator", ALL, ids=named)
def test_parameters_are_options_of_all_estimators(estimator):
    params = estimator.get_params()
    assert params["scale"] is None and params["feature_weights"] is None
    assert ("class_weight" in params) is is_classifier(estimator)
    assert ("metric" in params) is (estimator in [*SEARCHES, *ALL[-2:]])
    again = clone(estimator).set_params(scale="auto", feature_weights="learn")
    assert clone(again).get_params()["scale"] == "auto"


def test_a_parameter_has_the_words_and_the_rule_of_its_option():
    for name in ("levels", "overlap", "early_level", "threads", "nu", "epsilon"):
        words = dcsvm.TrainOptions.text(name).partition(": ")[2]
        kind = NuSVC if name == "nu" else SVR
        doc = " ".join(kind.__doc__.split())
        assert words[0].upper() + words[1:] in doc
    X = np.eye(4)
    for params, words in (
        ({"levels": 31}, "a whole number, from 0 to 30 or None"),
        ({"overlap": 3.0}, "a number, from 1 to 2 or None"),
        ({"threads": 0}, "a whole number, from 1 to 1024 or None"),
        ({"degree": -1}, "a whole number, at least 0"),
    ):
        (name,) = params
        with pytest.raises(ValueError, match=f"The '{name}' parameter of SVC must be {words}"):
            SVC(**params).fit(X, [0, 0, 1, 1])
