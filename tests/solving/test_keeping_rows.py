"""Whether the solver of all rows keeps kernel rows, by their cost and the memory there is."""

import numpy as np
import pytest

from dcsvm.data.rows import Rows
from dcsvm.problem.options import TrainOptions
from dcsvm.training.train import ready, train_rows


def data(n, d):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, d)).astype(np.float32)
    return Rows.from_array(X), np.where(X[:, 0] * X[:, 1] > 0.2, 1.0, -1.0)


@pytest.mark.parametrize(
    ("d", "cache_mb", "wanted"), [(300, 200, True), (300, 40, False), (20, 200, False)]
)
def test_what_is_kept(d, cache_mb, wanted):
    rows, y = data(9000, d)
    options = TrainOptions(gamma=0.5, cache_mb=cache_mb, threads=2)
    run = ready(rows, y, options)
    assert run.plan.keeps_rows == wanted
    assert ("refine" not in dict(run.steps())) == wanted


def test_the_answer_is_the_same():
    rows, y = data(4500, 300)
    found = [
        train_rows(rows, y, TrainOptions(gamma=0.01, C=10, cache_mb=mb, threads=2))[1]
        for mb in (30, 200)
    ]
    assert all(report.converged for report in found)
    assert found[0].objective == pytest.approx(found[1].objective, rel=1e-5)
