"""Test the help of the commands: --help, the usage without arguments, the manual pages."""

import re
import shutil
import subprocess

import click
import pytest
from click.testing import CliRunner

from dcsvm.cli import compress, easy, export, man, predict, train
from dcsvm.kernel.kernels import numbered_names

COMMANDS = [train.main, easy.main, predict.main, compress.main, export.main]
every_command = pytest.mark.parametrize("command", COMMANDS, ids=lambda command: command.name)


@pytest.fixture
def help_of(monkeypatch):
    """Return the help of a command on a terminal with this number of columns."""

    def shown(command, width):
        monkeypatch.setenv("COLUMNS", str(width))
        return command.get_help(click.Context(command, **command.context_settings))

    return shown


@every_command
@pytest.mark.parametrize("width", [80, 100, 300])
def test_help_fits_the_terminal_and_is_never_wider_than_100(help_of, command, width):
    assert max(map(len, help_of(command, width).splitlines())) <= min(width, 100)


@every_command
def test_help_has_one_line_for_every_option_on_80_columns(help_of, command):
    """Lists of kernels are exempt: they may take several lines."""
    text = help_of(command, 80)
    others = re.sub(r"^Kernel:$.*?^$", "", text, flags=re.M | re.S)
    assert not re.findall(r"^ {12,}\S.*", others, re.M)
    assert len(text.splitlines()) <= 92


@every_command
def test_help_has_every_option_in_a_group_with_its_default(help_of, command):
    text = help_of(command, 100)
    titles = re.findall(r"^(\w[\w ]+):$", text, re.M)
    assert titles[-3:] == ["Other", "Exit status", "Examples"]
    for option in command.params:
        if isinstance(option, click.Option):
            assert re.search(rf"^  (-\w, )?{option.opts[-1]}(LABEL| |$)", text, re.M), option.opts
    assert "IntRange" not in text and "x>" not in text


def test_defaults_are_those_of_the_training_options(help_of):
    text = " ".join(help_of(train.main, 100).split())
    kernels = f"{numbered_names()} [2] -d"
    for words in ("[0.001] --gap", "[1/features] -r", kernels, "coarser level [4]",
                  "4 nu-SVR [0] -c", "nu-SVR [1] -w", "kmeans [tree]"):  # fmt: skip
        assert words in text


def test_the_exit_status_is_documented(help_of):
    text = help_of(train.main, 80)
    assert re.search(r"^  3 +not converged", text, re.M)
    assert re.search(r"^  130, 143, 129 +SIGINT, SIGTERM, SIGHUP", text, re.M)


@every_command
def test_without_arguments_a_short_usage_is_printed(command):
    done = CliRunner().invoke(command, [])
    assert (done.exit_code, done.stdout) == (2, "")
    lines = done.stderr.splitlines()
    assert lines[0].startswith(f"Usage: {command.name} [options] ")
    assert lines[-1] == f"{command.name} --help has all options and examples."
    assert 5 < len(lines) <= 15


@every_command
def test_the_manual_page_has_every_option_and_no_groff_of_its_own(command):
    text = man.page(command)
    assert text.isascii()
    for title in ("NAME", "SYNOPSIS", "OPTIONS", "EXIT STATUS", "FILES", "EXAMPLES", "SEE ALSO"):
        assert f"\n.SH {title}\n" in text
    for option in command.params:
        if isinstance(option, click.Option):
            assert rf"\fB{man.literal(option.opts[0])}\fR" in text
    commands = re.findall(r"^[.'](\S*)", text, re.M)
    assert set(commands) == {"TH", "SH", "SS", "TP", *(["PP"] if ".PP" in text else [])}


def test_text_is_made_safe_for_groff():
    assert man.plain(".model a\\b x^2 'q' -c --early-level nu-SVC -w-1") == (
        r"\&.model a\eb x\(ha2 \(aqq\(aq \-c \-\-early\-level nu-SVC \-w\-1"
    )


@every_command
def test_groff_renders_the_manual_page_without_a_warning(command, tmp_path):
    if shutil.which("groff") is None:
        pytest.skip("groff is not installed")
    paths = man.write_pages(str(tmp_path))
    assert [path.rpartition("/")[2] for path in paths] == [
        "dcsvm-train.1",
        "dcsvm-easy.1",
        "dcsvm-grid.1",
        "dcsvm-predict.1",
        "dcsvm-compress.1",
        "dcsvm-export.1",
    ]
    path = tmp_path / f"{command.name}.1"
    done = subprocess.run(
        ["groff", "-man", "-Tutf8", "-ww", path], capture_output=True, encoding="utf-8"
    )
    assert (done.returncode, done.stderr) == (0, "")
    shown = " ".join(re.sub(r"\x1b\[\d*m|.\x08", "", done.stdout).split())
    assert f"{command.name} - " in shown
    assert "--threads" in shown
