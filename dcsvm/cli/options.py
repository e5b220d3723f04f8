"""Declare the options of commands: by an option table, by hand, or shared by several commands."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import fields
from functools import partial
from typing import TYPE_CHECKING, Any, TypeAlias

import click

import dcsvm
from dcsvm.cli.file_types import INPUT, OUTPUT, SCALING
from dcsvm.data.formats import FORMATS
from dcsvm.problem.option_table import (
    AUTO,
    GAMMA,
    Option,
    OptionTable,
    index_of_name,
    is_per_median,
    option_of,
)

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

    Parameter: TypeAlias = click.Parameter | None
    Context: TypeAlias = click.Context | None
    Decorator: TypeAlias = Callable[[Any], Any]
    Kind: TypeAlias = click.ParamType | tuple[click.ParamType, ...] | None


class Plain(click.ParamType):
    """Click type of values that the function `plain` converts; `reason` ends the error message."""

    def __init__(self, name: str, plain: Callable[[str], object], reason: str):
        self.name, self.plain, self.reason = name, plain, reason

    def convert(self, value: str, param: Parameter, ctx: Context) -> object:
        try:
            return self.plain(value)
        except ValueError:
            self.fail(f"{value!r} {self.reason}", param, ctx)


class Numbered(click.ParamType):
    """Click type of one of `values`, given by its index as in LIBSVM, or by its name if it has one.

    `spellings` are other names of the values, which messages use.
    """

    name = "number of a name"

    def __init__(self, *values: str | bool, spellings: Sequence[str] = ()):
        self.values, self.spellings = values, spellings

    def convert(self, value: object, param: Parameter, ctx: Context) -> str | bool:
        names = [one for one in self.values if isinstance(one, str)]
        number = index_of_name(str(value), names, self.spellings)
        with suppress(ValueError):
            number = int(str(value))
        if not 0 <= number < len(self.values):
            known = [str(number) for number in range(len(self.values))]
            if self.spellings:
                known = [" ".join(pair) for pair in zip(known, self.spellings, strict=True)]
            self.fail(f"{value!r} is not {', '.join(known[:-1])} or {known[-1]}", param, ctx)
        return self.values[number]

    def shell_complete(
        self, _ctx: click.Context, _param: click.Parameter, incomplete: str
    ) -> list[CompletionItem]:
        from click.shell_completion import CompletionItem

        items = [CompletionItem(str(k), help=str(one)) for k, one in enumerate(self.values)]
        return [item for item in items if item.value.startswith(incomplete)]


class PowersOfTwo(click.ParamType):
    """Click type of svm-grid's begin,end,step: the exponents, ascending; () for null."""

    name = "begin,end,step"
    most = 1000

    def convert(
        self, value: str | tuple[float, ...], param: Parameter, ctx: Context
    ) -> tuple[float, ...]:
        if not isinstance(value, str):
            return value
        if value.lower() == "null":
            return ()
        try:
            begin, end, step = (float(part) for part in value.split(","))
        except ValueError:
            self.fail(f"{value!r} is neither begin,end,step nor null", param, ctx)
        if not all(abs(number) <= self.most for number in (begin, end, step)):
            self.fail(f"{value!r} has an exponent beyond {self.most}", param, ctx)
        if step == 0 or (end - begin) / step < 0:
            self.fail(f"{value!r} does not lead from {begin:g} to {end:g}", param, ctx)
        n_steps = int((end - begin) / step * (1 + 1e-12) + 1e-12)
        if n_steps >= self.most:
            self.fail(f"{value!r} has more than {self.most} values", param, ctx)
        return tuple(sorted(begin + k * step for k in range(n_steps + 1)))


def gamma_of(value: str) -> float | str:
    """Convert the value of -g. Raises ValueError."""
    text = value.lower()
    return text if text == AUTO or is_per_median(text) else float(value)


