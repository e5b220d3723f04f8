"""Test training and the Python API: all ways give the same solution, reports are true."""

import warnings
from dataclasses import fields

import numpy as np
import pytest
import scipy.sparse
from reference import (
    c_svc,
    certificate,
    full_alpha,
    kernel_values,
    labelled_rows,
    objective,
    solve_reference,
)
from runs import ready, train_rows

import dcsvm
from dcsvm import _core
from dcsvm.data.rows import Rows
from dcsvm.machine import usable_threads
from dcsvm.model.parts import ConvergenceStatus
from dcsvm.problem.options import TrainOptions
from dcsvm.training import fit as train_module
from dcsvm.training.early_level import EARLY_TOLERANCE
from dcsvm.training.report import LevelReport, Progress
from dcsvm.training.run import improve
from dcsvm.training.state import RunControl

KERNELS = [("linear", 1.0, 0.0, 3), ("polynomial", 0.5, 1.0, 2), ("rbf", 2.0, 0.0, 3)]


def train(X, y, progress=None, **options):
    chosen = {"C": 4.0, "gamma": 2.0, "threads": 1, "cache_mb": 50, "levels": 0} | options
    stop = getattr(progress, "stop", None) or _core.Stop()
    control = RunControl(progress or Progress(), stop)
    return train_rows(Rows.from_array(X), y, TrainOptions(**chosen), control)


def relative(a, b):
    return abs(a - b) / abs(b)


# ------------------------------------------------------------------------------- the same answer


@pytest.mark.parametrize("kernel", KERNELS, ids=lambda kernel: kernel[0])
def test_a_trained_model_is_the_optimum_of_the_reference(kernel):
    X, y = labelled_rows(300, 4, seed=1)
    name, gamma, coef0, degree = kernel
    model, report = train(X, y, kernel=name, gamma=gamma, coef0=coef0, degree=degree, C=2.0,
                          tolerance=1e-5)  # fmt: skip
    K = kernel_values(kernel, X, X)
    problem = c_svc(y, 2.0)
    best = objective(K, problem.linear, solve_reference(K, problem)[0])
    alpha = full_alpha(model, 300)
    assert report.converged
    assert relative(report.objective, best) <= 1e-6
    assert relative(objective(K, problem.linear, alpha), best) <= 1e-6
    values = model.decision_function(X)
    assert np.abs(values - K @ alpha).max() <= 1e-6 * (1 + np.abs(alpha).sum())


@pytest.mark.parametrize(
    "options",
    [{"levels": 1}, {"levels": 2, "branching": 3}, {"levels": 1, "clustering": "kmeans"},
     {"levels": 1, "sample": 7}, {"levels": 3, "branching": 2, "seed": 5}],
    ids=str,
)  # fmt: skip
@pytest.mark.parametrize("kernel", KERNELS, ids=lambda kernel: kernel[0])
def test_dividing_first_does_not_change_the_objective(wavy, kernel, options):
    X, y = wavy
    name, gamma, coef0, degree = kernel
    settings = {"kernel": name, "gamma": gamma, "coef0": coef0, "degree": degree, "C": 1.0,
                "tolerance": 1e-5}  # fmt: skip
    _, direct = train(X, y, **settings)
    _, divided = train(X, y, **settings, **options)
    assert direct.converged
    assert divided.converged
    assert divided.levels
    assert relative(divided.objective, direct.objective) <= 1e-6


@pytest.mark.parametrize("levels", [0, 1])
def test_swapped_labels_turn_the_decision_values(wavy, levels):
    X, y = wavy
    model, report = train(X, y, levels=levels, tolerance=1e-5)
    turned, turned_report = train(X, -y, levels=levels, tolerance=1e-5)
    assert relative(turned_report.objective, report.objective) <= 1e-6
    assert np.abs(model.decision_function(X) + turned.decision_function(X)).max() <= 1e-2
    assert model.labels.tolist() == turned.labels.tolist() == [1.0, -1.0]


