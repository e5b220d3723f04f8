"""Test models of shifted rows: as of rows less their smallest values, in the units of the data."""

import pickle
import shutil
import subprocess

import numpy as np
import pytest
import scipy.sparse
from reference import libsvm_text

import dcsvm
from dcsvm import load_model, train
from dcsvm.data.dataset import Dataset
from dcsvm.model.reader import ModelError

pandas = pytest.importorskip("pandas")

OPTIONS = {"C": 10.0, "bias": True, "threads": 1}


def dates(n=400, seed=0):
    """Return dates as numbers, and whether they are in even weeks of five days."""
    day = np.random.default_rng(seed).integers(1, 29, n)
    return np.c_[20180100.0 + day], np.where(day % 10 < 5, 1.0, -1.0), 0.5


def metres(n=400, seed=0):
    X = np.c_[[500000, 4649776] + np.random.default_rng(seed).uniform(0, 2, (n, 2))]
    return X, np.where(np.hypot(*(X - [500001, 4649777]).T) < 0.8, 1.0, -1.0), 2.0


def seconds(n=400, seed=0):
    rng = np.random.default_rng(seed)
    X = np.c_[rng.normal(size=n), 1.5e9 + rng.uniform(0, 60, n), rng.integers(0, 2, n)]
    return X, np.where(np.sin(X[:, 1] / 8) + 0.3 * X[:, 0] > 0, 1.0, -1.0), 0.05


def as_text(X, y):
    return Dataset.of_text(libsvm_text(X, y).encode(), "rows")


@pytest.fixture(params=[dates, metres, seconds], ids=lambda made: made.__name__)
def made(request):
    return request.param


@pytest.mark.parametrize("kernel", ["rbf", "laplacian", "exponential"])
@pytest.mark.parametrize(
    "form", [np.asarray, scipy.sparse.csr_matrix, pandas.DataFrame, list, as_text]
)
def test_a_model_is_that_of_rows_less_their_smallest_values(made, kernel, form):
    X, y, gamma = made()
    low = np.where(np.abs(X).min(axis=0) > 1000, X.min(axis=0), 0)
    wanted = train(X - low, y, kernel=kernel, gamma=gamma, **OPTIONS)
    given = form(X, y) if form is as_text else form(X)
    rows = (given,) if form is as_text else (given, y)
    model = train(*rows, kernel=kernel, gamma=gamma, **OPTIONS)
    assert np.array_equal(model.decision_function(given), wanted.decision_function(X - low))
    assert np.mean(model.predict(given) == y) > 0.97


@pytest.mark.parametrize("kernel", ["rbf", "laplacian"])
def test_saved_pickled_and_single_rows_have_the_same_values(made, kernel, tmp_path):
    X, y, gamma = made()
    model = train(X, y, kernel=kernel, gamma=gamma, probability=True, **OPTIONS)
    model.save(tmp_path / "a.model")
    again = load_model(tmp_path / "a.model")
    assert again.exact.rows.storage is model.exact.rows.storage
    values = model.decision_function(X)
    for one in (model, again, pickle.loads(pickle.dumps(model)), pickle.loads(pickle.dumps(again))):
        assert np.array_equal(one.decision_function(X), values)
        for few in (1, 3):
            assert np.array_equal(one.decision_function(X[:few]), values[:few])
        assert np.array_equal(one.predict_probability(X), model.predict_probability(X))
        assert np.array_equal(one.decision_function(scipy.sparse.csr_matrix(X)), values)
        assert np.array_equal(one.decision_function(Dataset(X)), values)
    again.save(tmp_path / "b.model")
    assert (tmp_path / "a.model").read_bytes() == (tmp_path / "b.model").read_bytes()
    assert not (tmp_path / "a.model.range").exists()


def test_rows_of_another_width_are_refused():
    X, y, gamma = seconds()
    model = train(X, y, gamma=gamma, **OPTIONS)
    for other in (X[:, :2], np.c_[X, X], X[:1, :1], np.c_[X, X][:1]):
        with pytest.raises(ValueError, match="features, the model was trained on 3"):
            model.predict(other)


def test_vectors_in_files_are_those_of_the_data(made, tmp_path):
    X, y, gamma = made()
    model = train(X, y, gamma=gamma, **OPTIONS)
    for format in ("dcsvm", "libsvm"):
        model.save(tmp_path / format, format)
        lines = (tmp_path / format).read_text().split("SV", 1)[1].split("\n")[1:]
        lines = lines[: model.exact.rows.n_samples]
        found = np.zeros((len(lines), X.shape[1]))
        for row, line in enumerate(lines):
            for word in line.split()[1:]:
                index, value = word.split(":")
                found[row, int(index) - 1] = float(value)
        low = np.where(np.abs(X).min(axis=0) > 1000, X.min(axis=0), 0)
        differences = found - low, X[model.exact.row_numbers] - low
        assert np.array_equal(*(one.astype(np.float32) for one in differences))
    assert load_model(tmp_path / "libsvm").decision_function(X) == pytest.approx(
        model.decision_function(X), abs=2e-3
    )


