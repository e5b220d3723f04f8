"""Test the commands on columns that float32 rounds away: dates, seconds since 1970, metres."""

import json
from pathlib import Path

import numpy as np
import pytest

from dcsvm.cli import compress, easy, grid, predict, train

LIMIT = 97.0  # per cent; a model of rows rounded to float32 has at most 94


@pytest.fixture
def files(invoke):
    """Write coordinates in metres as LIBSVM text and as CSV, to train and to test."""
    for seed, name in enumerate(("train", "test")):
        X = [500000, 4649776] + np.random.default_rng(seed).uniform(0, 2, (400, 2))
        y = np.where(np.hypot(*(X - [500001, 4649777]).T) < 0.8, 1, -1)
        pairs = list(zip(X.tolist(), y.tolist(), strict=True))
        with open(f"{name}.txt", "w") as text:
            text.writelines(f"{label} 1:{a!r} 2:{b!r}\n" for (a, b), label in pairs)
        with open(f"{name}.csv", "w") as table:
            table.write("east,north,label\n")
            table.writelines(f"{a!r},{b!r},{label}\n" for (a, b), label in pairs)
    return invoke


def accuracy(said):
    return float(said.split("Accuracy = ")[1].split("%")[0])


@pytest.mark.parametrize("kind", ["txt", "csv"])
@pytest.mark.parametrize(
    "options",
    [
        (), ("-b", "1"), ("-t", "5", "-g", "2/median"), ("-t", "6", "-g", "2/median"),
        ("-g", "auto"), ("--weights", "learn", "-t", "5", "-g", "2/median"),
        ("--early", "--levels", "1"), ("--test", "test.{kind}", "--early"), ("-q",),
    ],
    ids=lambda words: " ".join(words) or "none",
)  # fmt: skip
def test_models_predict_as_if_the_columns_were_centred(files, kind, options):
    options = [word.format(kind=kind) for word in options]
    done = files(train.main, "-c", "100", "-g", "2", *options, f"train.{kind}", "m")
    assert done.exit_code == 0 and "warning" not in done.stderr
    for more in ([], ["-b", "1"]) if "-b" in options else ([],):
        said = files(predict.main, *more, f"test.{kind}", "m", "out")
        assert accuracy(said.stdout) > LIMIT and "warning" not in said.stderr


@pytest.mark.parametrize("kind", ["txt", "csv"])
def test_folds_searches_and_compression_do_so_too(files, kind):
    done = files(train.main, "-c", "100", "-g", "2", "-v", "5", f"train.{kind}")
    assert float(done.stdout.split("= ")[1].split("%")[0]) > LIMIT - 2
    done = files(grid.main, "-log2c", "3,7,2", "-log2g", "0,2,1", "--report", "r",
                 f"train.{kind}", "m")  # fmt: skip
    assert done.exit_code == 0, done.stderr
    assert json.loads(Path("r").read_text())["best"]["loss"] < 0.04
    assert accuracy(files(predict.main, f"test.{kind}", "m", "out").stdout) > LIMIT
    done = files(compress.main, "--vectors", "20", "--rows", f"train.{kind}", "m", "small")
    assert done.exit_code == 0, done.stderr
    assert accuracy(files(predict.main, f"test.{kind}", "small", "out").stdout) > LIMIT - 2
    done = files(easy.main, "--time-limit", "3", f"train.{kind}", "m")
    assert accuracy(files(predict.main, f"test.{kind}", "m", "out").stdout) > LIMIT - 2


def test_a_model_in_libsvms_format_is_read_by_dcsvm_predict(files):
    files(train.main, "-c", "100", "-g", "2", "--model-format", "libsvm", "train.txt", "m")
    assert accuracy(files(predict.main, "test.txt", "m", "out").stdout) > LIMIT
    # predictions do not depend on how the file is read in pieces
    values = Path("out").read_text()
    assert files(predict.main, "--threads", "1", "test.txt", "m", "out").exit_code == 0
    assert Path("out").read_text() == values


def test_a_warm_start_and_a_checkpoint_keep_the_shift(files):
    lines = Path("train.txt").read_text().splitlines(keepends=True)
    lines.sort(key=lambda line: -float(line.split()[1][2:]))
    Path("part.txt").write_text("".join(lines[:300]))
    Path("train.txt").write_text("".join(lines))
    options = ("-c", "100", "-g", "2")
    assert files(train.main, *options, "part.txt", "part").exit_code == 0
    done = files(train.main, *options, "--init-model", "part", "--checkpoint", "folder",
                 "train.txt", "m")  # fmt: skip
    assert done.exit_code == 0, done.stderr
    assert accuracy(files(predict.main, "test.txt", "m", "out").stdout) > LIMIT


@pytest.mark.parametrize(("kind", "name"), [("txt", "feature 1"), ("csv", "column east")])
def test_other_kernels_warn_of_the_column(files, kind, name):
    for number in "013":
        done = files(train.main, "-t", number, "-c", "1e-9", "-g", "1e-14", f"train.{kind}", "m")
        assert f"warning: {name} (1 more alike) is rounded to float32 by up to 0.016" in done.stderr
        assert done.stderr.count("more alike") == 1
        assert "subtract its smallest value, 500000.0" in done.stderr
    done = files(train.main, "-t", "0", "--scale", "auto", f"train.{kind}", "m")
    assert "more alike" not in done.stderr
