"""Test one equality constraint over many components: relaxed during a run, met wherever it ends."""

import json

import numpy as np
import pytest
from reference import certificate, full_alpha, kernel_values, objective
from runs import train_rows

from dcsvm import _core
from dcsvm.data.rows import Rows
from dcsvm.kernel import row_components
from dcsvm.problem.formulation import c_svc_pairs
from dcsvm.problem.options import TrainOptions
from dcsvm.training import conquer as relaxation
from dcsvm.training import fit as train_module
from dcsvm.training import state as checkpoint
from dcsvm.training.engine import prepare_rows
from dcsvm.training.report import Progress
from dcsvm.training.run import Run
from dcsvm.training.state import Checkpoint, RunControl

TOLERANCE, GAMMA, N_ROWS = 1e-4, 8.0, 2100
WEIGHTED = {"class_weight": {1.0: 3.0, -1.0: 0.5}}


@pytest.fixture(autouse=True)
def small_groups(monkeypatch):
    monkeypatch.setattr(row_components, "MIN_COMPONENT", 200)


@pytest.fixture(scope="module")
def data():
    """Return blobs far apart, with different shares of positive rows."""
    rng = np.random.default_rng(3)
    blob = rng.integers(6, size=N_ROWS)
    X = rng.normal(0, 0.3, (N_ROWS, 3)).astype(np.float32)
    X[:, 0] += 9 * blob
    y = np.where(np.sin(9 * X[:, 1]) + rng.normal(0, 0.7, N_ROWS) > 0.3 * blob - 1, 1.0, -1.0)
    return X, y


def options(**chosen):
    usual = {"C": 10.0, "gamma": GAMMA, "bias": True, "levels": 2, "branching": 3}
    return TrainOptions(**(usual | {"tolerance": TOLERANCE, "threads": 2} | chosen))


def train(data, progress=None, kept=None, **chosen):
    X, y = data
    progress = progress or Progress()
    stop = getattr(progress, "stop", None) or _core.Stop()
    return train_rows(Rows.from_array(X), y, options(**chosen), RunControl(progress, stop, kept))


def formulation_of(y, class_weight):
    classes = (y < 0).astype(np.int64)
    C = 10.0 * np.array([class_weight.get(1.0, 1.0), class_weight.get(-1.0, 1.0)])
    return c_svc_pairs(classes, np.ones(N_ROWS), C, bias=True)


class Counted(Progress):
    """Progress that requests a stop at call number `last` of `advance`."""

    def __init__(self, last=None):
        self.stop, self.last, self.n_calls = _core.Stop(), last, 0

    def advance(self, *_where):
        self.n_calls += 1
        if self.n_calls == self.last:
            self.stop.request()


@pytest.fixture
def relaxed(monkeypatch):
    """Record the multiplier whenever a relaxed constraint is restored."""
    seen, restore_constraint = [], relaxation.restore_constraint

    def noted(solver):
        if solver.state.multiplier is not None:
            seen.append(solver.state.multiplier)
        restore_constraint(solver)

    for module in (relaxation, train_module):
        monkeypatch.setattr(module, "restore_constraint", noted)
    return seen


@pytest.mark.parametrize("chosen", [{}, WEIGHTED, {"levels": 1}], ids=str)
def test_the_answer_is_the_optimum_that_keeps_the_sum(data, relaxed, chosen):
    X, y = data
    model, report = train(data, **chosen)
    problem = formulation_of(y, chosen.get("class_weight", {})).problem
    K, alpha = kernel_values(("rbf", GAMMA, 0, 0), X, X), full_alpha(model, N_ROWS)
    assert report.n_row_components > 3 and len(relaxed) == 1
    assert report.converged
    assert abs(alpha.sum()) <= 1e-9 * np.abs(alpha).sum()
    assert np.all((alpha >= problem.lower) & (alpha <= problem.upper))
    violation, gap = certificate(K, problem, alpha)
    assert violation <= TOLERANCE
    assert report.duality_gap >= gap * (1 - 1e-6) - 1e-9
    assert report.objective == pytest.approx(objective(K, problem.linear, alpha), rel=1e-6)
    assert model.exact.rho[0] == pytest.approx(relaxed[0], abs=5 * TOLERANCE)
    assert abs(relaxed[0]) > 100 * TOLERANCE
    direct = train(data, **(chosen | {"levels": 0}))[1]
    assert len(relaxed) == 1
    assert report.objective == pytest.approx(direct.objective, rel=1e-6)


