"""Test models with their classes in another order: the predictions stay the same."""

from itertools import combinations

import numpy as np
import pytest
from made_models import made_model

from dcsvm.model.parts import Probability
from dcsvm.model.writer import with_label_order


@pytest.mark.parametrize("k", [2, 3, 5])
def test_values_are_those_of_the_pairs_turned_round(k):
    model = made_model(k)
    T = np.random.default_rng(1).uniform(-1, 1, (60, 3)).astype(np.float32)
    order = np.random.default_rng(k).permutation(k)
    other = with_label_order(model, model.labels[order])
    pairs = {pair: number for number, pair in enumerate(combinations(range(k), 2))}
    for method in ("exact", "early"):
        before = model.decision_function(T, method=method).reshape(60, -1)
        after = other.decision_function(T, method=method).reshape(60, -1)
        for (i, j), number in pairs.items():
            a, b = sorted((order[i], order[j]))
            sign = 1 if order[i] < order[j] else -1
            np.testing.assert_allclose(after[:, number], sign * before[:, pairs[a, b]], atol=1e-12)
    back = with_label_order(other, model.labels)
    np.testing.assert_array_equal(back.exact.dual_coef, model.exact.dual_coef)
    np.testing.assert_array_equal(back.exact.rho, model.exact.rho)
    np.testing.assert_array_equal(back.early.rho, model.early.rho)


def test_probabilities_go_with_their_classes():
    model = made_model(3)
    rng = np.random.default_rng(0)
    object.__setattr__(model, "probability", Probability(-rng.uniform(1, 2, 3), rng.normal(size=3)))
    T = rng.uniform(-1, 1, (60, 3)).astype(np.float32)
    other = with_label_order(model, model.labels[[2, 0, 1]])
    np.testing.assert_allclose(
        other.predict_probability(T), model.predict_probability(T)[:, [2, 0, 1]], atol=5e-3
    )


def test_other_labels_are_refused():
    model = made_model(3)
    with pytest.raises(ValueError, match="other labels"):
        with_label_order(model, model.labels + 1)
