"""How an option is declared: under a title of the help, by the table of a dataclass or by hand; and
the options that several commands have."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields
from functools import partial

import click

import dcsvm
from dcsvm.problem.option_table import Option, OptionTable, option_of


class Plain(click.ParamType):
    """What `plain` makes of a text, or raises ValueError; `reason` is what is said then."""

    def __init__(self, name: str, plain: Callable[[str], object], reason: str):
        self.name, self.plain, self.reason = name, plain, reason

    def convert(self, value, param, ctx):
        try:
            return self.plain(value)
        except ValueError:
            self.fail(f"{value!r} {self.reason}", param, ctx)


class Numbered(click.ParamType):
    """LIBSVM's number of a name, from 0, or the name."""

    name = "number of a name"

    def __init__(self, *values):
        self.values = values

    def convert(self, value, param, ctx):
        name = str(value).replace("-", "_")
        if name in self.values:
            return name
        try:
            number = int(value)
        except ValueError:
            number = -1
        if not 0 <= number < len(self.values):
            *others, last = map(str, range(len(self.values)))
            self.fail(f"{value!r} is not {', '.join(others)} or {last}", param, ctx)
        return self.values[number]

    def shell_complete(self, ctx, param, incomplete):
        from click.shell_completion import CompletionItem

        found = [CompletionItem(str(k), help=str(one)) for k, one in enumerate(self.values)]
        return [item for item in found if item.value.startswith(incomplete)]


class PowersOfTwo(click.ParamType):
    """svm-grid's begin,end,step of an exponent, as the exponents; none of null."""

    name = "begin,end,step"
    most = 1000

    def convert(self, value, param, ctx) -> tuple[float, ...]:
        if not isinstance(value, str) or value == "null":
            return () if value == "null" else value
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


class FileName(click.ParamType):
    """A name as it is given; whether the file is there is seen when it is opened."""

    name = "file"

    def __init__(self, kind: str = "file"):
        self.kind = kind

    def convert(self, value, param, ctx) -> str:
        return value

    def shell_complete(self, ctx, param, incomplete):
        from click.shell_completion import CompletionItem

        return [CompletionItem(incomplete, type=self.kind)]


NUMBER = Plain("number", float, "is not a number")
WHOLE = Plain("whole number", int, "is not a whole number")
LEVEL = Plain(
    "level",
    lambda value: value if value == "auto" else int(value),
    "is neither a whole number nor auto",
)
POWERS = PowersOfTwo()
NO_OR_YES = Numbered(False, True)
FILE, FOLDER = FileName(), FileName("dir")


TYPES = {  # by the kind of a rule
    "a number": NUMBER,
    "a whole number": WHOLE,
    "a whole number or 'auto'": LEVEL,
    "a dict of label: factor": (NUMBER, NUMBER),
}


class GroupedOption(click.Option):
    """An option under a title of the help. `default_text` is what holds where it is not given;
    `details` are sentences that only the manual page has. `is_basic` options are in the usage."""

    def __init__(self, *names, group: str, default_text="", details="", is_basic=False, **how):
        super().__init__(*names, **how)
        self.group, self.details, self.is_basic = group, details, is_basic
        self.default_text = default_text

    def get_help_record(self, ctx) -> tuple[str, str]:
        default = f" [{self.default_text}]" if self.default_text else ""
        spelling = f"{', '.join(self.opts)}{' ' * self.is_apart}{self.value}"
        return spelling, f"{self.help}{default}"

    @property
    def value(self) -> str:
        return "" if self.is_flag else self.metavar

    @property
    def is_apart(self) -> bool:
        """Whether a blank is between the name and the value, as is not in -wLABEL FACTOR."""
        return bool(self.value) and self.nargs == 1


def group(title: str) -> Callable:
    """Return what makes options under this title, as `declared` does."""
    return partial(declared, title)


