"""Test every experiment of examples/paper, every cell, at the scale tiny on generated data."""

import importlib
import json
import re
import shutil
import subprocess
from pathlib import Path
from types import SimpleNamespace

import pytest
from bench.process import Finished
from click.testing import CliRunner
from paper import EXPERIMENTS, provenance, run
from paper.baselines import lasvm
from paper.cells import Results
from paper.experiments import bound

TODAY = provenance.run_of_now()["date"][:4]
FIGURES = ("grid", "bound", "support_vectors", "convergence", "polynomial")
EXAMPLES = Path(__file__).resolve().parents[2] / "examples"


@pytest.fixture
def in_this_process(monkeypatch):
    """Measure cells in this process: a process for each takes longer than they do at this scale."""

    def measure(command, timeout, threads):
        experiment, folder, settings = command[-4:-1]
        module = importlib.import_module(f"paper.experiments.{experiment}")
        try:
            result = module.measure(json.loads(settings), Path(folder))
        except FileNotFoundError as error:
            return Finished(1, False, "", str(error), 1.0)
        return Finished(0, False, json.dumps(result), "", 100.0)

    monkeypatch.setattr(run, "process", SimpleNamespace(run=measure))  # not that of svm-train
    monkeypatch.setattr(bound, "ROWS", 1000)
    monkeypatch.setattr(lasvm, "TOLERANCE", 0.5)  # three settings take minutes to 0.001


@pytest.mark.parametrize("experiment", EXPERIMENTS)
def test_every_cell_is_measured_and_shown(experiment, tmp_path, in_this_process):
    pytest.importorskip("matplotlib")
    pytest.importorskip("sklearn")
    from paper import report

    where = ["--scale", "tiny", "--results", str(tmp_path)]
    arguments = [experiment, *where, "--data", str(tmp_path / "none"), "--threads", "2"]
    done = CliRunner().invoke(run.main, arguments)
    table = Results(tmp_path / "tiny").table(experiment)
    failed = [record for record in table.values() if record["status"] != "ok"]
    assert done.exit_code == (1 if failed else 0), done.output
    if shutil.which("svm-train") is None:
        failed = [one for one in failed if one["message"] != "there is no program svm-train"]
    assert table and not failed
    page, plots = tmp_path / "RESULTS.md", tmp_path / "plots"
    written = CliRunner().invoke(report.main, [*where, "--out", str(page), "--plots", str(plots)])
    assert written.exit_code == 0, written.output
    text = page.read_text(encoding="utf-8")
    (own,) = (part for part in text.split("\n## ") if f"*Measured {TODAY}" in part)
    assert "not measured" not in own.lower() or shutil.which("svm-train") is None
    images = re.findall(r"\]\((plots/[^)]+)\)", text)
    assert images or experiment not in FIGURES
    for image in images:
        assert (tmp_path / image).stat().st_size > 1000


def test_every_table_and_figure_of_the_makefile_is_an_experiment():
    lines = (EXAMPLES / "Makefile").read_text().splitlines()
    targets = {
        target: line.partition(":")[2].split()
        for line in lines
        if re.match(r"(table|figure)-[^=]*:", line)
        for target in line.partition(":")[0].split()
    }
    made = [experiment for experiments in targets.values() for experiment in experiments]
    assert set(made) == set(EXPERIMENTS)
    for target, experiments in targets.items():
        command = ["make", "-n", "-C", EXAMPLES, "PYTHON=python", target]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
        measured = re.findall(r"-m paper\.run .*\s(\w+)$", done.stdout, flags=re.MULTILINE)
        assert measured == experiments
