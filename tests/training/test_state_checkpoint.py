"""Test that stopped or killed runs resume from their checkpoint and refuse others'."""

import errno
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from dataclasses import is_dataclass
from types import SimpleNamespace

import numpy as np
import pytest
from reference import labelled_rows
from runs import ready, train_rows

from dcsvm import _core
from dcsvm.data.rows import Rows
from dcsvm.model.reader import load_model
from dcsvm.problem.options import TrainOptions
from dcsvm.training import solver
from dcsvm.training import state as checkpoint
from dcsvm.training.certificate import Certificate, CheckState
from dcsvm.training.report import EarlyChoice, LevelReport, Progress
from dcsvm.training.solver import FormulationSolver
from dcsvm.training.state import (
    LIMITS,
    Budget,
    Checkpoint,
    CheckpointError,
    RunControl,
)

OPTIONS = {"C": 30.0, "gamma": 2.0, "threads": 2, "cache_mb": 50, "tolerance": 1e-5}
LEVELS = {"levels": 3, "branching": 2, "early_level": 2}
CASES = {
    "levels": LEVELS,
    "levels with bias": {**LEVELS, "bias": True},
    "direct": {"levels": 0},
    "cached rows": {"levels": 0, "gamma": 0.3, "n_noise": 70},
    "regression": {"svm_type": "epsilon_svr", "levels": 1, "branching": 4},
    "nu-SVC": {"svm_type": "nu_svc", "nu": 0.3},
    "one class": {"svm_type": "one_class", "nu": 0.1, "levels": 1, "branching": 4},
    "relaxed": {**LEVELS, "gamma": 2000.0, "bias": True},
    "several classes": {**LEVELS, "n_classes": 3, "bias": True},
    "gap": {**LEVELS, "gap": 1e-4},
    "overlap": {**LEVELS, "overlap": 1.5},
    "adaptive": {**LEVELS, "clustering": "adaptive"},
    "adaptive with overlap": {**LEVELS, "clustering": "adaptive", "overlap": 1.5},
    "early": {"levels": 2, "branching": 2, "early": True, "early_level": 1},
    "early level": {"levels": 3, "branching": 2, "early": True, "early_level": "auto"},
    "linear": {"kernel": "linear", "C": 1.0},
    "linear with bias": {"kernel": "linear", "C": 1000.0, "bias": True},
}


@pytest.fixture(scope="module")
def data():
    X, y = labelled_rows(3000, 4, seed=5, noise=0.2)
    return Rows.from_array(X), y


def train(data, folder=None, *, resume=False, progress=None, **options):
    chosen = OPTIONS | options
    stop = getattr(progress, "stop", None) or _core.Stop()
    kept = None if folder is None else Checkpoint(folder, resume=resume)
    return train_rows(*data, TrainOptions(**chosen), RunControl(progress or Progress(), stop, kept))


class StopAt(Progress):
    """Progress that requests a stop at call number `call` of `advance`, or after a phase."""

    def __init__(self, call=None, level=None, phase=None):
        self.stop, self.call, self.n_calls, self.resumed = _core.Stop(), call, 0, None
        self.phase = phase if level is None else f"level {level}"

    def resume(self, name):
        self.resumed = name

    def advance(self, *_where):
        self.n_calls += 1
        if self.n_calls == self.call:
            self.stop.request()

    def end_level(self, report):
        self.end(f"level {report.level}")

    def end(self, name, *_what):
        if name == self.phase:
            self.stop.request()


def stopped_or_nothing(data, folder, **how):
    try:
        return train(data, folder, **how)
    except _core.Stopped:
        return None


def case(data, name):
    """Return the data and options of a case; it may add features of noise, or a third class."""
    (rows, y), options = data, dict(CASES[name])
    n_noise, n_classes = options.pop("n_noise", 0), options.pop("n_classes", 2)
    noise = 0.1 * np.random.default_rng(3).normal(size=(len(y), n_noise))
    X = np.hstack([rows.dense, noise])
    y = np.where(rows.dense[:, 0] > 0.3, 2.0, y) if n_classes > 2 else y
    return (Rows.from_array(X), y), options


