"""Test the steps of the search by `dcsvm.easy`."""

from dataclasses import replace

import numpy as np

from dcsvm.data.dataset import Dataset
from dcsvm.problem.options import TrainOptions
from dcsvm.selection.search import MAX_C, PATTERN, EasySearch
from dcsvm.selection.trials import Clock, Scorer
from dcsvm.training.report import Progress


def rows_of(n_rows):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n_rows, 4))
    return Dataset(X, np.where(X[:, 0] * X[:, 1] + 0.5 * rng.normal(size=n_rows) > 0, 1.0, -1.0))


def test_the_search_goes_on_until_no_neighbour_of_the_best_is_better(monkeypatch):
    monkeypatch.setattr("dcsvm.selection.search.N_AGAIN", 40)
    search = EasySearch(rows_of(200), TrainOptions(threads=1), "accuracy", Clock(60.0), Progress())
    for step in (search._screen_kernels, search._try_weights, search._search_again):
        step()
    best = search.best.candidate
    for C_factor, gamma_factor in PATTERN:
        C, gamma = min(best.C * C_factor**0.5, MAX_C), best.gamma * gamma_factor**0.5
        assert replace(best, C=C, gamma=gamma) in search.candidates


def test_later_divisions_train_nearly_all_rows():
    scorer = Scorer.of(rows_of(200), TrainOptions(threads=1), "accuracy", 200)
    first, second = (scorer.divided_again(times, 10) for times in (1, 2))
    assert (scorer.max_folds, first.n_folds, second.n_folds) == (5, 10, 10)
    assert first.holds_out_all and first.n_trained >= 178
    assert not np.array_equal(first.fold, second.fold)
    few = Scorer.of(rows_of(7), TrainOptions(threads=1), "accuracy", 7)
    assert few.divided_again(1, 10).n_folds == 7
