"""Test _core.solve_clusters against a float64 reference; certificates are recomputed."""

import time
from dataclasses import replace

import numpy as np
import pytest
from reference import (
    c_svc,
    certificate,
    dense_rows,
    grid_rows,
    kernel_values,
    labelled_rows,
    objective,
    points_of,
    prepared,
    solve_reference,
    with_constraint,
)

from dcsvm import _core
from dcsvm.problem.formulation import BoxQP
from dcsvm.training.certificate import (
    AT_ALPHA,
    AT_BASE,
    NOTHING,
    Iterate,
    SolverSettings,
    Subproblems,
)
from dcsvm.training.state import LIMITS, SolveControl

CONVEX = [
    ("linear", 0.0, 0.0, 0),
    ("polynomial", 0.5, 1.0, 3),
    ("rbf", 0.05, 0.0, 0),
    ("rbf", 20.0, 0.0, 0),
]
CONVEX_IDS = ("linear", "polynomial", "rbf-smooth", "rbf-sharp")
RBF = ("rbf", 2.0, 0.0, 0)


class Progress:
    """Progress callback that stops or raises at a given call."""

    def __init__(self, stop_at=None, raise_at=None):
        self.error, self.calls, self.stop = None, [], _core.Stop()
        self.stop_at, self.raise_at = stop_at, raise_at

    def __call__(self, *event):
        self.calls.append(event)
        if len(self.calls) == self.raise_at:
            raise RuntimeError("raised inside progress")
        if len(self.calls) == self.stop_at:
            self.stop.request()
        return False


def solve_core(
    setup, points, problem, iterate, *, clusters=None, tolerance=1e-6, cache_bytes=10**8, threads=1,
    progress=None, stop=None, float64=False, **limits,
):  # fmt: skip
    """Solve in place; return reports. `clusters` lists variables, default all in one."""
    clusters = [np.arange(problem.size)] if clusters is None else clusters
    sizes, members = np.array([*map(len, clusters)]), np.concatenate(clusters).astype(np.int32)
    return _core.solve_clusters(
        setup, points, Subproblems.of_sizes(problem, members, sizes), iterate,
        SolverSettings(tolerance, limits, cache_bytes, threads, None, float64=float64),
        SolveControl(_core.SolveState(sizes), stop, progress),
    )  # fmt: skip


def solve(X, kernel, problem, alpha=None, *, threads=1, gradient=None, progress=None, form=None,
          **how):  # fmt: skip
    """Solve as solve_core; return (alpha, gradient, reports)."""
    points = _core.Points(dense_rows(X), threads) if form is None else points_of(X, form, threads)
    setup, points = prepared(kernel, points, form)
    alpha = np.zeros(problem.size) if alpha is None else alpha.copy()
    given = gradient is not None
    gradient = gradient.copy() if given else np.full(problem.size, np.nan)
    known = np.full(problem.size, AT_ALPHA if given else NOTHING)
    iterate = Iterate(alpha, gradient, alpha.copy(), known)
    stop = None if progress is None else progress.stop
    reports = solve_core(
        setup, points, problem, iterate, threads=threads, progress=progress, stop=stop, **how
    )
    return alpha, gradient, reports


def core_kernel(X, kernel, form=None):
    """Return the kernel values of the core in float64: float32 ones, except for the linear
    kernel: products of float64 vectors."""
    if kernel[0] == "linear":
        return kernel_values(kernel, X, X)
    setup, points = prepared(kernel, points_of(X, form or "product"), form)
    return _core.kernel_matrix(setup, points, None, points, None, 1).astype(np.float64)


def random_start(problem, seed=0, at_bounds=0.5):
    """Return a feasible alpha with some entries exactly at their bounds."""
    rng = np.random.default_rng(seed)
    t = rng.random(problem.size)
    alpha = problem.lower + t * (problem.upper - problem.lower)
    choice = rng.random(problem.size)
    alpha[choice < at_bounds / 2] = problem.lower[choice < at_bounds / 2]
    high = (choice >= at_bounds / 2) & (choice < at_bounds)
    alpha[high] = problem.upper[high]
    return alpha


def feasible_start(problem, sums=0.0, seed=0):
    """Return a feasible alpha for one equality constraint over all variables."""
    alpha = random_start(problem, seed)
    for _ in range(200):
        excess = alpha.sum() - sums
        if abs(excess) < 1e-12:
            break
        room = alpha - problem.lower if excess > 0 else problem.upper - alpha
        alpha -= np.sign(excess) * room * min(1.0, abs(excess) / room.sum())
    return np.clip(alpha, problem.lower, problem.upper)


def check_solution(X, kernel, problem, alpha, gradient, report, tolerance=1e-6, form=None):
    """Recompute bounds, gradient, certificate and objective of a converged report."""
    K = core_kernel(X, kernel, form)
    if problem.row is not None:
        K = K[np.ix_(problem.row, problem.row)]
    size = np.abs(K) @ np.abs(alpha) + np.abs(problem.linear)
    assert np.all(alpha >= problem.lower)
    assert np.all(alpha <= problem.upper)
    assert np.all(np.abs(gradient - (K @ alpha - problem.linear)) <= 1e-12 * size.max())
    violation, gap = certificate(K, problem, alpha)
    slack = 1e-11 * size.max()
    assert abs(report["violation"] - violation) <= slack
    assert abs(report["gap"] - gap) <= slack * (1 + (problem.upper - problem.lower).sum())
    assert report["gap"] >= 0
    f = objective(K, problem.linear, alpha)
    assert abs(report["objective"] - f) <= 1e-10 * (1 + np.abs(alpha) @ size)
    assert report["converged"] == (report["violation"] <= tolerance)
    assert report["converged"]
    return K, f, gap


