"""Test that what exceeds its limit in examples/paper is measured and shown on fewer rows."""

import json
from dataclasses import replace

import numpy as np
import pytest
from bench.process import Finished
from click.testing import CliRunner
from paper import problems, run
from paper.cells import Results
from paper.experiments import comparison, convergence, polynomial, problem
from paper.fewer import on_fewer_rows, pair
from paper.scales import SCALES

SIZES = {"rows": 4000, "convergence_rows": 3000, "polynomial_rows": 2000}
SMALL = replace(SCALES["small"], **SIZES, timeout=60)


@pytest.fixture
def slow_libsvm(monkeypatch):
    """LIBSVM exceeds its limit from 1,000 rows on; LaSVM the memory with any number of rows."""

    def instead(command, timeout, threads):
        settings = json.loads(command[-1])
        rows = settings["problem"]["rows"] // settings["problem"].get("divisor", 1)
        if settings["method"] == "lasvm":
            return Finished(-9, False, "", "")
        if settings["method"] == "libsvm" and rows >= 1000:
            return Finished(-9, True, "", "")
        seconds = 6.0 if settings["method"] == "libsvm" else 2.0
        result = {
            "seconds": seconds, "accuracy": 0.9, "n_rows": rows, "size": 1, "objective": -1.0,
            "converged": settings["method"] != "ltpu",
            "history": [{"seconds": 1.0, "accuracy": 0.8, "size": 1}],
        }  # fmt: skip
        return Finished(0, False, json.dumps(result), "")

    monkeypatch.setattr(run.process, "run", instead)
    monkeypatch.setitem(SCALES, "small", SMALL)


def measure(experiment, tmp_path):
    where = ["--data", str(tmp_path / "none"), "--results", str(tmp_path), "--threads", "1"]
    done = CliRunner().invoke(run.main, [experiment, "--scale", "small", *where])
    assert done.exit_code == 0, done.output
    return done.output, where


@pytest.mark.parametrize(
    ("module", "rows"), [(comparison, 250), (convergence, 750), (polynomial, 500)]
)
def test_what_exceeds_its_limit_has_a_result_on_fewer_rows(module, rows, tmp_path, slow_libsvm):
    experiment = module.__name__.rpartition(".")[2]
    output, _ = measure(experiment, tmp_path)
    results = Results(tmp_path / "small")
    cells = module.cells(SMALL, ["generated"], 1)
    found = {
        cell.settings["method"]: both for cell in cells if (both := pair(SMALL, cell, results))
    }
    assert {method: both[0]["n_rows"] for method, both in found.items()} == {"libsvm": rows}
    assert found["libsvm"][1]["n_rows"] == rows and found["libsvm"][1]["seconds"] == 2.0
    again, _ = measure(experiment, tmp_path)
    assert "measured\n" in again and ": ok" not in again


def test_the_page_shows_fewer_rows_beside_the_limit(tmp_path, slow_libsvm):
    pytest.importorskip("matplotlib")
    from paper import report

    for experiment in ("comparison", "convergence"):
        _, where = measure(experiment, tmp_path)
    page = tmp_path / "RESULTS.md"
    command = [*where, "--out", str(page), "--plots", str(tmp_path / "plots")]
    written = CliRunner().invoke(report.main, command)
    assert written.exit_code == 0, written.output
    text = page.read_text()
    assert "| LIBSVM, with bias | >60 |" in text and "| LaSVM | >memory |" in text
    assert "| LIBSVM, with bias | 250 | 6.00 | 90.00 | 2.00 | 90.00 | 3.00 |" in text
    assert "| LIBSVM, with bias | 750 | 6.00 | 90.00 | 2.00 | 90.00 | 3.00 |" in text
    assert "| LaSVM | - | - | - | - | - | - |" in text
    assert "| LTPU | 2.00 (not converged) |" in text
    assert "| LIBSVM, with bias | tolerance 0.001 | >60 | - | - |" in text


def test_only_the_run_that_stands_for_a_method_is_tried_on_fewer_rows(tmp_path):
    def followers(options):
        cell = convergence.cell(SMALL, "generated", "libsvm", options, 1)
        return [one.name for one in on_fewer_rows(SMALL, cell, lambda one: one is cell)]

    assert followers({"tolerance": 1}) == []
    names = [f"generated-{method}-tolerance-0.001-by-4" for method in ("libsvm", "dcsvm")]
    assert followers({"tolerance": 1e-3}) == names


@pytest.mark.parametrize("rows", [None, 8, 100])
def test_a_part_of_the_rows_is_a_part_of_those_that_are_there(rows, tmp_path):
    for name in ("kdd10.tr", "kdd10.te"):
        (tmp_path / name).write_text("+1 1:1\n-1 2:0.5\n" * 6)
    chosen = {**problem("kdd10", rows), "divisor": 4}
    assert len(problems.load(chosen, tmp_path).y) == (2 if rows == 8 else 3)
    assert len(problems.load({**problem("generated", 8), "divisor": 4}, tmp_path).y) == 2
    assert np.isfinite(problems.load(chosen, tmp_path).X_test).all()
