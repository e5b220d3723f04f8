"""Test the files and messages of dcsvm-export, with one test per kind of bad input."""

import os
from pathlib import Path

import pytest
from reference import program

import dcsvm
from dcsvm.cli import export
from dcsvm.model.model import Model


@pytest.fixture
def model_file(run, training):
    assert run("-q", "-c", 4, "-g", 2, "-l", 1, training, "m").exit_code == 0
    return "m"


def test_the_file_of_c_is_that_of_python(invoke, model_file):
    done = invoke(export.main, "m", "m.c")
    text = dcsvm.load_model("m").to_c()
    assert (done.exit_code, done.stderr) == (0, "")
    assert done.stdout == f"m.c: {len(text)} bytes\n"
    assert Path("m.c").read_text() == text


def test_the_early_model_is_exported_where_it_is_asked_for(invoke, model_file):
    assert invoke(export.main, "-q", "--early", "m", "early.C").output == ""
    text = Path("early.C").read_text()
    assert text == dcsvm.load_model("m").to_c(method="early")
    assert "DCSVM_NODES" in text


def test_the_ending_decides_for_onnx(invoke, model_file, monkeypatch):
    def to_onnx(self, *, method=None):
        return f"ONNX {method}".encode()

    monkeypatch.setattr(Model, "to_onnx", to_onnx, raising=False)
    assert invoke(export.main, "m", "m.onnx").stdout == "m.onnx: 9 bytes\n"
    assert invoke(export.main, "--early", "m", "M.ONNX").exit_code == 0
    assert Path("m.onnx").read_bytes() == b"ONNX None"
    assert Path("M.ONNX").read_bytes() == b"ONNX early"


def test_a_missing_package_is_one_sentence(invoke, model_file, monkeypatch):
    def to_onnx(self, *, method=None):
        raise ImportError("ONNX requires the package onnx: pip install 'dcsvm[onnx]'")

    monkeypatch.setattr(Model, "to_onnx", to_onnx, raising=False)
    done = invoke(export.main, "m", "m.onnx")
    sentence = "error: m: ONNX requires the package onnx: pip install 'dcsvm[onnx]'\n"
    assert (done.exit_code, done.stdout, done.stderr) == (1, "", sentence)
    assert os.listdir() == ["m"]


@pytest.mark.parametrize(
    ("arguments", "status", "sentence"),
    [(["m", "m.txt"], 2, "the name of OUTPUT_FILE must end in .onnx or .c, got m.txt"),
     (["m", "-"], 2, "must end in .onnx or .c, got -"),
     (["m"], 2, "missing argument"),
     (["missing", "m.c"], 1, "missing: no such file"),
     (["m.c", "m.c"], 1, "m.c: no such file"),
     (["m", "nowhere/m.c"], 1, "no such folder"),
     (["--scale", "auto", "m", "m.c"], 2, "no such option: --scale")],
    ids=str,
)  # fmt: skip
def test_wrong_calls_are_one_sentence_and_write_nothing(
    invoke, model_file, arguments, status, sentence
):
    done = invoke(export.main, *arguments)
    assert (done.exit_code, done.stdout) == (status, "")
    assert done.stderr.startswith("error: ")
    assert sentence in done.stderr
    assert done.stderr.count("\n") == 1
    assert os.listdir() == ["m"]


def test_an_output_does_not_replace_the_model(invoke, model_file):
    os.rename("m", "m.c")
    done = invoke(export.main, "m.c", "./m.c")
    assert (done.exit_code, done.stdout) == (1, "")
    assert "./m.c: the output would replace another file of the command" in done.stderr
    assert dcsvm.load_model("m.c").exact is not None


def test_a_damaged_model_is_named_with_its_line(invoke, model_file):
    Path("m").write_text(Path("m").read_text().replace("gamma 2.0", "gamma two"))
    done = invoke(export.main, "m", "m.c")
    assert done.exit_code == 1
    assert done.stderr.startswith("error: m:3: gamma must be one float")
    assert not os.path.exists("m.c")


def test_a_model_without_the_part_and_one_of_a_precomputed_kernel_are_refused(
    run, invoke, training, tmp_path
):
    assert run("-q", "-l", 0, training, "m").exit_code == 0
    done = invoke(export.main, "--early", "m", "m.c")
    assert (done.exit_code, done.stderr) == (1, "error: m: the model has no early level\n")
    lines = []
    for k in range(20):
        values = " ".join(f"{j + 1}:{2 if j == k else 1}" for j in range(20))
        lines.append(f"{1 - k % 2 * 2} 0:{k + 1} {values}\n")
    (tmp_path / "kernel").write_text("".join(lines))
    assert run("-q", "-t", 4, tmp_path / "kernel", "k").exit_code == 0
    done = invoke(export.main, "k", "k.c")
    assert (done.exit_code, done.stderr) == (
        1,
        "error: k: a model of a precomputed kernel cannot be exported: its rows are not in it\n",
    )


def test_the_command_is_a_program(model_file):
    done = program("export", "m", "m.c")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("m.c: ")
