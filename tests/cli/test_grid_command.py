"""Test dcsvm-grid: svm-grid's options and lines, files that survive a stop, their readers."""

import json
import os
import re
import shutil
import subprocess
import sys
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

import dcsvm
from dcsvm.cli import grid, train
from dcsvm.cli.grid_file import GridLines
from dcsvm.data.dataset import Dataset
from dcsvm.model.metrics import DEFINITIONS
from dcsvm.problem.option_table import CLASS_METRICS, METRICS
from dcsvm.problem.options import TrainOptions
from dcsvm.training.grid import GridSearch
from dcsvm.training.held_out import Grid
from dcsvm.training.race import Race

FAST = ["--threads", "1", "-m", "50", "-v", "3"]
SMALL = ["-log2c", "-1,5,3", "-log2g", "1,-5,-3"]


@pytest.fixture
def search(invoke):
    """Run dcsvm-grid."""
    return partial(invoke, grid.main, *FAST)


@pytest.fixture
def training(wavy, write_libsvm):
    X, y = wavy
    return write_libsvm(X[:300], y[:300], "train.txt")


def test_lines_are_svm_grids(search, training):
    result = search(*SMALL, training)
    assert result.exit_code == 0, result.stderr
    *lines, last = result.stdout.splitlines()
    number = r"-?[\d.]+(?:e-\d+)?"
    for line in lines:
        assert re.fullmatch(
            rf"\[local\] {number} {number} {number} "
            rf"\(best c={number}, g={number}, rate={number}\)",
            line,
        )
    C, gamma, rate = map(float, last.split())
    assert len(lines) == 9 and C in (0.5, 4.0, 32.0) and gamma in (2.0, 0.25, 0.03125)
    assert lines[-1].endswith(f"(best c={C}, g={gamma}, rate={rate:g})")
    kept = Path("train.txt.out").read_text().splitlines()
    assert len(kept) == 9
    assert all(re.match(rf"log2c={number} log2g={number} rate={number}", line) for line in kept)


@pytest.mark.parametrize(
    "options, told",
    [
        (["-w7", "2"], "no row has the label 7, which has a class weight"),
        (
            ["-s", "1", "-log2c", "null", "-w1", "2"],
            "class weights are for C-SVC: they have no effect on nu_svc",
        ),
    ],
)
def test_weights_of_classes_without_effect_are_told(search, invoke, training, options, told):
    searched = search("-log2c", "1,1,1", "-log2g", "1,1,1", *options, training)
    assert searched.stderr.count(f"warning: {told}\n") == 1
    options = [one for one in options if one not in ("-log2c", "null")]
    trained = invoke(train.main, "-q", *options, training)
    assert trained.exit_code == 0 and trained.stderr.count(f"warning: {told}\n") == 1


def test_the_winner_is_trained_on_all_rows(search, training, wavy):
    X, y = wavy
    result = search("-q", *SMALL, training, "best.model")
    C, gamma, _ = map(float, result.stdout.split())
    model, again = dcsvm.load_model("best.model"), dcsvm.train(X[:300], y[:300], C=C, gamma=gamma)
    assert model.exact.rows.n_samples == again.exact.rows.n_samples
    assert np.array_equal(model.predict(X), again.predict(X))
    assert result.stderr == "" or "note: " in result.stderr


def test_quiet_leaves_the_last_line(search, training):
    assert len(search("-q", *SMALL, training).stdout.splitlines()) == 1


def test_what_is_not_sought_is_given(search, training):
    result = search("-log2c", "null", "-c", 8, "-log2g", "-3,1,2", training)
    assert result.exit_code == 0, result.stderr
    assert result.stdout.splitlines()[0].startswith("[local] -1.0 ")
    assert len(result.stdout.splitlines()[-1].split()) == 2
    assert "log2c" not in Path("train.txt.out").read_text()
    linear = search("-t", 0, "-log2c", "-3,1,2", training)
    assert len(linear.stdout.splitlines()[-1].split()) == 2


def test_a_regression_is_scored_by_squared_error(search, write_libsvm):
    X = np.random.default_rng(0).random((120, 2))
    path = write_libsvm(X, np.sin(4 * X[:, 0]), "sine.txt")
    result = search("-s", 3, "-log2c", "0,4,4", "-log2g", "-1,1,2", "-log2p", "-8,-2,6", path)
    assert result.exit_code == 0, result.stderr
    assert re.match(r"\[local\] \S+ \S+ \S+ \S+ \(best c=\S+, g=\S+, p=\S+, mse=", result.stdout)
    errors = [float(line.split()[4]) for line in result.stdout.splitlines()[:-1]]
    assert len(errors) == 8 and float(result.stdout.split()[-1]) == min(errors)


