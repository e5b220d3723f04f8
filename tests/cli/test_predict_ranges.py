"""Test --scale auto: prediction finds and checks the range file that training wrote."""

import os
from functools import partial
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from reference import libsvm, program, uneven_rows

from dcsvm.cli import predict
from dcsvm.data.dataset import Dataset
from dcsvm.data.scaling import range_text
from dcsvm.model.reader import load_model

FAST = ["-q", "-c", "4", "-g", "1", "--threads", "1", "-m", "50"]
EARLY = [*FAST, "--early", "-l", "1"]


@pytest.fixture
def predicted(invoke):
    """Run dcsvm-predict with decision values into the file out."""
    return partial(invoke, predict.main, "--decision-values", "--threads", "1")


@pytest.fixture
def files(write_libsvm):
    """Return the paths of a training and a test file."""
    train, test = uneven_rows(1000, 3), uneven_rows(300, 4)
    return SimpleNamespace(train=write_libsvm(*train, "train"), test=write_libsvm(*test, "test"))


def write_ranges(data, path):
    Path(path).write_bytes(range_text(Dataset.read(data, scale="auto").scaling))


def without_scaling(path):
    """Return the lines of a model without its scaling."""
    lines = Path(path).read_bytes().splitlines()
    rest = [line for line in lines if not line.startswith(b"scaling")]
    assert len(rest) == len(lines) - 5
    return rest


REGRESSION = ["-s", "3", "-p", "0.1"]


@pytest.mark.parametrize(
    "options", [FAST, EARLY, [*FAST, *REGRESSION], [*FAST, "-b", "1"], [*FAST, "-s", "2"]], ids=str
)
def test_the_model_is_that_of_the_range_file_it_writes(run, files, options):
    done = run(*options, "--scale", "auto", files.train, "a.model")
    assert (done.exit_code, done.output) == (0, "")
    assert sorted(os.listdir()) == ["a.model", "a.model.range"]
    assert run(*options, "--scale", "a.model.range", files.train, "b.model").exit_code == 0
    assert without_scaling("a.model") == Path("b.model").read_bytes().splitlines()


def test_the_range_file_is_that_of_svm_scale(run, files):
    assert run(*FAST, "--scale", "auto", files.train, "a.model").exit_code == 0
    theirs = libsvm("svm-scale", "-s", "their.range", files.train)
    assert Path("a.model.range").read_bytes() == Path("their.range").read_bytes()
    assert libsvm("svm-scale", "-r", "a.model.range", files.train) == theirs


def test_svm_predict_agrees_on_rows_that_svm_scale_scaled(run, predicted, files):
    assert run(*FAST, "--scale", "auto", files.train, "a.model").exit_code == 0
    assert predicted(files.test, "a.model", "out").exit_code == 0
    Path("scaled").write_text(libsvm("svm-scale", "-r", "a.model.range", files.test))
    libsvm("svm-predict", "scaled", "a.model", "theirs")
    values = np.array([line.split() for line in Path("out").read_text().splitlines()], float)
    clear = np.abs(values[:, 1]) > 1e-3
    assert clear.sum() > 280
    assert np.array_equal(values[clear, 0], np.loadtxt("theirs")[clear])


def test_the_training_set_may_be_standard_input(run, files):
    assert run(*FAST, "--scale", "auto", files.train, "a.model").exit_code == 0
    text = files.train.read_text()
    program("train", *FAST, "--scale", "auto", "-", "b.model", input=text, check=True)
    for end in ("", ".range"):
        assert Path(f"a.model{end}").read_bytes() == Path(f"b.model{end}").read_bytes()


@pytest.mark.parametrize("options", [FAST, EARLY], ids=["exact", "early"])
@pytest.mark.parametrize("scale", ["auto", "quantile"])
def test_the_model_has_its_scaling(run, predicted, files, options, scale):
    assert run(*options, "--scale", scale, files.train, "a.model").exit_code == 0
    assert os.path.exists("a.model.range") == (scale == "auto")
    done = predicted(files.test, "a.model", "out")
    assert (done.exit_code, done.stderr) == (0, "")
    assert float(done.stdout.split()[2].rstrip("%")) > 75
    found = Path("out").read_bytes()
    if scale == "auto":
        os.replace("a.model.range", "moved")
        assert predicted(files.test, "a.model", "out").exit_code == 0
        assert Path("out").read_bytes() == found
        assert predicted("--scale", "moved", files.test, "a.model", "out").exit_code == 0
    assert Path("out").read_bytes() == found


def test_a_range_file_beside_a_model_trained_without_it_changes_nothing(run, predicted, files):
    assert run(*FAST, files.train, "a.model").exit_code == 0
    assert predicted(files.test, "a.model", "out").exit_code == 0
    before = Path("out").read_bytes()
    write_ranges(files.train, "a.model.range")
    done = predicted(files.test, "a.model", "out")
    assert (done.exit_code, done.stderr) == (0, "")
    assert Path("out").read_bytes() == before


