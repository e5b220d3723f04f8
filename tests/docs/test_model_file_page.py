"""Test the code of docs/model-file.md that finds the clusters of rows from the file alone."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner
from reference import libsvm_text

import dcsvm
from dcsvm.cli import train

PAGE = Path(__file__).resolve().parents[2] / "docs" / "model-file.md"
(BLOCK,) = re.findall(
    r"^```python\n(.*?)^```$", PAGE.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL
)
NEAR = 1e-5  # distance to a boundary; kernel values in float32 and float64 may decide differently


def some_rows(seed: int) -> np.ndarray:
    """Return rows of four groups, two of them small, (3000, 4)."""
    rng = np.random.default_rng(seed)
    group = rng.choice(4, 3000, p=[0.6, 0.3, 0.07, 0.03])
    return np.round(rng.normal(0, 0.4, (3000, 4)) + 2 * np.eye(4)[group], 4)


@pytest.mark.parametrize(
    "options",
    ["-l 2", "-l 1", "-l 2 --clustering adaptive", "--early --early-level 2", "-l 2 --scale auto"],
)
def test_the_file_tells_the_clusters_of_training_rows_and_of_new_ones(
    options, tmp_path, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    X, new = some_rows(0), some_rows(1)
    Path("ijcnn1").write_text(libsvm_text(X, np.where(X[:, 0] > 0.2 * X[:, 1], 1, -1)))
    command = ["-q", "-c", "4", "-g", "2", *options.split(), "ijcnn1", "levels.model"]
    done = CliRunner().invoke(train.main, command)
    assert done.exit_code == 0, done.output
    model, names = dcsvm.load_model("levels.model"), {}
    exec(compile(BLOCK, PAGE.name, "exec"), names)
    for rows in (X, new):
        data = dcsvm.Dataset(rows, scale=model.scaling)
        by_index = np.hstack([np.zeros((len(rows), 1)), data.rows.features])
        placed = model.early.partition.place(data.rows, 1, second=True)
        clear = placed.distance > NEAR
        assert np.mean(clear) > 0.99
        assert np.array_equal(names["clusters"](by_index)[clear], placed.nearest[clear])
        assert len(np.unique(placed.nearest)) > 3
    if options in ("-l 2", "-l 1"):
        n_levels = len(model.early.partition.splits)
        assert n_levels == int(options[-1])
        assert (1 in model.early.partition.splits[-1].n_parts) == (n_levels == 2)
