"""Test cross-validation: each row is predicted only by models trained without it."""

import warnings
from dataclasses import replace
from functools import partial

import numpy as np
import pytest
from reference import kernel_values, spots, surface
from runs import cross_validate, train_rows
from scipy.sparse import csr_matrix

from dcsvm.data.rows import Rows
from dcsvm.kernel import row_components
from dcsvm.kernel.cluster_tree import Tree
from dcsvm.problem import folds
from dcsvm.problem.folds import shuffled_folds, stratified_folds
from dcsvm.problem.options import TrainOptions
from dcsvm.training import probability as cross_validation
from dcsvm.training.engine import prepare_rows
from dcsvm.training.held_out import folds_of
from dcsvm.training.probability import CrossValidationRun
from dcsvm.training.report import Progress

OPTIONS = TrainOptions(C=4.0, gamma=2.0, threads=1, cache_mb=50, seed=3)
PRECISE = replace(OPTIONS, tolerance=1e-6)


def refitted(rows, labels, options, n_folds):
    """Predict each fold by a model trained on the other rows alone."""
    if options.svm_type in ("c_svc", "nu_svc"):
        fold = stratified_folds(labels, n_folds, options.seed)
    else:
        fold = shuffled_folds(len(labels), n_folds, options.seed)
    predicted = np.empty(len(labels))
    for k in range(n_folds):
        others, own = np.flatnonzero(fold != k), np.flatnonzero(fold == k)
        model, _ = train_rows(rows.take(others), labels[others], options)
        predicted[own] = model.predict(rows.take(own))
    return predicted


CLASSIFIERS = {
    "c_svc": {},
    "bias": {"bias": True},
    "weights": {"class_weight": {1.0: 3.0}},
    "levels": {"levels": 2, "branching": 2},
    "levels with bias": {"levels": 1, "branching": 2, "bias": True},
    "kmeans": {"levels": 1, "branching": 2, "clustering": "kmeans"},
    "nu_svc": {"svm_type": "nu_svc", "nu": 0.3},
    "one_class": {"svm_type": "one_class", "nu": 0.3},
    "linear": {"kernel": "linear"},
    "polynomial": {"kernel": "polynomial", "degree": 2, "coef0": 1.0},
    "sigmoid": {"kernel": "sigmoid", "gamma": 0.01},
    "gap": {"gap": 1e-7},
}  # fmt: skip


@pytest.mark.parametrize("n_classes", [2, 4])
@pytest.mark.parametrize("name", CLASSIFIERS)
def test_a_fold_is_predicted_as_by_a_model_of_the_others(name, n_classes):
    X, y = spots(300, n_classes, seed=1, repeats=60)
    rows, options = Rows.from_array(X), replace(PRECISE, **CLASSIFIERS[name])
    predicted = cross_validate(rows, y, options, 3)
    assert np.count_nonzero(predicted != refitted(rows, y, options, 3)) <= 1


@pytest.mark.parametrize("repeats", [0, 80])
@pytest.mark.parametrize("chosen", [{"svm_type": "epsilon_svr", "levels": 1, "branching": 2},
                                    {"svm_type": "nu_svr", "nu": 0.4}])  # fmt: skip
def test_a_regression_is_as_one_of_the_others(chosen, repeats):
    X, y = surface(300, repeats=repeats)
    rows, options = Rows.from_array(X), replace(PRECISE, epsilon=0.05, **chosen)
    predicted = cross_validate(rows, y, options, 4)
    assert np.allclose(predicted, refitted(rows, y, options, 4), atol=2e-5)


def test_rows_of_a_precomputed_kernel_are_held_out_too():
    X, y = spots(200, 3, seed=2)
    K = kernel_values(("rbf", 2.0, 0, 0), X, X)
    options = replace(PRECISE, kernel="precomputed")
    predicted = cross_validate(Rows.from_array(K), y, options, 4)
    assert np.mean(predicted == cross_validate(Rows.from_array(X), y, PRECISE, 4)) > 0.99


def test_sparse_rows_are_held_out_too():
    rng = np.random.default_rng(0)
    X = csr_matrix(rng.random((300, 300)) * (rng.random((300, 300)) < 0.02))
    y = np.where(np.asarray(X[:, :150].sum(axis=1)).ravel() > 1.5, 1.0, -1.0)
    rows = Rows.from_array(X)
    assert not rows.is_dense
    predicted = cross_validate(rows, y, PRECISE, 5)
    assert np.count_nonzero(predicted != refitted(rows, y, PRECISE, 5)) <= 1


