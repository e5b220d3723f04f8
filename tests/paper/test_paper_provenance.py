"""Test that cells of examples/paper know their commit, and that a page is of one unless it says."""

import json
import shutil
import subprocess
from pathlib import Path

import pytest
from click.testing import CliRunner
from paper import provenance, run
from paper.cells import Cell

CELL = Cell("data_sets", "generated", {"threads": 1})
FIRST, SECOND = "1" * 40, "2" * 40


@pytest.fixture
def checkout(tmp_path, monkeypatch):
    """Make a repository with a measured file and another one, as that of the imported dcsvm."""
    if shutil.which("git") is None:
        pytest.skip("there is no git")
    inside = provenance.ROOT / "dcsvm" / "__init__.py"
    monkeypatch.setattr(provenance.dcsvm, "__file__", str(inside))
    root = tmp_path / "checkout"
    for name in ("csrc/solver.cc", "README.md"):
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("one\n")
    identity = ["-c", "user.name=A", "-c", "user.email=a@example.org"]
    for command in (["init", "-q"], ["add", "."], [*identity, "commit", "-q", "-m", "first"]):
        subprocess.run(["git", "-C", root, *command], check=True)
    return root


def test_a_changed_source_marks_the_commit_and_another_file_does_not(checkout):
    clean = provenance.commit(checkout)
    assert len(clean) == 40 and provenance.shown(clean) == clean[:10]
    (checkout / "README.md").write_text("two\n")
    (checkout / "csrc" / "new.cc").write_text("not tracked\n")
    assert provenance.commit(checkout) == clean
    (checkout / "csrc" / "solver.cc").write_text("two\n")
    assert provenance.commit(checkout) == f"{clean}-dirty"
    assert provenance.shown(f"{clean}-dirty") == f"{clean[:10]} with changes"


def test_the_commit_is_unknown_outside_of_a_checkout(checkout, tmp_path, monkeypatch):
    assert provenance.commit(tmp_path) == "unknown"
    assert provenance.commit(checkout / "csrc") == "unknown"
    monkeypatch.setattr(provenance.dcsvm, "__file__", str(tmp_path / "site" / "dcsvm" / "a.py"))
    assert provenance.commit(checkout) == "unknown"


def test_a_cell_of_another_commit_is_not_done_unless_any_counts(tmp_path):
    CELL.save(tmp_path, {"status": "ok", "commit": FIRST, "result": {}})
    assert CELL.is_done(tmp_path, 60, FIRST) and CELL.is_done(tmp_path, 60)
    assert not CELL.is_done(tmp_path, 60, SECOND)
    CELL.save(tmp_path, {"status": "ok", "result": {}})
    assert CELL.is_done(tmp_path, 60, "unknown") and not CELL.is_done(tmp_path, 60, FIRST)


@pytest.fixture
def measured(tmp_path, monkeypatch):
    """Measure two experiments, each at a commit of its own; return the options of both programs."""

    def instead(cell, data, timeout):
        return {"status": "failed" if cell.experiment == "grid" else "ok", "result": RESULT}

    monkeypatch.setattr(run, "run_cell", instead)
    where = ["--scale", "tiny", "--data", str(tmp_path / "none"), "--results", str(tmp_path)]
    for experiment, commit in (("data_sets", FIRST), ("level_times", f"{SECOND}-dirty")):
        measure(monkeypatch, commit, experiment, *where)
    return where


RESULT = {
    "n_train": 4, "n_test": 2, "n_features": 2, "positive": 0.5, "least": 0.0, "greatest": 1.0,
    "n_rows": 4, "seconds": 1.0, "levels": [], "n_sv": 2,
}  # fmt: skip


def measure(monkeypatch, commit, *arguments):
    monkeypatch.setattr(provenance, "commit", lambda: commit)
    done = CliRunner().invoke(run.main, list(arguments))
    assert done.exit_code == 0, done.output
    return done.output


def test_a_page_of_several_commits_is_refused_unless_it_says_so(measured, tmp_path):
    pytest.importorskip("matplotlib")
    from paper import report

    page = tmp_path / "RESULTS.md"
    command = [*measured, "--out", str(page), "--plots", str(tmp_path / "plots")]
    refused = CliRunner().invoke(report.main, command)
    assert refused.exit_code == 1 and not page.exists()
    assert "data_sets 1111111111; level_times 2222222222 with changes" in refused.output
    written = CliRunner().invoke(report.main, [*command, "--mixed"])
    assert written.exit_code == 0, written.output
    head, sets, _, _, levels, *_ = page.read_text().split("\n## ")
    assert "- commit: 1111111111; 2222222222 with changes\n" in head
    assert "*Commit 1111111111.*" in sets and "*Commit 2222222222 with changes.*" in levels


def test_cells_of_another_commit_are_measured_again_unless_kept(measured, tmp_path, monkeypatch):
    output = measure(monkeypatch, SECOND, "data_sets", *measured, "--keep")
    assert "1 of 1 cells are measured" in output
    output = measure(monkeypatch, SECOND, "data_sets", *measured)
    assert "0 of 1 cells are measured; 1 of another commit" in output
    record = json.loads(next(Path(tmp_path).glob("tiny/data_sets/*.json")).read_text())
    assert record["commit"] == SECOND and record["machine"]["cores"] > 0
