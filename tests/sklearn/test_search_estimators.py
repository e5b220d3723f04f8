"""Test SVCCV and SVRCV against scikit-learn's GridSearchCV with the same folds."""

import pickle

import numpy as np
import pytest
import sklearn
from scipy import sparse
from sklearn import svm
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.model_selection import (
    GridSearchCV,
    KFold,
    LeaveOneGroupOut,
    PredefinedSplit,
    RepeatedKFold,
    ShuffleSplit,
    TimeSeriesSplit,
)
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import dcsvm.sklearn
from dcsvm.sklearn import SVC, SVCCV, SVR, SVRCV
from dcsvm.training.held_out import DEFAULT_CS, DEFAULT_GAMMAS

CS, GAMMAS = [0.5, 8.0, 128.0], [0.01, 0.1, 1.0]
SMALL = {"Cs": CS, "gammas": GAMMAS}


@pytest.fixture(scope="module")
def three_classes(three_classes):
    """Return the rows of conftest.py with class names."""
    X, y = three_classes
    return X, np.array(["one", "two", "three"])[y]


def folds_of(n, n_folds, *, n_only_trained=0):
    """Split n rows into random folds; some rows are in no fold."""
    fold = np.random.default_rng(0).permutation(np.arange(n) % n_folds)
    fold[:n_only_trained] = -1
    return PredefinedSplit(fold)


def their_scores(search, *names):
    """Return the scores of a GridSearchCV, (n_folds, ...) with an axis for each of `names`."""
    found, grid = search.cv_results_, search.param_grid
    in_turn = sorted(grid)
    scores = np.array([found[f"split{k}_test_score"] for k in range(search.n_splits_)])
    scores = scores.reshape(-1, *(len(grid[name]) for name in in_turn))
    return scores.transpose(0, *(1 + in_turn.index(name) for name in names))


# --- the same as a GridSearchCV ---


@pytest.mark.parametrize("kind", [SVC, svm.SVC])
@pytest.mark.parametrize("n_only_trained", [0, 40])
def test_scores_are_those_of_a_grid_search(three_classes, kind, n_only_trained):
    X, y = three_classes
    cv = folds_of(len(y), 4, n_only_trained=n_only_trained)
    ours = SVCCV(**SMALL, cv=cv, every=True).fit(X, y)
    theirs = GridSearchCV(kind(), {"C": CS, "gamma": GAMMAS}, cv=cv).fit(X, y)
    expected = their_scores(theirs, "gamma", "C")
    row = 4 / (len(y) - n_only_trained)
    assert ours.scores_.shape == (4, 3, 3)
    np.testing.assert_allclose(ours.scores_, expected, atol=1.01 * row)
    assert ours.best_score_ == pytest.approx(theirs.best_score_, abs=row)
    place = GAMMAS.index(ours.gamma_), CS.index(ours.C_)
    assert expected.mean(axis=0)[place] >= theirs.best_score_ - row
    assert ours.is_complete_.all() and ours.is_complete_.shape == (3, 3)
    np.testing.assert_array_equal(ours.Cs_, CS)
    np.testing.assert_array_equal(ours.gammas_, GAMMAS)


@pytest.mark.parametrize("kind", [SVR, svm.SVR])
def test_scores_of_a_regression_are_those_of_a_grid_search(curve, kind):
    X, y = curve
    epsilons, cv = [0.01, 0.5], KFold(5)
    ours = SVRCV(**SMALL, epsilons=epsilons, cv=cv, every=True).fit(X, y)
    grid = {"C": CS, "gamma": GAMMAS, "epsilon": epsilons}
    theirs = GridSearchCV(kind(), grid, cv=cv, scoring="neg_mean_squared_error").fit(X, y)
    expected = their_scores(theirs, "gamma", "C", "epsilon")
    assert ours.scores_.shape == (5, 3, 3, 2)
    np.testing.assert_allclose(ours.scores_, expected, rtol=5e-3)
    found = {"C": ours.C_, "gamma": ours.gamma_, "epsilon": ours.epsilon_}
    assert found == theirs.best_params_
    assert ours.best_score_ == pytest.approx(theirs.best_score_, rel=5e-3)
    np.testing.assert_array_equal(ours.epsilons_, epsilons)
    assert ours.score(X, y) > 0.9


