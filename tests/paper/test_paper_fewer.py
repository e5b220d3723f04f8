"""Test that what exceeds its limit in examples/paper is measured and shown on fewer rows."""

import json
import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from bench.process import Finished
from click.testing import CliRunner
from paper import problems, run
from paper.cells import Results
from paper.experiments import comparison, convergence, polynomial, problem
from paper.fewer import on_fewer_rows, pair
from paper.scales import SCALES

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"

SIZES = {"rows": 4000, "convergence_rows": 3000, "polynomial_rows": 2000}
SMALL = replace(SCALES["small"], **SIZES, timeout=60, limit=10)


@pytest.fixture
def slow_libsvm(monkeypatch):
    """LIBSVM exceeds its limit from 1,000 rows on; LaSVM the memory with any number of rows.

    Return the methods that run, each with its limit.
    """

    def instead(command, timeout, threads):
        settings = json.loads(command[-2])
        rows = settings["problem"]["rows"] // settings["problem"].get("divisor", 1)
        timeouts.append((settings["method"], timeout))
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
        return Finished(0, False, json.dumps(result), "", 5.0)

    timeouts: list[tuple[str, float]] = []
    monkeypatch.setattr(run.process, "run", instead)
    monkeypatch.setitem(SCALES, "small", SMALL)
    return timeouts


def measure(experiment, tmp_path):
    where = ["--scale", "small", "--results", str(tmp_path)]
    more = ["--data", str(tmp_path / "none"), "--threads", "1"]
    done = CliRunner().invoke(run.main, [experiment, *where, *more])
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
    found = {cell.method: both for cell in cells if (both := pair(SMALL, cell, results))}
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
    assert "| LIBSVM, with bias | >20 |" in text and "| LaSVM | >memory |" in text
    for rows in (250, 750):
        line = f"| LIBSVM, with bias | >20 | {rows} | 6.00 | 90.00 | rank 1 | 2.00 | 90.00 | 3.00 |"
        assert line in text
    assert "| LaSVM | >memory | none | - | - | - | - | - | - |" in text
    assert "| LTPU | 2.00 (not converged) |" in text
    assert "| LIBSVM, with bias | tolerance 0.001 | >20 | - | - |" in text


def test_a_competitor_has_ten_times_the_seconds_of_dcsvm(tmp_path, slow_libsvm):
    measure("comparison", tmp_path)
    limits = dict(reversed(slow_libsvm))  # the first one of each method
    assert limits["dcsvm"] == limits["single"] == 60 and limits["early"] == 60 + 3 * (5.0 - 2.0)
    assert limits["cascade"] == limits["ltpu"] == 10 * 2.0 + 3 * (5.0 - 2.0)


def test_at_scale_full_nobody_has_less_than_200_seconds(tmp_path):
    where = ["--data", str(tmp_path), "--results", str(tmp_path), "--scale", "full"]
    refused = CliRunner().invoke(run.main, [*where, "--limit", "199"])
    assert refused.exit_code == 2 and "at least 200 seconds" in refused.output
    assert SCALES["full"].limit >= 200
    cell = comparison.cell(SCALES["full"], problem("covtype", None), "ltpu", 2)
    for seconds, limit in ((3.0, 300), (89.2, 900), (1000.0, 1800)):
        results = Results(tmp_path / str(seconds))
        measured = [{"seconds": seconds, "wall_seconds": seconds}]
        ours = comparison.ours(SCALES["full"], cell)
        results.save(ours, {"status": "ok", "run": {}, "results": measured})
        assert run.limit_of(cell, SCALES["full"], 300, results) == limit
        assert run.limit_of(ours, SCALES["full"], 300, results) == SCALES["full"].timeout


def test_if_dcsvm_exceeds_its_own_limit_the_others_have_the_most(tmp_path):
    cell = comparison.cell(SCALES["full"], problem("covtype", None), "ltpu", 2)
    results = Results(tmp_path)
    ours = comparison.ours(SCALES["full"], cell)
    results.save(ours, {"status": "timeout", "limit": 9, "run": {}})
    assert run.limit_of(cell, SCALES["full"], 300, results) == run.MOST


