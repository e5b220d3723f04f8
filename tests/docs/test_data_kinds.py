"""Test every cell of the tables of docs/data-kinds.md: a "yes" trains, any other is refused.

A cell is a kind of data and a door, a way to train. The tables name both; here each has a function.
For a "yes" the labels are those that were given, most predictions are right, and a saved model
predicts the same. Sample weights of 2 and 0 are compared with repeated and left-out rows.
"""

import bz2
import csv
import os
import pickle
import re
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner
from reference import libsvm_text

import dcsvm
from dcsvm.cli import easy as easy_command
from dcsvm.cli import grid as grid_command
from dcsvm.cli import predict as predict_command
from dcsvm.cli import train as train_command

pandas = pytest.importorskip("pandas")
sparse = pytest.importorskip("scipy.sparse")

PAGE = Path(__file__).resolve().parents[2] / "docs" / "data-kinds.md"
SECONDS = 5.0  # time limit of a search, which ends earlier
N, N_TEST = 160, 60
FIXED = {"C": 4.0, "gamma": 1.0}


def tables():
    """Return the two tables of the page: {kind: {door: cell}}."""
    found = []
    for text in re.findall(r"(?:^\|.*\n)+", PAGE.read_text(encoding="utf-8"), re.M):
        first, _, *rows = (
            [cell.strip() for cell in line.strip("|").split("|")] for line in text.splitlines()
        )
        found.append({kind: dict(zip(first[1:], cells, strict=True)) for kind, *cells in rows})
    return found


PYTHON, FILES = tables()


def cells(table):
    return [
        pytest.param(kind, door, cell, id=f"{kind}-{door}")
        for kind, doors in table.items()
        for door, cell in doors.items()
    ]


