"""Cross validation: every row is predicted by models that have not seen it, and only by those."""

import warnings

import numpy as np
import pytest

from dcsvm.cross_validation import cross_validate
from dcsvm.dataset import Rows
from dcsvm.folds import stratified_folds
from dcsvm.training import TrainOptions, train_rows

OPTIONS = TrainOptions(C=4.0, gamma=2.0, threads=1, cache_mb=50, seed=3)


def test_a_fold_is_predicted_by_a_model_of_the_others(wavy):
    rows, labels = Rows.from_array(wavy[0][:300]), wavy[1][:300]
    predicted = cross_validate(rows, labels, OPTIONS, 3)
    fold = stratified_folds(labels, 3, OPTIONS.seed)
    for k in range(3):
        others = np.flatnonzero(fold != k)
        model, _ = train_rows(rows.take(others), labels[others], OPTIONS)
        held_out = np.flatnonzero(fold == k)
        assert np.array_equal(predicted[held_out], model.predict(rows.take(held_out)))


def test_labels_without_meaning_are_not_predicted():
    rng = np.random.default_rng(1)
    rows, labels = Rows.from_array(rng.standard_normal((200, 3))), rng.integers(0, 2, 200) * 1.0
    assert 0.35 < np.mean(cross_validate(rows, labels, OPTIONS, 10) == labels) < 0.65


def test_a_class_of_one_row_is_never_predicted_for_it():
    rows = Rows.from_array(np.arange(10.0).reshape(10, 1))
    labels = np.array([1.0] * 9 + [2.0])
    predicted = cross_validate(rows, labels, OPTIONS, 10)
    assert predicted[9] == 1.0


def test_folds_that_did_not_converge_are_a_warning(wavy):
    rows, labels = Rows.from_array(wavy[0]), wavy[1]
    options = TrainOptions(C=4.0, gamma=2.0, threads=1, cache_mb=50, max_iterations=5)
    with pytest.warns(UserWarning, match="2 of 2 folds did not converge"):
        cross_validate(rows, labels, options, 2)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        cross_validate(rows, labels, OPTIONS, 2)
