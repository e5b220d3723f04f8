"""Test exit codes, messages, streams and the report of dcsvm-train, and each kind of bad input."""

import json
import os
import re
from contextlib import nullcontext
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from reference import kernels_with, program

from dcsvm.cli import train_file
from dcsvm.kernel.kernels import NAMES
from dcsvm.model.reader import load_model
from dcsvm.training import train as train_module

FAST = ["-c", "4", "-g", "2", "--threads", "1", "-m", "50"]


def test_the_model_is_named_after_the_file_in_the_current_folder(run, training):
    result = run(*FAST, training)
    assert result.exit_code == 0, result.stderr
    assert os.listdir() == ["train.txt.model"]
    assert load_model("train.txt.model").exact is not None


def test_the_closing_lines_are_libsvms_and_on_stdout(run, training):
    result = run(*FAST, training, "a.model")
    lines = result.stdout.splitlines()
    assert lines[0].startswith("nu = 0.")
    assert lines[1].startswith("obj = -")
    assert lines[1].endswith(", rho = 0.000000")
    assert lines[2].startswith("nSV = ")
    assert ", nBSV = " in lines[2]
    assert lines[3] == f"Total nSV = {len(load_model('a.model').exact.dual_coef[0])}"
    assert len(lines) == 4


def test_levels_and_the_certificate_are_on_stderr(run, training):
    result = run(*FAST, "-l", 1, training, "a.model")
    assert result.exit_code == 0
    assert "level 1: 4 clusters" in result.stderr
    assert "refine: " in result.stderr
    assert "conquer: " in result.stderr
    assert "duality gap" in result.stderr
    assert "kernel error" in result.stderr
    assert "1 thread\n" in result.stderr


def test_quiet_is_silent(run, training):
    result = run(*FAST, "-q", "-l", 1, training, "a.model")
    assert (result.exit_code, result.stdout, result.stderr) == (0, "", "")


def test_the_report_has_every_field(run, training):
    result = run(*FAST, "-l", 1, "--report", "r.json", training, "a.model")
    assert result.exit_code == 0
    with open("r.json", encoding="utf-8") as file:
        report = json.load(file)
    assert {"objective", "violation", "duality_gap", "kernel_error", "n_sv", "n_bsv", "converged",
            "kernel_evaluations", "peak_rss_mb", "threads", "seconds", "levels"} <= set(report)  # fmt: skip  # noqa: E501
    seconds = report["seconds"]
    assert {"read", "train", "verify", "write", "total"} <= set(seconds)
    assert seconds["verify"] <= seconds["train"] <= seconds["total"]
    assert seconds["read"] + seconds["train"] + seconds["write"] <= seconds["total"] * 1.001
    (level,) = report["levels"]
    assert {"level", "n_clusters", "largest_cluster", "seconds_clustering", "seconds_training",
            "n_sv", "objective"} <= set(level)  # fmt: skip
    assert report["converged"] is True
    assert report["threads"] == 1
    assert 10 < report["peak_rss_mb"] < 10_000
    assert f"obj = {report['objective']:.6f}," in result.stdout


@pytest.mark.parametrize("threads", [1, 2])
def test_the_report_says_how_the_threads_were_used(run, training, threads):
    options = ["--threads", threads, "-l", 1, "--report", "r.json"]
    assert run(*options, training, "a.model").exit_code == 0
    report = json.loads(Path("r.json").read_text())
    phases = report["threads_by_phase"]
    assert list(phases) == ["prepare", "clusters", "levels", "refine", "gradient", "conquer",
                            "check", "model"]  # fmt: skip
    total = {use: sum(phase[use] for phase in phases.values()) for use in phases["check"]}
    assert min(total.values()) >= 0
    assert (total["work"] == total["waits"] == 0) == (report["threads"] == 1)
    # work and waits of all threads, and the seconds of one, make up the time of training
    elapsed = (total["work"] + total["waits"]) / report["threads"] + total["serial"]
    assert elapsed == pytest.approx(report["seconds"]["train"], rel=0.2, abs=0.05)


@pytest.mark.parametrize("name", [one.name for one in kernels_with()])
def test_every_kernel_is_trained(run, training, name):
    kernel = NAMES.index(name)
    result = run("-t", kernel, "-g", 0.5, "-r", 0.5, "-d", 2, "--threads", 1, training, "a.model")
    assert result.exit_code == 0, result.stderr
    trained = load_model("a.model").kernel
    assert trained.name == name
    assert ("stationary point" in result.stderr) != trained.is_positive_semidefinite


def test_early_writes_a_model_of_local_models(run, training):
    result = run(*FAST, "-l", 1, "--early", training, "a.model")
    assert result.exit_code == 0, result.stderr
    assert load_model("a.model").exact is None
    assert "Total nSV = " in result.stdout
    assert "obj" not in result.stdout


@pytest.mark.parametrize(
    ("options", "bias", "last"),
    [((), "no bias", "converged: violation "),
     (("--bias",), "with a bias", "converged: violation "),
     (("-s", "nu_svc", "-n", 0.1), "with a bias", "converged: violation "),
     (("--early", "-l", 1), "no bias", "converged: each cluster to the tolerance; "),
     (("--max-iter", 5), "no bias", "warning: not converged: violation "),
     (("--early", "-l", 1, "--max-iter", 5), "no bias", "warning: not converged; ")],
    ids=str,
)  # fmt: skip
def test_the_first_line_tells_the_bias_and_the_last_one_the_convergence(
    run, training, options, bias, last
):
    lines = run(*FAST, *options, training, "a.model").stderr.splitlines()
    assert f", {bias}, " in lines[0]
    assert lines[-1].startswith(last)
    total, *parts = map(int, re.findall(r"(\d+) (?:MB|for)", lines[0]))
    assert total == sum(parts) and len(parts) == 3


