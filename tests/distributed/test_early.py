"""Early models on workers: the bits of one worker, and the level that one process finds."""

import numpy as np
import pytest

pytest.importorskip("distributed")
da = pytest.importorskip("dask.array")

from distributed import Client, LocalCluster  # noqa: E402

import dcsvm  # noqa: E402
from dcsvm.distributed import train  # noqa: E402

EARLY = {"C": 4, "gamma": 0.5, "early": True}


def saved(model, tmp_path):
    model.save(tmp_path / "model")
    return (tmp_path / "model").read_bytes()


def test_early_models_are_the_same_bits_for_any_workers_and_chunks(client, rows_in_spots, tmp_path):
    X, y = rows_in_spots
    found = saved(train(client, da.from_array(X, (700, -1)), da.from_array(y, 700), **EARLY),
                  tmp_path)  # fmt: skip
    with (
        LocalCluster(3, threads_per_worker=2, processes=False, dashboard_address=":0") as cluster,
        Client(cluster, set_as_default=False) as other,
    ):
        again = train(other, da.from_array(X, (1000, -1)), da.from_array(y, 1000), **EARLY)
    assert saved(again, tmp_path) == found


@pytest.mark.parametrize("bias", [False, True])
def test_the_early_level_is_that_of_one_process(client, rows_in_spots, bias):
    X, y = rows_in_spots
    here = dcsvm.train(X, y, threads=1, bias=bias, **EARLY)
    model = train(client, da.from_array(X, (900, -1)), da.from_array(y, 900), bias=bias, **EARLY)
    assert model.report.early_choice.level == here.report.early_choice.level
    assert np.mean(model.predict(X) == here.predict(X)) > 0.999


def test_early_models_of_several_classes(client):
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, (3000, 2)).astype(np.float32)
    y = np.array(["east", "north", "west"])[(np.arctan2(*X.T) // 2.1).astype(int) + 1]
    here = dcsvm.train(X, y, threads=1, **EARLY)
    model = train(client, da.from_array(X, (500, -1)), da.from_array(y, 500), **EARLY)
    assert model.labels.tolist() == here.labels.tolist()
    assert np.mean(model.predict(X) == here.predict(X)) > 0.99
