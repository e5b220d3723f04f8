"""Test docs/memory.md: the numbers of features from which kernel rows are cached."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

import dcsvm

PAGE = Path(__file__).resolve().parents[2] / "docs" / "memory.md"
LINE = re.compile(r"^\| floats \| ([\w, ]+) \| (\d+) features", re.MULTILINE)
WIDTHS = [
    (kernel, int(width))
    for kernels, width in LINE.findall(PAGE.read_text(encoding="utf-8"))
    for kernel in kernels.split(", ")
]


def rows_reused(kernel: str, n_features: int) -> int:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(1500, n_features))
    y = np.sign(X[:, 0] + 0.2 * rng.normal(size=len(X)))
    gamma = 0.1 if kernel in ("polynomial", "sigmoid") else "2/median"
    options = {"C": 0.5, "gamma": gamma, "levels": 0, "max_iterations": 5000}
    return dcsvm.train(X, y, kernel=kernel, **options).report.counts["rows_reused"]


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize(("kernel", "width"), WIDTHS)
def test_kernel_rows_are_cached_from_the_number_of_features_that_is_told(kernel, width):
    assert len(WIDTHS) == 5
    assert rows_reused(kernel, width - 1) == 0
    assert rows_reused(kernel, width) > 0
