"""Test clusters of a level: Algorithm 1 of the paper samples support vectors."""

import time

import numpy as np
import pytest
from runs import cross_validate, ready

import dcsvm
from dcsvm.data.rows import Rows
from dcsvm.kernel import cluster_tree, kmeans_runs
from dcsvm.kernel.cluster_tree import Tree
from dcsvm.kernel.sources import MAX_PARTS
from dcsvm.problem.options import MAX_BRANCHING, TrainOptions
from dcsvm.training.memory import Plan
from dcsvm.training.run import divided


@pytest.fixture(scope="module")
def spots():
    rng = np.random.default_rng(3)
    X = rng.uniform(-1, 1, (3000, 3)).astype(np.float32)
    return X, np.where(np.sin(4 * X[:, 0]) * X[:, 1] > 0.1, 1.0, -1.0)


@pytest.fixture
def samples(monkeypatch):
    """Record the sampled rows of each level grown alone, as input row numbers."""
    found, grow_alone = [], Tree.grow_alone

    def grow(tree, n_clusters, sample, *what, **how):
        order = np.argsort(tree.place)
        found.append(set(order[sample].tolist()))
        return grow_alone(tree, n_clusters, sample, *what, **how)

    monkeypatch.setattr(Tree, "grow_alone", grow)
    return found


@pytest.mark.parametrize("gamma", [2.0, 200.0], ids=["one group", "groups"])
def test_an_adaptive_level_is_found_from_support_vectors_of_the_level_below(spots, samples, gamma):
    X, y = spots
    options = {"C": 10, "gamma": gamma, "levels": 2, "sample": 200, "clustering": "adaptive"}
    report = dcsvm.train(X, y, **options).report
    assert [level.level for level in report.levels] == [2, 1]
    below = set(report.support_by_level[0].tolist())
    assert len(samples) == 2 and len(samples[1]) == min(200, len(below))
    assert samples[1] <= below
    assert not samples[0] <= below


def test_a_random_level_is_found_from_rows_that_may_support_nothing(spots, samples):
    X, y = spots
    options = {"C": 10, "gamma": 2, "levels": 2, "sample": 200, "clustering": "random"}
    report = dcsvm.train(X, y, **options).report
    assert not samples[1] <= set(report.support_by_level[0].tolist())


@pytest.mark.parametrize("clustering", ["adaptive", "random", "tree", "kmeans"])
@pytest.mark.parametrize("bias", [False, True])
def test_the_exact_model_does_not_depend_on_the_clusters(spots, clustering, bias):
    X, y = spots
    options = {"C": 10, "gamma": 2, "bias": bias}
    model = dcsvm.train(X, y, levels=2, clustering=clustering, **options)
    direct = dcsvm.train(X, y, levels=0, **options)
    assert model.report.converged
    assert model.report.objective == pytest.approx(direct.report.objective, rel=1e-5)
    assert np.mean(model.predict(X, method="early") == y) > 0.9


ALGORITHM_1 = {"C": 10, "gamma": 2, "levels": 2, "sample": 200, "early_level": 1, "overlap": 1}


@pytest.mark.parametrize("clustering", ["adaptive", "random", "tree"])
@pytest.mark.parametrize("bias", [False, True])
def test_training_that_ends_at_a_level_has_the_early_model_of_a_whole_run(spots, clustering, bias):
    options = {**ALGORITHM_1, "clustering": clustering, "bias": bias}
    early, whole = (dcsvm.train(*spots, early=early, **options) for early in (True, False))
    assert [level.level for level in early.report.levels] == [2, 1]
    for name in ("cluster", "row_numbers", "dual_coef", "rho"):
        assert np.array_equal(getattr(early.early, name), getattr(whole.early, name))
    assert early.exact is None


def test_training_that_ends_at_an_adaptive_level_samples_support_vectors(spots, samples):
    X, y = spots
    report = dcsvm.train(X, y, early=True, clustering="adaptive", **ALGORITHM_1).report
    assert len(samples) == 2
    assert samples[1] <= set(report.support_by_level[0].tolist())
    assert not samples[1] <= set(report.support_by_level[1].tolist())


@pytest.mark.parametrize("overlap", [1, 1.5])
def test_folds_of_an_early_model_have_the_clusters_of_its_level(spots, samples, overlap):
    options = {**ALGORITHM_1, "overlap": overlap, "probability": True}
    dcsvm.train(*spots, early=True, clustering="adaptive", **options)
    assert len(samples) == 3 and samples[2] == samples[1]


def test_an_early_run_that_ended_is_resumed_with_the_clusters_of_its_level(
    spots, samples, tmp_path
):
    options = {**ALGORITHM_1, "clustering": "adaptive", "early": True, "overlap": 1.5}
    folder = tmp_path / "run"
    first = dcsvm.train(*spots, checkpoint=dcsvm.Checkpoint(folder), **options)
    again = dcsvm.train(*spots, checkpoint=dcsvm.Checkpoint(folder, resume=True), **options)
    assert len(samples) == 3 and samples[2] == samples[1]
    assert np.array_equal(first.predict(spots[0]), again.predict(spots[0]))


def test_early_models_of_a_grid_are_clustered_by_a_tree(spots):
    options = {key: value for key, value in ALGORITHM_1.items() if key not in ("C", "gamma")}
    with pytest.raises(ValueError, match="tree or kmeans in a search of early models, got random"):
        dcsvm.grid_search(*spots, Cs=[1], gammas=[1], early=True, clustering="random", **options)


