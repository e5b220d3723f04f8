"""Test the memory budget: plans, refusals, and the peak of the commands."""

import os
import re
import subprocess
import sys

import numpy as np
import pytest
from runs import train_rows

from dcsvm import _core, _svmlight
from dcsvm.data.arrays import BATCH_SIZE
from dcsvm.data.rows import ChosenRows, Rows
from dcsvm.problem.options import TrainOptions
from dcsvm.training import memory
from dcsvm.training.memory import MB, plan_memory

ONE = np.array([0, 1000])


def planned(rows=1000, start=ONE, megabytes=100, n_members=1.0, solved_share=1.0, n_places=0):
    data = Rows.from_array(np.zeros((rows, 10), np.float32))
    largest = int(np.diff(start).max() * solved_share)
    return plan_memory(
        data, largest, int(start[-1] * n_members), threads=2, megabytes=megabytes,
        n_places=n_places,
    )  # fmt: skip


@pytest.fixture
def machine(monkeypatch):
    """Return a function that sets the available memory."""
    return lambda megabytes: monkeypatch.setattr(memory, "usable_memory", lambda: megabytes * MB)


def test_what_is_planned_is_the_rows_the_budget_and_the_fixed_part():
    plan = planned(10**6, [0, 10**6], megabytes=500)
    assert plan.data == 40 * MB
    assert plan.data + plan.rest == (40 + 500 + 64 + 200) * MB
    assert plan.describe() == (
        "at most 804 MB of memory (200 for the program, 104 for the rows, "
        "500 for caches and working copies)"
    )


@pytest.mark.parametrize("n_rows", [1, 1000, 49_990, 123_457])
def test_the_parts_of_the_memory_that_are_told_add_up(n_rows):
    for text in (
        planned(n_rows, megabytes=None).describe(),
        memory.described(n_rows * 13, n_rows * 17, " each"),
    ):
        total, *parts = map(int, re.findall(r"\d+", text))
        assert total == sum(parts)


def test_a_small_problem_is_not_planned_to_use_a_large_budget():
    plan = planned(1000, megabytes=5000)
    assert plan.data + plan.rest < 350 * MB


def test_arrays_of_variables_beyond_the_free_part_come_out_of_the_budget():
    few, many = (planned(10**6, [0, n], megabytes=500) for n in (10**5, 2 * 10**6))
    assert few.solver(10**5) - few.solver_arrays == 500 * MB - few.scratch
    arrays = memory.VARIABLE * 2 * 10**6 + _core.array_bytes(2 * 10**6)
    beyond = arrays - 64 * 10**6 - memory.ARRAYS
    assert many.solver(2 * 10**6) - many.solver_arrays == 500 * MB - many.scratch - beyond


