import numpy as np
import pytest
from click.testing import CliRunner

import dcsvm
from dcsvm.cli import easy as easy_command


def ring(rng, n_rows):
    angle = rng.uniform(0, 2 * np.pi, n_rows)
    radius = 1 + 0.1 * rng.normal(size=n_rows)
    return np.column_stack([radius * np.cos(angle), radius * np.sin(angle)])


def test_a_boundary_of_a_ring_leaves_out_its_middle():
    rng = np.random.default_rng(0)
    model = dcsvm.easy(ring(rng, 1000), svm_type="one_class", time_limit=20, threads=1)
    chosen = model.report.selection
    assert model.svm_type == "one_class"
    assert np.mean(model.predict(rng.normal(scale=0.1, size=(200, 2))) < 0) > 0.9
    outside = np.mean(model.predict(ring(rng, 20_000)) < 0)
    assert abs(outside - chosen["loss"]) < 4 * chosen["standard_error"]
    assert chosen["kappa"] > 0.6


def test_labels_and_metrics_are_not_used():
    X = np.random.default_rng(0).normal(size=(100, 3))
    with pytest.raises(ValueError, match="no labels to choose by"):
        dcsvm.easy(X, svm_type="one_class", metric="accuracy")
    with pytest.raises(ValueError, match="from at least 20 rows: got 10"):
        dcsvm.easy(X[:10], svm_type="one_class")
    with pytest.raises(dcsvm.Stopped):
        dcsvm.easy(X, svm_type="one_class", time_limit=1e-9)


def test_the_command_takes_rows_without_labels(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    X = ring(np.random.default_rng(0), 400)
    (tmp_path / "data.csv").write_text("\n".join(["a,b", *(f"{a:.5f},{b:.5f}" for a, b in X), ""]))
    done = CliRunner().invoke(easy_command.main, ["--type", "one-class", "data.csv"])
    assert done.exit_code == 0, done.output
    command, figure = done.stdout.splitlines()
    assert "-s 2" in command or "one" in command
    assert figure.startswith("held-out share outside ")
    refused = CliRunner().invoke(easy_command.main, ["-s", "2", "--metric", "auc", "data.csv"])
    assert refused.exit_code == 2
