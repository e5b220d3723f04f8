"""Test that experiments measure what they say and that their conclusions follow from the cells."""

import shutil
from dataclasses import replace
from importlib import import_module

import numpy as np
import pytest
from paper.baselines import libsvm
from paper.cells import Results, as_json
from paper.experiments import bound, choice, clustering, grid, level_tolerance, support_vectors
from paper.fitted import kernel_matrix
from paper.problems import load
from paper.scales import SCALES
from paper.sections.words import compared, joined

from dcsvm.kernel.kernels import Kernel
from dcsvm.training import run as steps

pytest.importorskip("matplotlib")
from paper.sections import Page  # noqa: E402

CONCLUDING = ("grid", "bound", "support_vectors", "choice", "clustering", "level_tolerance")
SCALE = replace(
    SCALES["small"],
    test_rows=300,
    support_rows=700,
    polynomial_rows=500,
    grid_rows=500,
    grid_test_rows=300,
    grid_peer_rows=500,
    support_peer_rows=500,
    choice_rows=900,
    choice_exact_rows=300,
    choice_step=10,
    clustering_rows=1_700,
    level_tolerance_rows=1_700,
)
FOUR = ((-6, -6), (-6, 1), (6, -6), (6, 1))
needs_svm_train = pytest.mark.skipif(shutil.which("svm-train") is None, reason="no svm-train")


@pytest.fixture
def page(tmp_path):
    return Page(SCALE, ["generated"], 1, Results(tmp_path / "cells"), tmp_path / "plots", "plots")


@pytest.fixture
def four_settings(monkeypatch):
    section = import_module("paper.sections.grid")
    for module in (grid, section):
        monkeypatch.setattr(module, "SETTINGS", FOUR)


def measure_all(page, module):
    """Measure all cells of an experiment in this process."""
    for cell in module.cells(page.scale, page.names, page.threads):
        result = module.measure(as_json(cell.settings), page.plots)
        cell.save(page.results.folder, {"status": "ok", "result": result})


def written(page, name):
    section = import_module(f"paper.sections.{name}")
    return section.show(page), section.conclude(page)


def save(page, cell, seconds, accuracy):
    found = [
        {"log2_C": c, "log2_gamma": g, "accuracy": accuracy, "seconds": seconds, "n_sv": 9,
         "converged": True}
        for c, g in cell.settings["exponents"]
    ]  # fmt: skip
    result = {"n_rows": 500, "settings": found}
    cell.save(page.results.folder, {"status": "ok", "result": result})


@pytest.mark.parametrize("name", CONCLUDING)
def test_nothing_is_concluded_without_cells(page, name):
    shown, conclusion = written(page, name)
    assert shown and conclusion == ""


@needs_svm_train
def test_every_method_is_measured_on_the_subset_of_a_grid(page, four_settings):
    measure_all(page, grid)
    shown, conclusion = written(page, "grid")
    assert "on 500 rows" in shown and (page.plots / "grid-subset-generated.png").stat().st_size
    assert "500 rows of generated" in conclusion and "of 4 settings" in conclusion
    assert "all 25 settings take" in conclusion and "; 0 of these did not converge" in conclusion
    result = page.results.of(grid.subset_cells(SCALE, "generated", "early")[0])
    assert [(one["log2_C"], one["log2_gamma"]) for one in result["settings"]] == list(FOUR)


def test_a_setting_out_of_time_counts_as_slower_and_makes_sums_lower_bounds(page, four_settings):
    seconds = {"early": 0.5, "dcsvm": 1.0, "libsvm": 2.0, "lasvm": 4.0}
    for method, own in seconds.items():
        for cell in grid.subset_cells(SCALE, "generated", method):
            save(page, cell, own, {"early": 0.9, "libsvm": 0.8}.get(method, 0.7))
    faster, late, *_ = grid.subset_cells(SCALE, "generated", "libsvm")
    save(page, faster, 0.25, 0.8)
    late.save(page.results.folder, {"status": "timeout", "timeout": 20.0})
    shown, conclusion = written(page, "grid")
    assert "| 2.0 s | 4.0 s | >24.2 s | 16.0 s | 3 of 4 |" in shown
    assert ">20" in shown
    assert "faster than LIBSVM in 3 of 4 settings" in conclusion
    assert "more than 24.2 s, at least 6.1 times the 4.0 s of DC-SVM" in conclusion
    assert "take LaSVM 16.0 s, 4.0 times the 4.0 s" in conclusion
    assert "90.00 % on average over 3 settings, above DC-SVM's 70.00" in conclusion


def test_subsets_are_of_the_sets_whose_grid_is_in_the_paper():
    cells = grid.cells(SCALE, ["covtype", "kdd10"], 2)
    names = [cell.name for cell in cells if "subset" in cell.name]
    assert len(names) == 2 + 2 * 25 and all(name.startswith("covtype") for name in names)


