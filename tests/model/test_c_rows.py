"""Test how rows are read in C: scaling, weights, shifts, columns of tables, text, dates."""

import numpy as np
import pytest
from c_runs import Program, check, same_labels
from made_models import mixed_frame
from reference import libsvm_text, uneven_rows

import dcsvm
from dcsvm.data.columns import MISSING_TEXTS

pandas = pytest.importorskip("pandas")

KERNELS = ["rbf", "laplacian", "exponential", "linear", "polynomial", "sigmoid"]
PRODUCTS = KERNELS[3:]
N = 1000


@pytest.fixture
def program(tmp_path):
    return lambda model, **how: Program(model.to_c(**how), tmp_path)


# ------------------------------------------------------------------------------------- scaling


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("scale", ["auto", "quantile", None])
@pytest.mark.parametrize("weights", [None, [0.5, 2.0, 0.0, 1.5, 1.0]], ids=["", "weights"])
def test_rows_are_scaled_and_weighted(program, kernel, scale, weights):
    X, y = uneven_rows(400, 3)
    T, _ = uneven_rows(N, 4)
    if scale is None:
        X, T = X / [5e3, 1e-3, 1, 1, 7], T / [5e3, 1e-3, 1, 1, 7]
    T[:20] *= 1.5  # beyond the ranges
    C = 0.001 if kernel in PRODUCTS else 2.0  # else larger terms cancel than float can hold
    model = dcsvm.train(X, y, kernel=kernel, gamma=0.5, C=C, scale=scale, feature_weights=weights)
    made = program(model)
    found, values = check(model, made, T, T)
    same_labels(made.labels(T), model.predict(T), values)
    assert np.array_equal(made.sparse_values(T), found)


def test_a_model_of_a_file_with_ranges_needs_no_constant_columns(program, tmp_path):
    X, y = uneven_rows(400, 3)
    (tmp_path / "rows").write_text(libsvm_text(X, y))
    data = dcsvm.Dataset.read(tmp_path / "rows", scale="auto")
    model = dcsvm.train(data, gamma=1.0)
    model.save(tmp_path / "m")
    assert dcsvm.load_model(tmp_path / "m").to_c() == model.to_c()
    made = program(model)
    assert made.sizes["columns"] == 4
    check(model, made, X, X)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("kernel", ["rbf", "laplacian", "linear"])
def test_a_scaling_that_drops_all_features_leaves_a_constant(program, kernel):
    y = np.arange(10) % 2
    model = dcsvm.train(np.zeros((10, 2)), y, kernel=kernel, gamma=1.0, scale="auto")
    expected = model.decision_function(np.zeros((5, 2)))
    assert np.allclose(program(model).values(np.zeros((5, 2)))[:, 0], expected)


@pytest.mark.parametrize("kernel", ["rbf", "laplacian"])
def test_shifted_rows_keep_their_differences(program, kernel):
    rng = np.random.default_rng(0)
    X = np.c_[rng.normal(size=N), 1.5e9 + rng.uniform(0, 60, N)]
    y = np.where(np.sin(X[:, 1] / 8) + 0.3 * X[:, 0] > 0, 1.0, -1.0)
    model = dcsvm.train(X, y, kernel=kernel, gamma=0.05, C=10.0)
    assert model.scaling.is_shift
    check(model, program(model), X, X)


# -------------------------------------------------------------------------------------- tables


def frame_of(n, seed):
    return mixed_frame(n, seed, ["red", "green", "blue", "odd one", 'Ö??/ \\ "q"'])


@pytest.mark.filterwarnings("ignore:column .* categories that the training set lacks")
@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("scale", ["auto", "quantile", None])
@pytest.mark.parametrize("early", [False, True], ids=["exact", "early"])
def test_columns_of_a_table_are_encoded(program, kernel, scale, early):
    X, target = frame_of(600, 0)
    T, _ = frame_of(N, 1)
    T.loc[:9, "word"] = "purple"
    T.loc[10:19, "gap"] = "purple"
    T.loc[20:29, "word"] = None
    how = {"early": True, "early_level": 1} if early else {}
    y = np.where(target > 0.5, "high", "low")
    model = dcsvm.train(X, y, kernel=kernel, gamma=0.2, C=2.0, scale=scale, **how)
    made = program(model)
    with pytest.warns(UserWarning, match="purple"):
        found, values = check(model, made, made.rows_of(model, T), dcsvm.Dataset(T, like=model))
    same_labels(made.named_labels(made.rows_of(model, T)), model.predict(T), values)
    given = made.rows_of(model, T)[30:]
    full = given[~np.isnan(given).any(axis=1)]
    assert np.array_equal(made.sparse_values(full), made.values(full))


def test_names_of_columns_are_in_the_order_of_the_file(program):
    import ctypes

    X, target = frame_of(300, 0)
    made = program(dcsvm.train(X, np.where(target > 0.5, 1, 0), gamma=0.2))
    assert made.sizes["columns"] == 7
    names = (ctypes.c_char_p * 7).in_dll(made.library, "dcsvm_column_names")
    assert [name.decode() for name in names] == list(X.columns)


