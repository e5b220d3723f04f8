"""The class of both commands: Click's, with LIBSVM's option syntax and errors of one sentence."""

from __future__ import annotations

import contextlib

import click

from dcsvm.cli.guard import FAILED, USAGE, as_typed
from dcsvm.cli.help import CommandHelp
from dcsvm.cli.libsvm_syntax import for_click
from dcsvm.cli.streams import OUTPUT, point_at_nothing, reason_of, say
from dcsvm.problem.option_rules import OptionError


class LibsvmCommand(CommandHelp):
    """A command that reads its arguments as svm-train does; wrong usage is one sentence, exit 2."""

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
        from dcsvm.cli.words import advice_on

        name = error.option_name
        return f"no such option: {name}{advice_on(name, parameters)}"
    is_value = isinstance(error, click.BadParameter) and not isinstance(
        error, click.MissingParameter
    )
    if is_value and isinstance(error.param, click.Option):
        return f"{error.param.opts[0]}: {error.message}"
    return error.format_message()
