"""Test values of held-out rows from the solutions of their folds."""

import numpy as np
import pytest
from runs import train_rows

from dcsvm.data.rows import Rows
from dcsvm.problem.folds import Folds
from dcsvm.problem.formulation import in_folds, pairs_of
from dcsvm.problem.options import TrainOptions
from dcsvm.training import probability
from dcsvm.training.certificate import Subproblems
from dcsvm.training.conquer import conquer
from dcsvm.training.engine import prepare_rows
from dcsvm.training.held_out import folds_of, formulation_of_folds, held_out_values
from dcsvm.training.probability import (
    _fit,
    alpha_without_held_out,
    is_good_start,
    variables_of_folds,
)
from dcsvm.training.run import Run, improve
from dcsvm.training.solver import FormulationSolver

OPTIONS = {"C": 4.0, "gamma": 2.0, "threads": 1, "cache_mb": 50, "tolerance": 1e-6, "nu": 0.3}
TYPES = {
    "c_svc": {},
    "bias": {"bias": True},
    "nu_svc": {"svm_type": "nu_svc"},
    "one_class": {"svm_type": "one_class"},
    "epsilon_svr": {"svm_type": "epsilon_svr"},
    "nu_svr": {"svm_type": "nu_svr"},
}


def rows_and_labels(n=240, n_classes=3, repeats=60, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.random((n, 3)).astype(np.float32)
    y = np.floor(2 * X[:, 0] + 2 * X[:, 1] + 0.3 * rng.standard_normal(n)) % n_classes
    again = rng.integers(0, n, repeats)
    return np.concatenate([X, X[again]]), np.concatenate([y, y[again]])


def prepared_for(name, **how):
    X, y = rows_and_labels(**how)
    return X, y, prepare_rows(Rows.from_array(X), y, TrainOptions(**OPTIONS | TYPES[name]))


@pytest.mark.parametrize("name", TYPES)
def test_the_problems_of_a_fold_are_those_of_its_rows(name):
    _, _, prepared = prepared_for(name)
    folds = folds_of(prepared, 4)
    together = formulation_of_folds(prepared, folds, [3, 1])
    assert together.n_folds == 2
    for k, fold in enumerate([3, 1]):
        weight = folds.train_weight(fold)
        kept = np.flatnonzero(weight)
        alone = prepared.task.formulate(prepared.targets[kept], weight[kept])
        own = together.variables_of_fold(k)
        assert np.array_equal(together.problem.rows[own], kept[alone.problem.rows])
        assert np.array_equal(together.problem.upper[own], alone.problem.upper)
        assert np.array_equal(together.problem.linear[own], alone.problem.linear)
        assert np.array_equal(together.alpha[own], alone.alpha)
        parts = Subproblems.of_folds(together, [k])
        assert np.array_equal(parts.members, own)
        assert np.array_equal(parts.start, alone.start)


def test_a_pair_of_which_a_fold_lacks_a_class_is_empty():
    _, _, prepared = prepared_for("c_svc")
    without = np.where(prepared.targets == 1, 0, prepared.sample_weight)
    weights = [without, prepared.sample_weight]
    both = in_folds(prepared.task.formulate, prepared.targets, weights)
    assert np.flatnonzero(np.diff(both.start) == 0).tolist() == [0, 2]
    assert [len(Subproblems.of_folds(both, [k]).sizes) for k in (0, 1)] == [1, 3]


def test_entries_say_what_each_fold_holds_out():
    fold, row = np.array([0, 1, 1, 0, 1, 0]), np.array([2, 2, 0, 1, 2, 1])
    folds = Folds.of(2, fold, row, np.array([1.0, 1, 1, 1, 0.5, 1]))
    assert folds.counts.tolist() == [2, 1, 1, 2]
    assert folds.weight.tolist() == [2, 1, 1, 1.5]
    assert np.array_equal(folds.fold[folds.entry], fold)
    assert np.array_equal(folds.row[folds.entry], row)
    assert folds.train_weight(0).tolist() == [1, 0, 1.5]
    assert folds.train_weight(1).tolist() == [0, 2, 1]
    assert folds.n_held([1]) == 3
    learns = folds.learns(np.array([0, 1, 2, 1])[folds.row], 3)
    assert learns.tolist() == [[True, False, True], [False, True, True]]


@pytest.mark.parametrize("name", TYPES)
def test_held_out_values_are_those_of_a_model_of_the_other_rows(name):
    X, y, prepared = prepared_for(name)
    folds = folds_of(prepared, 3)
    run = Run(prepared, formulation=formulation_of_folds(prepared, folds, [2, 0]))
    improve(run)
    n_rows = 0
    for entries, values in held_out_values(run.solver, folds, [2, 0]):
        n_rows += len(values)
        fold = folds.fold[entries][0]
        held = folds.fold[folds.entry] == fold
        model, _ = train_rows(Rows.from_array(X[~held]), y[~held], prepared.options)
        wanted = model.decision_function(X[held]).reshape(np.count_nonzero(held), -1)
        found = values[folds.entry[held] - entries.start]
        if len(model.labels):  # the order of pairs follows the order of classes
            order = [prepared.task.labels.tolist().index(label) for label in model.labels]
            if order != sorted(order):
                continue
        assert np.allclose(found, wanted, atol=2e-4)
    assert n_rows == np.count_nonzero((folds.fold == 0) | (folds.fold == 2))


@pytest.mark.parametrize("name", [name for name in TYPES if name != "one_class"])
def test_folds_end_in_the_same_values_wherever_they_start(name):
    _, _, prepared = prepared_for(name)
    whole = Run(prepared)
    improve(whole)
    folds = folds_of(prepared, 5)
    formulation = formulation_of_folds(prepared, folds, range(5))
    found = []
    variables = variables_of_folds(whole.solver, folds, range(5), formulation)
    for start in (
        formulation.alpha,
        alpha_without_held_out(whole.solver, variables, formulation),
    ):
        solver = FormulationSolver(prepared, formulation=formulation)
        solver.begin_with(start.copy())
        check_feasible(formulation, start)
        solver.extend_gradient()
        conquer(solver)
        found.append(np.concatenate([v for _, v in held_out_values(solver, folds, range(5))]))
    assert np.allclose(*found, atol=2e-4)


@pytest.mark.parametrize("name", [name for name in TYPES if name != "one_class"])
@pytest.mark.parametrize("C", [0.5, 300.0])
def test_a_start_is_good_if_its_objective_is_low(monkeypatch, name, C):
    X, y = rows_and_labels(n_classes=2)
    options = TrainOptions(**OPTIONS | TYPES[name] | {"C": C})
    prepared = prepare_rows(Rows.from_array(X), y, options)
    whole = Run(prepared)
    improve(whole)
    folds = folds_of(prepared, 5)
    formulation = formulation_of_folds(prepared, folds, range(5))
    variables = variables_of_folds(whole.solver, folds, range(5), formulation)
    alpha = alpha_without_held_out(whole.solver, variables, formulation)
    objectives = []
    for problem, values in (
        (whole.solver.problem, whole.solver.alpha),
        *((formulation.problem.part(part), alpha[part]) for part in formulation.parts()),
    ):
        points = prepared.data.rows.features[problem.rows].astype(np.float64)
        K = np.exp(-2.0 * np.sum((points[:, None] - points[None]) ** 2, axis=2))
        objectives.append(0.5 * values @ K @ values - problem.linear @ values)
    loss = (sum(objectives[1:]) / 5 - objectives[0]) / abs(objectives[0])
    for limit in (loss - 1e-3, loss + 1e-3):
        monkeypatch.setattr(probability, "MAX_LOSS", limit)
        assert is_good_start(whole.solver, variables, alpha) == (limit > loss)


def check_feasible(formulation, alpha):
    problem = formulation.problem
    assert np.all((alpha >= problem.lower) & (alpha <= problem.upper))
    for part in formulation.parts():
        for number in range(problem.n_constraints):
            own = part.start + np.flatnonzero(problem.constraint_of[part] == number)
            assert alpha[own].sum() == pytest.approx(formulation.alpha[own].sum(), abs=1e-9)


def test_a_row_without_others_of_its_class_is_held_out_as_sure_to_be_of_the_other(monkeypatch):
    X, y = rows_and_labels(repeats=0)
    y[7] = 5.0
    fit, seen = probability.fit_sigmoid, []

    def noted(values, is_first, *rest, **how):
        seen.append((values, is_first))
        return fit(values, is_first, *rest, **how)

    monkeypatch.setattr(probability, "fit_sigmoid", noted)
    options = TrainOptions(**OPTIONS, probability=True)
    model, _ = train_rows(Rows.from_array(X), y, options)
    alone = model.labels.tolist().index(5.0)
    for (first, second), (values, is_first) in zip(pairs_of(4), seen, strict=True):
        if alone in (first, second):
            own = is_first == (first == alone)
            assert values[own].tolist() == [1.0 if second == alone else -1.0]
    assert np.all(np.isfinite([model.probability.A, model.probability.B]))


def test_probabilities_of_folds_do_not_depend_on_threads():
    found = []
    for threads in (1, 3):
        X, y = rows_and_labels()
        options = TrainOptions(**OPTIONS | {"threads": threads, "probability": True})
        found.append(train_rows(Rows.from_array(X), y, options)[0].probability)
    assert np.array_equal(found[0].A, found[1].A)
    assert np.array_equal(found[0].B, found[1].B)


def seen_values(monkeypatch, X, y, **options):
    """Train with probabilities; return them with the decision values that they are fitted to."""
    seen = []
    monkeypatch.setattr(
        probability,
        "_fit",
        lambda run, folds, values, fit=_fit: seen.append(values) or fit(run, folds, values),
    )
    model, _ = train_rows(
        Rows.from_array(X), y, TrainOptions(**OPTIONS | options, probability=True)
    )
    return model.probability, seen[0]


@pytest.mark.parametrize("name", [name for name in TYPES if name != "one_class"])
@pytest.mark.parametrize("n_classes", [2, 4])
def test_kernel_matrices_in_memory_give_the_values_of_the_folds(monkeypatch, name, n_classes):
    X, y = rows_and_labels(n_classes=n_classes)
    one, in_memory = seen_values(monkeypatch, X, y, **TYPES[name])
    monkeypatch.setattr(probability, "MAX_IN_MEMORY", 0)
    other, by_folds = seen_values(monkeypatch, X, y, **TYPES[name])
    own = ~np.isnan(in_memory)
    assert (
        own.all(axis=0).tolist() == [n_classes == 2 or name not in ("c_svc", "bias")] * own.shape[1]
    )
    assert np.allclose(in_memory[own], by_folds[own], atol=1e-4)
    assert np.allclose(one.A, other.A, rtol=1e-3)


@pytest.mark.parametrize(
    "limits", [{"max_iterations": 10**6}, {"gap": 1e-6}, {"early": True, "levels": 1}]
)
def test_folds_with_a_limit_are_solved_like_the_run(monkeypatch, limits):
    def unwanted(*_):
        raise AssertionError

    X, y = rows_and_labels(n=1900, n_classes=2)
    monkeypatch.setattr(probability, "_hold_out_in_memory", unwanted)
    assert seen_values(monkeypatch, X, y, **limits)[0].A.shape == (1,)


@pytest.mark.parametrize(("C", "is_checked"), [(4.0, False), (1e7, True)])
def test_folds_are_checked_if_all_rows_needed_float64(monkeypatch, C, is_checked):
    X, y = rows_and_labels(n_classes=2)
    checks = []
    check = FormulationSolver.exact_gradients
    monkeypatch.setattr(
        FormulationSolver,
        "exact_gradients",
        lambda solver, *rest: checks.append(solver.formulation.n_folds) or check(solver, *rest),
    )
    monkeypatch.setattr(probability, "MAX_IN_MEMORY", 0)
    seen_values(monkeypatch, X, y, C=C, tolerance=1e-4)
    assert (5 in checks) == is_checked