@pytest.mark.parametrize("Estimator, single", [(SVCCV, SVC), (SVRCV, SVR)])
def test_the_model_is_that_of_what_was_chosen(three_classes, curve, Estimator, single, tmp_path):
    X, y = three_classes if Estimator is SVCCV else curve
    chosen = Estimator(**SMALL, random_state=0).fit(X, y)
    alone = single(C=chosen.C_, gamma=chosen.gamma_).fit(X, y)
    np.testing.assert_array_equal(chosen.predict(X), alone.predict(X))
    np.testing.assert_array_equal(chosen.support_, alone.support_)
    np.testing.assert_array_equal(chosen.dual_coef_, alone.dual_coef_)
    theirs = chosen.to_sklearn()
    assert (theirs.C, theirs.gamma) == (chosen.C_, chosen.gamma_)
    if Estimator is SVRCV:
        np.testing.assert_allclose(theirs.predict(X), chosen.predict(X), rtol=1e-4)
        chosen.save(tmp_path / "model")
        again = dcsvm.sklearn.load(tmp_path / "model")
        np.testing.assert_allclose(again.predict(X), chosen.predict(X), rtol=1e-4)
    else:
        np.testing.assert_array_equal(theirs.predict(X), chosen.predict(X))


# --- the grid ---


def test_numbers_of_values_span_the_default_grid(three_classes):
    X, y = three_classes
    fitted = SVCCV(random_state=0).fit(X[:60], y[:60])
    np.testing.assert_allclose(fitted.Cs_, DEFAULT_CS)
    np.testing.assert_allclose(fitted.gammas_, DEFAULT_GAMMAS)
    fitted = SVCCV(Cs=3, gammas=2, random_state=0).fit(X[:60], y[:60])
    np.testing.assert_allclose(fitted.Cs_, [2.0**-5, 2.0**5, 2.0**15])
    np.testing.assert_allclose(fitted.gammas_, [2.0**-15, 2.0**3])


def test_refine_tries_a_finer_grid(three_classes):
    X, y = three_classes
    coarse = SVCCV(**SMALL, random_state=0).fit(X, y)
    fine = SVCCV(**SMALL, random_state=0, refine=True).fit(X, y)
    assert fine.best_score_ >= coarse.best_score_
    assert len(fine.Cs_) == len(fine.gammas_) == 3 + 4
    assert fine.C_ in fine.Cs_ and fine.gamma_ in fine.gammas_
    is_scored = np.isfinite(fine.scores_).any(axis=0)
    assert is_scored.sum() == len(fine.table_["C"]) == 9 + 25 - 1
    assert not np.any(fine.is_complete_ & ~is_scored)


def test_the_scores_are_those_of_the_table(three_classes):
    X, y = three_classes
    fitted = SVCCV(**SMALL, cv=folds_of(len(y), 4), every=True).fit(X, y)
    table = fitted.table_
    places = np.searchsorted(GAMMAS, table["gamma"]), np.searchsorted(CS, table["C"])
    np.testing.assert_allclose(1 - table["loss"], fitted.scores_.mean(axis=0)[places])
    assert fitted.best_score_ == 1 - table["loss"].min()


@pytest.mark.parametrize("given", [{"Cs": []}, {"Cs": [0.0, 1.0]}, {"gammas": [[1.0]]},
                                   {"gammas": [np.inf]}, {"Cs": 1}, {"gammas": 0.5}])  # fmt: skip
def test_values_that_are_no_grid_are_refused(three_classes, given):
    with pytest.raises(ValueError, match=next(iter(given))):
        SVCCV(**given).fit(*three_classes)


def test_epsilons_that_are_no_grid_are_refused(curve):
    for epsilons in ([], [-0.1], [np.nan]):
        with pytest.raises(ValueError, match="epsilons must be"):
            SVRCV(epsilons=epsilons).fit(*curve)


