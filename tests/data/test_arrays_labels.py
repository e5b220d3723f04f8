"""Test that a missing label is named with its row, in every kind of labels and by every door."""

import numpy as np
import pytest

import dcsvm

pd = pytest.importorskip("pandas")
pl = pytest.importorskip("polars")
pa = pytest.importorskip("pyarrow")
estimators = pytest.importorskip("dcsvm.sklearn")

X = np.random.default_rng(0).normal(size=(60, 2))
NUMBERS = np.where(X[:, 0] > 0, 1.0, -1.0)
WORDS = np.where(X[:, 0] > 0, "yes", "no")


def gap(labels, value):
    """Return labels as a list, with a value in rows 7 and 20."""
    return [value if row in (7, 20) else label for row, label in enumerate(labels.tolist())]


def objects(labels, value):
    return np.array(gap(labels, value), object)


INTEGERS = NUMBERS.astype(int)
LABELS = {
    "floats": np.where(np.isin(np.arange(60), (7, 20)), np.nan, NUMBERS),
    "list of words and nan": gap(WORDS, np.nan),
    "list of numbers and None": gap(INTEGERS, None),
    **{
        f"objects, {value}": objects(labels, value)
        for labels in (WORDS, NUMBERS)
        for value in (None, np.nan, pd.NA, pd.NaT)
    },
    "one column": objects(WORDS, None)[:, None],
    "masked numbers": np.ma.masked_array(INTEGERS, np.isin(np.arange(60), (7, 20))),
    "masked words": np.ma.masked_array(WORDS, np.isin(np.arange(60), (7, 20))),
    "pandas objects": pd.Series(gap(WORDS, None), dtype=object),
    "pandas string": pd.Series(gap(WORDS, None), dtype="string"),
    "pandas category": pd.Series(gap(WORDS, None), dtype="category"),
    "pandas Int64": pd.Series(gap(INTEGERS, None), dtype="Int64"),
    "pandas boolean": pd.Series(gap(NUMBERS > 0, None), dtype="boolean"),
    "pandas of Arrow": pd.Series(gap(WORDS, None), dtype="string[pyarrow]"),
    "polars words": pl.Series(gap(WORDS, None)),
    "polars categories": pl.Series(gap(WORDS, None), dtype=pl.Categorical),
    "polars integers": pl.Series(gap(INTEGERS, None)),
    "polars booleans": pl.Series(gap(NUMBERS > 0, None)),
    "Arrow words": pa.array(gap(WORDS, None)),
    "Arrow integers": pa.chunked_array([gap(INTEGERS, None)]),
    "Arrow dictionary": pa.array(gap(WORDS, None)).dictionary_encode(),
}
GRID = {"Cs": [1], "gammas": [1, 2]}
DOORS = {
    "Dataset": lambda y: dcsvm.Dataset(X, y),
    "train": lambda y: dcsvm.train(X, y),
    "regression": lambda y: dcsvm.train(X, y, svm_type="epsilon_svr"),
    "easy": lambda y: dcsvm.easy(X, y, time_limit=1),
    "grid_search": lambda y: dcsvm.grid_search(X, y, **GRID),
    "test rows": lambda y: dcsvm.grid_search(X, NUMBERS, **GRID, test=(X, y)),
    "SVC": lambda y: estimators.SVC().fit(X, y),
    "callable kernel": lambda y: estimators.SVC(kernel=lambda A, B: A @ B.T).fit(X, y),
    "SVR": lambda y: estimators.SVR().fit(X, y),
    "AutoSVC": lambda y: estimators.AutoSVC(time_limit=1).fit(X, y),
    "SVCCV": lambda y: estimators.SVCCV(**GRID).fit(X, y),
    "a data frame": lambda y: estimators.SVC().fit(pd.DataFrame({"a": WORDS}), y),
}


@pytest.mark.parametrize("door", DOORS)
@pytest.mark.parametrize("kind", LABELS)
def test_a_missing_label_is_named_with_its_row(kind, door):
    with pytest.raises(ValueError, match="the label of row 7 is missing"):
        DOORS[door](LABELS[kind])


def test_infinite_labels_are_named_with_their_row():
    y = np.where(np.arange(60) == 7, np.inf, NUMBERS)
    with pytest.raises(ValueError, match=r"labels must be finite numbers, got inf \(row 7\)"):
        dcsvm.train(X, y)


def test_words_and_numbers_in_a_list_are_refused():
    with pytest.raises(ValueError, match="labels must be numbers, or strings all of them"):
        dcsvm.train(X, [*WORDS.tolist()[:59], 1])


def test_masked_values_are_missing_values():
    is_gap = np.random.default_rng(1).random(X.shape) < 0.1
    masked, gaps = np.ma.masked_array(X, is_gap), np.where(is_gap, np.nan, X)
    expected = dcsvm.train(gaps, NUMBERS).decision_function(gaps)
    assert np.array_equal(dcsvm.train(masked, NUMBERS).decision_function(masked), expected)
    whole = np.ma.masked_array(X, np.zeros_like(is_gap))
    model = dcsvm.train(whole, np.ma.masked_array(NUMBERS))
    assert model.table is None
    with pytest.raises(ValueError, match="Input X contains NaN"):
        estimators.SVC().fit(masked, NUMBERS)
    integers = np.ma.masked_array((9 * X).astype(int), is_gap)
    assert dcsvm.train(integers, NUMBERS).table is not None