@pytest.mark.parametrize("levels", [0, 1])
def test_the_order_of_rows_does_not_change_the_objective(wavy, levels):
    X, y = wavy
    order = np.random.default_rng(2).permutation(len(X))
    _, report = train(X, y, levels=levels, tolerance=1e-5)
    _, shuffled = train(X[order], y[order], levels=levels, tolerance=1e-5)
    assert relative(shuffled.objective, report.objective) <= 1e-6


@pytest.mark.parametrize("pair", [(1.0, 2.0), (0.0, 1.0), (-3.5, 1e-3), (7.0, -1.0), (1e300, 5.0)])
def test_any_two_labels_give_the_same_model(wavy, pair):
    X, y = wavy
    assert y[0] == 1
    plain, _ = train(X, y)
    model, _ = train(X, np.where(y > 0, *pair))
    assert model.labels.tolist() == list(pair)
    assert model.exact.dual_coef[0].tobytes() == plain.exact.dual_coef[0].tobytes()
    assert np.array_equal(model.predict(X), np.where(plain.predict(X) > 0, *pair))


@pytest.mark.parametrize("options", [{"levels": 0}, {"levels": 1}, {"levels": 2, "branching": 3}])
def test_threads_do_not_change_a_bit_of_alpha(wavy, options):
    X, y = wavy
    results = set()
    for threads in (1, 2, 3):
        model, report = train(X, y, threads=threads, tolerance=1e-4, **options)
        results.add((model.exact.dual_coef[0].tobytes(), model.exact.row_numbers.tobytes(),
                     report.objective, report.violation, report.kernel_error))  # fmt: skip
    assert len(results) == 1


def test_a_second_run_gives_the_same_bits_and_another_seed_another_partition(wavy):
    X, y = wavy
    first, again, other = (train(X, y, levels=1, seed=seed, sample=50)[0] for seed in (1, 1, 2))
    assert first.exact.dual_coef[0].tobytes() == again.exact.dual_coef[0].tobytes()
    sample = first.early.partition.sample.dense
    assert sample.tobytes() == again.early.partition.sample.dense.tobytes()
    assert sample.tobytes() != other.early.partition.sample.dense.tobytes()


# ----------------------------------------------------------------------------- reports, progress


def test_the_report_says_what_can_be_recomputed(wavy, trained):
    X, y = wavy
    model, report = trained
    alpha = full_alpha(model, len(X))
    K, problem = kernel_values(("rbf", 2.0, 0, 0), X, X), c_svc(y, 4.0)
    violation, gap = certificate(K, problem, alpha)
    assert report.converged
    assert abs(report.objective - objective(K, problem.linear, alpha)) <= 1e-6 * abs(
        report.objective
    )
    assert violation <= report.violation <= violation + 4 * report.kernel_error
    assert 0.999 * gap <= report.duality_gap <= 1.05 * gap + 1e-3
    assert 0 <= report.kernel_error <= np.abs(alpha).sum() * 2**-24
    assert report.n_sv == np.count_nonzero(alpha) == len(model.exact.dual_coef[0])
    assert report.n_bsv == np.count_nonzero(np.abs(alpha) == 4.0)
    assert report.kernel_evaluations > 0
    assert report.threads == usable_threads(2)
    assert report.seconds_train >= report.seconds_verify > 0


def test_the_largest_cluster_of_a_regression_is_in_rows(wavy):
    X, _ = wavy
    _, report = train(X, np.sin(3 * X[:, 0]), svm_type="epsilon_svr", levels=2, branching=2)
    for level in report.levels:
        assert len(X) / level.n_clusters <= level.largest_cluster <= len(X)


