"""Test that cells of examples/paper know their run, and that the page says which it is."""

import shutil
import subprocess

import pytest
from click.testing import CliRunner
from paper import provenance, run
from paper.cells import Results

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
    changed = provenance.commit(checkout)
    assert changed.startswith(f"{clean}-dirty-")
    assert provenance.shown(changed) == f"{clean[:10]} with changes"
    (checkout / "csrc" / "solver.cc").write_text("three\n")
    assert provenance.commit(checkout) not in (clean, changed)


def test_the_commit_is_unknown_outside_of_a_checkout(checkout, tmp_path, monkeypatch):
    assert provenance.commit(tmp_path) == "unknown"
    assert provenance.commit(checkout / "csrc") == "unknown"
    monkeypatch.setattr(provenance.dcsvm, "__file__", str(tmp_path / "site" / "dcsvm" / "a.py"))
    assert provenance.commit(checkout) == "unknown"


RESULT = {
    "n_train": 4, "n_test": 2, "n_features": 2, "positive": 0.5, "least": 0.0, "greatest": 1.0,
    "n_rows": 4, "seconds": 1.0, "levels": [], "n_sv": 2, "refine_seconds": 0.1,
    "gradient_seconds": 0.1, "conquer_seconds": 0.1,
}  # fmt: skip
DAY = {"1": "2026-01-01", "2": "2026-02-02"}


@pytest.fixture
def measured(tmp_path, monkeypatch):
    """Measure two experiments, each at a commit and on a day of its own; return the options."""
    monkeypatch.setattr(run, "run_cell", lambda *_: {"status": "ok", "results": [RESULT]})
    where = ["--scale", "tiny", "--results", str(tmp_path)]
    for experiment, commit in (("data_sets", FIRST), ("level_times", f"{SECOND}-dirty")):
        measure(monkeypatch, commit, experiment, *where)
    return where


def measure(monkeypatch, commit, *arguments):
    now = provenance.run_of_now()
    of_then = {**now, "commit": commit, "date": DAY[commit[0]]}
    with monkeypatch.context() as patch:
        patch.setattr(provenance, "run_of_now", lambda: of_then)
        done = CliRunner().invoke(run.main, [*arguments, "--data", "none"])
    assert done.exit_code == 0, done.output
    return done.output


def test_every_section_says_its_commit_day_and_machine(measured, tmp_path):
    pytest.importorskip("matplotlib")
    from paper import report

    page = tmp_path / "RESULTS.md"
    command = [*measured, "--out", str(page), "--plots", str(tmp_path / "plots")]
    written = CliRunner().invoke(report.main, command)
    assert written.exit_code == 0, written.output
    text = page.read_text(encoding="utf-8")
    assert "*Measured 2026-01-01, commit 1111111111, " in text
    assert "*Measured 2026-02-02, commit 2222222222 with changes, " in text


def test_cells_of_another_commit_are_measured_again_unless_kept(measured, tmp_path, monkeypatch):
    output = measure(monkeypatch, SECOND, "data_sets", *measured, "--keep")
    assert "1 of 1 cells are measured" in output
    output = measure(monkeypatch, SECOND, "data_sets", *measured)
    assert "0 of 1 cells are measured; 1 of another commit" in output
    (record,) = Results(tmp_path / "tiny").table("data_sets").values()
    assert record["run"]["commit"] == SECOND and record["run"]["machine"]["cores"] > 0
