"""One table for what is known of the options of a dataclass: each field carries an Option in its
metadata, which validation, the commands, the manual, help() and checkpoints read.
"""

from __future__ import annotations

from dataclasses import Field, dataclass, field, fields
from typing import Any, ClassVar

from dcsvm.problem.option_rules import Rule

DOCSTRING_WIDTH = 96  # columns, beside the indentation


@dataclass(frozen=True, kw_only=True)
class Option:
    """`spelling` is the option of a command with what stands for its value, as in `-l --levels L`;
    without it no command has the option. `help` is its line of --help under the title `group`,
    `details` are further sentences of the manual. `default_text` says what holds where no value is
    given, where the default does not. `keyword` is the line for Python, where `help` does not suit.
    """

    rule: Rule
    spelling: str = ""
    help: str = ""
    details: str = ""
    group: str = ""
    default_text: str = ""
    keyword: str = ""
    is_basic: bool = False  # in the usage of a command without arguments
    is_free: bool = False  # may differ on resume: it changes neither the problem nor its solution
    in_grid: bool = True  # an option of dcsvm-grid, too

    @property
    def names(self) -> list[str]:
        return [word for word in self.spelling.split() if word[0] == "-"]

    @property
    def value(self) -> str:
        """What stands for the value, empty for a flag."""
        return self.spelling.removeprefix(" ".join(self.names)).strip()


def option(
    default: Any, rule: Rule, spelling: str = "", help: str = "", details: str = "", **rest
) -> Any:
    """Make a field of a table; for the `rest` see Option."""
    own = Option(rule=rule, spelling=spelling, help=help, details=details, **rest)
    return field(default=default, metadata={"option": own})


def option_of(one: Field) -> Option:
    return one.metadata["option"]


class UnknownOption(TypeError):
    """A name that no option has."""


class OptionTable:
    """The base of a frozen dataclass of options: it makes their values plain. Raises OptionError.

    `function` is what takes them as keywords.
    """

    function: ClassVar[str]

    @classmethod
    def of(cls, **options):
        """Make a table of keywords. Raises UnknownOption for a name that is no field, and
        OptionError."""
        for name in options:
            if name not in cls.names():
                raise UnknownOption(f"unknown option {name!r}; {cls._hint(name)}")
        return cls(**options)

    @classmethod
    def _hint(cls, name: str) -> str:
        from difflib import get_close_matches

        known = {option.lower(): option for option in cls.names()}
        near = get_close_matches(name.lower(), known, n=1, cutoff=0.5)
        return f"did you mean {known[near[0]]!r}?" if near else f"help({cls.function}) lists them"

    @classmethod
    def check(cls, name: str, value: object) -> Any:
        """Return the plain value of one option. Raises OptionError."""
        return option_of(cls.__dataclass_fields__[name]).rule.check(name, value)

    @classmethod
    def names(cls) -> tuple[str, ...]:
        return tuple(one.name for one in fields(cls))

    def __post_init__(self):
        for name in self.names():
            object.__setattr__(self, name, self.check(name, getattr(self, name)))


def described(docstring: str | None, table: type[OptionTable]) -> str | None:
    """Put a list of the options, by group, in the place of `{options}` in a docstring."""
    if docstring is None:  # python -OO
        return None
    import textwrap

    lines, title = [], None
    for one in fields(table):
        if option_of(one).group != title:
            title = option_of(one).group
            lines += ["", title, ""]
        lines += textwrap.wrap(keyword_line(one), DOCSTRING_WIDTH, subsequent_indent="  ")
    listed = textwrap.indent("\n".join(lines[1:]), "    ")
    return docstring.replace("    {options}", listed)


def keyword_line(one: Field) -> str:
    """`- gamma (float | None, None): of rbf ...; at least 0 and finite; None: 1/features`"""
    own, default = option_of(one), one.default
    shown = f'"{default}"' if isinstance(default, str) else repr(default)
    line = f"- {one.name} ({one.type}, {shown}): "
    if own.keyword:
        return line + own.keyword
    unset = f"{shown}: {own.default_text}" if own.default_text else ""
    return line + "; ".join(part for part in (own.help, own.rule.limits, unset) if part)