def check_optimal(K, problem, f, gap, sums=None, most=1e-6):
    best, bound = solve_reference(K, problem, sums)
    at_best = objective(K, problem.linear, best)
    slack = 1e-9 * (1 + abs(at_best))
    assert at_best - bound <= slack, "the reference itself is not solved"
    assert f >= bound - slack
    assert f - at_best <= gap + slack
    assert f - at_best <= most * (1 + abs(at_best))


# --------------------------------------------------------------------------------- the reference


# ------------------------------------------------------------------------- the optimum is reached


@pytest.mark.parametrize("kernel", CONVEX, ids=CONVEX_IDS)
@pytest.mark.parametrize("C", [0.1, 1.0, 32.0, 1000.0])
@pytest.mark.parametrize("n_samples", [2, 33, 150])
def test_a_solution_is_the_optimum_of_the_reference(n_samples, C, kernel):
    X, y = labelled_rows(n_samples, 4, seed=2)
    problem = c_svc(y, C)
    alpha, gradient, (report,) = solve(X, kernel, problem)
    K, f, gap = check_solution(X, kernel, problem, alpha, gradient, report)
    check_optimal(K, problem, f, gap)


@pytest.mark.parametrize("kernel", CONVEX, ids=CONVEX_IDS)
@pytest.mark.parametrize("C", [0.1, 32.0])
@pytest.mark.parametrize("seed", [0, 1])
def test_any_feasible_start_leads_to_the_same_objective(seed, C, kernel):
    X, y = labelled_rows(150, 4, seed=4)
    problem = c_svc(y, C)
    start = random_start(problem, seed)
    K = core_kernel(X, kernel)
    alpha, gradient, (report,) = solve(X, kernel, problem, start)
    K, f, gap = check_solution(X, kernel, problem, alpha, gradient, report)
    assert f <= objective(K, problem.linear, start)
    check_optimal(K, problem, f, gap)


def test_a_given_gradient_is_trusted():
    X, y = labelled_rows(200, 4, seed=5)
    problem = c_svc(y, 1.0)
    start = random_start(problem)
    exact = kernel_values(RBF, X, X) @ start - problem.linear
    alpha, gradient, (report,) = solve(X, RBF, problem, start, gradient=exact)
    assert report["converged"]
    float64 = kernel_values(RBF, X, X) @ alpha - problem.linear
    change = np.abs(alpha - start).sum()
    assert np.abs(gradient - float64).max() <= 2e-7 * change
    again, unchanged, (report,) = solve(X, RBF, problem, alpha, gradient=gradient)
    assert report["iterations"] == 0
    assert again.tobytes() == alpha.tobytes()
    assert unchanged.tobytes() == gradient.tobytes()


def test_an_optimum_is_left_as_it_is():
    X, y = labelled_rows(200, 4, seed=6)
    problem = c_svc(y, 1.0)
    alpha, _, _ = solve(X, RBF, problem, tolerance=1e-8)
    again, _, (report,) = solve(X, RBF, problem, alpha, tolerance=1e-6)
    assert report["converged"]
    assert report["iterations"] == 0
    assert again.tobytes() == alpha.tobytes()


@pytest.mark.parametrize("coef0", [-1.0, 0.0, 1.0])
@pytest.mark.parametrize("gamma", [0.1, 2.0])
def test_the_sigmoid_reaches_a_stationary_point_below_its_start(gamma, coef0):
    X, y = labelled_rows(300, 4, seed=7)
    kernel, problem = ("sigmoid", gamma, coef0, 0), c_svc(y, 10.0)
    K = core_kernel(X, kernel)
    assert np.linalg.eigvalsh(K)[0] < -1e-3
    for start in (np.zeros(300), random_start(problem)):
        alpha, gradient, (report,) = solve(X, kernel, problem, start, tolerance=1e-5)
        _, f, _ = check_solution(X, kernel, problem, alpha, gradient, report, 1e-5)
        assert f <= objective(K, problem.linear, start)
        assert f < 0


@pytest.mark.parametrize("form", ["difference", "product", "sparse"])
def test_every_form_of_rows_has_the_same_optimum(form):
    X, y = labelled_rows(300, 6, seed=8)
    problem = c_svc(y, 4.0)
    alpha, gradient, (report,) = solve(X, RBF, problem, form=form)
    K, f, gap = check_solution(X, RBF, problem, alpha, gradient, report, form=form)
    check_optimal(K, problem, f, gap)


def test_bounds_reached_are_exact():
    X, y = labelled_rows(300, 4, seed=9, noise=0.3)
    problem = c_svc(y, 0.1)
    alpha, _, _ = solve(X, RBF, problem)
    near_zero = np.abs(alpha) < 1e-12
    near_C = np.abs(np.abs(alpha) - 0.1) < 1e-12
    assert np.count_nonzero(near_C) > 100
    assert np.all(alpha[near_zero] == 0)
    assert np.all(np.abs(alpha[near_C]) == 0.1)