def declared(
    title: str, spelling: str, name: str, kind=None, help="", details="", *, default=None, **rest
) -> Callable:
    """Return the decorator that adds an option under a title of the help: its `spelling` as in
    Option, the `name` of the parameter, and the Click type of the values, if it has any."""
    names = [word for word in spelling.split() if word[0] == "-"]
    value = spelling.removeprefix(" ".join(names)).strip()
    how = {"type": kind, "metavar": value} if value else {"is_flag": True}
    if default is not None:
        how |= {"default": default, "default_text": str(default)}
    how |= {"cls": GroupedOption, "group": title, "help": help, "details": details, **rest}
    return click.option(*names, name, **how)


def with_options(*options: Callable) -> Callable:
    """The decorator that adds some options, in their order."""

    def decorated(command):
        for option in reversed(options):
            command = option(command)
        return command

    return decorated


def table_options(table: type[OptionTable], *titles: str, of_grid: bool = False) -> Callable:
    """Return the decorator that adds the options of a table under these titles; `of_grid` leaves
    out those that dcsvm-grid lacks."""
    found = [
        table_option(table, one.name)
        for title in titles
        for one in fields(table)
        if option_of(one).group == title and (option_of(one).in_grid or not of_grid)
    ]
    return with_options(*found)


def table_option(table: type[OptionTable], name: str, title: str = "") -> Callable:
    """Return the decorator that adds one option of a table, under its own title by default."""
    field = table.__dataclass_fields__[name]
    own = option_of(field)
    how = {"default_text": own.default_text, "is_basic": own.is_basic}
    kind = None
    if own.value:
        kind = type_of(own)
        how["multiple"] = isinstance(kind, tuple)
        how["default_text"] = own.default_text or text_of(field.default, kind)
    return declared(title or own.group, own.spelling, name, kind, own.help, own.details, **how)


def type_of(own: Option):
    """Return the Click type of an option's values. LIBSVM's letters take the number of a name."""
    if own.value == "0|1":
        return NO_OR_YES
    if own.rule.names:
        is_letter = len(own.names[0]) == 2
        return Numbered(*own.rule.names) if is_letter else click.Choice(own.rule.names)
    return TYPES[own.rule.kind]


def text_of(default, kind) -> str:
    """Write a default as it is typed."""
    if default is None:
        return ""
    if isinstance(kind, Numbered):
        return str(kind.values.index(default))
    return f"{default:g}" if isinstance(default, float) else str(default)


files, long_runs, other = map(group, ("Files", "Long runs", "Other"))

# a row: spelling, parameter, type; line of --help; details; what else is known
# fmt: off
SHARED = {
    "lenient": files("--lenient", "lenient", None,
        "accept blanks and comments in lines as svm-train does",
        "In a data line: blanks after a colon, words without a colon at the end (dropped), "
        "hexadecimal numbers. nan, inf and index 0 stay errors."),
    "scale": files("--scale FILE", "scale_file", FILE,
        "scale the data by a range file of svm-scale -s",
        "A model of --scale auto needs none: MODEL_FILE.range is found."),
    "scale or auto": files("--scale FILE|auto", "scale_file", FILE,
        "scale the data by a range file of svm-scale, or auto",
        "auto scales every feature of the training set to [-1, 1], as svm-scale does, and "
        "writes the ranges to MODEL_FILE.range, where dcsvm-predict finds them. Of another range "
        "file the model knows nothing: give it to both commands. ./auto is a file of that name."),
    "report": files("--report FILE", "report_file", FILE, "write what happened as JSON"),
    "shrinking": other("-h 0|1", "shrinking", NO_OR_YES,
        "LIBSVM's shrinking: accepted, without effect",
        "Rows are always left out while they cannot matter, and looked at again at the end.",
        expose_value=False),
    "version": click.version_option(dcsvm.__version__, message="%(prog)s %(version)s",
        help="print the version", cls=GroupedOption, group="Other"),
    # -h is LIBSVM's shrinking option, so help has only its long name
    "help": click.help_option("--help", help="print this", cls=GroupedOption, group="Other"),
}
# fmt: on


def shared(*names: str) -> Callable:
    """Return the decorator that adds some of the options that several commands have."""
    return with_options(*(SHARED[name] for name in names))
