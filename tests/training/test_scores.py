"""Compare searches by each metric with scikit-learn's models and metrics on the same folds."""

from dataclasses import replace
from itertools import combinations

import numpy as np
import pytest
from reference import spots, surface

from dcsvm import _core
from dcsvm.data.dataset import Dataset
from dcsvm.data.rows import Rows
from dcsvm.model.figure import loss_of_best
from dcsvm.model.parts import coupled, pair_probabilities
from dcsvm.problem.option_table import CLASS_METRICS, REGRESSION_METRICS
from dcsvm.problem.options import TrainOptions
from dcsvm.training import race
from dcsvm.training import scores as score_module
from dcsvm.training.engine import prepare_rows
from dcsvm.training.held_out import Grid, best_of, folds_of
from dcsvm.training.probability import CrossValidationRun, fit_sigmoid, sigmoid
from dcsvm.training.race import Race
from dcsvm.training.report import Progress
from dcsvm.training.state import RunControl

metrics = pytest.importorskip("sklearn.metrics")
svm = pytest.importorskip("sklearn.svm")

OPTIONS = TrainOptions(threads=1, cache_mb=50, seed=1, tolerance=1e-4, bias=True)
GRID = Grid((0.1, 1.0, 30.0), (0.5, 10.0))


def log_loss(y, values, weights):
    first = y == y.min()
    p = sigmoid(values, *fit_sigmoid(values, first, weights))
    return metrics.log_loss(first, p, sample_weight=weights, labels=[False, True])


# Of labels or targets, predictions, decision values (positive for the smaller label) and weights.
LOSSES = {
    "accuracy": lambda y, guess, _values, w: 1 - metrics.accuracy_score(y, guess, sample_weight=w),
    "balanced-accuracy": lambda y, guess, _values, w: (
        1 - metrics.balanced_accuracy_score(y, guess, sample_weight=w)
    ),
    "f1": lambda y, guess, _values, w: (
        1 - metrics.f1_score(y, guess, average="macro", sample_weight=w)
    ),
    "auc": lambda y, _guess, values, w: 1 - metrics.roc_auc_score(y, -values, sample_weight=w),
    "log-loss": lambda y, _guess, values, w: log_loss(y, values, w),
    "mse": lambda y, guess, _values, w: metrics.mean_squared_error(y, guess, sample_weight=w),
    "rmse": lambda y, guess, _values, w: (
        metrics.mean_squared_error(y, guess, sample_weight=w) ** 0.5
    ),
    "mae": lambda y, guess, _values, w: metrics.mean_absolute_error(y, guess, sample_weight=w),
    "r2": lambda y, guess, _values, w: 1 - metrics.r2_score(y, guess, sample_weight=w),
}


def scikit_learn(setting, X, y, options, weights):
    """Train on weighted rows; return a function that predicts labels and decision values."""
    how = {"C": setting.C, "gamma": setting.gamma, "tol": 1e-6}
    model = svm.SVC(**how) if options.svm_type == "c_svc" else svm.SVR(**how)
    model.fit(X, y, sample_weight=weights)
    if options.svm_type == "c_svc":
        return lambda rows: (model.predict(rows), -model.decision_function(rows))
    return lambda rows: (model.predict(rows), None)


def held_out(setting, data, fold, options, weights):
    """Predict each fold by a model of the others; return predictions and values (n,)."""
    X, y = data
    guess, values = np.empty(len(y)), np.empty(len(y))
    for k in range(fold.max() + 1):
        others, own = fold != k, fold == k
        predicted = scikit_learn(setting, X[others], y[others], options, weights[others])
        guess[own], values[own] = predicted(X[own])
    return guess, values


def searched(data, options, metric, fold, weights, **how):
    rows = Rows.from_array(data[0])
    search = Race(rows, data[1], fold, options, metric=metric, sample_weight=weights, **how)
    return list(search.run(GRID))


def noisy(data, seed=0):
    """Exchange a seventh of the labels of two classes, so that no metric is perfect."""
    X, y = data
    is_other = np.random.default_rng(seed).random(len(y)) < 1 / 7
    return X, np.where(is_other, y.min() + y.max() - y, y)


@pytest.mark.parametrize("is_weighted", [False, True])
@pytest.mark.parametrize("most_whole", [race.MAX_WHOLE, 0], ids=["whole", "folds"])
@pytest.mark.parametrize("metric", LOSSES)
def test_scores_are_those_of_scikit_learn(metric, most_whole, is_weighted, monkeypatch):
    monkeypatch.setattr(race, "MAX_WHOLE", most_whole)
    is_regression = metric in REGRESSION_METRICS
    data = surface(150) if is_regression else noisy(spots(200, 2, seed=2))
    X, y = data
    options = replace(OPTIONS, svm_type="epsilon_svr") if is_regression else OPTIONS
    fold = options.fold_of_rows(y, 3)
    weights = np.random.default_rng(1).integers(1, 4, len(y)) if is_weighted else np.ones(len(y))
    given = weights if is_weighted else None
    scores = searched(data, options, metric, fold, given, every=True)
    assert len(scores) == len(GRID.settings)
    for score in scores:
        guess, values = held_out(score.setting, data, fold, options, weights)
        loss = LOSSES[metric](y, guess, values, weights)
        assert score.loss == pytest.approx(loss, rel=5e-3, abs=2.5 / weights.sum())
        assert score.is_complete and score.converged and score.weight == weights.sum()
        if metric != "log-loss":  # one sigmoid for all folds
            for k in range(3):
                own = fold == k
                loss = LOSSES[metric](y[own], guess[own], values[own], weights[own])
                tolerance = 3 * weights.max() / weights[own].sum()
                assert score.losses[k] == pytest.approx(loss, rel=5e-3, abs=tolerance)


