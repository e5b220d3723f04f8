"""Test the commands on tables."""

import numpy as np
import pytest
from click.testing import CliRunner

import dcsvm
from dcsvm.cli import compress, easy, grid, predict, train

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
        "table of 200 rows: label income (given); 1 numeric column and 1 text column become 3 "
        "features"
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


@pytest.mark.parametrize("command", [train, grid, easy])
@pytest.mark.parametrize("option", ["--label", "--drop", "--weight"])
def test_options_of_a_table_are_refused_for_libsvm_text(folder, command, option):
    (folder / "text").write_text("1 1:1\n2 1:2\n")
    done = call(command, "-q", option, "w", "text", status=2)
    assert f"{option} is for tables: text is read as LIBSVM text" in done.stderr


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


@pytest.fixture
def words(tmp_path, monkeypatch):
    """Write words.csv, where missing values are words, and return it as pandas reads it."""
    pandas = pytest.importorskip("pandas")
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    kind, number = rng.choice(["x", "?"], 120), rng.choice(["1.5", "2", " ?"], 120)
    old = rng.choice(["True", "False", "NA"], 120)
    label = np.where((kind == "?") == (number == " ?"), "p", "q")
    lines = [",".join(one) for one in zip(kind, number, old, label, strict=True)]
    (tmp_path / "words.csv").write_text("\n".join(["kind,number,old,label", *lines, ""]))
    return pandas.read_csv("words.csv", keep_default_na=False)


def test_missing_words_are_the_same_in_files_and_data_frames(words, tmp_path):
    rows, labels = words.drop(columns="label"), words["label"].to_numpy()
    call(train, "-q", *OPTIONS, "words.csv", "m")
    call(predict, "words.csv", "m", "out")
    predicted = (tmp_path / "out").read_text().split()
    assert np.mean(predicted == labels) == 1
    of_file = dcsvm.load_model("m")
    model = dcsvm.train(rows, labels, kernel="laplacian", gamma="2/median", C=4, scale="auto")
    assert model.table.columns == of_file.table.columns
    tables = [rows, rows.astype("category"), rows.astype("string")]
    for table in tables:
        assert of_file.predict(table).tolist() == model.predict(table).tolist() == predicted
    rows["label"] = labels
    rows.to_parquet("words.parquet")
    model.save("m")
    for name in ("words.csv", "words.parquet"):
        call(predict, name, "m", "out")
        assert (tmp_path / "out").read_text().split() == predicted


def test_text_for_a_model_of_a_table_is_refused(folder):
    call(train, "-q", *OPTIONS, "--label", "income", "--drop", "w", "train.csv", "m")
    (folder / "text").write_text("1 1:30 2:0.5\n")
    sentence = "error: text: the model was trained on a table: give a table, with its ending or"
    for done in (
        call(predict, "text", "m", "out", status=1),
        call(compress, "-q", "--times", "2", "--rows", "text", "m", "out", status=1),
        call(grid, "-q", "--test", "text", "train.csv", status=1),
        call(train, "-q", "--early", "--test", "text", "train.csv", "m2", status=1),
    ):
        assert done.stderr.startswith(sentence)
    model = dcsvm.load_model("m")
    with pytest.raises(ValueError, match="give a data frame, or 3 features instead of 2"):
        model.predict(np.zeros((1, 2)))


def test_a_test_file_without_a_known_label_is_told(folder):
    lines = (folder / "test.csv").read_text().replace("below", "under").replace("over 50", "above")
    (folder / "other.csv").write_text(lines)
    options = ("-log2c", "1,1,1", "-log2g", "1,1,1", "-out", "null", "--label", "income")
    done = call(grid, "-q", *options, "--test", "other.csv", "train.csv")
    assert "warning: no label in other.csv is one of the training set's" in done.stderr
    call(train, "-q", *OPTIONS, "--label", "income", "train.csv", "m")
    assert (
        "warning: no label in other.csv is one of the model's"
        in call(predict, "other.csv", "m", "out").stderr
    )
