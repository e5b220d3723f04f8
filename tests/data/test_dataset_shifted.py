"""Test which columns are shifted for float32, and the rows that a kernel of differences gets."""

import warnings

import numpy as np
import pytest
from reference import libsvm_text
from scipy import sparse

from dcsvm.data import reading
from dcsvm.data.arrays import Csr
from dcsvm.data.dataset import Dataset
from dcsvm.data.rows import Rows, Storage
from dcsvm.kernel.kernels import TYPES

pandas = pytest.importorskip("pandas")

DISTANCES = ("rbf", "laplacian", "exponential")
rng = np.random.default_rng(0)
N = 200
# columns that lose their differences in float32
LOST = {
    "dates": 20180100.0 + rng.integers(1, 29, N),
    "seconds": 1.5e9 + rng.uniform(0, 3600, N),
    "nanoseconds": 1.5e18 + 1e9 * rng.integers(0, 3600, N),
    "metres": 4649776 + rng.uniform(0, 2, N),
    "longitudes": -122.41941 + rng.uniform(0, 0.01, N),
}
# columns that float32 keeps as well as others
KEPT = {
    "normal": rng.normal(size=N),
    "years": 2000.0 + rng.integers(0, 4, N),
    "integers": 2.0**24 - rng.integers(1, 99, N),
    "constant": np.full(N, 20180131.0),
    "constant up to float64": 0.3 + 5e-17 * rng.integers(0, 2, N),
    "zero once": np.where(np.arange(N) == 77, 0.0, 1.5e9 + rng.uniform(0, 9, N)),
    "zero": np.zeros(N),
    "flags": rng.integers(0, 2, N).astype(float),
}


def unexpected(sentence):
    raise AssertionError(sentence)


def shifted(data, name="rbf", tell=unexpected):
    return data.shifted(TYPES[name], tell)


def text_file(tmp_path, X, y=None):
    path = tmp_path / "rows"
    path.write_text(libsvm_text(X, np.ones(len(X)) if y is None else y))
    return Dataset.read(path)


def csv_file(tmp_path, X):
    path = tmp_path / "rows.csv"
    pandas.DataFrame(X).assign(label=1).to_csv(path, index=False)
    return Dataset.read(path)


SOURCES = {
    "array": lambda folder, X: Dataset(X),
    "list": lambda folder, X: Dataset(X.tolist()),
    "sparse": lambda folder, X: Dataset(sparse.csr_matrix(X)),
    "frame": lambda folder, X: Dataset(pandas.DataFrame(X, columns=[*map(str, range(X.shape[1]))])),
    "text": text_file,
    "csv": csv_file,
}


@pytest.mark.parametrize("source", SOURCES)
@pytest.mark.parametrize("column", LOST)
def test_columns_that_lose_their_differences_are_shifted(tmp_path, source, column):
    X = np.column_stack([KEPT["normal"], LOST[column], KEPT["years"]])
    data = SOURCES[source](tmp_path, X)
    found = shifted(data)
    assert found.scaling.columns.tolist() == [1]
    assert found.scaling.features.offset.tolist() == [X[:, 1].min()]
    dense = np.asarray(found.rows.as_floats().features)
    assert np.array_equal(dense[:, 1], (X[:, 1] - X[:, 1].min()).astype(np.float32))
    assert np.array_equal(dense[:, [0, 2]], X[:, [0, 2]].astype(np.float32))
    # the data set is unchanged, and rows like these are shifted alike
    assert data.scaling is None and shifted(found) is found
    assert np.array_equal(data.rows.as_floats().features, X.astype(np.float32))
    again = Dataset(data._source, like=found)
    assert np.array_equal(again.rows.as_floats().features, dense)


@pytest.mark.parametrize("source", SOURCES)
@pytest.mark.parametrize("kernel", TYPES)
def test_ordinary_columns_stay(tmp_path, source, kernel):
    data = SOURCES[source](tmp_path, np.column_stack(list(KEPT.values())))
    assert shifted(data, kernel) is data
    assert shifted(data, kernel).rows is data.rows


def test_bytes_and_float32_have_nothing_to_lose():
    for X in (rng.integers(0, 255, (N, 80), np.uint8), LOST["metres"].astype(np.float32)[:, None]):
        data = Dataset(X)
        assert shifted(data) is data


def test_integers_are_shifted_as_floats_are():
    X = np.column_stack([LOST["dates"], KEPT["flags"]])
    rows = shifted(Dataset(X.astype(np.int64))).rows
    assert np.array_equal(rows.as_floats().features, shifted(Dataset(X)).rows.as_floats().features)
    assert rows.features[:, 0].max() < 32


def test_the_sparse_columns_of_shifted_rows_stay_sparse():
    others = sparse.random(N, 3000, 0.004, "csr", random_state=0)
    X = sparse.hstack([others, LOST["seconds"][:, None], others]).tocsr()
    plain, rows = Dataset(X).rows, shifted(Dataset(X)).rows
    assert plain.storage is rows.storage is Storage.SPARSE
    wanted = Rows.from_array(sparse.hstack([
        others, (LOST["seconds"] - LOST["seconds"].min()).astype(np.float32)[:, None], others,
    ]).tocsr())  # fmt: skip
    assert all(np.array_equal(*pair) for pair in zip(rows.csr, wanted.csr, strict=True))


