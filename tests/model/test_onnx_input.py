"""Test the inputs of models in ONNX: scaling, weights, shifts, tables, missing values."""

import numpy as np
import pytest
from made_models import mixed_frame
from onnx_runs import SAME, close, outputs, run, same_labels, session_of, values_in_float64
from reference import libsvm_text, uneven_rows

import dcsvm

pandas = pytest.importorskip("pandas")

KERNELS = ["rbf", "laplacian", "exponential", "linear", "polynomial", "sigmoid"]


# ------------------------------------------------------------------------------------- scaling


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("scale", ["auto", "quantile", None])
@pytest.mark.parametrize("weights", [None, [0.5, 2.0, 0.0, 1.5, 1.0]])
def test_rows_are_scaled_and_weighted(kernel, scale, weights):
    X, y = uneven_rows(400, 3)
    T, _ = uneven_rows(200, 4)
    if scale is None:
        X, T = X / [5e3, 1e-3, 1, 1, 7], T / [5e3, 1e-3, 1, 1, 7]
    T[:20] *= 1.5  # beyond the ranges
    T = T.astype(np.float32)  # as the input is
    model = dcsvm.train(X, y, kernel=kernel, gamma=0.5, C=2.0, scale=scale, feature_weights=weights)
    values = values_in_float64(model, T)
    found = outputs(model, T)
    close(found["values"], values, SAME)
    same_labels(found["label"], model.predict(T), values)


def test_a_model_of_a_file_with_ranges_takes_rows_with_more_features(tmp_path):
    X, y = uneven_rows(400, 3)
    (tmp_path / "rows").write_text(libsvm_text(X, y))
    data = dcsvm.Dataset.read(tmp_path / "rows", scale="auto")
    dcsvm.train(data, gamma=1.0).save(tmp_path / "model")
    model = dcsvm.load_model(tmp_path / "model")  # does not know the last column, which is constant
    session = session_of(model.to_onnx())
    assert session.get_inputs()[0].shape == ["rows", "features"]
    for rows in (X[:50], X[:50, :4]):
        found = run(session, {"X": rows.astype(np.float32)})["values"][:, 0]
        close(found, model.decision_function(X[:50]))


@pytest.mark.filterwarnings("ignore")
def test_a_scaling_that_drops_all_features_leaves_a_constant():
    for kernel in ("rbf", "laplacian", "linear"):
        y = np.arange(10) % 2
        empty = dcsvm.train(np.zeros((10, 2)), y, kernel=kernel, gamma=1.0, scale="auto")
        found = outputs(empty, np.zeros((5, 2)))["values"][:, 0]
        assert np.allclose(found, empty.decision_function(np.zeros((5, 2))))


@pytest.mark.parametrize("kernel", ["rbf", "laplacian"])
def test_shifted_rows_are_double(kernel):
    rng = np.random.default_rng(0)
    X = np.c_[rng.normal(size=500), 1.5e9 + rng.uniform(0, 60, 500)]
    y = np.where(np.sin(X[:, 1] / 8) + 0.3 * X[:, 0] > 0, 1.0, -1.0)
    model = dcsvm.train(X, y, kernel=kernel, gamma=0.05, C=10.0)
    assert model.scaling.is_shift
    session = session_of(model.to_onnx())
    assert session.get_inputs()[0].type == "tensor(double)"
    close(run(session, {"X": X})["values"][:, 0], model.decision_function(X))


# -------------------------------------------------------------------------------------- tables


def frame_of(n, seed):
    return mixed_frame(n, seed, ["red", "green", "blue", " odd one "])


def text_of(frame, *names):
    """Return the frame with its categories as text, as ONNX takes them."""
    texts = {name: frame[name].astype(object) for name in names}
    return frame.assign(**{
        name: [("" if one is None or one != one else str(one).strip()) for one in column]
        for name, column in texts.items()
    })  # fmt: skip


TEXTS = ("word", "kind", "gap")


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("scale", ["auto", "quantile", None])
@pytest.mark.parametrize("early", [False, True])
def test_columns_of_a_table_are_inputs(kernel, scale, early):
    X, target = frame_of(600, 0)
    T, _ = frame_of(300, 1)
    T.loc[:9, "word"] = "purple"
    T.loc[10:19, "gap"] = "purple"
    how = {"early": True, "early_level": 1} if early else {}
    y = np.where(target > 0.5, "high", "low")
    model = dcsvm.train(X, y, kernel=kernel, gamma=0.2, C=2.0, scale=scale, **how)
    file = model.to_onnx()
    kinds = {one.name: one.type for one in session_of(file).get_inputs()}
    assert list(kinds) == list(X.columns)
    assert {name for name, kind in kinds.items() if kind == "tensor(string)"} == set(TEXTS)
    with pytest.warns(UserWarning, match="purple"):
        values = model.decision_function(T)
        labels = model.predict(T)
    found = outputs(model, text_of(T, *TEXTS))
    close(found["values"][:, 0], values)
    same_labels(found["label"], labels, values[:, None])


def test_text_may_have_a_blank_before_or_after_it():
    X, target = frame_of(300, 0)
    X = X[["number", "gap"]]
    model = dcsvm.train(X, np.where(target > 0.5, 1, 0), gamma=0.2)
    given = text_of(X, "gap")
    found = outputs(model, given)["values"]
    for text in (" {}", "{} ", " {} "):
        blanks = given.assign(gap=[text.format(one) for one in given["gap"]])
        assert np.array_equal(outputs(model, blanks)["values"], found)