def test_a_kernel_without_gamma_has_none(three_classes):
    X, y = three_classes
    cv = folds_of(len(y), 4)
    linear = SVCCV(**SMALL, kernel="linear", cv=cv, every=True).fit(X, y)
    matrix = SVCCV(Cs=CS, kernel="precomputed", cv=cv, every=True).fit(X @ X.T, y)
    called = SVCCV(Cs=CS, kernel=lambda a, b: a @ b.T, cv=cv, every=True).fit(X, y)
    assert linear.gamma_ is None and linear.gammas_ is None
    assert linear.scores_.shape == (4, 1, 3) and linear.coef_.shape == (3, 6)
    for other in (matrix, called):
        np.testing.assert_allclose(other.scores_, linear.scores_, atol=1.01 * 4 / len(y))
    np.testing.assert_array_equal(matrix.predict(X @ X.T), called.predict(X))
    assert linear.to_sklearn().C == linear.C_


# --- folds ---


def test_folds_are_random_by_their_seed(three_classes):
    X, y = three_classes
    first, again, other = (
        SVCCV(**SMALL, every=True, random_state=seed).fit(X, y).scores_ for seed in (0, 0, 1)
    )
    np.testing.assert_array_equal(first, again)
    assert not np.array_equal(first, other)


def test_fewer_rows_of_a_class_than_folds_are_spread(three_classes):
    X, y = three_classes
    own = np.concatenate([np.flatnonzero(y != "two"), np.flatnonzero(y == "two")[:2]])
    fitted = SVCCV(**SMALL, cv=5, random_state=0).fit(X[own], y[own])
    assert fitted.scores_.shape[0] == 5 and np.isfinite(fitted.scores_).all()
    with pytest.raises(ValueError, match="cv must be at most n_samples=6, got 7"):
        SVCCV(cv=7).fit(X[:6], y[:6])


def test_splits_are_folds_in_all_their_forms(three_classes):
    X, y = three_classes
    splits = list(KFold(3).split(X))
    expected = SVCCV(**SMALL, cv=KFold(3), every=True).fit(X, y).scores_
    masks = [(~np.isin(np.arange(len(y)), test), np.isin(np.arange(len(y)), test))
             for _, test in splits]  # fmt: skip
    groups = np.repeat([0, 1, 2], 80)
    by_group = list(LeaveOneGroupOut().split(X, y, groups))
    for cv in (splits, iter(splits), masks, by_group):
        found = SVCCV(**SMALL, cv=cv, every=True).fit(X, y)
        np.testing.assert_array_equal(found.scores_, expected)
    one = SVCCV(**SMALL, cv=ShuffleSplit(1, random_state=0)).fit(X, y)
    assert one.scores_.shape == (1, 3, 3)
    assert one.table_["n_rows"].max() == 24


def test_splits_that_are_no_folds_are_refused(three_classes):
    X, y = three_classes
    rows = np.arange(len(y))
    for cv, reason in (
        (TimeSeriesSplit(3), "must train on all rows outside its test set"),
        (ShuffleSplit(20, random_state=0), "must be disjoint"),
        (RepeatedKFold(n_splits=3, n_repeats=2), "must be disjoint"),
        ([(rows[10:], np.zeros(10, int))], "must be disjoint"),
        ([(np.resize(rows[10:], len(y)), rows[:10])], "must train on all rows"),
        ([(rows, rows[:10])], "must train on all rows"),
        ([(rows, rows[:0])], "has an empty test set"),
        ([(rows[10:], rows[:10] + len(y))], "does not index 240 rows"),
        ([], "no splits"),
    ):
        with pytest.raises(ValueError, match=reason):
            SVCCV(**SMALL, cv=cv).fit(X, y)


# --- fits ---


def test_without_refit_there_is_no_model(three_classes):
    X, y = three_classes
    fitted = SVCCV(**SMALL, random_state=0, probability=True).fit(X, y)
    chosen = fitted.C_, fitted.gamma_
    fitted.set_params(refit=False).fit(X, y)
    assert (fitted.C_, fitted.gamma_) == chosen
    assert not hasattr(fitted, "support_") and not hasattr(fitted, "dual_coef_")
    for method in (fitted.predict, fitted.decision_function, fitted.predict_proba):
        with pytest.raises(NotFittedError, match="refit=False"):
            method(X)
    for method in (fitted.to_sklearn, lambda: fitted.save("model")):
        with pytest.raises(NotFittedError, match="refit=False"):
            method()
    with pytest.raises(NotFittedError, match="not fitted yet"):
        SVCCV().predict(X)


