"""Test estimators on data frames with words, categories, booleans, numbers and gaps."""

import pickle
import warnings
from decimal import Decimal

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone, is_classifier, is_regressor
from sklearn.impute import SimpleImputer
from sklearn.model_selection import cross_val_score

import dcsvm
from dcsvm.sklearn import (
    SVC,
    SVCCV,
    SVR,
    SVRCV,
    AutoSVC,
    AutoSVR,
    NuSVC,
    NuSVR,
    OneClassSVM,
    load,
)

pandas = pytest.importorskip("pandas")

N = 160
SEARCH = {"Cs": [1.0, 8.0], "gammas": [0.1, 1.0], "random_state": 0}
AUTO = {"time_limit": 60, "random_state": 0}
ESTIMATORS = [
    SVC(C=4), NuSVC(nu=0.2), SVR(C=4), NuSVR(C=4), OneClassSVM(nu=0.2), SVCCV(**SEARCH),
    SVRCV(**SEARCH), AutoSVC(**AUTO), AutoSVR(**AUTO),
]  # fmt: skip
SINGLE = ESTIMATORS[:7]
SENTENCE = "Input X contains NaN.\n{} does not accept missing values encoded as NaN natively."


def dense(X):
    return X.toarray()


def named(estimator):
    return type(estimator).__name__


@pytest.fixture(scope="module")
def table():
    """Return a frame of pandas with columns of every kind, and numbers that depend on them."""
    rng = np.random.default_rng(0)
    words = rng.choice(["red", "green", "blue"], N)
    number, whole = rng.normal(size=N), rng.integers(0, 9, N)
    flag = rng.random(N) < 0.5
    target = number + 2.0 * (words == "red") - (whole > 4) + flag
    frame = pandas.DataFrame(
        {
            "word": words,
            "kind": pandas.Categorical(rng.choice(["a", "b"], N)),
            "flag": flag,
            "whole": whole,
            "number": np.where(np.arange(N) % 9 == 0, np.nan, number),
            "text": pandas.Series(np.where(np.arange(N) % 7 == 0, None, words), dtype="object"),
        }
    )
    return frame, target


def targets_of(estimator, target):
    return np.where(target > 1, "high", "low") if is_classifier(estimator) else target


def stream_of(frame):
    """Return an object that has only Arrow's C stream."""
    pyarrow = pytest.importorskip("pyarrow")
    arrow = pyarrow.Table.from_pandas(frame, preserve_index=False)

    class Stream:
        def __arrow_c_stream__(self, requested_schema=None):
            return arrow.__arrow_c_stream__(requested_schema)

    return Stream()


def polars_of(frame):
    return pytest.importorskip("polars").from_pandas(frame)


def arrow_of(frame):
    return pytest.importorskip("pyarrow").Table.from_pandas(frame, preserve_index=False)


LIBRARIES = {"pandas": lambda frame: frame, "polars": polars_of, "arrow": arrow_of,
             "stream": stream_of}  # fmt: skip


def values(fitted, X):
    return fitted.predict(X) if is_regressor(fitted) else fitted.decision_function(X)


@pytest.mark.parametrize("library", LIBRARIES)
@pytest.mark.parametrize("estimator", ESTIMATORS, ids=named)
def test_a_frame_of_any_library_is_encoded(estimator, library, table):
    frame, target = table
    y, made = targets_of(estimator, target), LIBRARIES[library]
    fitted = clone(estimator).fit(made(frame), y)
    assert fitted.feature_names_in_.tolist() == list(frame.columns)
    assert fitted.n_features_in_ == 6 and fitted.model_.table is not None
    assert fitted.model_.table.n_features == 3 + 2 + 1 + 1 + 2 + 4
    expected = values(fitted, made(frame))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for other in LIBRARIES.values():
            np.testing.assert_allclose(values(fitted, other(frame)), expected)
            np.testing.assert_allclose(values(fitted, other(frame[frame.columns[::-1]])), expected)
    if not isinstance(estimator, OneClassSVM):
        assert fitted.score(made(frame), y) > 0.8