def test_test_rows_score_instead_of_folds(search, training, wavy, write_libsvm):
    X, y = wavy
    test = write_libsvm(X[300:500], y[300:500], "test.txt")
    C, gamma, rate = map(float, search("-q", *SMALL, "--test", test, training).stdout.split())
    model = dcsvm.train(X[:300], y[:300], C=C, gamma=gamma)
    assert abs(100 * np.mean(model.predict(X[300:500]) == y[300:500]) - rate) <= 0.51


def test_resuming_takes_what_is_there(search, training, monkeypatch):
    first = search(*SMALL, training).stdout.splitlines()
    kept = Path("train.txt.out").read_text().splitlines()
    Path("train.txt.out").write_text("\n".join(kept[:5]) + "\n")
    result = search(*SMALL, "-resume", training)
    lines = result.stdout.splitlines()
    assert [line.split("]")[0] for line in lines[:-1]] == ["[resumed"] * 5 + ["[local"] * 4
    assert lines[-1] == first[-1]
    assert sorted(Path("train.txt.out").read_text().splitlines()) == sorted(kept)
    monkeypatch.setattr(Race, "_scorer", None)  # all settings are done
    assert search(*SMALL, "-resume", "train.txt.out", "-q", training).stdout == first[-1] + "\n"


@pytest.mark.parametrize("metric", METRICS)
def test_each_metric_is_printed_and_resumed(metric, search, wavy, write_libsvm, monkeypatch):
    X, y = wavy
    is_class = metric in CLASS_METRICS
    path = write_libsvm(X[:150], y[:150] if is_class else np.sin(4 * X[:150, 0]), "data")
    given = [*SMALL, *([] if is_class else ["-s", 3]), "--metric", metric, "--report", "r", path]
    first = search(*given)
    assert first.exit_code == 0, first.stderr
    report = json.loads(Path("r").read_text())
    shown, loss = float(first.stdout.split()[-1]), report["best"]["loss"]
    percent, value = DEFINITIONS[metric].is_percent, loss
    if DEFINITIONS[metric].is_gain:
        value = 100 * (1 - loss) if percent else 1 - loss
    assert shown == pytest.approx(value, rel=1e-5)
    assert f"{'rate' if percent else metric}={shown:g})" in first.stdout
    kept = Path("data.out").read_text()
    monkeypatch.setattr(Race, "_run", lambda *_: iter(()))  # all settings are done
    again = search(*given[:-1], "-resume", "data.out", path)
    assert again.stdout.splitlines()[-1] == first.stdout.splitlines()[-1]
    assert Path("data.out").read_text() == kept
    losses = {(one["C"], one["gamma"]): one["loss"] for one in report["settings"]}
    for one in json.loads(Path("r").read_text())["settings"]:
        assert one["loss"] == pytest.approx(losses[one["C"], one["gamma"]], rel=1e-9)


def test_resuming_from_another_file_copies_it(search, training):
    search(*SMALL, "-out", "a.out", training)
    search(*SMALL, "-resume", "a.out", "-out", "b.out", training)
    assert Path("a.out").read_text() == Path("b.out").read_text()


def test_resuming_takes_no_training_set_for_its_file(search, training):
    first = search(*SMALL, training).stdout.splitlines()[-1]
    result = search(*SMALL, "-q", "-resume", training, "a.model")
    assert (result.exit_code, result.stdout) == (0, first + "\n")
    assert dcsvm.load_model("a.model").exact
    result = search(*SMALL, "-q", "-resume", "train.txt.out", training, "b.model")
    assert (result.exit_code, result.stdout) == (0, first + "\n")
    assert Path("a.model").read_bytes() == Path("b.model").read_bytes()
    result = search(*SMALL, "-resume", "missing.out", training)
    assert (result.exit_code, result.stderr) == (1, "error: missing.out: no such file\n")


