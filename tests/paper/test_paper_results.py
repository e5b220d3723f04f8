"""Test that RESULTS.md is what the results in the repository give, and that none are missing."""

from importlib import import_module
from pathlib import Path

import inventory
import pytest
from paper import EXPERIMENTS, problems, run
from paper.baselines import OURS
from paper.cells import Results
from paper.experiments import comparison, convergence, polynomial
from paper.scales import SCALES

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
FULL = SCALES["full"]
RESULTS = Results(EXAMPLES / "results" / FULL.name)
THREADS = 2  # of the results


def names_of(module):
    """List the data sets that can be had or made, of an experiment."""
    known = [one for name in module.DATA_SETS for one in (name, *problems.STAND_INS.get(name, ()))]
    there = {*inventory.MEASURED}
    if not getattr(module, "EVERY_STAND_IN", False):
        there.discard("mnist8m-made")  # MNIST is taken first
    return [name for name in known if name in there]


@pytest.mark.parametrize("experiment", EXPERIMENTS)
def test_every_cell_has_a_result_or_its_reason(experiment):
    pytest.importorskip("sklearn")
    module = import_module(f"paper.experiments.{experiment}")
    for cell in module.cells(FULL, names_of(module), THREADS):
        status = RESULTS.status(cell)
        assert status in ("ok", "timeout", "memory", "skipped"), (cell.name, status)


def test_no_result_of_the_comparison_is_lost():
    for name, methods in inventory.MEASURED.items():
        data, _, rows = name.partition("-5")
        chosen = comparison.problem(data, int(f"5{rows}") if rows else None)
        for method in (*OURS, *methods):
            cell = comparison.cell(FULL, chosen, method, THREADS)
            assert RESULTS.of(cell), (name, method)


@pytest.mark.parametrize("module", [convergence, polynomial], ids=["rbf", "polynomial"])
def test_no_point_of_a_figure_is_lost(module):
    pytest.importorskip("matplotlib")
    from paper.sections import Page
    from paper.sections.convergence import points_of

    page = Page(FULL, [], THREADS, RESULTS, EXAMPLES, "plots")
    for name, methods in inventory.POINTS[module.__name__.rpartition(".")[2]].items():
        for method, count in methods.items():
            points = [one for one in points_of(page, module, name, method) if "limit" not in one]
            assert len(points) >= count, (name, method)


@pytest.mark.parametrize("module", [comparison, convergence, polynomial])
def test_no_competitor_was_stopped_early(module):
    for cell in module.cells(FULL, names_of(module), THREADS):
        if cell.method not in OURS and RESULTS.limit(cell):
            assert RESULTS.limit(cell) >= run.limit_of(cell, FULL, run.LEAST_AT_FULL, RESULTS)


def test_the_page_is_made_from_the_results_byte_for_byte(tmp_path):
    pytest.importorskip("matplotlib")
    from paper import report

    page = report.page_of(FULL, RESULTS, tmp_path / "plots")
    text = report.written(report.TEMPLATE.read_text(encoding="utf-8"), page)
    assert text == (EXAMPLES / "RESULTS.md").read_text(encoding="utf-8")
    drawn = {path.name for path in (tmp_path / "plots").iterdir()}
    assert drawn == {path.name for path in (EXAMPLES / "plots").iterdir()}
