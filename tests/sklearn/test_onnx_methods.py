"""Test that skl2onnx converts pipelines with our estimators, without any registration."""

import pickle
import subprocess
import sys

import numpy as np
import pytest
from onnx_runs import CLOSE, close, run, session_of
from scipy import sparse
from sklearn.base import clone, is_classifier, is_regressor
from sklearn.compose import ColumnTransformer
from sklearn.exceptions import NotFittedError
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from dcsvm.sklearn import SVC, SVCCV, SVR, SVRCV, AutoSVC, AutoSVR, NuSVC, NuSVR, OneClassSVM

pandas = pytest.importorskip("pandas")
to_onnx = pytest.importorskip("skl2onnx").to_onnx

SEARCH = {"Cs": [1.0, 8.0], "gammas": [0.1, 1.0], "random_state": 0}
AUTO = {"time_limit": 4, "random_state": 0}
ESTIMATORS = [
    SVC(C=4), SVC(kernel="laplacian", gamma=0.3, scale="quantile", probability=True),
    SVC(kernel="exponential", decision_function_shape="ovo"), SVC(break_ties=True),
    SVC(early=True, early_level=1), NuSVC(nu=0.2, probability=True), SVR(C=4),
    SVR(early=True, early_level=1, feature_weights=np.arange(6.0)), NuSVR(C=4),
    OneClassSVM(nu=0.2), SVCCV(**SEARCH), SVRCV(**SEARCH), AutoSVC(**AUTO),
    AutoSVC(probability=True, **AUTO), AutoSVR(**AUTO),
]  # fmt: skip


def described(estimator):
    changed = {**estimator.get_params()}
    defaults = type(estimator)().get_params()
    told = [f"{k}={v}" for k, v in changed.items() if str(v) != str(defaults[k])]
    return f"{type(estimator).__name__}({', '.join(told)})"


def check(fitted, X, given, model, tolerance=CLOSE):
    """Compare the outputs of a converted estimator or pipeline with its own predictions."""
    found = run(session_of(model.SerializeToString()), given)
    if is_regressor(fitted):
        (values,) = found.values()
        assert list(found) == ["variable"] and values.shape == (len(X), 1)
        close(values[:, 0], fitted.predict(X), tolerance)
        return
    values = fitted.decision_function(X)
    table = values.reshape(len(X), -1)
    second = "probabilities" if hasattr(fitted, "predict_proba") else "scores"
    assert list(found) == ["label", second]
    if second == "scores":
        is_binary = is_classifier(fitted) and len(fitted.classes_) == 2
        close(found["scores"], np.c_[-table, table] if is_binary else table, tolerance)
    else:
        np.testing.assert_allclose(found[second], fitted.predict_proba(X), atol=1e-5)
    labels = found["label"]
    if not is_classifier(fitted):
        assert labels.shape == (len(X), 1)
        labels = labels[:, 0]
    # free support vectors of one-class have values of nearly 0
    sure = (np.abs(table) > 1e-3 * table.std()).all(axis=1)
    same = labels == fitted.predict(X).astype(labels.dtype)
    assert sure.mean() > 0.8 and same[sure].all()


def targets_of(estimator, y, n_classes):
    if is_regressor(estimator):
        return y + np.sin(np.arange(len(y)))
    return np.array(["low", "middle", "high"])[y % n_classes]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("kind", [np.float32, np.float64])
@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("estimator", ESTIMATORS, ids=described)
def test_a_pipeline_is_converted(estimator, n_classes, kind, three_classes):
    if n_classes == 2 and not is_classifier(estimator):
        return
    X, y = three_classes
    if getattr(estimator, "early", False):  # clusters need more rows
        X, y = np.concatenate([X, X + 0.1]), np.concatenate([y, y])
    X = X.astype(kind)
    fitted = make_pipeline(StandardScaler(), clone(estimator))
    fitted.fit(X, targets_of(estimator, y, n_classes))
    # the scaler of onnxruntime rounds to float32 in other places
    tolerance = 1e-4 if kind == np.float32 else CLOSE
    check(fitted, X, {"X": X}, to_onnx(fitted, X[:1]), tolerance)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("labels", [[False, True], [3, 7], [1.0, 2.0]])
def test_labels_are_converted(labels, three_classes):
    X, y = three_classes
    y = np.array(labels)[(y > 0).astype(int)]
    fitted = SVC().fit(X, y)
    label, _ = run(session_of(to_onnx(fitted, X[:1]).SerializeToString()), {"X": X}).values()
    assert label.dtype == np.int64
    assert np.mean(label == fitted.predict(X).astype(float)) > 0.99


