"""Test the settings of a grid: cross-validation gives the scores, pruned settings cannot win."""

from dataclasses import replace
from itertools import product
from types import SimpleNamespace

import numpy as np
import pytest
from reference import (
    c_svc,
    kernel_values,
    points_of,
    prepared,
    solve_reference,
    spots,
    surface,
    with_constraint,
)
from runs import cross_validate

import dcsvm
from dcsvm import _core
from dcsvm.data.rows import Rows
from dcsvm.problem.options import TrainOptions
from dcsvm.training import race
from dcsvm.training import scores as losses
from dcsvm.training.held_out import Grid, Setting, best_of
from dcsvm.training.race import FoldScorer, Race

OPTIONS = TrainOptions(threads=1, cache_mb=50, seed=1, tolerance=1e-4)
CS, GAMMAS = (0.1, 1.0, 10.0, 50.0, 200.0), (0.1, 0.5, 3.0, 30.0, 300.0)


def searched(data, options, grid, **how):
    X, y = data
    fold = how.pop("fold", None)
    if fold is None:
        fold = options.fold_of_rows(y, how.pop("n_folds", 3))
    found = Race(Rows.from_array(X), y, fold, options, **how)
    return list(found.run(grid))


SETS = {
    "two classes": (spots(300, 2), {}),
    "bias and weights": (spots(250, 2, seed=1), {"bias": True, "class_weight": {1.0: 3.0}}),
    "rows that repeat": (spots(200, 2, seed=2, repeats=60), {}),
    "three classes": (spots(240, 3, seed=3), {}),
    "regression": (surface(200), {"svm_type": "epsilon_svr"}),
}


@pytest.mark.parametrize("name", SETS)
@pytest.mark.parametrize("most_whole", [race.MAX_WHOLE, 0], ids=["whole", "levels"])
def test_every_setting_is_scored_as_by_cross_validation(name, most_whole, monkeypatch):
    monkeypatch.setattr(race, "MAX_WHOLE", most_whole)
    (X, y), given = SETS[name]
    options = replace(OPTIONS, **given)
    grid = Grid.of(options, CS, GAMMAS)
    scores = searched((X, y), options, grid, every=True)
    assert {score.setting for score in scores} == set(grid.settings)
    for score in scores:
        predicted = cross_validate(Rows.from_array(X), y, score.setting.options(options), 3)
        if options.svm_type == "c_svc":
            assert abs(score.loss - np.mean(predicted != y)) <= 1.01 / len(y)
        else:
            assert score.loss == pytest.approx(np.mean((predicted - y) ** 2), rel=1e-3)
        assert score.is_complete and score.converged and score.n_rows == len(y)
        assert score.n_sv > 0


@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("overlap", [1.0, 1.5])
def test_early_scores_are_those_of_early_models(bias, n_classes, overlap):
    X, y = spots(900, n_classes, seed=4)
    options = replace(OPTIONS, early=True, early_level=1, bias=bias, overlap=overlap)
    setting = Setting(30.0, 10.0)
    (score,) = searched((X, y), options, Grid((30.0,), (10.0,)))
    predicted = cross_validate(Rows.from_array(X), y, setting.options(options), 3)
    assert abs(score.loss - np.mean(predicted != y)) <= 3 / len(y)


@pytest.mark.parametrize("early", [False, True])
@pytest.mark.parametrize("bias", [False, True])
def test_leaving_settings_does_not_change_which_is_best(early, bias, monkeypatch):
    monkeypatch.setattr(race, "MAX_WHOLE", 0)
    monkeypatch.setattr(race, "TRYING_THRESHOLD", 100)
    monkeypatch.setattr(race, "ROWS_OF_CLUSTER", 60)
    monkeypatch.setattr(losses, "PILOT_ROWS", 100)
    X, y = spots(1200, 2, seed=5)
    options = replace(OPTIONS, early=early, bias=bias)
    grid = Grid.of(options, CS, GAMMAS)
    every = searched((X, y), options, grid, every=True, n_folds=8)
    some = searched((X, y), options, grid, n_folds=8)
    assert best_of(some).setting == best_of(every).setting
    known = {score.setting: score for score in every}
    for score in some:
        if score.is_complete:
            assert score.loss == pytest.approx(known[score.setting].loss, abs=2 / 1200)
        else:
            assert score.loss > best_of(some).loss
            assert known[score.setting].loss > best_of(every).loss
    assert 0 < sum(not score.is_complete for score in some) < len(some)


