"""Test training with a warm start from a model of the same rows."""

import numpy as np
import pytest
from click.testing import CliRunner
from reference import TYPES, labelled_rows
from runs import train_rows

from dcsvm.cli.train import main
from dcsvm.data.rows import Rows
from dcsvm.model.reader import load_model
from dcsvm.model.writer import with_label_order
from dcsvm.problem.options import TrainOptions


@pytest.fixture(scope="module")
def data():
    """Return rows of three classes; every tenth row occurs twice."""
    X, y = labelled_rows(900, 4, seed=8, noise=0.2)
    y = np.where(X[:, 0] > 0.4, 2.0, y)
    again = np.arange(0, 900, 10)
    return np.concatenate([X, X[again]]), np.concatenate([y, y[again]])


def train(X, y, init_model=None, **options):
    chosen = {"C": 2.0, "gamma": 1.0, "threads": 1, "cache_mb": 50, "tolerance": 1e-5} | options
    return train_rows(Rows.from_array(X), y, TrainOptions(**chosen), init_model=init_model)


@pytest.mark.parametrize("other", [{"C": 20.0}, {"C": 0.2}, {"gamma": 2.0}])
@pytest.mark.parametrize("name", TYPES)
def test_the_answer_is_that_of_a_cold_start(data, name, other, tmp_path):
    train(*data, **TYPES[name])[0].save(tmp_path / "m")
    first = load_model(tmp_path / "m")
    _, cold = train(*data, **TYPES[name], **other)
    _, warm = train(*data, first, **TYPES[name], **other)
    assert warm.converged
    rel = 1e-3 if name == "nu_svc" else 1e-5
    assert warm.objective == pytest.approx(cold.objective, rel=rel)


@pytest.mark.parametrize("name", TYPES)
def test_the_same_problem_is_solved_by_its_own_model(data, name):
    model, cold = train(*data, **TYPES[name])
    warm = train(*data, model, **TYPES[name])[1]
    assert warm.counts["iterations"] <= 0.2 * cold.counts["iterations"]


def test_labels_may_come_in_another_order(data):
    X, y = data
    model, cold = train(X, y)
    start, _ = train(X, y, C=1.0)
    turned = with_label_order(start, start.labels[::-1])
    assert not np.array_equal(turned.labels, model.labels)
    _, warm = train(X, y, turned)
    assert warm.objective == pytest.approx(cold.objective, rel=1e-5)


def test_appended_rows_join_a_model_of_the_first_ones(data):
    X, y = data
    first, _ = train(X[:700], y[:700])
    _, cold = train(X, y)
    _, warm = train(X, y, first)
    assert warm.converged
    assert warm.objective == pytest.approx(cold.objective, rel=1e-5)


def test_an_early_model_is_a_start_too(data):
    early, _ = train(*data, levels=1, early=True)
    _, warm = train(*data, early)
    assert warm.objective == pytest.approx(train(*data)[1].objective, rel=1e-5)


def test_other_rows_labels_and_problems_are_refused(data):
    X, y = data
    model, _ = train(X, y)
    wrong = {
        "has other rows": (X + np.float32(0.5), y, {}),
        "support vectors differ": (X, np.concatenate([y[:50], y[:49:-1]]), {}),
        "has other labels": (X, np.where(y == 2.0, 4.0, y), {}),
        "has type c_svc, not nu_svc": (X, y, {"svm_type": "nu_svc", "nu": 0.3}),
        "there are 500 rows": (X[:500], y[:500], {}),
    }
    for reason, (those, labels, options) in wrong.items():
        with pytest.raises(ValueError, match=reason):
            train(those, labels, model, **options)


def test_the_command_begins_with_a_model(tmp_path, write_libsvm):
    data = write_libsvm(*labelled_rows(300, 3, seed=2, noise=0.1))
    files = [str(data), str(tmp_path / "m")]
    runner = CliRunner()
    assert runner.invoke(main, ["-c", "1", *files]).exit_code == 0
    again = [str(data), str(tmp_path / "again")]
    done = runner.invoke(main, ["-c", "8", "--init-model", files[1], *again])
    assert done.exit_code == 0, done.output
    assert load_model(again[1]).exact.status.converged
    assert runner.invoke(main, ["--model-format", "libsvm", *files]).exit_code == 0
    done = runner.invoke(main, ["--init-model", files[1], *again])
    assert done.exit_code == 1
    assert "has no row numbers of its support vectors" in done.output