@pytest.mark.parametrize("options", [{"zipmap": False}, None])
def test_options_of_classifiers_are_allowed(options, three_classes):
    X, y = three_classes
    for fitted in (SVC().fit(X, y), make_pipeline(StandardScaler(), SVC()).fit(X, y)):
        check(fitted, X, {"X": X}, to_onnx(fitted, X[:1], options=options))


def test_two_estimators_of_a_graph_have_other_names(three_classes):
    """Each must get names of its own, and the nodes that it needs before it."""
    X, y = three_classes
    first = SVR().fit(X, X[:, 0])
    scaled = ColumnTransformer([("a", StandardScaler(), [0, 1, 2]), ("b", "passthrough", [3, 4])])
    fitted = make_pipeline(scaled, SVC(kernel="laplacian", gamma=0.2)).fit(X, y)
    check(fitted, X, {"X": X}, to_onnx(fitted, X[:1]))
    check(first, X, {"X": X}, to_onnx(first, X[:1]))


@pytest.mark.parametrize("kernel", ["rbf", "laplacian", "linear", "exponential"])
def test_an_estimator_of_sparse_rows_takes_dense_rows(kernel, three_classes):
    X = sparse.random(400, 200, density=0.03, format="csr", random_state=0, dtype=np.float32)
    y = np.asarray(X.sum(axis=1)).ravel() > 3
    for early in (False, True):
        how = {"early": True, "early_level": 1, "levels": 1} if early else {}
        fitted = make_pipeline(SVC(kernel=kernel, gamma=0.5, **how)).fit(X, y)
        dense = X.toarray()
        values = fitted.decision_function(X)
        found = run(session_of(to_onnx(fitted, dense[:1]).SerializeToString()), {"X": dense})
        close(found["scores"][:, 1], values)


def frame_of(n, seed=0):
    rng = np.random.default_rng(seed)
    words = rng.choice(["red", "green", "blue"], n)
    number = rng.normal(size=n)
    frame = pandas.DataFrame(
        {
            "the number": np.where(np.arange(n) % 9 == 0, np.nan, number),
            "word": words,
            "whole": rng.integers(0, 9, n),
            "flag": rng.random(n) < 0.5,
        }
    )
    target = number + 2.0 * (words == "red") - (frame["whole"] > 4) + frame["flag"]
    return frame, target.to_numpy()


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("estimator", [SVC(), SVR(), AutoSVC(**AUTO), SVC(scale="auto")],
                         ids=described)  # fmt: skip
def test_columns_of_a_frame_are_inputs(estimator):
    X, target = frame_of(200)
    y = target if is_regressor(estimator) else (target > 1).astype(int)
    fitted = make_pipeline(clone(estimator)).fit(X, y)
    model = to_onnx(fitted, X)
    names = [one.name for one in session_of(model.SerializeToString()).get_inputs()]
    given = {name: X[[column]].to_numpy() for name, column in zip(names, X.columns, strict=True)}
    given[names[1]] = given[names[1]].astype(object)
    check(fitted, X, given, model)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("estimator", [SVC(), AutoSVC(**AUTO)], ids=described)
def test_a_frame_of_numbers_may_have_gaps_later(estimator):
    X, target = frame_of(200)
    X = X[["whole", "the number"]].fillna(0.5).astype(np.float64)
    fitted = clone(estimator).fit(X, (target > 1).astype(int))
    model, gaps = to_onnx(fitted, X), X.copy()
    gaps.loc[::7, "the number"] = np.nan
    names = [one.name for one in session_of(model.SerializeToString()).get_inputs()]
    given = {name: gaps[[column]].to_numpy() for name, column in zip(names, X.columns, strict=True)}
    check(fitted, gaps, given, model)


def test_missing_values_of_an_array_are_filled(three_classes):
    X, y = three_classes
    X = X.copy()
    X[::5, 2] = np.nan
    fitted = AutoSVC(**AUTO).fit(X, y)
    check(fitted, X, {"X": X}, to_onnx(fitted, X[:1]))


def test_a_column_transformer_encodes_text():
    X, target = frame_of(200)
    X = X[["word", "whole"]].assign(whole=X["whole"].astype(np.float32))
    encoder = ColumnTransformer(
        [("a", OneHotEncoder(), ["word"]), ("b", StandardScaler(), ["whole"])]
    )
    fitted = make_pipeline(encoder, SVC()).fit(X, (target > 1).astype(int))
    given = {"word": X[["word"]].to_numpy(object), "whole": X[["whole"]].to_numpy()}
    found = run(session_of(to_onnx(fitted, X).SerializeToString()), given)
    close(found["scores"][:, 1], fitted.decision_function(X))