def test_every_level_is_reported_from_the_finest(wavy):
    X, y = wavy
    _, report = train(X, y, levels=3, branching=2)
    assert [level.level for level in report.levels] == [3, 2, 1]
    for level in report.levels:
        assert 1 <= level.n_clusters <= 2**level.level
        assert len(X) / level.n_clusters <= level.largest_cluster <= len(X)
        assert 0 < level.n_sv <= len(X)
        assert level.seconds_clustering > 0
        assert level.seconds_training > 0
    # merging clusters only adds coupling: the kernel is psd, a level's matrix is block-diagonal
    assert all(level.objective <= report.objective * 0.9 for level in report.levels)
    assert [len(rows) for rows in report.support_by_level] == [v.n_sv for v in report.levels]
    values = report.as_dict()
    assert {field.name for field in fields(LevelReport)} == set(values["levels"][0])
    for key in ("objective", "violation", "duality_gap", "kernel_error", "n_sv", "n_bsv",
                "converged", "kernel_evaluations", "threads"):  # fmt: skip
        assert values[key] is not None


def test_certify_checks_every_row_in_float64(wavy):
    X, y = wavy
    model, report = train(X, y, certify=True, tolerance=1e-4)
    K, problem = kernel_values(("rbf", 2.0, 0, 0), X, X), c_svc(y, 4.0)
    violation, gap = certificate(K, problem, full_alpha(model, len(X)))
    assert report.kernel_error == 0
    assert abs(report.violation - violation) <= 1e-9
    assert abs(report.duality_gap - gap) <= 1e-7
    assert violation <= 1e-4


@pytest.mark.parametrize("wanted", [1e-2, 1e-5, 1e-8])
@pytest.mark.parametrize("options", [{}, {"levels": 1}, {"kernel": "linear", "C": 0.1}], ids=str)
def test_a_relative_gap_that_is_asked_for_is_reached(wavy, wanted, options):
    X, y = wavy
    model, report = train(X, y, gap=wanted, **options)
    C = options.get("C", 4.0)
    K = kernel_values((options.get("kernel", "rbf"), 2.0, 0, 0), X, X)
    alpha, problem = full_alpha(model, len(X)), c_svc(y, C)
    gap = certificate(K, problem, alpha)[1]
    assert report.converged
    assert report.relative_gap <= wanted
    assert gap <= 1.1 * wanted * abs(objective(K, problem.linear, alpha)) + 1e-9


def test_a_gap_below_what_the_arithmetic_can_certify_is_not_converged(wavy):
    X, y = wavy
    _, report = train(X, y, gap=1e-30)
    assert not report.converged
    assert 0 <= report.relative_gap < 1e-9


def test_the_objective_does_not_rest_on_kernel_values_that_show_in_it():
    """With a large C, rounding errors of float32 kernel values add up over bounded variables."""
    X, y = labelled_rows(2500, 6, seed=3)
    model, report = train(X, y, C=1000.0, gamma=0.02, tolerance=1e-2)
    K = kernel_values(("rbf", 0.02, 0, 0), X, X)
    exact = objective(K, c_svc(y, 1000.0).linear, full_alpha(model, len(X)))
    assert relative(report.objective, exact) <= 1e-6


def test_an_indefinite_kernel_has_no_gap(wavy):
    X, y = wavy
    model, report = train(X, y, kernel="sigmoid", gamma=0.5, coef0=-0.5, levels=1)
    assert report.converged
    assert report.duality_gap is None
    assert report.objective < 0
    _, negative = train(X, y, kernel="polynomial", gamma=0.5, coef0=-1.0, degree=2, C=0.1)
    assert negative.duality_gap is None


@pytest.mark.parametrize("certify", [False, True])
def test_a_small_tolerance_is_reached_with_float64_kernel_values(certify):
    X, y = labelled_rows(800, 4, seed=6, noise=0.25)
    model, report = train(X, y, C=1000.0, gamma=1.0, tolerance=1e-5, certify=certify)
    K, problem = kernel_values(("rbf", 1.0, 0, 0), X, X), c_svc(y, 1000.0)
    alpha = full_alpha(model, len(X))
    float32_error = np.abs((K.astype(np.float32) - K) @ alpha).max()
    assert float32_error > 1e-6, "this problem does not need float64"
    violation, _ = certificate(K, problem, alpha)
    assert report.converged
    assert violation <= 1.001e-5