@pytest.mark.parametrize(
    ("most", "worth"), [(5, "may be far from the solution"), (1500, "is usable")]
)
def test_a_run_that_did_not_converge_exits_with_three_and_tells_what_the_model_is_worth(
    run, training, most, worth
):
    result = run(*FAST, "-q", "-e", 1e-9, "--max-iter", most, training, "a.model")
    assert result.exit_code == 3
    assert "not converged: violation" in result.stderr
    assert f"the model {worth}" in result.stderr
    assert result.stdout == ""
    load_model("a.model")


def test_kernel_values_beyond_float32_are_a_sentence_and_no_model(run, training):
    result = run(*FAST, "-q", "-g", 1e39, training, "a.model")
    assert result.exit_code == 1
    assert result.stderr.startswith("error: kernel values of rbf(gamma=1e+39) on rows of up to")
    assert "are beyond float32" in result.stderr and result.stderr.count("\n") == 1
    assert not os.path.exists("a.model")


BAD_FILES = {
    "empty": (b"", ": no rows"),
    "one class": (b"1 1:1\n1 1:2\n", "training needs two classes, found one: 1"),
    "missing colon": (b"1 1:1\n-1 2\n", ":2:"),
    "descending": (b"1 1:1\n-1 2:2 1:1\n", ":2:8: "),
}


@pytest.mark.parametrize("kind", BAD_FILES)
def test_a_bad_file_is_one_sentence_with_its_place(run, tmp_path, kind):
    text, message = BAD_FILES[kind]
    path = tmp_path / "bad.txt"
    path.write_bytes(text)
    result = run(path, "a.model")
    assert result.exit_code == 1
    assert result.stdout == ""
    assert result.stderr.startswith("error: ")
    assert message in result.stderr
    assert "class" in kind or f"error: {path}{message}"[:40] == result.stderr[:40]
    assert len(result.stderr.splitlines()) == 1
    assert os.listdir() == []


def test_the_command_says_the_same_as_a_process(training, tmp_path):
    done = program("train", training, "a", "-q", "--max-iter", "5", cwd=tmp_path)
    assert done.returncode == 3
    assert program("train", "nothing", cwd=tmp_path).returncode == 1
    assert program("train", cwd=tmp_path).returncode == 2


def test_warnings_about_the_data_come_first_and_not_when_quiet(run, wavy, write_libsvm):
    X, y = wavy
    path = write_libsvm(X * np.array([1, 1e5, 1, 1], np.float32), y, "raw")
    result = run(*FAST, path, "a.model")
    assert result.exit_code == 0
    assert result.stderr.startswith("warning: feature 2 spans ")
    assert "feature 2" not in run(*FAST, "-q", path, "a.model").stderr


@pytest.fixture
def trained_like(monkeypatch):
    """Replace values of the report after training."""

    def change(**values):
        fit = train_module.fit

        def trained(*arguments, **how):
            model = fit(*arguments, **how)
            for name, value in values.items():
                setattr(model.report, name, value)
            return model

        monkeypatch.setattr(train_module, "fit", trained)

    return change


@pytest.mark.parametrize(
    ("missing", "sentence"),
    [(["probabilities"], "the model is converged; missing: probabilities"),
     (["early-level estimate", "probabilities"],
      "the model is converged; missing: early-level estimate, probabilities")],
    ids=str,
)  # fmt: skip
def test_a_stop_after_convergence_says_what_is_missing(
    run, training, trained_like, missing, sentence
):
    trained_like(stopped=True, converged=True, missing=missing)
    result = run(*FAST, "-q", "--time-limit", 60, training, "a.model")
    assert result.exit_code == 3
    assert result.stderr == f"warning: stopped at the time limit of 60 s, {sentence}\n"
    result = run(*FAST, "--time-limit", 60, training, "a.model")
    assert "duality gap" in result.stderr


def test_a_signal_after_convergence_is_in_the_exit_status(run, training, trained_like, monkeypatch):
    trained_like(stopped=True, converged=True, missing=["probabilities"])
    interrupted = nullcontext(SimpleNamespace(received=15))
    monkeypatch.setattr(train_file, "Interrupts", lambda stop: interrupted)
    result = run(*FAST, "-q", training, "a.model")
    assert result.exit_code == 143
    assert result.stderr == (
        "warning: interrupted, the model is converged; missing: probabilities\n"
    )


@pytest.mark.parametrize("n_classes", [2, 5, 6])
def test_many_pairs_of_classes_are_told_in_one_line(run, write_libsvm, n_classes):
    rng = np.random.default_rng(0)
    path = write_libsvm(rng.random((20 * n_classes, 3)), np.arange(20 * n_classes) % n_classes)
    done = run("--report", "report", path, "m")
    assert done.exit_code == 0, done.stderr
    problems, lines = json.loads(Path("report").read_text())["problems"], done.stdout.splitlines()
    n_pairs = n_classes * (n_classes - 1) // 2
    assert len(problems) == n_pairs
    assert lines[-1] == f"Total nSV = {load_model('m').exact.rows.n_samples}"
    assert f" {load_model('m').exact.rows.n_samples} support vectors" in done.stderr
    if n_classes < 6:
        assert len(lines) == 3 * n_pairs + 1
        return
    total = sum(problem["objective"] for problem in problems)
    n_sv, n_bsv = ([problem[key] for problem in problems] for key in ("n_sv", "n_bsv"))
    assert lines[:-1] == [
        f"15 pairs of classes (each in --report): total obj = {total:.6f}, "
        f"nSV = {min(n_sv)} to {max(n_sv)}, nBSV = {min(n_bsv)} to {max(n_bsv)}"
    ]
