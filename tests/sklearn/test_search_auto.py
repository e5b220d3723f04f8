"""Test AutoSVC and AutoSVR, which choose their settings."""

import numpy as np
import pytest

sklearn = pytest.importorskip("sklearn", minversion="1.6")

from sklearn.base import clone  # noqa: E402
from sklearn.model_selection import cross_val_score  # noqa: E402
from sklearn.pipeline import make_pipeline  # noqa: E402
from sklearn.preprocessing import StandardScaler  # noqa: E402
from sklearn.utils.estimator_checks import parametrize_with_checks  # noqa: E402

from dcsvm.sklearn import AutoSVC, AutoSVR  # noqa: E402

LIMIT = 20.0  # seconds, which a search of these few rows does not need: fits are repeatable


FOLDS_DIFFER = "folds are drawn by rows: copies of a row are in other folds than a row of weight 2"


def reasons_to_fail(_estimator):
    names = ("dense", "sparse")
    return {f"check_sample_weight_equivalence_on_{name}_data": FOLDS_DIFFER for name in names}


@pytest.mark.filterwarnings("ignore")
@parametrize_with_checks(
    [AutoSVC(time_limit=LIMIT), AutoSVR(time_limit=LIMIT)], expected_failed_checks=reasons_to_fail
)
def test_every_check_of_an_estimator_passes(estimator, check):
    check(estimator)


@pytest.fixture(scope="module")
def product():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 4))
    return X, X[:, 0] * X[:, 1]


def test_the_estimators_work_in_pipelines_and_folds(product):
    X, y = product
    labels = np.where(y > 0, "yes", "no")
    piped = make_pipeline(StandardScaler(), AutoSVC(time_limit=20, random_state=0))
    assert cross_val_score(piped, X, labels, cv=2).mean() > 0.7
    fitted = clone(AutoSVR(time_limit=20, metric="mae")).fit(X, y)
    assert fitted.score(X, y) > 0.8
    assert fitted.selection_["metric"] == "mae"


def test_scores_and_probabilities_agree_with_the_labels(product):
    X, y = product
    labels = np.digitize(y, [-0.5, 0.5])
    for classes in (y > 0, labels):
        fitted = AutoSVC(time_limit=20, probability=True, random_state=0).fit(X, classes)
        proba = fitted.predict_proba(X)
        assert proba.sum(axis=1) == pytest.approx(1)
        agree = fitted.classes_[proba.argmax(axis=1)] == fitted.predict(X)
        assert agree.mean() > 0.9
        values = fitted.decision_function(X)
        best = values > 0 if values.ndim == 1 else values.argmax(axis=1)
        assert np.mean(fitted.classes_[np.asarray(best, int)] == fitted.predict(X)) == 1
    assert not hasattr(AutoSVC(), "predict_proba")


def test_data_frames_may_have_text_and_missing_values(product):
    pandas = pytest.importorskip("pandas")
    X, y = product
    table = pandas.DataFrame(X, columns=list("abcd"))
    table["sign"] = np.where(X[:, 0] > 0, "plus", "minus")
    table.loc[3, "b"] = np.nan
    fitted = AutoSVC(time_limit=20, random_state=0).fit(table, y > 0)
    assert fitted.feature_names_in_.tolist() == list(table.columns)
    assert fitted.score(table, y > 0) > 0.8
    with pytest.raises(ValueError, match="feature names"):
        fitted.predict(table.rename(columns={"a": "z"}))
