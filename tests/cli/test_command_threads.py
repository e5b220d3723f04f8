"""Test that commands use all available threads, also for few rows, and as many as they are told."""

import json
from pathlib import Path

import pytest
from click.testing import CliRunner
from reference import libsvm_text

from dcsvm.cli import easy, grid, train
from dcsvm.machine import usable_threads

COMMANDS = {
    "dcsvm-train": (train, []),
    "dcsvm-grid": (grid, ["-log2c", "0,2,2", "-log2g", "null", "-v", "2"]),
    "dcsvm-easy": (easy, ["--time-limit", "2"]),
}


@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize("told", [None, 1])
def test_a_command_uses_the_threads_that_there_are(command, told, wavy, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    X, y = wavy
    Path("data").write_text(libsvm_text(X[:200], y[:200]))
    module, options = COMMANDS[command]
    threads = [] if told is None else ["--threads", str(told)]
    model = ["--model", "model", "data"] if command == "dcsvm-easy" else ["data", "model"]
    done = CliRunner().invoke(module.main, ["-q", *options, *threads, "--report", "r", *model])
    assert done.exit_code == 0, done.output
    assert find_threads(json.loads(Path("r").read_text())) == {told or usable_threads(None)}


def find_threads(report):
    """Return the values of all keys `threads` in a report."""
    if not isinstance(report, dict):
        return set()
    own = {report["threads"]} if "threads" in report else set()
    return own.union(*(find_threads(value) for value in report.values()))
