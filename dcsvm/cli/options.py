"""Options of the commands, from tables of options, and their files.

The tables of the options that several commands share are here, with the conditions that exclude
each other, which are tables, too. All files of a command are checked before it begins.
"""

from __future__ import annotations

import errno
import os
import sys
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, TypeAlias

import click

import dcsvm
from dcsvm import system
from dcsvm.problem.option_table import Rule
from dcsvm.problem.options import DataOptions, TrainOptions

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

    Parameter: TypeAlias = click.Parameter | None
    Context: TypeAlias = click.Context | None
    Type: TypeAlias = click.ParamType | tuple[click.ParamType, ...]


STANDARD_OUTPUT = "standard output"
STANDARD_INPUT = ("-", "/dev/stdin")
# values of --scale: by the ranges or by the quantiles of the training set
AUTO, QUANTILE = "auto", "quantile"
LEARN, BALANCED, MEDIAN = "learn", "balanced", "median"


def print_result(line: str) -> None:
    """Print a line of results on stdout. Raises OSError that names standard output."""
    try:
        if sys.stdout is None:
            raise OSError(errno.EBADF, os.strerror(errno.EBADF))
        click.echo(line)
    except OSError as error:
        point_at_nothing(1)  # otherwise Python reports unwritten output at exit
        raise OSError(error.errno, error.strerror, STANDARD_OUTPUT) from None


def show_beside(*outputs: str | None) -> Callable[[str], None]:
    """Return `print_result`, or `print_status` if an output file is standard output."""
    return print_status if {"-", "/dev/stdout"} & set(outputs) else print_result


def print_status(line: str) -> None:
    """Print a line of status on stderr; write errors are ignored."""
    try:
        click.echo(line, err=True)
    except OSError:
        point_at_nothing(2)


def reason_of(error: OSError) -> str:
    """Format an error as FILE: REASON."""
    reason = (error.strerror or str(error)).lower()
    return f"{error.filename}: {reason}" if error.filename else reason


def occupy_closed() -> None:
    """Open the null device for closed standard streams, so that no file gets their descriptors.

    Reading or writing such a stream remains an error.
    """
    for stream in range(3):
        try:
            os.fstat(stream)
        except OSError:
            os.open(os.devnull, os.O_WRONLY if stream == 0 else os.O_RDONLY)
    if sys.stderr is None:
        sys.stderr = open(os.devnull, "w")  # noqa: SIM115 (until the process ends)


def point_at_nothing(stream: int) -> None:
    """Redirect a descriptor to the null device."""
    null = os.open(os.devnull, os.O_WRONLY)
    os.dup2(null, stream)
    os.close(null)


def is_stream(path: str) -> bool:
    """Return whether an output is standard output, a device or a pipe."""
    if path in ("-", "/dev/stdout"):
        return True
    return os.path.exists(path) and not os.path.isfile(path) and not os.path.isdir(path)


def check_files(parameters: Sequence[click.Parameter], job: DataJob) -> None:
    """Raise OSError or DataError for a file of a job that cannot be read or written.

    An output must not replace another file.
    """
    named = list(_named_files(parameters, job))
    outputs = [(name, file, path) for name, file, path in named if file.is_output]
    written = {(name, os.path.realpath(path)) for name, _, path in outputs}
    kept = []  # paths that no output may replace
    for _, file, path in named:
        if file.is_output:
            continue
        # the input of --resume is the output of --checkpoint, say, and may not exist yet
        is_continued = (file.continued_by, os.path.realpath(path)) in written
        if not is_continued:
            kept.append(path)
        may_lack = file.is_awaited or (file.is_folder and is_continued)
        if path != job.remote_file and not (may_lack and not os.path.exists(path)):
            _check_input(file, path)
    written_files = [(path, file.is_folder) for _, file, path in outputs]
    if job.range_file is not None:
        written_files.append((job.range_file, False))
    for path, is_folder in written_files:
        if is_folder or not is_stream(path):
            check_output(path, kept, is_folder=is_folder)
            kept.append(path)