@pytest.mark.parametrize("name", ["two classes", "three classes", "regression"])
def test_only_settings_near_the_best_are_solved_to_the_tolerance(name, monkeypatch):
    monkeypatch.setattr(race, "MAX_WHOLE", 0)
    tolerances: dict[Setting, list[float]] = {}
    begin, loose, limits = FoldScorer.begin, race.LOOSE_TOLERANCE, []

    def noted(self, settings, tolerance):
        tolerances.setdefault(settings[0], []).append(tolerance)
        return begin(self, settings, tolerance)

    def pruned(self, scorer, losses, limit, n_done):
        limits.append((losses.settings[0], tolerances[losses.settings[0]][-1], limit))
        return prune(self, scorer, losses, limit, n_done)

    prune = Race._pruned
    monkeypatch.setattr(FoldScorer, "begin", noted)
    monkeypatch.setattr(Race, "_pruned", pruned)
    data, given = SETS[name]
    options = replace(OPTIONS, **given)
    scores = searched(data, options, Grid.of(options, CS, GAMMAS))
    position = {score.setting: k for k, score in enumerate(scores)}
    for setting, tolerance, limit in limits[1:]:
        best = best_of(scores[: position[setting]])
        margin = race.LOOSE_MARGIN if tolerance == loose else 0.0
        assert limit == pytest.approx(best.total + margin * best.weight)
    wanted = [OPTIONS.tolerance] if name == "regression" else [loose, OPTIONS.tolerance]
    found = [(one, tolerances[one.setting]) for one in scores[1:] if one.setting in tolerances]
    for score, own in found:
        assert own == (wanted if score.is_complete else wanted[: len(own)])
    least = best_of(scores).loss
    ranked = [score for score, own in found if len(own) < len(wanted)]
    assert bool(ranked) == (name != "regression")
    assert all(score.loss > least and not score.is_complete for score in ranked)
    own = [score for score in scores if score.is_complete]
    every = searched(data, options, Grid.of(options, CS, GAMMAS), every=True)
    exact = {score.setting: score.loss for score in every}
    assert [one.loss for one in own] == pytest.approx([exact[one.setting] for one in own], rel=1e-3)


def test_rows_without_a_fold_are_learnt_from_and_not_scored():
    X, y = spots(400, 2, seed=7)
    fold = np.where(np.arange(400) < 300, -1, 0)
    grid = Grid((10.0,), (3.0,))
    (score,) = searched((X, y), OPTIONS, grid, fold=fold)
    model = dcsvm.train(X[:300], y[:300], C=10, gamma=3, tolerance=1e-4)
    assert score.n_rows == 100
    assert abs(score.loss - np.mean(model.predict(X[300:]) != y[300:])) <= 0.01


@pytest.mark.parametrize("name", ["bias and weights", "three classes", "regression"])
@pytest.mark.parametrize("how", ["whole", "levels", "early"])
def test_weights_are_copies(name, how, monkeypatch):
    if how == "levels":
        monkeypatch.setattr(race, "MAX_WHOLE", 0)
    (X, y), given = SETS[name]
    options = replace(OPTIONS, **given)
    if how == "early":
        X, y = surface(800) if name == "regression" else spots(800, 3, seed=18)
        options = replace(options, early=True, early_level=1)
    weight = np.random.default_rng(0).integers(0, 4, len(y))
    fold = options.fold_of_rows(y, 3)
    again = np.repeat(np.arange(len(y)), weight)
    grid = Grid.of(options, CS[1:4], GAMMAS[:3])
    weighted = searched((X, y), options, grid, fold=fold, sample_weight=weight, every=True)
    repeated = searched((X[again], y[again]), options, grid, fold=fold[again], every=True)
    assert [one.setting for one in weighted] == [one.setting for one in repeated]
    for one, other in zip(weighted, repeated, strict=True):
        assert one.weight == other.weight == weight.sum()
        assert one.n_rows == np.count_nonzero(weight) and other.n_rows == len(again)
        if options.svm_type == "c_svc":
            assert abs(one.loss - other.loss) <= 3.01 / len(again)
        else:
            assert one.loss == pytest.approx(other.loss, rel=1e-3)