def test_rows_of_a_file_are_solved_in_parts():
    n = 10**6
    whole, half = (planned(n, [0, n], solved_share=share) for share in (1.0, 0.5))
    assert whole.spare(n) < half.spare(n)
    assert half.unplanned(n // 2) == whole.unplanned(n) == 0
    assert half.unplanned(n) == _core.array_bytes(n) - _core.array_bytes(n // 2)


@pytest.mark.parametrize(
    ("how", "sentence"),
    [
        ({"megabytes": 1, "start": [0, 5000], "rows": 5000},
         "cache_mb must be at least 22, got 1: required for matrices and working "
         "copies of 5000 rows"),
        ({"megabytes": 50, "start": [0, 10**6], "rows": 10**6},
         "cache_mb must be at least 83, got 50: required for matrices and working "
         "copies of 1000000 rows"),
        ({"megabytes": 50, "start": [0, 10**6], "rows": 10**6, "n_members": 1.5, "n_places": 3},
         "cache_mb must be at least 181, got 50: required for matrices and working "
         "copies of 1000000 rows"),
    ],
)  # fmt: skip
def test_a_budget_that_is_too_small_is_refused(how, sentence):
    with pytest.raises(ValueError) as error:
        planned(**how)
    assert str(error.value) == sentence


def test_a_budget_that_there_is_no_memory_for_is_refused(machine):
    machine(1000)
    assert planned(10**5, [0, 10**5], megabytes=700)
    with pytest.raises(ValueError) as error:
        planned(10**5, [0, 10**5], megabytes=900)
    assert str(error.value) == (
        "cache_mb must be at most 789, got 900: this process may use 1000 MB, with 4 MB of rows"
    )


def test_the_default_budget_is_what_the_rows_leave(machine, monkeypatch):
    monkeypatch.setattr(memory, "default_cache_mb", lambda: 5000)
    machine(1000)
    assert planned(10**6, [0, 10**6], megabytes=None).budget == (1000 - 200 - 64 - 40) * MB
    machine(380)
    with pytest.raises(ValueError, match="1000000 rows needs 387 MB of memory, and this .* 380 MB"):
        planned(10**6, [0, 10**6], megabytes=None)


def test_a_default_budget_that_is_too_small_is_named_where_there_is_memory_for_more(
    machine, monkeypatch
):
    monkeypatch.setattr(memory, "default_cache_mb", lambda: 50)
    machine(1000)
    with pytest.raises(ValueError, match="cache_mb must be at least 83, got the default 50"):
        planned(10**6, [0, 10**6], megabytes=None)


def test_training_says_what_memory_it_will_use_and_refuses_too_little():
    X = np.random.default_rng(0).random((2000, 3)).astype(np.float32)
    y = np.where(X[:, 0] > 0.5, 1.0, -1.0)
    with pytest.raises(ValueError, match="cache_mb must be at least 21, got 3"):
        train_rows(Rows.from_array(X), y, TrainOptions(cache_mb=3, threads=2))


@pytest.mark.parametrize("dense", [True, False])
def test_a_small_budget_changes_no_answer(dense):
    rng = np.random.default_rng(1)
    X = rng.normal(size=(3000, 100)).astype(np.float32) * (1 if dense else rng.random(100) < 0.02)
    y = np.where(X[:, :50].sum(axis=1) + 0.1 * rng.normal(size=3000) > 0, 1.0, -1.0)
    found = [
        train_rows(
            Rows.from_array(X),
            y,
            TrainOptions(C=4.0, gamma=0.01, levels=1, threads=2, cache_mb=megabytes),
        )
        for megabytes in (23, 1000)
    ]
    (small, report), (large, other) = found
    assert report.converged and other.converged
    assert report.objective == pytest.approx(other.objective, rel=1e-4)
    assert np.mean(small.predict(X) != large.predict(X)) < 0.002


def test_rows_that_are_consumed_give_the_same_model_files(tmp_path):
    rng = np.random.default_rng(2)
    X = np.repeat(rng.integers(0, 5, (1500, 4)), 2, axis=0).astype(np.float32) * 3
    y = np.where(X.sum(axis=1) + rng.normal(size=3000) > 24, 1.0, -1.0)
    options = TrainOptions(C=2.0, gamma=2.0, levels=1, threads=2, cache_mb=100)
    for consume in (False, True):
        model, _ = train_rows(Rows.from_array(X.copy()), y, options, consume=consume)
        assert isinstance(model.exact.rows, ChosenRows if consume else Rows)
        model.save(tmp_path / f"{consume}.model")
    assert (tmp_path / "False.model").read_bytes() == (tmp_path / "True.model").read_bytes()


def test_rows_are_reordered_where_they_are():
    rng = np.random.default_rng(3)
    X = rng.random((1000, 7)).astype(np.float32)
    for order in (rng.permutation(1000), np.sort(rng.choice(1000, 300, replace=False)),
                  np.arange(1000), np.arange(1000) ^ 1, rng.permutation(1000)[:1]):  # fmt: skip
        own = X.copy()
        taken = Rows.from_array(own).reordered(order, threads=2)
        assert np.array_equal(taken.dense, X[order])
        assert np.shares_memory(taken.dense, own)
    with pytest.raises(ValueError, match="names every row once"):
        _core.reorder_rows(X.view(np.uint8), np.zeros(1000, np.int32), 1)


@pytest.mark.parametrize("n_values", [1, 10, BATCH_SIZE])
def test_slices_cut_all_rows(n_values):
    for rows in (Rows.from_array(np.ones((37, 3), np.float32)),
                 Rows.from_array(np.eye(200, dtype=np.float32))):  # fmt: skip
        parts = [rows.part(some) for some in rows.slices(n_values)]
        assert sum(part.n_samples for part in parts) == rows.n_samples
        arrays = [part.dense if part.is_dense else part.values for part in parts]
        assert np.array_equal(np.concatenate(arrays), rows.dense if rows.is_dense else rows.values)


# prints the peak memory of a command in MB
COMMAND = """
import sys
from dcsvm.cli.{0} import main
try:
    main(sys.argv[1:])
finally:
    with open("/proc/self/status") as status:
        peak = next(int(line.split()[1]) for line in status if line.startswith("VmHWM"))
    print("peak", peak * 1024 / 1e6)
"""
PROGRAM = 200  # MB promised for the program and its blocks of work


def peak_of(command, *arguments):
    done = subprocess.run(
        [sys.executable, "-c", COMMAND.format(command), *map(str, arguments)],
        capture_output=True,
        text=True,
        env=os.environ | {"OMP_NUM_THREADS": "2"},
    )
    assert done.returncode == 0, done.stderr
    return float(done.stdout.split()[-1])


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """Write 60,000 rows to a dense and a sparse file; return the paths and the MB of the rows."""
    folder = tmp_path_factory.mktemp("memory")
    rng = np.random.default_rng(0)
    found = {}
    for name, n_features, n_values in (("dense", 300, 30), ("sparse", 3000, 50)):
        n = 60_000
        columns = np.sort(rng.random((n, n_values)).argsort(axis=1), axis=1)
        indices = (columns * (n_features // n_values) + rng.integers(0, n_features // n_values,
                                                                     (n, n_values)))  # fmt: skip
        values = rng.integers(1, 256, (n, n_values)).astype(np.float32) / 256
        y = np.where(np.arange(n) % 2, 1.0, -1.0)
        indices[:, 0], values[:, 0] = 0, 8 * y  # easy: hardly any support vectors
        text = _svmlight.write_csr(
            y[:, None],
            np.arange(n + 1, dtype=np.int64) * n_values,
            indices.ravel().astype(np.int32),
            values.ravel(),
        )
        (folder / name).write_bytes(text)
        n_bytes = 4 * n * n_features if name == "dense" else 8 * (n * n_values + n)
        found[name] = folder / name, n_bytes / MB
    return found


@pytest.mark.skipif("libasan" in os.environ.get("LD_PRELOAD", ""), reason="has its own memory")
@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
@pytest.mark.parametrize("name", ["dense", "sparse"])
def test_training_and_prediction_stay_within_what_is_promised(files, tmp_path, name):
    path, data = files[name]
    rows = 60_000 * 64 / MB
    model = tmp_path / "model"
    for megabytes in (30, 100):
        arguments = ("-q", "-g", 0.001, "-e", 0.1, "-m", megabytes, path, model)
        assert peak_of("train", *arguments) <= data + megabytes + rows + PROGRAM
    assert peak_of("predict", path, model, tmp_path / "out") <= 2 * data + rows + PROGRAM
