"""Test dcsvm-predict: labels, decision values, accuracy, and each kind of bad input."""

import csv
import json
import os
import shlex
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner
from reference import labelled_rows, program
from runs import train_rows

from dcsvm.cli import train
from dcsvm.cli.predict import main
from dcsvm.data.rows import Rows
from dcsvm.kernel.kernels import Kernel
from dcsvm.model.model import Model
from dcsvm.model.parts import ExactModel, Probability
from dcsvm.problem.options import TrainOptions


@pytest.fixture
def run(invoke):
    return partial(invoke, main)


@pytest.fixture
def model(trained, tmp_path):
    path = tmp_path / "wavy.model"
    trained[0].save(path)
    return path


@pytest.fixture
def test_file(wavy_test, write_libsvm):
    return write_libsvm(*wavy_test, "test.txt")


def lines_of(path):
    with open(path, encoding="ascii") as file:
        return file.read().splitlines()


@pytest.mark.parametrize(("options", "method"), [([], "exact"), (["--early"], "early")])
def test_labels_are_written_one_a_line(run, model, test_file, trained, wavy_test, options, method):
    result = run(*options, test_file, model, "out.txt")
    assert result.exit_code == 0, result.stderr
    predicted = trained[0].predict(wavy_test[0], method=method)
    assert lines_of("out.txt") == [f"{label:g}" for label in predicted]
    correct = int((predicted == wavy_test[1]).sum())
    line = f"Accuracy = {correct / 3:g}% ({correct}/300) (classification)\n"
    assert (result.stdout, result.stderr) == (line, "")


def test_decision_values_are_written_with_all_digits(run, model, test_file, trained, wavy_test):
    run("--decision-values", test_file, model, "out.txt")
    values = np.array([float(line.split()[1]) for line in lines_of("out.txt")])
    assert values.tobytes() == trained[0].decision_function(wavy_test[0]).tobytes()


def test_quiet_says_nothing(run, model, test_file):
    result = run("-q", test_file, model, "out.txt")
    assert (result.exit_code, result.stdout, result.stderr) == (0, "", "")
    assert len(lines_of("out.txt")) == 300


@pytest.mark.parametrize("output", ["-", "/dev/stdout"])
def test_predictions_on_standard_output_have_the_accuracy_on_stderr(model, test_file, output):
    done = program("predict", test_file, model, output)
    assert done.returncode == 0, done.stderr
    assert set(done.stdout.splitlines()) == {"1", "-1"}
    assert len(done.stdout.splitlines()) == 300
    assert done.stderr.startswith("Accuracy = ")
    assert len(done.stderr.splitlines()) == 1


def test_a_model_without_an_early_level_is_one_sentence(run, wavy, test_file, tmp_path):
    X, y = wavy
    flat, _ = train_rows(Rows.from_array(X), y, TrainOptions(gamma=2.0, levels=0, threads=1))
    path = tmp_path / "flat.model"
    flat.save(path)
    result = run("--early", test_file, path, "out.txt")
    assert result.exit_code == 1
    assert result.stdout == ""
    expected = f"error: {path}: the model has no early level, which --early needs\n"
    assert result.stderr == expected
    assert os.listdir() == []


def test_an_early_model_predicts_early_without_being_told(run, trained, test_file, tmp_path):
    model, _ = trained
    type(model)(model.kernel, model.labels, None, model.early).save(tmp_path / "early.model")
    model.save(tmp_path / "both.model")
    assert run(test_file, tmp_path / "early.model", "a.txt").exit_code == 0
    assert run("--early", test_file, tmp_path / "both.model", "b.txt").exit_code == 0
    assert lines_of("a.txt") == lines_of("b.txt")


@pytest.mark.parametrize("text", ["1 1:0.5\n", "1 1:1\n1 2:1\n", "17 1:1\n-3.5 9:1\n", "1\n"])
def test_a_test_file_may_hold_one_row_one_class_or_other_labels(run, model, tmp_path, text):
    path = tmp_path / "odd.txt"
    path.write_text(text)
    for option in ("--early", "-q"):
        result = run(option, path, model, "out.txt")
        assert result.exit_code == 0, result.stderr
        assert len(lines_of("out.txt")) == len(text.splitlines())


def test_labels_that_the_model_does_not_know_are_told(run, model, tmp_path):
    for label, n_warnings in ((1, 0), (5, 1)):
        (tmp_path / "t").write_text(f"{label} 1:0.5\n")
        result = run(tmp_path / "t", model, tmp_path / "out")
        assert result.exit_code == 0
        assert result.stderr.count("no label in") == n_warnings
    assert result.stderr.endswith("is one of the model's: 1, -1\n")


