"""Test the estimators against scikit-learn's, and their additional features."""

import inspect
import pickle
import re

import numpy as np
import pytest
from reference import labelled_rows
from scipy import sparse
from sklearn import svm
from sklearn.base import BaseEstimator
from sklearn.datasets import load_iris, make_blobs, make_classification, make_regression
from sklearn.exceptions import ConvergenceWarning

import dcsvm
from dcsvm.sklearn import SVC, SVR, NuSVC, NuSVR, OneClassSVM
from dcsvm.training.extraction import NoMarginError

KERNELS = [
    {"kernel": "linear"},
    {"kernel": "rbf"},
    {"kernel": "rbf", "gamma": "auto"},
    {"kernel": "poly", "coef0": 1.0, "degree": 2},
    {"kernel": "sigmoid", "gamma": 0.01},
]


def data_of(name):
    if name in ("SVR", "NuSVR"):
        X, y = make_regression(200, 5, noise=5.0, random_state=0)
        return X, y / y.std()
    return make_blobs(150, 4, centers=3, cluster_std=0.4, center_box=(-1, 1), random_state=2)


@pytest.mark.parametrize("name", ["SVC", "SVR", "NuSVR", "OneClassSVM"])
@pytest.mark.parametrize("kernel", KERNELS, ids=lambda one: "-".join(map(str, one.values())))
@pytest.mark.parametrize("form", [np.asarray, sparse.csr_matrix])
def test_the_decision_function_is_that_of_scikit_learn(name, kernel, form):
    X, y = data_of(name)
    X = form(X)
    ours = getattr(dcsvm.sklearn, name)(**kernel, tol=1e-6).fit(X, y)
    theirs = getattr(svm, name)(**kernel, tol=1e-6, max_iter=10**6).fit(X, y)
    method = "decision_function" if hasattr(theirs, "decision_function") else "predict"
    expected = getattr(theirs, method)(X)
    found = getattr(ours, method)(X)
    assert found.shape == expected.shape
    np.testing.assert_allclose(found, expected, atol=5e-4 * np.abs(expected).max())
    fitted = {one for one in vars(theirs) if one.endswith("_") and not one.startswith("_")}
    assert fitted <= set(dir(ours))


@pytest.mark.parametrize("nu", [0.05, 0.3])
def test_nu_svc_is_that_of_scikit_learn(nu):
    """Every pair has a clear margin: scikit-learn divides its tolerance by the margin."""
    X, y = load_iris(return_X_y=True)
    ours, theirs = NuSVC(nu=nu).fit(X, y), svm.NuSVC(nu=nu, tol=1e-9).fit(X, y)
    np.testing.assert_array_equal(ours.predict(X), theirs.predict(X))
    np.testing.assert_allclose(ours.decision_function(X), theirs.decision_function(X), atol=2e-3)


def test_attributes_have_the_layout_of_scikit_learn():
    X, y = load_iris(return_X_y=True)
    ours, theirs = SVC(C=10).fit(X, y), svm.SVC(C=10, tol=1e-9).fit(X, y)
    for name in ("support_", "n_support_", "classes_", "class_weight_", "shape_fit_"):
        np.testing.assert_array_equal(getattr(ours, name), getattr(theirs, name))
    np.testing.assert_array_equal(ours.support_vectors_, X[ours.support_])
    np.testing.assert_allclose(ours.dual_coef_, theirs.dual_coef_, atol=1e-3)
    np.testing.assert_allclose(ours.intercept_, theirs.intercept_, atol=1e-3)
    assert ours.n_iter_.shape == theirs.n_iter_.shape
    assert ours.fit_status_ == theirs.fit_status_ == 0


def test_the_certificate_of_a_fit_is_an_attribute(wavy):
    X, y = wavy
    fitted = SVC(C=4, gamma=2.0, tol=1e-2, max_iter=10**6).fit(X, y)
    assert 0 <= fitted.violation_ <= 1e-2
    assert 0 <= fitted.duality_gap_ < 0.01 * abs(fitted.report_.objective)
    assert fitted.report_.converged


