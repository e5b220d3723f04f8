"""Test every cell of the tables of docs/models.md: what works with which model.

A cell is a kind of model and a door, something to do with it. The tables name both; here each has
an entry. Where a cell says no, the door refuses with an error, and the page gives a reason.
"""

import re
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path

import numpy as np
import pytest
from c_runs import Program
from click.testing import CliRunner
from made_models import svm_train_text
from reference import libsvm, libsvm_text

import dcsvm
from dcsvm.cli import train as train_command

pandas = pytest.importorskip("pandas")

PAGE = Path(__file__).resolve().parents[2] / "docs" / "models.md"
TEXT = PAGE.read_text(encoding="utf-8")
NOTES = dict(re.findall(r"^\[\^(\w+)\]: (.*(?:\n    .*)*)", TEXT, re.M))
CELL = re.compile(r"(works|no)(?:\[\^(\w+)\])?")
N, N_TEST = 330, 60
SECONDS = 5.0  # time limit of a search, which ends earlier


def tables():
    """Return the two tables of the page: {kind: {door: cell}}."""
    found = []
    for text in re.findall(r"(?:^\|.*\n)+", TEXT, re.M):
        first, _, *rows = (
            [cell.strip() for cell in line.strip("|").split("|")] for line in text.splitlines()
        )
        found.append({kind: dict(zip(first[1:], cells, strict=True)) for kind, *cells in rows})
    return found


TRAINED, OTHERS = tables()


def cells(table):
    return [
        pytest.param(kind, door, cell, id=f"{kind}-{door}")
        for kind, doors in table.items()
        for door, cell in doors.items()
    ]


# ---------------------------------------------------------------------------------------- data


def two_classes(seed=0):
    """Return rows of three numbers, their labels 1 and 2, some of them wrong, and more rows."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(N + N_TEST, 3))
    y = np.where(X[:, 0] + 0.3 * np.abs(X[:, 1]) > 0.2, 2, 1)
    y[:N] = np.where(rng.random(N) < 0.08, 3 - y[:N], y[:N])
    return X[:N], y[:N], X[N:], y[N:]


def several_classes():
    X, _, T, _ = two_classes()
    y, t = (np.digitize(rows[:, 0], [-0.5, 0.5]) + 3 for rows in (X, T))
    return X, y, T, t


def targets():
    X, _, T, _ = two_classes()
    y, t = (np.sin(rows[:, 0]) + 0.5 * rows[:, 1] for rows in (X, T))
    return X, y + np.random.default_rng(1).normal(0, 0.1, N), T, t


def no_labels():
    X, _, T, _ = two_classes()
    return X, None, T, np.ones(N_TEST)


def kernel_matrix():
    X, y, T, t = two_classes()
    K, K_test = (np.exp(-((rows[:, None] - X) ** 2).sum(axis=2)) for rows in (X, T))
    return K, y, K_test, t


def frames():
    X, y, T, t = two_classes()
    made = []
    for rows in (X, T):
        frame = pandas.DataFrame(rows, columns=["a", "b", "c"])
        frame["word"] = np.where(rows[:, 2] > 0, "up", "down")
        frame.loc[::7, "c"] = np.nan
        made.append(frame)
    return made[0], y, made[1], t


def text_labels():
    X, y, T, t = two_classes()
    names = np.array(["", "low", "high"])
    return X, names[y], T, names[t]


# --------------------------------------------------------------------------------------- kinds

WEIGHTS = np.array([1.0, 0.8, 0.5])
RBF = {"gamma": 0.5}
EARLY = {"early": True, "early_level": 1, "branching": 2}
EARLY_FLAGS = ("--early", "--early-level", 1, "--branching", 2)


@dataclass(frozen=True)
class Kind:
    """Data, the options of training, the settings of the data, and the command's options."""

    options: dict = field(default_factory=lambda: RBF)
    settings: dict = field(default_factory=dict)
    flags: tuple = ("-g", 0.5)
    data: object = two_classes

    @property
    def all_options(self):
        return {"C": 4.0, **self.options, **self.settings}


def of_type(name, number, data=two_classes, **options):
    flags = [("-n", value) for value in options.values()]
    return Kind(
        {**RBF, "svm_type": name, **options}, {}, sum(flags, ("-g", 0.5, "-s", number)), data
    )


def of_kernel(number, name, data=two_classes, **parameters):
    letters = {"gamma": "-g", "coef0": "-r", "degree": "-d"}
    flags = [(letters[key], value) for key, value in parameters.items()]
    return Kind({"kernel": name, **parameters}, {}, sum(flags, ("-t", number)), data)