def test_bounds_and_linear_terms_may_be_anything():
    rng = np.random.default_rng(10)
    X, _ = labelled_rows(120, 4, seed=10)
    lower = -rng.random(120) * 10
    upper = lower + rng.random(120) * 10
    upper[:10] = lower[:10]  # variables that cannot move
    problem = BoxQP(rng.normal(size=120) * 5, lower, upper)
    alpha, gradient, (report,) = solve(X, RBF, problem, lower.copy())
    K, f, gap = check_solution(X, RBF, problem, alpha, gradient, report)
    assert np.array_equal(alpha[:10], lower[:10])
    moving = np.arange(10, 120)
    rest = BoxQP(
        problem.linear[moving] - K[np.ix_(moving, range(10))] @ alpha[:10], lower[10:], upper[10:]
    )
    best, _ = solve_reference(K[np.ix_(moving, moving)], rest)
    best = np.concatenate((lower[:10], best))
    assert abs(f - objective(K, problem.linear, best)) <= 1e-6 * (1 + abs(f))


# ------------------------------------------------------------------------- equality constraints


@pytest.mark.parametrize("kernel", CONVEX, ids=CONVEX_IDS)
@pytest.mark.parametrize("C", [0.1, 1.0, 32.0])
@pytest.mark.parametrize("total", [0.0, 1.25])
def test_one_sum_is_kept_and_its_optimum_found(total, C, kernel):
    X, y = labelled_rows(100, 4, seed=11)
    problem = with_constraint(c_svc(y, C))
    start = feasible_start(problem, total) if total else np.zeros(100)
    tolerance = 1e-5
    alpha, gradient, (report,) = solve(X, kernel, problem, start, tolerance=tolerance)
    assert abs(alpha.sum() - start.sum()) <= 1e-9 * max(1.0, C)
    K, f, gap = check_solution(X, kernel, problem, alpha, gradient, report, tolerance)
    assert f <= objective(K, problem.linear, start) + 1e-12
    check_optimal(K, problem, f, gap, [start.sum()], 1e-5)


@pytest.mark.parametrize(("C", "sides"), [(1024.0, (-1, 1)), (32768.0, (-1,))])
def test_variables_a_rounding_away_from_their_bound_are_put_there(C, sides):
    """Their moves are below the rounding of the other variables; descent would stop early."""
    X, y = labelled_rows(300, 4, seed=12, noise=0.1)
    problem, kernel = with_constraint(c_svc(y, C)), ("rbf", 0.05, 0.0, 0)
    best, _, _ = solve(X, kernel, problem, tolerance=1e-3)
    start = np.where((best == 0) & np.isin(y, sides), y * 1.4e-17 * C, best)
    alpha, gradient, (report,) = solve(X, kernel, problem, start, tolerance=1e-3)
    check_solution(X, kernel, problem, alpha, gradient, report, 1e-3)
    assert abs(alpha.sum() - start.sum()) <= 1e-12 * C


def test_two_sums_are_kept_and_their_optimum_found():
    X, y = labelled_rows(120, 4, seed=12)
    problem = c_svc(y, 2.0)
    group = np.arange(120) % 2
    problem = BoxQP(problem.linear, problem.lower, problem.upper, group.astype(np.int8), 2)
    start = random_start(problem, 12)
    sums = [start[group == number].sum() for number in range(2)]
    alpha, gradient, (report,) = solve(X, RBF, problem, start, tolerance=1e-5)
    for number in range(2):
        assert abs(alpha[group == number].sum() - sums[number]) <= 1e-9
    K, f, gap = check_solution(X, RBF, problem, alpha, gradient, report, 1e-5)
    check_optimal(K, problem, f, gap, sums, 1e-5)


@pytest.mark.parametrize("n", [120, 1500], ids=["one-working-set", "several"])
def test_a_tolerance_relative_to_the_margin_is_kept(n):
    X, y = labelled_rows(n, 4, seed=12, noise=0.0)
    positive = y > 0
    problem = BoxQP(np.zeros(n), np.where(positive, 0.0, -1.0), np.where(positive, 1.0, 0.0),
                         (~positive).astype(np.int8), 2, divides_by_margin=True)  # fmt: skip
    start = np.where(positive, 0.1 * n / positive.sum(), -0.1 * n / (~positive).sum()) / 2
    kernel = ("rbf", 0.05, 0.0, 0)
    alpha, _, (report,) = solve(X, kernel, problem, start, tolerance=1e-3)
    K = core_kernel(X, kernel)
    gradient, free = K @ alpha, (alpha != 0) & (np.abs(alpha) < 1)
    margin = (gradient[free & positive].mean() - gradient[free & ~positive].mean()) / 2
    assert report["converged"] and margin < 0.2
    violation = certificate(K, problem, alpha)[0]
    assert violation <= 1e-3 * margin * 1.01
    assert report["violation"] == pytest.approx(violation / margin, rel=1e-2)


