"""Test training with gamma relative to the rows: everything is as with the number that it is."""

import warnings

import numpy as np
import pytest
from runs import cross_validate
from scipy import sparse

import dcsvm
from dcsvm import Checkpoint
from dcsvm.data.rows import Rows
from dcsvm.kernel.kernels import KERNEL_TYPES
from dcsvm.problem.options import TrainOptions

FORMS = {"auto": "auto", "median": "1.5/median"}


def model_bytes(model, tmp_path):
    model.save(tmp_path / "one.model")
    return (tmp_path / "one.model").read_bytes()


@pytest.mark.parametrize("gamma", FORMS.values(), ids=FORMS)
@pytest.mark.parametrize(
    "options",
    [
        {"levels": 1, "early_level": 1},
        {"bias": True},
        *({"kernel": one.name} for one in KERNEL_TYPES if one.is_of_distance),
        {"early": True, "levels": 1},
        {"probability": True},
        {"svm_type": "nu_svc"},
    ],
    ids=str,
)
def test_a_model_has_the_bits_of_the_number(gamma, options, wavy, tmp_path):
    X, y = wavy
    model = dcsvm.train(X, y, C=3, gamma=gamma, threads=1, **options)
    assert model.report.gamma == model.kernel.gamma > 0
    again = dcsvm.train(X, y, C=3, gamma=model.kernel.gamma, threads=1, **options)
    assert model_bytes(model, tmp_path) == model_bytes(again, tmp_path)


def test_a_kernel_without_gamma_has_none_in_the_report(wavy):
    X, y = wavy
    assert dcsvm.train(X, y, kernel="linear", gamma="auto").report.gamma is None


@pytest.mark.parametrize("gamma", FORMS.values(), ids=FORMS)
def test_weights_and_order_of_labels_change_nothing(gamma, wavy):
    X, y = wavy
    weights = np.arange(len(y)) % 3
    expected = dcsvm.train(X, y, gamma=gamma).kernel
    assert dcsvm.train(X, -y, gamma=gamma, sample_weight=weights).kernel == expected


@pytest.mark.parametrize("gamma", FORMS.values(), ids=FORMS)
def test_indices_far_apart_are_features_of_zeros(gamma):
    rng = np.random.default_rng(0)
    X = sparse.random(300, 2000, 0.01, "csr", np.float32, random_state=rng)
    y = np.where(X[:, :1000].sum(axis=1).A1 > 2.5, 1.0, -1.0)
    wide = sparse.csr_matrix((X.data, X.indices, X.indptr), (300, 10**8))
    found = dcsvm.train(wide, y, gamma=gamma).kernel.gamma
    expected = dcsvm.train(X, y, gamma=gamma).kernel.gamma
    if gamma == "auto":  # n_features times the variance is the mean of |x|^2, less a small term
        expected = 1 / X.multiply(X).sum(axis=1).mean()
    assert found == pytest.approx(expected, rel=1e-6)


@pytest.mark.parametrize("gamma", FORMS.values(), ids=FORMS)
@pytest.mark.parametrize("early", [False, True])
def test_folds_have_the_gamma_of_all_rows(gamma, early, wavy):
    X, y = wavy
    number = dcsvm.train(X, y, gamma=gamma).kernel.gamma
    options = {"C": 3.0, "threads": 1, "early": early, "branching": 2}
    found, expected = (
        cross_validate(Rows.from_array(X.copy()), y, TrainOptions(gamma=one, **options), 3,
                       consume=True)
        for one in (gamma, number)
    )  # fmt: skip
    assert np.array_equal(found, expected)


@pytest.mark.parametrize("gamma", FORMS.values(), ids=FORMS)
def test_a_resumed_run_has_the_same_number(gamma, wavy, tmp_path):
    X, y = wavy
    folder = tmp_path / "run"
    options = {"C": 30, "threads": 1, "tolerance": 1e-5, "levels": 1, "branching": 2}
    stop = dcsvm.Stop()

    class StopInConquer(dcsvm.Progress):
        def begin(self, name, n_rows):
            if name == "conquer":
                stop.request()

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        dcsvm.train(X, y, gamma=gamma, checkpoint=Checkpoint(folder), stop=stop,
                    progress=StopInConquer(), **options)  # fmt: skip
    with pytest.raises(ValueError, match="the checkpoint is of a run with gamma "):
        dcsvm.train(X, y, gamma=99, checkpoint=Checkpoint(folder, resume=True), **options)
    resumed = dcsvm.train(X, y, gamma=gamma, checkpoint=Checkpoint(folder, resume=True), **options)
    whole = dcsvm.train(X, y, gamma=gamma, **options)
    assert resumed.kernel == whole.kernel and resumed.report.converged
    assert resumed.report.objective == pytest.approx(whole.report.objective, rel=1e-6)


def test_a_warm_start_takes_the_gamma_of_its_own_rows(wavy):
    X, y = wavy
    first = dcsvm.train(X[:500], y[:500], gamma="2/median")
    model = dcsvm.train(X, y, gamma="2/median", init_model=first)
    assert model.kernel == dcsvm.train(X, y, gamma="2/median").kernel != first.kernel


def test_a_precomputed_kernel_has_no_median(wavy):
    X, y = wavy
    with pytest.raises(ValueError, match="gamma must be a number for kernel precomputed, got '2/"):
        dcsvm.train(X @ X.T, y, kernel="precomputed", gamma="2/median")
    assert dcsvm.train(X @ X.T, y, kernel="precomputed", gamma="auto").report.gamma is None