def test_a_regression_keeps_its_sum(data, relaxed):
    X, y = data
    chosen = {"svm_type": "epsilon_svr", "bias": False, "C": 1.0}
    model, report = train((X, y + 0.5 * X[:, 2]), **chosen)
    direct = train((X, y + 0.5 * X[:, 2]), levels=0, **chosen)[1]
    assert report.n_row_components > 3 and len(relaxed) == 1
    assert report.converged
    assert abs(model.exact.dual_coef.sum()) <= 1e-9 * np.abs(model.exact.dual_coef).sum()
    assert report.objective == pytest.approx(direct.objective, rel=1e-6)


def test_threads_do_not_change_a_bit(data):
    one, two = (train(data, threads=threads)[0].exact for threads in (1, 2))
    assert one.dual_coef.tobytes() == two.dual_coef.tobytes()
    assert one.rho.tobytes() == two.rho.tobytes()


def test_a_stop_anywhere_keeps_the_sum_and_a_checkpoint_goes_on(data, relaxed, tmp_path):
    counted = Counted()
    whole = train(data, counted, **WEIGHTED)[1]
    relaxed.clear()
    problem = formulation_of(data[1], WEIGHTED["class_weight"]).problem
    for number in np.linspace(2, counted.n_calls - 1, 9).astype(int):
        folder = tmp_path / str(number)
        try:
            model, report = train(data, Counted(number), Checkpoint(folder), **WEIGHTED)
        except _core.Stopped:
            continue
        if not report.stopped:  # the number of calls varies with the time: this run had fewer
            assert report.converged
            continue
        alpha = full_alpha(model, N_ROWS)
        assert not report.converged
        assert abs(alpha.sum()) <= 1e-9 * np.abs(alpha).sum()
        assert np.all((alpha >= problem.lower) & (alpha <= problem.upper))
        report = train(data, kept=Checkpoint(folder, resume=True), **WEIGHTED)[1]
        assert report.converged
        assert report.objective == pytest.approx(whole.objective, rel=1e-6)
    assert len(relaxed) > 9


def test_every_checkpoint_of_a_relaxed_run_is_one_to_go_on_from(data, tmp_path, monkeypatch):
    monkeypatch.setattr(checkpoint, "MIN_PAUSE", 0.0)
    monkeypatch.setattr(checkpoint, "MAX_SHARE", np.inf)
    saved, save = [], Checkpoint.save

    def save_and_read(self, state, model_of_early):
        save(self, state, model_of_early)
        with open(self.path, "rb") as file:
            saved.append((state.multiplier, file.read()))

    monkeypatch.setattr(Checkpoint, "save", save_and_read)
    whole = train(data, kept=Checkpoint(tmp_path / "c"))[1]
    monkeypatch.undo()
    monkeypatch.setattr(row_components, "MIN_COMPONENT", 200)
    stored = [text for multiplier, text in saved if multiplier is not None]
    assert len({multiplier for multiplier, _ in saved}) > 3
    for text in stored[:: max(1, len(stored) // 6)]:
        (tmp_path / "c" / "state.npz").write_bytes(text)
        report = train(data, kept=Checkpoint(tmp_path / "c", resume=True))[1]
        assert report.converged
        assert report.objective == pytest.approx(whole.objective, rel=1e-6)


def test_a_multiplier_without_a_sum_is_refused(data):
    X, y = data
    run = Run(prepare_rows(Rows.from_array(X), y, options(bias=False)))
    state, arrays = run.state, run.state.to_arrays()
    size = run.solver.problem, N_ROWS, 1
    state.set_arrays(arrays, *size)
    assert state.multiplier is None
    values = json.loads(arrays["values"].tobytes()) | {"multiplier": 0.5}
    arrays["values"] = np.frombuffer(json.dumps(values).encode(), np.uint8)
    with pytest.raises(ValueError, match="multiplier"):
        state.set_arrays(arrays, *size)