def test_a_fold_without_weight_is_empty(monkeypatch):
    X, y = spots(300, 2, seed=17)
    fold = OPTIONS.fold_of_rows(y, 3)
    grid, weight = Grid((10.0,), (3.0,)), np.where(fold == 2, 0.0, 1.5)
    (score,) = searched((X, y), OPTIONS, grid, fold=fold, sample_weight=weight)
    assert np.isnan(score.losses).tolist() == [False, False, True]
    assert score.weight == 1.5 * score.n_rows == 300
    for most_whole in (race.MAX_WHOLE, 0):
        monkeypatch.setattr(race, "MAX_WHOLE", most_whole)
        (again,) = searched((X, y), OPTIONS, grid, fold=fold, sample_weight=weight)
        assert abs(again.loss - score.loss) < 0.02 and again.converged
    with pytest.raises(ValueError, match="there are no training rows"):
        searched((X, y), OPTIONS, grid, fold=fold, sample_weight=np.where(fold == 1, 1.0, 0.0))


def test_a_class_of_few_rows_is_no_obstacle(monkeypatch):
    X, y = spots(60, 2, seed=8)
    y[0] = 7
    for most_whole in (race.MAX_WHOLE, 0):
        monkeypatch.setattr(race, "MAX_WHOLE", most_whole)
        (score,) = searched((X, y), OPTIONS, Grid((10.0,), (3.0,)), n_folds=10)
        predicted = cross_validate(Rows.from_array(X), y, replace(OPTIONS, C=10.0, gamma=3.0), 10)
        assert abs(score.loss - np.mean(predicted != y)) <= 1.01 / 60


def test_folds_of_one_class_predict_it():
    X, y = spots(40, 2, seed=9)
    y = np.where(np.arange(40) < 20, 0.0, 1.0)
    (score,) = searched((X, y), OPTIONS, Grid((1.0,), (1.0,)), fold=y.astype(np.int64))
    assert score.loss == 1.0 and score.is_complete


def test_larger_C_are_known_where_no_alpha_reaches_its_bound(monkeypatch):
    monkeypatch.setattr(race, "MAX_WHOLE", 0)
    solved = []
    begin = FoldScorer.begin
    monkeypatch.setattr(
        FoldScorer, "begin", lambda self, settings, *what: solved.append(settings) or begin(
            self, settings, *what
        )
    )  # fmt: skip
    X, y = spots(120, 2, seed=10)
    scores = searched((X, y), OPTIONS, Grid((50.0, 100.0, 200.0, 400.0), (1e4,)), every=True)
    assert len(scores) == 4 and len(solved) == 1
    assert len({score.loss for score in scores}) == 1


def test_settings_come_gamma_by_gamma_also_where_estimates_are_equal(monkeypatch):
    monkeypatch.setattr(race, "MAX_WHOLE", 0)
    monkeypatch.setattr(race, "TRYING_THRESHOLD", 100)
    monkeypatch.setattr(losses, "PILOT_ROWS", 100)
    monkeypatch.setattr(race, "ROWS_OF_CLUSTER", 60)
    X, y = spots(900, 2, seed=20)
    gammas = (3.0, 1e5, 2e5, 4e5)
    scores = searched((X, y), OPTIONS, Grid((1.0, 10.0, 100.0), gammas), every=True)
    order = [score.setting.gamma for score in scores[1:]]
    assert sum(a != b for a, b in zip(order, order[1:], strict=False)) == len(gammas) - 1


def test_a_stopped_search_keeps_what_is_scored():
    X, y = spots(300, 2, seed=11)
    stop, scores = _core.Stop(), []
    found = Race(Rows.from_array(X), y, OPTIONS.fold_of_rows(y, 3), OPTIONS, stop=stop)
    with pytest.raises(_core.Stopped):
        for score in found.run(Grid(CS, GAMMAS)):
            scores.append(score)
            stop.request()
    assert len(scores) == len(CS)
    rest = list(Race(Rows.from_array(X), y, OPTIONS.fold_of_rows(y, 3), OPTIONS).run(
        Grid(CS, GAMMAS), scores
    ))  # fmt: skip
    assert {score.setting for score in [*scores, *rest]} == set(Grid(CS, GAMMAS).settings)