def numbers(seed=0):
    """Rows of three numbers, their labels 1 and 2, and more of them to predict."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(N + N_TEST, 3))
    y = np.where(X[:, 0] + np.abs(X[:, 1]) > 0.6, 2, 1)
    return X[:N], y[:N], X[N:], y[N:]


def frames(**columns):
    """Data frames with the numbers and more columns, which are functions of the numbers."""
    X, y, X_test, y_test = numbers()
    made = []
    for rows in (X, X_test):
        frame = pandas.DataFrame(rows, columns=["a", "b", "c"])
        for name, column in columns.items():
            frame[name] = column(rows)
        made.append(frame)
    return made[0], y, made[1], y_test


def with_gaps(rows):
    column = rows[:, 2].copy()
    column[::4] = np.nan
    return column


WORDS = {"w": lambda rows: np.where(rows[:, 2] > 0, "up", "down")}
ALL = {**WORDS, "b2": lambda rows: rows[:, 1] > 0, "g": with_gaps}


def of_numbers(change):
    X, y, X_test, y_test = numbers()
    return change(X), y, change(X_test), y_test


def polars_frames():
    polars = pytest.importorskip("polars")
    X, y, X_test, y_test = frames(**ALL)
    return polars.from_pandas(X), y, polars.from_pandas(X_test), y_test


def arrow_tables():
    pyarrow = pytest.importorskip("pyarrow")
    X, y, X_test, y_test = frames(**ALL)
    return (pyarrow.Table.from_pandas(X), y, pyarrow.Table.from_pandas(X_test), y_test)


def with_nan():
    X, y, X_test, y_test = numbers()
    for rows in (X, X_test):
        rows[::4, 2] = np.nan
    return X, y, X_test, y_test


def text_labels():
    X, y, X_test, y_test = numbers()
    names = np.array(["", "low", "high"])
    return X, names[y], X_test, names[y_test]


def categories(rows):
    return pandas.Categorical(WORDS["w"](rows))


def numbered(rows):
    return pandas.Categorical(np.unique(WORDS["w"](rows), return_inverse=True)[1])


KINDS = {
    "array": numbers,
    "array of float32, integers or booleans": lambda: of_numbers(lambda X: X.astype(np.float32)),
    "sparse matrix": lambda: of_numbers(lambda X: sparse.csr_matrix(np.where(abs(X) > 0.3, X, 0))),
    "pandas frame of numbers": frames,
    "frame with words": lambda: frames(**WORDS),
    "frame with categories": lambda: frames(w=categories, z=numbered),
    "frame with booleans": lambda: frames(b2=ALL["b2"]),
    "frame with gaps": lambda: frames(g=with_gaps),
    "polars frame": polars_frames,
    "Arrow table": arrow_tables,
    "array with nan": with_nan,
    "labels of text": text_labels,
}
WEIGHTS = np.tile([1.0, 2.0, 0.0, 1.0], N // 4)
SETTINGS = {
    "sample weights": {"sample_weight": WEIGHTS},
    "class weights": {"class_weight": {1: 2.0, 2: 1.0}},
    '`scale="auto"`': {"scale": "auto"},
    '`scale="quantile"`': {"scale": "quantile"},
    "feature weights": {"feature_weights": [1.0, 2.0, 0.5]},
    '`feature_weights="learn"`': {"feature_weights": "learn"},
    "metric": {"metric": "balanced-accuracy"},
}


def settings_of(kind):
    if kind == "the scaling of another model":
        X, y, *_ = numbers()
        return {"scale": dcsvm.train(X, y, scale="quantile").scaling}
    return SETTINGS.get(kind, {})


def data_of(kind):
    return KINDS.get(kind, numbers)()


@pytest.fixture(scope="module")
def client():
    pytest.importorskip("dask")
    from dcsvm.distributed.connection import workers_of_this_machine

    with workers_of_this_machine(1, threads=2) as one:
        yield one


def on_workers(values):
    """Divide values into delayed chunks."""
    from dask import delayed

    half = N // 2
    if hasattr(values, "to_batches"):  # an Arrow table
        return [delayed(values.slice(0, half)), delayed(values.slice(half))]
    if hasattr(values, "iloc"):
        return [delayed(values.iloc[:half]), delayed(values.iloc[half:])]
    return [delayed(values[:half]), delayed(values[half:])]


# A door: a function of rows, labels, settings and the fixture `client`. It returns a function that
# predicts, and the saved model or estimator that predicts again.


def of_model(model, tmp_path):
    model.save(tmp_path / "model")
    return model.predict, dcsvm.load_model(tmp_path / "model").predict


def by_train(X, y, settings, tmp_path, _client):
    return of_model(dcsvm.train(X, y, **FIXED, **settings), tmp_path)


def by_grid_search(X, y, settings, tmp_path, _client):
    searched = {key: value for key, value in settings.items() if key != "metric"}
    found = dcsvm.grid_search(X, y, Cs=[0.01, 4.0], gammas=[1.0], folds=3, **settings)
    assert found.best_C in (0.01, 4.0)
    return by_train(X, y, searched, tmp_path, None)


def by_easy(X, y, settings, tmp_path, _client):
    model = dcsvm.easy(X, y, time_limit=SECONDS, progress=dcsvm.Progress(), **settings)
    return of_model(model, tmp_path)


def by_distributed(X, y, settings, tmp_path, client):
    from dcsvm.distributed import train

    y = None if y is None else on_workers(y)
    return of_model(train(client, on_workers(X), y, **FIXED, **settings), tmp_path)


def by_estimator(name, **fixed):
    def fitted(X, y, settings, _tmp_path, _client):
        from dcsvm import sklearn

        settings = dict(settings)
        weights = settings.pop("sample_weight", None)
        one = getattr(sklearn, name)(**fixed, **settings)
        one.fit(X, y) if weights is None else one.fit(X, y, sample_weight=weights)
        return one.predict, pickle.loads(pickle.dumps(one)).predict

    return fitted


def by_dask_estimator(X, y, settings, _tmp_path, client):
    from dcsvm.distributed import DaskSVC

    settings = dict(settings)
    weights = settings.pop("sample_weight", None)
    one = DaskSVC(**FIXED, **settings, client=client)
    one.fit(on_workers(X), on_workers(y), sample_weight=weights)
    return one.predict, pickle.loads(pickle.dumps(one.to_local())).predict


DOORS = {
    "`train`": by_train,
    "`grid_search`": by_grid_search,
    "`easy`": by_easy,
    "`distributed.train`": by_distributed,
    "SVC, NuSVC, SVR, NuSVR, OneClassSVM": by_estimator("SVC", **FIXED),
    "SVCCV, SVRCV": by_estimator("SVCCV", Cs=[0.01, 4.0], gammas=[1.0], cv=3),
    "AutoSVC, AutoSVR": by_estimator("AutoSVC", time_limit=SECONDS),
    "DaskSVC, DaskSVR": by_dask_estimator,
}
OTHER_ESTIMATORS = {  # of the columns above: the rest, on targets or without
    "NuSVC": by_estimator("NuSVC", nu=0.3),
    "SVR": by_estimator("SVR", C=4.0),
    "NuSVR": by_estimator("NuSVR", C=4.0),
    "OneClassSVM": by_estimator("OneClassSVM", nu=0.3),
    "SVRCV": by_estimator("SVRCV", Cs=[0.01, 4.0], gammas=[1.0], cv=3),
    "AutoSVR": by_estimator("AutoSVR", time_limit=SECONDS),
}
SEARCHES = ("`easy`", "AutoSVC, AutoSVR")


def check(predict, again, X_test, y_test, *, least=0.8):
    """Check the labels of predictions, how many are right, and those of a saved model."""
    found = predict(X_test)
    assert set(found) <= set(y_test)
    assert np.mean(found == y_test) >= least
    assert np.array_equal(again(X_test), found)


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("kind, door, cell", cells(PYTHON))
def test_a_cell_of_python(kind, door, cell, tmp_path, request):
    client = None
    if door in ("`distributed.train`", "DaskSVC, DaskSVR"):
        client = request.getfixturevalue("client")
    X, y, X_test, y_test = data_of(kind)
    if kind == "`dcsvm.Dataset`":
        X, y = dcsvm.Dataset(X, y, scale="auto"), None
    if cell != "yes":
        assert re.fullmatch(r"No: .*\.", cell)
        with pytest.raises((TypeError, ValueError)):
            DOORS[door](X, y, settings_of(kind), tmp_path, client)
        return
    predict, again = DOORS[door](X, y, settings_of(kind), tmp_path, client)
    check(predict, again, X_test, y_test)
    if kind == "sample weights" and door not in SEARCHES:  # a search draws other folds
        rows = np.repeat(np.arange(N), WEIGHTS.astype(int))
        repeated, _ = DOORS[door](X[rows], y[rows], {}, tmp_path, client) if client is None else (
            by_train(X[rows], y[rows], {}, tmp_path, None))  # fmt: skip
        assert np.mean(predict(X_test) == repeated(X_test)) > 0.97


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("name", OTHER_ESTIMATORS)
@pytest.mark.parametrize("kind", ["frame with words", "frame with gaps", '`scale="auto"`'])
def test_the_other_estimators_take_the_same(name, kind, tmp_path):
    X, y, X_test, _ = data_of(kind)
    predict, again = OTHER_ESTIMATORS[name](X, y * 1.0, settings_of(kind), tmp_path, None)
    assert np.array_equal(predict(X_test), again(X_test))


# ------------------------------------------------------------------------------------------ files


def write_text(folder, first_index=1):
    X, y, X_test, y_test = numbers()
    for name, rows, labels in (("train", X, y), ("test", X_test, y_test)):
        text = libsvm_text(rows, labels)
        if first_index == 0:
            text = re.sub(r" (\d+):", lambda found: f" {int(found[1]) - 1}:", text)
        (folder / name).write_text(text)
    return "train", "test"


def write_packed(folder):
    for name in write_text(folder):
        (folder / f"{name}.bz2").write_bytes(bz2.compress((folder / name).read_bytes()))
    return "train.bz2", "test.bz2"


def write_csv(folder, labels=None, **columns):
    X, y, X_test, y_test = frames(**columns)
    for name, frame, own in (("train.csv", X, y), ("test.csv", X_test, y_test)):
        frame = frame.assign(y=own if labels is None else labels[own])
        frame.to_csv(folder / name, index=False, quoting=csv.QUOTE_MINIMAL)
    return "train.csv", "test.csv"


def write_columnar(folder, ending):
    pytest.importorskip("pyarrow")
    X, y, X_test, y_test = frames(**ALL)
    for name, frame, own in (("train", X, y), ("test", X_test, y_test)):
        write = frame.assign(y=own)
        path = folder / f"{name}.{ending}"
        write.to_parquet(path) if ending == "parquet" else write.to_feather(path)
    return f"train.{ending}", f"test.{ending}"


TEXT_LABELS = np.array(["", "low", "high"])
FILE_KINDS = {
    "LIBSVM text from index 0": lambda folder: write_text(folder, first_index=0),
    "packed by gzip, bzip2 or xz": write_packed,
    "CSV of numbers": write_csv,
    "CSV with words": lambda folder: write_csv(folder, **WORDS),
    "CSV with booleans": lambda folder: write_csv(folder, b2=ALL["b2"]),
    "CSV with gaps": lambda folder: write_csv(folder, g=with_gaps),
    "CSV with labels of text": lambda folder: write_csv(folder, TEXT_LABELS),
    "Parquet": lambda folder: write_columnar(folder, "parquet"),
    "Arrow or Feather": lambda folder: write_columnar(folder, "feather"),
    "`--weight COLUMN`": lambda folder: write_csv(folder, w=lambda X: np.arange(len(X)) % 2 + 1.0),
}
FILE_OPTIONS = {
    "`--weight COLUMN`": ["--weight", "w"],
    "`-wLABEL FACTOR`": ["-w1", "2"],
    "`--scale auto`": ["--scale", "auto"],
    "`--scale quantile`": ["--scale", "quantile"],
    "`--scale FILE`": ["--scale", "ranges"],
    "`--weights learn`": ["--weights", "learn"],
    "`--weights MODEL`": ["--weights", "weights.model"],
    "`--metric NAME`": ["--metric", "balanced-accuracy"],
}
COMMANDS = {
    "`dcsvm-train`": (train_command, ["-c", 4, "-g", 1]),
    "`dcsvm-grid`": (grid_command, ["-log2c", "-6,2,8", "-log2g", "0,0,1", "-v", 3]),
    "`dcsvm-easy`": (easy_command, ["--time-limit", SECONDS]),
    "`dcsvm-train --workers`": (train_command, ["-c", 4, "-g", 1]),
}


def call(command, *arguments):
    return CliRunner().invoke(command.main, [str(one) for one in arguments])


@contextmanager
def standard_input(path):
    """Make a file the standard input, of which commands read file descriptor 0."""
    before = os.dup(0)
    with open(path, "rb") as file:
        os.dup2(file.fileno(), 0)
    try:
        yield
    finally:
        os.dup2(before, 0)
        os.close(before)


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A folder with a range file and a model with feature weights."""
    monkeypatch.chdir(tmp_path)
    X, y, *_ = numbers()
    scaled = dcsvm.train(X, y, scale="auto")
    scaled.save("scaled.model")
    Path("scaled.model.range").rename("ranges")
    dcsvm.train(X, y, feature_weights=[1.0, 2.0, 0.5]).save("weights.model")
    return tmp_path


