"""Make the options of a command from tables of options."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

import click

import dcsvm
from dcsvm.cli.file_types import FileName

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

    Parameter: TypeAlias = click.Parameter | None
    Context: TypeAlias = click.Context | None
    Kind: TypeAlias = click.ParamType | tuple[click.ParamType, ...] | None


class Plain(click.ParamType):
    """Click type of values that a function converts; its ValueError ends the error message."""

    def __init__(self, name: str, parse: Callable[[str], object]):
        self.name, self.parse = name, parse

    def convert(self, value: Any, param: Parameter, ctx: Context) -> object:
        if not isinstance(value, str):
            return value
        try:
            return self.parse(value)
        except ValueError as error:
            self.fail(f"{value!r} {error}", param, ctx)


class Numbered(click.ParamType):
    """Click type of the names of a rule, given by index as in LIBSVM, by name or by spelling."""

    name = "number of a name"

    def __init__(self, rule: Any):
        self.rule, self.values, self.spellings = rule, rule.names, rule.spellings

    def convert(self, value: Any, param: Parameter, ctx: Context) -> str | bool:
        number = self.rule.index_of(str(value))
        if number < 0:
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


class ZeroOrOne(click.ParamType):
    """Click type of LIBSVM's 0 and 1."""

    name, values, spellings = "0 or 1", (False, True), ()

    def convert(self, value: Any, param: Parameter, ctx: Context) -> bool:
        if str(value) not in ("0", "1", "False", "True"):
            self.fail(f"{value!r} is not 0 or 1", param, ctx)
        return str(value) in ("1", "True")

    def shell_complete(
        self, _ctx: click.Context, _param: click.Parameter, incomplete: str
    ) -> list[CompletionItem]:
        from click.shell_completion import CompletionItem

        items = [CompletionItem(str(int(one)), help=str(one)) for one in self.values]
        return [item for item in items if item.value.startswith(incomplete)]


def _label_of(text: str) -> float | str:
    """Return a label: a number, or other text."""
    try:
        return float(text)
    except ValueError:
        return text


def _factor_of(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise ValueError("is not a number") from None


LABEL_AND_FACTOR = Plain("label", _label_of), Plain("number", _factor_of)


def kind_of(option: Any) -> Kind:
    """Return the Click type of an option of a table; one-letter options take an index of a name."""
    rule = option.rule
    if rule.file is not None:
        return FileName(rule.file)
    if rule.members:
        return tuple(FileName(one.file) for one in rule.members)
    if option.value == "0|1":
        return ZeroOrOne()
    if option.value == "LABEL FACTOR":
        return LABEL_AND_FACTOR
    if rule.names:
        is_letter = bool(option.names) and len(option.names[0]) == 2
        return Numbered(rule) if is_letter else click.Choice(rule.names, case_sensitive=False)
    return None if rule.parse is None else Plain(rule.kind, rule.parse)


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


@dataclass(frozen=True, eq=False, repr=False)
class Some:
    """Some options of a table, by name, and the title of their group if it is another one."""

    table: Any
    names: Collection[str]
    title: str = ""


def parameters(
    titles: Sequence[str], *tables: Any, **callbacks: Callable[..., None]
) -> list[click.Parameter]:
    """Return the arguments, and the options in the groups `titles`, of tables or parts of tables.

    `callbacks` are called with the values of their options at once, instead of the command.
    """
    found: list[click.Parameter] = []
    for one in tables:
        some = one if isinstance(one, Some) else Some(one, one.names())
        found += _of_table(some, callbacks)
    arguments = [one for one in found if isinstance(one, click.Argument)]
    options = [one for one in found if isinstance(one, GroupedOption) and one.group in titles]
    return [*arguments, *sorted(options, key=lambda one: titles.index(one.group))]


def _of_table(some: Some, callbacks: dict[str, Any]) -> Iterator[click.Parameter]:
    for name, option, default in some.table.entries():
        if not option.spelling or name not in some.names:
            continue
        kind = kind_of(option)
        if option.is_argument:
            yield click.Argument([name], type=kind, required=option.spelling[0] != "[")
            continue
        kwargs: dict[str, Any] = {"is_flag": True}
        if option.value:
            kwargs = {"type": kind, "metavar": option.value, "multiple": option.is_multiple}
            kwargs["default_text"] = option.default_text or text_of(default, kind)
        if name in callbacks:
            kwargs |= {"callback": callbacks[name], "is_eager": True, "expose_value": False}
        yield GroupedOption(
            [*option.names, name], group=some.title or option.group, help=option.help,
            details=option.details, is_basic=option.is_basic, **kwargs,
        )  # fmt: skip


def text_of(default: Any, kind: Kind) -> str:
    """Format a default as on the command line."""
    if default is None or default == ():
        return ""
    if isinstance(kind, (Numbered, ZeroOrOne)):
        return str(kind.values.index(default))
    return f"{default:g}" if isinstance(default, float) else str(default)


VERSION = click.version_option(
    dcsvm.__version__, message="%(prog)s %(version)s", help="print the version and exit",
    cls=GroupedOption, group="Other",
)  # fmt: skip
# -h is shrinking in LIBSVM
HELP = click.help_option(
    "--help", help="print this help and exit", cls=GroupedOption, group="Other"
)