KINDS = {
    "linear kernel": of_kernel(0, "linear"),
    "polynomial kernel": of_kernel(1, "polynomial", gamma=0.5, coef0=1.0, degree=2),
    "rbf kernel": of_kernel(2, "rbf", gamma=0.5),
    "sigmoid kernel": of_kernel(3, "sigmoid", gamma=0.1, coef0=0.0),
    "laplacian kernel": of_kernel(5, "laplacian", gamma=0.3),
    "exponential kernel": of_kernel(6, "exponential", gamma=0.3),
    "precomputed kernel": of_kernel(4, "precomputed", kernel_matrix),
    "several classes": Kind(data=several_classes),
    "nu-SVC": of_type("nu_svc", 1, nu=0.4),
    "one-class": of_type("one_class", 2, no_labels, nu=0.3),
    "epsilon-SVR": of_type("epsilon_svr", 3, targets),
    "nu-SVR": of_type("nu_svr", 4, targets, nu=0.5),
    "early model": Kind({**RBF, **EARLY}, flags=("-g", 0.5, *EARLY_FLAGS)),
    "scaling by ranges": Kind(settings={"scale": "auto"}, flags=("-g", 0.5, "--scale", "auto")),
    "scaling by quantiles": Kind(
        settings={"scale": "quantile"}, flags=("-g", 0.5, "--scale", "quantile")
    ),
    "feature weights": Kind(
        settings={"scale": "auto", "feature_weights": WEIGHTS},
        flags=("-g", 0.5, "--scale", "auto", "--weights", "weights.model"),
    ),
    "columns of a table": Kind(data=frames),
    "labels of text": Kind(data=text_labels),
}


@lru_cache
def model_of(name):
    kind = KINDS[name]
    X, y, _, _ = kind.data()
    return dcsvm.train(X, y, **kind.all_options)


@lru_cache
def other_model(name):
    X, y, _, _ = two_classes()
    if name == "compressed exact model":
        return model_of("rbf kernel").compress(X, vectors=10, steps=60)
    if name == "compressed early model":
        return model_of("early model").compress(X, vectors=12, steps=60)
    return None  # in a file


def first_rows(T, n):
    return T.iloc[:n] if hasattr(T, "iloc") else T[:n]


def check(kind, model):
    """Check the predictions of a model of a kind."""
    _, _, T, t = kind.data()
    predicted = model.predict(T)
    if model.svm_type == "one_class":
        assert set(predicted) == {1.0, -1.0} and 0.3 < np.mean(predicted == 1) < 0.95
    elif model.is_regression:
        assert np.sqrt(np.mean((predicted - t) ** 2)) < 0.5 * np.std(t)
    else:
        assert np.mean(predicted == t) >= 0.8


def check_same(model, found, T):
    """Compare predictions with those of dcsvm."""
    expected = model.predict(T)
    if model.is_regression:
        np.testing.assert_allclose(found, expected, atol=1e-4)
    else:
        assert np.mean(np.asarray(found) == expected) > 0.98


# --------------------------------------------------------------------------------------- doors


def by_train(kind, _model, _folder, _request):
    X, y, _, _ = kind.data()
    check(kind, dcsvm.train(X, y, **kind.all_options))


def by_resume(kind, model, folder, _request):
    X, y, T, _ = kind.data()
    first = dcsvm.train(X, y, **kind.all_options, checkpoint=dcsvm.Checkpoint(folder / "run"))
    resumed = dcsvm.Checkpoint(folder / "run", resume=True)
    again = dcsvm.train(X, y, **kind.all_options, checkpoint=resumed)
    assert np.array_equal(again.predict(T), first.predict(T))
    check_same(model(), again.predict(T), T)


def by_predict(kind, model, folder, _request):
    _, _, T, _ = kind.data()
    model().save(folder / "model")
    loaded = dcsvm.load_model(folder / "model")
    assert np.array_equal(loaded.predict(T), model().predict(T))


def by_single_rows(kind, model, _folder, _request):
    _, _, T, _ = kind.data()
    found = model().decision_function(first_rows(T, 1))
    np.testing.assert_allclose(found[0], model().decision_function(T)[0], rtol=1e-5, atol=1e-5)


def by_early(kind, _model, _folder, _request):
    X, y, _, _ = kind.data()
    model = dcsvm.train(X, y, **kind.all_options | EARLY)
    assert model.exact is None
    check(kind, model)