def test_columns_without_a_weight_are_inputs_too():
    X, target = frame_of(300, 0)
    X = X[["number", "word", "whole number"]]
    weights = np.array([1.0, 0.0, 0, 0, 0, 0, 2.0])[: 2 + 4 + 1]
    y = np.where(target > 0.5, 1, 0)
    model = dcsvm.train(X, y, gamma=0.2, scale="auto", feature_weights=weights)
    session = session_of(model.to_onnx())
    assert [one.name for one in session.get_inputs()] == list(X.columns)
    close(outputs(model, text_of(X, "word"))["values"][:, 0], model.decision_function(X))


@pytest.mark.parametrize("name", ["label", "values", "Add_3", "constant_1"])
def test_a_column_may_have_the_name_of_an_output(name):
    X, target = frame_of(300, 0)
    X = X[["number", "word"]].rename(columns={"number": name})
    model = dcsvm.train(X, np.where(target > 0.5, 1, 0), gamma=0.2)
    found = outputs(model, text_of(X, "word"))
    values = found.get("values_", found.get("values"))
    close(values[:, 0], model.decision_function(X))


def test_numbers_that_float32_rounds_are_double():
    rng = np.random.default_rng(0)
    n = 400
    X = pandas.DataFrame(
        {
            "year": rng.integers(1990, 2020, n),
            "second": 1.5e9 + rng.uniform(0, 60, n),
            "big": rng.integers(10**8, 10**8 + 50, n),
            "share": rng.random(n),
            "word": rng.choice(["a", "b"], n),
        }
    )
    y = np.where(np.sin(X["second"] / 8) + 0.1 * (X["big"] % 7) > 0.3, 1, 0)
    for scale in ("quantile", "auto", None):
        model = dcsvm.train(X, y, kernel="laplacian", gamma=1.0, C=5.0, scale=scale)
        kinds = {one.name: one.type for one in session_of(model.to_onnx()).get_inputs()}
        assert kinds["second"] == kinds["big"] == "tensor(double)"
        assert kinds["word"] == "tensor(string)"
        # a range of 30 years, or of a hundredth between quantiles, shows the rounding
        assert (kinds["year"] == "tensor(double)") == (scale == "auto")
        assert (kinds["share"] == "tensor(double)") == (scale == "quantile")
        close(outputs(model, X)["values"][:, 0], model.decision_function(X))


def test_dates_are_days_and_times_are_hours():
    rng = np.random.default_rng(0)
    n = 800
    seconds = rng.integers(-(10**9), 2 * 10**9, n)
    when = pandas.Series(np.datetime64("1970-01-01", "us") + seconds.astype("m8[s]"))
    when[::50] = pandas.NaT
    duration = pandas.Series(rng.integers(0, 86400, n).astype("m8[s]"))
    X = pandas.DataFrame({"when": when, "duration": duration, "number": rng.normal(size=n)})
    y = np.where(when.dt.month.fillna(1) + when.dt.weekday.fillna(0) + X["number"] > 9, 1, 0)
    model = dcsvm.train(X, y, gamma=0.5, scale="auto", C=5.0)
    (column,) = (one for one in model.table.columns if one.name == "when")
    assert column.parts == ("days", "year", "month", "weekday", "hour") and column.has_indicator
    days = pandas.DataFrame(
        {
            "when": (when - pandas.Timestamp(0)) / pandas.Timedelta(days=1),
            "duration": duration / pandas.Timedelta(hours=1),
            "number": X["number"],
        }
    )
    close(outputs(model, days)["values"][:, 0], model.decision_function(X))


def test_an_array_with_missing_values_is_one_input():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(400, 4))
    y = np.where(X[:, 0] + X[:, 1] ** 2 > 0.5, 1, 0)
    X[rng.random(X.shape) < 0.1] = np.nan
    X[:, 2] = np.nan  # a column without values is left out
    with pytest.warns(UserWarning, match="has no values"):
        model = dcsvm.train(X, y, gamma=0.5, scale="quantile")
    found = outputs(model, X)["values"][:, 0]
    # the input is float32
    close(found, model.decision_function(X.astype(np.float32)))


def test_a_table_of_a_file_is_read_as_its_command_reads_it(tmp_path):
    X, target = frame_of(400, 0)
    X = X.assign(price=np.round(np.exp(target), 2))
    texts = X.assign(price=[f"{one} EUR" for one in X["price"]])
    texts.assign(y=np.where(target > 0.5, "up", "down")).to_csv(tmp_path / "rows.csv", index=False)
    data = dcsvm.Dataset.read(tmp_path / "rows.csv", scale="quantile", label="y")
    model = dcsvm.train(data, gamma=0.3, kernel="exponential")
    model.save(tmp_path / "model")
    model = dcsvm.load_model(tmp_path / "model")
    again = dcsvm.Dataset.read(tmp_path / "rows.csv", like=model)
    texts = [one.name for one in model.table.columns if one.kind == "category"]
    assert texts == ["word", "gap"]
    given = text_of(X, *texts)  # and prices as numbers
    close(outputs(model, given)["values"][:, 0], model.decision_function(again))
