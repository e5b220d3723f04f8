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
from dcsvm.problem.option_table import Rule
from dcsvm.problem.options import DataOptions, TrainOptions

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

    Parameter: TypeAlias = click.Parameter | None
    Context: TypeAlias = click.Context | None
    Kind: TypeAlias = click.ParamType | tuple[click.ParamType, ...] | None


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


class FileName(click.ParamType):
    """Click type of the name of a file or folder; names are not converted.

    The attributes are those of the FileKind of the option's rule.
    """

    name = "file"

    def __init__(self, kind: Any):
        self.words, self.is_output, self.is_folder = kind.words, kind.is_output, kind.is_folder
        self.is_awaited, self.continued_by = kind.is_awaited, kind.continued_by

    def convert(
        self, value: str, _param: click.Parameter | None, _ctx: click.Context | None
    ) -> str:
        return value

    def shell_complete(
        self, _ctx: click.Context, _param: click.Parameter, incomplete: str
    ) -> list[CompletionItem]:
        from click.shell_completion import CompletionItem

        return [CompletionItem(incomplete, type="dir" if self.is_folder else "file")]


def check_files(parameters: Sequence[click.Parameter], job: DataJob) -> None:
    """Raise OSError or DataError for a file of a job that cannot be read or written.

    An output must not replace another file.
    """
    named = list(_named_files(parameters, job))
    outputs = [(name, kind, path) for name, kind, path in named if kind.is_output]
    written = {(name, os.path.realpath(path)) for name, _, path in outputs}
    others = []
    for _, kind, path in named:
        if kind.is_output:
            continue
        is_continued = (kind.continued_by, os.path.realpath(path)) in written
        if not is_continued:
            others.append(path)
        may_lack = kind.is_awaited or (kind.is_folder and is_continued)
        if path != job.remote_file and not (may_lack and not os.path.exists(path)):
            _check_input(kind, path)
    written_files = [(path, kind.is_folder) for _, kind, path in outputs]
    if job.range_file is not None:
        written_files.append((job.range_file, False))
    for path, is_folder in written_files:
        if is_folder or not is_stream(path):
            check_output(path, others, is_folder=is_folder)
            others.append(path)


def _named_files(
    parameters: Sequence[click.Parameter], job: DataJob
) -> Iterator[tuple[str, FileName, str]]:
    """Yield parameter, type and name of each file that the job has."""
    for parameter in parameters:
        value: Any = getattr(job, parameter.name or "", None)
        if not value:
            continue
        kinds: Sequence[click.ParamType] = [parameter.type]
        if isinstance(parameter.type, click.Tuple):
            kinds = parameter.type.types
        for kind, path in zip(kinds, value if len(kinds) > 1 else [value], strict=True):
            if isinstance(kind, FileName) and path not in kind.words:
                yield parameter.name or "", kind, path


def _check_input(kind: FileName, path: str) -> None:
    if kind.is_folder:
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


option = DataOptions.option
files, long_runs, other, problem, levels, output, rows, settings, ignored, search = (
    partial(option, group=title)
    for title in (
        "Files", "Long runs", "Other", "Problem", "Levels", "Output", "Rows", "Settings",
        "Options of svm-grid without effect", "Search",
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

    report_file: str | None = files(None, OUTPUT.optional, "--report FILE",
        "write times, counts and results as JSON")
    quiet: bool = other(False, Rule.flag(), "-q", "print only errors")

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
        return {"format": self.format, "label": self.label, "lenient": self.lenient}

    @property
    def learns_weights(self) -> bool:
        """Whether feature weights are learned, not taken from a model file."""
        return self.feature_weights == LEARN


@dataclass(frozen=True, kw_only=True, init=False, eq=False, repr=False)
class TrainingJob(DataJob):
    """Options that dcsvm-train and dcsvm-grid share."""

    training_set_file: str = option("", INPUT, "TRAINING_SET_FILE")
    model_file: str | None = option(None, OUTPUT.optional, "[MODEL_FILE]")
    balanced: bool = problem(False, Rule.flag(), "--balanced",
        "C-SVC: class weights n / (classes * n_class)",
        "-w balanced is the same.")
    n_folds: int | None = problem(None, Rule.integer(2).optional, "-v N",
        "N-fold cross-validation; writes no model",
        "It prints the accuracy, or the errors of a regression.",
        is_basic=True)
    test_file: str | None = levels(None, INPUT.optional, "--test FILE",
        "choose the early level by the error on these rows",
        "For --early with --early-level auto. The search starts from the finest level and goes to "
        "coarser ones while they are better.")
    time_limit: float | None = long_runs(None, SECONDS.optional, "--time-limit SEC",
        "stop after SEC seconds, write the current model",
        "The time includes reading.")
    shrinking: bool = other(True, Rule.flag(), "-h 0|1",
        "shrinking of LIBSVM: accepted, no effect",
        "Shrinking is always on; all gradients are reconstructed at the end.")

    @property
    def range_file(self) -> str | None:
        is_written = self.scale == AUTO and self.model_file and not is_stream(self.model_file)
        return f"{self.model_file}.range" if is_written else None


OF_TABLES: Conditions = (
    (lambda job, _: job.of_tables and job.format_of(job.training_set_file) is None,
     "{job.of_tables[0]} is for tables: {job.training_set_file} is read as LIBSVM text; --format "
     "names another format"),
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


def of_ranges() -> Any:
    """Return the entry of a range file for rows to predict."""
    return files(None, INPUT.optional, "--scale FILE",
        "scale the data by a range file of svm-scale -s",
        "A model of --scale auto or quantile does not need it.")
# fmt: on


def training_options(given: dict[str, Any]) -> TrainOptions:
    """Make training options from the values of a command. Raises OptionError."""
    chosen = given | {"class_weight": factors_of_classes(given["class_weight"])}
    chosen["gamma"] = chosen.get("gamma") or None  # 0 is LIBSVM's default
    if given["balanced"]:
        if chosen["class_weight"]:
            raise click.UsageError("give -w balanced or factors of classes, not both")
        chosen["class_weight"] = BALANCED
    return TrainOptions.taken(chosen)


def factors_of_classes(
    pairs: tuple[tuple[float | str, float], ...],
) -> dict[float | str, float] | None:
    """Collect {label: factor}; repeated factors of a label are multiplied, as in LIBSVM."""
    factors: dict[float | str, float] = {}
    for label, factor in pairs:
        TrainOptions.check("class_weight", {label: factor})
        factors[label] = factors.get(label, 1.0) * factor
    return factors or None


def name_beside(path: str | None, ending: str) -> str | None:
    """Return the name of a file in the current folder that is made from `path`."""
    if path is None or path in STANDARD_INPUT:
        return None
    return f"{os.path.basename(path)}.{ending}"