def test_a_group_of_one_variable_cannot_move():
    X, y = labelled_rows(30, 4, seed=13)
    problem = c_svc(y, 1.0)
    group = np.ones(30, np.int8)
    group[5] = 0
    problem = BoxQP(problem.linear, problem.lower, problem.upper, group, 2)
    start = np.zeros(30)
    start[5] = 0.5 * (problem.lower[5] + problem.upper[5])
    alpha, _, (report,) = solve(X, RBF, problem, start)
    assert report["converged"]
    assert alpha[5] == pytest.approx(start[5], abs=1e-12)


def test_more_variables_than_rows_share_rows():
    X, y = labelled_rows(80, 4, seed=14)
    n, rng = 80, np.random.default_rng(14)
    target = rng.normal(size=n)
    row = np.concatenate((np.arange(n), np.arange(n))).astype(np.int32)
    epsilon, C = 0.1, 2.0
    linear = np.concatenate((target - epsilon, target + epsilon))
    lower = np.concatenate((np.zeros(n), np.full(n, -C)))
    upper = np.concatenate((np.full(n, C), np.zeros(n)))
    for group, sums in ((None, None), (np.zeros(2 * n, np.int8), [0.0])):
        problem = BoxQP(linear, lower, upper, group, 0 if group is None else 1, row)
        alpha, gradient, (report,) = solve(X, RBF, problem, tolerance=1e-5)
        K, f, gap = check_solution(X, RBF, problem, alpha, gradient, report, 1e-5)
        check_optimal(K, problem, f, gap, sums, 1e-5)


# ------------------------------------------------------------------------------- awkward problems


@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize("copies", [2, 5])
def test_duplicate_rows_do_not_disturb(copies, bias):
    X, y = labelled_rows(60, 4, seed=15)
    X, y = np.repeat(X, copies, axis=0), np.repeat(y, copies)
    problem = with_constraint(c_svc(y, 1.0)) if bias else c_svc(y, 1.0)
    alpha, gradient, (report,) = solve(X, RBF, problem, tolerance=1e-5)
    K, f, gap = check_solution(X, RBF, problem, alpha, gradient, report, 1e-5)
    check_optimal(K, problem, f, gap, [0.0] if bias else None, 1e-5)


@pytest.mark.parametrize("bias", [False, True])
def test_rows_with_both_labels_do_not_disturb(bias):
    X, y = labelled_rows(60, 4, seed=16)
    X, y = np.concatenate((X, X)), np.concatenate((y, -y))
    problem = with_constraint(c_svc(y, 1.0)) if bias else c_svc(y, 1.0)
    alpha, gradient, (report,) = solve(X, RBF, problem, tolerance=1e-6)
    K, f, gap = check_solution(X, RBF, problem, alpha, gradient, report)
    # two copies at C cancel in the kernel term: with every alpha at its bound f = -2 n C + 0
    assert f <= -119.99


@pytest.mark.parametrize(
    "kernel",
    [("rbf", 0.0, 0.0, 0), ("linear", 0.0, 0.0, 0), ("polynomial", 0.0, 0.0, 3),
     ("polynomial", 0.0, 1.0, 3), ("sigmoid", 0.0, 0.0, 0), ("sigmoid", 0.0, -1.0, 0)],
)  # fmt: skip
@pytest.mark.parametrize("bias", [False, True])
def test_a_constant_kernel_is_solved(bias, kernel):
    X, y = labelled_rows(90, 4, seed=17)
    if kernel[0] == "linear":
        X = np.ones_like(X) * (kernel[1] + 1)
    problem = with_constraint(c_svc(y, 1.0)) if bias else c_svc(y, 1.0)
    alpha, gradient, (report,) = solve(X, kernel, problem)
    check_solution(X, kernel, problem, alpha, gradient, report)


def test_one_variable_is_solved():
    X = np.array([[0.5]], np.float32)
    alpha, _, (report,) = solve(X, RBF, c_svc(np.ones(1), 0.25))
    assert alpha.tolist() == [0.25]
    assert report["objective"] == 0.5 * 0.25**2 - 0.25


def test_no_clusters_and_empty_clusters_are_nothing():
    X, y = labelled_rows(20, 4, seed=20)
    problem, none = c_svc(y, 1.0), np.empty(0, np.int32)
    alpha, _, reports = solve(X, RBF, problem, clusters=[none])
    assert len(reports) == 1
    everything = np.arange(20)
    alpha, _, reports = solve(X, RBF, problem, clusters=[none, everything, none])
    assert len(reports) == 3
    assert np.array_equal(alpha, solve(X, RBF, problem)[0])


# ------------------------------------------------------------------------- steps, stops, progress


@pytest.mark.parametrize("kernel", [*CONVEX, ("sigmoid", 0.5, 0.0, 0)])
@pytest.mark.parametrize("bias", [False, True])
def test_the_objective_never_increases(bias, kernel):
    X, y = labelled_rows(150, 4, seed=21)
    problem = with_constraint(c_svc(y, 8.0)) if bias else c_svc(y, 8.0)
    K = core_kernel(X, kernel)
    alpha = feasible_start(problem, 0.0, 21) if bias else random_start(problem, 21)
    before = objective(K, problem.linear, alpha)
    for _ in range(60):
        alpha, _, (report,) = solve(X, kernel, problem, alpha, iterations=7)
        now = objective(K, problem.linear, alpha)
        assert now <= before + 1e-12 * (1 + np.abs(alpha).sum() ** 2)
        assert np.all((alpha >= problem.lower) & (alpha <= problem.upper))
        before = now


