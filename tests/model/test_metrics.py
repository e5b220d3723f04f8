"""Compare the metrics of predictions with scikit-learn's."""

import warnings

import numpy as np
import pytest

from dcsvm.model.metrics import (
    ClassMetrics,
    Confusion,
    RegressionMetrics,
    area_under_curve,
    loss_of,
)

metrics = pytest.importorskip("sklearn.metrics")


@pytest.mark.parametrize("labels", [np.array([1.0, -1.0]), np.array(["b", "a", "c\u00e9"])])
@pytest.mark.parametrize("seed", range(3))
def test_the_metrics_of_classes_are_scikit_learns(labels, seed):
    rng = np.random.default_rng(seed)
    true, guess = labels[rng.integers(0, len(labels), (2, 60))]
    one = Confusion.of(true, guess, labels)
    assert np.array_equal(one.counts, metrics.confusion_matrix(true, guess, labels=one.labels))
    precision, recall, f1, support = metrics.precision_recall_fscore_support(
        true, guess, labels=one.labels, zero_division=0
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
    found = ClassMetrics.of(true, guess, known, None, probabilities)
    ordered = probabilities[:, np.argsort(known)]
    assert found.log_loss == pytest.approx(metrics.log_loss(true, ordered))
    assert found.auc == pytest.approx(metrics.roc_auc_score(true, ordered, multi_class="ovr"))
    assert loss_of("log-loss", true, guess, None, ordered) == pytest.approx(found.log_loss)


def test_labels_that_the_model_lacks_are_errors_without_scores():
    true, guess = np.array([1.0, 2.0, 3.0]), np.array([1.0, 1.0, 2.0])
    found = ClassMetrics.of(true, guess, np.array([1.0, 2.0]), np.ones(3))
    assert (found.auc, found.log_loss) == (None, None)
    assert found.confusion.labels.tolist() == [1, 2, 3]
    assert found.confusion.accuracy == pytest.approx(1 / 3)


def test_the_metrics_of_a_regression_are_scikit_learns():
    rng = np.random.default_rng(0)
    y, predicted = rng.normal(size=(2, 50))
    found = RegressionMetrics.of(y, predicted)
    assert found.mae == pytest.approx(metrics.mean_absolute_error(y, predicted))
    assert found.rmse == pytest.approx(metrics.root_mean_squared_error(y, predicted))
    assert found.r2 == pytest.approx(metrics.r2_score(y, predicted))
    assert RegressionMetrics.of(np.ones(3), np.zeros(3)).as_dict()["r2"] is None


def test_the_losses_fall_where_the_metrics_rise():
    y, guess = np.array([0.0, 0, 1, 1]), np.array([0.0, 1, 1, 1])
    values = np.array([3.0, -1, -2, -3])
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
    lines = list(ClassMetrics.of(true, np.roll(true, 1), true).lines())
    assert lines[0].startswith("worst 10 classes")
    assert len(lines) == 12
