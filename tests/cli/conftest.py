"""Fixtures for the tests of the commands."""

from functools import partial

import pytest
from click.testing import CliRunner

from dcsvm.cli import train


@pytest.fixture
def invoke(tmp_path, monkeypatch):
    """Run a command in an empty folder."""
    folder = tmp_path / "work"
    folder.mkdir()
    monkeypatch.chdir(folder)

    def invoke(command, *arguments):
        return CliRunner().invoke(command, [str(argument) for argument in arguments])

    return invoke


@pytest.fixture
def run(invoke):
    """Run dcsvm-train."""
    return partial(invoke, train.main)


@pytest.fixture
def training(wavy, write_libsvm):
    return write_libsvm(*wavy, "train.txt")