@pytest.mark.parametrize("metric", ["f1", "auc", "log-loss"])
def test_early_scores_are_those_of_early_models(metric):
    X, y = noisy(spots(900, 2, seed=4))
    options = replace(OPTIONS, early=True, early_level=1, overlap=1.0)
    rows, weights = Rows.from_array(X), np.ones(900)
    fold = options.fold_of_rows(y, 3)
    for C in (1.0, 30.0):
        search = Race(rows, y, fold, options, metric=metric)
        (score,) = search.run(Grid((C,), (10.0,)))
        prepared = prepare_rows(rows, y, replace(options, C=C, gamma=10.0))
        held = CrossValidationRun(prepared, folds_of(prepared, 3), Progress(), keeps_values=True)
        for batch in held.batches(held.open):
            held.solve(batch)
        guess, values = held.predicted[held.folds.entry], held.values[held.folds.entry, 0]
        values = values if prepared.task.labels[0] == y.min() else -values
        loss = LOSSES[metric](y, guess, values, weights)
        assert score.loss == pytest.approx(loss, rel=0.02)
        assert score.loss < 0.68  # of labels alone: 0.69, or 0.5


@pytest.mark.parametrize("metric", ["auc", "log-loss"])
def test_early_scores_of_several_classes_are_those_of_early_models(metric):
    X, y = spots(900, 3, seed=4)
    rng = np.random.default_rng(1)
    y = np.where(rng.random(900) < 0.2, rng.permutation(y), y)
    options = replace(OPTIONS, early=True, early_level=1, overlap=1.0)
    rows, fold = Rows.from_array(X), OPTIONS.fold_of_rows(y, 3)
    search = Race(rows, y, fold, options, metric=metric)
    (score,) = search.run(Grid((1.0,), (10.0,)))
    prepared = prepare_rows(rows, y, replace(options, C=1.0, gamma=10.0))
    held = CrossValidationRun(prepared, folds_of(prepared, 3), Progress(), keeps_values=True)
    for batch in held.batches(held.open):
        held.solve(batch)
    values = np.nan_to_num(held.values[held.folds.entry])
    place = np.argsort(prepared.task.labels)[np.searchsorted(np.unique(y), y)]
    p = probabilities_of_pairs(place, values, np.ones(900))
    loss = metrics.log_loss(place, p)
    if metric == "auc":
        loss = 1 - metrics.roc_auc_score(place, p, multi_class="ovr")
    assert score.loss == pytest.approx(loss, rel=0.02)


def probabilities_of_pairs(y, values, weights):
    """Fit a sigmoid to scikit-learn's values of each pair, and couple the probabilities."""
    fits = []
    for pair, (first, second) in enumerate(combinations(np.unique(y), 2)):
        own = (y == first) | (y == second)
        fits.append(fit_sigmoid(values[own, pair], y[own] == first, weights[own]))
    return coupled(pair_probabilities(values, *np.transpose(fits)), len(np.unique(y)))


@pytest.mark.parametrize("most_whole", [race.MAX_WHOLE, 0], ids=["whole", "folds"])
@pytest.mark.parametrize("metric", ["auc", "log-loss", "f1"])
def test_scores_of_several_classes_are_those_of_scikit_learn(metric, most_whole, monkeypatch):
    monkeypatch.setattr(race, "MAX_WHOLE", most_whole)
    X, y = spots(240, 3, seed=2)
    rng = np.random.default_rng(1)
    y = np.where(rng.random(240) < 0.2, rng.permutation(y), y)
    weights, fold = rng.integers(1, 4, 240), OPTIONS.fold_of_rows(y, 3)
    for score in searched((X, y), OPTIONS, metric, fold, weights, every=True):
        values, guess = np.empty((240, 3)), np.empty(240)
        for k in range(3):
            others, own = fold != k, fold == k
            model = svm.SVC(
                C=score.setting.C, gamma=score.setting.gamma, tol=1e-6,
                decision_function_shape="ovo",
            )  # fmt: skip
            model.fit(X[others], y[others], sample_weight=weights[others])
            values[own], guess[own] = model.decision_function(X[own]), model.predict(X[own])
        p = probabilities_of_pairs(y, values, weights)
        loss = {
            "auc": 1 - metrics.roc_auc_score(y, p, multi_class="ovr", sample_weight=weights),
            "log-loss": metrics.log_loss(y, p, sample_weight=weights),
            "f1": 1 - metrics.f1_score(y, guess, average="macro", sample_weight=weights),
        }[metric]
        assert score.loss == pytest.approx(loss, rel=5e-3, abs=2e-3)
        assert len(score.losses) == 3 and np.isfinite(score.losses).all()