def test_cross_validation_scales_by_the_whole_file_and_writes_nothing(run, files, tmp_path):
    write_ranges(files.train, tmp_path / "ranges")
    done = run(*FAST, "-v", "3", "--scale", "auto", files.train)
    assert done.exit_code == 0, done.stderr
    assert os.listdir() == []
    assert done.stdout == run(*FAST, "-v", "3", "--scale", tmp_path / "ranges", files.train).stdout
    assert done.stdout != run(*FAST, "-v", "3", files.train).stdout


def test_test_rows_are_scaled_by_the_ranges_of_the_training_set(run, files, tmp_path):
    early = [*FAST, "--early", "-l", "2", "-k", "2", "--test", files.test]
    write_ranges(files.train, tmp_path / "ranges")
    assert run(*early, "--scale", "auto", "--report", "a", files.train, "a.model").exit_code == 0
    done = run(*early, "--scale", tmp_path / "ranges", "--report", "b", files.train, "b.model")
    assert done.exit_code == 0
    assert without_scaling("a.model") == Path("b.model").read_bytes().splitlines()
    choices = [[line for line in Path(name).read_text().splitlines() if '"loss"' in line]
               for name in ("a", "b")]  # fmt: skip
    assert choices[0] == choices[1] != []


def test_a_model_to_begin_with_goes_with_it(run, predicted, files):
    scaled = [*FAST, "--scale", "auto"]
    assert run(*scaled, files.train, "a.model").exit_code == 0
    done = run(*scaled, "-c", "8", "--init-model", "a.model", files.train, "b.model")
    assert done.exit_code == 0, done.stderr
    scalings = [load_model(name).scaling for name in ("a.model", "b.model")]
    assert np.array_equal(*(one.features.minimum for one in scalings))
    assert predicted(files.test, "b.model", "out").exit_code == 0


def test_training_again_without_it_leaves_no_trace_in_the_model(run, predicted, files):
    assert run(*FAST, files.train, "plain.model").exit_code == 0
    assert run(*FAST, "--scale", "auto", files.train, "a.model").exit_code == 0
    assert run(*FAST, files.train, "a.model").exit_code == 0
    assert Path("a.model").read_bytes() == Path("plain.model").read_bytes()


def test_a_model_of_libsvms_format_is_warned_of(run, predicted, files):
    plain = ["--scale", "auto", "--model-format", "libsvm"]
    assert run(*FAST, "--scale", "auto", files.train, "b.model").exit_code == 0
    assert predicted(files.test, "b.model", "wanted").exit_code == 0
    assert run(*FAST, *plain, files.train, "a.model").exit_code == 0
    done = predicted(files.test, "a.model", "out")
    assert done.exit_code == 0
    assert done.stderr.splitlines()[0] == (
        "warning: a.model.range is not used: a model in LIBSVM's format does not record scaling; "
        "if the training rows were scaled by it, give --scale a.model.range"
    )
    done = predicted("--scale", "a.model.range", files.test, "a.model", "out")
    assert (done.exit_code, done.stderr) == (0, "")
    assert Path("out").read_bytes() == Path("wanted").read_bytes()


def test_a_file_of_the_name_has_a_folder_before_it(run, predicted, files):
    write_ranges(files.train, "auto")
    assert run(*FAST, "--scale", "./auto", files.train, "a.model").exit_code == 0
    assert not os.path.exists("a.model.range")
    assert predicted("--scale", "./auto", files.test, "a.model", "out").exit_code == 0
    done = predicted("--scale", "auto", files.test, "a.model", "out")
    assert (done.exit_code, len(done.stderr.splitlines())) == (2, 1)
    assert "--scale auto is for training" in done.stderr
    assert run(*FAST, "--scale", "auto", files.train, "auto").exit_code == 0


def test_the_model_has_to_be_a_file_beside_which_another_may_stand(run, files):
    for name in ("-", "/dev/stdout", os.devnull):
        done = run(*FAST, "--scale", "auto", files.train, name)
        assert (done.exit_code, len(done.stderr.splitlines())) == (2, 1)
        assert "MODEL_FILE must be a regular file" in done.stderr
    assert os.listdir() == []


def test_the_range_file_replaces_no_other_file_of_the_command(run, files):
    os.replace(files.train, "a.model.range")
    before = Path("a.model.range").read_bytes()
    assert run(*FAST, "--scale", "auto", "a.model.range", "a.model").exit_code == 1
    assert Path("a.model.range").read_bytes() == before
    done = run(*FAST, "--scale", "auto", "--report", "b.model.range", "a.model.range", "b.model")
    assert done.exit_code == 1
    assert "b.model.range: the output would replace another file" in done.stderr


def test_a_test_value_too_large_when_scaled_is_named(run, files, tmp_path):
    far = tmp_path / "far"
    far.write_text(files.test.read_text().splitlines()[0] + "\n1 2:1e38\n")
    done = run(*EARLY, "--early-level", "auto", "--scale", "auto", "--test", far, files.train, "a")
    assert done.exit_code == 1
    assert done.stderr == (
        f"error: {far}:2: feature 2 is too large for float32 when scaled by the ranges of "
        f"{files.train}\n"
    )
