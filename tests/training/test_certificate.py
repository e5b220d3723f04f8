"""Test the certificates of partly checked solutions against float64 kernel values."""

from dataclasses import replace

import numpy as np
import pytest
from reference import c_svc, certificate, kernel_values, labelled_rows, objective

import dcsvm
from dcsvm.kernel.distances import Cutoff
from dcsvm.problem.formulation import BoxQP
from dcsvm.training import conquer
from dcsvm.training.certificate import (
    Certificate,
    CheckSettings,
    CheckState,
    Iterate,
    Subproblems,
    certificate_of_known,
    verify_optimality,
)

PROBLEMS = {
    "many bounded": dict(C=30.0, gamma=0.05),
    "many free": dict(C=30.0, gamma=8.0),
    "nearly flat": dict(C=300.0, gamma=2.0**-10),
    "a bias": dict(C=10.0, gamma=1.0, bias=True),
}


@pytest.mark.parametrize("options", PROBLEMS.values(), ids=PROBLEMS)
def test_what_is_stated_holds_for_all_rows(options):
    X, y = labelled_rows(2500, 5, seed=8, noise=0.2)
    model = dcsvm.train(X, y, threads=2, **options)
    report, n = model.report, len(X)
    assert report.converged and report.n_variables_checked < n
    alpha = np.zeros(n)
    alpha[model.exact.row_numbers] = model.exact.dual_coef[0]
    K = kernel_values(("rbf", options["gamma"], 0, 0), X, X)
    problem = c_svc(y, options["C"])
    exact = objective(K, problem.linear, alpha)
    assert abs(report.objective - exact) <= report.objective_error + 1e-9 * abs(exact)
    assert report.objective_error <= 2e-6 * abs(exact)
    if not options.get("bias"):
        violation, gap = certificate(K, problem, alpha)
        assert -1e-9 <= report.violation - violation <= 4.1 * report.kernel_error + 1e-9
        assert gap * (1 - 1e-6) <= report.duality_gap


def test_every_row_is_checked_where_that_is_asked_for():
    X, y = labelled_rows(2500, 5, seed=8, noise=0.2)
    report = dcsvm.train(X, y, C=30.0, gamma=0.05, certify=True).report
    assert (report.n_variables_checked, report.objective_error, report.kernel_error) == (
        2500,
        0.0,
        0.0,
    )
    assert report.evaluations_by_phase["check"] == 2500 * report.n_sv


def test_the_kernel_values_of_every_step_are_counted():
    X, y = labelled_rows(2500, 5, seed=8, noise=0.2)
    report = dcsvm.train(X, y, C=30.0, gamma=1.0, levels=2, branching=2).report
    parts = [
        report.evaluations_by_phase[name] for name in ("levels", "refine", "gradient", "conquer")
    ]
    assert all(parts) and sum(parts) == report.kernel_evaluations


def whole(problem):
    return Subproblems(
        problem, np.array([0, problem.size]), np.arange(problem.size, dtype=np.int32)
    )


@pytest.mark.parametrize("n_constraints", [0, 1])
def test_violation_and_gap_hold_for_every_gradient_within_what_is_left_out(n_constraints):
    rng = np.random.default_rng(0)
    gradient, alpha = rng.normal(size=(2, 300))
    alpha, sums = np.clip(alpha, -1, 1), np.zeros(300, np.int8) if n_constraints else None
    problem = BoxQP(
        -gradient, -np.ones(300), np.ones(300), sums, n_constraints, violation_scale=0.5
    )
    known = Iterate.of(alpha)
    known.learn(np.arange(300), gradient)
    plain, stated = (
        certificate_of_known(whole(problem), known, np.array([neglected]), True)
        for neglected in (0.0, 0.3)
    )
    reduced = gradient + plain.multipliers.sum()
    worst = replace(problem, linear=-gradient - np.copysign(0.3, reduced))
    violation, gap = certificate(np.zeros((300, 300)), worst, alpha)
    assert stated.violation == pytest.approx(violation / 0.5)
    assert plain.gap + 10 < gap <= stated.gap
    known.forget(np.arange(200, 300))
    some = certificate_of_known(whole(problem), known, np.zeros(1), True)
    assert (some.objective, some.gap, some.n_checked) == (None, None, 200)


def checked(problem, alpha, gradient, difference, **changes):
    """Return (certificate, mask of checked entries) for a gradient with these float64 errors."""
    n, known = len(alpha), Iterate.of(alpha)
    known.learn(np.arange(n), gradient.copy())
    scope = CheckSettings(n, 1, True, False, 0.0, Cutoff(), tolerance=1e9, seed=0)
    exact, state = gradient + difference, CheckState.nothing(n)
    gradients = lambda some, _: [(some, exact[some])]  # noqa: E731
    found = verify_optimality(whole(problem), known, state, gradients, replace(scope, **changes))
    return found, state.is_exact == 1


