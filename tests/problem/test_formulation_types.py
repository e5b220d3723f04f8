"""Test every problem type: optimal by an independent certificate, and equal to svm-train's."""

import re

import numpy as np
import pytest
from reference import TYPES, certificate, full_alpha, kernel_values, libsvm
from runs import ready

import dcsvm
from dcsvm.data.rows import Rows
from dcsvm.problem import duplicates
from dcsvm.problem.formulation import BoxQP
from dcsvm.problem.options import TrainOptions
from dcsvm.training.fit import finish

GAMMA = 1.5
LETTERS = {"nu_svc": 1, "one_class": 2, "epsilon_svr": 3, "nu_svr": 4}


def classes(n, n_classes, seed=0, repeats=0):
    rng = np.random.default_rng(seed)
    X = rng.random((n, 3)).astype(np.float32)
    y = (np.floor(2.3 * X[:, 0] + 1.7 * X[:, 1] + 0.2 * rng.standard_normal(n)) % n_classes) + 1
    again = rng.integers(0, n, repeats)
    return np.concatenate([X, X[again]]), np.concatenate([y, y[again]])


def problem_for(name, n=500, repeats=60):
    X, y = classes(n, 2 if "svr" in name or name == "one_class" else 3, repeats=repeats)
    if "svr" in name:
        y = np.sin(5 * X[:, 0]) + X[:, 1] * X[:, 2]
    return X, y


def solved(X, y, **options):
    chosen = {"C": 4.0, "gamma": GAMMA, "threads": 2, "cache_mb": 50, "tolerance": 1e-4} | options
    run = ready(Rows.from_array(X), y, TrainOptions(**chosen))
    model = finish(run)
    return run, model, model.report


@pytest.mark.parametrize("levels", [0, 1])
@pytest.mark.parametrize("name", TYPES)
def test_the_solution_is_optimal_and_keeps_its_sums(name, levels):
    X, y = problem_for(name)
    run, _, report = solved(X, y, levels=levels, **TYPES[name])
    K = kernel_values(("rbf", GAMMA, 0, 0), run.solver.data.rows.dense, run.solver.data.rows.dense)
    total = 0.0
    for part in run.solver.formulation.parts():
        problem, alpha = run.solver.problem.part(part), run.solver.alpha[part]
        inside = K[np.ix_(problem.rows, problem.rows)]
        violation, gap = certificate(inside, problem, alpha)
        assert violation <= 1e-4
        total += gap
        for number in range(problem.n_constraints):
            own = problem.constraint_of == number
            wanted = run.solver.formulation.alpha[part][own].sum()
            assert alpha[own].sum() == pytest.approx(wanted, abs=1e-9 * len(y))
    assert report.converged
    assert report.duality_gap >= total * (1 - 1e-6) - 1e-9


@pytest.mark.parametrize("name", [name for name in TYPES if name != "c_svc"])
def test_the_answer_is_that_of_svm_train(name, tmp_path, write_libsvm):
    X, y = problem_for(name, repeats=0)
    data = write_libsvm(X, y)
    options = TYPES[name]
    words = ["-c", 4, "-g", GAMMA, "-e", 1e-4, "-s", LETTERS.get(options.get("svm_type"), 0)]
    words += ["-n", options.get("nu", 0.5), "-p", options.get("epsilon", 0.1)]
    for label, weight in options.get("class_weight", {}).items():
        words += [f"-w{label:g}", weight]
    said = libsvm("svm-train", *words, data, tmp_path / "model")
    _, model, report = solved(X, y, **options)
    objectives = [float(value) for value in re.findall(r"obj = (\S+),", said)]
    offsets = [float(value) for value in re.findall(r"rho = (\S+)", said)]
    accuracy = 1e-3 if name == "nu_svc" else 2e-5  # nu-SVC's has the margin squared
    assert [p.objective for p in report.problems] == pytest.approx(objectives, rel=accuracy)
    assert model.exact.rho == pytest.approx(offsets, abs=2e-3)
    theirs = dcsvm.load_model(tmp_path / "model")
    assert np.abs(model.decision_function(X) - theirs.decision_function(X)).max() < 5e-3
    counts = [int(value) for value in re.findall(r"\bnSV = (\d+),", said)]
    assert [p.n_sv for p in report.problems] == pytest.approx(counts, abs=4)
    for parameter in ("nu", "C", "epsilon"):
        found = re.findall(rf"^{parameter} = (\S+)$", said, re.M)
        ours = [
            p.parameter[1]
            for p in report.problems
            if p.parameter is not None and p.parameter[0] == parameter
        ]
        assert ours == pytest.approx([float(value) for value in found], rel=1e-2, abs=1e-3)