def test_texts_are_found_without_the_blanks_around_them(program):
    X, target = frame_of(300, 0)
    model = dcsvm.train(X, np.where(target > 0.5, 1, 0), gamma=0.2)
    made = program(model)
    columns = {one.name: k for k, one in enumerate(model.table.columns)}
    word = model.table.columns[columns["word"]]
    for code, text in enumerate(word.categories):
        assert made.code(columns["word"], f" {text}\t") == code
    assert made.code(columns["word"], "purple") == made.code(columns["word"], "re") == -1
    assert all(np.isnan(made.code(columns["gap"], text)) for text in MISSING_TEXTS)
    assert made.code(columns["flag"], "TRUE") == 1 and made.code(columns["flag"], "false") == 0
    assert np.isnan(made.code(columns["number"], "1.5"))
    assert np.isnan(made.code(7, "red")) and np.isnan(made.code(-1, "red"))


def test_a_long_text_is_an_array(program):
    texts = np.array(["é" * 3000, "b" * 5000, "c"])
    X = pandas.DataFrame({"text": texts[np.arange(60) % 3], "number": np.arange(60.0)})
    model = dcsvm.train(X, np.arange(60) % 3 % 2, gamma=0.1)
    made = program(model)
    codes = [made.code(0, text) for text in model.table.columns[0].categories]
    assert codes == [0, 1, 2]


def test_columns_without_a_weight_have_their_place_in_a_row(program):
    X, target = frame_of(N, 0)
    X = X[["number", "word", "whole number"]]
    weights = np.array([1.0, 0.0, 0, 0, 0, 0, 0, 2.0])
    y = np.where(target > 0.5, 1, 0)
    model = dcsvm.train(X, y, gamma=0.2, scale="auto", feature_weights=weights)
    made = program(model)
    assert (made.sizes["columns"], made.sizes["features"]) == (3, 2)
    check(model, made, made.rows_of(model, X), dcsvm.Dataset(X, like=model))


def test_dates_are_days_and_times_are_hours(program):
    rng = np.random.default_rng(0)
    seconds = rng.integers(-(10**9), 2 * 10**9, N)
    seconds[:400] = 86400 * (np.arange(400) - 200 + 11016)  # days around 29 February 2000
    when = pandas.Series(np.datetime64("1970-01-01", "us") + seconds.astype("m8[s]"))
    when[::50] = pandas.NaT
    duration = pandas.Series(rng.integers(0, 86400, N).astype("m8[s]"))
    X = pandas.DataFrame({"when": when, "duration": duration, "number": rng.normal(size=N)})
    y = np.where(when.dt.month.fillna(1) + when.dt.day_of_week.fillna(0) + X["number"] > 9, 1, 0)
    model = dcsvm.train(X, y, gamma=0.5, scale="auto", C=5.0)
    (column,) = (one for one in model.table.columns if one.name == "when")
    assert column.parts == ("days", "year", "month", "weekday", "hour") and column.has_indicator
    made = program(model)
    check(model, made, made.rows_of(model, X), dcsvm.Dataset(X, like=model))


def test_years_of_many_centuries_begin_on_their_first_day(program):
    days = np.array([np.datetime64(f"{year}-01-01", "D").astype(int) for year in range(1601, 2500)])
    days = np.sort(np.concatenate([days - 1, days, days + 58, days + 59]))
    when = pandas.Series(np.datetime64("1970-01-01", "us") + days.astype("m8[D]"))
    X = pandas.DataFrame({"when": when})
    y = np.where(when.dt.month > 1, 1, 0)
    model = dcsvm.train(X, y, gamma=1.0, scale="auto")
    made = program(model)
    check(model, made, made.rows_of(model, X), dcsvm.Dataset(X, like=model))


def test_an_array_with_missing_values_has_its_columns(program):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(N, 4))
    y = np.where(X[:, 0] + X[:, 1] ** 2 > 0.5, 1, 0)
    X[rng.random(X.shape) < 0.1] = np.nan
    X[:, 2] = np.nan  # a column without values is left out
    with pytest.warns(UserWarning, match="has no values"):
        model = dcsvm.train(X, y, gamma=0.5, scale="quantile")
    made = program(model)
    assert made.sizes["columns"] == 4
    check(model, made, X, X)


def test_a_table_of_a_file_is_read_as_its_command_reads_it(program, tmp_path):
    pytest.importorskip("pyarrow")
    X, target = frame_of(400, 0)
    X = X.assign(code=np.where(np.arange(400) % 3 == 0, "007", "A1"))
    X.assign(y=np.where(target > 0.5, "up", "down")).to_csv(tmp_path / "rows.csv", index=False)
    data = dcsvm.Dataset.read(tmp_path / "rows.csv", scale="quantile", label="y")
    dcsvm.train(data, gamma=0.3, kernel="exponential").save(tmp_path / "m")
    model = dcsvm.load_model(tmp_path / "m")
    again = dcsvm.Dataset.read(tmp_path / "rows.csv", like=model)
    assert "code" in [one.name for one in model.table.columns if one.kind == "category"]
    made = program(model)
    check(model, made, made.rows_of(model, X), again)