def test_few_rows_are_solved_as_far_as_rounding_allows(wavy):
    X, y = wavy
    order = np.random.default_rng(0).permutation(len(X))
    one, other = SVC(gamma=1.0).fit(X, y), SVC(gamma=1.0).fit(X[order], y[order])
    assert one.violation_ < 1e-10
    np.testing.assert_allclose(one.decision_function(X), other.decision_function(X), atol=1e-8)


def test_nu_svc_heeds_class_weights():
    X, y = make_blobs([60, 20], centers=[[0, 0], [1, 1]], cluster_std=1.0, random_state=0)
    plain = NuSVC(nu=0.3).fit(X, y)
    balanced = NuSVC(nu=0.3, class_weight="balanced").fit(X, y)
    assert balanced.predict(X).sum() > plain.predict(X).sum()
    weights = np.where(y == 1, 2.0, 2 / 3)
    by_weights = NuSVC(nu=0.3, gamma=plain._gamma).fit(X, y, sample_weight=weights)
    by_class = NuSVC(nu=0.3, gamma=plain._gamma, class_weight="balanced").fit(X, y)
    np.testing.assert_allclose(by_weights.decision_function(X), by_class.decision_function(X))


@pytest.mark.parametrize("class_weight", [None, {0: 100.0}])
def test_nu_that_is_too_large_for_a_pair_of_classes_is_refused_as_scikit_learn_does(class_weight):
    sizes = [60, 50, 5] if class_weight is None else [60, 60, 60]
    X, y = make_blobs(sizes, random_state=0)
    with pytest.raises(ValueError, match="specified nu is infeasible"):
        NuSVC(class_weight=class_weight).fit(X, y)


@pytest.mark.parametrize("seed", range(20))
def test_probabilities_agree_with_predictions(seed):
    rng = np.random.default_rng(seed)
    k = 2 + seed % 3
    X, y = make_classification(
        240, 6, n_informative=4, n_classes=k, flip_y=0.2, weights=rng.dirichlet(np.full(k, 5.0)),
        random_state=seed,
    )  # fmt: skip
    class_weight = "balanced" if seed % 2 else None
    fitted = SVC(C=10.0 ** rng.integers(-1, 3), probability=True, class_weight=class_weight)
    fitted.fit(X[:160], y[:160])
    probabilities = fitted.predict_proba(X)
    np.testing.assert_allclose(probabilities.sum(axis=1), 1)
    np.testing.assert_array_equal(fitted.classes_[probabilities.argmax(axis=1)], fitted.predict(X))
    if k == 2:
        positive = fitted.decision_function(X) > 0
        np.testing.assert_array_equal(positive, probabilities[:, 1] > 0.5)
    np.testing.assert_allclose(np.log(probabilities), fitted.predict_log_proba(X))


def test_probability_gives_no_warning(recwarn):
    X, y = load_iris(return_X_y=True)
    SVC(probability=True).fit(X, y).predict_proba(X)
    assert not [one for one in recwarn if "dcsvm" in str(one.filename) or "probab" in str(one)]


def test_an_early_model_predicts_early():
    X, y = labelled_rows(3000, 2, seed=0)
    early = SVC(C=4, gamma=2.0, early=True, early_level=1, levels=1).fit(X, y)
    both = SVC(C=4, gamma=2.0, early_level=1, levels=1).fit(X, y)
    assert early.model_.exact is None and not hasattr(early, "dual_coef_")
    assert np.mean(early.predict(X) == both.predict(X)) > 0.95
    np.testing.assert_array_equal(
        early.decision_function(X), early.decision_function(X, method="early")
    )
    assert not np.array_equal(both.decision_function(X), both.decision_function(X, method="early"))
    assert len(early.support_) == early.n_support_.sum() == len(early.support_vectors_)
    np.testing.assert_array_equal(early.support_vectors_, X[early.support_])
    with pytest.raises(ValueError, match="no exact solution"):
        early.predict(X, method="exact")