def test_lines_are_read_as_they_were_written():
    grid = Grid((0.5, 2.0**0.3), (2.0**-7,))
    data = Dataset(np.eye(10_000, 2), np.arange(10_000) % 2)
    lines = GridLines(GridSearch(data, TrainOptions(), grid), None)
    Path("kept.out").write_text(
        "log2c=0.3 log2g=-7.0 rate=96.15\nlog2c=-1 log2g=-7 rate=90 rows=40\n\n"
        "log2c=5 log2g=1e0 rate=12.5 not_converged\n"
    )
    try:
        first, second, third = lines.read("kept.out")
    finally:
        os.remove("kept.out")
    assert first.setting == grid.settings[1] and first.is_complete
    assert first.loss == pytest.approx(0.0385)
    assert second.setting == grid.settings[0] and not second.is_complete and second.n_rows == 40
    assert third.setting.C == 32 and not third.converged


def test_gamma_in_units_of_the_median(search, training, wavy):
    X, y = wavy
    number = dcsvm.train(X[:300], y[:300], gamma="1/median").kernel.gamma
    result = search(*SMALL, "--gamma-unit", "median", training, "a.model")
    assert result.exit_code == 0, result.stderr
    exponents = {line.split()[2] for line in result.stdout.splitlines()[:-1]}
    assert exponents == {"1.0", "-2.0", "-5.0"}
    gamma = float(result.stdout.splitlines()[-1].split()[1])
    assert gamma in [number * 2.0**exponent for exponent in (1, -2, -5)]
    assert dcsvm.load_model("a.model").kernel.gamma == gamma
    assert f"g={gamma!r}," in result.stdout.splitlines()[-2]
    kept = Path("train.txt.out").read_text()
    assert "log2g=-2.0 " in kept
    again = search(*SMALL, "--gamma-unit", "median", "-resume", training)
    assert "[local]" not in again.stdout
    assert again.stdout.splitlines()[-1] == result.stdout.splitlines()[-1]
    assert Path("train.txt.out").read_text() == kept


def test_scores_in_units_of_the_median_are_those_of_the_numbers(search, training, wavy):
    X, y = wavy
    search("-log2c", "0,0,1", "--gamma-unit", "median", "-log2g", "1,1,1", "--report", "a.json",
           training)  # fmt: skip
    search("-log2c", "0,0,1", "-log2g", "null", "-g", "2/median", "--report", "b.json", training)
    first, second = (json.loads(Path(name).read_text())["best"] for name in ("a.json", "b.json"))
    assert first["gamma"] == dcsvm.train(X[:300], y[:300], gamma="2/median").kernel.gamma
    assert first["loss"] == second["loss"] and second["gamma"] is None


def test_a_median_is_that_of_the_training_rows(search, training, wavy, write_libsvm):
    X, y = wavy
    test = write_libsvm(9 * X[300:500], y[300:500], "test.txt")
    given = ["-q", "-log2c", "null", "-log2g", "1,1,1", "--gamma-unit", "median", "--test", test]
    gamma = float(search(*given, training).stdout.split()[0])
    assert gamma == dcsvm.train(X[:300], y[:300], gamma="2/median").kernel.gamma


def test_a_unit_needs_a_kernel_of_a_distance(search, training):
    result = search("--gamma-unit", "median", "-t", 1, training)
    sentence = "--gamma-unit must be 1 for kernel polynomial, got median"
    assert (result.exit_code, result.stderr) == (2, f"error: {sentence}; see dcsvm-grid --help\n")
    assert search("--gamma-unit", "mean", training).exit_code == 2


def test_resuming_a_refined_search_goes_on(search, training):
    first = search(*SMALL, "--refine", training).stdout
    again = search(*SMALL, "--refine", "-resume", training)
    assert again.exit_code == 0, again.stderr
    assert again.stdout.splitlines()[-1] == first.splitlines()[-1]
    assert "[local]" not in again.stdout


def test_a_line_that_was_being_written_is_scored_again(search, training):
    first = search(*SMALL, training).stdout.splitlines()[-1]
    kept = Path("train.txt.out").read_text()
    Path("train.txt.out").write_text(kept[: kept.rindex("rate=") + 6])
    result = search(*SMALL, "-resume", training)
    assert result.stdout.count("[local]") == 1 and result.stdout.splitlines()[-1] == first
    assert sorted(Path("train.txt.out").read_text()) == sorted(kept)


