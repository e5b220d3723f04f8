"""The tables of options in the manual, made from the commands and from the table of the training
options when it is built: a page has a block `{options} COMMAND TITLE` or `{keywords}` in the place
of each, and `{of-grid}` in that of the training options that dcsvm-grid has.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import fields

import click

from dcsvm.cli import man
from dcsvm.problem.option_table import option_of
from dcsvm.problem.options import TrainOptions

PLACE = re.compile(r"^```\{(options|keywords|of-grid)\} *(\S*) *(.*)\n```$", re.M)
OPTION = re.compile(r"(?<![\w-])(-w(?:-1 5| balanced)|--[a-z][\w-]*|-[a-zA-Z](?!\w))")
COMMANDS = {command.name: command for command in man.COMMANDS}


def with_tables(text: str) -> str:
    """The Markdown of a page with its tables."""
    return PLACE.sub(lambda place: table_of(*place.groups()), text)


def table_of(kind: str, command: str, title: str) -> str:
    if kind == "keywords":
        return table(
            ("keyword", "option", "takes", "default"), map(keyword_row, fields(TrainOptions))
        )
    if kind == "of-grid":
        shared = [option_of(one) for one in fields(TrainOptions) if option_of(one).in_grid]
        return ", ".join(f"`{name}`" for option in shared for name in option.names)
    groups = COMMANDS[command].groups(click.Context(COMMANDS[command]))
    return table(("option", "meaning", "default"), map(option_row, groups[title]))


def option_row(option) -> list[str]:
    names = [f"`{name}`" for name in option.opts]
    names[-1] = f"`{option.opts[-1]}{' ' * option.is_apart}{option.value}`"
    meaning = f"{option.help}. {option.details}" if option.details else option.help
    return [", ".join(names), OPTION.sub(r"`\g<0>`", meaning), option.default_text]


def keyword_row(one) -> list[str]:
    rule, default = option_of(one).rule, one.default
    takes = ", ".join(part for part in (rule.kind, rule.limits, "or None" * rule.or_none) if part)
    return [f"`{one.name}`", f"`{option_of(one).names[0]}`", takes, f"`{default!r}`"]


def table(titles: tuple[str, ...], rows: Iterable[list[str]]) -> str:
    lines = [" | ".join(titles), " | ".join("---" for _ in titles)]
    lines += [" | ".join(cell.replace("|", r"\|") for cell in row) for row in rows]
    return "\n".join(f"| {line} |" for line in lines)
