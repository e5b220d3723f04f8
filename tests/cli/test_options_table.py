"""Test the table of training options against its readers: commands, man page, manual, help()."""

import sys
from dataclasses import fields
from pathlib import Path

import click
import pytest

import dcsvm
from dcsvm.cli import compress, export, grid, man, predict, train
from dcsvm.kernel.kernels import users_of
from dcsvm.problem.option_table import described, option_of
from dcsvm.problem.options import CompressOptions, TrainOptions

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "docs"))

from option_tables import with_tables  # noqa: E402


def declared(command):
    return {one.name: one for one in command.params if isinstance(one, click.Option)}


def test_dcsvm_train_has_every_option_of_the_table_as_it_stands_there():
    found = declared(train.main)
    for field in fields(TrainOptions):
        one, own = found[field.name], option_of(field)
        assert (one.opts, one.help, one.group) == (own.names, own.help, own.group)
        assert (one.details, one.value) == (own.details, own.value)


def test_dcsvm_grid_lacks_only_what_the_table_says():
    own = {field.name for field in fields(TrainOptions) if option_of(field).in_grid}
    assert own == declared(grid.main).keys() & set(TrainOptions.names())


def test_options_that_commands_share_are_one_entry_of_the_table():
    for command in (predict.main, compress.main, export.main):
        one = declared(command)["threads"]
        assert one.get_help_record(None) == declared(train.main)["threads"].get_help_record(None)
        assert one.group == "Other"
    assert set(CompressOptions.names()) - {"method"} <= declared(compress.main).keys()


def test_the_man_page_names_the_options_that_may_differ_on_resume():
    free = [option_of(one).names[0] for one in fields(TrainOptions) if option_of(one).is_free]
    assert {"--threads", "-m", "--certify"} <= set(free)
    sentence = f"{', '.join(free[:-1])} and {free[-1]} may differ."
    assert man.plain(sentence) in man.page(train.main)


def test_the_manual_has_the_table_in_place_of_its_blocks():
    text = with_tables("before\n\n```{options} dcsvm-train Kernel\n```\n\n```{keywords}\n```\n")
    lines = text.splitlines()
    assert lines[0] == "before" and "```" not in text
    users = users_of("gamma").replace("|", r"\|")
    degree = users_of("degree")
    assert f"| `-d DEGREE` | degree of {degree} | 3 |" in lines
    gamma = (
        f"| `-g GAMMA` | number, auto or F/median: gamma of {users}. 0 selects the default, as in "
        "LIBSVM."
    )
    (row,) = (line for line in lines if line.startswith(gamma))
    assert row.endswith(" | 1/features |")
    takes = "a number, 'auto' or F/median, at least 0 and finite, or None"
    assert f"| `gamma` | `-g` | {takes} | `None` |" in lines
    assert "| `levels` | `-l` | a whole number, from 0 to 30, or None | `None` |" in lines


def test_help_of_train_is_made_from_the_table():
    text = " ".join(dcsvm.train.__doc__.split())
    assert "{options}" not in text
    assert f"- gamma (float | str | None, None): gamma of {users_of('gamma')};" in text
    branching = "- branching (int, 4): child clusters per cluster of the coarser level"
    assert f"{branching}; from 2 to 256" in text
    assert described(None, TrainOptions) is None  # python -OO


def test_a_table_refuses_other_names():
    hint = r"unknown option 'x'; help\(dcsvm.Model.compress\)"
    with pytest.raises(TypeError, match=hint):
        CompressOptions.of(x=1)
    with pytest.raises(TypeError, match="did you mean 'vectors'"):
        CompressOptions.of(vector=1)