def test_independent_groups_are_held_out_too(monkeypatch):
    monkeypatch.setattr(row_components, "MIN_COMPONENT", 200)
    rng = np.random.default_rng(1)
    X = (10 * rng.integers(0, 3, (2400, 1)) + rng.random((2400, 2))).astype(np.float32)
    y = np.where(np.sin(6 * X).sum(axis=1) + 0.5 * rng.standard_normal(2400) > 0, 1.0, -1.0)
    rows = Rows.from_array(X)
    for chosen in ({}, {"bias": True}, {"levels": 1}):
        options = replace(PRECISE, gamma=8.0, **chosen)
        predicted = cross_validate(rows, y, options, 3)
        assert np.count_nonzero(predicted != refitted(rows, y, options, 3)) <= 2


@pytest.mark.parametrize("chosen", [{}, {"bias": True}, {"svm_type": "epsilon_svr"}])
def test_early_models_predict_where_only_they_are_wanted(chosen):
    X, y = spots(900, 3, seed=4)
    if chosen.get("svm_type"):
        X, y = surface(900)
    options = replace(OPTIONS, early=True, levels=1, branching=3, epsilon=0.05, **chosen)
    rows = Rows.from_array(X)
    predicted, wanted = cross_validate(rows, y, options, 3), refitted(rows, y, options, 3)
    if chosen.get("svm_type"):
        assert np.mean((predicted - y) ** 2) < 1.5 * np.mean((wanted - y) ** 2)
    else:
        assert abs(np.mean(predicted == y) - np.mean(wanted == y)) < 0.03


def test_labels_of_held_out_rows_change_nothing(monkeypatch):
    """They do not even change the start of a fold, which would change the last bits."""
    fold = shuffled_folds(900, 3, OPTIONS.seed)
    monkeypatch.setattr(folds, "stratified_folds", lambda *_: fold)
    own = fold == 1
    X, y = spots(900, 2, seed=5)
    turned = np.where(own & (np.arange(900) > 10), 1 - y, y)
    for chosen in ({}, {"levels": 2, "branching": 2}, {"bias": True}, {"early": True, "levels": 1}):
        options = replace(OPTIONS, **chosen)
        rows = Rows.from_array(X)
        predicted = [cross_validate(rows, labels, options, 3)[own] for labels in (y, turned)]
        assert np.array_equal(*predicted)
    X, y = surface(900)
    values = [
        cross_validate(Rows.from_array(X), y + 9.0 * shift * own,
                       replace(OPTIONS, svm_type="epsilon_svr", levels=1), 3)[own]
        for shift in (0, 1)
    ]  # fmt: skip
    assert np.array_equal(*values)


def test_labels_without_meaning_are_not_predicted():
    rng = np.random.default_rng(1)
    rows, labels = Rows.from_array(rng.standard_normal((200, 3))), rng.integers(0, 2, 200) * 1.0
    assert 0.35 < np.mean(cross_validate(rows, labels, OPTIONS, 10) == labels) < 0.65


@pytest.mark.parametrize("chosen", [{}, {"bias": True}, {"svm_type": "nu_svc", "nu": 0.1}])
def test_a_class_of_one_row_is_never_predicted_for_it(chosen):
    rows = Rows.from_array(np.arange(10.0).reshape(10, 1))
    for labels in (np.array([1.0] * 9 + [2.0]), np.array([1.0] * 5 + [2.0] * 4 + [3.0])):
        options = replace(OPTIONS, **chosen)
        assert cross_validate(rows, labels, options, 10)[9] == labels[8]


def test_the_only_class_is_predicted():
    rows = Rows.from_array(np.arange(6.0).reshape(6, 1))
    assert cross_validate(rows, np.full(6, 7.0), OPTIONS, 3).tolist() == [7.0] * 6
    assert cross_validate(rows.take([0, 1]), np.array([7.0, 8.0]), OPTIONS, 2).tolist() == [
        8.0,
        7.0,
    ]


@pytest.mark.parametrize("n_folds", [7, 60])
def test_folds_in_batches_are_the_same_folds(monkeypatch, n_folds):
    X, y = spots(60, 2, seed=6)
    rows = Rows.from_array(X)
    together = cross_validate(rows, y, PRECISE, n_folds)
    batches = []
    kept = cross_validation.formulation_of_folds

    def counted(prepared, folds, some):
        batches.append(len(some))
        return kept(prepared, folds, some)

    monkeypatch.setattr(cross_validation, "formulation_of_folds", counted)
    monkeypatch.setattr(cross_validation, "BATCH_VARIABLES", 1)
    assert np.array_equal(cross_validate(rows, y, PRECISE, n_folds), together)
    assert sum(batches) == n_folds
    assert 2 <= len(batches) <= n_folds / 3


