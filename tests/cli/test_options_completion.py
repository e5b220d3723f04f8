"""Test shell completion, requested through the environment as a shell does."""

import os

import pytest
from reference import program


def completed(line, command="train"):
    """Return the (kind, value) pairs that bash gets for the last word of the arguments."""
    words = f"dcsvm-{command} {line}"
    variable = f"_DCSVM_{command.upper()}_COMPLETE"
    environment = {variable: "bash_complete", "COMP_WORDS": words,
                   "COMP_CWORD": str(len(words.split(" ")) - 1)}  # fmt: skip
    done = program(command, env=os.environ | environment)
    assert (done.returncode, done.stderr) == (0, "")
    return [tuple(found.split(",")) for found in done.stdout.split()]


@pytest.mark.parametrize(
    ("line", "values"),
    [("--ea", ["--early", "--early-level"]),
     ("-c 4 --report", ["--report"]),
     ("-r -1 -q --certi", ["--certify"]),
     ("--clustering k", ["kmeans"]),
     ("-c 4 --model-format ", ["dcsvm", "libsvm"]),
     ("-s ", ["0", "1", "2", "3", "4"]),
     ("-t 4", ["4"]),
     ("data --re", ["--resume", "--report"])],
    ids=str,
)  # fmt: skip
def test_names_and_choices(line, values):
    assert completed(line) == [("plain", value) for value in values]


@pytest.mark.parametrize("line", ["", "he", "-c 4 he", "-w-1 5 -q he", "data out", "--scale he",
                                  "--init-model ", "--report x"])  # fmt: skip
def test_files(line):
    word = line.split(" ")[-1]
    assert completed(line) == [("file", word)]


@pytest.mark.parametrize("line", ["--checkpoint ru", "--resume ru"])
def test_folders(line):
    assert completed(line) == [("dir", "ru")]


@pytest.mark.parametrize("line", ["-c ", "-g 2 -c ", "data model more "])
def test_nothing_is_offered_for_numbers_and_beyond(line):
    assert completed(line) == []


def test_predict_completes_the_same_way():
    assert completed("--ba", "predict") == []
    assert completed("--ea", "predict") == [("plain", "--early")]
    assert completed("data mo", "predict") == [("file", "mo")]
    assert completed("-b ", "predict") == [("plain", "0"), ("plain", "1")]


def test_export_completes_the_same_way():
    assert completed("--ea", "export") == [("plain", "--early")]
    assert completed("m.model m", "export") == [("file", "m")]


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_the_script_for_the_shell_is_printed(shell):
    done = program("train", env=os.environ | {"_DCSVM_TRAIN_COMPLETE": f"{shell}_source"})
    assert done.returncode == 0, done.stderr
    assert f"_DCSVM_TRAIN_COMPLETE={shell}_complete" in done.stdout