def _named_files(
    parameters: Sequence[click.Parameter], job: DataJob
) -> Iterator[tuple[str, Any, str]]:
    """Yield parameter, FileKind and name of each file that the job has."""
    for parameter in parameters:
        value: Any = getattr(job, parameter.name or "", None)
        if not value:
            continue
        types: Sequence[click.ParamType] = [parameter.type]
        if isinstance(parameter.type, click.Tuple):
            types = parameter.type.types
        for kind, path in zip(types, value if len(types) > 1 else [value], strict=True):
            file = kind.rule.file if isinstance(kind, OptionType) else None
            if file is not None and path not in file.words:
                yield parameter.name or "", file, path


def _check_input(file: Any, path: str) -> None:
    if file.is_folder:
        if not os.path.isdir(path):
            raise FileNotFoundError(2, "no such folder", path)
    elif not is_stream(path):
        if not os.path.exists(path):
            raise FileNotFoundError(2, "no such file", path)
        with open(path, "rb"):
            pass


def check_output(path: str, others: Sequence[str], *, is_folder: bool = False) -> None:
    """Raise OSError if an output cannot be written, or is one of `others`."""
    if os.path.realpath(path) in map(os.path.realpath, others):
        raise FileExistsError(17, "the output would replace another file of the command", path)
    if os.path.isdir(path) and not is_folder:
        raise IsADirectoryError(21, "is a directory", path)
    if os.path.exists(path) and not os.path.isdir(path) and is_folder:
        raise NotADirectoryError(20, "is not a folder", path)
    if os.path.exists(path) and not os.access(path, os.W_OK):
        raise PermissionError(13, "is not writable", path)
    folder = os.path.dirname(os.path.abspath(path))
    if not os.path.isdir(folder):
        raise FileNotFoundError(2, "no such folder", folder)
    if not os.access(folder, os.W_OK):
        raise PermissionError(13, "folder is not writable", folder)


class OptionType(click.ParamType):
    """Click type of a rule. `parse` converts text; its ValueError ends the error message.

    `values` are those that the numbers 0, 1, ... stand for.
    """

    def __init__(
        self,
        rule: Rule,
        parse: Callable[[str], object] | None = None,
        values: Sequence[object] = (),
    ):
        self.name, self.rule = rule.kind, rule
        self.parse, self.values = parse or rule.parse or str, values

    def convert(self, value: Any, param: Parameter, ctx: Context) -> object:
        if not isinstance(value, str):
            return value
        try:
            return self.parse(value)
        except ValueError as error:
            self.fail(f"{value!r} {error}", param, ctx)

    def shell_complete(
        self, _ctx: click.Context, _param: click.Parameter, incomplete: str
    ) -> list[CompletionItem]:
        from click.shell_completion import CompletionItem

        if self.rule.file is not None:
            is_folder = self.rule.file.is_folder
            return [CompletionItem(incomplete, type="dir" if is_folder else "file")]
        items = [CompletionItem(str(k), help=str(value)) for k, value in enumerate(self.values)]
        return [item for item in items if item.value.startswith(incomplete)]


def _named(rule: Rule, text: str) -> str:
    """Return the name that is given by index as in LIBSVM, as it is, or by its spelling."""
    index = rule.index_of(text)
    if index < 0:
        known = [str(number) for number in range(len(rule.names))]
        if rule.spellings:
            known = [" ".join(pair) for pair in zip(known, rule.spellings, strict=True)]
        raise ValueError(f"is not {', '.join(known[:-1])} or {known[-1]}")
    return rule.names[index]


def _zero_or_one(text: str) -> bool:
    if text not in ("0", "1", "False", "True"):
        raise ValueError("is not 0 or 1")
    return text in ("1", "True")


def _label(text: str) -> float | str:
    """Return a label: a number, or other text."""
    try:
        return float(text)
    except ValueError:
        return text


def type_of(option: Any) -> Type:
    """Return the Click type of an option of a table; one-letter options take an index of a name."""
    rule = option.rule
    if rule.members:
        return tuple(map(OptionType, rule.members))
    if option.value == "0|1":
        return OptionType(rule, _zero_or_one, (False, True))
    if option.value == "LABEL FACTOR":
        return OptionType(rule, _label), OptionType(TrainOptions.rule("C"))
    if rule.names and len(option.names[0]) > 2:
        return click.Choice(rule.names, case_sensitive=False)
    return OptionType(rule, partial(_named, rule) if rule.names else None, rule.names)


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


