"""Base class of the commands: LIBSVM's option syntax, grouped help, one-sentence errors."""

import contextlib
from collections.abc import Sequence
from typing import Any, NoReturn

import click

from dcsvm.cli.files import OUTPUT, point_at_nothing, print_status, reason_of
from dcsvm.cli.guard import FAILED, USAGE, as_typed
from dcsvm.cli.libsvm_syntax import advice_on, for_click
from dcsvm.cli.options import GroupedOption

Pairs = Sequence[tuple[str, str]]

DATA_FILE = (
    "one row per line, LABEL INDEX:VALUE ..., or a table (CSV, TSV, Parquet, Arrow); also packed "
    "by gzip, bzip2 or xz"
)


def exit_statuses(*, done: str, missed: str = "", stopped: str) -> Pairs:
    """Return the exit statuses of a command and their meanings.

    `missed` is the meaning of status 3, which only commands that train have.
    """
    return (
        ("0", done),
        ("1", "failed; one sentence on stderr gives the reason"),
        ("2", "wrong usage"),
        *([("3", missed)] if missed else []),
        ("130, 143, 129", f"SIGINT, SIGTERM, SIGHUP: {stopped}"),
    )


class LibsvmCommand(click.Command):
    """Command with the argument syntax of svm-train; wrong usage exits with status 2.

    `examples` are pairs (command line, result), `statuses` are pairs (exit status, meaning). Only
    the manual page shows `files`, pairs (name, content), and `see_also`, names of other pages.
    """

    def __init__(
        self,
        name: str,
        *,
        examples: Pairs,
        statuses: Pairs,
        files: Pairs,
        see_also: Sequence[str],
        **kwargs: Any,
    ):
        super().__init__(name, options_metavar="[options]", **kwargs)
        self.context_settings = {"max_content_width": 100, **self.context_settings}
        self.examples, self.statuses = examples, statuses
        self.files, self.see_also = files, see_also

    def groups(self, ctx: click.Context) -> dict[str, list[GroupedOption]]:
        """Return the options of each group by its title, in the order of declaration."""
        groups: dict[str, list[GroupedOption]] = {}
        for parameter in self.get_params(ctx):
            if isinstance(parameter, GroupedOption):
                groups.setdefault(parameter.group, []).append(parameter)
        return groups

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        groups: dict[str, Pairs] = {
            title: [option.get_help_record(ctx) for option in options]
            for title, options in self.groups(ctx).items()
        }
        groups |= {"Exit status": self.statuses}
        width = max(len(term) for rows in groups.values() for term, _ in rows)
        for title, rows in groups.items():
            with formatter.section(title):
                formatter.write_dl([(term.ljust(width), text) for term, text in rows])

    def format_epilog(self, _ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Examples"):
            for line, text in self.examples:
                formatter.write(f"  {line}\n      {text}\n")

    def short_usage(self, ctx: click.Context) -> str:
        """Format the usage and the basic options, for a call without arguments."""
        formatter = ctx.make_formatter()
        self.format_usage(ctx, formatter)
        basic = [one for group in self.groups(ctx).values() for one in group if one.is_basic]
        formatter.write_paragraph()
        with formatter.indentation():
            formatter.write_dl([option.get_help_record(ctx) for option in basic])
        formatter.write(f"\n{ctx.command_path} --help has all options and examples.")
        return formatter.getvalue()

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        if ctx.resilient_parsing:  # shell completion: the last option may lack its value
            with contextlib.suppress(click.UsageError):
                args = for_click(args, self.params)
            return super().parse_args(ctx, args)
        if not args:
            print_status(self.short_usage(ctx))
            ctx.exit(USAGE)
        try:
            return super().parse_args(ctx, for_click(args, self.params))
        except click.UsageError as error:
            complain(ctx, error)
        except OSError as error:  # --help or --version cannot be written
            point_at_nothing(1)
            print_status(f"error: {OUTPUT}: {reason_of(error)}")
            ctx.exit(FAILED)

    def invoke(self, ctx: click.Context) -> None:
        try:
            super().invoke(ctx)
        except click.UsageError as error:
            complain(ctx, error)
        except ValueError as error:  # of an option, before any file is read; `run` reports others
            if not hasattr(error, "option"):
                raise
            complain(ctx, click.UsageError(as_typed(error)))


def complain(ctx: click.Context, error: click.UsageError) -> NoReturn:
    """Print a usage error as one sentence and exit with status 2."""
    sentence = " ".join(sentence_of(error, ctx.command.params).split()).rstrip(".")
    if sentence[:1].isupper() and sentence[1:2].islower():
        sentence = sentence[0].lower() + sentence[1:]
    print_status(f"error: {sentence}; see {ctx.command_path} --help")
    ctx.exit(USAGE)


def sentence_of(error: click.UsageError, parameters: list[click.Parameter]) -> str:
    """Format Click's message; add a hint for an unknown option, or the name of a known one."""
    if isinstance(error, click.NoSuchOption):
        name = error.option_name
        return f"no such option: {name}{advice_on(name, parameters)}"
    if (
        isinstance(error, click.BadParameter)
        and not isinstance(error, click.MissingParameter)
        and isinstance(error.param, click.Option)
    ):
        return f"{error.param.opts[0]}: {error.message}"
    return error.format_message()