def test_folds_have_their_clusterings_in_common(monkeypatch):
    X, y = spots(900, 2, seed=7)
    calls = []
    kept = Tree.grow
    monkeypatch.setattr(Tree, "grow", lambda *a, **k: calls.append(a[1]) or kept(*a, **k))
    monkeypatch.setattr(cross_validation, "BATCH_VARIABLES", 1)
    cross_validate(Rows.from_array(X), y, replace(OPTIONS, levels=2, branching=2), 9)
    assert calls == [2, 4]


def test_folds_have_the_clusterings_by_which_the_early_level_was_chosen(monkeypatch):
    X, y = spots(1500, 2, seed=4)
    options = TrainOptions(C=10.0, gamma=5.0, early=True, branching=2, threads=1, seed=3)
    options = replace(options, early_level="auto")
    rows, calls, kept = Rows.from_array(X), [], Tree.grow
    monkeypatch.setattr(Tree, "grow", lambda *a, **k: calls.append(a[1]) or kept(*a, **k))
    predicted = cross_validate(rows, y, options, 4)
    assert calls == [2, 4, 8]
    monkeypatch.setattr(
        cross_validation, "CrossValidationRun", partial(fresh_tree, CrossValidationRun)
    )
    assert np.array_equal(cross_validate(rows, y, options, 4), predicted)
    assert len(calls) > 6


def fresh_tree(kind, *what, tree):
    """Make a run that does not get the known tree of clusters."""
    assert tree is not None
    return kind(*what)


@pytest.mark.parametrize("svm_type", ["c_svc", "nu_svc", "one_class", "epsilon_svr", "nu_svr"])
def test_any_number_of_threads_gives_the_same_bits(svm_type):
    X, y = surface(700, repeats=50) if svm_type.endswith("svr") else spots(700, 3, repeats=50)
    rows = Rows.from_array(X)
    options = replace(OPTIONS, svm_type=svm_type, levels=1, branching=2, nu=0.5)
    predicted = [cross_validate(rows, y, replace(options, threads=n), 5) for n in (1, 2, 5)]
    assert np.array_equal(predicted[0], predicted[1])
    assert np.array_equal(predicted[0], predicted[2])


def test_folds_that_did_not_converge_are_a_warning(wavy):
    rows, labels = Rows.from_array(wavy[0]), wavy[1]
    options = TrainOptions(C=4.0, gamma=2.0, threads=1, cache_mb=50, max_iterations=5)
    for levels, early in ((0, False), (1, False), (1, True)):
        with pytest.warns(UserWarning, match="2 of 2 folds did not converge"):
            cross_validate(rows, labels, replace(options, levels=levels, early=early), 2)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        cross_validate(rows, labels, OPTIONS, 2)


def test_a_fold_without_a_margin_or_with_too_few_rows_for_nu_is_refused():
    rows = Rows.from_array(np.zeros((50, 2)))
    options = replace(OPTIONS, svm_type="nu_svc")
    with pytest.raises(ValueError, match="no margin between two classes"):
        cross_validate(rows, np.arange(50) % 2.0, options, 5)
    labels = np.where(np.arange(50) < 10, 1.0, 2.0)
    with pytest.raises(ValueError, match="nu is infeasible"):
        cross_validate(rows, labels, options, 5)


class Recorded(Progress):
    def __init__(self):
        self.names, self.done = [], []

    def begin(self, name, n_rows):
        self.names.append((name, n_rows))

    def advance(self, rows_done, violation, n_active):
        self.done.append(rows_done)

    def end(self, name, seconds, n_sv=None):
        self.names.append((name, n_sv))


def test_progress_is_that_of_one_phase(monkeypatch):
    monkeypatch.setattr(cross_validation, "BATCH_VARIABLES", 1)
    X, y = spots(600, 2, seed=8)
    progress = Recorded()
    cross_validate(Rows.from_array(X), y, replace(OPTIONS, levels=1), 10, progress)
    assert [name for name, _ in progress.names] == ["cross validation"] * 2
    assert progress.names[0][1] == 600
    assert progress.done == sorted(progress.done)
    assert len(set(progress.done)) > 5
    assert progress.done[-1] == 600


def test_support_vectors_are_counted_as_those_of_the_models():
    X, y = spots(300, 3, seed=9, repeats=100)
    rows = Rows.from_array(X)
    prepared = prepare_rows(rows, y, PRECISE)
    held = CrossValidationRun(prepared, folds_of(prepared, 3), Progress())
    for some in held.batches(held.open):
        held.solve(some)
    fold = stratified_folds(y, 3, PRECISE.seed)
    n_sv = 0
    for k in range(3):
        others = np.flatnonzero(fold != k)
        n_sv += train_rows(rows.take(others), y[others], PRECISE)[1].n_sv
    assert held.n_sv == pytest.approx(n_sv, rel=0.02)