def test_a_class_that_a_fold_lacks_has_a_score():
    X, y = spots(60, 3, seed=1)
    y = np.where(np.arange(60) < 58, np.minimum(y, 1.0), 2.0)  # two rows, of one fold
    fold = np.where(np.arange(60) < 30, 0, 1)
    for metric in ("auc", "log-loss"):
        for score in searched((X, y), OPTIONS, metric, fold, None):
            assert np.isfinite(score.loss)
    data, options = Dataset(X, y), replace(OPTIONS, gamma=1.0)
    outcome = score_module._held_out_once(data, fold == 1, options, RunControl())
    assert outcome.values.shape == (30, 3) and outcome.classes.tolist() == [0.0, 1.0, 2.0]
    assert np.all(outcome.values[:, 1:] == 1.0)  # of pairs with the class of no training row
    for metric in CLASS_METRICS:
        parts = [(data, fold == 1), (data, fold == 0)]
        outcome = score_module.held_out(parts, options, _core.Stop(), metric=metric)
        assert outcome.labels.tolist() == y.tolist()  # in the order of the rows
        assert np.isfinite(loss_of_best(metric, [[outcome]], 0)).all()


@pytest.mark.parametrize("early", [False, True])
@pytest.mark.parametrize("metric", ["rmse", "r2"])
def test_rmse_and_r2_prune_as_mse_does(metric, early, monkeypatch):
    monkeypatch.setattr(race, "MAX_WHOLE", 0)
    monkeypatch.setattr(race, "TRYING_THRESHOLD", 100)
    monkeypatch.setattr(race, "ROWS_OF_CLUSTER", 60)
    monkeypatch.setattr(score_module, "PILOT_ROWS", 100)
    X, y = surface(900)
    options = replace(OPTIONS, svm_type="epsilon_svr", early=early)
    fold = options.fold_of_rows(y, 4)
    squared = searched((X, y), options, "mse", fold, None)
    scores = searched((X, y), options, metric, fold, None)
    assert any(not score.is_complete for score in scores)
    rows = Rows.from_array(X)
    for first in (0, 3):  # also after the scores of a stopped search
        if first:
            squared, scores = (
                list(Race(rows, y, fold, options, metric=one).run(GRID, known[:first]))
                for one, known in (("mse", squared), (metric, scores))
            )
        for one, other in zip(squared, scores, strict=True):
            loss = one.loss**0.5 if metric == "rmse" else one.loss / np.var(y)
            assert (one.setting, one.n_rows) == (other.setting, other.n_rows)
            assert other.loss == pytest.approx(loss)
    assert best_of(scores).setting == best_of(squared).setting


@pytest.mark.parametrize("metric", ["f1", "auc", "log-loss"])
def test_metrics_without_losses_of_rows_prune_no_setting(metric, monkeypatch):
    monkeypatch.setattr(race, "MAX_WHOLE", 0)
    monkeypatch.setattr(race, "TRYING_THRESHOLD", 100)
    monkeypatch.setattr(race, "ROWS_OF_CLUSTER", 60)
    monkeypatch.setattr(score_module, "PILOT_ROWS", 100)
    data = noisy(spots(900, 2, seed=5))
    for early in (False, True):
        options = replace(OPTIONS, early=early)
        fold = options.fold_of_rows(data[1], 4)
        rows = Rows.from_array(data[0])
        search = Race(rows, data[1], fold, options, metric=metric)
        scores = list(search.run(GRID))
        assert all(score.is_complete for score in scores)
        assert len(search.estimates) == len(scores)
        assert all(np.isfinite(one.loss) for one in search.estimates)


def test_folds_of_one_training_class_have_values_of_one_and_minus_one(monkeypatch):
    X, y = spots(40, 2, seed=9)
    y = np.where(np.arange(40) < 20, 0.0, 1.0)
    for most_whole in (race.MAX_WHOLE, 0):
        monkeypatch.setattr(race, "MAX_WHOLE", most_whole)
        for metric, loss in (("auc", 1.0), ("f1", 1.0)):  # each class is predicted as the other
            for score in searched((X, y), OPTIONS, metric, y.astype(np.int64), None):
                assert score.loss == loss and score.is_complete
                assert np.all(np.isnan(score.losses)) == (metric == "auc")


def test_metrics_that_are_undefined_for_the_labels_are_refused():
    X, y = spots(90, 3, seed=1)
    fold = np.where((y == y.min()) & (np.arange(90) < 60), 0, -1)
    with pytest.raises(ValueError, match="the metric auc needs two classes"):
        searched((X, np.minimum(y, 1.0)), OPTIONS, "auc", fold, None)
    options = replace(OPTIONS, svm_type="epsilon_svr")
    with pytest.raises(ValueError, match="the metric r2 needs targets that differ"):
        searched((X, np.ones(90)), options, "r2", fold, None)


def test_every_metric_is_compared():
    assert {*LOSSES} == {*CLASS_METRICS, *REGRESSION_METRICS}
