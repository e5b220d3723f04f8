"""Test that a command checks all its files before it imports the module that does the work."""

import os

import click
import pytest
from click.testing import CliRunner

from dcsvm.cli import compress, easy, grid, guard, predict, train
from dcsvm.cli.options import OptionType

COMMANDS = [one.main for one in (train, predict, grid, easy, compress)]
every_command = pytest.mark.parametrize("command", COMMANDS, ids=lambda command: command.name)
NEEDED = {  # words without which a command refuses an option
    ("dcsvm-train", "test_file"): ["--early"],
    ("dcsvm-train", "feature_weights"): ["--scale", "auto"],
    ("dcsvm-compress", "scale"): ["--rows", "data"],
}
ALONE = ("described", "plotted")  # with one of these options a command needs no other file
REPLACED = "the output would replace another file of the command"


def kinds_of(parameter):
    """Return the FileKind of each word that a parameter takes, None if it is no file."""
    types = getattr(parameter.type, "types", [parameter.type])
    return [one.rule.file if isinstance(one, OptionType) else None for one in types]


def files_of(command, *, is_output):
    return [
        (parameter, k)
        for parameter in command.params
        for k, kind in enumerate(kinds_of(parameter))
        if kind is not None and kind.is_output is is_output
    ]


@pytest.fixture
def call(tmp_path, monkeypatch):
    """Return a function that calls a command with files, and returns its error.

    A file is (parameter, number of the word, path). The file `data` is every other input.
    """
    monkeypatch.chdir(tmp_path)
    (tmp_path / "folder").mkdir()
    (tmp_path / "data").touch()
    (tmp_path / "input").touch()

    def refuse(name):
        raise ValueError(f"{name} is imported")

    monkeypatch.setattr(guard, "import_module", refuse)

    def called(command, *files):
        given = {}
        for parameter, k, path in files:
            others = ["new.png" if kind.is_output else "data" for kind in kinds_of(parameter)]
            given.setdefault(parameter.name, others)[k] = path
        options = ["--vectors", "5"] if command.name == "dcsvm-compress" else []
        arguments = []
        for one in command.params:
            if isinstance(one, click.Option) and one.name in given:
                options += [
                    *NEEDED.get((command.name, one.name), ()),
                    one.opts[0],
                    *given[one.name],
                ]
            elif isinstance(one, click.Argument):
                (kind,) = kinds_of(one)
                arguments += given.get(one.name, ["new.out" if kind.is_output else "data"])
        done = CliRunner().invoke(command, [*options, *arguments])
        assert done.exit_code == 1, done.stderr
        return done.stderr.splitlines()[-1].removeprefix("error: ")

    return called


@every_command
def test_an_input_that_is_missing_or_a_folder_is_told_first(call, command):
    for parameter, k in files_of(command, is_output=False):
        kind = kinds_of(parameter)[k]
        found = call(command, (parameter, k, "missing"))
        if kind.is_awaited:
            assert found.endswith("imported")
        else:
            assert found == f"missing: no such {'folder' if kind.is_folder else 'file'}"
        found = call(command, (parameter, k, "folder"))
        assert found.endswith("imported" if kind.is_folder else "folder: is a directory")


@every_command
def test_an_output_that_cannot_be_written_is_told_first(call, command):
    missing = os.path.realpath("missing")
    for parameter, k in files_of(command, is_output=True):
        assert call(command, (parameter, k, "missing/out")) == f"{missing}: no such folder"
        assert call(command, (parameter, k, "new")).endswith("imported")
        found = call(command, (parameter, k, "folder"))
        is_folder = kinds_of(parameter)[k].is_folder
        assert found.endswith("imported" if is_folder else "folder: is a directory")


@every_command
def test_an_output_replaces_no_file_that_the_command_reads_or_writes(call, command):
    outputs = files_of(command, is_output=True)
    for one, k in [*files_of(command, is_output=False), *outputs]:
        kind = kinds_of(one)[k]
        name = "unused" if kind.is_output else "folder" if kind.is_folder else "input"
        for other, n in outputs:
            is_apart = one.name != other.name and {one.name, other.name} & set(ALONE)
            if (one, k) == (other, n) or is_apart:
                continue
            if kind.continued_by == other.name:
                assert call(command, (one, k, name), (other, n, name)).endswith("imported")
            else:
                found = call(command, (one, k, name), (other, n, f"./{name}"))
                assert found.endswith(REPLACED)


def test_an_output_does_not_replace_the_range_file(call):
    (model,) = (one for one in train.main.params if one.name == "model_file")
    for command in (train.main, grid.main):
        report = next(one for one in command.params if one.name == "report_file")
        scale = next(one for one in command.params if one.name == "scale")
        files = (report, 0, "m.range"), (model, 0, "m")
        assert call(command, *files, (scale, 0, "auto")).endswith(REPLACED)
        assert call(command, *files).endswith("imported")


def test_words_are_no_files(call):
    out = next(one for one in grid.main.params if one.name == "out_file")
    for word in ("auto", "quantile"):
        for command in (train.main, grid.main):
            scale = next(one for one in command.params if one.name == "scale")
            assert call(command, (scale, 0, word)).endswith("imported")
        assert call(grid.main, (scale, 0, word), (out, 0, word)).endswith("imported")
    weights = next(one for one in train.main.params if one.name == "feature_weights")
    assert call(train.main, (weights, 0, "learn")).endswith("imported")
    assert call(grid.main, (out, 0, "null")).endswith("imported")


@every_command
def test_standard_input_and_pipes_are_not_read_before(call, command):
    os.mkfifo("pipe")
    for parameter, k in files_of(command, is_output=False):
        if kinds_of(parameter)[k].is_folder or parameter.name == "resume_file":
            continue  # a pipe after -resume is the training set
        if command is easy.main and parameter.name == "training_set_file":
            continue  # it is read twice
        assert call(command, (parameter, k, "pipe")).endswith("imported")
        if "-" in kinds_of(parameter)[k].words and isinstance(parameter, click.Option):
            assert call(command, (parameter, k, "-")).endswith("imported")


def test_only_workers_read_their_training_set(call):
    (training,) = (one for one in train.main.params if one.name == "training_set_file")
    (scheduler,) = (one for one in train.main.params if one.name == "scheduler_file")
    files = (training, 0, "s3://bucket/data"), (scheduler, 0, "later")
    assert call(train.main, *files).endswith("imported")