@needs_svm_train
def test_the_support_vectors_of_svm_train_are_rows_of_the_problem():
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, (150, 3)).astype(np.float32)
    X[:20] *= 1e-3  # values of more digits than svm-train writes
    X[rng.random(X.shape) < 0.2] = 0
    y = np.where(X[:, 0] * X[:, 1] > 0, 1.0, -1.0)
    X, y = np.concatenate([X, X[:50]]), np.concatenate([y, y[:50]])
    fitted = libsvm.fit(X, y, 5.0, Kernel("rbf", 2.0), threads=1, tolerance=1e-6)
    found = support_vectors.numbers_of(fitted.model, X, y)
    assert len(found) and found.max() < 150 and np.array_equal(found, np.unique(found))
    sign = fitted.decision_function(X[:150])
    assert set(np.flatnonzero(y[:150] * sign < 1 - 1e-3)) <= set(found)
    assert not set(np.flatnonzero(y[:150] * sign > 1 + 1e-3)) & set(found)


@needs_svm_train
def test_libsvm_finds_its_support_vectors_at_the_last_tolerance(page, monkeypatch):
    for module in (support_vectors, import_module("paper.sections.support_vectors")):
        monkeypatch.setattr(module, "TOLERANCES", (1, 0.001))
    measure_all(page, support_vectors)
    result = page.results.of(support_vectors.subset_cell(SCALE, "generated", "rbf", "libsvm"))
    assert len(result["points"]) == 2
    assert result["points"][-1]["recall"] > 0.95 and result["points"][-1]["precision"] > 0.95
    assert result["points"][0]["recall"] <= result["points"][-1]["recall"]
    shown, conclusion = written(page, "support_vectors")
    assert "tolerance 0.001" in shown and "with LIBSVM" in conclusion


def test_the_bounds_hold_and_are_shown_with_their_d(page, monkeypatch):
    monkeypatch.setattr(bound, "ROWS", 400)
    measure_all(page, bound)
    shown, conclusion = written(page, "bound")
    cell = bound.cell("generated", 8, "random", 1)
    result = page.results.of(cell)
    half = 0.5 * cell.settings["C"] ** 2
    assert f"| random, 8 clusters | {result['bound'] / half:.3g} |" in shown
    assert "Theorem 1's bound holds in 5 and Theorem 3's in 5 of 5 cases" in conclusion


def test_a_setting_is_chosen_for_early_and_for_exact_models(page):
    measure_all(page, choice)
    for method, rows in (("early", 900), ("dcsvm", 300)):
        result = page.results.of(choice.cell(SCALE, "generated", method, 1))
        assert result["n_rows"] == rows and result["n_settings"] == 9
        assert {result["log2_C"], result["log2_gamma"]} <= {-10, 0, 10}
        assert 0.5 < result["fold_accuracy"] <= 1
    shown, conclusion = written(page, "choice")
    assert "2^5, 2^4" in shown and "of 1 data sets" in conclusion


def test_images_have_the_papers_range_of_gamma():
    settings = choice.cell(SCALES["full"], "mnist", "early", 1).settings
    assert settings["log2_C"] == list(range(-10, 11, 2))
    assert settings["log2_gamma"] == list(range(-30, -9, 2))


def test_clusterings_are_compared_at_the_same_levels(page):
    measure_all(page, clustering)
    results = {
        name: page.results.of(clustering.cell(SCALE, "generated", name, 1))
        for name in clustering.CLUSTERINGS
    }
    for result in results.values():
        assert [level["clusters"] for level in result["levels"]] == [16, 4]
        assert all(level["gap"] > -1e-6 for level in result["levels"])
        assert all(0 <= level["between"] <= result["between_all"] for level in result["levels"])
    finest = [results[name]["levels"][0] for name in ("adaptive", "random")]
    assert finest[0]["gap"] == finest[1]["gap"] and finest[0]["between"] == finest[1]["between"]
    X = load({"data": "generated", "rows": 1_700, "test_rows": 1}, page.plots).X.astype(float)
    K = kernel_matrix(Kernel("rbf", 16.0), X, X)
    assert results["tree"]["between_all"] == pytest.approx(K.sum() - np.trace(K), rel=1e-4)
    shown, conclusion = written(page, "clustering")
    assert "4, adaptive" in shown and "of 1 levels" in conclusion


def test_accurate_levels_are_nearer_to_the_optimum_of_their_clusters(page):
    before = steps.LEVEL_TOLERANCE
    measure_all(page, level_tolerance)
    assert before == steps.LEVEL_TOLERANCE
    rough, accurate = (
        page.results.of(level_tolerance.cell(SCALE, "generated", tolerance, 1))
        for tolerance in level_tolerance.TOLERANCES
    )
    assert accurate["levels"][-1]["objective"] <= rough["levels"][-1]["objective"]
    assert accurate["n_sv"] == pytest.approx(rough["n_sv"], rel=0.02)
    shown, conclusion = written(page, "level_tolerance")
    assert "16 clusters" in shown and "0.1 instead of 0.001" in conclusion


def test_words_follow_from_numbers():
    assert compared(2, 1, "more", "less") == "more"
    assert compared(1, 2, "more", "less") == "less"
    assert compared(1, 1, "more", "less") == "equal"
    assert [joined(["a", "b", "c"][:n]) for n in (1, 2, 3)] == ["a", "a and b", "a, b and c"]
