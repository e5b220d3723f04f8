"""Test estimators on columns that float32 rounds away: as scikit-learn's on centred columns."""

import pickle
import warnings

import numpy as np
import pytest

pandas = pytest.importorskip("pandas")
pytest.importorskip("sklearn")
import sklearn.svm  # noqa: E402
from scipy import sparse  # noqa: E402
from sklearn.base import clone  # noqa: E402

from dcsvm.sklearn import (  # noqa: E402
    SVC,
    SVCCV,
    SVR,
    AutoSVC,
    NuSVC,
    OneClassSVM,
    from_sklearn,
    load,
)


@pytest.fixture(autouse=True)
def _no_warnings():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        yield


@pytest.fixture(scope="module")
def made():
    """Coordinates in metres, whether they are in a circle, and the coordinates centred."""
    X = [500000, 4649776] + np.random.default_rng(0).uniform(0, 2, (300, 2))
    return X, np.where(np.hypot(*(X - [500001, 4649777]).T) < 0.8, 1, -1), X - X.mean(axis=0)


FORMS = {"array": np.asarray, "sparse": sparse.csr_matrix, "frame": pandas.DataFrame}


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize(
    ("ours", "theirs", "params"),
    [
        (SVC, sklearn.svm.SVC, {"C": 10.0}),
        (NuSVC, sklearn.svm.NuSVC, {"nu": 0.2}),
        (SVR, sklearn.svm.SVR, {"C": 10.0}),
        (OneClassSVM, sklearn.svm.OneClassSVM, {"nu": 0.2}),
    ],
)
def test_an_estimator_is_as_on_centred_rows(made, form, ours, theirs, params, tmp_path):
    X, y, centred = made
    wanted = theirs(gamma=2.0, tol=1e-6, **params).fit(centred, y)
    given = FORMS[form](X)
    fitted = ours(gamma=2.0, tol=1e-6, **params).fit(given, y)
    name = "predict" if ours is SVR else "decision_function"
    values = getattr(wanted, name)(centred)
    assert getattr(fitted, name)(given) == pytest.approx(values, abs=1e-3)
    # the vectors are those of the user, also of loaded estimators, and scikit-learn's predict
    vectors = fitted.support_vectors_
    assert np.array_equal(vectors.toarray() if form == "sparse" else vectors, X[fitted.support_])
    theirs_too = fitted.to_sklearn()
    assert getattr(theirs_too, name)(given) == pytest.approx(values, abs=1e-3)
    fitted.save(tmp_path / "a.model")
    again = load(tmp_path / "a.model")
    assert again.support_vectors_ == pytest.approx(X[fitted.support_], rel=1e-12)
    for one in (again, pickle.loads(pickle.dumps(fitted)), from_sklearn(theirs_too)):
        found = getattr(one, name)(FORMS[form](X) if one is not again else X)
        assert found == pytest.approx(values, abs=1e-3)
    assert np.array_equal(fitted.predict(given)[:1], fitted.predict(given[:1]))


def test_columns_of_text_and_gaps_stand_beside_shifted_ones(made):
    X, y, _ = made
    frame = pandas.DataFrame(X, columns=["east", "north"]).assign(kind=np.where(y > 0, "a", "b"))
    frame.loc[3, "east"] = np.nan
    fitted = SVC(gamma=2.0, C=10).fit(frame, y)
    assert fitted.score(frame, y) == 1
    known = fitted.support_ != 3
    wanted = X[fitted.support_[known]]
    assert fitted.support_vectors_[known][:, [0, 2]] == pytest.approx(wanted, abs=2e-7)


def test_default_gamma_is_that_of_the_differences(made):
    X, y, _ = made
    fitted = SVC(C=100).fit(X, y)
    assert fitted._gamma == pytest.approx(1 / (2 * np.var(X - X.min(axis=0))), rel=1e-5)
    assert fitted.score(X, y) > 0.98


def test_searches_shift_the_rows(made):
    X, y, _ = made
    assert SVCCV(Cs=[1.0, 10.0], gammas=[0.5, 2.0], cv=3).fit(X, y).best_score_ > 0.95
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert AutoSVC(time_limit=3).fit(X, y).score(X, y) > 0.95


def test_a_warm_start_keeps_the_shift(made):
    X, y, _ = made
    order = np.argsort(-X[:, 0])
    X, y = X[order], y[order]
    fitted = SVC(gamma=2.0, warm_start=True).fit(X[:250], y[:250])
    first = fitted.model_.scaling
    assert fitted.fit(X, y).model_.scaling is first
    cold = clone(fitted).set_params(warm_start=False).fit(X, y)
    assert fitted.decision_function(X) == pytest.approx(cold.decision_function(X), abs=0.01)


def test_nanoseconds_are_no_error():
    X = 1.5e18 + 1e9 * np.arange(100.0)[:, None]
    y = np.arange(100) // 50
    assert SVC().fit(X, y).score(X, y) == 1
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with pytest.raises(ValueError, match="squares of features of 2e[+]18"):
            SVC(kernel="linear").fit(X, y)


@pytest.mark.parametrize("kernel", ["linear", "poly", "sigmoid"])
def test_other_kernels_warn(made, kernel):
    X, y, _ = made
    with pytest.warns(UserWarning, match=r"feature 0 \(1 more alike\) is rounded to float32"):
        SVC(kernel=kernel, C=1e-9, gamma=1e-14).fit(X, y)
