"""Test that the experiments have all that the paper's tables and figures have."""

import hashlib
import re
import shutil
from importlib import import_module
from pathlib import Path
from types import SimpleNamespace

import inventory
import numpy as np
import pytest
from paper import EXPERIMENTS, problems, published
from paper.baselines import OURS, cascade, dc_svm, lasvm, libsvm
from paper.experiments import (
    bound,
    choice,
    clustering,
    comparison,
    convergence,
    data_sets,
    grid,
    level_times,
    polynomial,
    support_vectors,
)
from paper.scales import SCALES

from dcsvm.kernel.kernels import Kernel

FULL = SCALES["full"]
EXAMPLES = Path(__file__).resolve().parents[2] / "examples"


def settings(module, names):
    return [cell.settings for cell in module.cells(FULL, list(names), 2)]


def test_every_data_set_has_the_papers_c_and_gamma():
    assert set(data_sets.DATA_SETS) == set(comparison.DATA_SETS) == set(inventory.DATA_SETS)
    for name, own in problems.DATA_SETS.items():
        if name != "generated":
            assert (own.C, own.gamma) == inventory.DATA_SETS[own.stands_for or name]


def test_the_comparison_has_every_method_on_all_rows_of_every_data_set():
    found = settings(comparison, inventory.DATA_SETS)
    for name, (C, gamma) in inventory.DATA_SETS.items():
        for method, options in inventory.METHODS.items():
            wanted = {
                "method": method,
                "C": C,
                "kernel": {"name": "rbf", "gamma": gamma},
                "problem": {"data": name, "rows": None, "test_rows": None},
                "options": options,
            }
            assert any(wanted.items() <= one.items() for one in found), (name, method)


def test_every_stand_in_is_made_or_published():
    makefile = (EXAMPLES / "Makefile").read_text(encoding="utf-8")
    made = re.search(r"for name in ([\w ]+);", makefile)[1].split()
    published_ones = import_module("bench.datasets").RECIPES
    for names in problems.STAND_INS.values():
        for name in names:
            assert name.removesuffix("-made") in made or name in published_ones


def captured(monkeypatch, fit, rows=40_000):
    """Return the options that a fit passes to dcsvm.train."""
    given = {}

    class Stopped(Exception):
        pass

    def train(X, y, **options):
        given.update(options)
        raise Stopped

    monkeypatch.setattr(dc_svm.dcsvm, "train", train)
    X = np.random.default_rng(0).normal(size=(rows, 2)).astype(np.float32)
    with pytest.raises(Stopped):
        fit(X, np.sign(X[:, 0]).astype(float), 1.0, Kernel("rbf", 1.0), threads=1)
    return given


def test_dc_svm_has_five_levels_and_the_default_clustering(monkeypatch):
    given = captured(monkeypatch, dc_svm.fit)
    assert (given["levels"], given["branching"]) == (inventory.LEVELS, inventory.BRANCHING)
    usual = dc_svm.dcsvm.TrainOptions()
    assert usual.tolerance == inventory.TOLERANCE and usual.clustering == "tree"
    assert given.get("tolerance", usual.tolerance) == inventory.TOLERANCE
    assert given.get("clustering", usual.clustering) == usual.clustering


def test_early_prediction_is_that_of_64_clusters_one_for_each_row(monkeypatch):
    given = captured(monkeypatch, dc_svm.fit_early)
    assert given["early"] and given["early_level"] == inventory.EARLY_LEVEL
    assert given["branching"] ** given["early_level"] == inventory.EARLY_CLUSTERS
    assert given["overlap"] == 1 and given["levels"] == inventory.LEVELS


@pytest.mark.skipif(shutil.which("svm-train") is None, reason="no svm-train")
def test_svm_train_gets_the_tolerance():
    X = np.random.default_rng(0).uniform(-1, 1, (600, 2)).astype(np.float32)
    y = np.where(np.hypot(*X.T) < 0.75, 1.0, -1.0)
    rough, fine = (
        libsvm.fit(X, y, 32.0, Kernel("rbf", 2.0), threads=1, tolerance=value).facts["objective"]
        for value in (0.9, 1e-6)
    )
    assert fine < rough
    assert libsvm.fit.__kwdefaults__["tolerance"] == inventory.TOLERANCE
    assert cascade.fit.__kwdefaults__["tolerance"] == inventory.TOLERANCE
    assert lasvm.fit.__kwdefaults__["passes"] == inventory.PASSES


def test_prediction_has_the_papers_clusters():
    module = pytest.importorskip("paper.experiments.prediction")
    assert set(module.DATA_SETS) == inventory.PREDICTION["data"]
    assert inventory.PREDICTION["clusters"] == module.CLUSTERS


