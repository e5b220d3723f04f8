"""Find and read the notation of a column of text: numbers, dates or times, as people write them.

Numbers may have a decimal comma, marks of thousands, a unit or currency that is the same in a
column, percent signs, and brackets for negative ones. Dates are ISO dates, or days, months and
years in an order that fits the whole column. Dates and times with a zone are those of UTC.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import partial
from typing import NamedTuple

import numpy as np

NUMBER, BOOLEAN, CATEGORY, DATE, TIME = KINDS = ("number", "boolean", "category", "date", "time")
TRUTH = {"false": 0.0, "true": 1.0}
MIN_IDS, ID_SHARE = 30, 0.5
MAX_WORDS = 3  # words for missing values in a column of numbers
YEAR_FIRST, DAY_FIRST, MONTH_FIRST = ORDERS = ("ymd", "dmy", "mdy")
HOURS_OF_DAY = 24
MAX_DAYS = 1e8  # from 1970 to the dates of datetime64[us]
EPOCH, DAY = datetime(1970, 1, 1), timedelta(days=1)

CURRENCY = (
    r"[A-Z]{0,3}[$¢£¥฿\u20a0-\u20bf]|Rs\.?|kr\.?|Fr\.?|AUD|BRL|CAD|CHF|CNY|CZK|DKK|EUR|GBP|HKD|HUF|"
    "INR|JPY|KRW|MXN|NOK|NZD|PLN|RON|RUB|SEK|SGD|TRY|USD|ZAR"
)
BLANKS = " '’\u00a0\u2009\u202f"  # they only group digits
AS_BLANK = str.maketrans(dict.fromkeys(BLANKS, " "))
CELL = re.compile(
    rf"(?P<sign>[-+\u2212]?)\s*(?:(?P<before>{CURRENCY})\s*(?P<inner>[-+\u2212]?))?"
    rf"(?P<digits>[0-9]+(?:[.,{BLANKS}][0-9]+)*[.,]?|[.,][0-9]+)(?P<power>[eE][-+]?[0-9]+)?"
    r"\s*(?P<after>(?:[%‰°*\"′″$¢£¥฿\u20a0-\u20bf]|[^\W\d_])[^\s\d()]{0,11}"
    r"(?: [^\W\d_]{1,8})?[23²³]?)?"
)
BRACKETS = re.compile(r"([^0-9()]*)\(([^()]*)\)([^0-9()]*)")  # of negative amounts
WHOLE = re.compile(
    r"[0-9]*|[0-9]{1,3}([ .,])[0-9]{3}(?:\1[0-9]{3})*|[0-9]{1,2}(?:,[0-9]{2})+,[0-9]{3}"
)
THOUSANDS = re.compile(r"[1-9][0-9]{0,2}[.,][0-9]{3}")  # a number of thousands, or with 3 decimals
INTEGER = re.compile(r"-?[0-9]+")
CODE = re.compile(r"0[0-9]+")
CLOCK = (
    r"(?P<h>[0-9]{1,3}):(?P<min>[0-9]{2})(?::(?P<s>[0-9]{2}(?:[.,][0-9]+)?))?"
    r"(?: ?(?P<half>[AaPp])\.?[Mm]\.?)?"
)
TIMES = re.compile(rf"(?:(?P<days>[-+]?[0-9]+) days?,? \+?)?{CLOCK}")
AT = rf"(?:[T ]{CLOCK})?\s*(?P<zone>Z|[-+][0-9]{{2}}:?[0-9]{{2}})?"
ISO = re.compile(rf"(?P<y>[0-9]{{4}})([-/.])(?P<m>[0-9]{{1,2}})\2(?P<d>[0-9]{{1,2}}){AT}")
LOCAL = re.compile(rf"(?P<a>[0-9]{{1,2}})([-/.])(?P<b>[0-9]{{1,2}})\2(?P<y>[0-9]{{4}}){AT}")


@dataclass(frozen=True)
class Notation:
    """How the cells of a column are written.

    `decimal` is the decimal mark of numbers, "" if all are as programs write them. `thousands` is
    the other one of point and comma if it groups digits, `unit` the text before or after them.
    `order` is that of dates. `words` stand for missing values.
    """

    decimal: str = ""
    thousands: str = ""
    unit: str = ""
    order: str = YEAR_FIRST
    words: tuple[str, ...] = ()

    def value(self, text: str, kind: str) -> float | None:
        """Return the number of a text, days since 1970, or hours; None if it has none."""
        if kind == DATE:
            return days_of_text(text, self.order)
        if kind == TIME:
            return hours_of_text(text)
        plain = plain_number(text)
        if not self.decimal or (plain is not None and self.thousands != "."):
            return plain
        cell = _Cell.of(text)  # 1.234 may be a whole number
        number = cell.number(self.decimal) if cell and cell.unit in ("", self.unit) else None
        return plain if number is None else number

    def values(self, texts: Sequence[str], kind: str) -> list[float | None]:
        """Return the number of each text, nan for `words`, and None for other text."""
        if kind == BOOLEAN and {one.lower() for one in texts} <= set(TRUTH):
            return [TRUTH[one.lower()] for one in texts]
        return [math.nan if one in self.words else self.value(one, kind) for one in texts]


PLAIN = Notation()


def are_ids(n_texts: int, n_rows: int) -> bool:
    """Return whether different texts are names of rows: many, and for more than half of them."""
    return n_texts >= MIN_IDS and n_texts > ID_SHARE * n_rows


def plain_number(text: str) -> float | None:
    """Return the number of a text in the notation of programs, else None."""
    try:
        return None if "_" in text else float(text)
    except ValueError:
        return None


def is_plain_number(text: str) -> bool:
    return plain_number(text) is not None


class _Cell(NamedTuple):
    """The parts of a number: `digits` with marks, blanks in groups, and `power` such as e-5."""

    is_negative: bool
    unit: str
    digits: str
    power: str

    @staticmethod
    def of(text: str) -> _Cell | None:
        brackets = BRACKETS.fullmatch(text)
        match = CELL.fullmatch(text if brackets is None else "".join(brackets.groups()).strip())
        if match is None:
            return None
        signs = ("" if brackets is None else "(") + match["sign"] + (match["inner"] or "")
        if len(signs) > 1:
            return None
        unit = (match["before"] or "") + (match["after"] or "")
        digits = match["digits"].translate(AS_BLANK)
        return _Cell(signs not in ("", "+"), unit, digits, match["power"] or "")

    def number(self, decimal: str) -> float | None:
        """Return the number for a decimal mark, None if its digits are not in groups."""
        whole, _, fraction = self.digits.partition(decimal)
        if not WHOLE.fullmatch(whole) or not (fraction or "0").isdecimal():
            return None
        number = float(f"{re.sub('[ .,]', '', whole) or '0'}.{fraction or '0'}{self.power}")
        return -number if self.is_negative else number


@dataclass(frozen=True)
class Reading:
    """What the texts of a column mean: the kind of the column and its notation.

    `is_unclear` says that days and months could change places, so that the column is no date.
    """

    kind: str
    notation: Notation
    is_unclear: bool = False


def reading_of(
    texts: Sequence[str], counts: np.ndarray, n_rows: int, decimal: str = ".", *, has_gaps: bool
) -> Reading | None:
    """Find the notation of different texts, None if they are words or codes.

    `counts` int64 (n_texts,) are the rows of each text among `n_rows`, `decimal` is the decimal
    mark where texts leave it open. `has_gaps` says that words for missing values were among them:
    whole numbers are then no codes.
    """
    used = [(text, int(count)) for text, count in zip(texts, counts.tolist(), strict=True) if count]
    if not used:
        return None
    notation = _number_notation(used, n_rows, decimal, has_gaps=has_gaps)
    if notation is not None:
        return Reading(NUMBER, notation)
    words = _words(used, n_rows, hours_of_text)
    if words is not None:
        return Reading(TIME, Notation(words=words))
    # the order of dates with the fewest words, as 31/12/2020 would be one with the month first
    fitting = []
    for order in ORDERS:
        words = _words(used, n_rows, partial(days_of_text, order=order))
        if words is not None:
            fitting.append(Notation(order=order, words=words))
        if words == () and order == YEAR_FIRST:
            break
    fewest = min((len(one.words) for one in fitting), default=0)
    fitting = [one for one in fitting if len(one.words) == fewest]
    is_unclear = len(fitting) > 1 and fitting[0].order == DAY_FIRST
    return Reading(DATE, fitting[0], is_unclear) if fitting else None


def _words(
    used: list[tuple[str, int]], n_rows: int, value: Callable[[str], object]
) -> tuple[str, ...] | None:
    """Return the texts whose value is None; None if they are too many for missing values.

    Missing values have at most MAX_WORDS words, fewer than there are values, in half of the rows.
    """
    words: list[str] = []
    n_with_value = 0
    for text, count in used:
        if value(text) is not None:
            n_with_value += count
        else:
            words.append(text)
            if len(words) > MAX_WORDS:  # of a column of text, the first few tell
                return None
    is_rare = 2 * n_with_value >= n_rows and 2 * len(words) < len(used)
    return tuple(words) if is_rare or not words else None


def _number_notation(
    used: list[tuple[str, int]], n_rows: int, default: str, *, has_gaps: bool
) -> Notation | None:
    """Return the notation of numbers, None for words, codes, and numbers of several notations."""
    # whole numbers that were given as text are codes, unless nearly each row has its own
    if _words(used, n_rows, plain_number) == ():
        is_whole = not has_gaps and all(INTEGER.fullmatch(text) for text, _ in used)
        if is_whole and not are_ids(len(used), n_rows):
            return None
        return None if is_whole and any(CODE.fullmatch(text) for text, _ in used) else PLAIN
    cells: dict[str, _Cell | None] = {}
    units: list[str] = []

    def cell_of(text: str) -> _Cell | None:
        cell = cells[text] = _Cell.of(text)
        if cell is not None and cell.unit and cell.unit not in units:
            units.append(cell.unit)
        return cell if len(units) < 2 else None  # so that a column of text ends the search

    # several units make the column text, and cells with a rare one are words
    if _words(used, n_rows, cell_of) is None or len(units) > 1:
        return None
    n_of_unit = Counter[str]()
    for text, count in used:
        if (cell := cells[text]) is not None:
            n_of_unit[cell.unit] += count
    unit = units[0] if units and 2 * n_of_unit[units[0]] > n_of_unit.total() else ""
    kept = {text: one for text, one in cells.items() if one is not None and one.unit in ("", unit)}
    words = _words(used, n_rows, kept.get)
    # numbers such as 007 beside words are codes
    if words is None or (words and any(CODE.fullmatch(text) for text in kept)):
        return None
    marks = _marks([one.digits for one in kept.values()], default)
    if marks is None or any(one.number(marks[0]) is None for one in kept.values()):
        return None
    if default == "." and all(map(is_plain_number, kept)):
        return Notation(words=words)
    return Notation(*marks, unit, words=words)


def _marks(cells: list[str], default: str) -> tuple[str, str] | None:
    """Return the decimal mark and the mark of thousands ("" if none) of the digits of cells.

    None if they contradict each other.
    """
    decimals, groups, unclear = set[str](), set[str](), set[str]()
    for digits in cells:
        marks = re.findall("[.,]", digits)
        if len(set(marks)) == 2:  # the last one is the decimal mark
            decimals.add(marks[-1])
            groups.add(marks[0])
        elif len(marks) > 1:
            groups.add(marks[0])
        elif marks:
            (unclear if THOUSANDS.fullmatch(digits) else decimals).add(marks[0])
    if decimals & groups or len(decimals) > 1 or len(groups) > 1:
        return None
    if decimals:
        decimal = min(decimals)
    elif groups:
        decimal = "," if "." in groups else "."
    elif unclear == {".", ","}:
        return None
    else:
        decimal = "." if "." in unclear else default
    other = "," if decimal == "." else "."
    return decimal, other if other in groups | unclear else ""


def days_of_text(text: str, order: str) -> float | None:
    """Return the days from 1970 to a date, with the fraction of the day; None for other text.

    ISO dates are dates in any order.
    """
    match = ISO.fullmatch(text)
    if match is not None:
        month, day = match["m"], match["d"]
    elif order == YEAR_FIRST or (match := LOCAL.fullmatch(text)) is None:
        return None
    elif order == DAY_FIRST:
        month, day = match["b"], match["a"]
    elif "." in text[:3]:  # no country has month.day.year
        return None
    else:
        month, day = match["a"], match["b"]
    try:
        date = datetime(int(match["y"]), int(month), int(day))
    except ValueError:
        return None
    hours = 0.0 if match["h"] is None else _hours(match)
    if hours is None or hours >= HOURS_OF_DAY:
        return None
    zone = match["zone"]
    if zone and zone != "Z":
        offset = int(zone[1:3]) + int(zone[-2:]) / 60
        hours -= -offset if zone[0] == "-" else offset
    return (date - EPOCH + timedelta(hours=hours)) / DAY


def hours_of_text(text: str) -> float | None:
    """Return the hours of a time of day or a duration, None for other text."""
    match = TIMES.fullmatch(text)
    if match is None or (hours := _hours(match)) is None:
        return None
    return hours + HOURS_OF_DAY * int(match["days"] or 0)


def _hours(match: re.Match[str]) -> float | None:
    """Return the hours of a match of CLOCK, None for 61 minutes."""
    hours, minutes = int(match["h"]), int(match["min"])
    seconds = float((match["s"] or "0").replace(",", "."))
    if minutes > 59 or seconds >= 60:
        return None
    if match["half"]:
        if not 1 <= hours <= 12:
            return None
        hours = hours % 12 + (12 if match["half"] in "Pp" else 0)
    return hours + minutes / 60 + seconds / 3600


def days_of(dates: np.ndarray) -> np.ndarray:
    """Return the days from 1970 to each date, nan for NaT; float64 (n,)."""
    return _microseconds(dates.astype("M8[us]")) / (DAY / timedelta(microseconds=1))


def hours_of(durations: np.ndarray) -> np.ndarray:
    """Return the hours of each duration, nan for NaT; float64 (n,)."""
    return _microseconds(durations.astype("m8[us]")) / (
        timedelta(hours=1) / timedelta(microseconds=1)
    )


def _microseconds(values: np.ndarray) -> np.ndarray:
    return np.where(np.isnat(values), np.nan, values.astype(np.int64))


PARTS = ("days", "year", "month", "weekday", "hour")


def part_of_date(days: np.ndarray, part: str, first: float = 0.0) -> np.ndarray:
    """Return a part of dates, which are days since 1970, float64 (n,) without nan.

    `days` are days since `first`, `weekday` is 0 on Mondays, `hour` has the fraction of the hour.
    """
    if part == "days":
        return days - first
    whole = np.floor(days)
    date = whole.astype(np.int64).astype("M8[D]")
    if part == "year":
        return date.astype("M8[Y]").astype(np.int64) + 1970.0
    if part == "month":
        return date.astype("M8[M]").astype(np.int64) % 12 + 1.0
    if part == "weekday":
        return (whole + 3) % 7  # the first day of 1970 was a Thursday
    return np.round(HOURS_OF_DAY * (days - whole), 8)