@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize(
    ("n_features", "form", "cache", "float64"),
    [
        (4, "difference", 10**8, False),  # computed rows
        (4, "difference", 10**8, True),
        (300, "product", 10**8, False),  # cached rows
        (300, "product", 2 * 10**6, False),  # a cache with space for few of them
        (300, "sparse", 10**7, False),
    ],
)
def test_steps_that_overlap_have_the_bits_of_steps_in_turn(n_features, form, cache, float64, bias):
    """Two threads apply a change while the next set is solved; one thread applies it before."""
    X, y = labelled_rows(2100, n_features, seed=31, noise=0.2)
    problem = with_constraint(c_svc(y, 20.0)) if bias else c_svc(y, 20.0)
    kernel = ("rbf", 4.0 / n_features, 0.0, 0)

    def solved(threads):
        alpha, gradient, reports = solve(
            X, kernel, problem, threads=threads, form=form, cache_bytes=cache, float64=float64,
            tolerance=1e-3,
        )  # fmt: skip
        assert reports["converged"].all()
        counts = [name for name in reports.dtype.names if not name.startswith("seconds")]
        return alpha.tobytes(), gradient.tobytes(), reports[counts].tolist()

    assert solved(3) == solved(1)


@pytest.mark.parametrize("n_samples", [150, 2500])
def test_the_limit_of_iterations_is_reported_as_not_converged(n_samples):
    X, y = labelled_rows(n_samples, 4, seed=22)
    problem = c_svc(y, 8.0)
    alpha, gradient, (report,) = solve(X, RBF, problem, iterations=10)
    assert not report["converged"]
    assert report["violation"] > 1e-6
    assert 0 < report["iterations"] <= 11
    K = core_kernel(X, RBF)
    assert np.abs(gradient - (K @ alpha - problem.linear)).max() <= 1e-9
    assert abs(report["objective"] - objective(K, problem.linear, alpha)) <= 1e-9


@pytest.mark.parametrize("kernel", [RBF, ("linear", 0.0, 0.0, 0)], ids=["rbf", "linear"])
@pytest.mark.parametrize("name", LIMITS)
def test_each_kind_of_work_can_be_limited(name, kernel):
    X, y = labelled_rows(1500, 4, seed=22)
    problem = with_constraint(c_svc(y, 8.0))
    (whole,) = solve(X, kernel, problem, tolerance=1e-3)[2]
    (report,) = solve(X, kernel, problem, **{name: 1})[2]
    assert not report["converged"]
    assert report[name] <= 1 < whole[name]


def test_no_iterations_at_all_only_state_the_optimality():
    X, y = labelled_rows(100, 4, seed=23)
    problem = c_svc(y, 1.0)
    start = random_start(problem)
    alpha, gradient, (report,) = solve(X, RBF, problem, start, iterations=0)
    assert not report["converged"]
    assert alpha.tobytes() == start.tobytes()
    assert np.allclose(gradient, core_kernel(X, RBF) @ start - problem.linear, atol=1e-12)


def check_iterate(X, problem, iterate):
    """Check that alpha is feasible and every gradient matches its recorded state."""
    assert np.all((iterate.alpha >= problem.lower) & (iterate.alpha <= problem.upper))
    K = core_kernel(X, RBF)
    for alpha, known in ((iterate.alpha, AT_ALPHA), (iterate.base, AT_BASE)):
        wrong = np.abs(iterate.gradient - (K @ alpha - problem.linear))
        assert wrong[iterate.known == known].max(initial=0.0) <= 1e-9


def go_on(X, problem, iterate, **options):
    """Solve from an iterate; return the report."""
    setup, points = prepared(RBF, _core.Points(dense_rows(X), 1))
    (report,) = solve_core(setup, points, problem, iterate, **options)
    return report


@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize("n_samples", [200, 2500])
def test_a_solve_stopped_anywhere_goes_on_to_the_same_objective(n_samples, bias):
    X, y = labelled_rows(n_samples, 4, seed=24, noise=0.2)
    problem = with_constraint(c_svc(y, 50.0)) if bias else c_svc(y, 50.0)
    whole = go_on(X, problem, Iterate.of(np.zeros(problem.size)))
    iterate, n_pieces = Iterate.of(np.zeros(problem.size)), 0
    report = {"converged": False}
    while not report["converged"]:
        progress = Progress(stop_at=1 + 2 * n_pieces)
        report = go_on(X, problem, iterate, progress=progress, stop=progress.stop)
        check_iterate(X, problem, iterate)
        n_pieces += 1
    assert n_pieces > 1
    assert abs(report["objective"] - whole["objective"]) <= 1e-9 * abs(whole["objective"])
    check_solution(X, RBF, problem, iterate.alpha, iterate.gradient, report)


def test_a_stop_before_the_gradient_is_known_leaves_alpha_as_it_was():
    X, y = labelled_rows(500, 4, seed=24)
    problem = c_svc(y, 8.0)
    stop, start = _core.Stop(), random_start(problem)
    stop.request()
    iterate = Iterate.of(start.copy())
    assert not go_on(X, problem, iterate, stop=stop)["converged"]
    assert iterate.alpha.tobytes() == start.tobytes()
    assert np.all(iterate.known == NOTHING)