def test_level_times_are_of_covtype():
    assert set(level_times.DATA_SETS) == inventory.LEVEL_TIMES["data"]
    (one,) = settings(level_times, ["covtype"])
    assert one["problem"]["rows"] is None
    assert {"data": {"covtype"}} | published.LEVEL_TIMES == inventory.LEVEL_TIMES


def test_the_grids_have_25_settings_and_early_models_64_clusters(monkeypatch, tmp_path):
    assert set(grid.DATA_SETS) >= inventory.GRID["data"]
    assert set(map(grid.has_peers, inventory.GRID["data"])) == {True}
    exponents = inventory.GRID["exponents"]
    assert tuple((c, g) for c in exponents for g in exponents) == grid.SETTINGS
    assert {"early", "dcsvm"} <= set(grid.METHODS) and {"libsvm", "lasvm"} <= set(grid.PEERS)
    given = []

    def search(X, y, **options):
        given.append(options)
        return SimpleNamespace(scores=[])

    monkeypatch.setattr(grid.dcsvm, "grid_search", search)
    for method in grid.METHODS:
        cell = grid.cell(FULL, "generated", method, 2)
        grid.measure(
            {**cell.settings, "problem": {**cell.settings["problem"], "rows": 9000}}, tmp_path
        )
    levels = {method: own["early_level"] for method, own in zip(grid.METHODS, given, strict=True)}
    assert levels == {"early": inventory.EARLY_LEVEL, "found": None, "dcsvm": None}
    values = [2.0**e for e in exponents]
    assert all(own["Cs"] == own["gammas"] == values and own["every"] for own in given)


def test_figure_1_has_10000_rows_and_both_partitions():
    wanted = inventory.BOUND
    assert (wanted["rows"], wanted["clusters"]) == (bound.ROWS, bound.CLUSTERS)
    assert set(bound.PARTITIONS) == wanted["partitions"]
    assert set(bound.DATA_SETS) == wanted["data"]


def test_figure_2_has_all_methods_and_both_kernels():
    wanted = inventory.SUPPORT
    assert set(support_vectors.DATA_SETS) == wanted["data"]
    assert {*support_vectors.METHODS, *support_vectors.ON_SUBSET} >= wanted["methods"]
    assert wanted["levels"] == support_vectors.LEVELS
    kernels = support_vectors.kernels("covtype")
    assert kernels["rbf"] == (32, {"name": "rbf", "gamma": 32})
    assert kernels["polynomial"][0] == inventory.POLYNOMIAL["data"]["covtype"][0]


def test_figure_3_has_all_methods():
    assert set(convergence.DATA_SETS) == inventory.CONVERGENCE["data"]
    assert set(convergence.METHODS) >= inventory.CONVERGENCE["methods"]
    for method in convergence.METHODS:
        steps = convergence.steps(FULL, method)
        assert len(steps) >= (1 if method in ("spsvm", "single") else 2)


def test_figure_4_has_the_polynomial_kernels():
    wanted = inventory.POLYNOMIAL
    assert set(polynomial.DATA_SETS) == set(wanted["data"])
    for name, (C, gamma) in wanted["data"].items():
        kernel = {
            "name": "polynomial", "gamma": gamma, "coef0": wanted["coef0"],
            "degree": wanted["degree"],
        }  # fmt: skip
        found = [one for one in settings(polynomial, [name])]
        assert {one["method"] for one in found} >= wanted["methods"]
        assert all((one["C"], one["kernel"]) == (C, kernel) for one in found)


def test_the_choice_has_five_folds_over_the_papers_range():
    wanted = inventory.CHOICE
    assert wanted["folds"] == choice.FOLDS
    for name in inventory.DATA_SETS:
        own = choice.cell(FULL, name, "early", 2).settings
        shift = wanted["shift"] if name in wanted["images"] else 0
        assert (own["log2_C"][0], own["log2_C"][-1]) == wanted["exponents"]
        assert own["log2_gamma"] == [exponent + shift for exponent in own["log2_C"]]


def test_adaptive_clustering_is_compared():
    assert "adaptive" in clustering.CLUSTERINGS


def test_a_competitor_is_limited_wherever_it_is_compared():
    for experiment in EXPERIMENTS:
        module = import_module(f"paper.experiments.{experiment}")
        if hasattr(module, "fewer"):
            assert set(module.LIMITED) == set(inventory.METHODS) - set(OURS)


@pytest.mark.parametrize("name", inventory.CHECKSUMS)
def test_the_printed_numbers_are_the_papers(name):
    path = published.NUMBERS / name
    content = path.read_bytes() if path.exists() else repr(getattr(published, name)).encode()
    assert hashlib.sha256(content).hexdigest() == inventory.CHECKSUMS[name]
