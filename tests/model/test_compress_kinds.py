"""Test compression of each kind of model: kernels, scalings, weights, tables, clusters, types."""

import os

import numpy as np
import pytest

import dcsvm
from dcsvm.kernel.kernels import KERNEL_TYPES
from dcsvm.model.landmarks import most_changed

pandas = pytest.importorskip("pandas")

DISTANCES = [one.name for one in KERNEL_TYPES if one.is_of_distance]
kernels = pytest.mark.parametrize("kernel", DISTANCES)
methods = pytest.mark.parametrize("method", ["exact", "early"])


def rings(n, seed, n_classes=2):
    """Return rows of three features in different units, with labels by a distance."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1, 1, (n, 3))
    y = np.digitize(np.hypot(X[:, 0], X[:, 1]), [0.6, 0.9][: n_classes - 1])
    return (X * [1, 20, 1] + [0, 100, 0]).astype(np.float32), y.astype(float)


def trained(X, y, kernel, method, **options):
    """Train one part; an early model has 4 clusters."""
    levels = {"early": True, "early_level": 1} if method == "early" else {"levels": 0}
    return dcsvm.train(X, y, kernel=kernel, gamma="2/median", C=10, threads=1, **levels, **options)


def vectors_of(model):
    return model.part().rows.n_samples


def changed(model, small, X):
    return np.mean(model.predict(X, threads=1) != small.predict(X, threads=1))


def again(model, tmp_path):
    """Save and load a model."""
    model.save(tmp_path / "small", has_range_file=False)
    return dcsvm.load_model(tmp_path / "small")


@kernels
@methods
@pytest.mark.parametrize("scale", ["auto", "quantile"])
@pytest.mark.parametrize("weights", [None, [1.0, 1.0, 0.25]], ids=["plain", "weighted"])
def test_a_scaled_and_weighted_model_is_compressed(kernel, method, scale, weights, tmp_path):
    X, y = rings(600, 0)
    model = trained(X, y, kernel, method, scale=scale, feature_weights=weights)
    small = model.compress(
        X, test=rings(500, 1)[0], vectors=vectors_of(model) // 3, steps=150, threads=1
    )
    T = rings(2000, 2)[0]
    assert small.scaling is model.scaling
    assert changed(model, small, T) < 0.12
    np.testing.assert_array_equal(
        again(small, tmp_path).decision_function(T), small.decision_function(T)
    )


def people(n, seed):
    """Return a data frame with text, gaps and a number, and labels of text."""
    rng = np.random.default_rng(seed)
    age, job = rng.integers(18, 80, n), rng.choice(["clerk", "smith", "none"], n)
    wage = np.where(rng.random(n) < 0.1, np.nan, rng.normal(size=n).round(2))
    frame = pandas.DataFrame({"age": age, "job": job, "wage": wage})
    return frame, np.where((age > 45) == (job == "clerk"), "high", "low")


@kernels
@methods
@pytest.mark.parametrize("scale", ["auto", "quantile"])
def test_a_model_of_a_table_is_compressed(kernel, method, scale, tmp_path):
    frame, y = people(600, 0)
    model = trained(frame, y, kernel, method, scale=scale)
    small = model.compress(
        frame, test=people(500, 1)[0], vectors=vectors_of(model) // 3, steps=150, threads=1
    )
    T = people(1000, 2)[0]
    assert small.table is model.table
    assert set(small.predict(T)) == {"high", "low"}
    assert changed(model, small, T) < 0.12
    np.testing.assert_array_equal(again(small, tmp_path).predict(T), small.predict(T))


@kernels
@methods
def test_categories_stay_columns_of_two_values(kernel, method):
    frame, y = people(600, 0)
    model = trained(frame, y, kernel, method, scale="auto")
    small = model.compress(frame, vectors=vectors_of(model) // 3, steps=50, threads=1)
    names = np.array(model.feature_names)
    columns = np.flatnonzero(np.char.find(names.astype(str), "job") >= 0)
    assert len(columns) == 3
    for column in model.scaling.columns[columns]:
        of_rows, of_landmarks = (
            np.unique(one.part().rows.as_floats().features[:, column]) for one in (model, small)
        )
        assert set(of_landmarks) <= set(of_rows)
        assert len(of_rows) == 2


@kernels
@methods
def test_several_classes_are_compressed(kernel, method):
    X, y = rings(900, 0, n_classes=3)
    model = trained(X, y, kernel, method, scale="auto")
    small = model.compress(X, vectors=vectors_of(model) // 3, steps=200, threads=1)
    assert changed(model, small, rings(2000, 1)[0]) < 0.12


@kernels
@methods
def test_a_regression_is_compressed(kernel, method):
    X = rings(600, 0)[0]
    y = 1000 + 50 * np.sin(3 * X[:, 0])
    curve = trained(X, y, kernel, method, svm_type="epsilon_svr", epsilon=1.0, scale="auto")
    test = rings(500, 1)[0]
    small = curve.compress(X, test=test, vectors=vectors_of(curve) // 3, threads=1)
    assert small.report.changed is None
    assert small.report.error < 0.2 * np.std(curve.predict(test))


@kernels
def test_a_one_class_model_is_compressed(kernel):
    X, y = rings(600, 0)
    inside = trained(X, y, kernel, "exact", svm_type="one_class", nu=0.2, scale="auto")
    small = inside.compress(X, vectors=vectors_of(inside) // 2, threads=1)
    assert changed(inside, small, rings(2000, 1)[0]) < 0.12


@kernels
def test_each_of_many_clusters_has_its_share_of_landmarks(kernel):
    X, y = rings(3000, 0)
    model = dcsvm.train(
        X, y, kernel=kernel, gamma="4/median", C=10, scale="auto", early=True, early_level=2,
        branching=5, threads=1,
    )  # fmt: skip
    small = model.compress(X, vectors=vectors_of(model) // 3, steps=60, threads=1)
    n_clusters = model.early.partition.n_clusters
    assert n_clusters > 20
    assert small.early.partition.n_clusters == n_clusters
    assert small.early.rho.shape == (n_clusters, 1)
    assert len(np.unique(small.early.cluster)) > n_clusters / 4
    assert changed(model, small, rings(3000, 1)[0]) < 0.12


@kernels
@methods
def test_the_bound_holds_for_rows_that_no_landmark_has_seen(kernel, method):
    X, y = rings(800, 0)
    model = trained(X, y, kernel, method, scale="auto")
    small = model.compress(X, vectors=vectors_of(model) // 5, steps=100, threads=1)
    T = rings(20_000, 1)[0]
    is_changed = model.predict(T, threads=1) != small.predict(T, threads=1)
    counts = is_changed.reshape(50, 400).sum(axis=1)
    bounds = np.array([most_changed(int(count), 400, 1) for count in counts])
    assert np.mean(bounds >= is_changed.mean()) >= 0.86  # 0.95 are expected
    test = rings(400, 2)[0]
    report = model.compress(
        X, test=test, vectors=vectors_of(model) // 5, steps=100, threads=1
    ).report
    n_changed = round(400 * changed(model, small, test))
    assert report.changed == n_changed / 400
    assert report.changed_at_most == most_changed(n_changed, 400, 1)


@methods
@pytest.mark.parametrize("kernel", ["laplacian", "exponential"])
def test_a_loss_is_kept_on_other_rows(kernel, method):
    X, y = rings(1500, 0)
    model = trained(X, y, kernel, method, scale="auto")
    small = model.compress(X, test=rings(3000, 1)[0], loss=10, steps=150, threads=1)
    assert small.report.changed_at_most <= 0.1
    assert changed(model, small, rings(20_000, 2)[0]) <= small.report.changed_at_most


def shop(n, seed):
    """Return numbers of few digits and a one-hot group of 20 columns, with labels."""
    rng = np.random.default_rng(seed)
    numbers = rng.uniform(0, 1, (n, 6)).round(4)
    group = rng.integers(0, 20, n)
    y = np.where(numbers[:, 0] + 0.5 * np.sin(6 * numbers[:, 1]) + group / 40 > 0.75, 1.0, -1.0)
    y[rng.random(n) < 0.1] *= -1
    return np.hstack([numbers, np.eye(20)[group]]).astype(np.float32), y


@kernels
@methods
def test_a_file_is_in_proportion_to_its_vectors(kernel, method, tmp_path):
    X, y = shop(2000, 0)
    model = trained(X, y, kernel, method)
    n_vectors = vectors_of(model)
    small = model.compress(X, vectors=n_vectors // 10, steps=200, threads=1)
    sizes = []
    for name, one in (("model", model), ("small", small)):
        one.save(tmp_path / name)
        sizes.append(os.path.getsize(tmp_path / name))
    assert vectors_of(small) == n_vectors // 10
    assert sizes[1] < 0.2 * sizes[0]
    rows = small.part().rows.as_floats().features
    assert np.isin(rows[:, 6:], [0, 1]).all()


def test_rows_that_chose_the_landmarks_are_no_test_rows():
    X, y = rings(600, 0)
    model, other = trained(X, y, "laplacian", "exact", scale="auto"), rings(400, 1)[0]
    for test in (other, np.concatenate([other[:200], rings(100, 2)[0]])):
        with pytest.raises(ValueError, match="of the test rows are among the rows to fit to"):
            model.compress(other, test=test, vectors=9)


def test_rows_may_repeat_by_chance():
    def coins(n, seed):
        return np.random.default_rng(seed).integers(0, 2, (n, 9)).astype(np.float32)

    X = coins(1000, 0)
    y = np.where(X[:, 0] == (X[:, 1] + X[:, 2] > 1), 1.0, -1.0)
    X[:, 8] += 0.5 * np.random.default_rng(3).random(1000)  # support vectors are not in the test
    model = trained(X, y, "laplacian", "exact")
    rows, test = coins(900, 1), coins(500, 2)
    assert model.compress(rows, test=test, vectors=9, steps=20, threads=1).report.n_test == 500