def told(trained):
    """Return the results and counters of a run."""
    model, report = trained
    parts = {
        name: (part.dual_coef.tobytes(), part.rows.dense.tobytes(), np.asarray(part.rho).tobytes())
        for name, part in (("exact", model.exact), ("early", model.early))
        if part is not None
    }
    names = (
        "objective",
        "violation",
        "duality_gap",
        "kernel_error",
        "n_variables_checked",
        "counts",
    )
    levels = [
        (one.level, one.n_sv, one.objective, one.kernel_evaluations, one.pairs_skipped)
        for one in report.levels
    ]
    iterations = [one.iterations for one in report.problems]
    found = {name: getattr(report, name) for name in names}
    return (
        parts
        | found
        | {"values": report.evaluations_by_phase, "levels": levels, "iterations": iterations}
    )


@pytest.mark.parametrize("name", CASES)
def test_a_run_stopped_anywhere_ends_with_the_bits_and_counters_of_one_that_is_not(
    data, name, tmp_path
):
    data, options = case(data, name)
    whole = told(train(data, **options, cache_mb=100))
    rng, n_pieces, stopped = np.random.default_rng(len(name)), 0, True
    while stopped:
        progress = StopAt(call=int(rng.integers(1, 30 + 30 * n_pieces)))
        threads = int(rng.integers(1, 3))
        cache_mb = int(rng.integers(90, 120))  # caches all rows
        trained = stopped_or_nothing(
            data, tmp_path / "c", resume=n_pieces > 0, progress=progress,
            **options | {"threads": threads, "cache_mb": cache_mb},
        )  # fmt: skip
        n_pieces += 1
        stopped = trained is None or trained[1].stopped
    assert n_pieces > 1
    assert trained[1].converged
    assert told(trained) == whole


def test_another_cache_than_is_needed_changes_no_bit_of_a_resumed_model(data, tmp_path):
    data, options = case(data, "cached rows")
    whole = told(train(data, **options))
    train(data, tmp_path / "c", progress=StopAt(call=40), **options)
    resumed = told(train(data, tmp_path / "c", resume=True, **options | {"cache_mb": 24}))
    assert resumed["counts"]["kernel_evaluations"] > whole["counts"]["kernel_evaluations"]
    assert resumed["exact"] == whole["exact"]
    assert resumed["counts"]["iterations"] == whole["counts"]["iterations"]


PHASES = ["level 3", "level 2", "level 1", "refine", "gradient", "conquer"]


@pytest.mark.parametrize("phase", PHASES)
def test_from_the_end_of_a_phase_models_and_counters_are_those_of_an_uninterrupted_run(
    data, phase, tmp_path
):
    whole, expected = train(data, **LEVELS)
    train(data, tmp_path / "c", progress=StopAt(phase=phase), **LEVELS)
    progress = StopAt()
    how = LEVELS | {"threads": 1, "cache_mb": 40}
    model, report = train(data, tmp_path / "c", resume=True, progress=progress, **how)
    following = [*PHASES[1:], "conquer"]
    assert progress.resumed == following[PHASES.index(phase)]
    assert report.converged
    for part, wanted in ((model.exact, whole.exact), (model.early, whole.early)):
        assert part.dual_coef.tobytes() == wanted.dual_coef.tobytes()
        assert part.rows.dense.tobytes() == wanted.rows.dense.tobytes()
    assert (report.counts, report.evaluations_by_phase) == (
        expected.counts,
        expected.evaluations_by_phase,
    )
    for name in ("objective", "violation", "duality_gap", "kernel_error", "n_variables_checked"):
        assert getattr(report, name) == getattr(expected, name)


