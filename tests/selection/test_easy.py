"""Test the search of all settings by `dcsvm.easy` and by dcsvm-easy."""

import json
import os
import re
import shlex
import signal
import time
from types import SimpleNamespace

import numpy as np
import pytest
from click.testing import CliRunner
from scipy import sparse

import dcsvm
from dcsvm import _core
from dcsvm.cli import easy as easy_command
from dcsvm.cli import predict, train
from dcsvm.cli.reading import TerminalProgress
from dcsvm.data.dataset import Dataset
from dcsvm.problem.options import TrainOptions
from dcsvm.selection.easy import _trained, task_of
from dcsvm.selection.final import Choice, Finalists, choose
from dcsvm.selection.search import EasySearch
from dcsvm.selection.trials import Clock, Scorer, with_metric
from dcsvm.training.report import Progress

LIMIT = 10.0  # seconds; the searches of these tests need about two


@pytest.fixture(scope="module")
def product():
    """Rows whose label is the sign of the product of two of six features."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(400, 6))
    return X, np.where(X[:, 0] * X[:, 1] > 0, 1.0, -1.0)


@pytest.fixture
def files(product, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    lines = [
        " ".join([f"{label:g}", *(f"{j + 1}:{value!r}" for j, value in enumerate(row.tolist()))])
        for row, label in zip(*product, strict=True)
    ]
    (tmp_path / "data").write_text("\n".join([*lines[:300], ""]))
    (tmp_path / "test").write_text("\n".join([*lines[300:], ""]))
    return tmp_path


def call(command, *arguments, status=0):
    done = CliRunner().invoke(command.main, [str(one) for one in arguments])
    assert done.exit_code == status, done.output
    return done


def search_of(X, y, clock, *, metric=None, tell=None):
    options, metric = with_metric(TrainOptions(threads=1), metric, y)
    return EasySearch(Dataset(X, y), options, metric, clock, Progress(), tell=tell)


def test_classes_and_targets_are_told_apart():
    assert task_of(np.array(["a", "b"])) == "c_svc"
    assert task_of(np.array([1.0, 2.0, 3.0])) == "c_svc"
    assert task_of(np.arange(33.0)) == "epsilon_svr"
    assert task_of(np.array([0.5, 1.0])) == "epsilon_svr"


def test_a_model_is_found_without_an_option(product):
    X, y = product
    words = np.where(y > 0, "yes", "no")
    model = dcsvm.easy(X[:300], words[:300], time_limit=LIMIT, threads=1)
    assert np.mean(model.predict(X[300:]) == words[300:]) > 0.75
    found = model.report.selection
    assert found["metric"] == "accuracy"
    assert found["n_held"] == 300
    assert found["skipped"] == []
    assert 0 < found["loss"] < 0.4
    assert 0 < found["standard_error"] < 0.05


def test_the_targets_of_a_regression_may_have_any_unit(product):
    X = product[0]
    y = 1e6 + 1e5 * X[:, 0] * X[:, 1]
    model = dcsvm.easy(X[:300], y[:300], time_limit=LIMIT, threads=1)
    assert model.svm_type == "epsilon_svr"
    errors = model.predict(X[300:]) - y[300:]
    assert np.std(errors) < 0.6 * np.std(y)
    scaled = dcsvm.easy(X[:300], y[:300] * 1e-9, time_limit=LIMIT, threads=1)
    assert scaled.predict(X[300:]) * 1e9 == pytest.approx(
        model.predict(X[300:]), abs=0.1 * np.std(y)
    )


@pytest.mark.parametrize("metric", ["balanced-accuracy", "f1", "auc", "log-loss"])
def test_a_metric_chooses(product, metric):
    X, y = product
    rare = np.flatnonzero((y > 0) | (np.arange(400) % 8 == 0))
    model = dcsvm.easy(X[rare], y[rare], metric=metric, time_limit=LIMIT, threads=1)
    assert model.report.selection["metric"] == metric


@pytest.mark.parametrize("metric", ["f1", "auc", "log-loss"])
def test_a_metric_chooses_among_several_classes(product, metric):
    X, y = product
    towns = np.array(["Rome", "Oslo", "Bern"])[np.where(X[:, 0] > 0.5, 2, y > 0)]
    model = dcsvm.easy(X[:300], towns[:300], metric=metric, time_limit=LIMIT, threads=1)
    assert model.report.selection["metric"] == metric
    assert 0 < model.report.selection["loss"] < {"f1": 0.5, "auc": 0.3, "log-loss": 0.8}[metric]
    assert np.mean(model.predict(X[300:]) == towns[300:]) > 0.6


def test_a_metric_that_does_not_fit_is_refused(product):
    X, y = product
    with pytest.raises(ValueError, match="the metric of classes must be one of accuracy"):
        dcsvm.easy(X, y, metric="mae")
    with pytest.raises(ValueError, match="time_limit must be above 0"):
        dcsvm.easy(X, y, time_limit=0)


@pytest.mark.parametrize("n_rows", [4, 10])
def test_few_rows_are_enough(product, n_rows):
    X, y = product
    model = dcsvm.easy(X[:n_rows], y[:n_rows], time_limit=LIMIT, threads=1)
    assert model.predict(X).shape == (400,)


def test_a_single_class_is_refused(product):
    with pytest.raises(ValueError, match="training needs two classes"):
        dcsvm.easy(product[0], np.ones(400), time_limit=LIMIT)


def test_the_time_limit_ends_the_search(product):
    X, y = product
    with pytest.raises(dcsvm.Stopped):
        dcsvm.easy(X, y, time_limit=1e-9)
    clock = Clock(LIMIT)
    search = search_of(X, y, clock, tell=lambda *_: clock.request())
    search.run()
    assert len(search.candidates) == 1
    assert search.skipped == [
        "the rest of kernels and scalings", "feature weights", "C and gamma", "once more",
        "smaller steps", "other folds",
    ]  # fmt: skip


def test_large_data_are_sampled_by_class():
    labels = np.repeat([0.0, 1.0], [11_000, 1000])
    data = Dataset(np.random.default_rng(0).normal(size=(12_000, 2)), labels)
    scorer = Scorer.of(data, TrainOptions(), "accuracy", 6000)
    labels = scorer.data.labels
    assert len(labels) == pytest.approx(6000, abs=10)
    assert np.mean(labels) == pytest.approx(1 / 12, abs=0.002)
    assert (scorer.n_folds, scorer.max_folds) == (1, 5)
    assert scorer.n_held + scorer.n_trained == len(labels)


def test_rows_that_are_held_back_choose_nothing():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(24_000, 3))
    search = search_of(X, np.where(X[:, 0] > 0, 1, -1), Clock(LIMIT))
    assert search.is_held_back.sum() == pytest.approx(4000, abs=300)
    for n_rows in (5000, 100_000):
        assert not search.is_held_back[search._scorer(n_rows).chosen].any()
    assert not search_of(X[:300], X[:300, 0] > 0, Clock(LIMIT)).is_held_back.any()


@pytest.mark.parametrize("metric", [None, "log-loss", "f1"])
def test_rows_of_weight_0_do_not_matter(product, metric):
    X, y = product
    weights = np.where(np.arange(400) % 10 == 0, 3.0, 0.0)  # 40 rows count
    model = dcsvm.easy(X, y, sample_weight=weights, metric=metric, time_limit=LIMIT, threads=1)
    assert model.report.selection["n_held"] == 40


def test_balanced_classes_are_chosen_by_balanced_accuracy(product):
    X, y = product
    model = dcsvm.easy(X, y, class_weight="balanced", time_limit=LIMIT, threads=1)
    assert model.report.selection["metric"] == "balanced-accuracy"


def test_text_labels_of_many_classes(product):
    X = product[0]
    letters = np.array(list("ABCDEFGHIJKLMNOPQRST"))[np.digitize(X[:, 0], np.linspace(-2, 2, 19))]
    model = dcsvm.easy(X[:300], letters[:300], time_limit=LIMIT, threads=1)
    assert set(model.predict(X[300:])) <= set(letters)


def test_a_model_has_the_probabilities_that_were_asked_for(product):
    X, y = product
    model = dcsvm.easy(X, y, probability=True, time_limit=LIMIT, threads=1)
    assert model.predict_probability(X).shape == (400, 2)


@pytest.mark.parametrize("limit", [0.3, 1.0])
def test_a_limit_that_ends_the_search_leaves_time_for_an_exact_model(limit):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(3000, 5))
    y = np.sign(X[:, 0] * X[:, 1] + 0.3 * rng.normal(size=3000))
    try:
        model = dcsvm.easy(X, y, time_limit=limit, threads=1)
    except dcsvm.Stopped:
        pytest.skip("a slow machine")
    assert model.exact is not None and model.report.converged


@pytest.mark.slow
@pytest.mark.parametrize("metric", [None, "auc"])
def test_an_early_model_is_chosen_for_many_rows(metric):
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, (60_000, 2))
    y = np.sign(np.sin(9 * X[:, 0]) * np.sin(9 * X[:, 1]))
    search = search_of(X, y, Clock(30.0), metric=metric)
    search.seconds_of_all = lambda: 1e9
    chosen = choose(search)
    assert chosen.trial.options.early
    assert chosen.loss < 0.05


def test_the_command_prints_a_command_that_repeats_it(files):
    done = call(easy_command, "--time-limit", LIMIT, "--report", "report.json", "data", "test")
    command, held, accuracy = done.stdout.splitlines()[:3]
    assert held.startswith("held-out accuracy ")
    assert accuracy.startswith("Accuracy = ")
    assert len((files / "test.predict").read_text().split()) == 100
    selection = json.loads((files / "report.json").read_text())["selection"]
    assert selection["command"] == command
    call(train, "-q", *shlex.split(command)[1:])
    assert (files / "data.again").read_bytes() == (files / "data.model").read_bytes()
    call(predict, "test", "data.model", "out")
    assert (files / "out").read_bytes() == (files / "test.predict").read_bytes()


@pytest.mark.parametrize(
    "arguments, reason",
    [
        (
            ("-s", "1", "data"),
            "-s must be 0, 2 or 3: nu-SVC and nu-SVR are other forms of 0 and 3",
        ),
        (("--time-limit", "0", "data"), "--time-limit must be above 0"),
        (("-",), "--model is required for standard input"),
        (("--model", "m", "-"), "the training set is read twice"),
        (("--metric", "x", "data"), "'x' is not one of"),
    ],
)
def test_wrong_usage_of_the_command(files, arguments, reason):
    assert reason in call(easy_command, *arguments, status=2).stderr


def test_a_table_is_learned_from_and_predicted(files):
    pytest.importorskip("pyarrow")
    rng = np.random.default_rng(0)
    ages, jobs = rng.integers(18, 80, 300), rng.choice(["clerk", "smith"], 300)
    rich = np.where((ages > 40) == (jobs == "smith"), ">50K", "<=50K")
    rows = [f"{age},{job},{one}" for age, job, one in zip(ages, jobs, rich, strict=True)]
    (files / "train.csv").write_text("\n".join(["age,job,income", *rows[:250], ""]))
    (files / "test.csv").write_text("\n".join(["age,job,income", *rows[250:], ""]))
    done = call(easy_command, "--time-limit", LIMIT, "train.csv", "test.csv")
    assert "table of 250 rows: label income (the last column)" in done.stderr
    assert set((files / "test.csv.predict").read_text().split()) == {">50K", "<=50K"}
    command = done.stdout.splitlines()[0]
    call(train, "-q", *shlex.split(command)[1:])
    assert (files / "train.csv.again").read_bytes() == (files / "train.csv.model").read_bytes()


def test_many_rows_without_time_for_clusters_have_an_early_model(monkeypatch):
    rng = np.random.default_rng(0)
    X = rng.random((25_000, 3))
    y = (X[:, 0] * X[:, 1] > 0.3).astype(float)
    monkeypatch.setattr(Finalists, "_by_clusters", lambda _: None)
    monkeypatch.setattr(EasySearch, "seconds_of_all", lambda _: 1e9)
    model = dcsvm.easy(X, y, time_limit=LIMIT, threads=2)
    assert model.early is not None and model.exact is None
    assert model.early.level == model.report.levels[0].level
    assert np.mean(model.predict(X) == y) > 0.95


def test_the_last_training_may_exceed_the_limit_and_an_early_one_is_not_stopped():
    clock = Clock(1e-9)
    last, early = clock.stop_of_last(early=False), clock.stop_of_last(early=True)
    last.check()
    clock.request()
    early.check()
    with pytest.raises(_core.Stopped):
        last.check()


def test_a_warning_is_about_the_model_that_is_taken(monkeypatch):
    def trained(_rows, progress, stop, **options):
        stop.check()
        report = SimpleNamespace(stopped=not options["early"], converged=options["early"])
        progress.caveat(report, "of an early model" if options["early"] else "of an exact model")
        return SimpleNamespace(report=report)

    monkeypatch.setattr("dcsvm.selection.easy.train", trained)
    told = []

    class Told(Progress):
        def caveat(self, report, sentence):
            told.append((report, sentence))

    def choice_of(early, otherwise=None):
        trial = SimpleNamespace(options=TrainOptions(gamma=1.0, early=early))
        rows = SimpleNamespace(without_source=lambda: None)
        return Choice(rows, trial, 0.1, 0.01, 100, otherwise)

    last = choice_of(early=True)
    chosen = choice_of(early=False, otherwise=last)
    model, choice = _trained(chosen, Clock(LIMIT), Told(), "accuracy")
    assert choice is last
    assert told == [(model.report, "of an early model")]


def test_the_search_sees_rows_that_are_not_rounded(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(1)
    times = 1.7e9 + rng.uniform(0, 600, 400)
    X = np.column_stack([times, rng.normal(size=400)])
    y = np.where(np.sin((times - 1.7e9) / 40) > 0, 1, -1)
    found = [dcsvm.easy(X, y, time_limit=LIMIT, threads=1).report.selection["loss"]]
    lines = [f"{label} 1:{a!r} 2:{b!r}" for label, (a, b) in zip(y, X.tolist(), strict=True)]
    (tmp_path / "data").write_text("\n".join([*lines, ""]))
    rows = [f"{a!r},{b!r},{label}" for label, (a, b) in zip(y, X.tolist(), strict=True)]
    (tmp_path / "data.csv").write_text("\n".join(["time,b,label", *rows, ""]))
    for name in ("data", "data.csv"):
        call(easy_command, "-q", "--time-limit", LIMIT, "--report", "report.json", name)
        found.append(json.loads((tmp_path / "report.json").read_text())["selection"]["loss"])
    assert max(found) < 0.05


def test_a_text_is_sampled_with_all_its_digits(tmp_path):
    lines = [f"{k} 1:{k + 1e9!r} {'' if k % 3 else '4:0.5'}" for k in range(50)]
    (tmp_path / "data").write_text("\n".join([*lines, ""]))
    found = Dataset.read(tmp_path / "data", is_lazy=True)
    assert (found.labels.tolist(), found.n_features) == (list(range(50)), 4)
    features = found.take(np.array([2, 3, 49])).scaled("auto").scaling.features
    assert (features.minimum.tolist(), features.maximum.tolist()) == ([2 + 1e9, 0], [49 + 1e9, 0.5])


@pytest.mark.parametrize("n_rows", [300, 24_000])
@pytest.mark.parametrize("is_sparse", [False, True])
def test_a_table_of_mostly_equal_rows_is_trained(n_rows, is_sparse):
    rng = np.random.default_rng(0)
    X = np.zeros((n_rows, 3))
    X[:40] = rng.integers(-2, 3, (40, 3))
    y = (X[:, 0] > 0) * 1.0
    rows = sparse.csr_matrix(X) if is_sparse else X
    model = dcsvm.easy(rows, y, time_limit=LIMIT if n_rows < 1000 else 3.0, threads=1)
    assert np.mean(model.predict(rows) == y) > 0.99


def test_equal_rows_are_a_sentence():
    with pytest.raises(ValueError, match="all rows are equal: there is nothing to learn from"):
        dcsvm.easy(np.ones((40, 3)), np.arange(40) % 2, time_limit=LIMIT)


@pytest.mark.parametrize("y", [[0, 1], [0.5, 1.7]])
def test_two_rows_are_enough(y):
    model = dcsvm.easy(np.eye(2), np.array(y), time_limit=LIMIT, threads=1)
    assert model.predict(np.eye(2)).shape == (2,)


@pytest.mark.parametrize("n_trials", [1, 2, 5, 9, 11])
def test_a_stopped_search_ends_with_the_best_setting_so_far(product, n_trials):
    X, y = product
    stop, told = dcsvm.Stop(), []

    def tell(*trial):
        told.append(trial)
        if len(told) == n_trials:
            stop.request()
            time.sleep(0.2)

    model = dcsvm.easy(X[:300], y[:300], time_limit=LIMIT, threads=1, stop=stop, tell=tell)
    found = model.report.selection
    assert len(told) == n_trials
    assert (found["C"], found["kernel"]) == (told[-1][2].candidate.C, model.kernel.type.name)
    assert found["loss"] >= told[-1][2].loss  # corrected: it is the best of several
    assert model.report.converged
    assert "C and gamma" in found["skipped"]


def test_a_stop_before_the_first_trial_and_a_tiny_limit_are_sentences(product):
    stop = dcsvm.Stop()
    stop.request()
    with pytest.raises(dcsvm.Stopped, match="stopped before a setting was scored"):
        dcsvm.easy(np.tile(product[0], (30, 1)), np.tile(product[1], 30), stop=stop)
    with pytest.raises(dcsvm.Stopped, match="the time limit of 1e-06 s is too short"):
        dcsvm.easy(*product, time_limit=1e-6)
    with pytest.raises(TypeError, match="stop must be a dcsvm.Stop"):
        dcsvm.easy(*product, stop=3)


def test_a_signal_during_the_search_writes_the_best_model(files, monkeypatch):
    monkeypatch.setattr(TerminalProgress, "trial", lambda *_: os.kill(os.getpid(), signal.SIGTERM))
    monkeypatch.setattr(EasySearch, "_set_folds", lambda *_: time.sleep(0.3))
    done = call(easy_command, "--time-limit", LIMIT, "data", status=143)
    assert "held-out accuracy" in done.stdout
    call(predict, "test", "data.model", "out")


def test_repeated_scores_of_a_setting_are_one_trial(files):
    done = call(easy_command, "--time-limit", LIMIT, "--report", "report.json", "data", "test")
    counts = [int(count) for count in re.findall(r": (\d+) trials?; best", done.stderr)]
    assert counts[:2] == [8, 2]
    assert counts[2] <= 7
    assert "other folds: no new setting; best: " in done.stderr
    selection = json.loads((files / "report.json").read_text())["selection"]
    assert selection["n_trials"] == sum(counts)


def test_the_outputs_are_named_and_there_is_no_range_file(files):
    done = call(easy_command, "--time-limit", LIMIT, "data", "test")
    assert "model file: data.model; this command trains it again:" in done.stderr
    assert "test file test, predictions in test.predict:" in done.stderr
    assert {one.name for one in files.iterdir()} == {"data", "test", "data.model", "test.predict"}


@pytest.mark.parametrize(
    "content, sentence",
    [("1 1:0.5 x\n", "test:1:9: no colon"), ("", "test: no rows"), (None, "test: is a directory")],
)
def test_a_wrong_test_file_is_found_before_the_search(files, monkeypatch, content, sentence):
    monkeypatch.setattr(EasySearch, "run", lambda _: pytest.fail("the search began"))
    (files / "test").unlink()
    if content is None:
        (files / "test").mkdir()
    else:
        (files / "test").write_text(content)
    assert f"error: {sentence}" in call(easy_command, "-q", "data", "test", status=1).stderr


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_a_table_that_does_not_fit_is_found_before_the_search(files, monkeypatch, ending):
    pandas = pytest.importorskip("pandas")
    monkeypatch.setattr(EasySearch, "run", lambda _: pytest.fail("the search began"))
    table = pandas.DataFrame({"a": np.arange(30), "b": ["x", "y"] * 15, "label": [0, 1] * 15})
    write = {"csv": lambda one, name: one.to_csv(name, index=False),
             "parquet": lambda one, name: one.to_parquet(name)}[ending]  # fmt: skip
    train_file, test_file = (f"{name}.{ending}" for name in ("train", "test"))
    write(table, train_file)
    for wrong, sentence in (
        (table.drop(columns="a"), "no column a, which the model needs"),
        (table.assign(a="four"), "'four' is not a number"),
    ):
        write(wrong, test_file)
        done = call(easy_command, "-q", train_file, test_file, status=1)
        assert sentence in done.stderr
    sentence = "the model was trained on a table: give a table"
    assert sentence in call(easy_command, "-q", train_file, "test", status=1).stderr
    sentence = "the model was not trained on a table: give LIBSVM text"
    assert sentence in call(easy_command, "-q", "data", test_file, status=1).stderr