@pytest.mark.parametrize("estimator", SINGLE, ids=named)
def test_a_frame_gives_the_model_of_its_encoded_features(estimator, table):
    frame, target = table
    y, encoded = targets_of(estimator, target), dcsvm.Dataset(frame).rows.features
    fitted, plain = clone(estimator).fit(frame, y), clone(estimator).fit(encoded, y)
    np.testing.assert_array_equal(fitted.support_, plain.support_)
    np.testing.assert_array_equal(fitted.support_vectors_, plain.support_vectors_)
    np.testing.assert_allclose(fitted.dual_coef_, plain.dual_coef_, atol=1e-5)
    np.testing.assert_allclose(values(fitted, frame), values(plain, encoded), atol=1e-5)
    assert fitted._gamma == pytest.approx(plain._gamma, rel=1e-6)
    assert fitted.shape_fit_ == plain.shape_fit_ == encoded.shape
    few = values(fitted, frame.iloc[:3])
    np.testing.assert_allclose(few, values(plain, encoded[:3]), atol=1e-5)


@pytest.mark.parametrize("estimator", ESTIMATORS, ids=named)
def test_a_missing_value_is_the_median_with_a_mark(estimator):
    rng = np.random.default_rng(1)
    X = rng.normal(size=(N, 3))
    X[::5, 1] = np.nan
    y = targets_of(estimator, np.nan_to_num(X[:, 1], nan=2.0) + X[:, 0])
    frame = pandas.DataFrame(X, columns=list("abc"))
    fitted = clone(estimator).fit(frame, y)
    assert fitted.model_.table.feature_names == ["a", "b", "b is missing", "c"]
    if estimator in SINGLE:
        filled = SimpleImputer(strategy="median").fit_transform(X)
        filled = np.insert(filled, 2, np.isnan(X[:, 1]), axis=1)
        plain = clone(estimator).fit(filled, y)
        np.testing.assert_allclose(values(fitted, frame), values(plain, filled), atol=1e-5)
    with pytest.warns(UserWarning, match="X does not have valid feature names"):
        np.testing.assert_allclose(values(fitted, X), values(fitted, frame))


@pytest.mark.parametrize("estimator", ESTIMATORS, ids=named)
def test_nan_in_an_array_is_a_missing_value_only_for_automatic_settings(estimator):
    rng = np.random.default_rng(2)
    X = rng.normal(size=(N, 3))
    y = targets_of(estimator, X[:, 0] + X[:, 1])
    gaps = np.where(rng.random(X.shape) < 0.1, np.nan, X)
    if estimator in SINGLE:
        for made in (clone(estimator), clone(estimator).fit(X, y)):
            with pytest.raises(ValueError, match=SENTENCE.format(type(made).__name__)):
                made.fit(gaps, y)
        with pytest.raises(ValueError, match="Input X contains NaN"):
            made.predict(gaps)
        assert not made.__sklearn_tags__().input_tags.allow_nan
        return
    fitted = clone(estimator).fit(gaps, y)
    assert fitted.__sklearn_tags__().input_tags.allow_nan
    assert fitted.score(gaps, y) > 0.7 and np.isfinite(values(fitted, X)).all()
    plain = clone(estimator).fit(X, y)
    filled = np.where(np.isnan(gaps), np.median(X, axis=0), X)
    np.testing.assert_array_equal(values(plain, gaps), values(plain, filled))
    with pytest.raises(ValueError, match="Input X contains infinity"):
        plain.fit(np.where(np.isnan(gaps), np.inf, X), y)


@pytest.mark.parametrize("library", LIBRARIES)
@pytest.mark.parametrize("estimator", SINGLE, ids=named)
def test_a_frame_of_numbers_gives_what_its_array_gives(estimator, library):
    rng = np.random.default_rng(3)
    X = rng.normal(size=(N, 3)).astype(np.float32)
    y = targets_of(estimator, X[:, 0])
    frame = LIBRARIES[library](pandas.DataFrame(X, columns=list("abc")))
    fitted, plain = clone(estimator).fit(frame, y), clone(estimator).fit(X, y)
    assert fitted.model_.table is None and fitted.feature_names_in_.tolist() == list("abc")
    np.testing.assert_array_equal(values(fitted, frame), values(plain, X))
    np.testing.assert_array_equal(fitted.dual_coef_, plain.dual_coef_)
    assert fitted._gamma == plain._gamma
    other = LIBRARIES[library](pandas.DataFrame(X[:, ::-1], columns=list("cba")))
    with pytest.raises(ValueError, match="Feature names must be in the same order"):
        fitted.predict(other)