def parameters(titles: Sequence[str], *tables: Iterable[click.Parameter]) -> list[click.Parameter]:
    """Return the arguments of tables, see `of_table`, and their options in the groups `titles`."""
    every = [parameter for table in tables for parameter in table]
    arguments = [one for one in every if isinstance(one, click.Argument)]
    options = [one for one in every if isinstance(one, GroupedOption) and one.group in titles]
    return [*arguments, *sorted(options, key=lambda one: titles.index(one.group))]


def of_table(
    table: Any,
    names: Collection[str] | None = None,
    title: str = "",
    **callbacks: Callable[..., None],
) -> Iterator[click.Parameter]:
    """Yield the parameters of a table, or those of `names`, in the groups of the table or `title`.

    `callbacks` are called with the values of their options at once, instead of the command.
    """
    for name, option, default in table.entries():
        if not option.spelling or (names is not None and name not in names):
            continue
        # "[FILE]" may be left out, as in the usage line
        if option.is_argument:
            is_required = option.spelling[0] != "["
            yield click.Argument([name], type=type_of(option), required=is_required)
            continue
        kwargs: dict[str, Any] = {"is_flag": True}
        if option.value:
            kind = type_of(option)
            kwargs = {"type": kind, "metavar": option.value, "multiple": option.is_multiple}
            kwargs["default_text"] = option.default_text or text_of(default, kind)
        if name in callbacks:
            kwargs |= {"callback": callbacks[name], "is_eager": True, "expose_value": False}
        yield GroupedOption(
            [*option.names, name], group=title or option.group, help=option.help,
            details=option.details, is_basic=option.is_basic, **kwargs,
        )  # fmt: skip


def text_of(default: Any, kind: Type) -> str:
    """Format a default as on the command line."""
    if default is None or default == ():
        return ""
    if isinstance(kind, OptionType) and kind.values:
        return str(kind.values.index(default))
    return f"{default:g}" if isinstance(default, float) else str(default)


def print_version(ctx: click.Context, _option: click.Parameter, is_given: bool) -> None:
    """Print the command with the version, then a line for each feature."""
    if not is_given or ctx.resilient_parsing:
        return
    click.echo(f"{ctx.info_name} {dcsvm.__version__}")
    for name, value in system.features():
        click.echo(f"{name}: {value}")
    ctx.exit()


VERSION = click.option(
    "--version", help="print version and features, and exit", callback=print_version,
    is_flag=True, is_eager=True, expose_value=False, cls=GroupedOption, group="Other",
)  # fmt: skip
# -h is shrinking in LIBSVM
HELP = click.help_option(
    "--help", help="print this help and exit", cls=GroupedOption, group="Other"
)


option = DataOptions.option
of_files, of_long_runs, of_other, of_problem, of_levels, of_output, of_settings, of_search = (
    partial(option, group=title)
    for title in (
        "Files", "Long runs", "Other", "Problem", "Levels", "Output", "Settings", "Search",
    )
)  # fmt: skip

INPUT, OUTPUT = Rule.path(*STANDARD_INPUT), Rule.path(is_output=True)
MODEL = Rule.path()  # "-" is an ordinary name
SECONDS = Rule.number("above 0", lambda seconds: seconds > 0)  # inf: no limit
# a sentence for people, and when it is true of a job and its training options
Conditions = Sequence[tuple[Callable[[Any, Any], object], str]]


def check(conditions: Iterable[Conditions], job: Any, options: Any = None) -> None:
    """Raise UsageError with the sentence of the first condition that is true.

    `{job.NAME}` and `{options.NAME}` in a sentence stand for values.
    """
    for table in conditions:
        for is_true, sentence in table:
            if is_true(job, options):
                raise click.UsageError(sentence.format(job=job, options=options))


# fmt: off
@dataclass(frozen=True, kw_only=True, init=False, eq=False, repr=False)
class DataJob(DataOptions):
    """What commands on data share. A file is an option whose rule is a path."""

    report_file: str | None = of_files(None, OUTPUT.optional, "--report FILE",
        "write times, counts and results as JSON")
    quiet: bool = of_other(False, Rule.flag(), "-q", "print only errors")

    @property
    def range_file(self) -> str | None:
        """The path of the range file that the command writes, or None."""
        return None

    @property
    def remote_file(self) -> str | None:
        """The path of the input that other machines read, or None."""
        return None

    @property
    def reading(self) -> dict[str, Any]:
        """The options of Dataset.read for each file."""
        header = True if self.header else False if self.no_header else None
        return {
            "format": self.format, "header": header, "label": self.label, "lenient": self.lenient
        }  # fmt: skip


