import numpy as np
import pytest

from dcsvm.model.figure import loss_of_best
from dcsvm.model.metrics import DEFINITIONS, Outcome


def outcomes_of(rng, n_rows, error_rates, *, weights=None):
    """Settings that err independently with these rates, on the same rows."""
    labels = rng.integers(0, 2, n_rows).astype(float)
    return [
        (Outcome(labels, np.where(rng.random(n_rows) < rate, 1 - labels, labels), weights=weights),)
        for rate in error_rates
    ]


def best_of(metric, trials):
    return int(np.argmin([DEFINITIONS[metric].loss(outcomes[0]) for outcomes in trials]))


def test_a_single_setting_keeps_its_loss():
    (outcomes,) = outcomes_of(np.random.default_rng(0), 400, [0.2])
    loss, error = loss_of_best("accuracy", [outcomes], 0)
    own = DEFINITIONS["accuracy"].loss(outcomes[0])
    assert loss == pytest.approx(own)
    assert error == pytest.approx(np.sqrt(own * (1 - own) / 400), rel=0.15)


@pytest.mark.parametrize("metric", ["accuracy", "balanced-accuracy", "f1"])
def test_the_best_of_many_equal_settings_is_not_better_than_they_are(metric):
    deviations, uncorrected = [], []
    for seed in range(40):
        trials = outcomes_of(np.random.default_rng(seed), 300, [0.2] * 8)
        chosen = best_of(metric, trials)
        loss, error = loss_of_best(metric, trials, chosen)
        deviations.append((loss - 0.2) / error)
        uncorrected.append((DEFINITIONS[metric].loss(trials[chosen][0]) - 0.2) / error)
    assert np.mean(uncorrected) < -1.0
    assert abs(np.mean(deviations)) < 0.5
    assert 0.6 < np.std(deviations) < 1.4


def test_text_and_numbers_have_the_same_figure():
    trials = outcomes_of(np.random.default_rng(0), 200, [0.2, 0.22])
    words = [(Outcome(*(np.where(one == 1, "yes", "no") for one in (o.labels, o.predicted))),)
             for (o,) in trials]  # fmt: skip
    assert loss_of_best("f1", words, 0) == pytest.approx(loss_of_best("f1", trials, 0))


def test_a_correction_never_makes_the_loss_smaller():
    """Such as that of a model that was taken although another one has a smaller loss."""
    trials = outcomes_of(np.random.default_rng(0), 500, [0.1, 0.3])
    loss, _ = loss_of_best("accuracy", trials, 1)
    assert loss >= DEFINITIONS["accuracy"].loss(trials[1][0])


def test_a_setting_that_is_clearly_the_best_needs_no_correction():
    trials = outcomes_of(np.random.default_rng(0), 2000, [0.4, 0.1, 0.4])
    loss, _ = loss_of_best("accuracy", trials, 1)
    assert loss == pytest.approx(DEFINITIONS["accuracy"].loss(trials[1][0]))


@pytest.mark.parametrize("metric", ["rmse", "mae", "r2", "mse"])
def test_targets_of_a_regression(metric):
    rng = np.random.default_rng(0)
    y = rng.normal(size=500)
    trials = [(Outcome(y, y + rng.normal(scale=scale, size=500)),) for scale in (0.5, 0.9)]
    loss, error = loss_of_best(metric, trials, 0)
    assert loss == pytest.approx(DEFINITIONS[metric].loss(trials[0][0]), rel=1e-6)
    assert 0 < error < 0.1


def test_weights_of_rows_count():
    weights = np.repeat([1.0, 3.0], 500)
    labels = np.tile([0.0, 1.0], 500)
    predicted = np.where(np.arange(1000) < 500, 1 - labels, labels)  # the light rows are wrong
    trial = (Outcome(labels, predicted, weights=weights),)
    loss, _ = loss_of_best("accuracy", [trial], 0)
    assert loss == pytest.approx(0.25)


def test_divisions_into_folds_are_averaged():
    rng = np.random.default_rng(0)
    (once,), (again,) = outcomes_of(rng, 400, [0.2]), outcomes_of(rng, 400, [0.2])
    again = (Outcome(once[0].labels, again[0].predicted),)
    loss, _ = loss_of_best("accuracy", [(*once, *again)], 0)
    both = [DEFINITIONS["accuracy"].loss(one[0]) for one in (once, again)]
    assert loss == pytest.approx(np.mean(both))
