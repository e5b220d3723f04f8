"""Test that experiments measure what they say and that their conclusions follow from the cells."""

import shutil
from dataclasses import replace
from importlib import import_module

import numpy as np
import pytest
from bench import figures
from paper.baselines import libsvm
from paper.cells import Results, as_json
from paper.experiments import (
    bound,
    choice,
    clustering,
    comparison,
    convergence,
    divided,
    grid,
    level_tolerance,
    support_vectors,
)
from paper.fitted import kernel_matrix
from paper.problems import load
from paper.scales import SCALES

from dcsvm.kernel.kernels import Kernel
from dcsvm.training import run as steps

pytest.importorskip("matplotlib")
from paper.sections import Page  # noqa: E402

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
        save(page, cell, result)


def save(page, cell, result):
    measured = [{"seconds": 1.0, **result}]
    page.results.save(cell, {"status": "ok", "run": {}, "results": measured})


def slot(page, name, function):
    return getattr(import_module(f"paper.sections.{name}"), function)(page)


def of_subset(cell, seconds, accuracy):
    found = [
        {"log2_C": c, "log2_gamma": g, "accuracy": accuracy, "seconds": seconds, "n_sv": 9,
         "converged": True}
        for c, g in cell.settings["exponents"]
    ]  # fmt: skip
    return {"n_rows": 500, "settings": found}


@needs_svm_train
def test_every_method_is_measured_on_the_subset_of_a_grid(page, four_settings):
    measure_all(page, grid)
    assert "generated, 500 rows" in slot(page, "grid", "tables")
    assert (page.plots / "grid-subset-generated.png").stat().st_size
    assert " of 4 |" in slot(page, "grid", "subset_sums")
    assert "not converged" not in slot(page, "grid", "sums")
    result = page.results.of(grid.subset_cells(SCALE, "generated", "early")[0])
    assert [(one["log2_C"], one["log2_gamma"]) for one in result["settings"]] == list(FOUR)


def test_a_setting_out_of_time_counts_as_slower_and_makes_sums_lower_bounds(page, four_settings):
    seconds = {"early": 0.5, "dcsvm": 1.0, "libsvm": 2.0, "lasvm": 4.0}
    for method, own in seconds.items():
        for cell in grid.subset_cells(SCALE, "generated", method):
            accuracy = {"early": 0.9, "libsvm": 0.8}.get(method, 0.7)
            save(page, cell, of_subset(cell, own, accuracy))
    faster, late, *_ = grid.subset_cells(SCALE, "generated", "libsvm")
    save(page, faster, of_subset(faster, 0.25, 0.8))
    page.results.save(late, {"status": "timeout", "limit": 20.0, "run": {}})
    assert "| 2.0 s | 4.0 s | >24.2 s | 16.0 s | 3 of 4 |" in slot(page, "grid", "subset_sums")
    assert "| >20 |" in slot(page, "grid", "tables")
    told = slot(page, "grid", "times_together")
    assert "more than 24.2 s, at least 6.1 times the 4.0 s of DC-SVM" in told
    assert "take LaSVM 16.0 s, 4.0 times the 4.0 s" in told
    assert "| 3 | 90.00, 90.00 | 70.00, 70.00 | 80.00, 80.00 |" in slot(page, "grid", "robustness")
    assert "below in 3, most at -10.00 %" in slot(page, "grid", "bias_on_grids")


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
    shown = slot(page, "support_vectors", "curves")
    assert "tolerance 0.001" in shown and "with LIBSVM" in shown


def test_the_bounds_hold_and_are_shown_with_their_d(page, monkeypatch):
    monkeypatch.setattr(bound, "ROWS", 400)
    measure_all(page, bound)
    shown = slot(page, "bound", "bounds")
    cell = bound.cell("generated", 8, "random", 1)
    result = page.results.of(cell)
    half = 0.5 * cell.settings["C"] ** 2
    assert f"| random, 8 clusters | {result['bound'] / half:.3g} |" in shown
    assert "With random, Theorem 1's bound holds in 5 and Theorem 3's in 5 of 5 cases" in shown