def test_three_classes_of_early_clusters_have_values_for_all():
    X, y = make_blobs(3000, centers=6, cluster_std=0.5, random_state=0)
    early = SVC(early=True, early_level=1, levels=1).fit(X, y)
    assert np.isfinite(early.decision_function(X)).all()
    assert np.mean(early.predict(X) == y) > 0.97


def test_a_warm_start_goes_on_from_the_last_fit(caplog):
    X, y = labelled_rows(3000, 4, seed=1)
    cold = SVC(C=100, gamma=1.0).fit(X, y)
    warm = SVC(C=50, gamma=1.0, warm_start=True).fit(X, y).set_params(C=100).fit(X, y)
    assert warm.n_iter_.sum() < cold.n_iter_.sum()
    np.testing.assert_allclose(warm.report_.objective, cold.report_.objective, rtol=1e-4)
    caplog.set_level("INFO", "dcsvm.sklearn")
    warm.fit(X[::2], y[::2])
    assert "cold start" in caplog.text
    assert np.mean(warm.predict(X) == cold.predict(X)) > 0.9


def test_a_warm_start_has_the_intercept_of_a_cold_one():
    """The intercept is not unique if all support vectors are at a bound."""
    X, y = load_iris(return_X_y=True)
    warm = SVC(warm_start=True)
    for C in (100, 1, 1e-3):
        warm.set_params(C=C).fit(X, y)
    np.testing.assert_allclose(warm.intercept_, SVC(C=1e-3).fit(X, y).intercept_, atol=1e-6)


def test_a_fit_that_fails_leaves_the_model_as_it_was():
    X, y = load_iris(return_X_y=True)
    fitted = SVC().fit(X, y)
    before = fitted.decision_function(X)
    with pytest.raises(dcsvm.Stopped):
        fitted.set_params(time_limit=0).fit(X[:, :2], np.arange(150) % 5)
    np.testing.assert_array_equal(fitted.decision_function(X), before)


@pytest.mark.parametrize("n", [2, 3, 4])
def test_probabilities_of_a_few_rows(n):
    X, y = np.arange(float(n))[:, None], np.minimum(np.arange(n), 1)
    probabilities = SVC(probability=True).fit(X, y).predict_proba(X)
    np.testing.assert_allclose(probabilities.sum(axis=1), 1)


def test_nu_svc_without_a_margin_is_that_of_scikit_learn(caplog):
    caplog.set_level("INFO", "dcsvm.sklearn")
    X, y = load_iris(return_X_y=True)
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    fitted = NuSVC(kernel="linear", nu=0.05).fit(X, y)
    assert "no margin" in caplog.text
    assert fitted.score(X, y) == svm.NuSVC(kernel="linear", nu=0.05).fit(X, y).score(X, y)


@pytest.mark.parametrize("form", [np.asarray, sparse.csr_matrix])
@pytest.mark.parametrize(("kernel", "norm"), [("laplacian", 1), ("exponential", 2)])
def test_scikit_learns_solver_has_the_kernels_that_it_lacks(kernel, norm, form, monkeypatch):
    def fail(*_):
        raise NoMarginError

    monkeypatch.setattr(NuSVC, "_trained", fail)
    X, y = load_iris(return_X_y=True)
    X, y = X[50:130:2], y[50:130:2]
    distance = np.linalg.norm(X[:, None] - X, norm, axis=2)
    theirs = svm.NuSVC(nu=0.3, kernel="precomputed").fit(np.exp(-distance), y)
    fitted = NuSVC(nu=0.3, kernel=kernel, gamma=1.0).fit(form(X), y)
    expected = theirs.decision_function(np.exp(-distance))
    np.testing.assert_allclose(fitted.decision_function(form(X)), expected, atol=1e-6)
    np.testing.assert_array_equal(fitted.support_, theirs.support_)
    np.testing.assert_allclose(fitted.model_.decision_function(form(X)), -expected, atol=1e-4)
    theirs = fitted.to_sklearn()
    np.testing.assert_allclose(theirs.decision_function(form(X)), expected, atol=1e-6)


