"""What is stated of an answer whose rows are not all checked, against float64 kernel values."""

from dataclasses import replace

import numpy as np
import pytest
from reference import certificate, kernel_values, labelled_rows, objective

import dcsvm
from dcsvm.kernel.kernel_rows import Reach
from dcsvm.problem.dual_problems import c_svc
from dcsvm.problem.formulation import BoxProblem
from dcsvm.solving import solving
from dcsvm.solving.certificate import Checked, Scope, certificate_of_known, check
from dcsvm.solving.iterate import Iterate

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
    assert report.converged and report.n_checked < n
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
    assert (report.n_checked, report.objective_error, report.kernel_error) == (2500, 0.0, 0.0)
    assert report.values["check"] == 2500 * report.n_sv


def test_the_kernel_values_of_every_step_are_counted():
    X, y = labelled_rows(2500, 5, seed=8, noise=0.2)
    report = dcsvm.train(X, y, C=30.0, gamma=1.0, levels=2, branching=2).report
    parts = [report.values[name] for name in ("levels", "refine", "gradient", "conquer")]
    assert all(parts) and sum(parts) == report.kernel_evaluations


@pytest.mark.parametrize("n_sums", [0, 1])
def test_violation_and_gap_hold_for_every_gradient_within_what_is_left_out(n_sums):
    rng = np.random.default_rng(0)
    gradient, alpha = rng.normal(size=(2, 300))
    alpha, sums = np.clip(alpha, -1, 1), np.zeros(300, np.int8) if n_sums else None
    problem = BoxProblem(-gradient, -np.ones(300), np.ones(300), sums, n_sums, unit=0.5)
    known = Iterate.of(alpha)
    known.learn(np.arange(300), gradient)
    plain, stated = (
        certificate_of_known(problem, slice(0, 300), known, neglected, True)
        for neglected in (0.0, 0.3)
    )
    reduced = gradient + (plain.multipliers[0] if n_sums else 0.0)
    worst = replace(problem, linear=-gradient - np.copysign(0.3, reduced))
    violation, gap = certificate(np.zeros((300, 300)), worst, alpha)
    assert stated.violation == pytest.approx(violation / 0.5)
    assert plain.gap + 10 < gap <= stated.gap


def test_what_drawn_rows_tell_of_the_others_is_added_to_the_objective():
    rng = np.random.default_rng(0)
    sign, n = np.where(rng.random(6000) < 0.5, -1.0, 1.0), 6000
    problem, alpha = c_svc(sign, 1.0), sign * (rng.random(n) < 0.5)
    exact, known = rng.normal(size=n), Iterate.of(alpha)

    def checked(between):
        known.learn(np.arange(n), exact - 0.01 * alpha)
        scope = Scope(n, 1, True, False, 0.0, Reach(0.0, between), tolerance=1e9, seed=0)
        gradients = lambda some: [(some, exact[some])]  # noqa: E731
        return check(problem, [slice(0, n)], known, Checked.nothing(n), gradients, scope)[0]

    found, without = checked(1e-3), checked(0.0)
    assert found.n_checked < n / 2 and found.kernel_error == pytest.approx(0.01)
    assert found.objective == pytest.approx(0.5 * alpha @ (exact - sign), abs=1e-9)
    more = 1e-3 * np.abs(alpha).sum()  # kernel values between groups are in no gradient
    assert found.violation - without.violation == pytest.approx(more)
    assert found.gap - without.gap == pytest.approx(more * n)


def test_every_check_draws_other_rows(wavy, monkeypatch):
    seeds = []

    def noted(*arguments):
        seeds.append(arguments[-1].seed)
        return check(*arguments)

    monkeypatch.setattr(solving, "check", noted)
    monkeypatch.setattr(solving.Solving, "is_reached", lambda *_: len(seeds) == 3)
    dcsvm.train(*wavy, gamma=2.0, seed=5)
    assert seeds == [5, 6, 7]
