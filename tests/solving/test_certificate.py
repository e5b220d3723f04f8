"""What is stated of an answer whose rows are not all checked, against float64 kernel values."""

import numpy as np
import pytest
from reference import certificate, kernel_values, labelled_rows, objective

import dcsvm
from dcsvm.problem.dual_problems import c_svc

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
    assert abs(report.objective - exact) <= 1.5 * report.objective_error + 1e-9 * abs(exact)
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