@pytest.mark.parametrize("kernel", ["rbf", "laplacian", "exponential"])
def test_equal_rows_of_two_classes_have_no_margin(kernel):
    X, y = np.repeat([[0.0], [1.0]], 10, axis=0), np.tile([0, 1], 10)
    with pytest.raises(ValueError, match="no margin between two classes"):
        NuSVC(nu=0.5, kernel=kernel, gamma=1.0).fit(X, y)


@pytest.mark.parametrize("seconds", [1e10, np.inf])
def test_a_time_limit_of_ages_is_none(seconds):
    X, y = load_iris(return_X_y=True)
    assert SVC(time_limit=seconds).fit(X, y).fit_status_ == 0


def test_a_fit_that_is_stopped_before_a_model_exists_says_so():
    X, y = load_iris(return_X_y=True)
    with pytest.raises(dcsvm.Stopped, match="stopped before a model existed"):
        SVC(time_limit=0).fit(X, y)


def test_a_cubic_of_raw_rows_is_solved_here():
    X, y = load_iris(return_X_y=True)
    options = {"kernel": "poly", "gamma": 1.0, "C": 1000.0}
    fitted = SVC(**options).fit(X, y)
    assert fitted.report_ is not None and fitted.fit_status_ == 0
    assert fitted.score(X, y) == svm.SVC(**options).fit(X, y).score(X, y) == 1.0


def test_what_is_left_to_scikit_learn_has_a_limit(monkeypatch):
    limits = []

    def fit(self, *_):
        limits.append(self.max_iter)
        self.fit_status_ = 1  # as if it had not converged

    monkeypatch.setattr(svm.NuSVC, "fit", fit)
    X, y = load_iris(return_X_y=True)
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    with pytest.raises(ValueError, match="no margin between two classes"):
        NuSVC(kernel="linear", nu=0.05).fit(X, y)
    assert len(limits) == 1 and 10**6 < limits[0] < 10**9


def test_nu_svc_near_no_margin_is_not_left_to_scikit_learn(monkeypatch):
    def fail(*_, **__):
        raise AssertionError("left to scikit-learn")

    monkeypatch.setattr(svm.NuSVC, "fit", fail)
    rng = np.random.default_rng(0)
    X = rng.standard_normal((2500, 3))
    with pytest.warns(UserWarning, match="solved as C-SVC"):
        fitted = NuSVC(nu=0.9, gamma=0.1).fit(X, np.arange(2500) % 2)
    assert fitted.model_.exact is not None and fitted.fit_status_ == 0


@pytest.mark.parametrize("params", [{"gamma": 1e39}, {"kernel": "poly", "gamma": 1.0, "degree": 9}])
def test_kernel_values_beyond_float32_are_refused_as_scikit_learn_does(params):
    X, y = load_iris(return_X_y=True)
    with pytest.raises(ValueError, match="not finite.*beyond float32"):
        SVC(**params).fit(1e5 * X, y)


def test_a_fit_that_is_left_warns_of_the_limit_that_was_given():
    X, y = load_iris(return_X_y=True)
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    with pytest.warns(ConvergenceWarning, match="max_iter=5"):
        fitted = NuSVC(kernel="linear", nu=0.05, max_iter=5).fit(X, y)
    assert fitted.fit_status_ == 1


