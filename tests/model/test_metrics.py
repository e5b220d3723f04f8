"""Compare the metrics of predictions with scikit-learn's."""

import warnings
from dataclasses import replace

import numpy as np
import pytest

from dcsvm.model.metrics import (
    DEFINITIONS,
    Measurement,
    Outcome,
    area_under_curve,
)
from dcsvm.problem.formulation import balanced_factors
from dcsvm.problem.option_table import CLASSES, KIND_OF_METRIC

metrics = pytest.importorskip("sklearn.metrics")


def loss_of(metric, *arrays):
    return DEFINITIONS[metric].loss(Outcome(*arrays))


@pytest.mark.parametrize("labels", [np.array([1.0, -1.0]), np.array(["b", "a", "c\u00e9"])])
@pytest.mark.parametrize("seed", range(3))
def test_the_metrics_of_classes_are_scikit_learns(labels, seed):
    rng = np.random.default_rng(seed)
    true, guess = labels[rng.integers(0, len(labels), (2, 60))]
    one = Outcome(true, guess, classes=labels)
    known, counts = one.confusion
    assert np.array_equal(counts, metrics.confusion_matrix(true, guess, labels=known))
    precision, recall, f1, support = metrics.precision_recall_fscore_support(
        true, guess, labels=known, zero_division=0
    )
    assert one.precision == pytest.approx(precision)
    assert one.recall == pytest.approx(recall)
    assert one.f1 == pytest.approx(f1)
    assert np.array_equal(one.support, support)
    assert one.accuracy == pytest.approx(metrics.accuracy_score(true, guess))
    assert one.balanced_accuracy == pytest.approx(metrics.balanced_accuracy_score(true, guess))
    assert one.macro_f1 == pytest.approx(metrics.f1_score(true, guess, average="macro"))


def test_the_area_under_the_curve_counts_ties_half():
    rng = np.random.default_rng(0)
    is_first, values = rng.random(200) < 0.3, rng.integers(0, 7, 200).astype(float)
    assert area_under_curve(is_first, values) == pytest.approx(
        metrics.roc_auc_score(is_first, values)
    )
    assert np.isnan(area_under_curve(np.ones(3, bool), np.arange(3.0)))


def test_probabilities_give_log_loss_and_the_area_of_several_classes():
    rng = np.random.default_rng(0)
    known = np.array(["c", "a", "b"])
    true = known[rng.integers(0, 3, 100)]
    probabilities = rng.dirichlet(np.ones(3), 100)
    guess = known[probabilities.argmax(axis=1)]
    found = Outcome(true, guess, None, probabilities, classes=known)
    ordered = probabilities[:, np.argsort(known)]
    assert found.log_loss == pytest.approx(metrics.log_loss(true, ordered))
    assert found.auc == pytest.approx(metrics.roc_auc_score(true, ordered, multi_class="ovr"))
    assert loss_of("log-loss", true, guess, None, ordered) == pytest.approx(found.log_loss)


def test_labels_that_the_model_lacks_are_errors_without_scores():
    true, guess = np.array([1.0, 2.0, 3.0]), np.array([1.0, 1.0, 2.0])
    outcome = Outcome(
        true, guess, np.ones((3, 1)), np.full((3, 2), 0.5), classes=np.array([1.0, 2.0])
    )
    found = outcome.class_metrics()
    assert (found["auc"], found["log_loss"]) == (None, None)
    assert found["labels"] == [1, 2, 3]
    assert found["accuracy"] == pytest.approx(1 / 3)


def test_the_metrics_of_a_regression_are_scikit_learns():
    rng = np.random.default_rng(0)
    y, predicted = rng.normal(size=(2, 50))
    found = Outcome(y, predicted).regression_metrics()
    assert found["mae"] == pytest.approx(metrics.mean_absolute_error(y, predicted))
    assert found["rmse"] == pytest.approx(metrics.root_mean_squared_error(y, predicted))
    assert found["r2"] == pytest.approx(metrics.r2_score(y, predicted))


