"""Test early models: overlapping clusters, leave-one-out losses, and the search for the level."""

import json
import os
from dataclasses import replace

import numpy as np
import pytest
from click.testing import CliRunner
from reference import c_svc, certificate, full_alpha, kernel_values, labelled_rows, objective
from runs import train_rows

import dcsvm
from dcsvm.cli.train import main as train_command
from dcsvm.data.rows import Rows
from dcsvm.model.model import Model
from dcsvm.problem.options import TrainOptions
from dcsvm.training import early_level
from dcsvm.training import state as checkpoint
from dcsvm.training.early_level import (
    EARLY_TOLERANCE,
    _add_other_pairs,
    improves_enough,
    loo_losses,
    loo_values,
    n_spans,
)
from dcsvm.training.engine import prepare_rows
from dcsvm.training.extraction import early_model
from dcsvm.training.level_partition import LevelPartition
from dcsvm.training.report import ERROR_RATE
from dcsvm.training.run import Run, divided
from dcsvm.training.solver import LevelSolver
from dcsvm.training.state import RunControl

RBF = ("rbf", 2.0, 0, 0)
EARLY = {"C": 4.0, "gamma": 2.0, "threads": 2, "early": True}
SEARCH = EARLY | {"early_level": "auto"}


@pytest.fixture(scope="module")
def wavy():
    return labelled_rows(3000, 3, seed=1)


@pytest.fixture(scope="module")
def model(wavy):
    return dcsvm.train(*wavy, **EARLY, early_level=2)


def unsolved_level_of(X, y, level, *, overlap=1.5, sample_weight=None, **options):
    """Return a level of a problem."""
    given = {"C": 4.0, "gamma": 2.0, "threads": 2, "early": True} | options
    chosen = TrainOptions(**given, early_level=level, overlap=overlap)
    run = Run(prepare_rows(Rows.from_array(X), y, chosen, sample_weight))
    division = divided(run, level)
    return LevelSolver(run.prepared, RunControl(), run.solver.formulation, division, level)


def level_of(*problem, **options):
    """Return a solved level of a problem."""
    solving = unsolved_level_of(*problem, **options)
    solving.solve_clusters(1e-5)
    return solving


# --------------------------------------------------------------------------------------- overlap


def test_the_rows_nearest_to_borders_are_in_two_clusters(wavy):
    run = Run(prepare_rows(Rows.from_array(wavy[0]), wavy[1], TrainOptions(**SEARCH)))
    divided(run, 2)
    partition, placed = run.tree.partition(2), run.tree.placed[2]
    for overlap in (1.0, 1.2, 1.5, 2.0):
        division = LevelPartition.overlapping(partition, placed, overlap)
        inside = division.is_in_two
        assert np.count_nonzero(inside) == round(3000 * (overlap - 1))
        if 1 < overlap < 2:
            assert placed.distance[inside].max() <= placed.distance[~inside].min()
        expected = np.median(placed.distance) if overlap == 2 else division.border
        assert abs(division.partition.blend - expected) < 1e-3


@pytest.mark.parametrize("overlap", [1.0, 1.3, 2.0])
def test_each_local_model_is_the_optimum_of_all_members_of_its_cluster(wavy, overlap):
    X, y = wavy
    early = dcsvm.train(X, y, **EARLY, early_level=2, overlap=overlap).early
    rows = Rows.from_array(X)
    placed = early.partition.place(rows, 1, second=True)
    alpha = np.zeros((early.partition.n_clusters, len(X)))
    alpha[early.cluster, early.row_numbers] = early.dual_coef[0]
    K = kernel_values(RBF, X, X)
    border = np.sort(placed.distance)[max(round((overlap - 1) * len(X)) - 1, 0)]
    in_two = (placed.distance <= border) & (overlap > 1)
    for c in range(early.partition.n_clusters):
        own = (placed.nearest == c) | ((placed.second == c) & in_two)
        assert not np.any(alpha[c][~own])
        members = np.flatnonzero(own)
        problem = c_svc(y[members], 4.0)
        found = certificate(K[np.ix_(members, members)], problem, alpha[c][members])
        assert found[0] <= 1.01 * EARLY_TOLERANCE