@pytest.mark.parametrize(
    "line", ["is of no use", *(f"=-1.0 log2g=1.0 rate={it}" for it in ["250", "nan", "..", "-1"]),
             "=-1.0 log2g=1.0 rate=90 rows=999"],
)  # fmt: skip
def test_lines_that_cannot_be_are_refused(search, training, line):
    Path("foreign.out").write_text(f"log2c{line}\n")
    result = search(*SMALL, "-resume", "foreign.out", training)
    assert result.exit_code == 1
    sentence = "foreign.out:1: expected a line such as log2c=1 log2g=1 rate=90, found"
    assert sentence in result.stderr


def test_test_rows_do_not_make_up_for_a_class(search, training, write_libsvm):
    one = write_libsvm(np.eye(4), [1, 1, 1, 1], "one.txt")
    result = search(*SMALL, "--test", training, one)
    assert result.exit_code == 1 and "training needs two classes, found one: 1" in result.stderr


def test_a_report_has_every_setting(search, training):
    search("-q", *SMALL, "--report", "report.json", training, "m.model")
    text = Path("report.json").read_text()
    assert "NaN" not in text
    report = json.loads(text)
    assert len(report["settings"]) == 9
    assert set(report["seconds"]) == {"read", "search", "train", "total"}
    assert report["best"] in report["settings"] and report["training"]["converged"]
    assert len(report["best"]["losses"]) == 3


def test_refining_goes_on_around_the_best(search, training):
    result = search(*SMALL, "--refine", training)
    assert len(result.stdout.splitlines()) == 9 + 24 + 1


def test_early_models_are_scored_and_trained(search, wavy, write_libsvm):
    path = write_libsvm(*wavy, "all.txt")
    result = search(*SMALL, "-q", "--early", "-k", 2, path, "early.model")
    assert result.exit_code == 0, result.stderr
    model = dcsvm.load_model("early.model")
    assert model.early is not None and model.exact is None


def test_scaling_by_the_ranges_of_the_file(search, wavy, write_libsvm):
    X, y = wavy
    path = write_libsvm(X[:300] * 1000, y[:300], "large.txt")
    result = search("-q", *SMALL, "--scale", "auto", path, "scaled.model")
    assert result.exit_code == 0, result.stderr
    assert Path("scaled.model.range").exists()


def test_a_setting_that_does_not_converge_is_told_and_not_chosen(search, training, monkeypatch):
    run = Race.run

    def failing(self, *what, **how):
        from dataclasses import replace

        for score in run(self, *what, **how):
            yield replace(score, converged=score.setting.C < 32)

    monkeypatch.setattr(Race, "run", failing)
    result = search(*SMALL, training)
    assert "did not converge: not chosen" in result.stderr
    assert float(result.stdout.splitlines()[-1].split()[0]) < 32
    assert "not_converged" in Path("train.txt.out").read_text()


def test_the_edge_of_the_grid_is_told(search, training):
    result = search("-log2c", "-20,-16,2", "-log2g", "-20,-16,2", training)
    assert re.search(
        "note: the best setting has the smallest C and the smallest gamma", result.stderr
    )


def test_a_time_limit_leaves_what_is_scored(search, training):
    result = search("--time-limit", 1e-6, *SMALL, training)
    assert result.exit_code == 1 and "stopped before any setting was scored" in result.stderr
    assert Path("train.txt.out").read_text() == ""


def test_a_stop_tells_the_best_so_far(search, training, monkeypatch):
    printed = GridLines.printed

    def stopping(self, *what):
        self.search.stop.request()
        return printed(self, *what)

    monkeypatch.setattr(GridLines, "printed", stopping)
    result = search(*SMALL, training, "no.model")
    assert result.exit_code == 3 and len(result.stdout.splitlines()) == 4
    assert "stopped" in result.stderr and not Path("no.model").exists()


