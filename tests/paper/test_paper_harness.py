"""Test the harness of examples/paper: cells, preparation, downloads, published numbers, page."""

import bz2
import hashlib
import io
import pickle
import re
import tarfile
from pathlib import Path

import numpy as np
import pytest
from bench.datasets import prepare
from click import ClickException
from click.testing import CliRunner
from paper import EXPERIMENTS, fetch, memory, problems, published, run
from paper.cells import Cell, Results
from paper.experiments import bound, comparison, grid, level_times, problem
from paper.scales import SCALES

from dcsvm.kernel.kernels import Kernel

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
CELL = Cell("grid", "one", {"C": 2.0, "kernel": {"name": "rbf", "gamma": 0.5}})
RUN = {"commit": "1" * 40, "date": "2026-01-01", "machine": {"processor": "A", "usable_cores": 2}}


def test_a_result_counts_only_for_its_settings(tmp_path):
    results = Results(tmp_path)
    assert results.of(CELL) is None
    results.save(CELL, {"status": "ok", "run": RUN, "results": [{"seconds": 1.5}]})
    again = Results(tmp_path)
    assert again.of(CELL) == {"seconds": 1.5} and again.record(CELL)["run"] == RUN
    other = Cell("grid", "one", {**CELL.settings, "C": 4.0})
    assert again.of(other) is None and again.status(other) is None
    assert [path.name for path in tmp_path.iterdir()] == ["grid.json"]


def test_the_result_is_the_run_of_median_seconds(tmp_path):
    results = Results(tmp_path)
    for seconds, wanted in (([3.0, 1.0, 2.0], 2.0), ([3.0, 1.0], 1.0)):
        measured = [{"seconds": one} for one in seconds]
        results.save(CELL, {"status": "ok", "run": RUN, "results": measured})
        assert results.of(CELL) == {"seconds": wanted}


def test_a_cell_out_of_time_or_memory_has_exceeded_its_limit(tmp_path):
    results = Results(tmp_path)
    results.save(CELL, {"status": "timeout", "limit": 60, "run": RUN})
    assert results.exceeded(CELL) and results.limit(CELL) == 60
    results.save(CELL, {"status": "memory", "limit": 60, "run": RUN})
    assert results.exceeded(CELL) and results.limit(CELL) is None


@pytest.mark.parametrize(
    "content", ['{"runs": [', "{}", "<<<<<<<", '{"runs": [], "cells": {"a": {}}}']
)
def test_a_damaged_file_is_not_taken_for_an_empty_one(content, tmp_path):
    (tmp_path / "grid.json").write_text(content)
    with pytest.raises(ClickException, match=r"grid\.json is damaged"):
        Results(tmp_path).record(CELL)


def test_two_processes_do_not_measure_into_one_folder(tmp_path):
    where = ["--data", str(tmp_path / "none"), "--results", str(tmp_path), "--scale", "tiny"]
    with Results(tmp_path / "tiny").locked():
        refused = CliRunner().invoke(run.main, ["data_sets", *where])
    assert refused.exit_code == 1 and "another run measures into" in refused.output


def test_a_file_has_a_line_for_each_cell_and_each_run_once(tmp_path):
    results = Results(tmp_path)
    for name, run_of in (("one", RUN), ("two", RUN), ("three", {**RUN, "date": "2026-01-02"})):
        cell = Cell("grid", name, {})
        results.save(cell, {"status": "ok", "run": run_of, "results": [{"seconds": 1.0}]})
    lines = (tmp_path / "grid.json").read_text().splitlines()
    assert sum(line.startswith('{"commit"') for line in lines) == 2
    assert sum('"settings"' in line for line in lines) == 3


@pytest.mark.parametrize("scale", SCALES.values(), ids=lambda scale: scale.name)
@pytest.mark.parametrize("experiment", EXPERIMENTS)
def test_cells_have_names_of_their_own(experiment, scale):
    if experiment == "prediction":
        pytest.importorskip("sklearn")
    module = __import__(f"paper.experiments.{experiment}", fromlist=["cells"])
    for names in (list(module.DATA_SETS), ["generated"]):
        cells = module.cells(scale, names, 2)
        assert cells and len({cell.name for cell in cells}) == len(cells)
        assert {cell.experiment for cell in cells} == {experiment}