NUMBER = Plain("number", float, "is not a number")
WHOLE = Plain("whole number", int, "is not a whole number")
LEVEL = Plain(
    "level",
    lambda value: AUTO if value.lower() == AUTO else int(value),
    "is neither a whole number nor auto",
)
GAMMA_VALUE = Plain(
    "gamma",
    gamma_of,
    "is neither a number, auto nor F/median with a number F",
)
POWERS = PowersOfTwo()
OneOf = partial(click.Choice, case_sensitive=False)
NO_OR_YES = Numbered(False, True)


TYPES: dict[str, Kind] = {  # Click types by the kind of a rule
    "a number": NUMBER,
    GAMMA.kind: GAMMA_VALUE,
    "a whole number": WHOLE,
    "a whole number or 'auto'": LEVEL,
    "a dict of label: factor or 'balanced'": (NUMBER, NUMBER),
}


class GroupedOption(click.Option):
    """Option in a titled group of the help.

    `default_text` describes the default. Only the manual page has the sentences in `details`. The
    short usage has the options with `is_basic`.
    """

    def __init__(
        self,
        names: list[str],
        *,
        group: str,
        default_text: str = "",
        details: str = "",
        is_basic: bool = False,
        **kwargs: Any,
    ):
        super().__init__(names, **kwargs)
        self.group, self.details, self.is_basic = group, details, is_basic
        self.default_text = default_text

    def get_help_record(self, _ctx: click.Context) -> tuple[str, str]:
        default = f" [{self.default_text}]" if self.default_text else ""
        spelling = f"{', '.join(self.opts)}{' ' * self.is_apart}{self.value}"
        return spelling, f"{self.help}{default}"

    @property
    def value(self) -> str:
        return "" if self.is_flag else self.metavar or ""

    @property
    def is_apart(self) -> bool:
        """Return whether a space separates name and value, unlike in -wLABEL FACTOR."""
        return bool(self.value) and (self.nargs == 1 or len(self.opts[0]) > 2)


def group(title: str) -> Callable[..., Decorator]:
    """Return `declared` for the options of a titled group."""
    return partial(declared, title)


def declared(
    title: str,
    spelling: str,
    name: str,
    kind: Kind = None,
    help: str = "",
    details: str = "",
    *,
    default: object = None,
    **kwargs: Any,
) -> Decorator:
    """Return a decorator that adds an option to a titled group of the help.

    `spelling` is as in Option; an option without a value in it is a flag. `name` is the parameter
    of the command. `kind` is the Click type of the value; None is a string.
    """
    names = [word for word in spelling.split() if word[0] == "-"]
    value = spelling.removeprefix(" ".join(names)).strip()
    kwargs |= {"type": kind, "metavar": value} if value else {"is_flag": True}
    if default is not None:
        kwargs |= {"default": default, "default_text": str(default)}
    kwargs |= {"cls": GroupedOption, "group": title, "help": help, "details": details}
    return click.option(*names, name, **kwargs)


def with_options(*options: Decorator) -> Decorator:
    """Return a decorator that adds several options, in this order."""

    def decorated(command: Any) -> Any:
        for option in reversed(options):
            command = option(command)
        return command

    return decorated


def table_options(table: type[OptionTable], *titles: str, of_grid: bool = False) -> Decorator:
    """Return a decorator that adds the options of a table from the groups with these titles.

    `of_grid` selects only the options that dcsvm-grid has.
    """
    options = [
        table_option(table, one.name)
        for title in titles
        for one in fields(table)
        if option_of(one).group == title and (option_of(one).in_grid or not of_grid)
    ]
    return with_options(*options)


def table_option(table: type[OptionTable], name: str, title: str = "") -> Decorator:
    """Return a decorator that adds an option of a table, to the group `title` if given."""
    field = table.__dataclass_fields__[name]
    option = option_of(field)
    kwargs: dict[str, Any] = {"default_text": option.default_text, "is_basic": option.is_basic}
    kind: Kind = None
    if option.value:
        kind = type_of(option)
        kwargs["multiple"] = isinstance(kind, tuple)
        kwargs["default_text"] = option.default_text or text_of(field.default, kind)
    title = title or option.group
    return declared(title, option.spelling, name, kind, option.help, option.details, **kwargs)