def test_a_stopped_run_has_the_last_level_as_its_early_model(data, tmp_path):
    model, report = train(data, tmp_path / "c", progress=StopAt(level=3), **LEVELS)
    assert (model.early.level, report.stopped, report.converged) == (3, True, False)
    assert load_model(tmp_path / "c" / "early.model").early.level == 3
    assert np.mean(model.predict(data[0], method="early") == data[1]) > 0.6


def test_the_float64_check_goes_on_where_it_was_killed(data, tmp_path, monkeypatch):
    monkeypatch.setattr(checkpoint, "MIN_PAUSE", 0.0)
    monkeypatch.setattr(checkpoint, "MAX_SHARE", np.inf)
    monkeypatch.setattr(solver, "BATCH_VALUES", 100_000)
    gradient_of, sizes = FormulationSolver.gradient_of, []

    def counted(self, variables, how, *sources):
        if how.float64:
            sizes.append(len(variables))
            if len(sizes) == n_before_kill:
                raise KeyboardInterrupt
        return gradient_of(self, variables, how, *sources)

    monkeypatch.setattr(FormulationSolver, "gradient_of", counted)
    n_before_kill = None
    model, report = train(data, tmp_path / "whole", **LEVELS)
    n_checked = sum(sizes)
    n_before_kill, sizes[:] = len(sizes) // 2, []
    with pytest.raises(KeyboardInterrupt):
        train(data, tmp_path / "c", **LEVELS)
    n_done, n_before_kill, sizes[:] = sum(sizes[:-1]), None, []
    resumed, again = train(data, tmp_path / "c", resume=True, **LEVELS)
    assert 0 < sum(sizes) == n_checked - n_done
    assert again.kernel_error == report.kernel_error
    assert again.n_variables_checked == report.n_variables_checked
    assert resumed.exact.dual_coef.tobytes() == model.exact.dual_coef.tobytes()