def test_a_deadline_is_a_stop():
    X, y = labelled_rows(500, 4, seed=24)
    assert _core.Stop(seconds=-1.0).is_requested
    assert not _core.Stop(seconds=1000.0).is_requested
    assert not _core.Stop(seconds=1e10).is_requested and not _core.Stop(np.inf).is_requested
    with pytest.raises(ValueError, match="seconds must be a number or None, got nan"):
        _core.Stop(np.nan)
    iterate = Iterate.of(np.zeros(500))
    report = go_on(X, c_svc(y, 8.0), iterate, stop=_core.Stop(seconds=-1.0))
    assert not report["converged"]


def test_a_stop_ends_an_outer_step_and_takes_it_back():
    """With wide rows one step may take seconds."""
    X, y = labelled_rows(1500, 4000, seed=26)
    problem = c_svc(y, 8.0)
    start = time.perf_counter()
    go_on(X, problem, Iterate.of(np.zeros(1500)), iterations=1)
    seconds = time.perf_counter() - start

    def is_taken_back(share):
        iterate = Iterate.of(np.zeros(1500))
        report = go_on(X, problem, iterate, stop=_core.Stop(seconds=share * seconds))
        if iterate.known.any() and not iterate.alpha.any():
            assert np.array_equal(iterate.gradient, -problem.linear)
        return report["kernel_evaluations"] > 0 and not iterate.alpha.any()

    assert any(is_taken_back(share) for share in np.tile(np.linspace(0.1, 0.9, 12), 5))


class Publisher(Progress):
    """Progress callback: requests the iterate at every second call and checks it at the next."""

    def __init__(self, X, problem, iterate):
        super().__init__()
        self.look = lambda: check_iterate(X, problem, iterate)

    def __call__(self, *event):
        super().__call__(*event)
        if len(self.calls) % 2 == 0:
            self.look()
        return len(self.calls) % 2 == 1


def test_an_iterate_that_is_published_is_true_and_changes_no_bit():
    X, y = labelled_rows(2500, 4, seed=24, noise=0.2)
    problem = c_svc(y, 50.0)
    alone, seen = Iterate.of(np.zeros(2500)), Iterate.of(np.zeros(2500))
    go_on(X, problem, alone)
    progress = Publisher(X, problem, seen)
    go_on(X, problem, seen, progress=progress, stop=progress.stop)
    assert progress.error is None
    assert len(progress.calls) > 4
    assert seen.alpha.tobytes() == alone.alpha.tobytes()


def test_a_stop_ends_the_clusters_after_it():
    X, y = labelled_rows(400, 4, seed=25)
    clusters = np.array_split(np.arange(400), 8)
    for threads in (1, 2):
        progress = Progress(stop_at=3)
        alpha, _, reports = solve(
            X, RBF, c_svc(y, 8.0), clusters=clusters, progress=progress, threads=threads
        )
        assert len(progress.calls) <= 3 + 2 * threads
        assert not all(report["converged"] for report in reports)


@pytest.mark.parametrize("threads", [1, 2])
def test_an_exception_inside_progress_comes_out(threads):
    X, y = labelled_rows(400, 4, seed=26)
    clusters = np.array_split(np.arange(400), 8)
    for raise_at in (1, 4):
        with pytest.raises(RuntimeError, match="raised inside progress"):
            solve(X, RBF, c_svc(y, 8.0), clusters=clusters, threads=threads,
                  progress=Progress(raise_at=raise_at))  # fmt: skip


def test_progress_counts_every_cluster_and_variable():
    X, y = labelled_rows(400, 4, seed=27)
    clusters = [np.arange(100), np.arange(100, 130), np.arange(130, 400)]
    progress = Progress()
    solve(X, RBF, c_svc(y, 1.0), clusters=clusters, progress=progress, threads=2)
    clusters_done, variables_done = zip(*((c, v) for c, v, *_ in progress.calls), strict=True)
    assert clusters_done[-1] == 3
    assert variables_done[-1] == 400
    assert list(clusters_done) == sorted(clusters_done)
    assert list(variables_done) == sorted(variables_done)


# ------------------------------------------------------------------------------------- same bits


def shuffled_clusters(n_samples, sizes, seed=0):
    order = np.random.default_rng(seed).permutation(n_samples)
    return [np.sort(part) for part in np.split(order, np.cumsum(sizes)[:-1])]


@pytest.mark.parametrize("bias", [False, True])
def test_several_clusters_are_each_solved_as_if_alone(bias):
    X, y = labelled_rows(600, 4, seed=28)
    problem = with_constraint(c_svc(y, 4.0)) if bias else c_svc(y, 4.0)
    clusters = shuffled_clusters(600, [1, 2, 350, 147, 100])
    alpha, gradient, reports = solve(X, RBF, problem, clusters=clusters, tolerance=1e-4)
    for members, report in zip(clusters, reports, strict=True):
        alone, alone_gradient, (expected,) = solve(
            X, RBF, problem, clusters=[members], tolerance=1e-4
        )
        assert np.array_equal(alpha[members], alone[members])
        assert np.array_equal(gradient[members], alone_gradient[members])
        for key in ("objective", "violation", "gap", "iterations", "converged"):
            assert report[key] == expected[key]
        own = replace(problem.part(members), row=None)
        cut, _, _ = solve(X[members], RBF, own, tolerance=1e-4)
        assert np.array_equal(cut, alpha[members])


