"""How an option is declared: in a group of the help, with its default from the training options;
and the options that both commands have."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import click

import dcsvm
from dcsvm.cli.values import FILE, WHOLE, Numbered
from dcsvm.problem.options import TrainOptions

DEFAULTS = TrainOptions()


class GroupedOption(click.Option):
    """An option under a title of the help. `default_text` is what holds where it is not given;
    `details` are sentences that only the manual page has. `is_basic` options are in the usage."""

    def __init__(self, *names, group: str, default_text="", details="", is_basic=False, **how):
        super().__init__(*names, **how)
        self.group, self.details, self.is_basic = group, details, is_basic
        self.default_text = default_text or default_of(self)

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


def default_of(option: GroupedOption) -> str:
    """The default of a training option as text, if there is one."""
    default = getattr(DEFAULTS, option.name, None)
    if default is None or option.is_flag:
        return ""
    if isinstance(option.type, Numbered):
        return str(option.type.values.index(default))
    return f"{default:g}" if isinstance(default, float) else str(default)


def group(title: str) -> Callable:
    """The decorator that adds an option under this title."""
    return partial(click.option, cls=GroupedOption, group=title)


files, long_runs, other = map(group, ("Files", "Long runs", "Other"))

lenient_option = files(
    "--lenient",
    is_flag=True,
    help="accept blanks and comments in lines as svm-train does",
    details="In a data line: blanks after a colon, words without a colon at the end (dropped), "
    "hexadecimal numbers. nan, inf and index 0 stay errors.",
)
scale_option = files(
    "--scale",
    "scale_file",
    type=FILE,
    metavar="FILE",
    help="scale the data by a range file of svm-scale -s",
    details="A model of --scale auto needs none: MODEL_FILE.range is found.",
)
training_scale_option = files(
    "--scale",
    "scale_file",
    type=FILE,
    metavar="FILE|auto",
    help="scale the data by a range file of svm-scale, or auto",
    details="auto scales every feature of the training set to [-1, 1], as svm-scale does, and "
    "writes the ranges to MODEL_FILE.range, where dcsvm-predict finds them. Of another range file "
    "the model knows nothing: give it to both commands. ./auto is a file of that name.",
)
version_option = click.version_option(
    dcsvm.__version__,
    message="%(prog)s %(version)s",
    cls=GroupedOption,
    group="Other",
    help="print the version",
)
# -h is LIBSVM's shrinking option, so help has only its long name
help_option = click.help_option("--help", cls=GroupedOption, group="Other", help="print this")


def threads_option(group: Callable) -> Callable:
    return group(
        "--threads",
        type=WHOLE,
        metavar="N",
        default_text="the usable cores",
        help="threads to use",
        details="The default is OMP_NUM_THREADS, else the cores that this process may use.",
    )