@pytest.mark.parametrize("epsilon", [0.3, 5.0])
def test_a_regression_without_support_vectors_is_scored_as_it_predicts(epsilon):
    X, y = surface(150, seed=16)
    options = replace(OPTIONS, svm_type="epsilon_svr", epsilon=epsilon)
    (score,) = searched((X, y), options, Grid((1.0,), (1.0,)))
    predicted = cross_validate(Rows.from_array(X), y, replace(options, gamma=1.0), 3)
    assert score.loss == pytest.approx(np.mean((predicted - y) ** 2), rel=1e-3)


@pytest.mark.parametrize("kept", [2**30, 0], ids=["in memory", "by rows"])
@pytest.mark.parametrize("bias", [False, True])
def test_held_out_values_are_those_of_an_independent_solver(kept, bias):
    rng = np.random.default_rng(14)
    X = rng.random((60, 2)).astype(np.float32)
    sign = np.where(rng.random(60) < X[:, 0], 1.0, -1.0)
    fold = rng.permutation(np.arange(60) % 3)
    kernel = "rbf", 5.0, 0.0, 3
    setup, points = prepared(kernel, points_of(X))
    problem = with_constraint(c_svc(sign, 1.0)) if bias else c_svc(sign, 1.0)
    order = np.argsort(fold, kind="stable").astype(np.int32)
    held = SimpleNamespace(
        members=np.arange(60, dtype=np.int32), start=np.array([0, 60]),
        left=np.stack([(fold != k).astype(float) for k in range(3)]),
        rows=order, rows_start=np.array([0, 20, 40, 60]),
    )  # fmt: skip
    scales = [0.5, 5.0, 500.0]
    values, reports = _core.held_out_values(
        setup, points, problem, held, scales, 1e-7, True, False, kept, 2
    )
    assert [report["missed"] for report in reports] == [0, 0, 0]
    K = kernel_values(kernel, X, X)
    for (s, C), k in product(enumerate(scales), range(3)):
        train, test = np.flatnonzero(fold != k), order[20 * k : 20 * k + 20]
        part = problem.part(train)
        part = replace(part, lower=part.lower * C, upper=part.upper * C)
        sums = np.zeros(1) if bias else None
        alpha, _ = solve_reference(K[np.ix_(train, train)], part, sums)
        wanted = K[np.ix_(test, train)] @ alpha
        found = values[s, 20 * k : 20 * k + 20, 0]
        if bias:  # rho is the mean gradient of free variables
            gradient = K[np.ix_(train, train)] @ alpha - part.linear
            free = (alpha > part.lower + 1e-6) & (alpha < part.upper - 1e-6)
            if not free.any():
                continue
            wanted = wanted - gradient[free].mean()
        assert np.allclose(found, wanted, atol=2e-3 * max(1.0, np.abs(wanted).max()))


def test_bits_do_not_depend_on_threads():
    X, y = spots(700, 3, seed=15)
    found = [
        searched((X, y), replace(OPTIONS, threads=threads, early=True), Grid(CS, GAMMAS))
        for threads in (1, 2)
    ]
    plain = [[replace(score, seconds=0.0) for score in scores] for scores in found]
    assert repr(plain[0]) == repr(plain[1])


def test_a_grid_of_large_kernel_values_has_the_scores_of_cross_validation():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 4))
    y = np.where(X[:, 0] * X[:, 1] + 0.5 * rng.normal(size=200) > 0, 1.0, -1.0)
    options = TrainOptions(threads=1, seed=1, kernel="polynomial", bias=True, C=100.0, gamma=5.0)
    (score,) = searched((X, y), options, Grid((100.0,), (5.0,)), n_folds=4, every=True)
    predicted = cross_validate(Rows.from_array(X), y, options, 4)
    assert score.converged and score.loss == pytest.approx(np.mean(predicted != y))