def test_measuring_resumes_and_is_written_up(tmp_path, monkeypatch):
    pytest.importorskip("matplotlib")
    pytest.importorskip("sklearn")
    from paper import report

    monkeypatch.chdir(EXAMPLES)
    where = ["--results", str(tmp_path / "results")]
    measured = ["data_sets", *where, "--data", str(tmp_path / "none")]
    first = CliRunner().invoke(run.main, measured)
    assert first.exit_code == 0, first.output
    assert "generated data" in first.output and "0 of 1 cells" in first.output
    assert "failed" not in first.output
    assert "1 of 1 cells" in CliRunner().invoke(run.main, measured).output
    page = tmp_path / "RESULTS.md"
    written = CliRunner().invoke(
        report.main, [*where, "--out", str(page), "--plots", str(tmp_path / "plots")]
    )
    assert written.exit_code == 0, written.output
    text = page.read_text(encoding="utf-8")
    assert "generated data" in text and "{{" not in text
    assert text.count(report.NONE) == len(EXPERIMENTS) - 1


def test_every_experiment_has_its_section_in_the_page():
    pytest.importorskip("matplotlib")
    from paper import report

    slots = re.findall(r"\{\{([\w.]+)\}\}", report.TEMPLATE.read_text(encoding="utf-8"))
    assert [slot for slot in slots if slot in EXPERIMENTS] == [*EXPERIMENTS]
    assert {slot.partition(".")[0] for slot in slots} == {*EXPERIMENTS, "head", "claims"}


def test_a_cell_that_takes_too_long_is_stopped(tmp_path, monkeypatch):
    monkeypatch.chdir(EXAMPLES)
    cell = grid.cell(SCALES["small"], "generated", "dcsvm", 1)
    assert run.run_cell(cell, tmp_path, 0.01)["status"] == "timeout"


def test_a_cell_that_fails_says_why_and_the_program_too(tmp_path, monkeypatch):
    monkeypatch.chdir(EXAMPLES)
    record = run.run_cell(bound.cell("covtype", 8, "random", 1), tmp_path, 60)
    assert record["status"] == "failed" and "no such file" in record["message"]
    failed = {"status": "failed", "message": "no"}
    monkeypatch.setattr(run, "run_cell", lambda *_: failed)
    where = ["--data", str(tmp_path / "none"), "--results", str(tmp_path)]
    done = CliRunner().invoke(run.main, ["data_sets", "--scale", "tiny", *where])
    assert done.exit_code == 1 and "1 cells failed" in done.output


def test_rows_of_one_class_are_skipped_with_a_reason(tmp_path, monkeypatch):
    monkeypatch.chdir(EXAMPLES)
    for name in ("kdd10.tr", "kdd10.te"):
        (tmp_path / name).write_text("+1 1:1\n" * 9)
    cell = level_times.cells(SCALES["tiny"], ["kdd10"], 1)[0]
    record = run.run_cell(cell, tmp_path, 60)
    assert record["status"] == "skipped"
    assert record["message"] == "9 training rows of kddcup99, 10 % have one class"


def test_stand_ins_are_taken_where_the_papers_set_is_not_there(tmp_path):
    assert problems.available(("kddcup99", "covtype"), tmp_path) == ["generated"]
    for name in ("kdd10.tr", "kdd10.te"):
        (tmp_path / name).write_text("+1 1:1\n-1 2:0.5\n")
    assert problems.available(("kddcup99", "covtype"), tmp_path) == ["kdd10"]
    for name in ("mnist.tr", "mnist.te", "mnist8m-made.tr"):
        (tmp_path / name).touch()
    assert problems.available(("mnist8m",), tmp_path) == ["mnist"]
    assert problems.names_of(comparison, tmp_path) == ["kdd10", "mnist", "mnist8m-made"]
    data = problems.load(problem("kdd10", 2), tmp_path)
    assert data.X.shape == (2, 2) and data.X_test.tolist() == [[1, 0], [0, 0.5]]
    assert data.y_test.tolist() == [1, -1]


