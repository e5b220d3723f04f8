"""Test the paper's competitors in examples/paper/baselines on problems with known answers."""

import shutil
import time

import numpy as np
import pytest
from paper.baselines import ALL, fitter, libsvm
from paper.baselines.lasvm import Expansion
from paper.fitted import OutOfTimeError, kernel_matrix, objective
from paper.subproblems import Subproblems

from dcsvm.kernel.kernels import Kernel

LINEARISED = ("llsvm", "fastfood", "ltpu")
SMALL = {"llsvm": {"features": 200}, "fastfood": {"features": 400}, "ltpu": {"features": 200},
         "spsvm": {"basis": 60}, "cascade": {"parts": 4}, "early": {"levels": 1},
         "dcsvm": {"levels": 1}}  # fmt: skip


def fit(method, X, y, C, kernel, **options):
    if method in LINEARISED:
        pytest.importorskip("sklearn")
    if method == "libsvm" and shutil.which("svm-train") is None:
        pytest.skip("no svm-train")
    return fitter(method)(X, y, C, kernel, threads=2, **options)


def disc(n_rows, seed):
    X = np.random.default_rng(seed).uniform(-1, 1, (n_rows, 2)).astype(np.float32)
    return X, np.where(np.hypot(*X.T) < 0.75, 1.0, -1.0)


def lonely_points():
    """Return twenty points with an identity matrix as kernel matrix, labels and the kernel."""
    X = np.stack(np.divmod(np.arange(20), 5), axis=1).astype(np.float32)
    return X, np.where(np.arange(20) % 3 == 0, 1.0, -1.0), Kernel("rbf", 60.0)


def test_an_early_level_of_too_few_distinct_rows_is_the_finest_that_there_is():
    X, y = (np.concatenate((part, part)) for part in disc(900, 0))
    fitted = fit("early", X, y, 10.0, Kernel("rbf", 5.0), early_level=2)
    assert fitted.model.early.partition.n_clusters == 4


@pytest.mark.parametrize("method", ALL)
def test_every_method_learns_a_disc(method):
    X, y = disc(800, 0)
    X_test, y_test = disc(500, 1)
    fitted = fit(method, X, y, 10.0, Kernel("rbf", 4.0), **SMALL.get(method, {}))
    values = fitted.decision_function(X_test)
    assert values.shape == (500,)
    assert np.mean((values > 0) == (y_test > 0)) > 0.95
    assert fitted.seconds >= 0


@pytest.mark.parametrize("method", ["direct", "lasvm", "cascade", "plain"])
@pytest.mark.parametrize("C", [0.5, 4.0])
def test_exact_solvers_give_lonely_points_their_closed_form(method, C):
    X, y, kernel = lonely_points()
    fitted = fit(method, X, y, C, kernel, **({"parts": 2} if method == "cascade" else {}))
    assert fitted.decision_function(X) == pytest.approx(y * min(C, 1.0), abs=2e-3)
    a = min(C, 1.0)
    assert fitted.facts["objective"] == pytest.approx(20 * (a * a / 2 - a), rel=1e-3)


@pytest.mark.parametrize("method", ["llsvm", "ltpu"])
def test_landmarks_on_all_lonely_points_give_the_closed_form(method):
    X, y, kernel = lonely_points()
    fitted = fit(method, np.repeat(X, 30, axis=0), np.repeat(y, 30), 0.5 / 30, kernel, features=20)
    assert fitted.facts["size"] == 20
    assert fitted.decision_function(X) == pytest.approx(0.5 * y, abs=1e-3)


def test_spsvm_with_all_lonely_points_shrinks_by_its_squared_hinge():
    X, y, kernel = lonely_points()
    fitted = fit("spsvm", X, y, 4.0, kernel, basis=20)
    assert fitted.decision_function(X) == pytest.approx(y * 4.0 / 5.0, abs=1e-3)


def test_one_part_of_the_cascade_is_the_whole_problem():
    X, y = disc(500, 2)
    kernel = Kernel("rbf", 4.0)
    whole = fit("direct", X, y, 10.0, kernel).facts["objective"]
    assert fit("cascade", X, y, 10.0, kernel, parts=1).facts["objective"] == pytest.approx(
        whole, rel=1e-4
    )
    first_round = fit("cascade", X, y, 10.0, kernel, parts=8)
    assert first_round.facts["objective"] >= whole * (1 + 1e-4)
    assert [point["parts"] for point in first_round.history] == [8, 4, 2, 1]


def test_the_plain_solver_and_ours_have_the_same_optimum_without_a_bias():
    X, y = disc(400, 8)
    y[:40] *= -1
    kernel = Kernel("rbf", 2.0)
    plain = fit("plain", X, y, 3.0, kernel, tolerance=1e-5).facts
    direct = fit("direct", X, y, 3.0, kernel, tolerance=1e-5).facts
    assert plain["objective"] == pytest.approx(direct["objective"], rel=1e-6)
    assert plain["steps"] > 0 and plain["n_sv"] == pytest.approx(direct["n_sv"], abs=2)


def test_the_cascade_solves_its_parts_by_their_components(monkeypatch):
    """Rows far apart are independent, in the cascade as in a level of DC-SVM."""
    from paper.baselines import cascade

    sizes = []

    class Spy(cascade.FormulationSolver):
        def solve(self, members, part_sizes, *more):
            sizes.append(part_sizes.tolist())
            return super().solve(members, part_sizes, *more)

    monkeypatch.setattr(cascade, "FormulationSolver", Spy)
    X, y = disc(2400, 9)
    X[1200:] += 100  # two spots of 1,200 rows
    fit("cascade", X, y, 10.0, Kernel("rbf", 4.0), parts=2)
    assert [len(one) for one in sizes] == [4, 2] and sum(sizes[0]) == 2400


