"""Tables of options: dataclasses whose fields have an Option in their metadata.

Validation, the commands, the manual, help() and checkpoints use the tables. The rule of an option
has the type and limits of its values, and makes the error message. NumPy scalars are converted to
plain Python values without importing NumPy.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import Field, dataclass, field, fields, replace
from numbers import Integral, Real
from reprlib import repr as short_repr
from typing import Any, ClassVar, TypeVar

MAX_INT = 2**31 - 2


class OptionError(ValueError):
    """An invalid value of an option. `option` is its name, `reason` the rest of the message."""

    def __init__(self, option: str, reason: str):
        super().__init__(option, reason)
        self.option, self.reason = option, reason

    def __str__(self) -> str:
        return f"{self.option} {self.reason}"


@dataclass(frozen=True, eq=False, repr=False)
class FileKind:
    """What an option does with a file.

    `words` are values that are not names. A file may appear later if `is_awaited`. The output of
    the option `continued_by` may replace this input.
    """

    words: tuple[str, ...] = ()
    is_output: bool = False
    is_folder: bool = False
    is_awaited: bool = False
    continued_by: str = ""


@dataclass(frozen=True, eq=False, repr=False)
class Rule:
    """The values that an option accepts.

    `is_kind` checks the type of a value; messages call the type `kind`. `plain` converts a value
    to a plain Python value. It raises ValueError outside the `limits`. `names` are the valid names
    of an enumerated option, `spellings` the names in the help, in the same order. `or_none` makes
    None valid, too. `file` says that the value is the name of a file; a tuple has `members`.
    `parse` converts text of the command line; its ValueError ends the message "'text' ...".
    """

    kind: str
    is_kind: Callable[[Any], bool]
    plain: Callable[[Any], Any]
    limits: str = ""
    names: tuple[str, ...] = ()
    spellings: tuple[str, ...] = ()
    or_none: bool = False
    file: FileKind | None = None
    members: tuple[Rule, ...] = ()
    parse: Callable[[str], Any] | None = None

    def check(self, option: str, value: object) -> Any:
        """Return the plain value of the option. Raises OptionError."""
        if value is None and self.or_none:
            return None
        try:
            if not self.is_kind(value):
                raise must_be(f"{self.kind} or None" if self.or_none else self.kind, shown(value))
            return self.plain(value)
        except ValueError as error:
            raise OptionError(option, str(error)) from None

    @property
    def words(self) -> str:
        """The values in words, as in `a whole number, from 0 to 30, or None`."""
        limits = f", {self.limits}" if self.limits else ""
        return f"{self.kind}{limits}{' or None' if self.or_none else ''}"

    @property
    def optional(self) -> Rule:
        """The rule that also accepts None."""
        return replace(self, or_none=True)

    def or_word(self, word: str) -> Rule:
        """Accept one word in addition to the values of this rule."""

        def is_kind(value: object) -> bool:
            return (isinstance(value, str) and value == word) or self.is_kind(value)

        def plain(value: object) -> Any:
            return word if isinstance(value, str) else self.plain(value)

        def parse(text: str) -> Any:
            assert self.parse is not None
            if text.lower() == word:
                return word
            try:
                return self.parse(text)
            except ValueError:
                raise ValueError(f"is neither {self.kind} nor {word}") from None

        return Rule(
            f"{self.kind} or {word!r}", is_kind, plain, self.limits,
            parse=None if self.parse is None else parse,
        )  # fmt: skip

    def index_of(self, text: str) -> int:
        """Return the index of a name, of its spelling, or of its index as text; -1 for none."""
        index = index_of_name(text, [one for one in self.names if one], self.spellings)
        with suppress(ValueError):
            index = int(text)
        return index if 0 <= index < len(self.names) else -1

    @staticmethod
    def flag() -> Rule:
        """Accept True and False."""
        return Rule("True or False", is_bool, bool)

    @staticmethod
    def text() -> Rule:
        """Accept a text."""
        return Rule("a text", lambda value: isinstance(value, str), str)

    @staticmethod
    def texts() -> Rule:
        """Accept a sequence of texts; the option may be repeated."""
        return Rule("texts", lambda value: isinstance(value, (list, tuple)), tuple)

    @staticmethod
    def path(*words: str, **kind: Any) -> Rule:
        """Accept the name of a file, or one of `words`; for `kind` see FileKind."""
        return replace(Rule.text(), file=FileKind(words, **kind))

    @staticmethod
    def paths(*kinds: Rule) -> Rule:
        """Accept a tuple of names of files, of these kinds."""
        return Rule("names of files", lambda value: isinstance(value, tuple), tuple, members=kinds)

    @staticmethod
    def number(limits: str, holds: Callable[[float], bool]) -> Rule:
        """Accept a number for which `holds` is true; `limits` describes the condition."""

        def plain(value: Any) -> float:
            converted = _float(value)
            if not holds(converted):
                raise must_be(limits, f"{converted:g}")
            return converted

        return Rule("a number", is_number, plain, limits, parse=_number_of)

    @staticmethod
    def integer(low: int, high: int = MAX_INT, *, no_limit: int | None = None) -> Rule:
        """Accept an integer from `low` to `high`, or `no_limit`, the value for no limit."""
        lower = f"at least {low}" + ("" if no_limit is None else f" (or {no_limit} for no limit)")

        def plain(value: Any) -> int:
            converted = int(value)
            if converted < low and converted != no_limit:
                raise must_be(lower, converted)
            if converted > high:
                raise must_be(f"at most {high}", converted)
            return converted

        limits = f"from {low} to {high}" if high < MAX_INT else lower
        return Rule("a whole number", is_integer, plain, limits, parse=_whole_number_of)

    @staticmethod
    def choice(*names: str, spellings: Sequence[str] = (), has_numbers: bool = False) -> Rule:
        """Accept a name or its spelling in the help, in any case; `has_numbers`: or its index."""

        def index(value: Any) -> int:
            if isinstance(value, str):
                return index_of_name(value, names, spellings)
            return int(value) if has_numbers and is_integer(value) else -1

        def plain(value: object) -> str:
            return names[index(value)]

        def is_kind(value: object) -> bool:
            return 0 <= index(value) < len(names)

        kind = f"one of {', '.join(names)}"
        return Rule(kind, is_kind, plain, names=names, spellings=tuple(spellings))


def index_of_name(text: str, *lists: Sequence[str]) -> int:
    """Return the index of a name in the first list that has it, in any case, with - or _; or -1."""

    def simple(name: str) -> str:
        return name.lower().replace("-", "_")

    for names in lists:
        found = [simple(name) for name in names]
        if simple(text) in found:
            return found.index(simple(text))
    return -1


def _number_of(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise ValueError("is not a number") from None


def _whole_number_of(text: str) -> int:
    try:
        return int(text)
    except ValueError:
        raise ValueError("is not a whole number") from None


def must_be(constraint: str, value: str | int) -> ValueError:
    return ValueError(f"must be {constraint}, got {value}")


def shown(value: object) -> str:
    """Format a value for a message, in short form."""
    return " ".join(short_repr(value).split())


def is_bool(value: object) -> bool:
    return type(value).__name__ in ("bool", "bool_")  # Python's or NumPy's


def is_number(value: object) -> bool:
    return isinstance(value, Real) and not is_bool(value)


def is_integer(value: object) -> bool:
    return isinstance(value, Integral) and not is_bool(value)


def _float(value: Any) -> float:
    try:
        return float(value)
    except OverflowError:  # an int or a fraction beyond the range of float64
        return math.inf if value > 0 else -math.inf


def _factors(factors: Mapping[Any, Any]) -> dict[float | str, float]:
    plain = {}
    for key, factor in factors.items():
        label = _label(key)
        plain[label] = _factor(label, factor)
    return plain


def _label(label: object) -> float | str:
    if isinstance(label, str):
        return str(label)
    if not (is_bool(label) or is_number(label)) or not math.isfinite(_float(label)):
        raise ValueError(f"keys must be labels, finite numbers or strings, got {shown(label)}")
    return _float(label)


def _factor(label: float | str, factor: object) -> float:
    try:
        return POSITIVE.check("", factor)
    except OptionError as error:
        raise ValueError(f"{error.reason} for class {label_text(label)}") from None


def label_text(label: float | str) -> str:
    return repr(label) if isinstance(label, str) else f"{label:g}"


FINITE = Rule.number("finite", math.isfinite)
POSITIVE = Rule.number("positive and finite", lambda value: 0 < value < math.inf)
NOT_NEGATIVE = Rule.number("at least 0 and finite", lambda value: 0 <= value < math.inf)


AUTO = "auto"
MEDIAN = "median"
PER_MEDIAN = f"/{MEDIAN}"


def is_per_median(value: object) -> bool:
    """Return whether a value is the text F/median with a number F."""
    if not isinstance(value, str) or not value.endswith(PER_MEDIAN):
        return False
    try:
        float(value.removesuffix(PER_MEDIAN))
    except ValueError:
        return False
    return True


def median_factor(gamma: str) -> float:
    """Return F of the text F/median. Raises ValueError unless it is positive and finite."""
    factor = float(gamma.removesuffix(PER_MEDIAN))
    if not 0 < factor < math.inf:
        raise must_be("F/median with a positive and finite F", shown(gamma))
    return factor


def _gamma(value: Any) -> float | str:
    if not isinstance(value, str):
        return NOT_NEGATIVE.plain(value)
    if value != AUTO:
        median_factor(value)
    return str(value)


def _gamma_of(text: str) -> float | str:
    word = text.lower()
    if word == AUTO or is_per_median(word):
        return word
    try:
        return float(word)
    except ValueError:
        raise ValueError("is neither a number, auto nor F/median with a number F") from None


GAMMA = Rule(
    f"a number, {AUTO!r} or F/median",
    lambda value: is_number(value)
    or (isinstance(value, str) and value == AUTO)
    or is_per_median(value),
    _gamma,
    NOT_NEGATIVE.limits,
    parse=_gamma_of,
)
FACTORS = Rule("a dict of label: factor", lambda value: isinstance(value, Mapping), _factors)
BALANCED = "balanced"  # class weights in inverse proportion to the sizes of the classes


SVM_TYPES = ("c_svc", "nu_svc", "one_class", "epsilon_svr", "nu_svr")  # LIBSVM's -s 0 to 4
SVM_NAMES = ("C-SVC", "nu-SVC", "one-class", "eps-SVR", "nu-SVR")  # in help lines
CLASSIFIERS = ("c_svc", "nu_svc")
REGRESSIONS = ("epsilon_svr", "nu_svr")
WITH_LEVELS = ("c_svc", "epsilon_svr")  # other types are solved without levels


CLASSES, REGRESSION = "classes", "a regression"
# Metrics and what they measure. `dcsvm.model.metrics` has their definitions. The first of each kind
# is the default of a grid search.
KIND_OF_METRIC = {
    "accuracy": CLASSES,
    "balanced-accuracy": CLASSES,
    "f1": CLASSES,
    "auc": CLASSES,
    "log-loss": CLASSES,
    "mse": REGRESSION,
    "rmse": REGRESSION,
    "mae": REGRESSION,
    "r2": REGRESSION,
}
METRICS = tuple(KIND_OF_METRIC)
CLASS_METRICS, REGRESSION_METRICS = (
    tuple(name for name, own in KIND_OF_METRIC.items() if own == kind)
    for kind in (CLASSES, REGRESSION)
)


def checked_metric(metric: str | None, svm_type: str) -> str:
    """Return a metric that fits an SVM type, by default accuracy or mse. Raises ValueError."""
    kind = CLASSES if svm_type in CLASSIFIERS else REGRESSION
    possible = CLASS_METRICS if kind == CLASSES else REGRESSION_METRICS
    if metric is not None and metric not in possible:
        names = ", ".join(possible)
        raise ValueError(f"the metric of {kind} must be one of {names}, got {metric!r}")
    return metric or possible[0]


DOCSTRING_WIDTH = 96  # columns, beside the indentation


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class Option:
    """The description of an option.

    `spelling` is its command-line syntax with a placeholder for the value, as in `-l --levels L`.
    Commands omit options with an empty spelling. `help` is its line in --help, under the
    title `group`. `details` are additional sentences for the manual. `default_text` describes a
    default that depends on the data. `keyword` replaces `help` in Python's docstrings.
    """

    rule: Rule
    spelling: str = ""
    help: str = ""
    details: str = ""
    group: str = ""
    default_text: str = ""
    keyword: str = ""
    is_multiple: bool = False  # may be repeated
    is_basic: bool = False  # listed when a command is called without arguments
    is_free: bool = False  # may change on resume: does not affect the problem or solution
    in_grid: bool = True  # dcsvm-grid has the option, too

    @property
    def names(self) -> list[str]:
        return [word for word in self.spelling.split() if word[0] == "-"]

    @property
    def is_argument(self) -> bool:
        """Whether it is an argument of the command, such as FILE, or [FILE] if it may lack."""
        return bool(self.spelling) and not self.names

    @property
    def value(self) -> str:
        """The placeholder of the value, empty for a flag."""
        return self.spelling.removeprefix(" ".join(self.names)).strip()


def option(
    default: Any, rule: Rule, spelling: str = "", help: str = "", details: str = "", **rest: Any
) -> Any:
    """Make a field of a table. `rest` are other attributes of its Option."""
    description = Option(rule=rule, spelling=spelling, help=help, details=details, **rest)
    return field(default=default, metadata={"option": description})


def option_of(one: Field) -> Option:
    return one.metadata["option"]


Table = TypeVar("Table", bound="OptionTable")


@dataclass(frozen=True, kw_only=True)
class OptionTable:
    """Base class of option tables. It checks and converts the values.

    `function` is the name of the function that takes these keywords.
    """

    function: ClassVar[str]

    @classmethod
    def of(cls: type[Table], **options: Any) -> Table:
        """Make a table from keywords. Raises TypeError for unknown ones, OptionError."""
        for name in options:
            if name not in cls.names():
                raise TypeError(f"unknown option {name!r}; {cls._hint(name)}")
        return cls(**options)

    @classmethod
    def _hint(cls, name: str) -> str:
        from difflib import get_close_matches

        known = {option.lower(): option for option in cls.names()}
        matches = get_close_matches(name.lower(), known, n=1, cutoff=0.5)
        if matches:
            return f"did you mean {known[matches[0]]!r}?"
        return f"help({cls.function}) lists them"

    @classmethod
    def check(cls, name: str, value: object) -> Any:
        """Return the plain value of one option. Raises OptionError."""
        return option_of(cls.__dataclass_fields__[name]).rule.check(name, value)

    @classmethod
    def words(cls, name: str) -> str:
        """Describe the values of one option in words."""
        return option_of(cls.__dataclass_fields__[name]).rule.words

    @classmethod
    def text(cls, name: str) -> str:
        """Describe one option for a docstring: `TYPE: sentence`, as in `int or None: number ...`.

        The limits of the values are in the sentence; its default is not.
        """
        one = cls.__dataclass_fields__[name]
        return f"{one.type.replace(' | ', ' or ')}: {keyword_text(one)}"

    @classmethod
    def names(cls) -> tuple[str, ...]:
        return tuple(one.name for one in fields(cls))

    @classmethod
    def entries(cls) -> Iterator[tuple[str, Option, Any]]:
        """Yield the name, the description and the default of each option."""
        for one in fields(cls):
            yield one.name, option_of(one), one.default

    @staticmethod
    def option(
        default: Any, rule: Rule, spelling: str = "", help: str = "", details: str = "", **rest: Any
    ) -> Any:
        """Make a field of a table. `rest` are other attributes of its Option."""
        return option(default, rule, spelling, help, details, **rest)

    @classmethod
    def field(cls, name: str) -> Any:
        """Make the same field for another table."""
        own = cls.__dataclass_fields__[name]
        return field(default=own.default, metadata=own.metadata)

    @classmethod
    def rule(cls, name: str) -> Rule:
        """Return the rule of an option."""
        return option_of(cls.__dataclass_fields__[name]).rule

    @classmethod
    def details(cls, name: str) -> str:
        """Return the additional sentences on an option."""
        return option_of(cls.__dataclass_fields__[name]).details

    @classmethod
    def spellings(cls, names: Sequence[str]) -> dict[str, str]:
        """Return the first spelling of each option of these names."""
        return {name: option_of(cls.__dataclass_fields__[name]).names[0] for name in names}

    @classmethod
    def free(cls) -> list[str]:
        """Return the first spellings of the options that may change on resume."""
        return [one.names[0] for _, one, _ in cls.entries() if one.is_free]

    @property
    def values(self) -> dict[str, Any]:
        """The value of each option, by name."""
        return {name: getattr(self, name) for name in self.names()}

    @classmethod
    def taken(cls: type[Table], given: Mapping[str, Any]) -> Table:
        """Make a table from the values that it knows and that are not None. Raises OptionError."""
        known = {name: given[name] for name in cls.names() if given.get(name) is not None}
        return cls(**known)

    def __post_init__(self) -> None:
        for name in self.names():
            object.__setattr__(self, name, self.check(name, getattr(self, name)))


def described(docstring: str | None, table: type[OptionTable]) -> str | None:
    """Replace `{options}` in a docstring by the list of options, ordered by group."""
    import textwrap

    lines: list[str] = []
    title = None
    for one in fields(table):
        if option_of(one).group != title:
            title = option_of(one).group
            lines += ["", title, ""]
        lines += textwrap.wrap(keyword_line(one), DOCSTRING_WIDTH, subsequent_indent="  ")
    return with_section(docstring, "options", "\n".join(lines[1:]))


def with_section(docstring: str | None, name: str, section: str) -> str | None:
    """Replace the line `{name}` of a docstring by a section, at that line's indentation.

    The indentation of docstrings depends on the version: Python 3.13 strips it when compiling.
    """
    if docstring is None:  # python -OO
        return None
    import re
    import textwrap

    return re.sub(
        rf"^( *)\{{{name}\}}$",
        lambda line: textwrap.indent(section, line[1]),
        docstring,
        flags=re.MULTILINE,
    )


def keyword_line(one: Field) -> str:
    """Format an option as in `- degree (int, 3): of poly (gamma u'v + coef0)^degree; ...`."""
    return f"- {one.name} ({one.type}, {_shown_default(one)}): {keyword_text(one)}"


def keyword_text(one: Field) -> str:
    """Describe an option for a docstring, without its name and type."""
    entry = option_of(one)
    if entry.keyword:
        return entry.keyword
    unset = f"{_shown_default(one)}: {entry.default_text}" if entry.default_text else ""
    return "; ".join(part for part in (entry.help, entry.rule.limits, unset) if part)


def _shown_default(one: Field) -> str:
    return f'"{one.default}"' if isinstance(one.default, str) else repr(one.default)