def test_a_repeat_that_fails_leaves_the_earlier_results(tmp_path, monkeypatch):
    monkeypatch.setitem(SCALES, "tiny", replace(SCALES["tiny"], repeats=3))
    records = [
        {"status": "ok", "results": [{"seconds": 1.0}]},
        {"status": "failed", "message": "x"},
    ]
    monkeypatch.setattr(run, "run_cell", lambda *_: records.pop(0) if records else {})
    where = ["--data", str(tmp_path / "none"), "--results", str(tmp_path), "--scale", "tiny"]
    monkeypatch.setattr(run, "is_repeated", lambda cell, scale, measured: not records)
    CliRunner().invoke(run.main, ["level_times", *where])
    (record,) = Results(tmp_path / "tiny").table("level_times").values()
    assert record["status"] == "ok" and record["results"] == [{"seconds": 1.0}]


def test_the_cells_of_a_data_set_are_measured_in_turn(tmp_path, monkeypatch, slow_libsvm):
    monkeypatch.setitem(SCALES, "small", replace(SMALL, repeats=3))
    measure("comparison", tmp_path)
    order = [method for method, _ in slow_libsvm]
    assert order[:2] == ["dcsvm", "single"] and order.count("spsvm") == 3
    first, second, third = (k for k, method in enumerate(order) if method == "spsvm")
    assert all("ltpu" in order[k : k + len(set(order))] for k in (first, second))
    assert order.index("early", first) < third
    slow_libsvm.clear()
    measure("comparison", tmp_path)
    assert slow_libsvm == []


def test_a_data_set_is_measured_again_on_another_machine_if_a_cell_is_missing(
    tmp_path, monkeypatch, slow_libsvm
):
    measure("comparison", tmp_path)
    slow_libsvm.clear()
    now = run.provenance.run_of_now()
    other = {**now, "machine": {**now["machine"], "processor": "another"}}
    monkeypatch.setattr(run.provenance, "run_of_now", lambda: other)
    measure("comparison", tmp_path)
    assert slow_libsvm == []
    results = Results(tmp_path / "small")
    del results.table("comparison")["generated-4000-early"]
    cell = comparison.cell(SMALL, problem("generated", 4000, 10_000), "dcsvm", 1)
    results.save(cell, results.record(cell))
    measure("comparison", tmp_path)
    assert {"early", "dcsvm", "ltpu"} <= {method for method, _ in slow_libsvm}
    records = Results(tmp_path / "small").table("comparison").values()
    assert {record["run"]["machine"]["processor"] for record in records} == {"another"}


def test_only_the_run_that_stands_for_a_method_is_tried_on_fewer_rows(tmp_path):
    def followers(options):
        cell = convergence.cell(SMALL, "generated", "libsvm", options, 1)
        return [one.name for one in on_fewer_rows(SMALL, cell, lambda one: one is cell)]

    assert followers({"tolerance": 1}) == []
    names = [f"generated-{method}-tolerance-0.001-by-4" for method in ("libsvm", "single")]
    assert followers({"tolerance": 1e-3}) == names


@pytest.mark.parametrize("rows", [None, 8, 100])
def test_a_part_of_the_rows_is_a_part_of_those_that_are_there(rows, tmp_path):
    for name in ("kdd10.tr", "kdd10.te"):
        (tmp_path / name).write_text("+1 1:1\n-1 2:0.5\n" * 6)
    chosen = {**problem("kdd10", rows), "divisor": 4}
    assert len(problems.load(chosen, tmp_path).y) == (2 if rows == 8 else 3)
    assert len(problems.load({**problem("generated", 8), "divisor": 4}, tmp_path).y) == 2
    assert np.isfinite(problems.load(chosen, tmp_path).X_test).all()


@pytest.mark.skipif(shutil.which("svm-train") is None, reason="no svm-train")
def test_svm_train_itself_is_stopped_at_its_limit(tmp_path, monkeypatch):
    monkeypatch.chdir(EXAMPLES)
    cell = comparison.cell(SCALES["tiny"], problem("generated", 3000, 100), "libsvm", 1)
    assert run.run_cell(cell, tmp_path, 0.001)["status"] == "timeout"
    assert run.run_cell(cell, tmp_path, 100.0)["status"] == "ok"
