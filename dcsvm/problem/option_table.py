"""Tables of options: a dataclass whose fields carry an Option in their metadata.

Validation, the commands, the manual, help() and checkpoints read it.
"""

from dataclasses import Field, dataclass, field, fields
from typing import Any, ClassVar, TypeVar

from dcsvm.problem.option_rules import Rule

DOCSTRING_WIDTH = 96  # columns, beside the indentation


@dataclass(frozen=True, kw_only=True)
class Option:
    """The description of an option.

    `spelling` is its command-line syntax with a placeholder for the value, as in `-l --levels L`;
    an empty one hides it from the commands. `help` is the line of --help, under the title `group`;
    `details` are further sentences of the manual. `default_text` describes a default that depends
    on the data. `keyword` replaces `help` in Python's docstrings.
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
        """The placeholder of the value, empty for a flag."""
        return self.spelling.removeprefix(" ".join(self.names)).strip()


def option(
    default: Any, rule: Rule, spelling: str = "", help: str = "", details: str = "", **rest: Any
) -> Any:
    """Make a field of a table; for the `rest` see Option."""
    description = Option(rule=rule, spelling=spelling, help=help, details=details, **rest)
    return field(default=default, metadata={"option": description})


def option_of(one: Field) -> Option:
    return one.metadata["option"]


class UnknownOptionError(TypeError):
    """An unknown keyword, with a hint."""


Table = TypeVar("Table", bound="OptionTable")


@dataclass(frozen=True, kw_only=True)
class OptionTable:
    """Base class of tables of options, which checks and converts their values.

    `function` is the name of the function with these keywords.
    """

    function: ClassVar[str]

    @classmethod
    def of(cls: type[Table], **options: Any) -> Table:
        """Make a table of keywords. Raises UnknownOptionError and OptionError."""
        for name in options:
            if name not in cls.names():
                raise UnknownOptionError(f"unknown option {name!r}; {cls._hint(name)}")
        return cls(**options)

    @classmethod
    def _hint(cls, name: str) -> str:
        from difflib import get_close_matches

        known = {option.lower(): option for option in cls.names()}
        matches = get_close_matches(name.lower(), known, n=1, cutoff=0.5)
        if matches:
            return f"did you mean {known[matches[0]]!r}?"
        return f"help({cls.function}) lists them"

    @classmethod
    def check(cls, name: str, value: object) -> Any:
        """Return the plain value of one option. Raises OptionError."""
        return option_of(cls.__dataclass_fields__[name]).rule.check(name, value)

    @classmethod
    def names(cls) -> tuple[str, ...]:
        return tuple(one.name for one in fields(cls))

    def __post_init__(self) -> None:
        for name in self.names():
            object.__setattr__(self, name, self.check(name, getattr(self, name)))


def described(docstring: str | None, table: type[OptionTable]) -> str | None:
    """Replace `{options}` in a docstring by a list of the options, by group."""
    if docstring is None:  # python -OO
        return None
    import textwrap

    lines: list[str] = []
    title = None
    for one in fields(table):
        if option_of(one).group != title:
            title = option_of(one).group
            lines += ["", title, ""]
        lines += textwrap.wrap(keyword_line(one), DOCSTRING_WIDTH, subsequent_indent="  ")
    listed = textwrap.indent("\n".join(lines[1:]), "    ")
    return docstring.replace("    {options}", listed)


def keyword_line(one: Field) -> str:
    """Format an option as in `- degree (int, 3): of poly (gamma u'v + coef0)^degree; ...`."""
    entry, default = option_of(one), one.default
    shown = f'"{default}"' if isinstance(default, str) else repr(default)
    line = f"- {one.name} ({one.type}, {shown}): "
    if entry.keyword:
        return line + entry.keyword
    unset = f"{shown}: {entry.default_text}" if entry.default_text else ""
    return line + "; ".join(part for part in (entry.help, entry.rule.limits, unset) if part)
