"""Test the engine of rows on workers, without workers: its tasks are functions called here."""

import inspect
from collections import Counter

import numpy as np
import pytest
from reference import labelled_rows

import dcsvm
from dcsvm import _core
from dcsvm.data.rows import Rows
from dcsvm.problem.options import TrainOptions
from dcsvm.training.engine import LocalEngine
from dcsvm.training.fit import begin, finish
from dcsvm.training.remote_engine import RemoteEngine
from dcsvm.training.state import RunControl


class TasksHere:
    """Tasks that are done when they are submitted: their futures are results."""

    def __init__(self):
        self.counts, self.names = Counter(), []

    def submit(self, name, function, *args, priority=0, **kwargs):
        self.names.append(name)
        return function(*args, **kwargs)

    def submit_each(self, name, function, *columns):
        return [self.submit(name, function, *values) for values in zip(*columns, strict=True)]

    def on_chunks(self, name, function, *columns, **kwargs):
        return [self.submit(name, function, *one, **kwargs) for one in zip(*columns, strict=True)]

    def run(self, name, function, *args, is_alone=False, priority=0):
        return self.submit(name, function, *args, threads=1, stop=_core.Stop())

    def finished(self, futures, stop=None):
        yield from futures.items()

    def results(self, futures, stop=None):
        return list(futures)

    def workers(self):
        return [(1, 0)]

    def work(self):
        return {"here": [len(self.names), 0.0, 0.0]}


@pytest.mark.parametrize(
    "options",
    [{"levels": 2}, {"early": True, "early_level": 1}, {"svm_type": "epsilon_svr", "levels": 1}],
    ids=["levels", "early", "svr"],
)
def test_a_run_without_dask_is_that_of_one_process(options):
    X, y = labelled_rows(3000, 3, seed=5)
    options = {"C": 4.0, "gamma": 2.0, "threads": 1, **options}
    parts = [slice(0, 700), slice(700, 701), slice(701, 3000)]
    tasks, chunks = TasksHere(), [[(Rows.from_array(X[own]), y[own])] for own in parts]
    engine = RemoteEngine.of(tasks, chunks)
    model = finish(begin(engine, y, TrainOptions(**options), RunControl()))
    here = dcsvm.train(X, y, **options)
    if not options.get("early"):
        assert model.report.objective == pytest.approx(here.report.objective, rel=1e-5)
    assert (
        np.isclose(model.decision_function(X), here.decision_function(X), atol=0.02).mean() > 0.99
    )
    assert model.report.traffic.workers["here"].tasks == len(tasks.names)


def test_both_engines_have_the_same_methods():
    for name, method in inspect.getmembers(LocalEngine, inspect.isfunction):
        if not name.startswith("_") and name != "of":
            of_workers = inspect.signature(getattr(RemoteEngine, name)).parameters
            here = inspect.signature(method).parameters
            assert [one.lstrip("_") for one in of_workers] == [one.lstrip("_") for one in here]
    attributes = "data digest traffic owns_rows is_out_of_core targets_at_once tree_of"
    assert all(
        hasattr(kind, one) for kind in (LocalEngine, RemoteEngine) for one in attributes.split()
    )