@pytest.mark.parametrize("name", ["levels", "cached rows", "relaxed", "linear with bias"])
def test_a_run_that_is_killed_at_any_checkpoint_goes_on(data, tmp_path, monkeypatch, name):
    """A run can resume from every stored state."""
    monkeypatch.setattr(checkpoint, "MIN_PAUSE", 0.0)
    monkeypatch.setattr(checkpoint, "MAX_SHARE", np.inf)
    saved, save = [], Checkpoint.save

    def save_and_copy(self, *state):
        save(self, *state)
        saved.append(shutil.copytree(self.folder, tmp_path / f"copy{len(saved)}"))

    monkeypatch.setattr(Checkpoint, "save", save_and_copy)
    data, options = case(data, name)
    whole = told(train(data, tmp_path / "c", **options))
    monkeypatch.undo()
    assert len(saved) > 5
    for folder in saved[:: max(1, len(saved) // 8)]:
        assert told(train(data, folder, resume=True, threads=1, **options)) == whole


def plain(value):
    """Convert a state and its contents to comparable values."""
    if is_dataclass(value):
        value = vars(value)
    if isinstance(value, _core.SolveState):
        value = value.to_array()
    if isinstance(value, dict):
        return {name: plain(one) for name, one in value.items()}
    return [plain(one) for one in value] if isinstance(value, list) else np.asarray(value).tolist()


def test_a_state_comes_back_as_it_was_stored(data, tmp_path):
    def begun(**how):
        kept = Checkpoint(tmp_path / "c", **how)
        options = TrainOptions(**dict.fromkeys(LIMITS.values(), 10**6), **LEVELS)
        return ready(*data, options, RunControl(checkpoint=kept))

    run, some = begun(), np.arange(5, 40, dtype=np.int32)
    state, fresh = run.state, plain(run.state)
    state.iterate.learn(some, np.sin(some))
    state.iterate.alpha[some] = run.solver.problem.upper[some] / 2
    state.whole_tolerance[:], state.begun_with, state.level = 0.01, some, {"a": np.cos(some)}
    state.checks, state.neglected, state.rounding, state.n_bsv = 3, 0.25, 1e-6, 17
    state.next_step, state.gap_tolerance, state.last_violation = "refine", 1e-3, 0.5
    state.budget, state.converged = Budget(dict.fromkeys(LIMITS, 12345)), np.ones(1, bool)
    state.has_begun, state.float64, state.is_global = True, True, False
    state.sample, state.n_iterations = some, state.n_iterations + 7
    state.checked = CheckState.nothing(run.solver.problem.size)
    state.checked.replace(state.iterate.gradient, some, np.tan(some))
    state.checked.drawn[some], state.checked.wanted[some + 1] = 1, 1
    state.solve, state.weight = _core.SolveState([5, 0, 7]), 2.5
    state.n_moves, state.move, state.missing = 2, -0.25, 0.125
    values = [np.array([one]) for one in (-2.5, 1e-3, 0.5, 1e-6, 5, 0.25, 1.0)]
    state.certificate = Certificate(*values, np.zeros((1, run.solver.problem.n_constraints)))
    state.best_alpha, state.best_excess = state.iterate.alpha / 2, np.ones(1)
    state.best_gradient = np.tan(state.iterate.alpha)
    state.levels = [LevelReport(3, 8, 500, 0.1, 0.2, 900, -1.5, 7, 8)]
    state.support_by_level = [some]
    state.early_choice = EarlyChoice(2, 3, 1, 0.1, 0.01, 100, "error_rate")
    for name, value in vars(state.costs).items():
        filled = dict.fromkeys(value, 17) if isinstance(value, dict) else 1.5
        setattr(state.costs, name, filled)
    run.save()
    run.control.checkpoint.let_go()
    resumed = begun(resume=True)
    stored, found = plain(state), plain(resumed.state)
    assert resumed.seconds_before == state.costs.seconds_train > 0
    own = {name for name in found if found[name] != fresh[name]}
    assert own == set(found) - {"early", "multiplier"}  # other tests cover these
    assert found == stored


def test_storing_takes_a_small_share_of_the_time(data, tmp_path, monkeypatch):
    kept = Checkpoint(tmp_path / "c")
    run, times = ready(*data, TrainOptions(), RunControl(checkpoint=kept)), iter([100.0, 102.0])
    monkeypatch.setattr(checkpoint, "time", SimpleNamespace(monotonic=lambda: next(times)))
    run.save()
    assert kept.due == 102 + 2 / 0.05


def test_what_a_killed_process_was_writing_is_removed(data, tmp_path):
    train(data, tmp_path / "c", progress=StopAt(level=3), **LEVELS)
    (tmp_path / "c" / ".dcsvm-abc").write_text("half of a checkpoint")
    kept = Checkpoint(tmp_path / "c", resume=True)
    assert sorted(os.listdir(tmp_path / "c")) == ["early.model", "state.npz"]
    kept.remove()
    assert not (tmp_path / "c").exists()


@pytest.fixture
def is_always_due(monkeypatch):
    monkeypatch.setattr(checkpoint, "MIN_PAUSE", 0.0)
    monkeypatch.setattr(checkpoint, "MAX_SHARE", np.inf)


class Kept(StopAt):
    """Progress that stores warnings, and calls `at_level` when a level is done."""

    def __init__(self, at_level=None, **how):
        super().__init__(**how)
        self.warnings, self.at_level = [], at_level or (lambda level: None)

    def warn(self, sentence):
        self.warnings.append(sentence)

    def end_level(self, report):
        super().end_level(report)
        self.at_level(report.level)


def test_a_folder_is_of_one_run_at_a_time(data, tmp_path):
    folder, refused = tmp_path / "c", []

    def begin_another(level):
        for resume in (False, True):
            with pytest.raises(ValueError) as error:
                train(data, folder, resume=resume, **LEVELS)
            refused.append(str(error.value))

    train(data, folder, progress=Kept(begin_another, level=2), **LEVELS)
    held = f"{folder}: process {os.getpid()} on {os.uname().nodename} is using this folder"
    assert set(refused) == {held}
    assert sorted(os.listdir(folder)) == ["early.model", "state.npz"]
    assert train(data, folder, resume=True, **LEVELS)[1].converged


def test_a_run_that_fails_lets_the_folder_go(data, tmp_path):
    train(data, tmp_path / "c", progress=StopAt(level=2), **LEVELS)
    with pytest.raises(CheckpointError) as kept:
        train(data, tmp_path / "c", resume=True, **LEVELS, seed=7)
    assert "a run with seed 0, not 7" in str(kept.value)
    assert train(data, tmp_path / "c", resume=True, **LEVELS)[1].converged


def test_training_goes_on_without_its_folder_and_makes_it_again(data, tmp_path, is_always_due):
    whole = train(data, **LEVELS)[0]
    folder = tmp_path / "c"
    progress = Kept(lambda level: level == 2 and shutil.rmtree(folder), level=1)
    train(data, folder, progress=progress, **LEVELS)
    assert progress.warnings == []
    model, report = train(data, folder, resume=True, **LEVELS)
    assert report.converged
    assert model.exact.dual_coef.tobytes() == whole.exact.dual_coef.tobytes()
    assert model.early.dual_coef.tobytes() == whole.early.dual_coef.tobytes()


def test_a_disk_that_is_full_for_a_time_is_a_warning(data, tmp_path, is_always_due, monkeypatch):
    folder, write, is_full = tmp_path / "c", checkpoint.write_beside, []

    def written(*what):
        if is_full:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), "state")
        write(*what)

    def fill(level):
        is_full[:] = [True] if level == 2 else []

    monkeypatch.setattr(checkpoint, "write_beside", written)
    progress = Kept(fill)
    assert train(data, folder, progress=progress, **LEVELS)[1].converged
    assert progress.warnings == [
        f"{folder}: the checkpoint is not stored: no space left on device",
        f"{folder}: the checkpoint is stored again",
    ]
    shutil.rmtree(folder)
    is_full[:] = [True]
    with pytest.warns(UserWarning, match="the checkpoint is not stored: no space left on device"):
        assert train(data, folder, **LEVELS)[1].converged
    assert not (folder / "state.npz").exists()