@pytest.mark.parametrize(
    "arguments, sentence",
    [
        (["-log2c", "1,2"], "-log2c: '1,2' is neither begin,end,step nor null"),
        (["-log2c", "5,1,1"], "-log2c: '5,1,1' needs a negative step to lead from 5 to 1"),
        (["-log2c", "0,1,0"], "-log2c: '0,1,0' has the step 0"),
        (["-log2g", "0,9999,1"], "-log2g: '0,9999,1' has an exponent beyond 1000"),
        (["-log2c", "0,1,1e-6"], "-log2c: '0,1,1e-6' has more than 1000 values"),
        (["-log2c", "null", "-log2g", "null"], "no parameter to choose"),
        (["-log2p", "0,1,1"], "-log2p needs eps-SVR (-s 3)"),
        (["-s", 2], "one-class (-s 2) has no C and no score to choose it by"),
        (["-s", 1], "nu-SVC (-s 1) has no C: give -log2c null to choose gamma only"),
        (["-v", 1], "-v must be at least 2, got 1"),
        (
            ["-t", 4, "--scale", "auto"],
            "a precomputed kernel cannot be scaled",
        ),
        (["-out", "null", "-resume"], "-resume needs a file if -out is null"),
        (["-log2c", "400,500,50"], "C must be at most 1e+100"),
    ],
)
def test_wrong_usage_is_one_sentence(search, training, arguments, sentence):
    result = search(*arguments, training)
    assert result.exit_code == 2
    assert result.stderr.startswith(f"error: {sentence}")
    assert len(result.stderr.splitlines()) == 1 and os.listdir() == []


def test_no_output_replaces_an_input(search, training):
    for option in ("-out", "--report"):
        result = search(option, training, training)
        assert result.exit_code == 1 and "would replace another file" in result.stderr
    assert training.read_text()


def test_other_options_of_svm_grid_are_accepted(search, training):
    result = search("-q", "-svmtrain", "x", "-gnuplot", "null", "-h", 0, *SMALL, training)
    assert result.exit_code == 0, result.stderr


EASY = shutil.which("svm-easy")


@pytest.mark.skipif(not EASY, reason="needs svm-easy of libsvm-tools")
def test_svm_easy_runs_on_it_unchanged(tmp_path, wavy, wavy_test, write_libsvm):
    X, y = wavy
    training = write_libsvm(X[:200], y[:200], "easy.txt")
    test = write_libsvm(*wavy_test, "easy.t")
    tools = tmp_path / "tools"
    tools.mkdir()
    for name in ("train", "predict"):
        script(tmp_path / f"svm-{name}", f"from dcsvm.cli.start import {name} as main")
    script(tools / "grid.py", "from dcsvm.cli.start import grid as main")
    (tmp_path / "svm-scale").symlink_to(shutil.which("svm-scale"))
    # asks for gnuplot, which dcsvm-grid does not use
    run = (
        "import os, sys; there = os.path.exists\n"
        "os.path.exists = lambda path: 'gnuplot' in path or there(path)\n"
        f"sys.argv = ['svm-easy', {str(training)!r}, {str(test)!r}]\n"
        f"exec(compile(open({EASY!r}).read(), {EASY!r}, 'exec'))\n"
    )
    result = subprocess.run([sys.executable, "-c", run], cwd=tools, capture_output=True, text=True)
    assert re.search(r"Best c=\S+, g=\S+ CV rate=[78]\d\.", result.stdout), result
    assert (tools / "easy.txt.model").exists() and (tools / "easy.t.predict").exists()


def script(path, line):
    path.write_text(f"#!{sys.executable}\n{line}\nmain()\n")
    path.chmod(0o755)


def test_a_metric_that_does_not_fit_is_wrong_usage(tmp_path):
    (tmp_path / "data").write_text("1 1:1\n-1 1:2\n" * 10)
    done = CliRunner().invoke(grid.main, ["--metric", "mae", str(tmp_path / "data")])
    assert done.exit_code == 2
    assert "the metric of classes must be one of accuracy, balanced-accuracy, f1" in done.stderr


@pytest.mark.parametrize("has_model", [False, True])
def test_a_damaged_results_file_is_not_taken_for_the_training_set(search, training, has_model):
    Path("damaged").write_text("lug2c=1 log2g=1 rate=90\n")
    models = ["a.model"] if has_model else []
    result = search(*SMALL, "-out", "g", "-resume", "damaged", training, *models)
    assert result.exit_code == 1
    assert "error: damaged:1: expected a line such as log2c=1" in result.stderr


def test_a_model_may_be_overwritten_after_resume_without_a_value(search, training):
    Path("train.txt.out").write_text("log2c=-1 log2g=1 rate=50\n")
    Path("a.model").write_text("svm_type c_svc\n")
    assert search(*SMALL, "-q", "-resume", training, "a.model").exit_code == 0


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="no /dev/full")
def test_a_full_disk_names_the_out_file(search, training):
    result = search(*SMALL, "-out", "/dev/full", training)
    assert result.exit_code == 1 and "error: /dev/full: no space left on device" in result.stderr
