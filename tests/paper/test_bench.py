"""Test the benchmark in examples/bench: it runs with this package, its table is complete."""

import importlib.util
import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from reference import labelled_rows

BENCH = Path(__file__).resolve().parents[2] / "examples" / "bench"


def run(*arguments):
    command = [sys.executable, *map(str, arguments)]
    return subprocess.run(command, cwd=BENCH, capture_output=True, text=True, timeout=120)


def test_the_bound_of_verification_is_measured():
    code = (
        "import numpy as np; from verification import *; "
        "X = np.eye(50, dtype=np.float32); "
        "print(verification_seconds(X, X[:20], 0.5, 1))"
    )
    done = run("-c", code)
    assert done.returncode == 0, done.stderr
    assert 0 < float(done.stdout) < 10


def test_the_constants_that_are_measured_exist():
    code = (
        "import constants, importlib\n"
        "for module, name, half, double in constants.CONSTANTS:\n"
        "    assert half < getattr(importlib.import_module(f'dcsvm.{module}'), name) < double"
    )
    done = run("-c", code)
    assert done.returncode == 0, done.stderr


def test_solutions_of_models_are_read_and_checked(write_libsvm, tmp_path):
    pytest.importorskip("sklearn")
    X, y = labelled_rows(300, 3, seed=1)
    write_libsvm(np.round(X, 3), y, "ijcnn1")
    write_libsvm(np.round(X, 3), y, "ijcnn1.t")
    done = run(
        "bench.py", "--data", tmp_path, "--only", "ijcnn1", "--peers", "", "--rounds", 1,
        "--accuracy", "--json", tmp_path / "json",
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    (result,) = json.loads((tmp_path / "json").read_text())["results"]
    (found,) = result["runs"]["dcsvm"]
    assert found["check"]["n_sv"] == found["report"]["n_sv"] > 0
    assert found["check"]["violation"] <= 1.01e-3
    assert result["counts"] == {"dcsvm": True}
    assert found["accuracy"] > 0.7


def test_seconds_are_tabled_by_program_and_rows(write_libsvm, tmp_path):
    X, y = labelled_rows(6000, 3, seed=1)
    write_libsvm(np.round(X, 3), y, "covtype.tr")
    absent = ("--svm-train", tmp_path / "none", "--python-peers", tmp_path / "none")
    out = tmp_path / "seconds"
    done = run(
        "seconds.py", "--data", tmp_path, "--out", out, "--rows", "6000,300", "--rounds", 1, *absent
    )
    lines = [line.split(",") for line in out.with_suffix(".csv").read_text().splitlines()]
    table = [line for line in lines if not line[0].startswith("#")]
    assert table[0] == ["program", "rows", "round", "status", "seconds"]
    assert [tuple(line[:4]) for line in table[1:]] == [
        ("svm-train", "300", "1", "missing"),
        ("sklearnex64", "300", "1", "missing"),
        ("dcsvm", "300", "1", "ok"),
        ("early", "300", "1", "failed"),  # too few rows for clusters
        ("dcsvm", "6000", "1", "ok"),
        ("early", "6000", "1", "ok"),
    ]
    assert all((float(seconds) > 0) if status == "ok" else not seconds
               for *_, status, seconds in table[1:])  # fmt: skip
    if importlib.util.find_spec("matplotlib"):
        assert done.returncode == 0, done.stderr
        assert 1000 < out.with_suffix(".png").stat().st_size < 200_000


def test_the_scaling_with_threads_is_tabled(write_libsvm, tmp_path):
    X, y = labelled_rows(6000, 3, seed=1)
    write_libsvm(np.round(X, 3), y, "ijcnn1")
    out = tmp_path / "scaling"
    done = run(
        "scaling.py", "--data", tmp_path, "--out", out, "--only", "ijcnn1", "--rounds", 1,
        "--threads", 2,
    )  # fmt: skip
    lines = [line.split(",") for line in out.with_suffix(".csv").read_text().splitlines()]
    header, (case, number, *seconds, fraction, passes) = [
        line for line in lines if not line[0].startswith("#")
    ]
    assert header == ["case", "round", "one", "several", "beside", "fraction", "passes"]
    assert (case, number) == ("ijcnn1", "1")
    assert all(float(value) > 0 for value in seconds)
    assert float(fraction) < 1 and float(passes) >= 1
    assert "| ijcnn1 |" in done.stdout
    if importlib.util.find_spec("matplotlib"):
        assert done.returncode == 0, done.stderr
        assert 1000 < out.with_suffix(".png").stat().st_size < 200_000


@pytest.mark.slow
def test_compressed_models_are_tabled_with_the_models_they_are_of(write_libsvm, tmp_path):
    write_libsvm(*labelled_rows(1500, 4, seed=1), "ijcnn1")
    write_libsvm(*labelled_rows(300, 4, seed=2), "ijcnn1.t")
    out = tmp_path / "compressed"
    done = run("compressed.py", "--data", tmp_path, "--out", out, "--only", "ijcnn1")
    lines = [line.split(",") for line in out.with_suffix(".csv").read_text().splitlines()]
    table = [line for line in lines if not line[0].startswith("#")]
    models = [line[1].strip('"') for line in table]
    assert models[:2] == ["model", "exact"]
    assert {"early", "exact"} <= set(models)
    assert all(50 < float(line[-3]) <= 100 and float(line[-2]) > 0 for line in table[1:])
    assert all(float(line[-1]) > 0 for line in table[1:] if line[1].strip('"')[0] == "e")
    if importlib.util.find_spec("matplotlib"):
        assert done.returncode == 0, done.stderr
        assert 1000 < out.with_suffix(".png").stat().st_size < 300_000
