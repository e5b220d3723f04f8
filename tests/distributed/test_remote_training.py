"""Training on workers gives what training in one process gives."""

import numpy as np
import pytest

pytest.importorskip("distributed")
da = pytest.importorskip("dask.array")


import dcsvm  # noqa: E402
from dcsvm.distributed import train  # noqa: E402


def text_of(model, tmp_path):
    path = tmp_path / "model"
    model.save(path)
    return path.read_text()


def cut(X, y, size=700):
    return da.from_array(X, (size, -1)), da.from_array(y, size)


@pytest.mark.parametrize(
    "options",
    [
        {"C": 4, "gamma": 0.5},
        {"C": 4, "gamma": 0.5, "levels": 2, "bias": True},
        {"C": 4, "gamma": 50},
        {"svm_type": "epsilon_svr", "C": 2, "gamma": 0.5},
        {"svm_type": "nu_svc", "nu": 0.3, "gamma": 0.5},
    ],
    ids=["plain", "bias", "groups", "svr", "nu"],
)
def test_the_exact_model_is_that_of_one_process(client, rows_in_spots, options):
    X, y = rows_in_spots
    here = dcsvm.train(X, y, threads=1, **options)
    model = train(client, *cut(X, y), **options)
    report = model.report
    assert report.converged and report.violation <= 1e-3
    assert report.objective == pytest.approx(here.report.objective, rel=1e-5)
    agree = np.isclose(model.decision_function(X), here.decision_function(X), atol=0.02)
    assert agree.mean() > 0.999