def ensembles():
    from sklearn.calibration import CalibratedClassifierCV
    from sklearn.ensemble import BaggingRegressor, StackingClassifier, VotingClassifier
    from sklearn.linear_model import LogisticRegression
    from sklearn.model_selection import GridSearchCV
    from sklearn.multiclass import OneVsRestClassifier
    from sklearn.multioutput import MultiOutputRegressor

    two = [("a", SVC(probability=True)), ("b", LogisticRegression())]
    return [
        VotingClassifier(two, voting="soft", flatten_transform=False),
        VotingClassifier([("a", SVC()), two[1]], flatten_transform=False),
        StackingClassifier(two, final_estimator=SVC(kernel="laplacian")),
        BaggingRegressor(SVR(), n_estimators=2, random_state=0),
        CalibratedClassifierCV(SVC(), cv=2),
        OneVsRestClassifier(NuSVC(nu=0.2, probability=True)),
        MultiOutputRegressor(SVR()),
        GridSearchCV(SVC(), {"C": [1.0, 4.0]}),
    ]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("ensemble", ensembles(), ids=lambda one: type(one).__name__)
def test_ensembles_and_searches_of_scikit_learn_are_converted(ensemble, n_classes, three_classes):
    X, y = three_classes
    y = y % n_classes
    if is_regressor(ensemble):
        y = X[:, :2] if "Multi" in type(ensemble).__name__ else X[:, 0]
    fitted = clone(ensemble).fit(X, y)
    model = to_onnx(fitted, X[:1], options=None if is_regressor(fitted) else {"zipmap": False})
    first, *_ = run(session_of(model.SerializeToString()), {"X": X}).values()
    if is_regressor(fitted):
        close(first.reshape(y.shape), fitted.predict(X))
    else:
        assert np.mean(first == fitted.predict(X)) > 0.99


@pytest.mark.parametrize("first", ["skl2onnx", "dcsvm.sklearn"])
def test_a_loaded_ensemble_is_converted_whatever_was_imported_first(first, tmp_path, three_classes):
    X, y = three_classes
    (tmp_path / "model").write_bytes(pickle.dumps(ensembles()[0].fit(X, y)))
    code = (
        f"import {first}, pickle, sys, numpy as np\n"
        f"fitted = pickle.load(open({str(tmp_path / 'model')!r}, 'rb'))\n"
        "import skl2onnx\n"
        "skl2onnx.to_onnx(fitted, np.zeros((1, 6)), options={'zipmap': False})\n"
        "assert not any(type(one).__name__ == 'Registration' for one in sys.meta_path)\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=120)


@pytest.mark.filterwarnings("ignore")
def test_replaced_classes_are_converted(three_classes):
    X, y = three_classes
    code = (
        "import numpy as np, dcsvm.sklearn\n"
        "dcsvm.sklearn.patch()\n"
        "from sklearn.svm import SVC\n"
        "from skl2onnx import to_onnx\n"
        "X = np.random.default_rng(0).normal(size=(50, 3))\n"
        "to_onnx(SVC().fit(X, X[:, 0] > 0), X[:1], options={'zipmap': False})\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, timeout=120)


def test_only_a_conversion_imports_onnx():
    code = (
        "import sys, numpy as np, dcsvm.sklearn\n"
        "X = np.random.default_rng(0).normal(size=(50, 3))\n"
        "dcsvm.sklearn.SVC().fit(X, X[:, 0] > 0).predict(X)\n"
        "assert not {'onnx', 'skl2onnx'} & set(sys.modules)\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=120)


def test_what_cannot_be_converted_is_told(three_classes):
    X, y = three_classes
    for kernel in ("precomputed", lambda A, B: A @ B.T):
        rows = X @ X.T if kernel == "precomputed" else X
        fitted = SVC(kernel=kernel).fit(rows, y)
        with pytest.raises(ValueError, match="cannot be exported: its rows are not in it"):
            to_onnx(fitted, rows[:1])
    frame, target = frame_of(200)
    fitted = SVC().fit(frame, target > 1)
    with pytest.raises(ValueError, match="encodes text: give an input for each column"):
        to_onnx(fitted, np.zeros((1, 4), np.float32))
    with pytest.raises(ValueError, match="there is no input for the column word"):
        to_onnx(fitted, frame.rename(columns={"word": "other"}))
    with pytest.raises(NotFittedError):
        to_onnx(SVC(), X[:1])
