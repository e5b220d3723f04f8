"""Test the truncation error: every step of a solver keeps a bound on the omitted kernel values'
share of a gradient, and certificates include the bound."""

from dataclasses import replace

import numpy as np
import pytest
from reference import kernel_values

from dcsvm.data.rows import Rows
from dcsvm.kernel.distances import Cutoff
from dcsvm.problem.options import TrainOptions
from dcsvm.training import engine
from dcsvm.training import solver as chunking
from dcsvm.training.conquer import conquer, verify
from dcsvm.training.engine import prepare_rows
from dcsvm.training.fit import certificate_of_stopped
from dcsvm.training.solver import FormulationSolver

GAMMA = 300.0


@pytest.fixture
def solver():
    """Make a solver on 3,000 rows along a line that omits kernel values below 0.001: the error is
    larger than rounding."""
    rng = np.random.default_rng(0)
    X = np.sort(rng.uniform(-1, 1, (3000, 1)), axis=0).astype(np.float32)
    y = np.where(np.sin(9 * X[:, 0]) > rng.normal(0, 0.5, 3000), 1.0, -1.0)
    prepared = prepare_rows(Rows.from_array(X), y, TrainOptions(C=1.0, gamma=GAMMA, threads=1))
    cutoff = Cutoff.of(prepared.data.kernel, 1e-3)
    return FormulationSolver(
        replace(prepared, row_components=replace(prepared.row_components, within=cutoff))
    )


def error(solver):
    """Return the largest error of the gradient, from float64 kernel values."""
    X = solver.data.rows.dense
    exact = kernel_values(("rbf", GAMMA, 0, 3), X, X) @ solver.alpha - solver.problem.linear
    return np.abs(solver.gradient - exact).max()


def solve(solver):
    everything = np.arange(solver.problem.size, dtype=np.int32)
    solver.solve(everything, solver.components.sizes(everything), 1e-2)


def test_the_solver_bounds_what_it_leaves_out(solver):
    solve(solver)
    assert 1e-4 < error(solver) <= solver.state.neglected


def test_a_gradient_that_is_extended_is_bounded(solver):
    solver.iterate.alpha[:] = np.random.default_rng(1).uniform(
        solver.problem.lower, solver.problem.upper
    )
    solver.extend_gradient()
    assert 1e-4 < error(solver) <= solver.state.neglected


@pytest.mark.parametrize("first", [0.0, 5.0])
def test_every_round_of_an_active_set_adds_to_the_bound(solver, monkeypatch, first):
    monkeypatch.setattr(chunking, "LARGE", 1000)
    monkeypatch.setattr(engine.LocalEngine, "is_out_of_core", True)
    together, told = engine.LocalEngine.solve_together, []

    def noted(self, parts, iterate, settings, *rest):
        told.append(settings.neglected)
        return together(self, parts, iterate, settings, *rest)

    monkeypatch.setattr(engine.LocalEngine, "solve_together", noted)
    solver.extend_gradient()
    solver.state.neglected = first
    solve(solver)
    assert solver.engine.n_rounds > 1 and error(solver) > 1e-4
    assert told[0] == first and told == sorted(set(told))
    steps = np.abs(solver.alpha).sum()  # at most the sum of |steps| of all rounds
    assert first + max(error(solver), solver.cutoff.value * steps) <= solver.state.neglected


def test_a_gradient_of_which_too_much_was_left_out_is_computed_anew(solver):
    solver.extend_gradient()
    solver.iterate.gradient += np.random.default_rng(1).uniform(-0.5, 0.5, solver.problem.size)
    solver.state.neglected = 0.5
    solve(solver)
    assert error(solver) < 0.05


def test_a_gradient_of_clusters_is_not_that_of_the_whole(solver):
    solver.iterate.learn(np.arange(solver.problem.size), solver.problem.linear)
    solver.state.is_global = False
    solved, known = solver.solve, []
    solver.solve = lambda *what: (known.append(solver.iterate.is_known.any()), solved(*what))[1]
    conquer(solver)
    assert not known[0] and error(solver) < 0.05


def test_what_is_left_out_makes_variables_doubtful_and_a_stopped_run_worse(solver):
    solver.extend_gradient()
    violation = certificate_of_stopped(solver).violation
    solver.state.neglected += 0.25
    assert certificate_of_stopped(solver).violation == pytest.approx(violation + 0.25)
    solver.state.neglected = 1e9
    assert verify(solver, [0], 1e9)[0].n_checked == solver.problem.size