def test_a_run_goes_on_with_more_or_less_memory(data, tmp_path):
    small, large = {"cache_mb": 22}, {"cache_mb": 200}
    names = []
    for before, after in ((small, large), (large, small)):
        folder = tmp_path / str(len(names))
        train(data, folder, progress=StopAt(level=1), **LEVELS, **before)
        progress = StopAt()
        report = train(data, folder, resume=True, progress=progress, **LEVELS, **after)[1]
        names.append(progress.resumed)
        assert report.converged
    assert names == ["refine", "refine"]


@pytest.mark.parametrize("overlap", [1.0, 1.5])
def test_counts_of_a_run_that_was_stopped_are_those_of_all_of_it(data, overlap, tmp_path):
    how = {**LEVELS, "overlap": overlap}
    whole = train(data, **how)[1]
    assert whole.problems[0].iterations == whole.counts["iterations"]
    n_pieces, report = 0, None
    while report is None or report.stopped:
        progress = StopAt(level=3 - n_pieces)
        report = train(data, tmp_path / "c", resume=n_pieces > 0, progress=progress, **how)[1]
        n_pieces += 1
    assert n_pieces == 4
    assert report.counts == whole.counts
    assert report.problems[0].iterations == whole.problems[0].iterations
    assert report.n_variables_checked == whole.n_variables_checked


def test_a_stop_inside_a_level_loses_no_iterations(data, tmp_path, is_always_due):
    done = []
    for call in (4, None):
        progress, resume = StopAt(call=call), call is None
        how = {**LEVELS, "overlap": 1.5}
        done.append(train(data, tmp_path / "c", resume=resume, progress=progress, **how)[1])
    assert done[0].stopped
    assert done[1].counts["iterations"] == done[1].problems[0].iterations
    assert 0 < done[0].counts["iterations"] < done[1].counts["iterations"]


