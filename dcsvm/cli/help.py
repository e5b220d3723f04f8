"""What a command says of itself: --help with its options in groups, and a short usage."""

from __future__ import annotations

import click

WIDEST = 100  # columns


def exit_statuses(*, done: str, missed: str = "", stopped: str) -> tuple[tuple[str, str], ...]:
    """List (exit status, meaning) of a command; only commands that train have a `missed`."""
    return (
        ("0", done),
        ("1", "failed; one sentence says why"),
        ("2", "wrong usage"),
        *([("3", missed)] if missed else []),
        ("130, 143, 129", f"SIGINT, SIGTERM, SIGHUP: {stopped}"),
    )


class CommandHelp(click.Command):
    """`examples` are (command line, what it does), `statuses` (exit status, what it means); only
    the manual page has the `files` (name, what it is) and the names of other pages, `see_also`."""

    def __init__(self, *args, examples, statuses, files, see_also, **how):
        super().__init__(*args, options_metavar="[options]", **how)
        self.context_settings = {"max_content_width": WIDEST, **self.context_settings}
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