def test_a_cluster_of_one_class_predicts_it():
    rng = np.random.default_rng(0)
    X = np.concatenate(
        [rng.random((300, 2)), 50 + rng.random((300, 2)), 100 + rng.random((300, 2))]
    )
    y = np.repeat([1.0, 2.0, 3.0], 300)
    for bias in (False, True):
        model = dcsvm.train(X, y, C=1, gamma=1e-4, bias=bias, levels=1, branching=3, threads=1)
        assert np.mean(model.predict(X, method="early") == y) == 1.0


def test_any_number_of_threads_gives_the_same_bits():
    for name in TYPES:
        X, y = problem_for(name)
        models = [solved(X, y, threads=threads, **TYPES[name])[1] for threads in (1, 3)]
        assert np.array_equal(models[0].exact.dual_coef, models[1].exact.dual_coef)
        assert np.array_equal(models[0].exact.rho, models[1].exact.rho)


@pytest.mark.parametrize("name", ["c_svc", "c_svc with bias", "nu_svc", "epsilon_svr"])
def test_probabilities_fit_rows_that_were_not_seen(name):
    X, y = problem_for(name, n=900, repeats=0)
    new, wanted = problem_for(name, n=901, repeats=0)
    _, model, _ = solved(X, y, probability=True, **TYPES[name])
    if name == "epsilon_svr":
        residual = np.abs(model.predict(new) - wanted).mean()
        assert 0.5 < model.probability.A[0] / residual < 2
        return
    values = model.predict_probability(new)
    order = np.argsort(model.labels)
    chosen = values[:, order][np.arange(len(new)), wanted.astype(int) - 1]
    assert np.allclose(values.sum(axis=1), 1)
    assert -np.log(chosen).mean() < 0.75


def narrow(n=600):
    """Return two classes close to each other with little overlap: the margin is small."""
    rng = np.random.default_rng(3)
    X = rng.uniform(-0.1, 0.1, (n, 4)).astype(np.float32)
    y = np.where(X[:, 0] + X[:, 1] > rng.normal(0, 0.005, n), 1.0, 2.0)
    return X, y


def test_the_tolerance_of_nu_svc_is_that_of_the_c_svc_its_answer_solves():
    """The model solves a C-SVC with a bias and C = 1 / margin. Its conditions hold to the
    tolerance, although the margin of the solved problem is far below 1."""
    X, y = narrow()
    _, model, report = solved(X, y, svm_type="nu_svc", nu=0.1, tolerance=1e-3)
    C = report.problems[0].parameter[1]
    assert report.converged and C > 50
    sign = np.where(y == model.labels[0], 1, -1)
    alpha = full_alpha(model, len(y))
    gradient = kernel_values(("rbf", GAMMA, 0, 0), X, X) @ alpha - sign
    bound = C * (1 + 1e-9)
    can_rise = alpha < np.where(sign > 0, bound, 0.0) - 1e-6 * C
    can_fall = alpha > np.where(sign > 0, 0.0, -bound) + 1e-6 * C
    violation = np.max(-gradient[can_rise]) - np.min(-gradient[can_fall])
    assert violation <= 2.5e-3  # the tolerance for each class, and the error of the margin
    best = solved(X, y, svm_type="nu_svc", nu=0.1, tolerance=1e-7)[2]
    assert report.objective == pytest.approx(best.objective, rel=1e-3)  # has the margin squared


