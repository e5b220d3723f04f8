"""Test the cost of solving: exact counts of some runs, so that no cost grows unnoticed.

Bits and counts depend on the instruction set. The recorded counts are for the baseline of x86-64,
which every such machine runs. After an intended change
`DCSVM_ISA=baseline python tests/training/test_run_counters.py` prints the new table.
"""

import json
import os
import platform
import subprocess
import sys

import numpy as np
import pytest
from scipy.sparse import csr_array

import dcsvm

COUNTS = ("kernel_evaluations", "pairs_skipped", "rows_computed", "rows_reused", "iterations",
          "outer_steps", "newton_steps", "rebuilds")  # fmt: skip
RUNS = {
    "plain": ("rows", {"C": 1, "gamma": 2, "levels": 0}),
    "large C": ("rows", {"C": 1000, "gamma": 1, "levels": 0}),
    "no noise": ("clean", {"C": 100, "gamma": 4, "levels": 0}),
    "accurate": ("rows", {"C": 300, "gamma": 0.5, "levels": 0, "tolerance": 1e-7}),
    "levels": ("rows", {"C": 10, "gamma": 2, "levels": 2, "branching": 2}),
    "early": ("rows", {"C": 10, "gamma": 2, "branching": 3, "early": True, "early_level": "auto"}),
    "bias": ("rows", {"C": 1, "gamma": 2, "levels": 1, "bias": True}),
    "groups": ("spots", {"C": 10, "gamma": 20, "bias": True}),
    "groups, no bias": ("spots", {"C": 10, "gamma": 20, "levels": 1}),
    "groups, relaxed": ("spots", {"C": 10, "gamma": 20, "levels": 1, "bias": True}),
    "nu-SVC": ("rows", {"svm_type": "nu_svc", "nu": 0.4, "gamma": 2}),
    "one class": ("rows", {"svm_type": "one_class", "nu": 0.2, "gamma": 2}),
    "regression": ("curve", {"svm_type": "epsilon_svr", "gamma": 1, "epsilon": 0.05}),
    "codes": ("codes", {"C": 1, "gamma": 0.125, "levels": 1}),
    "sparse": ("sparse", {"C": 1, "gamma": 0.01, "levels": 0}),
    "wide": ("wide", {"C": 10, "gamma": 0.03, "levels": 0}),
    "wide, little memory": ("wide", {"C": 10, "gamma": 0.03, "levels": 0, "cache_mb": 28}),
    "linear": ("rows", {"kernel": "linear"}),
    "linear sparse": ("sparse", {"kernel": "linear", "C": 0.1}),
}
RECORDED = {
    "plain": [6892842, 0, 1717, 0, 2584, 11, 0, 3, 1708185],
    "large C": [17365063, 0, 7662, 0, 168925, 26, 96, 4, 1888262],
    "no noise": [4113194, 0, 1385, 0, 5148, 8, 1, 2, 565931],
    "accurate": [10183625, 0, 3241, 0, 129017, 17, 65, 6, 4928700],
    "levels": [7568759, 0, 0, 0, 16248, 12, 14, 11, 1752975],
    "early": [5387729, 0, 2323, 0, 19907, 23, 14, 5, 0],
    "bias": [4887828, 0, 0, 0, 4173, 8, 0, 5, 1712116],
    "groups": [13723999, 17391948, 13216, 0, 7638, 41, 0, 0, 258209],
    "groups, no bias": [626631, 0, 0, 0, 4129, 5, 0, 0, 258209],
    "groups, relaxed": [4987614, 1248099, 203, 0, 11960, 25, 0, 14, 258209],
    "nu-SVC": [11253675, 0, 4332, 0, 12467, 30, 2, 5, 1756821],
    "one class": [5805601, 0, 722, 0, 2279, 13, 0, 7, 711852],
    "regression": [21542144, 0, 3433, 0, 14310, 18, 9, 1, 1257490],
    "codes": [4549451, 0, 868, 0, 4694, 11, 0, 3, 1664520],
    "sparse": [9416917, 0, 5303, 0, 3220, 16, 0, 2, 1910656],
    "wide": [3975496, 0, 1349, 4002, 8703, 22, 1, 0, 1460965],
    "wide, little memory": [9408662, 0, 3328, 2023, 8703, 22, 1, 0, 1460965],
    "linear": [0, 0, 0, 0, 29323, 31, 14, 5, 4850000],
    "linear sparse": [0, 0, 0, 0, 40358, 46, 60, 6, 1045000],
}


def rows_of(kind):
    """Return rows and labels that float32 holds exactly, so they are equal on all machines."""
    rng = np.random.default_rng(0)
    X = rng.integers(-64, 64, (2500, 4)) / 64
    surface = X[:, 0] * (3 - 4 * X[:, 0] ** 2) + X[:, 1] * (X[:, 2] + X[:, 3])
    if kind == "curve":
        return X, surface
    y = np.where(surface > 0.1, 1.0, -1.0)
    if kind != "clean":
        y[rng.random(2500) < 0.1] *= -1
    if kind == "spots":
        X += 4 * rng.integers(0, 5, (2500, 1))
    elif kind == "codes":
        X = np.eye(8)[np.digitize(X, np.arange(-3, 4) / 4)].reshape(2500, -1)
    elif kind == "wide":
        X = np.tile(X, (1, 60))
    elif kind == "sparse":
        X = np.where(rng.random((2500, 60)) < 0.1, rng.integers(1, 9, (2500, 60)), 0)
        return csr_array(X * 1.0), np.where(X[:, :10].sum(axis=1) > X[:, 10:20].sum(axis=1), 1, -1)
    return X.astype(np.float32), y


def counts_of(name):
    kind, options = RUNS[name]
    report = dcsvm.train(*rows_of(kind), threads=1, **{"cache_mb": 100} | options).report
    return [report.counts[count] for count in COUNTS] + [report.evaluations_by_phase["check"]]


@pytest.fixture(scope="module")
def counted():
    if platform.machine() not in ("x86_64", "AMD64"):
        pytest.skip("the counts are of x86-64")
    baseline = os.environ | {"DCSVM_ISA": "baseline"}
    done = subprocess.run([sys.executable, __file__], env=baseline, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.mark.parametrize("name", RUNS)
def test_a_run_costs_what_it_cost(counted, name):
    assert counted[name] == RECORDED[name]


if __name__ == "__main__":
    lines = (f'    "{name}": {counts_of(name)}' for name in RUNS)
    print("{\n" + ",\n".join(lines) + "\n}")