def test_convergence_is_claimed_only_for_the_float64_violation():
    for C in (10.0, 300.0, 10000.0):
        X, y = labelled_rows(300, 3, seed=7, noise=0.2)
        model, report = train(X, y, C=C, gamma=3.0, tolerance=1e-5)
        K = kernel_values(("rbf", 3.0, 0, 0), X, X)
        violation, _ = certificate(K, c_svc(y, C), full_alpha(model, 300))
        # up to 300 rows are all checked, so the reported violation is the true one
        assert abs(report.violation - violation) <= 1e-8 + 1e-12 * C
        assert report.converged == (violation <= 1e-5) or abs(violation - 1e-5) < 1e-9


def test_a_limit_of_iterations_gives_a_usable_model_that_did_not_converge(wavy):
    X, y = wavy
    for levels in (0, 1):
        model, report = train(X, y, levels=levels, max_iterations=20)
        assert not report.converged
        assert report.violation > 1e-3
        assert np.all(np.isfinite(model.decision_function(X)))


def test_early_models_that_did_not_converge_say_so(wavy):
    for overlap in (1, 1.5):
        options = {"levels": 1, "early": True, "early_level": 1, "overlap": overlap}
        assert not train(*wavy, **options, max_iterations=20)[1].converged


def test_of_a_stopped_run_free_variables_are_looked_at_first(wavy, monkeypatch):
    monkeypatch.setattr(train_module, "NANOSECONDS", 3e3)
    run = ready(Rows.from_array(wavy[0]), wavy[1], TrainOptions(gamma=2.0, threads=1))
    problem = run.solver.problem
    run.solver.alpha[:30] = 0.5 * (problem.lower + problem.upper)[:30]
    chosen = train_module._affordable(run.solver, np.arange(1000))
    assert len(chosen) < 1000 and np.array_equal(chosen[:30], np.arange(30))


def test_all_steps_share_the_limit_of_iterations(wavy):
    options = TrainOptions(C=4.0, gamma=2.0, levels=2, branching=2, max_iterations=10**6)
    run = ready(Rows.from_array(wavy[0]), wavy[1], options)
    improve(run)
    used = run.state.costs.counts["iterations"]
    assert used > 0 and run.state.budget.left == {"iterations": 10**6 - used}


class Recorder(Progress):
    def __init__(self, stop_in=None):
        self.begun, self.levels, self.ended, self.stop_in = [], [], [], stop_in
        self.stop = _core.Stop()

    def begin(self, name, n_rows):
        self.begun.append((name, n_rows))
        self.done = []
        if name == self.stop_in:
            self.stop.request()

    def advance(self, rows_done, violation, n_active):
        self.done.append(rows_done)
        assert self.done == sorted(self.done) and rows_done <= self.begun[-1][1]
        assert violation >= 0 and n_active <= self.begun[-1][1]

    def end_level(self, report):
        self.levels.append(report.level)

    def end(self, name, seconds, n_sv):
        self.ended.append(name)


PHASES = ["level 2", "level 1", "refine", "gradient", "conquer"]


def test_progress_hears_of_every_phase(wavy):
    X, y = wavy
    progress = Recorder()
    train(X, y, progress, levels=2, branching=2)
    assert [name for name, _ in progress.begun] == PHASES
    assert progress.begun[0][1] == progress.begun[-1][1] == len(X)
    assert progress.levels == [2, 1]
    assert progress.ended == PHASES[2:]


