"""Test folds with a warm start from a smaller C: the start, its gradient, and cold starts."""

from dataclasses import replace

import numpy as np
import pytest
from reference import certificate, kernel_values

from dcsvm.data.rows import Rows
from dcsvm.problem.options import TrainOptions
from dcsvm.training.engine import prepare_rows
from dcsvm.training.held_out import folds_of, formulation_of_folds, held_out_values
from dcsvm.training.run import Run, improve
from dcsvm.training.warm_start import PathWarmStart

OPTIONS = {"gamma": 0.05, "threads": 1, "cache_mb": 50, "tolerance": 1e-4}
KERNEL = "rbf", 0.05, 0.0, 3
TYPES = {
    "c_svc": {},
    "bias": {"bias": True},
    "class weights": {"class_weight": {1.0: 3.0}},
    "epsilon_svr": {"svm_type": "epsilon_svr", "epsilon": 0.01},
    "nu_svr": {"svm_type": "nu_svr", "nu": 0.9},
}


def noisy(n=400, repeats=50, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.random((n, 3)).astype(np.float32)
    y = np.floor(X[:, 0] + X[:, 1] + 0.8 * rng.standard_normal(n)) % 3
    again = rng.integers(0, n, repeats)
    return np.concatenate([X, X[again]]), np.concatenate([y, y[again]])


def run_of(X, y, C, some, **how):
    prepared = prepare_rows(Rows.from_array(X), y, TrainOptions(C=C, **OPTIONS | how))
    folds = folds_of(prepared, 4)
    return Run(prepared, formulation=formulation_of_folds(prepared, folds, some)), folds


def held(run, folds, some, known=None):
    return np.concatenate([values for _, values in held_out_values(run.solver, folds, some, known)])


def solved(X, y, C, some, **how):
    smaller = PathWarmStart()
    run, folds = run_of(X, y, C, some, **how)
    known = smaller.begin(run.solver, some)
    improve(run)
    held(run, folds, some, known)
    smaller.keep(run.solver, some, known)
    return smaller


@pytest.mark.parametrize("name", TYPES)
@pytest.mark.parametrize("some, smallest", [([0], 0.01), ([2, 1], 0.01), ([3], 0.0004)])
def test_a_run_goes_on_from_a_smaller_C(name, some, smallest, monkeypatch):
    monkeypatch.setattr("dcsvm.training.warm_start.FREE", 0.0)
    X, y = noisy()
    smaller = solved(X, y, smallest, some, **TYPES[name])
    for k, one in smaller.of_fold.items():
        smaller.of_fold[k] = replace(one, neglected=1e-9 * (k + 1))
    run, folds = run_of(X, y, 0.02, some, **TYPES[name])
    memory = run.solver.memory_bytes
    known = smaller.begin(run.solver, some)
    assert run.solver.memory_bytes == memory - smaller.nbytes
    left_out = 1e-9 * (max(some) + 1) * 0.02 / smallest
    assert run.solver.is_near and run.state.neglected == pytest.approx(left_out)
    problem = run.solver.problem
    assert np.all((run.solver.alpha >= problem.lower) & (run.solver.alpha <= problem.upper))
    for part in run.solver.formulation.parts():
        own = problem.part(part)
        Z = run.solver.data.rows.take(own.rows).dense
        K = kernel_values(KERNEL, Z, Z)
        gradient = K @ run.solver.alpha[part] - own.linear
        scale = np.abs(run.solver.alpha[part]).sum()
        np.testing.assert_allclose(run.solver.gradient[part], gradient, atol=1e-6 * scale)
    improve(run)
    assert run.state.converged.all()
    np.testing.assert_allclose(
        held(run, folds, some, known), held(run, folds, some), rtol=1e-5, atol=1e-5
    )
    assert np.array_equal(
        known[some[0]][0], run.solver.alpha[run.solver.formulation.variables_of_fold(0)]
    )
    cold, _ = run_of(X, y, 0.02, some, **TYPES[name])
    improve(cold)
    assert run.state.certificate.objective == pytest.approx(
        cold.state.certificate.objective, rel=1e-5
    )
    for part in run.solver.formulation.parts():
        own = problem.part(part)
        Z = run.solver.data.rows.take(own.rows).dense
        K = kernel_values(KERNEL, Z, Z)
        assert (
            certificate(K, own, run.solver.alpha[part])[0]
            <= 1.01e-4 * run.state.certificate.violation_scale
        )


def test_only_solutions_of_the_same_folds_and_no_larger_C_are_near():
    X, y = noisy()
    smaller = solved(X, y, 0.01, [0, 1])
    cases = (0.02, [1], True), (0.02, [1, 2], False), (0.01, [1], True), (0.005, [1], False)
    for C, some, is_near in cases:
        run, _ = run_of(X, y, C, some)
        assert len(smaller.begin(run.solver, some)) == (C >= 0.01)
        assert run.solver.is_near == is_near


@pytest.mark.parametrize("bias", [False, True])
def test_where_few_are_bounded_a_run_goes_on_as_it_was(bias):
    X, y = noisy(repeats=0)
    how = {"gamma": 1000.0, "bias": bias}
    smaller = solved(X, y, 100.0, [0], **how)
    smaller.of_fold[0] = replace(smaller.of_fold[0], neglected=1e-9)
    run, folds = run_of(X, y, 400.0, [0], **how)
    known = smaller.begin(run.solver, [0])
    assert run.solver.is_near and np.array_equal(run.solver.alpha, smaller.of_fold[0].alpha)
    assert run.state.neglected == 1e-9
    improve(run)
    smaller.keep(run.solver, [0], known)
    assert smaller.of_fold[0].neglected == run.state.neglected >= 1e-9
    assert run.state.converged.all()
    np.testing.assert_allclose(held(run, folds, [0], known), held(run, folds, [0]), atol=1e-4)


@pytest.mark.parametrize("how", [{"gamma": 10.0}, {"svm_type": "nu_svr", "gamma": 1000.0}])
def test_a_solution_with_free_and_bounded_vectors_is_far(how):
    X, y = noisy()
    smaller = solved(X, y, 10.0, [0], **how)
    run, folds = run_of(X, y, 40.0, [0], **how)
    known = smaller.begin(run.solver, [0])
    assert not run.solver.is_near
    improve(run)
    np.testing.assert_allclose(
        held(run, folds, [0], known), held(run, folds, [0]), rtol=1e-4, atol=1e-4
    )


def test_what_does_not_fit_into_the_memory_is_not_kept():
    X, y = noisy()
    run, folds = run_of(X, y, 0.01, [0])
    improve(run)
    tight = replace(run.prepared.memory, budget=run.prepared.memory.matrices)
    run.solver.prepared = replace(run.prepared, memory=tight)
    smaller, known = PathWarmStart(), {}
    held(run, folds, [0], known)
    smaller.keep(run.solver, [0], known)
    assert not smaller.of_fold


@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("copies", [(1, 1), (3, 1), (2, 2)])
def test_equal_rows_of_two_classes_go_to_the_new_bound_together(bias, n_classes, copies):
    X, y = noisy(repeats=0)
    y = y % n_classes
    n_again = np.repeat(np.arange(60), copies[1])
    X = np.concatenate([np.repeat(X[:60], copies[0], axis=0), X[60:], X[n_again]])
    y = np.concatenate([np.repeat(y[:60], copies[0]), y[60:], (y[n_again] + 1) % n_classes])
    how = {"gamma": 1000.0, "bias": bias}
    smaller = solved(X, y, 100.0, [0], **how)
    run, folds = run_of(X, y, 400.0, [0], **how)
    was = smaller.of_fold[0].alpha
    known = smaller.begin(run.solver, [0])
    assert run.solver.is_near
    problem = run.solver.problem
    assert np.all((run.solver.alpha >= problem.lower) & (run.solver.alpha <= problem.upper))
    at_bound = (run.solver.alpha == problem.lower) | (run.solver.alpha == problem.upper)
    assert np.count_nonzero(at_bound & (run.solver.alpha != 0)) >= 30
    for part in run.solver.formulation.parts():
        own = problem.part(part)
        assert run.solver.alpha[part].sum() == pytest.approx(was[part].sum(), abs=1e-6)
        Z = run.solver.data.rows.take(own.rows).dense
        gradient = kernel_values(("rbf", 1000.0, 0, 3), Z, Z) @ run.solver.alpha[part] - own.linear
        np.testing.assert_allclose(run.solver.gradient[part], gradient, atol=1e-3)
    improve(run)
    assert run.state.converged.all()
    np.testing.assert_allclose(held(run, folds, [0], known), held(run, folds, [0]), atol=1e-3)
