"""Test the commands on tables."""

import numpy as np
import pytest
from click.testing import CliRunner

import dcsvm
from dcsvm.cli import compress, grid, predict, train

pytest.importorskip("pyarrow")

OPTIONS = ("-t", "5", "-g", "2/median", "-c", "4", "--scale", "auto")


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """Write train.csv and test.csv: age, job and a label of text; weights in column w."""
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    lines = []
    for _ in range(300):
        age, job = rng.integers(18, 80), rng.choice(["clerk", "smith, retired"])
        label = "over 50" if (age > 40) == (job == "clerk") else "below"
        lines.append(f'{age},"{job}",{label},{rng.integers(1, 3)}')
    header = "age,job,income,w"
    (tmp_path / "train.csv").write_text("\n".join([header, *lines[:200], ""]))
    (tmp_path / "test.csv").write_text("\n".join([header, *lines[200:], ""]))
    return tmp_path


def call(command, *arguments, status=0):
    done = CliRunner().invoke(command.main, [str(one) for one in arguments])
    assert done.exit_code == status, done.output
    return done


def test_train_and_predict(folder):
    done = call(train, *OPTIONS, "--label", "income", "--drop", "w", "train.csv", "m")
    assert done.stderr.splitlines()[0] == (
        "table of 200 rows: label income (given); 1 number and 1 text column give 3 features"
    )
    done = call(predict, "--metrics", "test.csv", "m", "out")
    accuracy = float(done.stdout.split()[2].rstrip("%"))
    assert accuracy > 90
    assert "balanced accuracy" in done.stdout
    assert "AUC" in done.stdout
    assert set((folder / "out").read_text().splitlines()) == {"over 50", "below"}
    text = call(predict, "--describe", "m").stdout
    assert "labels: " in text
    assert "over 50" in text


def test_columns_may_have_another_order_and_no_label(folder):
    call(train, "-q", *OPTIONS, "--label", "income", "--drop", "w", "train.csv", "m")
    call(predict, "test.csv", "m", "out")
    lines = (folder / "test.csv").read_text().splitlines()
    rows = [line.rsplit(",", 2)[0].split(",", 1) for line in lines]
    (folder / "other.csv").write_text("\n".join([*(f"{job},{age}" for age, job in rows), ""]))
    done = call(predict, "other.csv", "m", "out2")
    assert done.output == ""
    assert (folder / "out").read_text() == (folder / "out2").read_text()
    (folder / "other.csv").write_text("age\n3\n")
    done = call(predict, "other.csv", "m", "out2", status=1)
    assert done.stderr == "error: other.csv: no column job, which the model needs\n"


def test_unknown_categories_are_counted(folder):
    call(train, "-q", *OPTIONS, "--label", "income", "--drop", "w", "train.csv", "m")
    (folder / "other.csv").write_text("age,job\n30,king\n30,queen\n")
    done = call(predict, "other.csv", "m", "out")
    assert done.stderr == (
        "warning: other.csv: column job: 2 rows with categories that the training set lacks: "
        "'king', 'queen'\n"
    )
    assert call(predict, "-q", "other.csv", "m", "out").stderr == ""


def test_weights_count_rows(folder):
    call(train, "-q", *OPTIONS, "--label", "income", "--weight", "w", "train.csv", "m")
    lines = (folder / "train.csv").read_text().splitlines()
    twice = [line for line in lines[1:] for _ in range(int(line[-1]))]
    (folder / "twice.csv").write_text("\n".join([lines[0], *twice, ""]))
    call(train, "-q", "-t", "5", "-g", dcsvm.load_model("m").kernel.gamma, "-c", "4", "--scale",
         "auto", "--label", "income", "--drop", "w", "twice.csv", "m2")  # fmt: skip
    weighted, repeated = (dcsvm.load_model(name) for name in ("m", "m2"))
    table = np.array([[30.0, 0.5, 0.0], [50.0, 0.0, 0.5]])
    assert weighted.decision_function(table) == pytest.approx(
        repeated.decision_function(table), abs=1e-2
    )


def test_grid_and_compress(folder):
    call(grid, "-q", "-t", "5", "-log2c", "0,2,2", "-log2g", "-1,1,2", "-v", "3", "--label",
         "income", "--drop", "w", "train.csv", "m")  # fmt: skip
    assert dcsvm.load_model("m").table is not None


@pytest.mark.parametrize(
    "arguments, reason",
    [
        (("--label", "x", "train.csv"), "no column x; the columns are age, job, income, w"),
        (("--drop", "x", "train.csv"), "train.csv: no column x to drop"),
        (("--weight", "job", "train.csv"), "column job: weights must be numbers"),
        (("-s", "3", "--label", "income", "train.csv"), "targets of a regression must be numbers"),
        (("--format", "parquet", "train.csv"), "not a readable parquet file"),
    ],
)
def test_wrong_tables_are_refused(folder, arguments, reason):
    done = call(train, "-q", *arguments, "m", status=1)
    assert reason in done.stderr
    assert not (folder / "m").exists()


def test_a_model_of_libsvm_text_refuses_tables(folder):
    (folder / "text").write_text("1 1:1\n2 1:2\n")
    call(train, "-q", "text", "m")
    done = call(predict, "test.csv", "m", "out", status=1)
    assert done.stderr == (
        "error: test.csv: the model was not trained on a table: give LIBSVM text\n"
    )


def test_compressed_models_keep_the_table(folder):
    call(train, "-q", "-g", "1", "--scale", "auto", "--label", "income", "--drop", "w",
         "train.csv", "m")  # fmt: skip
    call(compress, "-q", "--vectors", "20", "--rows", "train.csv", "m", "small")
    assert dcsvm.load_model("small").table == dcsvm.load_model("m").table
    assert "Accuracy" in call(predict, "test.csv", "small", "out").stdout