def test_the_tolerance_of_nu_svr_goes_with_the_scale_of_the_targets():
    """Targets and C divided by 1000 define the same problem."""
    X, y = problem_for("nu_svr")
    options = {"svm_type": "nu_svr", "nu": 0.4}
    best = solved(X, y, tolerance=1e-8, **options)[2]
    small = solved(X, y / 1000, C=4.0 / 1000, tolerance=1e-3, **options)[2]
    assert small.converged
    assert 1e6 * small.objective == pytest.approx(best.objective, rel=1e-4)


def test_an_accuracy_that_rounding_hides_is_not_claimed():
    X, y = narrow(300)
    with pytest.warns(UserWarning, match="not converged"):
        model = dcsvm.train(X, y, svm_type="nu_svc", nu=0.1, tolerance=1e-13, threads=1)
    assert not model.report.converged
    assert 1e-13 < model.report.violation < 1e-2


def test_a_margin_that_is_none_is_refused():
    """The labels are independent of the rows, so the reduced convex hulls overlap."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((400, 3)).astype(np.float32)
    with pytest.raises(ValueError, match="no margin between two classes"):
        dcsvm.train(X, np.arange(400) % 2, svm_type="nu_svc", nu=0.9, kernel="linear", threads=1)


@pytest.mark.parametrize(("n", "gamma"), [(400, 1e-3), (2500, 0.1)])
def test_a_margin_that_is_hardly_there_is_found_by_c_svc(n, gamma):
    """With such labels and a kernel of full rank, the margin is below the rounding of float32."""
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((n, 3)).astype(np.float32), np.arange(n) % 2
    with pytest.warns(UserWarning, match="solved as C-SVC with C = "):
        model = dcsvm.train(X, y, svm_type="nu_svc", nu=0.9, gamma=gamma, threads=1)
    report = model.report
    name, C = report.problems[0].parameter
    assert name == "C" and C > 1e4 and report.converged and report.usable
    alpha, is_first = full_alpha(model, n), y == model.labels[0]
    problem = BoxQP(
        np.zeros(n), np.where(is_first, 0, -C), np.where(is_first, C, 0),
        (~is_first).astype(np.int8), 2,
    )  # fmt: skip
    alpha = np.where(np.abs(np.abs(alpha) - C) < 1e-9 * C, np.sign(alpha) * C, alpha)
    found = certificate(kernel_values(("rbf", gamma, 0.0, 0), X, X), problem, alpha)[0]
    assert found <= 1.2e-3


@pytest.mark.parametrize("name", ["c_svc with bias", "nu_svc", "epsilon_svr"])
def test_repeated_rows_leave_a_fold_one_by_one(name, monkeypatch):
    """Labels of equal rows disagree. If held out together, such rows would predict each other."""
    rng = np.random.default_rng(0)
    X = rng.integers(0, 4, (600, 3)).astype(np.float32)
    y = (X.sum(axis=1) + rng.standard_normal(600) > 4.5).astype(float)
    _, model, report = solved(X, y, probability=True, **TYPES[name])
    assert report.n_duplicates > 400
    if name == "epsilon_svr":
        assert model.probability.A[0] < 0.5
    else:
        assert model.probability.A[0] < 0
        chosen = model.labels[model.predict_probability(X).argmax(axis=1)]
        assert np.mean(chosen == y) > 0.7
    monkeypatch.setattr(duplicates, "MERGING_THRESHOLD", 1.0)
    _, apart, report = solved(X, y, probability=True, **TYPES[name])
    assert report.n_duplicates == 0
    assert np.allclose(model.probability.A, apart.probability.A, rtol=5e-3)
    if name != "epsilon_svr":
        assert np.allclose(model.probability.B, apart.probability.B, atol=5e-3)