@pytest.mark.parametrize("estimator", ESTIMATORS, ids=named)
def test_a_gap_that_the_fit_did_not_have_is_the_median_of_the_fit(estimator):
    rng = np.random.default_rng(3)
    whole = pandas.DataFrame({"a": rng.normal(size=N), "k": rng.integers(0, 9, N)})
    fitted = clone(estimator).fit(whole, targets_of(estimator, whole.a + whole.k % 2))
    is_gap = np.arange(N) % 5 == 0
    gaps = whole.assign(a=whole.a.mask(is_gap), k=whole.k.astype("Int64").mask(~is_gap))
    filled = whole.assign(
        a=whole.a.mask(is_gap, whole.a.median()), k=whole.k.mask(~is_gap, whole.k.median())
    )
    expected = values(fitted, filled)
    np.testing.assert_allclose(values(pickle.loads(pickle.dumps(fitted)), gaps), expected)
    for made in LIBRARIES.values():
        np.testing.assert_allclose(values(fitted, made(gaps)), expected)
        if estimator in SINGLE:
            with pytest.raises(ValueError, match="Feature names must be in the same order"):
                fitted.predict(made(gaps[["k", "a"]]))


@pytest.mark.parametrize("options", [{}, {"scale": "auto"}, {"kernel": "linear"}], ids=str)
def test_a_gap_that_the_fit_did_not_have_is_encoded_as_by_a_trained_model(options):
    rng = np.random.default_rng(3)
    whole = pandas.DataFrame({"a": rng.normal(size=N), "flag": rng.random(N) < 0.5})
    fitted = SVC(**options).fit(whole, whole.a + whole.flag > 0.5)
    model = dcsvm.train(
        whole, whole.a + whole.flag <= 0.5, bias=True, gamma=fitted._gamma, tolerance=1e-7,
        **options,
    )  # fmt: skip
    model = model.in_label_order(model.labels[np.argsort(model.labels)])
    gaps = whole.astype(object)
    gaps.loc[::5, "a"], gaps.loc[::7, "flag"] = "?", None
    filled = whole.copy()
    filled.loc[::5, "a"], filled.loc[::7, "flag"] = whole.a.median(), whole.flag.median() > 0.5
    found = fitted.decision_function(gaps)
    np.testing.assert_allclose(found, model.decision_function(gaps), atol=1e-4)
    np.testing.assert_allclose(found, fitted.decision_function(filled), atol=1e-6)


def test_frames_are_cross_validated_if_only_test_rows_have_gaps():
    rng = np.random.default_rng(3)
    X = pandas.DataFrame({"a": rng.normal(size=N), "b": rng.normal(size=N)})
    y = X.a > 0
    X.loc[3, "b"] = np.nan
    assert cross_val_score(SVC(), X, y, cv=3).min() > 0.8
    auto = AutoSVC(time_limit=20, random_state=0)
    assert cross_val_score(auto, X.to_numpy(), y, cv=3).min() > 0.8


def test_a_gap_is_told_where_the_fit_had_no_data_frame():
    X = np.random.default_rng(4).normal(size=(N, 2))
    y, gaps = X[:, 0] > 0, pandas.DataFrame(np.where(X > 2, np.nan, X))
    fits = SVC().fit(X, y), AutoSVC(**AUTO).fit(sparse.csr_matrix(X), y)
    for fitted in fits:
        with pytest.raises(ValueError, match="NaN, but no row of the fit had a missing value"):
            fitted.predict(gaps)
    again = SVC().fit(pandas.DataFrame(X), y).fit(X, y)
    with pytest.raises(ValueError, match="NaN, but no row of the fit had a missing value"):
        again.predict(gaps)
    kernel = SVC(kernel="precomputed").fit(pandas.DataFrame(X @ X.T), y)
    with pytest.raises(ValueError, match="Input X contains NaN"):
        kernel.predict(pandas.DataFrame(X @ X.T).mask(X[:, :1] * np.ones(N) > 1))


