"""Simulated cores save time where loops have many chunks, and change no bit."""

import numpy as np

from dcsvm import _core
from dcsvm.data.rows import Rows
from dcsvm.problem.options import TrainOptions
from dcsvm.training.train import train_rows


def trained(threads):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(1500, 5)).astype(np.float32)
    labels = np.where(X[:, 0] * X[:, 1] > 0, 1.0, -1.0)
    options = TrainOptions(C=8, gamma=0.5, levels=1, threads=threads)
    return train_rows(Rows.from_array(X), labels, options)[0].exact


def test_a_model_is_the_same_on_simulated_cores():
    one, before = trained(1), _core.seconds_saved()
    _core.simulate_cores(True)
    try:
        many = trained(16)
    finally:
        _core.simulate_cores(False)
    assert np.array_equal(one.dual_coef, many.dual_coef)
    assert _core.seconds_saved() > before
    after = _core.seconds_saved()
    several = trained(3)  # threads now, which help inside each other's clusters
    assert np.array_equal(one.dual_coef, several.dual_coef)
    assert _core.seconds_saved() == after
