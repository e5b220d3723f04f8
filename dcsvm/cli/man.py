"""The manual pages, generated from the commands when the package is built."""

import inspect
import os
import re
from collections.abc import Iterable, Iterator

import click

import dcsvm
from dcsvm.cli import compress, easy, export, grid, predict, train
from dcsvm.cli.command import LibsvmCommand

COMMANDS = (train.main, easy.main, grid.main, predict.main, compress.main, export.main)
GROFF = {"\\": r"\e", "^": r"\(ha", "~": r"\(ti", "'": r"\(aq", "`": r"\(ga"}


def write_pages(folder: str) -> list[str]:
    """Write the page of each command into a folder and return the paths."""
    os.makedirs(folder, exist_ok=True)
    paths = []
    for command in COMMANDS:
        paths.append(os.path.join(folder, f"{command.name}.1"))
        with open(paths[-1], "w", encoding="ascii") as file:
            file.write(page(command))
    return paths


def page(command: LibsvmCommand) -> str:
    """Format the manual page in groff's man macros."""
    ctx = click.Context(command, info_name=command.name)
    summary, *paragraphs = inspect.cleandoc(command.help or "").split("\n\n")
    name = literal(command.name or "")
    lines = [f'.TH {name.upper()} 1 "" "dcsvm {dcsvm.__version__}" "User Commands"']
    lines += [".SH NAME", rf"{name} \- {plain(summary[0].lower() + summary[1:-1])}"]
    lines += [".SH SYNOPSIS", rf"\fB{name}\fR {plain(' '.join(command.collect_usage_pieces(ctx)))}"]
    lines += [".SH DESCRIPTION", "\n.PP\n".join(map(plain, paragraphs))]
    lines += [".SH OPTIONS", *options(command, ctx)]
    lines += [".SH EXIT STATUS", *definitions(command.statuses)]
    lines += [".SH FILES", *definitions(command.files)]
    lines += [".SH EXAMPLES", *definitions(command.examples)]
    lines += [".SH SEE ALSO", ",\n".join(rf"\fB{literal(one)}\fR(1)" for one in command.see_also)]
    return "\n".join([*lines, ""])


def options(command: LibsvmCommand, ctx: click.Context) -> Iterator[str]:
    """Yield the lines of all options, by group."""
    for title, members in command.groups(ctx).items():
        yield f".SS {plain(title)}"
        for option in members:
            names = ", ".join(rf"\fB{literal(name)}\fR" for name in option.opts)
            value = rf"\fI{plain(option.value)}\fR" if option.value else ""
            yield f".TP\n{names}{' ' * option.is_apart}{value}"
            yield plain(f"{option.get_help_record(ctx)[1]}. {option.details}")


def definitions(rows: Iterable[tuple[str, str]]) -> Iterator[str]:
    """Yield the lines of a definition list."""
    for term, text in rows:
        yield f".TP\n\\fB{literal(term)}\\fR\n{plain(text)}."


def literal(text: str) -> str:
    """Escape text that users type: every dash becomes a minus."""
    return escaped(text).replace("-", r"\-")


def plain(text: str) -> str:
    """Escape a paragraph: only the dashes of options become minuses."""
    return re.sub(r"(?<![\w-])-[\w-]*", lambda found: literal(found[0]), escaped(text))


def escaped(text: str) -> str:
    """Escape characters that groff would interpret or replace."""
    text = re.sub(r"[\\^~'`]", lambda found: GROFF[found[0]], " ".join(text.split()))
    return rf"\&{text}" if text.startswith(".") else text