def test_rows_with_gaps_are_predicted_after_a_fit_by_scikit_learn():
    X = np.repeat(np.random.default_rng(0).normal(size=(4, 3)), 15, axis=0)
    frame = pandas.DataFrame(X, columns=list("abc"))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        fitted = NuSVC(nu=0.9).fit(frame, np.tile([1, -1], 30))
    assert fitted.report_ is None
    gaps = frame.assign(a=np.nan)
    expected = fitted.decision_function(frame.assign(a=frame.a.median()))
    np.testing.assert_allclose(fitted.decision_function(gaps), expected, atol=1e-5)


@pytest.mark.parametrize("estimator", ESTIMATORS, ids=named)
def test_a_frame_without_rows_or_columns_is_refused_as_an_array_is(estimator, table):
    frame, target = table
    y, least = targets_of(estimator, target), "while a minimum of . is required by"
    no_columns = rf"0 feature\(s\) \(shape=\({N}, 0\)\) {least}"
    for whole in (frame, frame[["whole"]]):
        fitted = clone(estimator).fit(whole, y)
        no_rows = rf"0 sample\(s\) \(shape=\(0, {len(whole.columns)}\)\) {least}"
        for made in LIBRARIES.values():
            with pytest.raises(ValueError, match=no_rows):
                fitted.predict(made(whole[:0]))
            with pytest.raises(ValueError, match=no_rows):
                clone(estimator).fit(made(whole[:0]), y[:0])
        with pytest.raises(ValueError, match=no_columns):
            fitted.predict(frame[[]])
    with pytest.raises(ValueError, match=no_columns):
        clone(estimator).fit(frame[[]], y)


@pytest.mark.parametrize("estimator", ESTIMATORS, ids=named)
def test_a_sparse_frame_of_pandas_is_a_sparse_matrix(estimator):
    X = sparse.random(N, 5, 0.4, "csr", random_state=0)
    y = targets_of(estimator, 3 * dense(X)[:, :3].sum(axis=1))
    frame = pandas.DataFrame.sparse.from_spmatrix(X)
    fitted, plain = clone(estimator).fit(frame, y), clone(estimator).fit(X, y)
    if estimator in SINGLE:
        assert sparse.issparse(fitted.support_vectors_)
        np.testing.assert_array_equal(values(fitted, frame), values(plain, X))
        np.testing.assert_array_equal(values(fitted, X), values(plain, X))
    np.testing.assert_allclose(values(fitted, frame), values(fitted, frame.sparse.to_dense()))
    other = clone(estimator).fit(frame.sparse.to_dense(), y)
    np.testing.assert_allclose(values(other, frame), values(other, frame.sparse.to_dense()))


@pytest.mark.parametrize("estimator", ESTIMATORS, ids=named)
def test_a_dataset_is_refused_in_a_sentence(estimator):
    X = np.random.default_rng(4).normal(size=(N, 2))
    y = targets_of(estimator, X[:, 0])
    data, fitted = dcsvm.Dataset(X), clone(estimator).fit(X, y)
    for call in (lambda: fitted.predict(data), lambda: fitted.fit(data, y)):
        with pytest.raises(TypeError, match="estimators take X and y, not a Dataset: dcsvm.train"):
            call()


def test_rows_of_float32_are_not_copied():
    X = np.random.default_rng(4).normal(size=(40, 3)).astype(np.float32)
    y = X[:, 0] > 0
    given = SVC()._checked(X, y, None)
    assert np.shares_memory(given.data.rows.matrix, X)
    assert given.rows_at(np.arange(3)).dtype == np.float32


@pytest.mark.parametrize("estimator", [SVC(), SVCCV(**SEARCH), AutoSVC(**AUTO)], ids=named)
def test_columns_that_lack_are_told(estimator, table):
    frame, target = table
    fitted = clone(estimator).fit(frame, targets_of(estimator, target))
    for wrong in (frame.rename(columns={"word": "z"}), frame.assign(more=1.0)):
        with pytest.raises(ValueError, match="feature names should match"):
            fitted.predict(wrong)
    with (
        pytest.warns(UserWarning, match="valid feature names"),
        pytest.raises(ValueError, match="4 features, but .* is expecting 6 features"),
    ):
        fitted.predict(np.zeros((3, 4)))