def by_folds(kind, _model, folder, _request):
    X, y, _, _ = kind.data()
    if "weights.model" in kind.flags:
        dcsvm.train(X, y, **kind.all_options).save("weights.model")
    name = "rows"
    if y is not None and (hasattr(X, "iloc") or y.dtype.kind == "U"):
        pytest.importorskip("pyarrow")
        name = "rows.csv"
        frame = X if hasattr(X, "iloc") else pandas.DataFrame(X, columns=[*"abc"])
        frame.assign(label=y).to_csv(name, index=False)
    else:
        lines = libsvm_text(X, np.ones(N) if y is None else y).splitlines()
        if kind.data is kernel_matrix:
            lines = [re.sub(" ", f" 0:{k} ", line, count=1) for k, line in enumerate(lines, 1)]
        Path(name).write_text("\n".join([*lines, ""]))
    words = [str(word) for word in ("-q", "-c", 4, *kind.flags, "-v", 3, name)]
    done = CliRunner().invoke(train_command.main, words)
    assert done.exit_code == 0, done.output
    error = re.search(r"Cross Validation Mean squared error = ([\d.e-]+)", done.stdout)
    accuracy = re.search(r"Cross Validation Accuracy = ([\d.]+)%", done.stdout)
    assert float(error[1]) < 0.5 * np.var(y) if error else float(accuracy[1]) > 50


def by_probability(kind, _model, _folder, _request):
    X, y, T, _ = kind.data()
    model = dcsvm.train(X, y, **kind.all_options, probability=True)
    if model.is_regression:
        assert model.probability.A[0] > 0
    else:
        np.testing.assert_allclose(model.predict_probability(T).sum(axis=1), 1.0)


def by_grid(kind, _model, _folder, _request):
    X, y, _, _ = kind.data()
    given = {key: one for key, one in kind.all_options.items() if key not in ("C", "gamma")}
    if "gamma" in kind.options:
        given["gammas"] = [0.25, 0.5]
    if kind.options.get("svm_type") != "nu_svc":
        given["Cs"] = [0.25, 4.0]
    assert np.isfinite(dcsvm.grid_search(X, y, folds=3, **given).best_loss)


@lru_cache
def searched(data, svm_type, scale, has_weights):
    X, y, _, _ = data()
    settings = {"scale": scale, "feature_weights": WEIGHTS if has_weights else None}
    return dcsvm.easy(
        X, y, svm_type=svm_type, time_limit=SECONDS, progress=dcsvm.Progress(), **settings
    )


def by_easy(kind, _model, _folder, _request):
    chosen = kind.options.get("kernel", "rbf")
    if chosen not in ("rbf", "laplacian", "exponential"):  # it would be the only one
        dcsvm.easy(*kind.data()[:2], kernel=chosen)
    settings = kind.settings
    model = searched(
        kind.data, kind.options.get("svm_type"), settings.get("scale"),
        "feature_weights" in settings,
    )  # fmt: skip
    check(kind, model)


def by_compress(kind, model, _folder, _request):
    X, _, T, _ = kind.data()
    small = model().compress(None if kind.data is kernel_matrix else X, vectors=10, steps=60)
    assert small.part().rows.n_samples <= max(10, small.n_pairs)
    if small.is_regression:
        assert np.std(small.predict(T) - model().predict(T)) < 0.5 * np.std(model().predict(T))
    else:
        assert np.mean(small.predict(T) == model().predict(T)) >= 0.8


def by_onnx(kind, model, _folder, _request):
    if not hasattr(dcsvm.Model, "to_onnx"):
        pytest.skip("models cannot be converted to ONNX yet")
    pytest.importorskip("onnxruntime")
    if kind.data is kernel_matrix:
        model().to_onnx()
    from onnx_runs import outputs

    _, _, T, _ = kind.data()
    check_same(model(), np.ravel(outputs(model(), T)["label"]), T)


def by_c(kind, model, folder, _request):
    _, _, T, _ = kind.data()
    made = Program(model().to_c(), folder)
    rows = T if model().table is None else made.rows_of(model(), T)
    is_text = model().labels.dtype.kind == "U"
    check_same(model(), made.named_labels(rows) if is_text else made.labels(rows), T)


ESTIMATORS = {
    "c_svc": "SVC", "nu_svc": "NuSVC", "epsilon_svr": "SVR", "nu_svr": "NuSVR",
    "one_class": "OneClassSVM",
}  # fmt: skip


