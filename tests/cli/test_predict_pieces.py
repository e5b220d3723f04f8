"""Test that dcsvm-predict reads batches, with the same output, and answers a pipe by lines."""

import subprocess
import weakref
from pathlib import Path

import numpy as np
import pytest
from reference import command_of, labelled_rows

from dcsvm.cli import predict, train
from dcsvm.data import files as data_files
from dcsvm.data.dataset import Dataset


@pytest.fixture
def files(invoke, write_libsvm):
    """Return an exact and early classifier with probabilities, a regression model and test rows."""
    X, y = labelled_rows(600, 4, seed=1)
    rows = write_libsvm(X, y, "train.txt")
    values = write_libsvm(X, np.sin(3 * X[:, 0]), "values.txt")
    assert invoke(train.main, "-q", "-c", 4, "-g", 1, "-l", 1, "-b", 1, rows, "m").exit_code == 0
    assert invoke(train.main, "-q", "-s", 3, "-g", 1, values, "curve").exit_code == 0
    test = write_libsvm(*labelled_rows(900, 4, seed=2), "test.txt")
    wide = Path(test).with_name("wide.txt")
    wide.write_text(Path(test).read_text() + "1 1:0.5 9:0.25\n-1 2:0.5\n")
    return {"labels": test, "wide": wide, "values": values}


@pytest.mark.parametrize("model", ["m", "curve"])
@pytest.mark.parametrize(
    "options", [[], ["--decision-values"], ["-b", 1], ["--early"], ["--scale", "range"]], ids=str
)
@pytest.mark.parametrize("name", ["labels", "wide"])
def test_pieces_give_the_lines_of_the_whole(invoke, files, monkeypatch, model, options, name):
    if model == "curve" and options[:1] in (["-b"], ["--early"]):
        return
    Path("range").write_text("x\n-1 1\n1 -2 2\n2 -1 1\n3 -1 1\n4 -1 1\n")
    whole = invoke(predict.main, *options, files[name], model, "whole")
    monkeypatch.setattr(data_files, "PIECE_BYTES", 3000)
    monkeypatch.setattr(data_files, "BATCH_READ", 500)
    parts = invoke(predict.main, *options, files[name], model, "parts")
    assert whole.exit_code == parts.exit_code == 0
    assert (whole.stdout, whole.stderr) == (parts.stdout, parts.stderr)
    assert Path("whole").read_text() == Path("parts").read_text()


@pytest.mark.parametrize("options", [[], ["--early"], ["--scale", "range"]], ids=str)
def test_the_rows_of_a_piece_are_gone_before_the_next_is_parsed(
    invoke, files, monkeypatch, options
):
    Path("range").write_text("x\n-1 1\n1 -2 2\n2 -1 1\n3 -1 1\n4 -1 1\n")
    monkeypatch.setattr(data_files, "PIECE_BYTES", 3000)
    of_text, pieces = Dataset.of_text, []

    def recorded(*arguments, **how):
        assert all(rows() is None for rows in pieces)
        data = of_text(*arguments, **how)
        pieces.append(weakref.ref(data.rows))
        return data

    monkeypatch.setattr(Dataset, "of_text", staticmethod(recorded))
    done = invoke(predict.main, *options, files["labels"], "m", "out")
    assert done.exit_code == 0
    assert len(pieces) > 3


def test_an_error_in_a_later_piece_leaves_the_output_as_it_was(invoke, files, monkeypatch):
    monkeypatch.setattr(data_files, "PIECE_BYTES", 3000)
    monkeypatch.setattr(data_files, "BATCH_READ", 500)
    bad = Path(files["labels"]).with_name("bad.txt")
    bad.write_text(Path(files["labels"]).read_text() + "1 1:oops\n")
    Path("out").write_text("before\n")
    done = invoke(predict.main, bad, "m", "out")
    assert (done.exit_code, done.stdout) == (1, "")
    assert done.stderr.startswith(f"error: {bad}:901:5: ")
    assert Path("out").read_text() == "before\n"


def started():
    """Start the command with pipes for input and output."""
    line, pipe = command_of("predict", "-", "m", "-"), subprocess.PIPE
    return subprocess.Popen(line, stdin=pipe, stdout=pipe, stderr=pipe, text=True, bufsize=1)


def test_a_line_of_a_pipe_is_answered_before_the_next_comes(invoke, files):
    whole = invoke(predict.main, "-q", files["labels"], "m", "whole")
    assert whole.exit_code == 0
    expected = Path("whole").read_text().splitlines()[:5]
    lines = Path(files["labels"]).read_text().splitlines()[:5]
    with started() as running:
        for line, label in zip(lines, expected, strict=True):
            running.stdin.write(line + "\n")
            assert running.stdout.readline() == label + "\n"
        running.stdin.close()
        assert running.stdout.read() == ""
        assert running.stderr.read().startswith("Model supports probability")
    assert running.returncode == 0


def test_a_wrong_line_of_a_pipe_ends_it_at_once(invoke, files):
    with started() as running:
        running.stdin.write("1 1:0.5\n")
        assert running.stdout.readline() in ("1\n", "-1\n")
        running.stdin.write("1 1:oops\n")
        assert running.stderr.readline().startswith("error: -:2:5: ")
        assert running.wait(20) == 1
