"""Base class of the commands: LIBSVM's option syntax, grouped help, one-sentence errors.

svm-train reads only the first letter after a dash: `-cost 5` is `-c 5`. The next argument is the
value, even if it starts with a dash: `-r -1`. Only -w has its label attached: `-w-1 5`. Options
with two dashes keep Click's syntax. svm-grid's words with one dash (`-log2c`) are read whole. Here
`-gap` and `-g0.5` are errors; svm-train would read both as `-g`.
"""

import contextlib
from collections.abc import Callable, Sequence
from typing import Any, NoReturn

import click

from dcsvm.cli.guard import FAILED, USAGE, as_typed
from dcsvm.cli.options import (
    STANDARD_OUTPUT,
    GroupedOption,
    point_at_nothing,
    print_status,
    reason_of,
)

# option: names in other software, such as scikit-learn or LightGBM; lower case, _ for -
WORDS = {
    "-s": "svm_type svm type task objective application",
    "-t": "kernel kernel_type",
    "-c": "c cost penalty",
    "-g": "gamma",
    "-d": "degree",
    "-r": "coef0 coef",
    "-n": "nu",
    "-p": "epsilon eps",
    "-e": "tol tolerance stop_criterion",
    "-w": "class_weight class_weights weight scale_pos_weight is_unbalance",
    "-b": "probability probabilities proba",
    "-v": "cv fold folds n_folds n_splits nfold cross_validation",
    "-m": "cache cache_mb cache_size memory max_memory",
    "-h": "shrinking",
    "-q": "quiet silent verbose verbosity",
    "--max-iter": "max_iterations iterations num_iterations n_iter",
    "--threads": "n_jobs jobs num_threads n_threads nthread nthreads num_thread thread",
    "--seed": "random_state random_seed",
    "--test": "test_data valid valid_data validation",
    "--scale": "scaling scaler normalize standardize",
    "--init-model": "input_model model_in warm_start",
    "--decision-values": "decision_function decision raw_score predict_raw_score",
}
OPTION_OF = {word: option for option, words in WORDS.items() for word in words.split()}
BALANCED = "--balanced"  # -w balanced
MIN_SIMILARITY = 0.75  # difflib's ratio; it is 0.5 for --gap and --gamma


def for_click(args: list[str], parameters: list[click.Parameter]) -> list[str]:
    """Rewrite arguments for Click: each option as a separate word, followed by its values.

    `-w balanced` becomes the flag BALANCED.
    An option with two values is LIBSVM's `-wi`: the first value is attached to the letter. Raises
    click.UsageError.
    """
    options = {name: option for option in parameters for name in option.opts}
    remaining = list(args)
    rewritten: list[str] = []
    while remaining:
        word = remaining.pop(0)
        if word == "--":
            return [*rewritten, word, *remaining]
        # a flag, since -w takes a label and a factor
        is_balanced = word == "-w" and [one.lower() for one in remaining[:1]] == [BALANCED[2:]]
        if is_balanced and BALANCED in options:
            rewritten.append(BALANCED)
            del remaining[0]
            continue
        # one dash and a letter, unless the command has the whole word, as svm-grid has
        is_whole = len(word) > 2 and word in options
        is_letter = len(word) > 1 and word[0] == "-" and word[1] != "-" and not is_whole
        name = word[:2] if is_letter else word
        option = options.get(name)
        if not isinstance(option, click.Option):
            rewritten.append(word)
            continue
        # the values, of which the first is attached to the letter if there are two
        rewritten.append(name)
        n_values = 0 if option.is_flag else option.nargs
        if is_letter and n_values == 2:
            if len(word) == 2:
                raise click.UsageError(f"the label follows {name} without a space, as in {name}1 5")
            rewritten.append(word[2:])
            n_values = 1
        elif is_letter:
            check_rest(word, options)
        if len(remaining) < n_values:
            raise click.UsageError(f"the option {word} requires a value")
        rewritten += remaining[:n_values]
        del remaining[:n_values]
    return rewritten


def check_rest(word: str, options: dict[str, click.Parameter]) -> None:
    """Raise click.UsageError if a dash is missing, or if a value is attached to the letter."""
    if f"-{word}" in options:
        raise click.UsageError(f"no such option: {word} (write -{word})")
    if not (word[2:] + "a").isalpha():
        raise click.UsageError(
            f"no such option: {word} (a value is the next argument, as in "
            f"{word[:2]} {word[2:].lstrip('=')})"
        )


def advice_on(name: str, parameters: list[click.Parameter]) -> str:
    """Return a hint in parentheses, or an empty string if no option is similar."""
    options = [one for parameter in parameters for one in parameter.opts if one.startswith("-")]
    word = name.strip("-").lower().replace("-", "_")
    meant = OPTION_OF.get(word)
    if meant in options:
        return f" ({word} is {meant})"
    from difflib import get_close_matches

    known = {option.lstrip("-").replace("-", "_"): option for option in options if len(option) > 2}
    near = get_close_matches(word, known, n=1, cutoff=MIN_SIMILARITY)
    return f" (did you mean {known[near[0]]}?)" if near else ""


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
    `prepare_args` inserts values that users may omit.
    """

    def __init__(
        self,
        name: str,
        *,
        examples: Pairs,
        statuses: Pairs,
        files: Pairs,
        see_also: Sequence[str],
        prepare_args: Callable[[list[str]], list[str]] = list,
        **kwargs: Any,
    ):
        super().__init__(name, options_metavar="[options]", **kwargs)
        self.context_settings = {"max_content_width": 100, **self.context_settings}
        self.examples, self.statuses = examples, statuses
        self.files, self.see_also, self.prepare_args = files, see_also, prepare_args

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
        every = [option for group in self.groups(ctx).values() for option in group]
        formatter.write_paragraph()
        with formatter.indentation():
            formatter.write_dl([one.get_help_record(ctx) for one in every if one.is_basic])
        formatter.write(f"\n{ctx.command_path} --help has all options and examples.")
        return formatter.getvalue()

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        args = self.prepare_args(args)
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
            print_status(f"error: {STANDARD_OUTPUT}: {reason_of(error)}")
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