@pytest.mark.parametrize("more", [{}, {"levels": 2}], ids=["alone", "after level 2"])
def test_clusters_of_an_early_model_are_solved_to_the_tolerance_that_was_asked_for(wavy, more):
    X, y = wavy
    K, options = kernel_values(RBF, X, X), EARLY | {"early_level": 1, "overlap": 1.0} | more
    violations = []
    for tolerance in (1e-1, 1e-3, 1e-5):
        early = dcsvm.train(X, y, **options, tolerance=tolerance).early
        cluster = early.partition.assign(Rows.from_array(X), 1)
        alpha = np.zeros(len(X))
        alpha[early.row_numbers] = early.dual_coef[0]
        parts = [np.flatnonzero(cluster == c) for c in range(early.partition.n_clusters)]
        found = [certificate(K[np.ix_(own, own)], c_svc(y[own], 4.0), alpha[own]) for own in parts]
        violations.append(max(violation for violation, _ in found))
    assert np.all(np.array(violations) <= [1e-1, 1.01e-3, 2e-5])
    assert violations[0] > 1e-3 > violations[1] > 2e-5  # no tighter than asked for


def test_clusters_may_be_solved_one_after_another(wavy):
    together, apart = level_of(*wavy, 2, bias=True), unsolved_level_of(*wavy, 2, bias=True)
    for cluster in range(apart.division.n_clusters):
        chosen = np.arange(apart.division.n_clusters) == cluster
        apart.solve_clusters(1e-5, chosen)
        assert np.array_equal(apart.offsets()[cluster], together.offsets()[cluster])
    assert np.array_equal(apart.solver.alpha, together.solver.alpha)


def test_rows_near_a_border_are_predicted_by_both_clusters(model):
    early = model.early
    T = np.random.default_rng(5).uniform(-1, 1, (500, 3)).astype(np.float32)
    placed = early.partition.place(Rows.from_array(T), 1, second=True)
    K = kernel_values(RBF, T, early.rows.dense)

    def by(cluster):
        own = early.cluster == cluster[:, None]
        return (K * own) @ early.dual_coef[0] - early.rho[cluster, 0]

    share = np.minimum(0.5 + 0.5 * placed.distance / early.partition.blend, 1.0)
    expected = share * by(placed.nearest) + (1 - share) * by(placed.second)
    assert 0.2 < np.mean(share < 1) < 0.8
    assert np.abs(model.decision_function(T) - expected).max() < 1e-4


def test_a_blended_value_is_continuous_across_a_border(model):
    t = np.linspace(-1, 1, 4001)
    line = np.stack([t, 0.3 * t, -0.5 * t], axis=1).astype(np.float32)
    placed = model.early.partition.place(Rows.from_array(line), 1, second=True)
    swapped = (placed.nearest[1:] == placed.second[:-1]) & (
        placed.second[1:] == placed.nearest[:-1]
    )
    plain = replace(model.early.partition, blend=0.0)
    hard = replace(model, early=replace(model.early, partition=plain))
    jumps, others = (np.abs(np.diff(one.decision_function(line))) for one in (model, hard))
    assert np.count_nonzero(swapped) >= 3
    assert jumps[swapped].max() < 0.1 * others[swapped].max()


def test_the_exact_answer_does_not_depend_on_the_overlap(wavy):
    X, y = wavy
    options = {"C": 4.0, "gamma": 2.0, "levels": 2, "threads": 2, "tolerance": 1e-4}
    plain, overlapping = (dcsvm.train(X, y, **options, overlap=f) for f in (1.0, 1.5))
    a, b = plain.report.objective, overlapping.report.objective
    assert abs(a - b) <= 1e-5 * abs(a)
    assert overlapping.early.rows.n_samples > 1.2 * plain.early.rows.n_samples
    assert overlapping.report.converged and overlapping.report.levels[0].overlap == 1.5
    K, alpha = kernel_values(RBF, X, X), full_alpha(overlapping, len(X))
    assert certificate(K, c_svc(y, 4.0), alpha)[0] <= 1.1e-4
    assert abs(objective(K, y, alpha) - b) <= 1e-6 * abs(b)


