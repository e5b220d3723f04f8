"""Test invalid options of dcsvm-train: one sentence names them as they are typed."""

import json
import os
import re
from pathlib import Path

import click
import pytest

import dcsvm
from dcsvm.cli import compress, easy, grid, predict, train, train_file
from dcsvm.kernel.kernels import NAMES
from dcsvm.problem.option_table import OptionError


@pytest.mark.parametrize(
    "arguments",
    [["a", "b", "c"], ["-x", "a"], ["-Q", "a"], ["-w", "1", "a"], ["-wx", "y", "a"],
     ["-v", "half", "a"], ["-"]],
    ids=str,
)  # fmt: skip
def test_wrong_usage_is_one_sentence_and_exits_with_two(run, arguments):
    result = run(*arguments)
    assert result.exit_code == 2
    assert result.stderr.startswith("error: ")
    assert result.stderr.endswith(" --help\n")
    assert len(result.stderr.splitlines()) == 1
    assert os.listdir() == []


OUT_OF_RANGE = {
    "-s": ["-1", "5"], "-t": ["-1", str(len(NAMES)), "2.5"], "-d": ["-1", "2147483647", "1e3"],
    "-g": ["-1", "nan", "inf"], "-r": ["nan", "-inf"], "-c": ["0", "-1", "nan", "inf", "1e999"],
    "-n": ["0", "-1", "1.5", "nan"], "-p": ["-1", "nan", "inf"], "-b": ["-1", "2"],
    "-v": ["1", "0", "-3", "99999999999"], "-e": ["0", "-1", "nan", "inf"],
    "--gap": ["0", "-1", "nan", "inf"], "-m": ["0", "-1", "nan", "inf", "1e10"], "-h": ["2"],
    "-l": ["-1", "31"], "-k": ["1", "257", "99999999999"], "--sample": ["0", "99999999999"],
    "--early-level": ["0", "31"], "--seed": ["-1", "99999999999"],
    "--threads": ["0", "-1", "1025", "99999999999"], "--max-iter": ["0", "9223372036854775808"],
    "--time-limit": ["0", "-1", "nan"], "--clustering": ["", "x"], "--model-format": ["x"],
}  # fmt: skip


@pytest.mark.parametrize(
    ("option", "value"),
    [(option, value) for option, values in OUT_OF_RANGE.items() for value in values],
)
def test_a_value_out_of_range_is_wrong_usage_of_that_option(run, option, value):
    result = run(option, value, "not_read")
    assert result.exit_code == 2
    (line,) = result.stderr.splitlines()
    assert re.match(rf"error: {option}( must be .*, got |: '{value}' is not )", line)
    assert line.endswith("; see dcsvm-train --help")


@pytest.mark.parametrize(
    ("options", "message"),
    [(["-w1", "0"], "error: -w must be positive and finite, got 0 for class 1;"),
     (["-w1", "-2", "-w1", "-2"], "error: -w must be positive and finite, got -2 for class 1;"),
     (["-wnan", "1"], "error: -w keys must be labels, finite numbers or strings, got nan;"),
     (["-c", "1e90", "-w1", "1e300"],
      "error: -w times C must be above 0 and at most 1e+100, got inf for class 1;"),
     (["-w1", "1e300", "-w1", "1e300"], "error: -w must be positive and finite, got inf for class"),
     (["-l", "1", "--early-level", "2"],
      "error: --early-level must be at most 1, the finest level, got 2;"),
     (["-t", "4", "--scale", "a"], "a precomputed kernel cannot be scaled"),
     (["-t", "4", "--scale", "auto"], "a precomputed kernel cannot be scaled"),
     (["--early", "--model-format", "libsvm"], "LIBSVM has no early models"),
     (["--early-level", "auto"], "error: --early-level auto is for early models only"),
     (["--early-level", "x"], "'x' is neither a whole number nor auto"),
     (["--early", "--overlap", "2.5"], "error: --overlap must be from 1 to 2, got 2.5;"),
     (["-s", "2", "--overlap", "1.5"], "error: --overlap is not available for one_class"),
     (["--test", "a"], "--test needs --early with --early-level auto"),
     (["--early", "--early-level", "2", "--test", "a"], "--test needs --early with --early-level"),
     (["-v", "5", "--early", "--test", "a"], "--test cannot be used with cross-validation (-v)"),
     (["--checkpoint", "a", "--resume", "b"], "must name the same folder")],
    ids=str,
)  # fmt: skip
def test_options_that_do_not_go_together_are_wrong_usage(run, options, message):
    result = run(*options, "not_read", "a.model")
    assert result.exit_code == 2
    assert message in result.stderr
    assert len(result.stderr.splitlines()) == 1


@pytest.mark.parametrize(
    ("options", "message"),
    [(["-k", "11", "--early"], "--early needs at least 1100 different rows, got 1000"),
     (["--early", "--early-level", "9"], "early level 9 does not exist: levels are 1 to 1"),
     (["-l", "1", "-k", "256", "--early"], "--early needs at least 25600 different rows, got 1000"),
     (["-l", "30", "--early-level", "20"], "early level 20 does not exist"),
     (["-s", "1", "-n", "1"], "specified nu is infeasible")],
    ids=str,
)  # fmt: skip
def test_values_that_do_not_suit_the_data_are_one_sentence(run, training, options, message):
    result = run(*options, training, "a.model")
    assert result.exit_code == 1
    assert result.stderr.splitlines()[-1].startswith(f"error: {message}")
    assert os.listdir() == []


