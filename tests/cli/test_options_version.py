"""Test --version: the version in the first line, a feature in each other."""

import pytest
from click.testing import CliRunner

import dcsvm
from dcsvm import system
from dcsvm.cli import compress, easy, export, grid, predict, train


@pytest.mark.parametrize("command", [train, easy, grid, predict, compress, export])
def test_the_first_line_is_the_command_and_the_version(command):
    done = CliRunner().invoke(command.main, ["--version"])
    assert done.exit_code == 0, done.output
    first, *others = done.stdout.splitlines()
    assert first == f"{command.main.name} {dcsvm.__version__}"
    assert others == [f"{name}: {value}" for name, value in system.features()]


def test_the_version_needs_no_other_argument_and_ignores_all():
    done = CliRunner().invoke(train.main, ["--version", "none", "-c", "0"])
    assert done.exit_code == 0
    assert done.stdout.startswith("dcsvm-train ")