def test_the_cascade_gives_the_rows_of_its_support_vectors():
    X, y = disc(500, 3)
    found = []
    fitted = fit("cascade", X, y, 10.0, Kernel("rbf", 4.0), parts=2, look=found.append)
    assert [len(rows) for rows in found] == [point["n_sv"] for point in fitted.history]
    margin = y * fitted.decision_function(X)
    assert set(np.flatnonzero(margin < 1 - 2e-3)) & set(found[0]) <= set(found[-1])


def test_a_part_of_the_cascade_may_have_one_class():
    X, y, kernel = lonely_points()
    y = np.sort(y)
    fitted = fit("cascade", X, y, 4.0, kernel, parts=16)
    assert fitted.decision_function(X) == pytest.approx(y, abs=2e-3)


def test_lasvm_comes_near_the_optimum_and_nearer_with_more_passes():
    X, y = disc(500, 3)
    kernel = Kernel("polynomial", 1.0, 1.0, 3)
    best = fit("direct", X, y, 2.0, kernel).facts["objective"]
    one = fit("lasvm", X, y, 2.0, kernel).facts["objective"]
    three = fit("lasvm", X, y, 2.0, kernel, passes=3).facts["objective"]
    assert best * (1 + 1e-4) <= three <= one + 1e-6 * abs(one)
    assert three == pytest.approx(best, rel=0.02)


@pytest.mark.parametrize("kernel", [Kernel("rbf", 0.02), Kernel("polynomial", 0.1, 1.0, 2)])
def test_lasvm_has_the_same_result_however_few_kernel_values_it_keeps(kernel):
    X, y = disc(600, 6)
    X = np.round(8 * X)  # its inner products are exact in float32
    all_kept = fit("lasvm", X, y, 2.0, kernel)
    for cache_mb in (0.05, 0.0):
        few = fit("lasvm", X, y, 2.0, kernel, cache_mb=cache_mb)
        # a path with other rounding ends at another solution of nearly the same objective
        agree = np.sign(few.decision_function(X)) == np.sign(all_kept.decision_function(X))
        assert agree.mean() > 0.98
        assert few.facts["objective"] == pytest.approx(all_kept.facts["objective"], rel=1e-3)


def test_lasvm_finishes_with_an_optimum_of_its_support_vectors():
    X, y = disc(500, 7)
    kernel, C = Kernel("rbf", 4.0), 10.0
    state = Expansion(X, y, C, kernel, 10.0)
    for row in range(len(y)):
        state.process(row)
        state.reprocess()
    before = state.violation().max()
    assert state.finish() > 1
    assert state.violation().max() < 2e-3 < before
    alpha = state.alpha_of_rows()
    assert np.all((y * alpha >= 0) & (y * alpha <= C))
    support = state.row[: state.size]
    values = kernel_matrix(kernel, X[support], X) @ alpha
    assert state.gradient[: state.size] == pytest.approx(y[support] - values, abs=1e-4)


def test_spsvm_has_a_history_that_gets_better():
    X, y = disc(600, 4)
    accuracy = lambda decide: float(np.mean((decide(X) > 0) == (y > 0)))  # noqa: E731
    fitted = fit("spsvm", X, y, 10.0, Kernel("rbf", 4.0), basis=40, evaluate=accuracy)
    sizes = [point["size"] for point in fitted.history]
    assert sizes == sorted(set(sizes)) and sizes[-1] == 40
    assert fitted.history[-1]["accuracy"] > fitted.history[0]["accuracy"]
    seconds = [point["seconds"] for point in fitted.history]
    assert seconds == sorted(seconds)


def test_libsvm_agrees_with_the_direct_solver_where_a_bias_does_not_matter():
    X, y = disc(600, 5)
    kernel = Kernel("rbf", 4.0)
    with_bias = fit("libsvm", X, y, 10.0, kernel)
    without = fit("direct", X, y, 10.0, kernel)
    assert with_bias.facts["objective"] == pytest.approx(without.facts["objective"], rel=0.05)
    same = np.sign(with_bias.decision_function(X)) == np.sign(without.decision_function(X))
    assert np.mean(same) > 0.97


@pytest.mark.parametrize("signal", ["KILL", "SEGV"])
def test_svm_train_without_memory_is_no_failure(signal, tmp_path, monkeypatch):
    program = tmp_path / "svm-train"
    program.write_text(f"#!/bin/sh\nkill -{signal} $$\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    with pytest.raises(MemoryError, match="lack of memory"):
        libsvm.fit(*disc(20, 0), 1.0, Kernel("rbf", 1.0), threads=1)


def test_the_limit_of_svm_train_begins_after_its_reading(tmp_path, monkeypatch):
    program = tmp_path / "svm-train"
    program.write_text('#!/bin/sh\ncase "$*" in *1e9*) sleep 0.4;; *) sleep 9;; esac\n')
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    begin = time.perf_counter()
    with pytest.raises(OutOfTimeError):
        libsvm.fit(*disc(20, 0), 1.0, Kernel("rbf", 1.0), threads=1, limit=0.2)
    assert 1.0 < time.perf_counter() - begin < 5


def test_a_part_of_one_class_is_solved():
    X, y, kernel = lonely_points()
    alpha = np.zeros(20)
    Subproblems(X, y, 2.0, kernel, 1).solve(alpha, [np.flatnonzero(y > 0)], 1e-4)
    assert alpha == pytest.approx(np.where(y > 0, 1.0, 0.0), abs=1e-3)
    assert objective(kernel, X, alpha, 1) == pytest.approx(-0.5 * np.sum(y > 0), rel=1e-3)