def test_a_fit_that_fails_leaves_the_last_one(three_classes):
    X, y = three_classes
    fitted = SVCCV(**SMALL, random_state=0).fit(X, y)
    before = fitted.predict(X)
    with pytest.raises(ValueError, match="Cs must be"):
        fitted.set_params(Cs=[-1.0]).fit(X, y)
    np.testing.assert_array_equal(fitted.predict(X), before)


def test_settings_that_do_not_converge_are_told(three_classes):
    X, y = three_classes
    with pytest.warns(ConvergenceWarning, match="3 of 3 settings did not converge"):
        SVCCV(Cs=CS, kernel="linear", max_iter=1, refit=False).fit(X, y)


def test_class_weights_are_those_of_svc(three_classes):
    X, y = three_classes
    cv, weights = folds_of(len(y), 4), {"one": 3.0, "two": 0.5}
    fitted = SVCCV(**SMALL, cv=cv, every=True, class_weight=weights).fit(X, y)
    theirs = GridSearchCV(SVC(class_weight=weights), {"C": CS, "gamma": GAMMAS}, cv=cv).fit(X, y)
    np.testing.assert_allclose(
        fitted.scores_, their_scores(theirs, "gamma", "C"), atol=1.01 * 4 / len(y)
    )
    alone = SVC(C=fitted.C_, gamma=fitted.gamma_, class_weight=weights).fit(X, y)
    np.testing.assert_array_equal(fitted.decision_function(X), alone.decision_function(X))
    balanced = SVCCV(**SMALL, class_weight="balanced").fit(X[50:], y[50:])
    alone = SVC(class_weight="balanced").fit(X[50:], y[50:])
    np.testing.assert_array_equal(balanced.class_weight_, alone.class_weight_)


# --- scikit-learn's tools ---


def test_sparse_rows_are_the_same_as_dense_ones(three_classes):
    X, y = three_classes
    X = np.where(X > 0, X, 0)
    dense = SVCCV(**SMALL, random_state=0, every=True).fit(X, y)
    csr = SVCCV(**SMALL, random_state=0, every=True).fit(sparse.csr_matrix(X), y)
    np.testing.assert_allclose(csr.scores_, dense.scores_, atol=1.01 * 5 / len(y))
    assert np.mean(csr.predict(sparse.csr_matrix(X)) == dense.predict(X)) > 0.98


def test_copies_and_pickles(three_classes):
    X, y = three_classes
    fitted = SVCCV(**SMALL, random_state=0).fit(X, y)
    again = pickle.loads(pickle.dumps(fitted))
    np.testing.assert_array_equal(again.predict(X), fitted.predict(X))
    np.testing.assert_array_equal(again.scores_, fitted.scores_)
    assert clone(fitted).get_params() == fitted.get_params()
    assert not hasattr(clone(fitted), "C_")


def test_a_pipeline_in_a_grid_search_over_kernels(three_classes):
    X, y = three_classes
    pipeline = make_pipeline(StandardScaler(), SVCCV(**SMALL, random_state=0))
    search = GridSearchCV(pipeline, {"svccv__kernel": ["linear", "rbf"]}, cv=3).fit(X, y)
    assert search.best_params_ == {"svccv__kernel": "rbf"}
    assert search.predict(X).shape == y.shape


def test_sample_weights_are_asked_for_by_metadata_routing():
    with sklearn.config_context(enable_metadata_routing=True):
        assert "sample_weight" in SVCCV().get_metadata_routing().fit.requests


def test_verbose_says_what_was_chosen(three_classes, capsys):
    SVCCV(**SMALL, random_state=0, verbose=True, refit=False).fit(*three_classes)
    assert "[dcsvm] GridResult(9 settings, best C=" in capsys.readouterr().out