def test_checkpoints_of_other_data_or_options_are_refused(data, tmp_path):
    rows, y = data
    stopped_or_nothing(data, tmp_path / "c", progress=StopAt(call=20), levels=0)
    fewer = rows.take(np.arange(2999)), y[:2999]
    other = Rows.from_array(rows.dense + np.float32(1.0)), y
    flipped = rows, np.where(np.arange(3000) == 7, -y, y)
    wrong = {
        "data with 3000 rows, not 2999": (fewer, {}),
        "data with other values, another scaling or other feature weights": (other, {}),
        "a run with kernel rbf, not laplacian": (data, {"kernel": "laplacian"}),
        "data with other labels": (flipped, {}),
        "a run with C 30.0, not 31.0": (data, {"C": 31.0}),
        "a run with gap unset, not 0.001": (data, {"gap": 1e-3}),
        "a run with levels 0, not 2": (data, {"levels": 2}),
    }
    for sentence, (those, options) in wrong.items():
        with pytest.raises(CheckpointError, match=re.escape(f"the checkpoint is of {sentence}")):
            train(those, tmp_path / "c", resume=True, **({"levels": 0} | options))
    assert train(data, tmp_path / "c", resume=True, levels=0, threads=1)[1].converged


def test_a_checkpoint_is_neither_overwritten_nor_made_up(tmp_path, data):
    with pytest.raises(CheckpointError, match="there is no checkpoint to resume"):
        Checkpoint(tmp_path / "c", resume=True)
    train(data, tmp_path / "c", progress=StopAt(level=3), **LEVELS)
    with pytest.raises(CheckpointError, match="there is a checkpoint already"):
        Checkpoint(tmp_path / "c")


@pytest.mark.parametrize("make", ["touch", "symlink_to"])
def test_a_checkpoint_in_a_file_or_a_dangling_link_is_refused(tmp_path, make):
    getattr(tmp_path / "c", make)(*["nowhere"][: make != "touch"])
    with pytest.raises(CheckpointError, match="c: is not a folder"):
        Checkpoint(tmp_path / "c")


