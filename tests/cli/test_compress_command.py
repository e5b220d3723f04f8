"""Test the files and messages of dcsvm-compress, with one test per kind of bad input."""

import os
import re
import sys
from pathlib import Path

import numpy as np
import pytest
from reference import labelled_rows, libsvm, program

import dcsvm
from dcsvm.cli import compress, predict
from dcsvm.cli.predict_file import bar_of
from dcsvm.cli.reading import TerminalProgress


@pytest.fixture
def test_file(write_libsvm):
    return write_libsvm(*labelled_rows(2000, 4, seed=9), "test.txt")


@pytest.fixture
def model_file(run, training):
    assert run("-q", "-c", 4, "-g", 2, "--bias", training, "m").exit_code == 0
    return "m"


def test_a_small_model_is_written_and_what_it_is_worth_is_said(
    invoke, training, test_file, model_file
):
    done = invoke(compress.main, "--vectors", 40, "--rows", training, "--test", test_file, "m")
    assert (done.exit_code, done.stderr) == (0, "")
    assert re.match(r"40 of \d+ vectors; 40 kernel evaluations per row, ", done.stdout)
    assert re.search(
        r"labels changed: \S+ % of 2000 test rows, at most \S+ % with 95 %", done.stdout
    )
    assert dcsvm.load_model("m.small").exact.rows.n_samples == 40
    assert invoke(predict.main, test_file, "m.small", "out").exit_code == 0


def test_svm_predict_reads_a_small_exact_model(invoke, training, test_file, model_file):
    assert invoke(compress.main, "-q", "--vectors", 40, "--rows", training, "m").output == ""
    ours = invoke(predict.main, test_file, "m.small", "out").stdout
    assert libsvm("svm-predict", test_file, "m.small", "theirs") == ours
    assert Path("out").read_text() == Path("theirs").read_text()


def test_an_early_model_is_compressed_where_it_is_asked_for(run, invoke, training):
    run("-q", "-c", 4, "-g", 2, "-l", 1, training, "m")
    assert invoke(compress.main, "--early", "--vectors", 40, "m", "small").exit_code == 0
    small = dcsvm.load_model("small")
    assert (small.exact, small.early.rows.n_samples) == (None, 40)
    assert invoke(predict.main, "--early", training, "small", "out").exit_code == 0


def test_the_range_file_goes_with_the_model(run, invoke, training):
    run("-q", "--scale", "auto", training, "m")
    assert invoke(compress.main, "--vectors", 40, "--rows", training, "m").exit_code == 0
    assert Path("m.range").read_text() == Path("m.small.range").read_text()
    assert invoke(predict.main, training, "m.small", "out").exit_code == 0
    done = program("compress", "-q", "--vectors", 40, "--rows", training, "m", "-")
    assert done.stdout == Path("m.small").read_text()


def test_a_range_file_that_cannot_be_written_is_told_before_compression(run, invoke, training):
    run("-q", "--scale", "auto", training, "m")
    os.mkdir("m.small.range")
    done = invoke(compress.main, "--vectors", 40, "m")
    assert (done.exit_code, done.stderr) == (1, "error: m.small.range: is a directory\n")
    assert not os.path.exists("m.small")


@pytest.mark.parametrize("kernel", [5, 6])
@pytest.mark.parametrize("early", [[], ["--early", "--early-level", 1]], ids=["exact", "early"])
@pytest.mark.parametrize("scale", ["auto", "quantile"])
def test_models_as_dcsvm_easy_makes_them_are_compressed(
    run, invoke, training, test_file, kernel, early, scale
):
    options = ["-t", kernel, "-g", "2/median", "-c", 4, "--scale", scale, "--weights", "learn"]
    assert run("-q", *options, *early, training, "m").exit_code == 0
    done = invoke(compress.main, "--vectors", 40, "--steps", 50, "--rows", training,
                  "--test", test_file, "m")  # fmt: skip
    assert (done.exit_code, done.stderr) == (0, "")
    assert "of 2000 test rows" in done.stdout
    model, small = dcsvm.load_model("m"), dcsvm.load_model("m.small")
    assert small.weights_by_index == model.weights_by_index
    assert small.part().rows.n_samples == 40
    assert invoke(predict.main, test_file, "m.small", "out").exit_code == 0