@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize("n_classes", [2, 4])
def test_classes_biases_weights_and_repeats_have_early_models(bias, n_classes):
    X, y = labelled_rows(1600, 3, seed=2)
    if n_classes == 4:
        y = y + 10 * (X[:, 1] > 0)
    X[800:1000], y[800:1000] = X[:200], y[:200]
    weight = np.random.default_rng(0).integers(0, 3, 1600).astype(float)
    weight[:4] = 1
    model = dcsvm.train(X, y, **EARLY, bias=bias, sample_weight=weight)
    assert set(model.labels) == set(y)
    assert np.mean(model.predict(X) == y) > 0.75
    values = [dcsvm.train(X, y, **EARLY | {"threads": n}, bias=bias, sample_weight=weight)
              .decision_function(X) for n in (1, 3)]  # fmt: skip
    assert values[0].tobytes() == values[1].tobytes()


def test_regressions_have_early_models_and_probabilities_and_folds():
    rng = np.random.default_rng(3)
    X = rng.uniform(-1, 1, (2000, 3)).astype(np.float32)
    y = np.sin(4 * X[:, 0]) + X[:, 1] + 0.1 * rng.normal(size=2000)
    options = SEARCH | {"svm_type": "epsilon_svr", "epsilon": 0.05, "probability": True}
    model = dcsvm.train(X, y, **options)
    choice = model.report.early_choice
    assert choice.metric == "squared_error" and 0.008 < choice.loss < 0.02
    assert np.mean((model.predict(X) - y) ** 2) < 0.015
    assert 0.05 < model.probability.A[0] < 0.15


@pytest.mark.parametrize("n_classes", [2, 3])
def test_probabilities_of_early_models_are_those_of_early_folds(n_classes):
    X, y = labelled_rows(2000, 3, seed=4)
    if n_classes == 3:
        y = y + 10 * ((X[:, 1] > 0.3) & (y > 0))
    model = dcsvm.train(X, y, **EARLY, probability=True)
    probability = model.predict_probability(X)
    assert np.allclose(probability.sum(axis=1), 1)
    said, truth = probability.max(axis=1), model.labels[probability.argmax(axis=1)] == y
    assert abs(said.mean() - truth.mean()) < 0.08


# -------------------------------------------------------------------------------- leave-one-out


def retrained_without(X, y, rows, cluster_rows, *, bias=False):
    """Compute the decision value of each row after training on its cluster without the row."""
    values = []
    for i in rows:
        kept = cluster_rows[cluster_rows != i]
        one = dcsvm.train(
            X[kept], y[kept], C=4.0, gamma=2.0, levels=0, bias=bias, tolerance=1e-5, threads=1
        )
        sign = 1.0 if one.labels[0] == 1 else -1.0
        values.append(sign * one.decision_function(X[i : i + 1])[0])
    return np.array(values)


@pytest.mark.parametrize("bias", [False, True])
def test_values_of_rows_left_out_are_nearly_those_of_training_without_them(bias):
    X, y = labelled_rows(800, 2, seed=6)
    level = level_of(X, y, 1, overlap=1.0, bias=bias)
    cluster = level.division.cluster
    rows = np.random.default_rng(0).choice(800, 60, replace=False)
    found = loo_values(level, np.arange(800))[rows, 0]
    expected = np.concatenate(
        [retrained_without(X, y, [i], np.flatnonzero(cluster == cluster[i]), bias=bias)
         for i in rows]
    )  # fmt: skip
    doubtful = np.abs(expected) < 1e-2
    assert np.mean((found > 0) == (expected > 0)) > 0.95
    near = ~doubtful & (np.abs(expected) < 3)
    # values that no span can make wrong are not changed
    wrong = (found > 0) != (y[rows] > 0)
    assert np.corrcoef(found[near & wrong], expected[near & wrong])[0, 1] > 0.9