def test_cifar_is_animals_against_the_rest(tmp_path):
    rng = np.random.default_rng(0)
    with tarfile.open(tmp_path / "cifar-10-python.tar.gz", "w:gz") as archive:
        for name in [*(f"data_batch_{i}" for i in range(1, 6)), "test_batch"]:
            pixels = rng.integers(0, 256, (3, 3072), dtype=np.uint8)
            content = pickle.dumps({b"labels": [0, 3, 9], b"data": pixels})
            member = tarfile.TarInfo(f"cifar-10-batches-py/{name}")
            member.size = len(content)
            archive.addfile(member, io.BytesIO(content))
    prepare("cifar", tmp_path, tmp_path)
    X, y = problems.read(tmp_path / "cifar.te", None)
    assert y.tolist() == [-1, 1, -1]
    assert np.array_equal(X[:, : pixels.shape[1]], pixels[:, : X.shape[1]])
    assert len(problems.read(tmp_path / "cifar.tr", None)[1]) == 15


def test_webspam_is_scaled_by_the_training_rows(tmp_path):
    lines = [f"{1 if i % 2 else -1} 1:{(i + 1) / 10} 3:4\n" for i in range(10)]
    with bz2.open(tmp_path / "webspam_wc_normalized_unigram.svm.bz2", "wt") as file:
        file.writelines(lines)
    prepare("webspam", tmp_path, tmp_path)
    X, y = problems.read(tmp_path / "webspam.tr", None)
    assert X.shape == (8, 3) and X.max(axis=0).tolist() == [1, 0, 1]
    assert len(problems.read(tmp_path / "webspam.te", None)[1]) == 2


def test_a_download_is_checked_and_a_wrong_one_left_out(tmp_path):
    content = b"+1 1:1\n"
    served = tmp_path / "rows.bz2"
    served.write_bytes(bz2.compress(content))
    folder = tmp_path / "raw"
    folder.mkdir()
    for digest in (hashlib.sha256(content), hashlib.sha256(served.read_bytes())):
        fetch.fetch(fetch.Source(served.as_uri(), digest.hexdigest()), folder)
        assert (folder / "rows.bz2").read_bytes() == served.read_bytes()
        (folder / "rows.bz2").unlink()
    with pytest.raises(fetch.WrongChecksumError):
        fetch.fetch(fetch.Source(served.as_uri(), "0" * 64), folder)
    assert list(folder.iterdir()) == []


def test_a_server_that_cannot_be_reached_is_tried_once(tmp_path, monkeypatch):
    tried = []

    def unreachable(url, path):
        tried.append(url)
        raise TimeoutError("timed out")

    monkeypatch.setattr(fetch, "download", unreachable)
    done = CliRunner().invoke(fetch.main, ["mnist", "ijcnn1", "--to", str(tmp_path)])
    assert done.exit_code == 1 and "timed out" in done.output
    assert [url.split("/")[2] for url in tried] == list(
        dict.fromkeys(u.split("/")[2] for u in tried)
    )
    assert len(tried) == 2


def test_the_papers_grids_add_up_to_its_sums():
    days = {"min": 1 / 1440, "h": 1 / 24, "days": 1}
    for name, sums in published.GRID_SUMS.items():
        for method, printed in sums.items():
            value, unit = printed.split()
            seconds = sum(
                float(s.strip(">"))
                for (data_set, _, _, m), (_, s) in published.grid().items()
                if (data_set, m) == (name, method)
            )
            assert seconds / 86_400 == pytest.approx(float(value) * days[unit], rel=0.03)


def test_the_bound_of_theorem_1_counts_pairs_between_clusters():
    X = np.random.default_rng(0).normal(size=(60, 3)).astype(np.float32)
    cluster = np.arange(60) % 4
    kernel = Kernel("rbf", 0.3)
    squares = ((X[:, None].astype(float) - X) ** 2).sum(axis=2)
    K = np.exp(-0.3 * squares)
    wanted = K[cluster[:, None] != cluster].sum()
    assert bound.between(X, cluster, kernel, 1) == pytest.approx(wanted, rel=1e-5)


def test_the_memory_of_a_method_does_not_count_what_was_there_before():
    before = np.ones(50_000_000 // 8)
    before = before[:1000].copy()
    _, nothing = memory.measured(lambda: before.sum())
    if nothing is None:
        pytest.skip("the peak of a process cannot be set back here")
    _, added = memory.measured(lambda: np.ones(40_000_000 // 8).sum())
    assert nothing < 10 < 35 < added < 60