def test_a_report_has_no_nan():
    measured = Measurement("epsilon_svr", np.zeros(0), is_kept=True)
    measured.add(Outcome(np.ones(3), np.zeros(3)))
    assert measured.metrics() == {"mae": 1.0, "rmse": 1.0, "r2": None}
    assert list(measured.lines_of_metrics()) == ["MAE 1, RMSE 1, R2 nan"]


def test_the_losses_fall_where_the_metrics_rise():
    y, guess = np.array([0.0, 0, 1, 1]), np.array([0.0, 1, 1, 1])
    values = np.array([[3.0], [-1], [-2], [-3]])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert loss_of("accuracy", y, guess) == 0.25
        assert loss_of("balanced-accuracy", y, guess) == 0.25
        assert loss_of("auc", y, guess, values) == 0
        assert loss_of("f1", y, guess) == pytest.approx(
            1 - metrics.f1_score(y, guess, average="macro")
        )
        assert loss_of("mae", y, guess) == 0.25
        assert loss_of("r2", y, guess) == pytest.approx(1.0)


def test_the_text_has_the_worst_of_many_classes():
    true = np.arange(30.0)
    lines = list(Outcome(true, np.roll(true, 1)).lines())
    assert lines[0].startswith("worst 10 classes")
    assert len(lines) == 12


def outcome_of(kind, n=80):
    rng = np.random.default_rng(3)
    weights = rng.integers(1, 4, n).astype(float)
    if kind != CLASSES:
        return Outcome(*rng.normal(size=(2, n)), weights=weights)
    first = rng.random(n)
    values, probabilities = np.round(first[:, None] - 0.5, 1), np.column_stack([first, 1 - first])
    return Outcome(*rng.integers(0, 2, (2, n)), values, probabilities, weights)


@pytest.mark.parametrize("name", KIND_OF_METRIC)
def test_weights_are_copies_of_rows(name):
    one = outcome_of(KIND_OF_METRIC[name])
    copies = replace(one.take(np.repeat(np.arange(80), one.weights.astype(int))), weights=None)
    loss = DEFINITIONS[name].loss(one)
    assert loss == pytest.approx(DEFINITIONS[name].loss(copies))
    assert loss != pytest.approx(DEFINITIONS[name].loss(replace(one, weights=None)))


@pytest.mark.parametrize("name", KIND_OF_METRIC)
def test_the_loss_is_that_of_the_mean_of_rows(name):
    one, metric = outcome_of(KIND_OF_METRIC[name]), DEFINITIONS[name]
    if metric.row_losses is None:
        assert metric.loss_of_all is not None
        return
    losses = metric.row_losses(one.labels, one.predicted)
    if metric.is_balanced:
        losses = losses * balanced_factors(one.labels, one.weights, 2)[one.labels]
    mean, variance = np.average(losses, weights=one.weights), 1.0
    if metric.is_relative:
        variance = np.cov(one.labels, fweights=one.weights.astype(int), ddof=0)
    assert metric.of_mean(mean, variance) == pytest.approx(metric.loss(one))
    assert metric.mean_of(metric.loss(one), variance) == pytest.approx(mean)


@pytest.mark.parametrize("name", KIND_OF_METRIC)
def test_a_value_in_a_report_has_its_loss(name):
    metric = DEFINITIONS[name]
    assert metric.loss_of_shown(metric.shown(0.3)) == pytest.approx(0.3)
    assert (metric.shown(0.2) > metric.shown(0.3)) == metric.is_gain


def test_rows_of_one_class_keep_its_place():
    one = outcome_of(CLASSES)
    one = replace(one, classes=np.array([0, 1]))
    second = one.take(one.labels == 1)
    own = metrics.log_loss(
        second.labels, second.probabilities, sample_weight=second.weights, labels=[0, 1]
    )
    assert DEFINITIONS["log-loss"].loss(second) == pytest.approx(own)
    assert np.isnan(DEFINITIONS["auc"].loss(second))


def test_every_metric_has_a_definition():
    assert list(DEFINITIONS) == list(KIND_OF_METRIC)
