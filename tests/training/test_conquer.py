"""Test the loop of solves and checks of the whole problem."""

import numpy as np
import pytest

import dcsvm
from dcsvm import _core
from dcsvm.training import conquer
from dcsvm.training.solver import FormulationSolver


@pytest.fixture
def violations(monkeypatch):
    """Violations of the checks, in order."""
    found, verify = [], conquer.verify

    def recorded(*arguments):
        certificates = verify(*arguments)
        found.append(max(one.violation for one in certificates.values()))
        return certificates

    monkeypatch.setattr(conquer, "verify", recorded)
    return found


def rough_rows():
    """Rows of which rounding of a polynomial kernel undoes all steps."""
    rng = np.random.default_rng(2)
    X = rng.normal(size=(170, 5))
    return 1e3 * X, X @ rng.normal(size=5) * 3


ROUGH = {"svm_type": "epsilon_svr", "kernel": "polynomial", "gamma": 30.0, "C": 1000.0,
         "tolerance": 1e-6, "threads": 1, "max_iterations": 1_000_000}  # fmt: skip


@pytest.mark.filterwarnings("ignore:not converged")
def test_of_solutions_that_get_worse_the_best_is_kept(violations, monkeypatch):
    solve, calls = FormulationSolver.solve, []

    def worsening(solver, *arguments):
        calls.append(solver)
        if len(calls) < 3:
            solve(solver, *arguments)
        else:
            solver.iterate.learn(np.arange(len(solver.alpha)), 2 * solver.gradient)
            solver.alpha[:] *= 0.5

    monkeypatch.setattr(FormulationSolver, "solve", worsening)
    model = dcsvm.train(*rough_rows(), **ROUGH)
    assert len(calls) >= 3 and min(violations) < violations[-2]
    assert model.report.violation == pytest.approx(min(violations), rel=0.01)
    assert not model.report.converged


@pytest.mark.filterwarnings("ignore:(stopped|not converged)")
def test_a_stop_in_a_solve_that_makes_it_worse_keeps_the_best(violations, monkeypatch, tmp_path):
    solve, calls = FormulationSolver.solve, []

    def worsening(solver, *arguments):
        calls.append(solver)
        if len(calls) < 3:
            return solve(solver, *arguments)
        solver.alpha[:] *= 0.5
        solver.iterate.forget(np.arange(len(solver.alpha)))
        raise _core.Stopped

    monkeypatch.setattr(FormulationSolver, "solve", worsening)
    checkpoint = dcsvm.Checkpoint(tmp_path / "kept")
    stopped = dcsvm.train(*rough_rows(), **ROUGH, checkpoint=checkpoint)
    assert stopped.report.stopped and len(violations) == 2
    assert stopped.report.violation == pytest.approx(min(violations), rel=0.01)
    again = dcsvm.Checkpoint(tmp_path / "kept", resume=True)
    resumed = dcsvm.train(*rough_rows(), **ROUGH, checkpoint=again)
    assert resumed.report.violation == pytest.approx(stopped.report.violation)