def test_an_option_that_does_not_suit_the_data_is_named_as_it_is_typed(run, training, monkeypatch):
    def fails(*_, **__):
        raise OptionError("cache_mb", "must be at least 12, not 5: 1000 rows need it")

    monkeypatch.setattr(train_file, "train", fails)
    result = run("-m", 5, training, "a.model")
    assert result.exit_code == 1
    assert result.stderr.endswith("error: -m must be at least 12, not 5: 1000 rows need it\n")


NOT_A_VALUE = {
    ("-c", "abc"): "-c: 'abc' is not a number", ("-d", "2.5"): "-d: '2.5' is not a whole number",
    ("-s", "5"): "-s: '5' is not 0 C-SVC, 1 nu-SVC, 2 one-class, 3 eps-SVR or 4 nu-SVR",
    ("-b", "yes"): "-b: 'yes' is not 0 or 1",
    ("-w1", "x"): "-w: 'x' is not a number", ("-c", "-1"): "-c must be positive and finite, got -1",
    ("--time-limit", "0"): "--time-limit must be above 0, got 0",
    ("--levels", "-1"): "-l must be at least 0, got -1",
}  # fmt: skip


@pytest.mark.parametrize("command", [train.main, grid.main, easy.main, predict.main, compress.main],
                         ids=lambda command: command.name)  # fmt: skip
def test_every_name_and_number_of_help_is_a_value_in_any_case(command):
    """Every option with a list of names, and the spellings that its help line has."""
    for option in command.params:
        kind = option.type
        for number, value in enumerate(getattr(kind, "values", ())):
            spelled = kind.rule.spellings[number : number + 1]
            for text in [str(number), *spelled, *[value] * isinstance(value, str)]:
                assert {kind.convert(one, None, None) for one in (text, text.upper())} == {value}
            if command is not easy.main:
                assert all(f"{number} {one}" in option.help for one in spelled)
        for value in getattr(kind, "choices", ()):
            assert kind.convert(value.upper(), option, click.Context(command)) == value


def test_the_kernel_may_be_named_in_any_case(run, training):
    for name in ("RBF", "rbf", "Poly", "polynomial", "LAPLACIAN"):
        assert run("-q", "-t", name, "-l", 0, training, "a.model").exit_code == 0
    assert run("-q", "-t", "rb", training, "a.model").stderr.startswith(
        "error: -t: 'rb' is not 0 linear, 1 poly, 2 rbf, "
    )
    assert run("-q", "-g", "2/MEDIAN", "-w", "BALANCED", training, "a.model").exit_code == 0


@pytest.mark.parametrize("arguments", NOT_A_VALUE, ids=str)
def test_the_sentence_names_the_option_and_what_it_must_be(run, arguments):
    result = run(*arguments, "data")
    assert result.exit_code == 2
    assert result.stderr == f"error: {NOT_A_VALUE[arguments]}; see dcsvm-train --help\n"


@pytest.mark.parametrize(
    ("options", "message"),
    [(["-g", "scale"], "error: -g: 'scale' is neither a number, auto nor F/median with a "),
     (["-g", "a/median"], "error: -g: 'a/median' is neither a number, auto nor F/median with a "),
     (["-g", "0/median"],
      "error: -g must be F/median with a positive and finite F, got '0/median';"),
     (["-g", "2/median", "-t", "1"],
      "error: -g must be a number for kernel polynomial, got '2/median';")],
    ids=str,
)  # fmt: skip
def test_a_wrong_gamma_is_a_sentence(run, options, message):
    result = run(*options, "not_read")
    assert result.exit_code == 2 and result.stderr.startswith(message), result.stderr


def test_rows_without_a_median_are_a_sentence(run, write_libsvm):
    path = write_libsvm([[1.0, 2.0]] * 4, [1, -1, 1, -1])
    result = run("-g", "2/median", path)
    sentence = "-g must be a number, got '2/median': all rows are equal"
    assert (result.exit_code, result.stderr.splitlines()[-1]) == (1, f"error: {sentence}")


@pytest.mark.parametrize("gamma", ["auto", "2/median"])
def test_the_first_line_the_report_and_the_model_have_the_number(run, training, gamma):
    result = run("-g", gamma, "--report", "report.json", training, "a.model")
    assert result.exit_code == 0, result.stderr
    found = dcsvm.load_model("a.model").kernel.gamma
    assert f"rbf(gamma={found:g})" in result.stderr.splitlines()[0]
    assert json.loads(Path("report.json").read_text())["gamma"] == found
    run("-q", "-g", repr(found), training, "b.model")
    assert Path("a.model").read_bytes() == Path("b.model").read_bytes()
    folds = [run("-q", "-v", "3", "-g", one, training).stdout for one in (gamma, repr(found))]
    assert folds[0] == folds[1] != ""