@pytest.mark.parametrize("bias", [False, True])
def test_spans_that_are_not_computed_would_change_no_class(bias):
    X, y = labelled_rows(600, 3, seed=9)
    level, every = level_of(X, y, 1, overlap=1.4, bias=bias, gamma=100.0), np.arange(600)
    losses, values, few = (of(level, every) for of in (loo_losses, loo_values, n_spans))
    is_in_two = level.division.is_in_two
    vars(level.division)["is_in_two"] = np.ones(600, bool)  # all spans are needed
    assert few < n_spans(level, every)
    assert np.array_equal(loo_losses(level, every), losses)
    assert np.array_equal(loo_values(level, every)[is_in_two], values[is_in_two])


def test_spans_are_distances_to_the_span_of_the_others():
    X, y = labelled_rows(500, 2, seed=7)
    for bias in (False, True):
        level = level_of(X, y, 1, overlap=1.0, bias=bias)
        a = level.solver.alpha
        sup = np.flatnonzero(a)
        part = level.parts(slice(None))[0][sup]
        order = sup[np.argsort(part, kind="stable")].astype(np.int32)
        sizes = np.unique(part, return_counts=True)[1]
        start = np.concatenate(([0], np.cumsum(sizes))).astype(np.int64)
        found = dcsvm._core.squared_spans(
            level.solver.data.setup, level.solver.data.points, level.solver.problem,
            start, order, a, np.ones(len(a), np.uint8), 1000, 2,
        )  # fmt: skip
        for members in np.split(order, start[1:-1]):
            rows = level.solver.problem.rows[members]
            K = kernel_values(
                RBF, level.solver.data.rows.dense[rows], level.solver.data.rows.dense[rows]
            )
            free = np.abs(a[members]) < 4.0
            for k in range(len(members)):
                basis = np.flatnonzero(free & (np.arange(len(members)) != k))
                if len(basis) == 0:
                    continue
                A = K[np.ix_(basis, basis)] + 1e-6 * np.eye(len(basis))
                b, right = K[basis, k], np.ones(len(basis))
                inner = np.linalg.solve(A, np.stack([b, right], axis=1))
                expected = K[k, k] - b @ inner[:, 0]
                if bias:
                    expected += (1 - right @ inner[:, 0]) ** 2 / (right @ inner[:, 1])
                assert abs(found[members[k]] - expected) <= 2e-3 * max(expected, 1e-2)


@pytest.mark.parametrize("n_classes", [2, 3])
def test_rows_that_support_nothing_are_not_missed(n_classes):
    """Their values equal the model's, also for pairs without their class."""
    X, y = labelled_rows(1500, 3, seed=4)
    y += 10 * ((X[:, 1] > 0.3) & (y > 0)) * (n_classes == 3)
    level = level_of(X, y, 1, overlap=1.4 if n_classes == 2 else 1.0, bias=True)
    rows = np.setdiff1d(np.arange(1500), level.solver.problem.rows[level.solver.alpha != 0])
    values = loo_values(level, rows)
    _add_other_pairs(level, rows, values, np.arange(len(rows)))
    labels = level.solver.task.labels
    model = Model(level.solver.data.kernel, labels, None, early_model(level)[0], "c_svc")
    expected = model.decision_function(X[level.solver.prepared.row_map.first[rows]])
    assert len(rows) > 300 and np.abs(values - expected.reshape(values.shape)).max() < 1e-5


def test_a_row_with_equals_that_remain_is_hardly_missed():
    X, y = labelled_rows(600, 2, seed=8)
    X, y = np.concatenate([X, X[:300]]), np.concatenate([y, y[:300]])
    level = level_of(X, y, 1, overlap=1.0)
    twice = level.solver.prepared.row_map.n_inputs_of_row == 2
    values = loo_values(level, np.arange(level.solver.data.rows.n_samples))[:, 0]
    taken_over = twice & (np.abs(level.solver.alpha) <= 4.0)  # by the duplicate
    assert taken_over.sum() > 150
    known = (level.solver.gradient + level.solver.problem.linear)[taken_over]
    assert np.array_equal(values[taken_over], known)