def test_features_far_from_zero_are_told_if_the_kernel_needs_their_size():
    X = (1.7e9 + np.arange(100.0))[:, None]
    with pytest.warns(UserWarning, match="feature 0 is rounded to float32 by up to 64, and .* 99: "
                      "subtract its smallest value, 1700000000,"):  # fmt: skip
        SVC(kernel="sigmoid").fit(X, np.arange(100) // 50)


def test_parameters_set_after_a_fit_do_not_break_predictions():
    X, y = load_iris(return_X_y=True)
    fitted = SVC().fit(X, y)
    expected = fitted.predict(X)
    np.testing.assert_array_equal(fitted.set_params(kernel="linear").predict(X), expected)
    with pytest.raises(AttributeError, match="fitted with a linear kernel"):
        _ = fitted.coef_


@pytest.mark.parametrize("factor", [0, -1, np.nan, np.inf])
@pytest.mark.parametrize("Estimator", [SVC, NuSVC])
def test_class_weights_have_to_be_positive(Estimator, factor):
    X, y = load_iris(return_X_y=True)
    with pytest.raises(ValueError, match="class_weight must be positive and finite"):
        Estimator(class_weight={0: factor}).fit(X, y)


def test_a_time_limit_ends_a_fit(wavy):
    X, y = wavy
    with pytest.raises(dcsvm.Stopped):
        SVC(time_limit=0.0).fit(X, y)
    with pytest.warns(ConvergenceWarning, match=r"Solver terminated early \(max_iter=3\)"):
        fitted = SVC(max_iter=3).fit(X, y)
    assert fitted.fit_status_ == 1


def test_a_checkpoint_is_removed_when_the_fit_is_done(wavy, tmp_path):
    X, y = wavy
    folder = tmp_path / "run"
    fitted = SVC(checkpoint=str(folder)).fit(X, y)
    assert not (folder / "state.npz").exists()
    np.testing.assert_array_equal(
        fitted.predict(X), SVC(tol=1e-3, max_iter=10**9).fit(X, y).predict(X)
    )


def test_labels_of_any_kind_come_back():
    X = np.r_[np.zeros((20, 2)), np.ones((20, 2))] + np.random.default_rng(0).normal(
        0, 0.1, (40, 2)
    )
    for labels in (["no", "yes"], [False, True], [2**60, 2**60 + 1], [-1, 1]):
        y = np.repeat(np.array(labels), 20)
        fitted = SVC().fit(X, y)
        np.testing.assert_array_equal(fitted.predict(X), y)
        assert fitted.predict(X).dtype == fitted.classes_.dtype == np.array(labels).dtype
        assert np.all((fitted.decision_function(X) > 0) == (y == max(labels)))
        again = pickle.loads(pickle.dumps(fitted))
        np.testing.assert_array_equal(again.decision_function(X), fitted.decision_function(X))


def test_verbose_prints_what_is_done(capsys):
    X, y = labelled_rows(3000, 2, seed=0)
    SVC(verbose=True).fit(X, y)
    assert "[dcsvm]" in capsys.readouterr().out
    SVC().fit(X, y)
    assert capsys.readouterr().out == ""


@pytest.mark.parametrize("kind", [SVC, SVR, OneClassSVM])
def test_a_few_plain_rows_take_the_short_way_to_the_same_values(kind, monkeypatch):
    X, y = labelled_rows(300, 4, seed=31)
    fitted, few = kind().fit(X, y), X[:8]
    whole = fitted.predict(X)
    calls = []
    long_way = kind._check_rows_to_predict
    monkeypatch.setattr(
        kind, "_check_rows_to_predict", lambda *given: calls.append(0) or long_way(*given)
    )
    for rows in (few, few.astype(np.float32), np.asfortranarray(few), few[:1]):
        assert np.array_equal(fitted.predict(rows), whole[: len(rows)])
        assert (
            fitted.decision_function(rows).tobytes()
            == (fitted.decision_function(X)[: len(rows)].tobytes())
            if kind is not SVR
            else True
        )
    n_long = len(calls)
    fitted.predict(few)
    assert len(calls) == n_long
    for wrong in (few[:, :3], np.where(few == few[0, 0], np.nan, few), few[0]):
        with pytest.raises(ValueError):
            fitted.predict(wrong)
    n_long = len(calls)
    fitted.predict(few.tolist())
    assert len(calls) == n_long + 1  # lists take the slow path


@pytest.mark.parametrize("Estimator", [SVC, NuSVC, SVR, NuSVR, OneClassSVM])
def test_a_constructor_has_scikit_learns_parameters_by_keyword_with_its_defaults(Estimator):
    ours = inspect.signature(Estimator).parameters
    theirs = inspect.signature(getattr(svm, Estimator.__name__)).parameters
    names = [name for name in theirs if name != "probability"]  # deprecated in scikit-learn
    assert {name: ours[name].default for name in names} == {
        name: theirs[name].default for name in names
    }
    assert all(one.kind is one.KEYWORD_ONLY for one in ours.values())
    for name, one in ours.items():
        assert re.search(rf"^ *{name} : .*, default={re.escape(repr(one.default))}$",
                         Estimator.__doc__, re.M)  # fmt: skip
    with pytest.raises(TypeError, match="unexpected keyword argument 'Gamma'"):
        Estimator(Gamma=1)


@pytest.mark.parametrize("name", ["SVC", "NuSVC", "SVR", "NuSVR", "OneClassSVM"])
@pytest.mark.parametrize("form", [np.asarray, sparse.csr_matrix])
def test_gamma_is_relative_to_the_median_distance(name, form):
    X, y = data_of(name)
    fitted = getattr(dcsvm.sklearn, name)(gamma="2/median")
    if name == "NuSVC":
        fitted.set_params(nu=0.1)
    fitted.fit(form(X), y)
    number = dcsvm.train(form(X), svm_type="one_class", gamma="2/median").kernel.gamma
    assert fitted._gamma == fitted.model_.kernel.gamma == number
    assert fitted.get_params()["gamma"] == "2/median"
    theirs = fitted.to_sklearn()
    assert theirs.gamma == number
    method = "decision_function" if hasattr(theirs, "decision_function") else "predict"
    expected = getattr(theirs, method)(form(X))
    np.testing.assert_allclose(getattr(fitted, method)(form(X)), expected, atol=1e-4)


def test_a_median_is_of_kernels_of_a_distance():
    X, y = data_of("SVC")
    for kernel, named in (("poly", "polynomial"), ("linear",) * 2, (lambda a, b: a @ b.T, "prec")):
        with pytest.raises(ValueError, match=f"gamma must be a number for kernel {named}"):
            SVC(kernel=kernel, gamma="2/median").fit(X, y)
    for gamma in ("x/median", "median", "0.5"):
        with pytest.raises(ValueError, match=r"The 'gamma' parameter .* 'auto' or F/median"):
            SVC(gamma=gamma).fit(X, y)


def test_scikit_learns_solver_takes_the_number_of_a_median():
    X, y = load_iris(return_X_y=True)
    fitted = SVC(gamma="2/median").fit(X, y)
    own = fitted.decision_function(X)
    assert fitted._fall_back((X, y, None), "for the test")
    assert fitted.to_sklearn().gamma == fitted._gamma == fitted.model_.kernel.gamma
    np.testing.assert_allclose(fitted.decision_function(X), own, atol=5e-3)


@pytest.mark.parametrize("kernel", ["precomputed", lambda A, B: A @ B.T, "linear"])
def test_the_attributes_of_a_fitted_estimator_are_listed(kernel):
    """`dir` reads all attributes, also those that only other kernels have."""
    X, y = load_iris(return_X_y=True)
    fitted = SVC(kernel=kernel).fit(X @ X.T if kernel == "precomputed" else X, y)
    assert hasattr(fitted, "coef_") == (kernel == "linear")
    # before 1.8, scikit-learn lists attributes that raise AttributeError, too
    if kernel == "linear" or "__dir__" in vars(BaseEstimator):
        assert ("coef_" in dir(fitted)) == (kernel == "linear")
    assert "n_support_" in dir(fitted)