def test_a_difference_within_the_error_is_no_measurement(page):
    for partition in bound.PARTITIONS:
        for k in bound.CLUSTERS:
            cell = bound.cell("generated", k, partition, 1)
            result = {"objective": -9.0, "difference": 4e-6, "bound": 1e-20, "support_bound": 0.0}
            save(page, cell, {**result, "clusters": k, "largest_cluster": 9})
    shown = slot(page, "bound", "bounds")
    assert "| <0.001 | -9 |" in shown and "of 0 cases whose difference is resolved" in shown


def test_kernel_k_means_is_not_a_random_partition(page):
    differences = {}
    for partition in bound.PARTITIONS:
        settings = bound.cell("generated", 16, partition, 1).settings
        settings = {**settings, "problem": {"data": "generated", "rows": 3000, "test_rows": 1}}
        differences[partition] = bound.measure(settings, page.plots)["difference"]
    assert differences["kernel k-means"] < 0.5 * differences["random"]


def test_a_setting_is_chosen_for_early_and_for_exact_models(page):
    measure_all(page, choice)
    for method, rows in (("early", 900), ("dcsvm", 300)):
        result = page.results.of(choice.cell(SCALE, "generated", method, 1))
        assert result["n_rows"] == rows and result["n_settings"] == 9
        assert {result["log2_C"], result["log2_gamma"]} <= {-10, 0, 10}
        assert 0.5 < result["fold_accuracy"] <= 1
    assert "2^5, 2^4" in slot(page, "choice", "searches")
    assert "of 1 data set" in slot(page, "choice", "against_paper")


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
    shown = slot(page, "clustering", "levels")
    assert "4, adaptive" in shown and "of 1 level" in shown


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
    assert "16 clusters" in slot(page, "level_tolerance", "costs")