def test_losses_of_rows_left_out_predict_those_of_new_rows():
    """This holds for every level, with two and with more classes."""
    for n_classes in (2, 4):
        X, y = labelled_rows(6000, 3, seed=9)
        if n_classes == 4:
            y = y + 10 * (X[:, 1] > 0)
        train, test = slice(0, 3000), slice(3000, 6000)
        for level in (1, 2):
            solving = level_of(X[train], y[train], level)
            losses = loo_losses(solving, np.arange(3000))
            model = dcsvm.train(X[train], y[train], **EARLY, early_level=level)
            wrong = np.mean(model.predict(X[test]) != y[test])
            assert abs(losses.mean() - wrong) < 0.025


# ------------------------------------------------------------------------------ the early level


def test_a_coarser_level_has_to_gain_where_it_costs():
    rng = np.random.default_rng(0)
    ones = np.ones(10000)
    finer = (rng.random(10000) < 0.1).astype(float)
    same = finer.copy()
    better = np.where(rng.random(10000) < 0.3, 0.0, finer)
    slightly = finer.copy()
    slightly[np.flatnonzero(slightly)[:5]] = 0
    for is_cheap in (False, True):
        assert improves_enough(finer, better, ones, ERROR_RATE, is_cheap=is_cheap)
        assert not improves_enough(finer, same, ones, ERROR_RATE, is_cheap=is_cheap)
        assert improves_enough(finer, slightly, ones, ERROR_RATE, is_cheap=is_cheap) == is_cheap
    for n_noise in (0, 49):  # two rows in 400 may be chance
        turned = np.repeat([1.0, 0.0, 0.5], [2 + n_noise, n_noise, 398 - 2 * n_noise])
        is_enough = improves_enough(turned, 1 - turned, np.ones(400), ERROR_RATE, is_cheap=False)
        assert is_enough == (n_noise == 0)


def test_the_level_that_is_found_is_about_as_good_as_the_best():
    for seed, noise, bend in ((1, 0.02, 3.0), (2, 0.2, 12.0)):
        rng = np.random.default_rng(seed)
        X = rng.uniform(-1, 1, (12000, 3)).astype(np.float32)
        y = np.where(np.sin(bend * X[:, 0]) + np.sin(bend * X[:, 1]) > 0, 1.0, -1.0)
        y[rng.random(12000) < noise] *= -1
        train, test = slice(0, 6000), slice(6000, 12000)
        found = dcsvm.train(X[train], y[train], **SEARCH)
        choice = found.report.early_choice
        assert choice.coarsest <= choice.level <= choice.finest == 2
        assert found.early.level == choice.level
        wrong = [
            np.mean(one.predict(X[test]) != y[test])
            for one in (found, *(dcsvm.train(X[train], y[train], **EARLY, early_level=level)
                                 for level in (1, 2)))
        ]  # fmt: skip
        assert wrong[0] <= min(wrong[1:]) + 0.012
        assert abs(choice.loss - wrong[0]) < 6 * choice.standard_error + 0.01


def test_coarser_levels_that_cost_nothing_are_all_looked_at(wavy, monkeypatch):
    monkeypatch.setattr(early_level, "improves_enough", lambda *_, **__: False)
    choice = dcsvm.train(*wavy, **SEARCH, branching=2).report.early_choice
    assert (choice.level, choice.finest, choice.coarsest) == (4, 4, 1)


def test_of_levels_that_are_as_good_the_finest_is_taken():
    X, y = labelled_rows(2000, 3, seed=1)
    X[:, 0] = 4 * y
    choice = dcsvm.train(X, y, **EARLY, branching=2, test=(X, y)).report.early_choice
    assert (choice.loss, choice.level, choice.coarsest) == (0, choice.finest, choice.finest - 1)


def test_labels_that_mean_nothing_have_no_worth():
    X, _ = labelled_rows(3000, 3, seed=3)
    y = np.where(np.random.default_rng(1).random(3000) < 0.5, 1.0, -1.0)
    choice = dcsvm.train(X, y, **SEARCH).report.early_choice
    assert abs(choice.loss - 0.5) < 5 * choice.standard_error