def test_a_table_is_compressed_by_its_files(run, invoke, tmp_path):
    pytest.importorskip("pyarrow")
    rng = np.random.default_rng(0)
    for name, n in (("train.csv", 300), ("test.csv", 200)):
        ages, jobs = rng.uniform(18, 80, n).round(2), rng.choice(["clerk", "smith"], n)
        labels = np.where((ages > 40) == (jobs == "clerk"), "over 50", "below")
        lines = map(",".join, zip(ages.astype(str), jobs, labels, strict=True))
        (tmp_path / name).write_text("\n".join(["age,job,income", *lines, ""]))
    train, test = tmp_path / "train.csv", tmp_path / "test.csv"
    options = ["-t", 5, "-g", "2/median", "-c", 4, "--scale", "auto", "--label", "income"]
    assert run("-q", *options, train, "m").exit_code == 0
    done = invoke(compress.main, "-q", "--vectors", 20, "--rows", train, "--test", test, "m")
    assert (done.exit_code, done.output) == (0, "")
    assert invoke(predict.main, test, "m.small", "out").exit_code == 0
    assert set(Path("out").read_text().splitlines()) == {"over 50", "below"}


@pytest.mark.parametrize(
    ("arguments", "status", "sentence"),
    [(["m"], 2, "give exactly one of --vectors, --times and --loss"),
     (["--vectors", "few", "m"], 2, "--vectors: 'few' is not a whole number"),
     (["--vectors", 9999, "m"], 1, "--vectors must be below the"),
     (["--loss", 1, "m"], 2, "--loss needs --test: rows that the model has not seen"),
     (["--vectors", 5, "--early", "m"], 1, "m: the model has no early level"),
     (["--vectors", 5, "--rows", "-", "--test", "-", "m"], 2, "cannot both be standard input"),
     (["--vectors", 5, "--scale", "r", "m"], 2, "--scale needs --rows or --test"),
     (["--vectors", 5, "--scale", "auto", "--rows", "r", "m"], 2, "--scale auto is for training"),
     (["--vectors", 5, "missing"], 1, "missing: no such file"),
     (["--vectors", 5, "--rows", "missing", "m"], 1, "missing: no such file"),
     (["--vectors", 5, "m", "m"], 1, "would replace another file"),
     (["--vectors", 5, "m", "nowhere/small"], 1, "no such folder")],
    ids=str,
)  # fmt: skip
def test_wrong_calls_are_one_sentence_and_write_nothing(
    run, invoke, training, arguments, status, sentence
):
    assert run("-q", "-c", 4, "-l", 0, training, "m").exit_code == 0
    done = invoke(compress.main, *arguments)
    assert (done.exit_code, done.stdout) == (status, "")
    assert done.stderr.startswith("error: ")
    assert sentence in done.stderr
    assert done.stderr.count("\n") == 1
    assert os.listdir() == ["m"]


@pytest.mark.parametrize("method", [[], ["--early"]], ids=str)
def test_rows_may_have_features_that_the_model_lacks(run, invoke, training, tmp_path, method):
    assert run("-q", "-c", 4, "-g", 2, "-l", 1, training, "m").exit_code == 0
    wide = tmp_path / "wide.txt"
    wide.write_text(training.read_text() + "1 1:0.5 9:0.25\n")
    done = invoke(compress.main, *method, "--vectors", 40, "--rows", wide, "m")
    assert (done.exit_code, done.stderr) == (0, "")
    assert invoke(predict.main, wide, "m.small", "out").exit_code == 0


def test_a_damaged_row_is_named_with_its_place(invoke, model_file, tmp_path):
    (tmp_path / "rows").write_text("1 1:0.5\n1 1:oops\n")
    done = invoke(compress.main, "--vectors", 5, "--rows", tmp_path / "rows", "m")
    assert done.exit_code == 1
    assert f"{tmp_path / 'rows'}:2:5: " in done.stderr


def test_test_rows_that_were_trained_on_are_refused(invoke, training, model_file):
    done = invoke(compress.main, "--vectors", 5, "--test", training, "m")
    assert done.exit_code == 1
    assert "m: the test rows include most of the support vectors" in done.stderr


def test_test_rows_that_were_fitted_to_are_refused(invoke, model_file, test_file):
    done = invoke(compress.main, "--vectors", 5, "--rows", test_file, "--test", test_file, "m")
    assert (done.exit_code, done.stdout) == (1, "")
    assert "m: 100 % of the test rows are among the rows to fit to: give test rows" in done.stderr
    assert not os.path.exists("m.small")


def test_the_bar_begins_anew_with_the_next_size(monkeypatch):
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True, raising=False)
    progress = TerminalProgress(quiet=False)
    tell = bar_of(progress)
    shown = []
    for done, total in [(1, 10), (10, 10), (2, 20), (20, 20)]:
        tell(done, total)
        shown.append((progress.bar.n, progress.bar.total))
    progress.close()
    assert shown == [(1, 10), (10, 10), (2, 20), (20, 20)]
