"""Test the choice of the model of all rows, exact or early."""

import dataclasses
import functools

import numpy as np
import pytest

import dcsvm
from dcsvm.data.dataset import Dataset
from dcsvm.problem.options import TrainOptions
from dcsvm.selection import final, search
from dcsvm.selection.final import Finalists
from dcsvm.selection.search import EasySearch
from dcsvm.selection.trials import Clock, with_metric
from dcsvm.training import memory
from dcsvm.training.early_level import for_all_rows
from dcsvm.training.report import Progress


def table_of(n_rows):
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, (n_rows, 2))
    return X, np.sign(np.sin(5 * X[:, 0]) * np.sin(5 * X[:, 1]))


@functools.cache
def searched(n_rows, metric=None):
    """Search a sample of the rows of a table; return the search and the best trial."""
    X, y = table_of(n_rows)
    y = 100.0 * np.sin(5 * X[:, 0]) if metric == "rmse" else y
    svm_type = "epsilon_svr" if metric == "rmse" else "c_svc"
    options, metric = with_metric(TrainOptions(threads=1, svm_type=svm_type), metric, y)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(search, "SEARCH_ROWS", 1000)
        found = EasySearch(Dataset(X, y), options, metric, Clock(300.0), Progress())
        return found, found.run()


def finalists_of(n_rows, metric=None):
    """Return what chooses the model of all rows after a search."""
    found, best = searched(n_rows, metric)
    data = found.data.scaled(best.candidate.scale)
    options, level = for_all_rows(data, best.options)
    return Finalists(found, data, dataclasses.replace(best, options=options), level)


def test_the_early_model_has_as_many_clusters_as_the_one_that_was_scored(monkeypatch):
    """All rows are enough for a search of the level, without those that are held out they are not:
    the level that was scored counts."""
    X, y = table_of(3000)
    monkeypatch.setattr(memory, "SEARCHED_FROM", 2900)
    monkeypatch.setattr(memory, "UNSEARCHED_MEAN_CLUSTER", 10_000)
    monkeypatch.setattr(search, "SEARCH_ROWS", 1000)
    monkeypatch.setattr(Finalists, "_try_exact", lambda *_: None)
    monkeypatch.setattr(Finalists, "_search_around_best", lambda _: None)
    monkeypatch.setattr("dcsvm.selection.final.SHARE_OF_CLUSTERS", 0.9)
    scored, try_one = [], Finalists._try

    @functools.wraps(try_one)
    def tried(self, *given, **more):
        try_one(self, *given, **more)
        scored.append(self.trials[-1].options.early_level)

    monkeypatch.setattr(Finalists, "_try", tried)
    model = dcsvm.easy(X, y, time_limit=20.0, threads=1)
    assert scored[0] == 1
    assert model.exact is None and model.early.level == 1


def test_an_exact_model_is_also_scored_with_the_settings_of_the_early_one():
    finalists = finalists_of(1500)
    exact = finalists.exact.options
    finalists._try(exact, 0.0)
    early = dataclasses.replace(exact, early=True, C=4 * exact.C)
    finalists._try_exact_like(early)
    assert [one.options.C for one in finalists.trials] == [exact.C, 4 * exact.C]
    assert not finalists.trials[1].options.early
    finalists._try_exact_like(exact)  # these were scored
    assert len(finalists.trials) == 2


@pytest.mark.parametrize("share", [0.0, 2.0])
def test_a_loss_on_few_clusters_is_not_that_of_the_model(monkeypatch, share):
    monkeypatch.setattr(final, "MIN_SCORED", share)
    finalists = finalists_of(1500)
    early = finalists._by_clusters()
    assert early.early
    assert (finalists.of_clusters is None) == (share > 1)
    chosen = finalists._unscored(early)
    search_loss = finalists.search.best.loss + finalists.search.bias
    if share > 1:  # more than all rows: the loss of the search counts
        assert chosen.loss >= search_loss
    else:
        assert (chosen.loss, chosen.error, chosen.n_held) == finalists.of_clusters


@pytest.mark.parametrize("n_first", [0, 10_000])
def test_of_few_rows_the_exact_model_comes_first(monkeypatch, n_first):
    finalists = finalists_of(1500)
    monkeypatch.setattr(final, "EXACT_FIRST", n_first)
    finalists.choose()
    assert finalists.trials[0].options.early == (n_first == 0)
    assert {one.options.early for one in finalists.trials} == {True, False}


def test_early_models_of_fewer_clusters_are_scored_while_they_are_better(monkeypatch):
    finalists = finalists_of(1500)
    losses = {3: 0.3, 2: 0.2, 1: 0.25}

    def scored(options, _reserve, **_):
        trial = dataclasses.replace(
            finalists.exact, options=options, loss=losses[options.early_level], fold_seconds=0.01
        )
        finalists.trials.append(trial)

    monkeypatch.setattr(finalists, "_try", scored)
    scored(dataclasses.replace(finalists.exact.options, early=True, early_level=3), 0.0)
    finalists._try_coarser()
    assert [one.options.early_level for one in finalists.trials] == [3, 2, 1]
    assert finalists.best.options.early_level == 2


def test_a_model_that_would_be_too_late_is_left_out():
    finalists = finalists_of(1500)
    early = dataclasses.replace(finalists.exact.options, early=True, early_level=2)
    finalists.trials.append(
        dataclasses.replace(finalists.exact, options=early, fold_seconds=finalists.clock.left())
    )
    finalists._try_coarser()
    finalists._try_exact(1e9)
    assert len(finalists.trials) == 1
    assert finalists.search.skipped[-2:] == [
        "early models of fewer clusters", "an exact model of all rows (about 1000000000 s)",
    ]  # fmt: skip


@pytest.mark.parametrize("metric", [None, "balanced-accuracy", "rmse"])
def test_a_model_that_was_not_scored_has_the_loss_of_folds_of_all_rows(metric):
    finalists = finalists_of(1500, metric)
    early = finalists._by_clusters()
    chosen = finalists._unscored(early)
    assert chosen.trial.options is early
    assert chosen.n_held == np.count_nonzero(~finalists.is_held)
    assert 0 < chosen.error < chosen.loss
    finalists._try(early, 0.0)
    (scored,) = finalists.trials
    assert abs(scored.loss - chosen.loss) < 4 * np.hypot(scored.error, chosen.error)