@pytest.mark.parametrize("form", [np.asarray, sparse.csr_matrix], ids=["dense", "sparse"])
def test_a_row_without_the_value_is_far_from_all_others(form):
    X = np.column_stack([KEPT["normal"], LOST["seconds"]])
    data = shifted(Dataset(X))
    other = np.array([[0.5, 0.0], [0.0, X[0, 1]]])
    found = Dataset(form(other), like=data).rows.as_floats().features
    assert np.array_equal(found, (other - [0, X[:, 1].min()]).astype(np.float32))
    narrow = Dataset(sparse.csr_matrix(other[:1, :1]), like=data).rows
    assert np.array_equal(narrow.as_floats().features, found[:1])


def test_indices_from_0_are_those_of_the_file(tmp_path):
    path = tmp_path / "rows"
    lines = [f"1 0:{a!r} 1:{b!r}" for a, b in zip(KEPT["normal"], LOST["dates"], strict=True)]
    path.write_text("\n".join(map(str, lines)).replace("np.float64(", "").replace(")", ""))
    data = shifted(Dataset.read(path))
    assert data.first_index == 0 and data.scaling.columns.tolist() == [1]
    assert data.scaling.indices.tolist() == [1]
    path.write_text("1 1:20180131")  # the index 0 is absent
    again = Dataset.read(path, like=data).rows.features
    assert again.tolist() == [[0, 20180131 - LOST["dates"].min()]]


def test_rows_that_are_scaled_or_whose_source_is_gone_stay(tmp_path):
    X = LOST["dates"][:, None]
    for data in (Dataset(X, scale="auto"), Dataset(X, scale="quantile"), Dataset(X).disposable(),
                 Dataset(Rows.from_array(X))):  # fmt: skip
        assert shifted(data) is data


@pytest.mark.parametrize("first", ["weights", "shift"])
def test_weights_multiply_the_differences(first):
    X, weights = np.column_stack([KEPT["normal"], LOST["metres"], KEPT["years"]]), [2.0, 0.5, 0.0]
    if first == "weights":
        data = shifted(Dataset(X, feature_weights=weights))
    else:
        data = shifted(Dataset(X)).weighted(weights)
    differences = (X - [0, X[:, 1].min(), 0]).astype(np.float32)
    wanted = differences * np.float32(weights)
    assert np.array_equal(data.rows.features, wanted)
    assert not data.scaling.is_shift
    assert np.array_equal(Dataset(X, like=data).rows.features, wanted[:, :2])


@pytest.mark.parametrize("kernel", ["linear", "polynomial", "sigmoid"])
@pytest.mark.parametrize(
    ("source", "name"), [("array", "feature 2"), ("text", "feature 3"), ("csv", "column 2")]
)
def test_kernels_of_products_warn_of_a_column_by_its_name(tmp_path, source, name, kernel):
    X = np.column_stack([KEPT["normal"], KEPT["years"], LOST["dates"], LOST["seconds"]])
    told = []
    data = SOURCES[source](tmp_path, X)
    assert shifted(data, kernel, told.append) is data
    assert told == [
        f"{name} (1 more alike) is rounded to float32 by up to 1, and its values differ by at most "
        "27: subtract its smallest value, 20180101, or scale the features (--scale auto)"
    ]


def test_a_kernel_matrix_cannot_be_shifted():
    told = []
    data = Dataset(1e9 + rng.uniform(0, 1, (N, N)))
    assert shifted(data, "precomputed", told.append) is data
    assert "compute the kernel of features less their smallest values" in told[0]


def test_ordinary_text_is_read_once(tmp_path, monkeypatch):
    X = np.column_stack([KEPT["years"], KEPT["normal"], KEPT["integers"]])
    monkeypatch.setattr(reading, "PART_BYTES", 1000)
    data = text_file(tmp_path, X)
    parts = []
    make = reading.SvmlightRows._parts
    monkeypatch.setattr(
        reading.SvmlightRows, "_parts",
        lambda self, n_bytes: (parts.append(1) or part for part in make(self, n_bytes)),
    )  # fmt: skip
    assert shifted(data) is data and len(parts) == 1  # a part for the whole numbers


def test_values_beyond_float32_do_not_warn():
    X = np.column_stack([1e38 + 1e36 * rng.uniform(0, 1, N) for _ in range(2)])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        data = shifted(Dataset(X))
        assert data.scaling is None  # float32 keeps these
        shifted(Dataset(np.column_stack([LOST["metres"], X])))


def test_columns_of_csr_rows_are_read_and_replaced():
    X = np.where(rng.uniform(size=(30, 9)) < 0.4, rng.normal(size=(30, 9)), 0)
    csr, columns = Csr.of_dense(X, np.float64), np.array([0, 4, 8])
    assert np.array_equal(csr.of_columns(columns), X[:, columns])
    values = np.where(rng.uniform(size=(30, 3)) < 0.5, 7.0, 0)
    X[:, columns] = values
    found = csr.with_columns(columns, values)
    assert all(np.array_equal(*pair)
               for pair in zip(found, Csr.of_dense(X, np.float64), strict=True))  # fmt: skip