@pytest.mark.parametrize(
    ("text", "place"),
    [("", ": no rows"), ("1 1:1\n1 1\n", ":2:"), ("1 0:1\n", ":1:3: "), ("1 1:nan\n", ":1:5: ")],
)
def test_a_bad_test_file_is_one_sentence_with_its_place(run, model, tmp_path, text, place):
    path = tmp_path / "bad.txt"
    path.write_text(text)
    result = run(path, model, "out.txt")
    assert result.exit_code == 1
    assert result.stderr.startswith(f"error: {path}{place}")
    assert len(result.stderr.splitlines()) == 1
    assert os.listdir() == []


def test_a_model_that_cannot_be_read_is_named(run, model, test_file, tmp_path):
    for arguments, message in (
        ((test_file, "nothing.model", "out.txt"), "nothing.model: no such file"),
        ((test_file, tmp_path, "out.txt"), f"{tmp_path}: is a directory"),
        ((test_file, test_file, "out.txt"), f"{test_file}:1: this is not a model file"),
    ):
        result = run(*arguments)
        assert result.exit_code == 1
        assert result.stderr.startswith("error: ")
        assert message in result.stderr
        assert len(result.stderr.splitlines()) == 1
        assert result.stdout == ""
        assert os.listdir() == []


def sums(tmp_path, name, svm_type, labels=(), probability=None):
    """Write a model with decision values x_i - x_j for classes i and j, or x_1."""
    k = max(len(labels), 1)
    rows = Rows.from_array(np.eye(k))
    coef = np.array(
        [[1.0 if line >= i else -1.0 for i in range(k)] for line in range(max(k - 1, 1))]
    )
    n_sv = np.ones(k, np.int64) if labels else None
    exact = ExactModel(rows, coef, np.zeros(max(k * (k - 1) // 2, 1)), n_sv, np.arange(k))
    model = Model(Kernel("linear"), np.array(labels, float), exact, None, svm_type, probability)
    model.save(tmp_path / name)
    return tmp_path / name


def test_several_classes_have_a_column_a_pair(run, tmp_path, write_libsvm):
    path = sums(tmp_path, "three", "nu_svc", (4, 7, -2.5))
    test = write_libsvm([[1, 2, 3], [9, 2, 5.5], [1, 1, 1]], [7, 4, 1])
    result = run("--decision-values", test, path, "out.txt")
    assert lines_of("out.txt") == [
        "pairs 4,7 4,-2.5 7,-2.5",
        "-2.5 -1.0 -2.0 -1.0",
        "4 7.0 3.5 -3.5",
        "-2.5 0.0 0.0 0.0",
    ]
    assert result.stdout == "Accuracy = 33.3333% (1/3) (classification)\n"


def test_probabilities_follow_the_most_probable_label(run, tmp_path, write_libsvm):
    probability = Probability(np.array([-1.0]), np.array([np.log(3)]))
    path = sums(tmp_path, "two", "c_svc", (4, 7), probability)
    test = write_libsvm([[1, 1], [2, 1], [99, 0], [0, 99]], [4, 7, 4, 7])
    result = run("-b", "1", test, path, "out.txt")
    assert lines_of("out.txt") == [
        "labels 4 7",
        "7 0.25 0.75",
        "7 0.475367 0.524633",
        "4 1 1e-07",
        "7 1e-07 1",
    ]
    assert result.stdout == "Accuracy = 75% (3/4) (classification)\n"
    result = run("-b", "0", test, path, "out.txt")
    assert lines_of("out.txt") == ["7", "4", "4", "7"]
    assert result.stdout.splitlines() == [
        "Model supports probability estimates, but disabled in prediction.",
        "Accuracy = 50% (2/4) (classification)",
    ]


def test_a_regression_has_its_errors(run, tmp_path, write_libsvm):
    path = sums(tmp_path, "value", "epsilon_svr", (), Probability(np.array([0.25])))
    test = write_libsvm([[1], [2.5], [-3]], [1, 2, -2])
    result = run("-b", "1", test, path, "out.txt")
    assert lines_of("out.txt") == ["1", "2.5", "-3"]
    assert result.stdout.splitlines() == [
        "Prob. model for test data: target value = predicted value + z,",
        "z: Laplace distribution e^(-|z|/sigma)/(2sigma),sigma=0.25",
        "Mean squared error = 0.416667 (regression)",
        "Squared correlation coefficient = 0.999405 (regression)",
    ]
    one = write_libsvm([[1]], [1], "one.txt")
    assert run(one, path, "out.txt").stdout.splitlines()[1:] == [
        "Mean squared error = 0 (regression)",
        "Squared correlation coefficient = nan (regression)",
    ]


def test_one_class_says_what_is_inside(run, tmp_path, write_libsvm):
    path = sums(tmp_path, "one", "one_class")
    test = write_libsvm([[1], [-2.5], [3]], [1, 1, 1])
    result = run("--decision-values", test, path, "out.txt")
    assert lines_of("out.txt") == ["1 1.0", "-1 -2.5", "1 3.0"]
    assert result.stdout == "Accuracy = 66.6667% (2/3) (classification)\n"


def test_one_class_probabilities_are_those_of_svm_predict(run, tmp_path, write_libsvm):
    marks = Probability(np.array([-5.0, -4, -3, -2, -1, 1, 2, 3, 4, 5]))
    path = sums(tmp_path, "one", "one_class", probability=marks)
    assert "\nprob_density_marks -5 -4 -3 -2 -1 1 2 3 4 5\n" in path.read_text()
    values = [-6, -5, -4.5, -1, 0, 0.5, 1, 4.5, 6]
    test = write_libsvm([[value] for value in values], [1] * len(values))
    result = run("-b", "1", "--metrics", test, path, "out.txt")
    normal = [0.001, 0.1, 0.1, 0.5, 0.5, 0.5, 0.6, 0.9, 0.999]  # of svm-predict 3.37
    rows = [f"{1 if f > 0 else -1} {p:g} {1 - p:g}" for f, p in zip(values, normal, strict=True)]
    assert lines_of("out.txt") == ["label normal outlier", *rows]
    assert result.stdout.startswith("Accuracy = 44.4444% (4/9) (classification)\n")
    assert "log loss" not in result.stdout
    remark = "Model supports probability estimates, but disabled in prediction."
    assert run(test, path, "out.txt").stdout.startswith(f"{remark}\n")


@pytest.mark.parametrize(("svm_type", "labels"), [("c_svc", (1, 2)), ("one_class", ())])
def test_a_model_without_probabilities_is_one_sentence(run, tmp_path, test_file, svm_type, labels):
    path = sums(tmp_path, "none", svm_type, labels)
    result = run("-b", "1", "-q", test_file, path, "out.txt")
    assert (result.exit_code, result.stdout) == (1, "")
    assert result.stderr == f"error: {path}: the model has no probabilities, which -b 1 needs\n"


@pytest.mark.parametrize("arguments", [["-b", "2", "a", "b", "c"],
                                       ["-b", "1", "--decision-values", "a", "b", "c"],
                                       ["a", "b"], ["a", "b", "c", "d"], ["-x", "a", "b", "c"],
                                       ["--threads", "0", "a", "b", "c"]], ids=str)  # fmt: skip
def test_wrong_usage_is_one_sentence_and_exits_with_two(run, arguments):
    result = run(*arguments)
    assert result.exit_code == 2
    assert result.stderr.startswith("error: ")
    assert result.stderr.endswith(" --help\n")
    assert len(result.stderr.splitlines()) == 1


def test_a_huge_index_in_the_data_does_not_need_huge_memory(run, model, test_file, tmp_path):
    path = tmp_path / "rows.txt"
    path.write_bytes(test_file.read_bytes().splitlines()[0] + b"\n1 1:0.5 2147483646:1e-30\n")
    for options in ([], ["--early"]):
        assert run("--decision-values", *options, path, model, "wide.out").exit_code == 0
        assert run("--decision-values", *options, test_file, model, "out").exit_code == 0
        wide, plain = (float(lines_of(name)[0].split()[1]) for name in ("wide.out", "out"))
        assert abs(wide - plain) < 1e-5


@pytest.mark.parametrize(
    ("columns", "sentence"),
    [(4, None), (3, None), (2, None),
     (1, "up to index 1, the training set of MODEL up to 4: are they the same kind of data?"),
     (6, "up to index 6, the training set of MODEL up to 4: are they the same kind of data?")],
)  # fmt: skip
@pytest.mark.parametrize("options", [[], ["--early"]], ids=["exact", "early"])
def test_other_features_than_the_model_has_seen_are_told(
    run, model, write_libsvm, columns, sentence, options
):
    X = np.random.default_rng(0).random((20, columns)).round(3) + 0.001
    path = write_libsvm(X, np.ones(20), "other.txt")
    result = run(*options, path, model, "out.txt")
    assert result.exit_code == 0
    told = "" if sentence is None else f"warning: {path} has features {sentence}\n"
    assert result.stderr == told.replace("MODEL", str(model))
    assert run("-q", *options, path, model, "out.txt").stderr == ""
    path.write_text("1 1:0.5\n")  # few rows give no message
    assert run(*options, path, model, "out.txt").stderr == ""


def test_a_model_that_did_not_converge_is_told_of(tmp_path):
    X, y = labelled_rows(400, 3, seed=3, noise=0.2)
    options = TrainOptions(C=100.0, gamma=1.0, threads=1, cache_mb=50, levels=1, branching=2,
                           max_iterations=5)  # fmt: skip
    train_rows(Rows.from_array(X), y, options)[0].save(tmp_path / "m")
    (tmp_path / "t").write_text("1 1:0.5\n")
    files = [str(tmp_path / name) for name in ("t", "m", "out")]
    said = CliRunner().invoke(main, files)
    assert said.exit_code == 0
    assert "warning: the exact solution did not converge: violation " in said.stderr
    assert "; --early uses the clusters' models" in said.stderr
    assert CliRunner().invoke(main, ["--early", *files]).stderr == ""


def test_metrics_and_a_report_of_a_regression(invoke, write_libsvm, tmp_path):
    X = np.random.default_rng(0).uniform(-1, 1, (120, 2))
    data = write_libsvm(X, X[:, 0], "targets")
    invoke(train.main, "-q", "-s", "3", "-g", "1", data, "m")
    done = invoke(main, "--metrics", "--report", "r.json", data, "m", "-")
    assert "MAE 0." in done.stderr
    report = json.loads(Path("r.json").read_text())
    assert report["n_rows"] == 120
    assert report["metrics"]["r2"] > 0.9


TOWNS = {
    "plain": ["Rio", "Bern", "Oslo"],
    "spaces": ["Rio", "New York", "Los Angeles"],
    "CSV": ['the "Big" one', "a,b", "it's"],
    "line ends": ["two\nlines", "tab\tand\\back", "x\u2028y"],
}


def unquoted(word):
    """Undo the escapes in a word that a CSV reader has taken out of its quotes."""
    quote = '"'
    return json.loads(f'"{word.replace(quote, chr(92) + quote)}"') if "\\" in word else word


@pytest.mark.parametrize("kind", TOWNS)
def test_lines_have_a_word_for_each_label(invoke, kind):
    X = np.random.default_rng(0).uniform(-1, 1, (150, 2)).round(3)
    towns = np.array(TOWNS[kind], object)[np.digitize(X[:, 0], [-0.3, 0.3])]
    with open("t.csv", "w", newline="") as file:
        csv.writer(file).writerows([["a", "b", "town"], *zip(*X.T, towns, strict=True)])
    how = ["--format", "csv", "--scale", "auto", "-g", "1", "-c", "10"]
    assert invoke(train.main, "-q", "-b", "1", *how, "t.csv", "m").exit_code == 0
    for options, n_numbers in ((["-b", "1"], 3), (["--decision-values"], 3)):
        done = invoke(main, "--metrics", *options, "t.csv", "m", "out")
        assert done.exit_code == 0 and len(done.stdout.splitlines()) < 20
        lines = Path("out").read_text().splitlines()
        assert len(lines) == 151
        for words in (
            [next(csv.reader([line], delimiter=" ")) for line in lines],
            list(map(shlex.split, lines)),
        ):
            assert {len(line) for line in words} == {1 + n_numbers}
        head, *rows = [next(csv.reader([line], delimiter=" ")) for line in lines]
        assert {unquoted(row[0]) for row in rows} == set(towns)
        if options[0] == "-b":
            assert set(map(unquoted, head[1:])) == set(towns)
        else:
            pairs = [next(csv.reader([unquoted(pair)])) for pair in head[1:]]
            assert all(len(pair) == 2 and set(pair) < set(towns) for pair in pairs)
        if kind == "plain":
            assert '"' not in "".join(lines)
    invoke(main, "-q", "t.csv", "m", "out")
    lines = Path("out").read_text().splitlines()
    assert len(lines) == 150
    if kind in ("plain", "spaces"):
        assert set(lines) == set(towns)
    found = np.array(
        [unquoted(line[1:-1]) if line.startswith('"') else line for line in lines], object
    )
    assert np.mean(found == towns) > 0.9


def test_metrics_of_three_classes_with_probabilities(invoke, write_libsvm):
    X = np.random.default_rng(0).uniform(-1, 1, (150, 2))
    data = write_libsvm(X, np.digitize(X[:, 0], [-0.3, 0.3]), "classes")
    invoke(train.main, "-q", "-b", "1", "-g", "1", "-c", "10", data, "m")
    done = invoke(main, "--metrics", "-b", "1", data, "m", "out")
    assert "AUC 0.9" in done.stdout or "AUC 1.0" in done.stdout
    assert "(mean of one class against the rest)" in done.stdout
    assert "log loss 0." in done.stdout
    plain = invoke(main, "--metrics", data, "m", "out").stdout
    assert "AUC" not in plain
    assert "confusion matrix" in plain