def test_folds_have_adaptive_levels(spots, samples):
    X, y = spots
    options = TrainOptions(C=10, gamma=2, levels=2, sample=200, clustering="adaptive")
    found = cross_validate(Rows.from_array(X), y, options, 3)
    assert len(samples) == 2
    assert np.mean(found == y) > 0.9


def test_a_level_in_progress_is_found_again_from_its_own_sample(spots, samples, tmp_path):
    X, y = spots
    options = {"C": 10, "gamma": 2, "levels": 2, "clustering": "adaptive", "threads": 1}
    whole = dcsvm.train(X, y, **options)
    stop = dcsvm.Stop()

    class Stopping(dcsvm.Progress):
        def begin(self, name, n_rows):
            if name == "level 1":
                stop.request()

    folder = tmp_path / "run"
    dcsvm.train(
        X, y, checkpoint=dcsvm.Checkpoint(folder), stop=stop, progress=Stopping(), **options
    )
    stopped = samples[-1]
    resumed = dcsvm.train(X, y, checkpoint=dcsvm.Checkpoint(folder, resume=True), **options)
    assert samples[-1] == stopped == samples[1]
    assert resumed.report.objective == pytest.approx(whole.report.objective, rel=1e-6)


def test_a_level_whose_support_vectors_have_changed_keeps_its_sample(spots, samples):
    X, y = spots
    options = TrainOptions(C=10, gamma=2, levels=2, sample=200, clustering="adaptive")
    run = ready(Rows.from_array(X), y, options)
    problem = run.solver.problem
    divided(run, 2)
    run.solver.alpha[:300] = 0.5 * (problem.lower + problem.upper)[:300]
    divided(run, 2)
    assert samples[0] == samples[1]


def test_more_clusters_than_one_product_tells_apart_have_the_tree():
    plan, options = Plan((5, 4, 1), (), 1, 4), TrainOptions(clustering="adaptive")
    assert [plan.is_alone(level, options) for level in plan.levels] == [False, True, True]
    assert not plan.is_alone(1, TrainOptions(clustering="tree"))
    assert plan.not_alone(options) == [5] and plan.not_alone(TrainOptions()) == []
    assert MAX_BRANCHING == MAX_PARTS


def test_a_level_that_cannot_have_the_clustering_that_was_asked_for_is_told():
    X = np.random.default_rng(0).normal(size=(29_000, 2))
    options = TrainOptions(levels=2, branching=17, clustering="random", threads=1)
    with pytest.warns(UserWarning, match="level 2 has more than 256 clusters: .* not by random"):
        ready(Rows.from_array(X), np.sign(X[:, 0]), options)


def test_the_report_counts_the_cost_of_the_choice_between_clusterings(spots, monkeypatch):
    X, y = spots
    best_of_runs, pause = kmeans_runs.best_of_runs, 0.2

    def slowly(*what, **how):
        time.sleep(pause)
        return best_of_runs(*what, **how)

    options = {"C": 10, "gamma": 2, "levels": 2, "sample": 200, "clustering": "adaptive"}
    monkeypatch.setattr(cluster_tree, "best_of_runs", slowly)
    report = dcsvm.train(X, y, **options).report
    monkeypatch.setattr(cluster_tree, "n_values", lambda *_: 0)
    without = dcsvm.train(X, y, **options).report
    # for each of 200 sampled rows: both kernels on the others, and the values with all 3,000 rows
    for level, other in zip(report.levels, without.levels, strict=True):
        assert level.kernel_evaluations - other.kernel_evaluations == 200 * (2 * 200 + 3000)
        assert level.seconds_clustering >= pause
    values = sum(level.kernel_evaluations for level in report.levels)
    assert report.evaluations_by_phase["levels"] == values
    assert report.kernel_evaluations - without.kernel_evaluations == 2 * 200 * 3400


@pytest.mark.parametrize("clustering", ["adaptive", "random"])
def test_rows_in_a_mapped_file_have_levels_that_are_found_alone(spots, clustering, tmp_path):
    X, y = spots
    mapped = np.lib.format.open_memmap(tmp_path / "X.npy", "w+", X.dtype, X.shape)
    mapped[:] = X
    options = {"C": 10, "gamma": 2, "levels": 2, "clustering": clustering}
    report = dcsvm.train(mapped, y, **options).report
    assert report.converged and [level.level for level in report.levels] == [2, 1]
    assert report.objective == pytest.approx(
        dcsvm.train(X, y, **options).report.objective, rel=1e-5
    )


def test_a_level_without_a_tree_is_the_best_of_eight_runs_on_eight_rows_a_cluster(monkeypatch):
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, (26_000, 2)).astype(np.float32)
    y = np.where((np.floor(4 * X).sum(axis=1) % 2 == 0) ^ (rng.random(len(X)) < 0.02), 1, -1)
    runs, original = [], kmeans_runs._core.kernel_kmeans

    def spy(setup, nodes, n_each, *arguments):
        runs.append(len(n_each))
        return original(setup, nodes, n_each, *arguments)

    monkeypatch.setattr(kmeans_runs._core, "kernel_kmeans", spy)
    options = {"C": 10, "gamma": 8, "levels": 4, "early_level": 4, "clustering": "adaptive"}
    model = dcsvm.train(X, y, early=True, **options)
    assert set(runs) == {8}
    sample = model.early.partition.sample
    assert model.early.partition.n_clusters == 256 and sample.n_samples == 8 * 256