def test_a_competitor_that_wins_where_it_was_stopped_is_said_to_win(page):
    chosen = comparison.problems(SCALE, page.names)[0]

    def compare(method, seconds, accuracy, by=1):
        cell = divided(comparison.cell(SCALE, chosen, method, 1), by)
        facts = {"n_rows": 3000 // by, "n_sv": 5, "history": []}
        save(page, cell, {"seconds": seconds, "accuracy": accuracy, **facts})

    compare("dcsvm", 2.0, 0.90)
    compare("cascade", 1.0, 0.85)
    compare("ltpu", 9.0, 0.91)
    late = comparison.cell(SCALE, chosen, "spsvm", 1)
    page.results.save(late, {"status": "timeout", "limit": 40, "run": {}})
    compare("spsvm", 0.5, 0.84, by=4)
    compare("dcsvm", 1.0, 0.80, by=4)
    told = slot(page, "comparison", "winners")
    better, faster = told.split(" Faster, with as many threads: ")
    compare("single", 9.0, 0.90)
    compare("libsvm", 5.0, 0.90)
    assert "LIBSVM, with bias on generated (5.00 against 9.00 s)" in slot(
        page, "comparison", "winners"
    )
    assert "LTPU on generated (91.00 against 90.00 %)" in better
    assert "SpSVM on 750 rows of generated (84.00 against 80.00 %)" in better
    assert "CascadeSVM on generated (1.00 against 2.00 s)" in faster
    assert "SpSVM on 750 rows of generated (0.500 against 1.00 s)" in faster
    assert "+4.00; 0.500 (750 rows)" in slot(page, "comparison", "competitors")


def test_claims_say_what_holds(page):
    def find(precision, recall):
        for method in ("dcsvm", "cascade"):
            cell = support_vectors.cell(SCALE, "covtype", "rbf", method, 1)
            point = {"seconds": 1.0, "clusters": 256, "precision": precision, "recall": recall}
            save(page, cell, {"n_rows": 9, "n_sv": 9, "points": [point]})

    find(0.78, 0.85)
    claim = "| covtype: 256 clusters find about 90 % of the support vectors (4) | 90 | "
    line = "precision 78.00, recall 85.00 | does not hold |"
    assert claim + line in slot(page, "claims", "claims")
    find(0.92, 0.9)
    assert "precision 92.00, recall 90.00 | holds |" in slot(page, "claims", "claims")


def test_cascade_svm_is_compared_at_equal_numbers_of_parts(page):
    found = {"dcsvm": {1024: 0.5, 64: 0.9, 1: 1.0}, "cascade": {64: 0.2, 32: 0.95, 1: 0.8}}
    for method, shares in found.items():
        cell = support_vectors.cell(SCALE, "covtype", "rbf", method, 1)
        points = [
            {"seconds": 1.0, "clusters": count, "precision": share, "recall": share}
            for count, share in shares.items()
        ]
        save(page, cell, {"n_rows": 9, "n_sv": 9, "points": points})
    line = "precision lower at 2, recall at 2 of 2 numbers of parts | holds |"
    assert line in slot(page, "claims", "claims")


def test_claims_count_what_was_stopped_and_the_solver_without_levels(page):
    chosen = comparison.problems(SCALE, page.names)[0]
    for method, seconds, accuracy, added in (
        ("early", 0.1, 0.90, 5), ("dcsvm", 2.0, 0.90, 9), ("direct", 1.0, 0.90, 7),
        ("cascade", 1.0, 0.85, 8), ("ltpu", 9.0, 0.91, 10),
    ):  # fmt: skip
        cell = comparison.cell(SCALE, chosen, method, 1)
        facts = {"seconds": seconds, "accuracy": accuracy, "added_mb": added}
        save(page, cell, {"n_rows": 3000, "n_sv": 5, "history": [], **facts})
    late = comparison.cell(SCALE, chosen, "spsvm", 1)
    page.results.save(late, {"status": "timeout", "limit": 40, "run": {}})
    told = slot(page, "claims", "claims")
    assert "2 of 3 take 50 times as long as early; of 2 with a result 1 are less accurate" in told
    assert "0 are both | does not hold |" in told
    assert "| 0.500 to 0.500 | does not hold |" in told
    assert "1 of 2 add more MB to the rows | does not hold |" in told
    assert "-; >20.0" in slot(page, "comparison", "competitors")
    assert "| SpSVM | >40 | not measured | - |" in slot(page, "comparison", "tables")


def test_relative_errors_are_to_the_least_objective(page):
    def run(method, options, objective):
        cell = convergence.cell(SCALE, "generated", method, options, 1)
        save(page, cell, {"objective": objective, "accuracy": 0.9, "n_rows": 9})

    run("dcsvm", convergence.REFERENCE, -9.99999)
    run("single", convergence.DEFAULT, -9.9999)
    run("direct", convergence.DEFAULT, -10.0)
    claim = "generated, 9 rows: the exact solution has a relative error of 10^-6 (1) | 1e-06 | "
    assert claim + "1e-05 | does not hold |" in slot(page, "claims", "claims")
    assert "| 1.0e-06 |" not in slot(page, "convergence", "rbf")
    assert "| least | 90.00 |" in slot(page, "convergence", "rbf")


def test_a_factor_below_the_papers_is_open_if_it_is_a_bound():
    claims = import_module("paper.sections.claims")
    shown = ("8.0", "6.0", ">6.0", ">1,000", "-", "<0.01")
    verdicts = [[line[3] for line in claims.factor("c", 7, one)] for one in shown]
    known = claims.HOLDS, claims.NOT, claims.OPEN, claims.HOLDS
    assert verdicts == [*([one] for one in known), [], []]


@pytest.mark.parametrize("points", [9, 1])
def test_a_figure_has_no_legend_of_a_series_without_points(points, tmp_path):
    of_method = import_module("paper.figures").of_method
    series = [
        of_method("dcsvm", [(x, float(x)) for x in range(1, 1 + points)]),
        of_method("libsvm", [(1, None)]),
        of_method("lasvm", []),
    ]
    legends = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(
            import_module("matplotlib.figure").Figure,
            "legend",
            lambda self, handles, labels, **_: legends.append([*labels]),
        )
        figures.draw(tmp_path / "a.png", [[figures.Panel("x", "y", series, x=10, span=5)]])
    assert legends == [["DC-SVM"]]