def by_to_sklearn(kind, model, folder, _request):
    # tests/sklearn has the name of the package
    pytest.importorskip("sklearn.svm")
    import dcsvm.sklearn as ours

    _, _, T, _ = kind.data()
    if kind.data is kernel_matrix or model().labels.dtype.kind == "U":  # a file has no such labels
        options = {key: one for key, one in kind.all_options.items() if key != "svm_type"}
        fitted = getattr(ours, ESTIMATORS[model().svm_type])(**options).fit(*kind.data()[:2])
    else:
        model().save(folder / "model")
        fitted = ours.load(folder / "model")
    check_same(model(), fitted.to_sklearn().predict(T), T)


def by_svm_predict(kind, model, folder, _request):
    _, _, T, t = kind.data()
    model().save(folder / "model", format="libsvm")
    rows = T
    if model().scaling is not None or model().table is not None:
        rows = np.asarray(model().rows_of(T).features, np.float64)
    lines = libsvm_text(rows, t).splitlines()
    if kind.data is kernel_matrix:
        lines = [re.sub(" ", " 0:1 ", line, count=1) for line in lines]
    (folder / "rows").write_text("\n".join([*lines, ""]))
    libsvm("svm-predict", folder / "rows", folder / "model", folder / "out")
    check_same(model(), np.loadtxt(folder / "out"), T)


@pytest.fixture(scope="module")
def client():
    pytest.importorskip("dask")
    from dcsvm.distributed.connection import workers_of_this_machine

    with workers_of_this_machine(1, threads=2) as one:
        yield one


def by_dask(kind, model, _folder, request):
    client = request.getfixturevalue("client")
    from dask import delayed

    from dcsvm.distributed import train

    def chunks(values):
        if values is None:
            return None
        parts = first_rows(values, N // 2), values[N // 2 :]
        return [delayed(part) for part in parts]

    X, y, _, _ = kind.data()
    check(kind, train(client, chunks(X), chunks(y), **kind.all_options))


DOORS = {
    "`train`": by_train,
    "resume": by_resume,
    "`predict`": by_predict,
    "single rows": by_single_rows,
    "early": by_early,
    "`-v`": by_folds,
    "`-b`": by_probability,
    "grid": by_grid,
    "easy": by_easy,
    "compress": by_compress,
    "ONNX": by_onnx,
    "C": by_c,
    "`to_sklearn`": by_to_sklearn,
    "svm-predict": by_svm_predict,
    "Dask": by_dask,
}


def try_cell(cell, work):
    if cell.startswith("works"):
        work()
        return
    with pytest.raises((TypeError, ValueError)):
        work()


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("name, door, cell", cells(TRAINED))
def test_a_cell_of_a_trained_model(name, door, cell, tmp_path, monkeypatch, request):
    monkeypatch.chdir(tmp_path)
    try_cell(cell, lambda: DOORS[door](KINDS[name], lambda: model_of(name), tmp_path, request))


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("name, door, cell", cells(OTHERS))
def test_a_cell_of_another_model(name, door, cell, tmp_path, request):
    kind = KINDS["rbf kernel"]
    if name == "model of svm-train":
        rows = "0.5 1:0.5 2:1\n1 1:0.25\n0.75 1:0.9 2:-1 3:0.5\n" * 4 + "-9 1:-1 2:0.25\n"
        (tmp_path / "theirs").write_text(svm_train_text(rows, label="2 1"))
        own = dcsvm.load_model(tmp_path / "theirs")
    else:
        own = other_model(name)
    if door == "compress":
        small = own.compress(two_classes()[0], vectors=6, steps=60)
        assert small.part().rows.n_samples <= 6
        return
    try_cell(cell, lambda: DOORS[door](kind, lambda: own, tmp_path, request))


def test_every_name_of_the_tables_is_known():
    assert set(TRAINED) == set(KINDS)
    assert all(list(doors) == list(DOORS) for doors in TRAINED.values())
    assert all(set(doors) <= set(DOORS) for doors in OTHERS.values())


def test_every_no_has_a_reason_of_one_sentence_and_every_note_is_used():
    found = [CELL.fullmatch(cell) for table in (TRAINED, OTHERS)
             for doors in table.values() for cell in doors.values()]  # fmt: skip
    assert all(one is not None and (one[1] == "works" or one[2]) for one in found)
    assert {one[2] for one in found} - {None} == set(NOTES)
    assert all(re.fullmatch(r"[A-Z][^.]*\.", " ".join(note.split())) for note in NOTES.values())