@pytest.mark.parametrize("kind, door, cell", cells(FILES))
def test_a_cell_of_files(kind, door, cell, folder, request):
    if "csv" in kind.lower() or "--weight COLUMN" in kind:
        pytest.importorskip("pyarrow")
    train, test = FILE_KINDS.get(kind, write_text)(folder)
    command, options = COMMANDS[door]
    options = [*options, *FILE_OPTIONS.get(kind, [])]
    if door.endswith("--workers`"):
        scheduler = request.getfixturevalue("client").scheduler.address
        is_first = kind == "LIBSVM text"  # the others spare the start of a worker
        options += ["--workers", 1] if is_first else ["--scheduler", scheduler]
    text = os.devnull
    if kind == "standard input":
        text, train = train, "-"
    model = ["--model", "model", train] if command is easy_command else [train, "model"]
    with standard_input(text):
        done = call(command, "-q", *options, *model)
    if cell != "yes":
        assert re.fullmatch(r"No: .*\.", cell)
        assert done.exit_code in (1, 2), done.output
        assert len(done.stderr.splitlines()) == 1
        return
    assert done.exit_code == 0, done.output
    ranges = ["--scale", "ranges"] if kind == "`--scale FILE`" else []
    done = call(predict_command, *ranges, test, "model", "out")
    assert done.exit_code == 0, done.output
    right = float(re.search(r"Accuracy = ([\d.]+)%", done.stdout)[1])
    assert right >= 80
    labels = set(Path("out").read_text().split())
    assert labels == ({"low", "high"} if "labels of text" in kind else {"1", "2"})


def test_every_name_of_the_tables_is_known():
    known = {*KINDS, *SETTINGS, "the scaling of another model", "`dcsvm.Dataset`"}
    assert set(PYTHON) == known
    assert all(set(doors) == set(DOORS) for doors in PYTHON.values())
    assert set(FILES) - {"LIBSVM text", "standard input"} == {*FILE_KINDS, *FILE_OPTIONS}
    assert all(set(doors) == set(COMMANDS) for doors in FILES.values())
