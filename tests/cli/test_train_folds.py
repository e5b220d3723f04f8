"""Test -v: it prints svm-train's lines and writes no model; tools can read the lines."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from dcsvm.cli import train_file
from dcsvm.data.dataset import Dataset
from dcsvm.model.metrics import Measurement, Outcome
from dcsvm.problem.options import TrainOptions
from dcsvm.training.probability import cross_validate

FAST = ["-c", "4", "-g", "2", "--threads", "1", "-m", "50"]


@pytest.fixture
def training(wavy, write_libsvm):
    X, y = wavy
    return write_libsvm(X[:300], y[:300], "train.txt")


def predicting(monkeypatch, predicted):
    def found(data, options, *_):
        measured = Measurement(options.svm_type, np.zeros(0))
        measured.add(Outcome(data.labels, np.array(predicted)))
        return measured, 0

    monkeypatch.setattr(train_file, "cross_validate", found)


@pytest.mark.parametrize("quiet", [[], ["-q"]])
def test_the_accuracy_is_svm_trains_line_even_when_quiet(run, training, quiet):
    result = run(*FAST, *quiet, "-v", 3, training)
    assert result.exit_code == 0, result.stderr
    assert re.fullmatch(r"Cross Validation Accuracy = [789]\d(\.\d{1,4})?%\n", result.stdout)
    assert (result.stderr == "") == bool(quiet)
    assert os.listdir() == []


def test_a_model_file_is_not_written_either(run, training):
    assert run(*FAST, "-q", "-v", 2, training, "a.model").exit_code == 0
    assert os.listdir() == []


def test_the_number_is_printed_as_c_prints_it(run, write_libsvm, monkeypatch):
    path = write_libsvm(np.eye(9), [1, 1, 1, 1, 1, -1, -1, -1, -1])
    predicting(monkeypatch, [1, 1, 1, 1, 1, -1, -1, -1, 1])
    assert run("-v", 2, path).stdout == "Cross Validation Accuracy = 88.8889%\n"
    predicting(monkeypatch, [1, 1, 1, 1, 1, -1, -1, -1, -1])
    assert run("-v", 2, path).stdout == "Cross Validation Accuracy = 100%\n"


def test_a_regression_has_two_lines(run, write_libsvm, monkeypatch):
    path = write_libsvm(np.eye(4), [1, 2, 3, 5])
    predicting(monkeypatch, [1.5, 2, 2.5, 4])
    result = run("-s", 3, "-v", 2, path)
    correlation = np.corrcoef([1.5, 2, 2.5, 4], [1, 2, 3, 5])[0, 1] ** 2
    assert result.stdout == (
        "Cross Validation Mean squared error = 0.375\n"
        f"Cross Validation Squared correlation coefficient = {correlation:g}\n"
    )
    predicting(monkeypatch, [2, 2, 2, 2])
    assert "coefficient = nan\n" in run("-s", 4, "-v", 2, path).stdout


def test_targets_of_a_regression_are_not_warned_about(run, write_libsvm, monkeypatch):
    path = write_libsvm(np.ones((30, 1)), np.arange(30))
    predicting(monkeypatch, np.arange(30))
    assert "labels" not in run("-s", 3, "-v", 2, path).stderr
    assert "labels" in run("-s", 0, "-v", 2, path).stderr


def test_more_folds_than_rows_leave_one_out(run, write_libsvm):
    path = write_libsvm(np.array([[1.0], [1.1], [-1.0], [-1.1]]), [1, 1, 2, 2])
    result = run(*FAST, "-q", "-v", 100, path)
    assert result.stdout == "Cross Validation Accuracy = 100%\n"
    assert "100 folds, but 4 rows: leave-one-out instead" in result.stderr


def test_folds_that_did_not_converge_exit_with_three(run, training):
    result = run(*FAST, "-q", "--max-iter", 5, "-v", 2, training)
    assert result.exit_code == 3
    assert result.stdout.startswith("Cross Validation Accuracy = ")
    assert result.stderr == "warning: 2 of 2 folds did not converge\n"


def test_there_is_no_report_of_a_cross_validation(run, training):
    result = run(*FAST, "-v", 2, "--report", "r.json", training)
    assert result.exit_code == 2
    assert "--report cannot be used with cross-validation (-v)" in result.stderr


def test_svm_grid_runs_unchanged(training, tmp_path):
    their_grid, ours = shutil.which("svm-grid"), Path(sys.executable).with_name("dcsvm-train")
    if their_grid is None or not ours.exists():
        pytest.skip("svm-grid or dcsvm-train is not installed")
    done = subprocess.run(
        [sys.executable, their_grid, "-log2c", "0,2,2", "-log2g", "1,-1,-2", "-v", "3",
         "-svmtrain", ours, "-gnuplot", "null", "-m", "50", training],
        cwd=tmp_path, capture_output=True, text=True, timeout=120,
    )  # fmt: skip
    lines = done.stdout.splitlines()
    assert len(lines) == 5, done.stderr
    C, gamma, rate = map(float, lines[-1].split())
    data = Dataset.read(training)
    rates = {}
    for each in [(1, 0.5), (1, 2), (4, 0.5), (4, 2)]:
        options = TrainOptions(C=each[0], gamma=each[1], cache_mb=50)
        measured, _ = cross_validate(data, options, 3)
        right = measured.kept[0].predicted == data.labels
        rates[each] = float(f"{100 * np.mean(right):g}")
    assert rate == rates[C, gamma] == max(rates.values())
    written = (tmp_path / "train.txt.out").read_text().splitlines()
    assert sorted(float(line.split("rate=")[1]) for line in written) == sorted(rates.values())
