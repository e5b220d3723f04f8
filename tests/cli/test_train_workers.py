"""Test the options of dcsvm-train on workers; impossible requests give a one-sentence error."""

import json
import sys

import pytest
from click.testing import CliRunner

from dcsvm.cli.predict import main as predict
from dcsvm.cli.train import main


def run(command, *arguments):
    return CliRunner().invoke(command, [str(one) for one in arguments])


@pytest.fixture
def training_set(write_libsvm, wavy):
    return write_libsvm(*wavy)


def test_workers_of_this_machine_train_the_model_of_one_process(
    training_set, wavy_test, write_libsvm, tmp_path
):
    pytest.importorskip("dask")
    here, there, report = (tmp_path / name for name in ("here", "there", "report"))
    options = ["-c", 4, "-g", 2]
    assert run(main, "-q", *options, training_set, here).exit_code == 0
    done = run(main, "--workers", 2, "--report", report, *options, training_set, there)
    assert done.exit_code == 0, done.output
    assert "2 workers, at most" in done.stderr
    traffic = json.loads(report.read_text())["traffic"]
    assert traffic["tasks"] > 0 and traffic["bytes_sent"] > 0 and len(traffic["workers"]) >= 1
    test = write_libsvm(*wavy_test, name="test.txt")
    found = [run(predict, test, model, tmp_path / "out").output for model in (here, there)]
    assert found[0] == found[1]


def test_the_ranges_that_workers_find_are_those_of_one_process(training_set, tmp_path):
    pytest.importorskip("dask")
    for name, how in (("here", []), ("there", ["--workers", 1])):
        done = run(main, "-q", "--scale", "auto", *how, training_set, tmp_path / name)
        assert done.exit_code == 0, done.output
    found = [(tmp_path / f"{name}.range").read_bytes() for name in ("here", "there")]
    assert found[0] == found[1]


def test_the_line_of_what_is_wrong_is_that_of_the_file(tmp_path):
    pytest.importorskip("dask")
    path = tmp_path / "rows"
    path.write_text("1 1:1\n-1 1:2\n1 1:x\n")
    done = run(main, "--workers", 1, path, tmp_path / "model")
    assert done.exit_code == 1
    assert done.stderr.endswith('rows:3:5: value "x" is not a decimal number\n')


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (["--workers", 2, "--scheduler", "tcp://host:1"], "give one of"),
        (["--workers", 0], "--workers must be at least 1"),
        (["--workers", 2, "-v", 5], "--workers cannot be used with cross-validation"),
        (["--workers", 2, "-t", 4], "workers cannot use a precomputed kernel (-t 4)"),
    ],
)
def test_what_does_not_go_together_is_wrong_usage(training_set, arguments, reason):
    done = run(main, *arguments, training_set)
    assert done.exit_code == 2
    assert reason in done.stderr


def test_standard_input_is_wrong_usage():
    done = run(main, "--workers", 2, "-", "model")
    assert done.exit_code == 2 and "workers cannot read standard input" in done.stderr


def test_without_dask_a_sentence_says_what_to_install(training_set, monkeypatch):
    monkeypatch.setitem(sys.modules, "distributed", None)
    monkeypatch.setitem(sys.modules, "fsspec", None)
    for name in [one for one in sys.modules if one.startswith("dcsvm.distributed")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.delitem(sys.modules, "dcsvm.cli.train_remote", raising=False)
    done = run(main, "--workers", 2, training_set)
    assert done.exit_code == 1 and "pip install 'dcsvm[dask]'" in done.stderr
