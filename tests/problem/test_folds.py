"""Test folds: every row is in one, classes are spread evenly, a seed gives the same folds."""

import numpy as np
import pytest

from dcsvm.problem.folds import shuffled_folds, stratified_folds


@pytest.mark.parametrize("n_folds", [2, 3, 5, 30])
def test_the_rows_of_a_class_differ_by_at_most_one_between_folds(n_folds):
    labels = np.repeat([3.0, -1.0, 7.5], [7, 83, 31])
    labels = labels[np.random.default_rng(1).permutation(len(labels))]
    fold = stratified_folds(labels, n_folds, seed=0)
    for wanted in (np.ones(len(labels), bool), *(labels == label for label in np.unique(labels))):
        counts = np.bincount(fold[wanted], minlength=n_folds)
        assert len(counts) == n_folds
        assert np.ptp(counts) <= 1


@pytest.mark.parametrize("n_folds", [2, 7, 50])
def test_shuffled_folds_differ_by_at_most_one_row(n_folds):
    counts = np.bincount(shuffled_folds(50, n_folds, seed=3), minlength=n_folds)
    assert len(counts) == n_folds
    assert np.ptp(counts) <= 1


def test_the_seed_decides():
    labels = np.arange(200) % 3
    for folds in (lambda seed: stratified_folds(labels, 5, seed),
                  lambda seed: shuffled_folds(200, 5, seed)):  # fmt: skip
        assert np.array_equal(folds(1), folds(1))
        assert not np.array_equal(folds(1), folds(2))


def test_rows_in_order_of_a_feature_are_not_held_out_together():
    fold = stratified_folds(np.zeros(1000), 2, seed=0)
    assert 350 < np.count_nonzero(np.diff(fold)) < 650


@pytest.mark.parametrize("n_folds", [-1, 0, 1, 6])
def test_more_folds_than_rows_or_fewer_than_two_are_refused(n_folds):
    with pytest.raises(ValueError, match=f"5 rows cannot be divided into {n_folds} folds"):
        stratified_folds(np.ones(5), n_folds, 0)
    with pytest.raises(ValueError, match=f"5 rows cannot be divided into {n_folds} folds"):
        shuffled_folds(5, n_folds, 0)