@pytest.mark.skipif(not shutil.which("svm-predict"), reason="LIBSVM is not installed")
@pytest.mark.parametrize("format", ["dcsvm", "libsvm"])
def test_svm_predict_gets_the_same_labels(made, tmp_path, format):
    X, y, gamma = made()
    model = train(X, y, gamma=gamma, probability=True, **OPTIONS)
    model.save(tmp_path / "a.model", format)
    test = made(300, 1)
    text = [f"{label:g} " + " ".join(f"{j + 1}:{value:.17g}" for j, value in enumerate(row))
            for row, label in zip(*test[:2], strict=True)]  # fmt: skip
    (tmp_path / "t").write_text("\n".join([*text, ""]))
    subprocess.run(["svm-predict", "t", "a.model", "out"], cwd=tmp_path, check=True,
                   capture_output=True)  # fmt: skip
    values = model.decision_function(test[0])
    is_sure = np.abs(values) > 1e-3
    found = np.loadtxt(tmp_path / "out")
    assert np.array_equal(found[is_sure], model.predict(test[0])[is_sure])


@pytest.mark.skipif(not shutil.which("svm-train"), reason="LIBSVM is not installed")
@pytest.mark.parametrize("first", [0, 1])
def test_a_model_of_svm_train_is_shifted_by_its_vectors(tmp_path, first):
    X, y, gamma = dates()
    text = [f"{label:g} {first}:{value:.17g}" for label, value in zip(y, X[:, 0], strict=True)]
    (tmp_path / "t").write_text("\n".join([*text, ""]))
    subprocess.run(["svm-train", "-q", "-c", "10", "-g", f"{gamma}", "t", "m"], cwd=tmp_path,
                   check=True, capture_output=True)  # fmt: skip
    model = load_model(tmp_path / "m")
    assert model.scaling.is_shift and model.scaling.indices.tolist() == [first]
    outcomes = list(model.predict_pieces(Dataset.pieces(tmp_path / "t", like=model)))
    assert np.mean(outcomes[0].predicted == y) == 1


def test_early_and_compressed_models_come_back(tmp_path):
    X, y, gamma = metres(2000)
    for more in ({"early": True}, {"levels": 1}):
        model = train(X, y, gamma=gamma, branching=4, **more, **OPTIONS)
        model.save(tmp_path / "a.model")
        again = load_model(tmp_path / "a.model")
        for given in (X, X[:1], scipy.sparse.csr_matrix(X)):
            assert np.array_equal(again.decision_function(given, method="early"),
                                  model.decision_function(given, method="early"))  # fmt: skip
        small = model.compress(X, vectors=40)
        small.save(tmp_path / "b.model")
        again = load_model(tmp_path / "b.model")
        assert again.decision_function(X) == pytest.approx(small.decision_function(X), abs=1e-6)
        assert np.mean(again.predict(X) == y) > 0.97
        again.save(tmp_path / "c.model")
        assert (tmp_path / "b.model").read_bytes() == (tmp_path / "c.model").read_bytes()


def test_training_starts_from_a_model_of_fewer_rows():
    X, y, gamma = metres(600)
    low = X[:, 0] > np.quantile(X[:, 0], 0.1)
    X, y = np.r_[X[low], X[~low]], np.r_[y[low], y[~low]]
    first = train(X[: low.sum()], y[: low.sum()], gamma=gamma, **OPTIONS)
    model = train(X, y, gamma=gamma, init_model=first, **OPTIONS)
    assert model.scaling is first.scaling
    wanted = train(X, y, gamma=gamma, **OPTIONS)
    assert model.decision_function(X) == pytest.approx(wanted.decision_function(X), abs=0.02)


def test_folds_test_rows_and_learned_weights_are_of_shifted_rows():
    X, y, gamma = seconds(600)
    low = [0, X[:, 1].min(), 0]
    for more in ({}, {"test": (X[:100], y[:100])}, {"feature_weights": "learn"}):
        found, wanted = (
            dcsvm.grid_search(
                rows, y, Cs=[1, 10], gammas=[gamma], threads=1,
                **{name: (one[0] - shift, one[1]) if name == "test" else one
                   for name, one in more.items()},
            )
            for rows, shift in ((X, 0), (X - low, low))
        )  # fmt: skip
        assert [one.loss for one in found.scores] == [one.loss for one in wanted.scores]
    model = train(X, y, gamma=gamma, feature_weights="learn", **OPTIONS)
    wanted = train(X - low, y, gamma=gamma, feature_weights="learn", **OPTIONS)
    assert np.array_equal(model.decision_function(X), wanted.decision_function(X - low))


def test_gamma_is_that_of_the_differences():
    X, y, _ = metres()
    for gamma in ("auto", "2/median"):
        model = train(X, y, gamma=gamma, **OPTIONS)
        assert (
            model.kernel.gamma == train(X - X.min(axis=0), y, gamma=gamma, **OPTIONS).kernel.gamma
        )
        assert np.mean(model.predict(X) == y) > 0.97


def test_other_kernels_warn():
    X, y, _ = dates()
    with pytest.warns(UserWarning, match="feature 0 is rounded to float32 by up to 1, .* 20180101"):
        model = train(X, y, kernel="linear", **OPTIONS)
    assert model.scaling is None


def test_a_description_names_the_shift():
    X, y, gamma = metres()
    model = train(X, y, gamma=gamma, **OPTIONS)
    assert [*model.description()][-1] == "scaling: smallest values of 2 features"
    assert "scaling" not in repr(model)


def test_a_shift_beyond_the_features_is_an_error(tmp_path):
    X, y, gamma = dates()
    train(X, y, gamma=gamma, **OPTIONS).save(tmp_path / "a.model")
    text = (tmp_path / "a.model").read_text()
    (tmp_path / "a.model").write_text(
        text.replace("scaling_columns 1", "scaling_columns 2000000000")
    )
    with pytest.raises(ModelError, match="scaling_columns must be ascending indices of features"):
        load_model(tmp_path / "a.model")