def test_damaged_checkpoints_give_one_sentence_or_are_whole(data, tmp_path):
    """Some bytes of a zip archive, such as its dates, have no effect."""
    train(data, tmp_path / "c", progress=StopAt(level=2), **LEVELS)
    path = tmp_path / "c" / "state.npz"
    text = path.read_bytes()
    for content in (b"", text[:10], text[:-1], text[: len(text) // 2]):
        path.write_bytes(content)
        with pytest.raises(CheckpointError, match="the checkpoint is damaged"):
            train(data, tmp_path / "c", resume=True, **LEVELS)
    path.write_bytes(text)
    with np.load(path) as stored:
        arrays = {name: array.tolist() for name, array in stored.items()}
    rng, n_refused = np.random.default_rng(1), 0
    for place in rng.integers(len(text), size=40):
        changed = bytearray(text)
        changed[place] ^= 1 << int(rng.integers(8))
        path.write_bytes(changed)
        try:
            kept = Checkpoint(tmp_path / "c", resume=True)
            ready(*data, TrainOptions(**OPTIONS | LEVELS), RunControl(checkpoint=kept))
        except CheckpointError as error:
            assert str(error).endswith("the checkpoint is damaged")
            n_refused += 1
        else:
            with np.load(path) as stored:
                assert arrays == {name: array.tolist() for name, array in stored.items()}
        kept.let_go()
    assert n_refused > 30


def lies():
    """List invalid changes to a state that keep the file readable."""

    def values(**changed):
        def change(arrays):
            known = json.loads(arrays["values"].tobytes())
            left = {name: value for name, value in (known | changed).items() if value != "gone"}
            arrays["values"] = np.frombuffer(json.dumps(left).encode(), np.uint8)

        return change

    yield values(next_step="level 99")
    yield values(early_choice={"level": "x"})
    yield values(costs="gone")
    yield values(checks="3")
    yield values(float64=1)
    yield lambda arrays: arrays.update(run=np.frombuffer(b"[]", np.uint8))
    yield lambda arrays: arrays.update({"iterate.alpha": arrays["iterate.alpha"][:-1]})
    yield lambda arrays: arrays.update({"iterate.alpha": arrays["iterate.alpha"] + 1e9})
    yield lambda arrays: arrays.update({"iterate.known": arrays["iterate.known"] + np.uint8(7)})
    yield lambda arrays: arrays.update(
        {"iterate.gradient": np.full_like(arrays["iterate.alpha"], np.nan)}
    )
    yield lambda arrays: arrays.update(begun_with=np.array([10**6], np.int32))
    yield lambda arrays: arrays.update(whole_tolerance=np.zeros(0))
    yield lambda arrays: arrays.update(solve=np.arange(50, dtype=np.uint8))
    yield lambda arrays: arrays.update(solve=np.zeros(50))
    yield lambda arrays: arrays.pop("support.0")


@pytest.mark.parametrize("number", range(len(list(lies()))))
def test_checkpoints_that_lie_are_refused(data, tmp_path, number):
    train(data, tmp_path / "c", progress=StopAt(level=2), **LEVELS)
    path = tmp_path / "c" / "state.npz"
    with np.load(path) as stored:
        arrays = dict(stored)
    list(lies())[number](arrays)
    np.savez(path, **arrays)
    with pytest.raises(CheckpointError, match="the checkpoint is damaged"):
        train(data, tmp_path / "c", resume=True, **LEVELS)


@pytest.mark.parametrize(
    "name", ["iterate.alpha", "is_solved", "all_converged", "solve", "objective"]
)
def test_a_level_of_other_clusters_is_refused(data, tmp_path, name):
    how = {**LEVELS, "overlap": 1.5}
    train(data, tmp_path / "c", progress=StopAt(call=30), **how)
    path = tmp_path / "c" / "state.npz"
    with np.load(path) as stored:
        arrays = dict(stored)
    np.savez(path, **arrays | {f"level.{name}": arrays[f"level.{name}"][:-1]})
    with pytest.raises(CheckpointError, match="the checkpoint is damaged: clusters differ"):
        train(data, tmp_path / "c", resume=True, **how)


@pytest.fixture(scope="module", autouse=True)
def hears_sigint():
    """Handle SIGINT: shells start background commands, and their children, with SIGINT ignored."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


def command(*arguments):
    code = "from dcsvm.cli.train import main; main()"
    return [sys.executable, "-c", code, "-q", *map(str, arguments)]


@pytest.fixture(scope="module")
def slow_file(tmp_path_factory):
    """Write a file that trains for long (large C on noise), and its first rows as fewer.tr."""
    X, y = labelled_rows(20_000, 6, seed=7, noise=0.4)
    path = tmp_path_factory.mktemp("slow") / "slow.tr"
    lines = [
        f"{label:g} " + " ".join(f"{k + 1}:{v:.6g}" for k, v in enumerate(row)) + "\n"
        for label, row in zip(y, X, strict=True)
    ]
    path.write_text("".join(lines), encoding="ascii")
    path.with_name("fewer.tr").write_text("".join(lines[:6000]), encoding="ascii")
    return path


SLOW = ["-c", 5000, "-g", 1, "-e", 1e-5, "-l", 0]


def in_training(*arguments):
    """Start the command and return after one second of training."""
    line = [word for word in command(*arguments) if word != "-q"]
    started = subprocess.Popen(line, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    said = started.stderr.readline()
    assert "no clusters" in said, said + started.communicate(timeout=60)[1]
    time.sleep(1)
    return started


def wait_for(path, seconds=60):
    end = time.monotonic() + seconds
    while not os.path.exists(path) and time.monotonic() < end:
        time.sleep(0.02)


@pytest.mark.skipif(os.name == "nt", reason="signals of POSIX")
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_writes_what_there_is(slow_file, tmp_path, number):
    model, report = tmp_path / "m", tmp_path / "r"
    started = in_training(*SLOW, "--report", report, slow_file, model)
    started.send_signal(number)
    said = started.communicate(timeout=60)[1]
    assert started.returncode == 128 + number, said
    assert "interrupted, not converged: violation" in said
    assert json.loads(report.read_text())["stopped"] is True
    assert load_model(model).exact.status.converged is False
    assert sorted(os.listdir(tmp_path)) == ["m", "r"]


@pytest.mark.skipif(os.name == "nt", reason="signals of POSIX")
def test_a_second_signal_ends_at_once(slow_file, tmp_path):
    started = in_training(*SLOW, slow_file, tmp_path / "m")
    started.send_signal(signal.SIGINT)
    said = started.stderr.readline()
    started.send_signal(signal.SIGTERM)
    said += started.communicate(timeout=60)[1]
    assert "SIGINT: stopping; repeat to quit" in said
    # the model may be written in between
    assert (started.returncode, os.listdir(tmp_path)) in ((143, []), (130, ["m"]), (143, ["m"]))


@pytest.mark.skipif(os.name == "nt", reason="signals of POSIX")
def test_a_signal_while_reading_ends_at_once(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    started = subprocess.Popen(
        command(tmp_path / "pipe", tmp_path / "m"), stderr=subprocess.PIPE, text=True
    )
    with open(tmp_path / "pipe", "w", encoding="ascii"):
        time.sleep(0.5)
        started.send_signal(signal.SIGTERM)
        said = started.communicate(timeout=60)[1]
    assert (started.returncode, said) == (143, "interrupted\n")
    assert os.listdir(tmp_path) == ["pipe"]


def test_a_time_limit_writes_what_there_is(slow_file, tmp_path):
    start = time.monotonic()
    done = subprocess.run(
        command(*SLOW, "--time-limit", 2, slow_file, tmp_path / "m"),
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert time.monotonic() - start < 30
    assert done.returncode == 3, done.stderr
    assert "stopped at the time limit of 2 s, not converged: violation" in done.stderr
    assert load_model(tmp_path / "m").exact is not None


def test_a_time_limit_that_is_too_short_gives_no_model(slow_file, tmp_path):
    done = subprocess.run(
        command(*SLOW, "--time-limit", 0.001, slow_file, tmp_path / "m"),
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == 1
    assert "stopped before a model existed" in done.stderr
    assert os.listdir(tmp_path) == []


@pytest.mark.skipif(os.name == "nt", reason="signals of POSIX")
def test_a_command_that_is_killed_goes_on(slow_file, tmp_path):
    folder = tmp_path / "c"
    fewer = slow_file.with_name("fewer.tr")
    both = ["--checkpoint", folder, "--resume", folder, fewer, tmp_path / "m"]
    easy = ["-c", 50, "-g", 1, "-e", 1e-4, "-l", 1, "-q"]
    started = subprocess.Popen(command(*easy, *both))
    wait_for(folder / "state.npz")
    started.kill()
    assert started.wait() == -signal.SIGKILL
    done = subprocess.run(command(*easy, *both), capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    assert load_model(tmp_path / "m").exact.status.converged is True
    assert not folder.exists()


def test_options_that_do_not_go_together_are_refused(slow_file, tmp_path):
    cases = {
        ("--checkpoint", "a", "--resume", "b"): (2, "must name the same folder"),
        ("--resume", tmp_path / "none"): (1, "no such folder"),
        ("-v", 3, "--time-limit", 5): (2, "--time-limit cannot be used with cross-validation"),
        ("--time-limit", 0): (2, "--time-limit"),
    }
    for options, (status, said) in cases.items():
        done = subprocess.run(
            command(*options, slow_file), capture_output=True, text=True, cwd=tmp_path, timeout=60
        )
        assert done.returncode == status, done.stderr
        assert said in done.stderr