def test_a_category_that_is_new_is_warned_of(table):
    frame, target = table
    fitted = SVC().fit(frame, target > 1)
    with pytest.warns(UserWarning, match="violet"):
        fitted.predict(frame.assign(word="violet"))


def test_a_column_of_intervals_is_refused_in_a_sentence(table):
    frame, target = table
    intervals = frame.assign(day=pandas.interval_range(0, N))
    for one in (SVC(), AutoSVC(**AUTO)):
        with pytest.raises(ValueError, match="column day has values of type Interval: turn them"):
            one.fit(intervals, target > 1)


@pytest.mark.parametrize("estimator", ESTIMATORS, ids=named)
def test_frames_are_pickled_cross_validated_and_labelled_by_series(estimator, table):
    frame, target = table
    y = pandas.Series(targets_of(estimator, target))
    fitted = clone(estimator).fit(frame, y)
    again = pickle.loads(pickle.dumps(fitted))
    np.testing.assert_array_equal(values(again, frame), values(fitted, frame))
    if not isinstance(estimator, OneClassSVM) and estimator in SINGLE:
        assert cross_val_score(clone(estimator), frame, y, cv=3).mean() > 0.5


def test_a_model_file_of_a_frame_predicts_frames(table, tmp_path):
    frame, target = table
    fitted = SVC(scale="auto").fit(frame, target > 1)
    fitted.save(tmp_path / "model")
    again = load(tmp_path / "model")
    assert again.feature_names_in_.tolist() == list(frame.columns)
    found = again.decision_function(polars_of(frame))
    np.testing.assert_allclose(found, fitted.decision_function(frame), atol=1e-5)
    with pytest.raises(ValueError, match="rows of the model are scaled"):
        fitted.to_sklearn()
    with pytest.raises(ValueError, match="encodes the columns of a data frame"):
        SVC().fit(frame, target > 1).to_sklearn()


def test_a_linear_kernel_has_coefficients_of_the_encoded_features(table):
    frame, target = table
    three = np.digitize(target, [0.5, 1.5])
    for scale in (None, "auto"):
        fitted = SVC(kernel="linear", scale=scale, decision_function_shape="ovo").fit(frame, three)
        rows = dcsvm.Dataset(frame, scale=scale).rows.features
        expected = rows @ fitted.coef_[:, : rows.shape[1]].T + fitted.intercept_
        assert fitted.coef_.shape == (3, fitted.model_.table.n_features)
        np.testing.assert_allclose(fitted.decision_function(frame), expected, atol=1e-4)


@pytest.mark.parametrize("estimator", [SVC(C=4), SVR(C=4), OneClassSVM(nu=0.2)], ids=named)
def test_dates_and_numbers_in_other_notations(estimator):
    rng = np.random.default_rng(1)
    number, day = rng.normal(size=N), rng.integers(0, 700, N)
    frame = pandas.DataFrame(
        {
            "price": [f"${1000 * one:,.2f}" for one in number],
            "when": pandas.to_datetime("2020-01-01") + pandas.to_timedelta(day, "D"),
            "id": [f"row {k}" for k in range(N)],
        }
    )
    with pytest.warns(UserWarning, match="column id has 160 different texts"):
        fitted = clone(estimator).fit(frame, number > 0)
    assert fitted.n_features_in_ == 3 and list(fitted.feature_names_in_) == [*frame]
    expected = fitted.predict(frame)
    texts = frame.assign(when=frame["when"].dt.strftime("%Y-%m-%d"), id="new")
    again = pickle.loads(pickle.dumps(fitted))
    assert np.array_equal(again.predict(texts), expected)
    gaps = frame.assign(when=pandas.NaT, price=None)
    assert len(set(again.predict(gaps).tolist())) == 1


def test_targets_may_be_decimals():
    X = np.random.default_rng(2).normal(size=(N, 2))
    targets = np.array([Decimal(f"{one:.3f}") for one in X[:, 0]], object)
    for estimator in (SVR(), NuSVR()):
        assert clone(estimator).fit(X, targets).score(X, targets.astype(float)) > 0.9