@dataclass(frozen=True, kw_only=True, init=False, eq=False, repr=False)
class TrainingJob(DataJob):
    """Options that dcsvm-train and dcsvm-grid share."""

    training_set_file: str = option("", INPUT, "TRAINING_SET_FILE")
    model_file: str | None = option(None, OUTPUT.optional, "[MODEL_FILE]")
    balanced: bool = of_problem(False, Rule.flag(), "--balanced",
        "C-SVC: give all classes the same total weight",
        "The weight of a class is n / (classes * its rows). -w balanced is the same option.")
    n_folds: int | None = of_problem(None, Rule.integer(2).optional, "-v N",
        "N-fold cross-validation; writes no model",
        "It prints the accuracy, or the errors of a regression.",
        is_basic=True)
    test_file: str | None = of_levels(None, INPUT.optional, "--test FILE",
        "choose the early level by the error on this file",
        "It needs --early and --early-level auto. The search starts from the finest level and "
        "tries coarser ones as long as they are better.")
    time_limit: float | None = of_long_runs(None, SECONDS.optional, "--time-limit SEC",
        "stop after SEC seconds, write the current model",
        "The time includes reading.")
    shrinking: bool = of_other(True, Rule.flag(), "-h 0|1",
        "LIBSVM's shrinking: accepted, without effect",
        "Shrinking is always on; all gradients are reconstructed at the end.")

    @property
    def range_file(self) -> str | None:
        is_written = self.scale == AUTO and self.model_file and not is_stream(self.model_file)
        return f"{self.model_file}.range" if is_written else None


OF_TABLES: Conditions = (
    (lambda job, _: job.of_tables and job.format_of(job.training_set_file) is None,
     "{job.of_tables[0]} is for tables: {job.training_set_file} is read as LIBSVM text; --format "
     "names another format"),
    (lambda job, _: job.header and job.no_header, "--header and --no-header exclude each other"),
)
WITH_SCALE: Conditions = (
    *OF_TABLES,
    (lambda job, _: job.feature_weights and job.scale not in (None, AUTO, QUANTILE),
     "--weights needs --scale auto or quantile, not a file"),
)
SHARED: Conditions = (
    (lambda job, _: job.test_file == job.training_set_file == "-",
     "the training set and --test cannot both be standard input"),
    (lambda job, options: options.kernel_type.is_precomputed and job.scale,
     "a precomputed kernel cannot be scaled (--scale)"),
    *WITH_SCALE,
)


NOT_AUTO: Conditions = (
    (lambda job, _: job.scale in (AUTO, QUANTILE),
     "--scale {job.scale} is for training: the model has its scaling"),
)


def scale_by_file() -> Any:
    """Return the option --scale of commands that predict, whose models have other scalings."""
    return of_files(None, INPUT.optional, "--scale FILE",
        "scale the data by a range file of svm-scale -s",
        "A model of --scale auto or quantile does not need it.")
# fmt: on


def training_options(given: dict[str, Any]) -> TrainOptions:
    """Make training options from the values of a command. Raises OptionError."""
    gamma = given.get("gamma") or None  # 0 is LIBSVM's default
    return TrainOptions.taken(given | {"class_weight": class_weight(given), "gamma": gamma})


def class_weight(given: dict[str, Any]) -> dict[float | str, float] | str | None:
    """Return {label: factor}, or BALANCED; repeated factors are multiplied, as in LIBSVM."""
    factors: dict[float | str, float] = {}
    for label, factor in given["class_weight"]:
        TrainOptions.check("class_weight", {label: factor})
        factors[label] = factors.get(label, 1.0) * factor
    if factors and given["balanced"]:
        raise click.UsageError("give --balanced or -wLABEL FACTOR, not both")
    return BALANCED if given["balanced"] else factors or None


def name_beside(path: str | None, ending: str) -> str | None:
    """Return the name of a file in the current folder that is made from `path`."""
    if path is None or path in STANDARD_INPUT:
        return None
    return f"{os.path.basename(path)}.{ending}"