def type_of(option: Option) -> Kind:
    """Return the Click type of an option; one-letter options also accept the index of a name."""
    if option.value == "0|1":
        return NO_OR_YES
    if option.rule.names:
        is_letter = len(option.names[0]) == 2
        if is_letter:
            return Numbered(*option.rule.names, spellings=option.rule.spellings)
        return OneOf(option.rule.names)
    return TYPES[option.rule.kind]


def text_of(default: Any, kind: Kind) -> str:
    """Format a default as on the command line."""
    if default is None:
        return ""
    if isinstance(kind, Numbered):
        return str(kind.values.index(default))
    return f"{default:g}" if isinstance(default, float) else str(default)


files, long_runs, other = map(group, ("Files", "Long runs", "Other"))

# an entry: spelling, parameter, type; line of --help; details; other properties
# fmt: off
SHARED = {
    "lenient": files("--lenient", "lenient", None,
        "accept malformed data lines that svm-train accepts",
        "These are spaces after a colon, trailing words without a colon (ignored), and hexadecimal "
        "numbers. nan, inf and index 0 remain errors."),
    "format": files("--format NAME", "format", OneOf(FORMATS),
        "csv, tsv, parquet, arrow or libsvm",
        "The ending of the file name tells the format by default: .csv, .tsv, .tab, .parquet, .pq, "
        ".arrow, .feather, also with .gz, .bz2 or .xz; any other file is LIBSVM text. pyarrow "
        "(extra tables) reads tables; without it only tables of numbers in csv or tsv.",
        default_text="by the file name"),
    "label": files("--label COLUMN", "label", None,
        "label column of a table: name or number",
        "The default is a column named target, label, class or y, else the last one."),
    "drop": files("--drop COLUMNS", "drop", None,
        "columns of a table to leave out, by commas",
        multiple=True),
    "balanced": group("Problem")("--balanced", "is_balanced", None,
        "C-SVC: class weights n / (classes * n_class)",
        "-w balanced is the same."),
    "weight": files("--weight COLUMN", "weight", None,
        "column of a table with sample weights",
        "A row of weight 2 counts as two rows, in training but not in figures on held-out rows of "
        "dcsvm-easy."),
    "scale": files("--scale FILE", "scale_file", INPUT,
        "scale the data by a range file of svm-scale -s",
        "A model of --scale auto or quantile does not need it."),
    "scale or auto": files("--scale NAME|FILE", "scale_file", SCALING,
        "scale: auto, quantile, or by a range file",
        "auto scales each feature of the training set to [-1, 1], as svm-scale does; quantile maps "
        "its values to a normal distribution by their ranks. The model has the scaling and applies "
        "it. auto also writes MODEL_FILE.range, which svm-scale can read. A range file that is "
        "given is not stored: give it to dcsvm-predict, too. A file named auto is given as "
        "./auto."),
    "report": files("--report FILE", "report_file", OUTPUT,
        "write times, counts and results as JSON"),
    "shrinking": other("-h 0|1", "shrinking", NO_OR_YES,
        "shrinking of LIBSVM: accepted, no effect",
        "Shrinking is always on; all gradients are reconstructed at the end.",
        expose_value=False),
    "version": click.version_option(dcsvm.__version__, message="%(prog)s %(version)s",
        help="print the version and exit", cls=GroupedOption, group="Other"),
    # -h is shrinking in LIBSVM
    "help": click.help_option("--help", help="print this help and exit",
        cls=GroupedOption, group="Other"),
}
# fmt: on


def shared(*names: str) -> Decorator:
    """Return a decorator that adds the SHARED options of these names."""
    return with_options(*(SHARED[name] for name in names))