def test_variables_of_no_cluster_are_left_alone():
    X, y = labelled_rows(100, 4, seed=29)
    problem = c_svc(y, 4.0)
    start = random_start(problem)
    alpha, gradient, _ = solve(X, RBF, problem, start, clusters=[np.arange(0, 100, 3)])
    others = np.arange(100) % 3 != 0
    assert np.array_equal(alpha[others], start[others])
    assert np.all(np.isnan(gradient[others]))
    assert np.all(np.isfinite(gradient[~others]))


@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize("sizes", [[900], [500, 400], [30] * 30, [700] + [20] * 10])
def test_threads_do_not_change_a_bit_of_a_solution(sizes, bias):
    X, y = labelled_rows(900, 4, seed=30)
    problem = with_constraint(c_svc(y, 4.0)) if bias else c_svc(y, 4.0)
    clusters = shuffled_clusters(900, sizes)
    results = set()
    for threads in (1, 2, 3, 7):
        alpha, gradient, reports = solve(
            X, RBF, problem, clusters=clusters, threads=threads, tolerance=1e-3
        )
        counts = tuple((r["iterations"], r["kernel_evaluations"], r["objective"]) for r in reports)
        results.add((alpha.tobytes(), gradient.tobytes(), counts))
    assert len(results) == 1


# --------------------------------------------------------------- larger than the working set (2048)


@pytest.fixture(scope="module", params=[0, 100], ids=["computed", "cached"])
def large(request):
    """Return a problem larger than one working set.

    100 more features hardly change it but make kernel rows expensive enough to be cached.
    """
    X, y = labelled_rows(3000, 40, seed=31, noise=0.05)
    more = grid_rows(3000, request.param, seed=32) / 100
    signs = np.where(np.sin(3 * X[:, 0]) + X[:, 1] > 0, 1.0, -1.0)
    return np.hstack([X, more]), signs * np.where(y > 9, -1, 1)


LARGE_KERNEL = ("rbf", 0.05, 0.0, 0)


@pytest.mark.parametrize(("C", "bias"), [(0.05, False), (10.0, False), (1.0, True)])
def test_a_problem_larger_than_the_working_set_is_solved(large, C, bias):
    X, y = large
    problem = with_constraint(c_svc(y, C)) if bias else c_svc(y, C)
    alpha, gradient, (report,) = solve(X, LARGE_KERNEL, problem, tolerance=1e-5, threads=2)
    assert report["outer_steps"] > 1
    K = core_kernel(X, LARGE_KERNEL)
    violation, gap = certificate(K, problem, alpha)
    assert report["converged"]
    assert violation <= 1.001e-5
    assert gap <= 1e-4 * abs(report["objective"])
    assert np.abs(gradient - (K @ alpha - problem.linear)).max() <= 1e-9 * (1 + C)
    assert abs(alpha.sum()) <= 1e-9 or not bias


def test_a_large_problem_is_solved_from_any_start(large):
    X, y = large
    problem = c_svc(y, 1.0)
    cold, _, (first,) = solve(X, LARGE_KERNEL, problem, tolerance=1e-4, threads=2)
    start = random_start(problem, 32)
    warm, _, (second,) = solve(X, LARGE_KERNEL, problem, start, tolerance=1e-4, threads=2)
    assert second["converged"]
    assert abs(first["objective"] - second["objective"]) <= 1e-6 * abs(first["objective"])


def test_the_size_of_the_cache_does_not_change_the_optimum(large):
    X, y = large
    problem = c_svc(y, 1.0)
    objectives = []
    for cache_bytes in (0, 1, 50_000, 5_000_000, 1_000_000_000):
        alpha, gradient, (report,) = solve(
            X, LARGE_KERNEL, problem, tolerance=1e-4, cache_bytes=cache_bytes, threads=2
        )
        assert report["converged"]
        objectives.append(report["objective"])
    assert np.ptp(objectives) <= 1e-6 * abs(objectives[0])


@pytest.mark.parametrize("bias", [False, True])
def test_a_cached_kernel_value_is_the_same_bits_and_not_computed_for_the_working_set(large, bias):
    X, y = large
    problem = with_constraint(c_svc(y, 1.0)) if bias else c_svc(y, 1.0)
    (alpha, gradient, (read,)), (other, other_gradient, (computed,)) = (
        solve(X, LARGE_KERNEL, problem, tolerance=1e-3, cache_bytes=cache_bytes, threads=2)
        for cache_bytes in (100_000_000, 0)
    )
    assert alpha.tobytes() == other.tobytes()
    assert gradient.tobytes() == other_gradient.tobytes()
    in_rows = read["rows_reused"] * len(y)
    if X.shape[1] > 40:
        assert read["rows_reused"] > 0
        assert computed["kernel_evaluations"] - read["kernel_evaluations"] > 1.02 * in_rows
    else:
        assert computed["kernel_evaluations"] == read["kernel_evaluations"]