@pytest.mark.parametrize("repeats", [0, 40])
def test_progress_tells_how_many_rows_are_support_vectors(repeats):
    """The number of variables is larger: a row has one in each pair of its class with another."""
    rng = np.random.default_rng(0)
    X, y = rng.random((120, 3)).astype(np.float32), rng.integers(0, 6, 120).astype(float)
    X, y = np.concatenate([X, X[:repeats]]), np.concatenate([y, y[:repeats]])
    counts = []

    class Counts(Progress):
        def end(self, name, seconds, n_sv=None):
            counts.append((name, n_sv))

    options = TrainOptions(C=1.0, gamma=1.0, threads=1, probability=True)
    _, report = train_rows(Rows.from_array(X), y, options, RunControl(Counts()))
    assert counts == [("conquer", report.n_sv), ("probabilities", None)]
    assert report.n_sv <= len(X) < sum(problem.n_sv for problem in report.problems)


def test_a_stop_before_anything_is_solved_gives_no_model(wavy):
    with pytest.raises(_core.Stopped):
        train(*wavy, Recorder("level 2"), levels=2, branching=2)


@pytest.mark.parametrize("phase", ["level 1", "refine", "conquer"])
def test_a_stop_gives_an_honest_model(wavy, phase):
    X, y = wavy
    model, report = train(X, y, Recorder(phase), levels=2, branching=2, tolerance=1e-6)
    assert not report.converged
    K = kernel_values(("rbf", 2.0, 0, 0), X, X)
    violation, _ = certificate(K, c_svc(y, 4.0), full_alpha(model, len(X)))
    assert abs(report.violation - violation) <= 1e-4
    assert model.early.level == 2
    assert report.stopped
    assert model.exact.status == ConvergenceStatus(False, report.violation, report.duality_gap)
    assert np.all(np.isfinite(model.decision_function(X)))


def test_an_exception_inside_progress_comes_out_of_training(wavy):
    X, y = wavy

    class Failing(Progress):
        def advance(self, *event):
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        train(X, y, Failing())


# ---------------------------------------------------------------------------------- early models


def test_stopping_early_gives_local_models_only(wavy, wavy_test):
    X, y = wavy
    model, report = train(X, y, levels=1, early=True)
    assert model.exact is None
    assert model.early.level == 1
    assert report.objective is None
    assert len(report.levels) == 1
    assert report.converged
    values = model.decision_function(X)
    assert np.array_equal(values, model.decision_function(X, method="early"))
    assert np.mean(model.predict(wavy_test[0]) == wavy_test[1]) > 0.8
    with pytest.raises(ValueError, match="no exact solution"):
        model.decision_function(X, method="exact")


def test_the_early_level_is_the_same_whether_training_stops_there_or_not(wavy, trained):
    X, y = wavy
    model, _ = trained
    early, _ = train(X, y, levels=1, early=True, early_level=1, overlap=1)
    assert early.early.dual_coef[0].tobytes() == model.early.dual_coef[0].tobytes()
    assert np.array_equal(early.predict(X), model.predict(X, method="early"))


def test_each_local_model_is_the_optimum_of_its_cluster(wavy, trained):
    X, y = wavy
    model, report = trained
    early = model.early
    cluster = early.partition.assign(Rows.from_array(X), 1)
    assert np.array_equal(early.cluster, np.sort(early.cluster))
    assert np.array_equal(early.cluster, cluster[early.row_numbers])
    alpha = np.zeros(len(X))
    alpha[early.row_numbers] = early.dual_coef[0]
    K, total = kernel_values(("rbf", 2.0, 0, 0), X, X), 0.0
    for number in range(early.partition.n_clusters):
        own = np.flatnonzero(cluster == number)
        problem = c_svc(y[own], 4.0)
        assert certificate(K[np.ix_(own, own)], problem, alpha[own])[0] <= 1.01 * EARLY_TOLERANCE
        total += objective(K[np.ix_(own, own)], problem.linear, alpha[own])
    assert abs(total - report.levels[-1].objective) <= 1e-6 * abs(total)


