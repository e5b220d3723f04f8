"""Test many classes of few rows: thousands of pairs, each with more overhead than work."""

import numpy as np
from scipy.spatial.distance import cdist

import dcsvm
from dcsvm import _core
from dcsvm.data.rows import Rows
from dcsvm.kernel.kernel_rows import KernelRows
from dcsvm.problem.formulation import c_svc_pairs, in_folds
from dcsvm.problem.options import TrainOptions
from dcsvm.training.engine import prepare_rows
from dcsvm.training.solver import FormulationSolver


def rows_of_classes(n_rows, n_classes):
    rng = np.random.default_rng(0)
    y = np.arange(n_rows) % n_classes
    return rng.normal(0, 2, (n_classes, 5))[y] + rng.normal(0, 1, (n_rows, 5)), y


def test_kernel_values_of_many_pairs_are_computed_together(monkeypatch):
    calls, product = [], KernelRows.product

    def counted(self, *args, **kwargs):
        calls.append(1)
        return product(self, *args, **kwargs)

    monkeypatch.setattr(KernelRows, "product", counted)
    X, y = rows_of_classes(120, 30)
    model = dcsvm.train(X, y, C=1.0, gamma=0.1)
    assert model.report.converged
    assert len(calls) < 20


def test_the_certificates_of_many_pairs_are_those_of_their_solutions():
    X, y = rows_of_classes(120, 30)
    model = dcsvm.train(X, y, C=1.0, gamma=0.1)
    exact, K = model.exact, np.exp(-0.1 * cdist(X, X, "sqeuclidean"))
    own = y[exact.row_numbers]
    problems = iter(model.report.problems)
    for first in range(30):
        for second in range(first + 1, 30):
            alpha = np.zeros(len(X))
            alpha[exact.row_numbers[own == first]] = exact.dual_coef[second - 1, own == first]
            alpha[exact.row_numbers[own == second]] = exact.dual_coef[first, own == second]
            objective = 0.5 * alpha @ K @ alpha - np.abs(alpha).sum()
            assert np.isclose(next(problems).objective, objective, rtol=1e-5)


def test_variables_of_pairs_are_the_rows_of_both_classes_in_order():
    classes = np.random.default_rng(1).choice([0, 1, 3, 4], 40)
    found = c_svc_pairs(classes, np.ones(40), np.ones(5), bias=True)
    pairs = [(a, b) for a in range(5) for b in range(a + 1, 5)]
    for part, (first, second) in zip(found.parts(), pairs, strict=True):
        own = np.flatnonzero(np.isin(classes, [first, second]))
        own = [] if 2 in (first, second) else own
        assert np.array_equal(found.problem.rows[part], own)
        signs = np.sign(found.problem.lower + found.problem.upper)[part]
        assert np.array_equal(signs, np.where(classes[own] == first, 1, -1) if len(own) else [])


def test_all_pairs_are_certified_and_reported_by_a_few_calls(monkeypatch):
    calls, optimality = [], _core.optimality

    def counted(*args):
        calls.append(1)
        return optimality(*args)

    monkeypatch.setattr(_core, "optimality", counted)
    X, y = rows_of_classes(120, 30)
    report = dcsvm.train(X, y, C=1.0, gamma=0.1).report
    assert report.converged and len(report.problems) == 435
    assert len(calls) < 20


def test_iterations_are_counted_for_the_problems_that_were_solved():
    X, y = rows_of_classes(120, 3)
    options = TrainOptions(C=1.0, gamma=0.1, threads=1)
    prepared = prepare_rows(Rows.from_array(X), y.astype(float), options)
    both = in_folds(prepared.task.formulate, prepared.targets, [prepared.sample_weight] * 2)
    solver = FormulationSolver(prepared, formulation=both)
    members = both.variables_of_fold(1)
    solved = solver.solve(members, solver.components.sizes(members), 1e-3)
    found = solver.state.n_iterations
    assert not found[:3].any() and found[3:].all()
    assert found.sum() == solved["iterations"].sum()


def test_reports_of_problems_are_a_sequence_of_plain_values():
    X, y = rows_of_classes(60, 4)
    problems = dcsvm.train(X, y, C=1.0, gamma=0.1).report.problems
    assert len(problems) == 6
    assert [one.rho for one in problems[1:3]] == [problems[1].rho, problems[2].rho]
    assert problems[-1].iterations > 0 and type(problems[-1].n_sv) is int
    assert problems[0].parameter[0] == "nu"
