"""The class of all commands: Click's, with LIBSVM's option syntax, options in groups in the help,
and errors of one sentence."""

from __future__ import annotations

import contextlib

import click

from dcsvm.cli.files import OUTPUT, point_at_nothing, reason_of, say
from dcsvm.cli.guard import FAILED, USAGE, as_typed
from dcsvm.cli.libsvm_syntax import advice_on, for_click
from dcsvm.problem.option_rules import OptionError


def exit_statuses(*, done: str, missed: str = "", stopped: str) -> tuple[tuple[str, str], ...]:
    """List (exit status, meaning) of a command; only commands that train have a `missed`."""
    return (
        ("0", done),
        ("1", "failed; one sentence says why"),
        ("2", "wrong usage"),
        *([("3", missed)] if missed else []),
        ("130, 143, 129", f"SIGINT, SIGTERM, SIGHUP: {stopped}"),
    )


class LibsvmCommand(click.Command):
    """A command that reads its arguments as svm-train does; wrong usage is one sentence, exit 2.

    `examples` are (command line, what it does), `statuses` (exit status, what it means); only
    the manual page has the `files` (name, what it is) and the names of other pages, `see_also`."""

    def __init__(self, *args, examples, statuses, files, see_also, **how):
        super().__init__(*args, options_metavar="[options]", **how)
        self.context_settings = {"max_content_width": 100, **self.context_settings}
        self.examples, self.statuses = examples, statuses
        self.files, self.see_also = files, see_also

    def groups(self, ctx: click.Context) -> dict[str, list[click.Option]]:
        """The options by the titles of their groups, both in the order of their declaration."""
        found = {}
        for parameter in self.get_params(ctx):
            if isinstance(parameter, click.Option):
                found.setdefault(parameter.group, []).append(parameter)
        return found

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        groups = {
            title: [option.get_help_record(ctx) for option in options]
            for title, options in self.groups(ctx).items()
        }
        groups |= {"Exit status": self.statuses}
        width = max(len(term) for rows in groups.values() for term, _ in rows)
        for title, rows in groups.items():
            with formatter.section(title):
                formatter.write_dl([(term.ljust(width), text) for term, text in rows])

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Examples"):
            for line, text in self.examples:
                formatter.write(f"  {line}\n      {text}\n")

    def short_usage(self, ctx: click.Context) -> str:
        """What is said to somebody who gave no arguments."""
        formatter = ctx.make_formatter()
        self.format_usage(ctx, formatter)
        basic = [one for group in self.groups(ctx).values() for one in group if one.is_basic]
        formatter.write_paragraph()
        with formatter.indentation():
            formatter.write_dl([option.get_help_record(ctx) for option in basic])
        formatter.write(f"\n{ctx.command_path} --help has all options and examples.")
        return formatter.getvalue()

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        if ctx.resilient_parsing:  # a shell completes them: the value of the last may be missing
            with contextlib.suppress(click.UsageError):
                args = for_click(args, self.params)
            return super().parse_args(ctx, args)
        if not args:
            say(self.short_usage(ctx))
            ctx.exit(USAGE)
        try:
            return super().parse_args(ctx, for_click(args, self.params))
        except click.UsageError as error:
            complain(ctx, error)
        except OSError as error:  # help or version that cannot be written
            point_at_nothing(1)
            say(f"error: {OUTPUT}: {reason_of(error)}")
            ctx.exit(FAILED)

    def invoke(self, ctx: click.Context):
        try:
            return super().invoke(ctx)
        except click.UsageError as error:
            complain(ctx, error)
        except OptionError as error:  # before anything is read: see `run` for those that follow
            complain(ctx, click.UsageError(as_typed(error)))


def complain(ctx: click.Context, error: click.UsageError) -> None:
    sentence = " ".join(sentence_of(error, ctx.command.params).split()).rstrip(".")
    if sentence[:1].isupper() and sentence[1:2].islower():
        sentence = sentence[0].lower() + sentence[1:]
    say(f"error: {sentence}; see {ctx.command_path} --help")
    ctx.exit(USAGE)


def sentence_of(error: click.UsageError, parameters: list[click.Parameter]) -> str:
    """Click's, but that of a bad value begins with the option alone, and that of an option that is
    not there says which is meant."""
    if isinstance(error, click.NoSuchOption):
        name = error.option_name
        return f"no such option: {name}{advice_on(name, parameters)}"
    is_value = isinstance(error, click.BadParameter) and not isinstance(
        error, click.MissingParameter
    )
    if is_value and isinstance(error.param, click.Option):
        return f"{error.param.opts[0]}: {error.message}"
    return error.format_message()
