"""Test --weights, and what dcsvm-predict --describe says of a model."""

import json
from pathlib import Path

import numpy as np
import pytest

from dcsvm.cli import predict


@pytest.fixture
def training(write_libsvm):
    X = np.random.default_rng(0).uniform(0, 1, (800, 5))
    return write_libsvm(X, np.where(np.sin(9 * X[:, 1]) > 0, 1, -1), "train")


LAPLACIAN = ("-q", "-t", "5", "-c", "8", "-g", "1")


@pytest.mark.parametrize("scale", [(), ("--scale", "auto"), ("--scale", "quantile")], ids=str)
def test_learned_weights_are_in_the_model_and_described(run, invoke, training, scale):
    done = run(*LAPLACIAN, *scale, "--weights", "learn", "--report", "r", training, "m")
    assert done.exit_code == 0, done.stderr
    assert json.loads(Path("r").read_text())["converged"]
    lines = invoke(predict.main, "--describe", "m").stdout.splitlines()
    assert lines[:3] == ["type: c_svc", "labels: 1, -1", "kernel: laplacian(gamma=1)"]
    assert lines[-6] == "feature weights, largest first:" and lines[-5].startswith("2 ")
    done = invoke(predict.main, training, "m", "out")
    assert float(done.stdout.split()[2].rstrip("%")) > 95


def test_models_without_scaling_are_described(run, invoke, training):
    run(*LAPLACIAN, training, "m")
    assert invoke(predict.main, "--describe", "m").stdout.splitlines()[-1] == "scaling: none"
    assert invoke(predict.main, "--describe", "absent").exit_code == 1


@pytest.mark.parametrize(
    ("arguments", "status", "reason"),
    [
        (("-t", "0"), 2, "--weights can be learned for a kernel of a distance only, got linear"),
        (("-s", "2"), 2, "--weights are learned from labels or targets, got one_class"),
        (("--init-model", "m"), 2, "--weights learn is not possible with --init-model"),
        (("-v", "3"), 2, "--weights learn is not possible with folds (-v)"),
        (("--scale", "ranges"), 2, "--weights needs --scale auto or quantile, not a file"),
        (("--model-format", "libsvm"), 2, "LIBSVM has no weights"),
    ],
)
def test_weights_that_cannot_be_are_refused(run, training, arguments, status, reason):
    done = run("-q", *arguments, "--weights", "learn", training)
    assert done.exit_code == status and reason in done.stderr


@pytest.mark.parametrize("scale", [(), ("--scale", "auto"), ("--scale", "quantile")], ids=str)
@pytest.mark.parametrize(
    "problem", [(), ("-s", "1", "-n", "0.1"), ("-s", "4", "-n", "0.1")], ids=str
)
def test_weights_of_a_model_file_repeat_the_run_that_learned_them(run, training, scale, problem):
    for weights, model in (("learn", "m"), ("m", "again")):
        done = run(*LAPLACIAN, *problem, *scale, "--weights", weights, training, model)
        assert done.exit_code == 0, done.stderr
    text = Path("m").read_bytes()
    assert b"weight" in text and Path("again").read_bytes() == text


def test_weights_of_a_model_file_have_other_uses(run, training):
    weighted = (*LAPLACIAN, "--scale", "auto", "--weights")
    run(*weighted, "learn", training, "m")
    assert run(*weighted, "m", "--init-model", "m", training, "again").exit_code == 0
    assert "Accuracy" in run(*weighted, "m", "-v", "3", training).stdout
    done = run("-q", "-s", "2", "-n", "0.1", "--weights", "m", training, "one_class")
    assert done.exit_code == 0, done.stderr


def test_a_model_file_without_the_weights_is_refused(run, training):
    run(*LAPLACIAN, training, "plain")
    done = run(*LAPLACIAN, "--weights", "plain", training, "m")
    assert (done.exit_code, done.stderr) == (1, "error: plain: the model has no feature weights\n")
    run(*LAPLACIAN, "--weights", "learn", training, "m")
    Path("narrow").write_text("1 1:1 2:5\n-1 1:2 2:3\n")
    done = run(*LAPLACIAN, "--weights", "m", "narrow", "n")
    reason = "error: m: feature 3 has a weight, but narrow has no values of it\n"
    assert (done.exit_code, done.stderr) == (1, reason)
    done = run(*LAPLACIAN, "--weights", "m", training, "m")
    assert done.exit_code != 0 and Path("m").exists()


def test_a_time_limit_ends_learning(run, training):
    done = run(*LAPLACIAN, "--time-limit", "1e-9", "--weights", "learn", training, "m")
    assert (done.exit_code, done.stderr) == (1, "error: stopped before a model existed\n")


@pytest.mark.parametrize("text", ["1 1:1 2:5\n-1 1:1 2:5\n" * 2, "1\n-1\n"], ids=["equal", "none"])
def test_rows_without_a_feature_that_varies_have_quantiles(run, invoke, write_libsvm, text):
    with open("same", "w") as file:
        file.write(text)
    assert run(*LAPLACIAN, "--scale", "quantile", "same", "m").exit_code == 0
    assert invoke(predict.main, "same", "m", "out").exit_code == 0


def test_a_kernel_that_libsvm_lacks_is_refused_before_training(run, training):
    done = run(*LAPLACIAN, "--model-format", "libsvm", training)
    assert done.exit_code == 2 and "LIBSVM has no kernel laplacian" in done.stderr


def test_weights_are_drawn(run, invoke, training):
    pytest.importorskip("matplotlib")
    run(*LAPLACIAN, "--weights", "learn", training, "m")
    assert invoke(predict.main, "--plot", "m", "w.png").exit_code == 0
    assert Path("w.png").read_bytes().startswith(b"\x89PNG")
    run(*LAPLACIAN, training, "plain")
    done = invoke(predict.main, "--plot", "plain", "p.png")
    assert done.stderr == "error: plain: the model has no feature weights\n"
    assert not Path("p.png").exists()
