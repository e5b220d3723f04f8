"""Test early models on workers: the bits of one worker, the level of one process."""

import dask.array as da
import numpy as np
import pytest
from distributed import Client, LocalCluster
from reference import libsvm_text

import dcsvm
from dcsvm.data import chunks
from dcsvm.distributed import train
from dcsvm.distributed.dataset import read_on_workers

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


def test_early_models_are_the_same_bits_for_any_ranges_in_a_chunk(
    client, rows_in_spots, tmp_path, monkeypatch
):
    """Components are found in each range of rows too."""
    monkeypatch.setattr(chunks, "MIN_RANGE", 2**10)
    X, y = rows_in_spots
    far = X + np.outer(np.arange(len(X)) % 7 // 3, [100, 0, 0])
    (tmp_path / "rows").write_text(libsvm_text(far, y))
    found = set()
    for n_threads in (1, 3, 100):
        data = read_on_workers(client, str(tmp_path / "rows"), n_threads=n_threads)
        model = dcsvm.train(data.disposable(), **EARLY, cache_mb=100)
        assert model.report.n_row_components == 3
        found.add(saved(model, tmp_path))
    assert len(found) == 1


@pytest.mark.parametrize("gamma", [0.5, 8, 50], ids=["together", "apart", "in groups"])
def test_clusters_begin_with_the_samples_of_one_process(client, rows_in_spots, gamma):
    X, y = rows_in_spots
    options = EARLY | {"gamma": gamma, "early_level": 1}
    here = dcsvm.train(X, y, threads=1, **options)
    model = train(client, da.from_array(X, (900, -1)), da.from_array(y, 900), **options)
    own, other = (one.early.partition for one in (model, here))
    assert np.array_equal(own.sample.dense, other.sample.dense)
    assert np.array_equal(own.splits[0].child, other.splits[0].child)


@pytest.mark.parametrize("bias", [False, True])
def test_the_early_level_is_that_of_one_process(client, rows_in_spots, bias):
    X, y = rows_in_spots
    options = EARLY | {"bias": bias, "early_level": "auto"}
    here = dcsvm.train(X, y, threads=1, **options)
    model = train(client, da.from_array(X, (900, -1)), da.from_array(y, 900), **options)
    assert model.report.early_choice.level == here.report.early_choice.level
    assert np.mean(model.predict(X) == here.predict(X)) > 0.999


def test_training_ends_at_an_adaptive_level_of_one_process(client, rows_in_spots):
    X, y = rows_in_spots
    options = EARLY | {"levels": 2, "early_level": 1, "clustering": "adaptive"}
    here = dcsvm.train(X, y, threads=1, **options)
    model = train(client, da.from_array(X, (900, -1)), da.from_array(y, 900), **options)
    assert [level.level for level in model.report.levels] == [2, 1]
    assert len(model.early.partition.splits) == len(here.early.partition.splits) == 1
    assert np.mean(model.predict(X) == here.predict(X)) > 0.99


def test_early_models_of_several_classes(client):
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, (3000, 2)).astype(np.float32)
    y = np.array(["east", "north", "west"])[(np.arctan2(*X.T) // 2.1).astype(int) + 1]
    here = dcsvm.train(X, y, threads=1, **EARLY)
    model = train(client, da.from_array(X, (500, -1)), da.from_array(y, 500), **EARLY)
    assert model.labels.tolist() == here.labels.tolist()
    assert np.mean(model.predict(X) == here.predict(X)) > 0.99