@pytest.mark.parametrize("mean", [0.02, 0.0])
def test_what_drawn_rows_tell_of_the_others_is_in_the_objective(mean):
    rng = np.random.default_rng(0)
    n, sign = 6000, np.where(rng.random(6000) < 0.5, -1.0, 1.0)
    alpha = sign * rng.choice([0.0, 0.5, 1.0], n)
    problem = replace(c_svc(sign, 1.0), linear=1e5 * sign)
    gradient, difference = rng.normal(size=n), rng.normal(mean, 0.01, n) * np.sign(alpha)
    found, is_exact = checked(problem, alpha, gradient, difference)
    drawn = (np.random.default_rng(0).permutation(n) < 500) & (alpha != 0)
    weight, seen = np.abs(alpha), alpha * difference
    ratio, left = seen[drawn].sum() / weight[drawn].sum(), weight[~is_exact].sum()
    spread = np.linalg.norm(seen[drawn] - ratio * weight[drawn]) / weight[drawn].sum()
    known = 0.5 * alpha @ (gradient + np.where(is_exact, difference, 0) - problem.linear)
    is_shifted = mean > 0
    assert found.objective == pytest.approx(known + is_shifted * 0.5 * ratio * left, rel=1e-13)
    error = spread * left + (not is_shifted) * 0.5 * abs(ratio) * left
    assert found.objective_error == pytest.approx(error)
    exact = 0.5 * alpha @ (gradient + difference - problem.linear)
    assert 0 < abs(found.objective - exact) <= error


def test_more_are_drawn_until_the_objective_is_known():
    rng = np.random.default_rng(0)
    sign = np.where(rng.random(6000) < 0.5, -1.0, 1.0)
    problem, difference = replace(c_svc(sign, 1.0), linear=200 * sign), rng.normal(0, 0.01, 6000)
    found, is_exact = checked(problem, sign, rng.normal(size=6000), difference)
    assert found.objective_error <= 2e-6 * abs(found.objective) and not is_exact.all()


@pytest.mark.parametrize("n_constraints", [0, 1])
def test_what_could_violate_is_checked(n_constraints):
    """With an equality constraint a violation is a difference of two: half a tolerance for each."""
    rng, n = np.random.default_rng(0), 6000
    gradient = rng.uniform(-0.45, 0.45, n)
    alpha = np.where(rng.random(n) < 0.5, 0.0, 1.0)
    gradient[alpha == 0] = np.abs(gradient[alpha == 0])
    gradient += 0.7 * n_constraints
    sums = np.zeros(n, np.int8) if n_constraints else None
    problem = BoxQP(np.zeros(n), np.zeros(n), np.full(n, 2.0), sums, n_constraints)
    found, is_exact = checked(problem, alpha, gradient, 0.0, tolerance=1.0, neglected=0.3)
    reduced = gradient + found.multipliers.sum()
    at_bound, most = alpha == 0, 0.5 if n_constraints else 1.0
    assert is_exact[~at_bound & (np.abs(reduced) > most - 0.29)].all()
    assert is_exact[at_bound & (np.abs(reduced) < 0.29)].all() and not is_exact.all()


def test_free_variables_that_are_not_checked_count_by_the_error_seen():
    n, alpha = 6000, np.full(6000, 0.5)
    problem = BoxQP(np.zeros(n), np.zeros(n), np.ones(n))
    found, is_exact = checked(problem, alpha, np.full(n, 0.5), 0.01)
    assert not is_exact.all() and found.kernel_error == pytest.approx(0.01)
    assert found.violation == pytest.approx(0.5 + 0.04)
    assert 0.51 * 0.5 * n <= found.gap <= 0.52 * 0.5 * n
    assert checked(problem, alpha, np.zeros(n), 0.01)[1].all()  # they make up the whole gap


def test_values_between_groups_are_in_no_gradient_but_in_violation_and_gap():
    alpha, problem = np.ones(700), BoxQP(np.zeros(700), np.zeros(700), np.full(700, 3.0))
    gradient = np.zeros(700)
    without, found = (
        checked(problem, alpha, gradient, 0.0, between=Cutoff(0.0, value))[0] for value in (0, 1e-4)
    )
    assert found.violation - without.violation == pytest.approx(0.07)
    assert found.gap - without.gap == pytest.approx(0.07 * 2 * 700)


def test_several_problems_are_as_far_from_optimal_as_the_worst():
    parts = [np.array(one) for one in ([-1.0, -2.0], [0.2, 0.1], [0.5, 0.25], [0.1, 0.2], [3, 4])]
    whole = Certificate(*parts, np.array([0.01, 0.02]), np.ones(2), np.zeros((2, 0)))
    found = (
        whole.objective,
        whole.violation,
        whole.gap,
        whole.kernel_error,
        whole.n_checked,
    )
    assert found == (-3.0, 0.2, 0.75, 0.2, 7) and whole.objective_error == pytest.approx(0.03)
    joined = Certificate.of_all([whole.take(slice(0, 1)), whole.take(slice(1, 2))])
    assert all(np.array_equal(getattr(joined, name), one) for name, one in vars(whole).items())


def test_every_check_draws_other_rows(wavy, monkeypatch):
    seeds = []

    def noted(*arguments):
        seeds.append(arguments[-1].seed)
        return verify_optimality(*arguments)

    monkeypatch.setattr(conquer, "verify_optimality", noted)
    monkeypatch.setattr(conquer, "is_reached", lambda *_: len(seeds) == 3)
    dcsvm.train(*wavy, gamma=2.0, seed=5)
    assert seeds == [5, 6, 7]