def test_threads_do_not_change_a_bit_of_a_large_problem(large):
    X, y = large
    results = set()
    for threads in (1, 2, 3, 7):
        alpha, gradient, _ = solve(X, LARGE_KERNEL, c_svc(y, 1.0), tolerance=1e-3, threads=threads)
        results.add((alpha.tobytes(), gradient.tobytes()))
    assert len(results) == 1


def test_the_objective_of_a_large_problem_never_increases(large):
    X, y = large
    problem = c_svc(y, 10.0)
    K = core_kernel(X, LARGE_KERNEL)
    alpha = random_start(problem, 33)
    before = objective(K, problem.linear, alpha)
    for _ in range(8):
        alpha, _, _ = solve(X, LARGE_KERNEL, problem, alpha, iterations=1500, threads=2)
        now = objective(K, problem.linear, alpha)
        assert now <= before + 1e-9 * abs(before)
        before = now


# ---------------------------------------------------------------------------------------- errors


def test_arrays_that_do_not_fit_are_refused():
    X, y = labelled_rows(20, 4, seed=35)
    good = c_svc(y, 1.0)
    nine = np.zeros(19)
    for problem in (
        BoxQP(good.linear, nine, good.upper),
        BoxQP(good.linear, good.lower, nine),
        BoxQP(good.linear, good.lower, good.upper, np.zeros(19, np.int8), 1),
        BoxQP(good.linear, good.lower, good.upper, np.ones(20, np.int8), 1),
        BoxQP(good.linear, good.lower, good.upper, np.full(20, -1, np.int8), 1),
        BoxQP(good.linear, good.lower, good.upper, None, 1),
        BoxQP(good.linear, good.lower, good.upper, np.zeros(20, np.int8), 0),
        BoxQP(good.linear, good.lower, good.upper, row=np.zeros(19, np.int32)),
    ):
        with pytest.raises(ValueError, match="bounds|constraint_of|row numbers"):
            solve(X, RBF, problem)
    with pytest.raises(ValueError, match="one entry per variable"):
        solve(X, RBF, good, nine)
    with pytest.raises(ValueError, match="one entry per variable"):
        solve(X, RBF, good, gradient=nine)
    with pytest.raises(ValueError, match="one entry per variable"):
        _core.optimality(good, np.array([0, 20]), nine, np.zeros(20))


def test_the_optimality_of_nothing_is_zero():
    none = np.empty(0)
    problem = BoxQP(none, none, none, violation_scale=0.5)
    *found, multipliers = _core.optimality(problem, np.zeros(2, np.int64), none, none)
    assert [values.tolist() for values in found] == [[0.0], [0.0], [0.0], [0.5]]
    assert multipliers.shape == (1, 0)


@pytest.mark.parametrize("n_constraints", [0, 2])
def test_the_optimality_of_parts_is_that_of_each_by_itself(n_constraints):
    rng = np.random.default_rng(0)
    alpha, gradient, linear = rng.normal(size=(3, 50))
    sums = rng.integers(0, 2, 50).astype(np.int8) if n_constraints else None
    size = np.abs(alpha)
    problem = BoxQP(
        linear, alpha - 1, alpha + size, sums, n_constraints, divides_by_margin=n_constraints > 0
    )
    start = np.array([0, 20, 20, 21, 50])
    found = _core.optimality(problem, start, alpha, gradient)
    for k, own in enumerate([slice(0, 20), slice(20, 20), slice(20, 21), slice(21, 50)]):
        whole = np.array([0, own.stop - own.start])
        alone = _core.optimality(problem.part(own), whole, alpha[own], gradient[own])
        for values, (expected,) in zip(found, alone, strict=True):
            assert np.array_equal(values[k], expected)
    with pytest.raises(ValueError, match="parts do not"):
        _core.optimality(problem, start[:-1], alpha, gradient)


@pytest.mark.parametrize("has_sum", [False, True])
@pytest.mark.parametrize("form", ["product", "sparse"])
@pytest.mark.parametrize("n", [150, 1300])  # one working set, and several
def test_float64_kernel_values_solve_what_float32_ones_cannot(n, form, has_sum):
    """Float32 rounds away the differences between powers of nearly equal rows."""
    rng = np.random.default_rng(0)
    X = (10 + rng.standard_normal((n, 3))).astype(np.float32)
    y = np.where(X[:, 0] + 0.3 * rng.standard_normal(n) > 10, 1.0, -1.0)
    kernel = ("polynomial", 0.1, 0.0, 2)
    problem = c_svc(y, 1.0)
    problem = with_constraint(problem) if has_sum else problem
    K = kernel_values(kernel, X, X)
    alpha, gradient, (report,) = solve(X, kernel, problem, tolerance=1e-6, form=form, float64=True)
    assert report["converged"]
    assert certificate(K, problem, alpha)[0] < 1e-6 + 1e-13 * np.abs(K).max() * n
    assert gradient == pytest.approx(K @ alpha - problem.linear, abs=1e-13 * np.abs(K).max() * n)
    assert abs(alpha.sum()) < 1e-12 * n or not has_sum
    again = solve(X, kernel, problem, tolerance=1e-6, form=form, float64=True, threads=3)
    assert np.array_equal(again[0], alpha)
    rounded = solve(X, kernel, problem, tolerance=1e-6, form=form)[0]
    assert certificate(K, problem, rounded)[0] > 1e-5