def test_test_rows_choose_the_level_that_predicts_them_best(wavy):
    X, y = wavy
    T, truth = labelled_rows(1000, 3, seed=11)
    model = dcsvm.train(X, y, **EARLY, test=(T, truth))
    choice = model.report.early_choice
    assert choice.on_test_rows and choice.n_rows == 1000
    wrong = np.mean(model.predict(T) != truth)
    assert wrong == choice.loss
    for level in range(choice.coarsest, choice.finest + 1):
        other = dcsvm.train(X, y, **EARLY, early_level=level)
        assert wrong <= np.mean(other.predict(T) != truth)


def test_test_rows_that_do_not_fit_are_refused(wavy):
    X, y = wavy
    with pytest.raises(ValueError, match="test rows require early models"):
        dcsvm.train(X, y, **EARLY, early_level=1, test=(X, y))
    with pytest.raises(ValueError, match="3000 rows have 10 labels"):
        dcsvm.train(X, y, **EARLY, test=(X, y[:10]))


class _Halt(Exception):
    pass


@pytest.mark.parametrize("after", [1, 2, 4])
def test_an_overlapping_level_goes_on_from_its_checkpoint(wavy, tmp_path, monkeypatch, after):
    X, y = wavy
    monkeypatch.setattr(checkpoint, "MIN_PAUSE", 0.0)
    monkeypatch.setattr(checkpoint, "MAX_SHARE", np.inf)
    options = TrainOptions(**EARLY)
    expected = train_rows(Rows.from_array(X), y, options)[0]
    kept, calls = checkpoint.Checkpoint.save, []

    def counted(self, *arguments):
        kept(self, *arguments)
        calls.append(None)
        if len(calls) == after:
            raise _Halt

    halting = pytest.MonkeyPatch()
    halting.setattr(checkpoint.Checkpoint, "save", counted)
    folder = str(tmp_path / "c")
    with pytest.raises(_Halt):
        control = RunControl(checkpoint=checkpoint.Checkpoint(folder))
        train_rows(Rows.from_array(X), y, options, control)
        raise _Halt
    halting.undo()
    control = RunControl(checkpoint=checkpoint.Checkpoint(folder, resume=True))
    found, report = train_rows(Rows.from_array(X), y, options, control)
    assert report.converged and found.early.level == expected.early.level
    T = np.random.default_rng(0).uniform(-1, 1, (300, 3)).astype(np.float32)
    assert np.abs(found.decision_function(T) - expected.decision_function(T)).max() < 0.05


# ------------------------------------------------------------------------------------- commands


def test_the_command_says_which_level_it_found(wavy, tmp_path, monkeypatch, write_libsvm):
    monkeypatch.chdir(tmp_path)
    for name, rows in (("train", wavy), ("test", labelled_rows(500, 3, seed=12))):
        write_libsvm(*rows, name)
    run = CliRunner().invoke
    options = ["-c", "4", "-g", "2", "--early", "--early-level", "auto", "--threads", "2"]
    done = run(train_command, [*options, "--report", "r.json", "train", "m"])
    assert done.exit_code == 0, done.stderr
    report = json.loads((tmp_path / "r.json").read_text())
    choice, level = report["early_choice"], report["levels"][0]
    said = f"{100 * choice['loss']:.2f} +- {100 * choice['standard_error']:.2f} %"
    line = f"early level {choice['level']} (searched 1-2): LOO error {said} (3000 rows)"
    assert line in done.stderr
    assert level["level"] == choice["level"] and abs(level["overlap"] - 1.5) < 0.01
    done = run(train_command, [*options, "--test", "test", "train", "m"])
    assert done.exit_code == 0, done.stderr
    assert "test error " in done.stderr and "% (500 rows)" in done.stderr
    done = run(train_command, [*options, "--test", "nowhere", "train", "n"])
    assert done.exit_code == 1 and "nowhere" in done.stderr and not os.path.exists("n")
    done = run(train_command, [*options, "-v", "3", "train"])
    assert done.exit_code == 0 and "Cross Validation Accuracy" in done.stdout