# ------------------------------------------------------------------------------------ prediction


@pytest.mark.parametrize("method", ["exact", "early"])
def test_rows_of_a_file_may_have_fewer_or_more_features(wavy_test, trained, method):
    model, T = trained[0], wavy_test[0]
    cut = T.copy()
    cut[:, 2:] = 0
    full = model.decision_function(cut, method=method)
    few = Rows.from_array(cut[:, :2])
    assert np.allclose(model.decision_function(few, method=method), full, atol=1e-6)
    few = scipy.sparse.csr_matrix(cut[:, :2])
    assert np.allclose(model.decision_function(few, method=method), full, atol=1e-6)
    wide = Rows.from_array(np.concatenate((T, np.ones((len(T), 3), np.float32)), axis=1))
    factor = np.exp(-2.0 * 3)  # three more features, each 1 instead of 0
    if method != "early":  # the nearest cluster may change
        expected = factor * model.decision_function(T, method=method)
        assert np.allclose(model.decision_function(wide, method=method), expected, atol=1e-6)
    assert model.decision_function(wide, method=method).shape == (len(T),)
    sparse = scipy.sparse.csr_matrix(T)
    assert np.allclose(model.decision_function(sparse, method=method),
                       model.decision_function(T, method=method), atol=1e-6)  # fmt: skip


@pytest.mark.parametrize("form", [np.asarray, scipy.sparse.csr_matrix])
@pytest.mark.parametrize("n_features", [3, 5])
def test_an_array_has_the_features_of_the_training_rows(trained, n_features, form):
    """Sparse rows may have fewer features, as in files."""
    rows = form(np.ones((2, n_features), np.float32))
    if n_features == 3 and form is scipy.sparse.csr_matrix:
        assert trained[0].predict(rows).shape == (2,)
        return
    told = f"rows have {n_features} features, the model was trained on 4"
    for predict in (trained[0].predict, trained[0].decision_function):
        with pytest.raises(ValueError, match=told):
            predict(rows)


@pytest.mark.parametrize("method", ["exact", "early"])
def test_no_rows_have_no_predictions(trained, method):
    assert trained[0].predict(np.empty((0, 4)), method=method).shape == (0,)


# ----------------------------------------------------------------------------------- Python API


def test_the_api_warns_when_it_did_not_converge(wavy):
    X, y = wavy
    with pytest.warns(UserWarning, match="not converged"):
        dcsvm.train(X, y, gamma=2, levels=0, max_iterations=3, threads=1)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        dcsvm.train(X, y, gamma=2, levels=0, threads=1)


def test_labels_of_another_number_than_the_rows_are_refused():
    with pytest.raises(ValueError, match="20 rows have 19 labels"):
        dcsvm.train(np.ones((20, 3)), np.ones(19), threads=1)


def test_no_rows_are_refused():
    with pytest.raises(ValueError, match="there are no rows"):
        dcsvm.train(np.empty((0, 3)), [], threads=1)


def test_rows_without_features_are_trained():
    model = dcsvm.train(np.empty((6, 0)), [1, 1, 1, 1, -1, -1], threads=1)
    assert model.predict(np.empty((2, 0))).tolist() == [1, 1]


# ----------------------------------------------------------------------- support vectors by level


def test_the_support_vectors_of_the_levels_foretell_the_final_ones():
    X, y = labelled_rows(2000, 4, seed=8, noise=0.02)
    model, report = train(X, y, levels=2, branching=3, threads=2)
    final = set(model.exact.row_numbers)
    recalls, precisions = [], []
    for rows in report.support_by_level:
        both = len(final & set(rows))
        recalls.append(both / len(final))
        precisions.append(both / len(rows))
    assert min(recalls) > 0.85  # few are missing
    assert precisions[-1] > 0.6
    assert precisions[-1] > precisions[0]  # coarser levels are closer to the full problem
