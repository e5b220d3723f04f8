"""Test that every door refuses what it cannot train, in the same words, before the work."""

import numpy as np
import pytest
from scipy import sparse

import dcsvm
from dcsvm.data.dataset import Dataset

pd = pytest.importorskip("pandas")

rng = np.random.default_rng(0)
X = rng.normal(size=(60, 3))
y = np.where(X[:, 0] + X[:, 1] ** 2 > 0.6, 1.0, -1.0)
WORDS = np.where(y > 0, "yes", "no")
SQUARE = X @ X.T


def by_grid(*data, **options):
    return dcsvm.grid_search(*data, Cs=[1.0], gammas=[0.5], folds=2, **options)


def by_easy(*data, **options):
    return dcsvm.easy(*data, time_limit=0.3, **options)


DOORS = dcsvm.train, by_grid, by_easy


@pytest.mark.parametrize("door", DOORS)
@pytest.mark.parametrize(
    "labels, options, reason",
    [
        (np.r_[np.nan, y[1:]], {}, "the label of row 0 is missing"),
        (np.r_[np.inf, y[1:]], {"svm_type": "epsilon_svr"}, "labels must be finite numbers"),
        (WORDS, {"svm_type": "epsilon_svr"}, "targets of a regression must be numbers"),
        (y, {"feature_weights": "foo"}, "must be an array or 'learn', got 'foo'"),
    ],
)
def test_labels_and_weights_that_cannot_be_trained(door, labels, options, reason):
    with pytest.raises(ValueError, match=reason):
        door(X, labels, **options)


@pytest.mark.parametrize("door", [dcsvm.train, by_grid])
@pytest.mark.parametrize(
    "make", [lambda K, **how: (K, y, how), lambda K, **how: (Dataset(K, y, **how), None, {})]
)
@pytest.mark.parametrize(
    "matrix, how, reason",
    [
        (SQUARE, {"scale": "auto"}, "scale needs features, not a precomputed kernel"),
        (np.where(SQUARE > 2, np.nan, SQUARE), {}, "X has words or gaps, a kernel matrix"),
        (pd.DataFrame(SQUARE).assign(word="a"), {}, "X has words or gaps"),
    ],
)  # fmt: skip
def test_kernel_matrices_that_are_none(door, make, matrix, how, reason):
    data, labels, options = make(matrix, **how)
    with pytest.raises(ValueError, match=reason):
        door(data, labels, kernel="precomputed", **options)


def test_a_kernel_matrix_may_be_a_frame_of_numbers():
    models = [dcsvm.train(K, y, kernel="precomputed") for K in (SQUARE, pd.DataFrame(SQUARE))]
    assert np.array_equal(models[0].exact.dual_coef, models[1].exact.dual_coef)


@pytest.mark.parametrize(
    "test, reason",
    [
        (Dataset(X), "test rows need labels"),
        ((X, WORDS), "labels of test rows are strings, those to train numbers"),
        (3, r"a tuple \(X, y\), a dcsvm.Dataset or None, not 3"),
    ],
)
def test_test_rows_that_cannot_be_compared(test, reason):
    with pytest.raises((ValueError, TypeError), match=reason):
        by_grid(X, y, test=test)
    with pytest.raises((ValueError, TypeError), match=reason):
        dcsvm.train(X, y, early=True, early_level="auto", test=test)


@pytest.mark.parametrize("option", ["kernel", "C", "gamma", "levels"])
def test_easy_refuses_what_it_chooses(option):
    value = {"kernel": "rbf"}.get(option, 1)
    with pytest.raises(TypeError, match=f"easy chooses {option} itself: its options are seed,"):
        dcsvm.easy(X, y, **{option: value})


@pytest.mark.parametrize("svm_type", ["nu_svc", "nu_svr", 0])
def test_easy_trains_three_types(svm_type):
    words = "svm_type must be 'c_svc' or 'epsilon_svr' or 'one_class', got"
    with pytest.raises(ValueError, match=words):
        dcsvm.easy(X, y, svm_type=svm_type)


@pytest.mark.parametrize("door", DOORS)
def test_class_weights_of_booleans(door):
    door(X, y > 0, class_weight={True: 2.0, np.False_: 1.0})


@pytest.mark.parametrize("make", [np.asarray, sparse.csr_matrix, pd.DataFrame])
def test_features_that_a_scaling_does_not_know_are_refused(make):
    wide, narrow = make(np.c_[X, X]), make(X[:, :2])
    model = dcsvm.train(make(X), y, scale="auto")
    for use in (
        lambda rows: dcsvm.train(rows, y, scale=model.scaling),
        lambda rows: Dataset(rows, y, like=dcsvm.train(X, y, scale="auto")),
        lambda rows: Dataset(rows, y).encoded_as(Dataset(X, y, scale="auto")).rows,
    ):
        with pytest.raises(ValueError, match="6 features|other columns"):
            use(wide)
        if make is np.asarray:
            with pytest.raises(ValueError, match="2 features"):
                use(narrow)
    if make is not pd.DataFrame:  # more columns of a frame are not used
        with pytest.raises(ValueError, match="6 features"):
            model.predict(wide)


def test_rows_may_lack_features_that_were_constant_in_training():
    rows = np.c_[X, np.ones(60)]
    model = dcsvm.train(rows, y, scale="auto")
    assert model.exact.rows.n_features == 3
    other = np.c_[X, np.arange(60.0)]
    assert np.array_equal(model.decision_function(other), model.decision_function(rows))


@pytest.mark.parametrize("make", [np.asarray, sparse.csr_matrix])
def test_values_are_checked_when_a_dataset_is_made(make):
    rows = X.copy()
    rows[3, 1] = np.inf
    with pytest.raises(ValueError, match="row 3, column 1"):
        Dataset(make(rows), y)
