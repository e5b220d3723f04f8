import numpy as np
import pytest

import dcsvm
from dcsvm.data.dataset import Dataset
from dcsvm.training.information import codes_of, information_weights, mutual_information


def test_the_information_of_equal_codes_is_their_entropy():
    classes = np.repeat([0, 1], 5000)
    counts = np.ones(10_000)
    assert mutual_information(classes, classes, counts) == pytest.approx(np.log(2), abs=1e-3)
    other = np.random.default_rng(0).integers(0, 8, 10_000)
    assert mutual_information(other, classes, counts) < 1e-3


def test_rows_of_weight_0_do_not_count():
    rng = np.random.default_rng(0)
    classes, codes = rng.integers(0, 2, 4000), rng.integers(0, 4, 4000)
    codes[2000:] = classes[2000:]
    counts = np.repeat([1.0, 0.0], 2000)
    assert mutual_information(codes, classes, counts) < 5e-3
    assert mutual_information(codes, classes, 1 - counts) == pytest.approx(np.log(2), abs=5e-3)


def test_columns_without_information_have_small_weights():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(2000, 4))
    letters = np.array(list("abcdefghijklmnopqrst"))[np.digitize(X[:, 1], np.linspace(-2, 2, 19))]
    targets = X[:, 1] + 0.1 * rng.normal(size=2000)
    for y, is_regression in ((np.where(X[:, 1] > 0, "a", "b"), False), (letters, False),
                             (targets, True)):  # fmt: skip
        rows = Dataset(X, y).as_floats().rows
        weights = information_weights(rows, y, "laplacian", is_regression=is_regression)
        assert np.argmax(weights) == 1
        assert weights[1] > 5 * np.delete(weights, 1).max()


def test_all_flags_of_a_category_have_one_weight():
    pandas = pytest.importorskip("pandas")
    rng = np.random.default_rng(0)
    town, noise = rng.choice(["a", "b", "c"], 900), rng.choice(["u", "v"], 900)
    frame = pandas.DataFrame({"town": town, "noise": noise, "x": rng.normal(size=900)})
    y = np.where(town == "b", 1.0, 0.0)
    data = Dataset(frame, y).scaled("auto").as_floats()
    weights = information_weights(data.rows, y, "laplacian", table=data.table)
    starts = data.table.start
    assert np.ptp(weights[: starts[1]]) == 0
    assert weights[0] > 5 * weights[starts[1] :].max()


def test_codes_of_numbers_are_quantiles_and_missing_values_are_apart():
    x = np.arange(320.0)
    missing = (x >= 310).astype(float)
    codes = codes_of(np.column_stack([x, missing]).astype(np.float32))
    assert len(np.unique(codes)) == 17
    assert not set(codes[:310]) & set(codes[310:])


def test_easy_uses_them_where_they_are_better():
    rng = np.random.default_rng(0)
    X = rng.choice(list("acgt"), (500, 40))
    pandas = pytest.importorskip("pandas")
    y = np.where((X[:, 3] == "a") ^ (X[:, 7] == "c") & (X[:, 9] == "g"), "yes", "no")
    told = []
    dcsvm.easy(
        pandas.DataFrame(X, columns=[f"c{j}" for j in range(40)]), y, time_limit=20, threads=1,
        tell=lambda *trial: told.append(trial),
    )  # fmt: skip
    best = told[-1][2].candidate
    assert best.weighting is not None
