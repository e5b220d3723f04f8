"""Dialect of a text table: delimiter, decimal mark, names, and where the rows begin.

It is found from the first records, all of them together: one line alone may be a title, or have a
delimiter inside a text. A model knows the names and the kinds of the columns of rows to predict.
"""

from __future__ import annotations

import csv
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

from dcsvm.data.columns import CATEGORY, MISSING_TEXTS, Column, TableEncoding
from dcsvm.data.files import BINARY_TABLES

DELIMITERS = (",", ";", "\t", "|")
BLANKS = " "  # the delimiter of columns separated by runs of blanks and tabs
DELIMITER_NAMES = {
    ",": "commas", ";": "semicolons", "\t": "tabs", "|": "vertical bars", BLANKS: "blanks",
}  # fmt: skip
PLAIN_LINES = 10  # that tell whether a text is a table
SAMPLE = 200  # records that show the dialect
MOST = 0.9  # of the records have the usual number of fields
YEARS = range(1900, 2101)  # numbers that are names, if they are three in equal steps
MANY_STEPS = 5  # of other numbers that are names, such as wavelengths
WHOLE = re.compile(r"\d+(\.0*)?")
SEPARATOR_LINE = re.compile(r'"?sep=(.)"?\s*$', re.IGNORECASE)  # of Excel
# a number, date, time or amount, with a short unit
VALUE = re.compile(
    r"[(+\-\u2212]?\s*[^\w\s.,;:#_]?\s*[+\-\u2212]?[.,]?\d[\d.,:/\-' \u00a0\u202f]*"
    r"(?:[eE][+\-]?\d+|T[\d:.]+)?[^\w\s]?(?:\s?[^\W\d_]{1,3}(?:[/\u00b2\u00b3]\S{0,4})?)?\)?\+?"
)
COMMA_NUMBER = re.compile(r"[+-]?\d*,\d+(e[+-]?\d+)?", re.IGNORECASE)
POINT_NUMBER = re.compile(r"[+-]?\d*\.\d+(e[+-]?\d+)?", re.IGNORECASE)
THOUSANDS = re.compile(r"[+-]?[1-9]\d{0,2},\d{3}")
RUN_OF_BLANKS = re.compile(rb'("[^"]*")|[ \t]+')


@dataclass(frozen=True)
class Dialect:
    """How a text table is written.

    `n_lines` lines are above the first row. `names` are those of line `line_of_names`, or numbers
    from 1 if there are none, then `has_names` is False. With `are_names_numbers` the names are
    consecutive numbers. `decimal` is the decimal mark. The last column of a table that `is_padded`
    is empty, as lines end in a delimiter.
    """

    delimiter: str
    names: tuple[str, ...]
    has_names: bool
    n_lines: int
    line_of_names: int = 0
    are_names_numbers: bool = False
    decimal: str = "."
    is_padded: bool = False


Record = tuple[int, list[str]]  # number of lines up to its end, and its fields


def collapsed(line: bytes) -> bytes:
    """Return a line with one blank for each run of blanks and tabs outside of quotes."""
    ending = b"\n" if line.endswith(b"\n") else b""
    return RUN_OF_BLANKS.sub(lambda run: run[1] or b" ", line.strip()) + ending


def records(lines: Iterable[str], delimiter: str, n_lines: int = 0) -> Iterator[Record]:
    """Yield the records of lines that have `n_lines` lines above them. Raises csv.Error."""
    reader = csv.reader(lines, delimiter=delimiter)
    for fields in reader:
        if len(fields) > 1 or "".join(fields).strip():  # not an empty line
            yield n_lines + reader.line_num, fields


def find_dialect(
    lines: Sequence[str],
    *,
    is_cut: bool = False,
    delimiter: str | None = None,
    header: bool | None = None,
    known: TableEncoding | None = None,
) -> Dialect | None:
    """Find the dialect of the first lines of a text; None if they have no record.

    The text may go on after these lines, even within a record, if it `is_cut`. A given `delimiter`
    is taken. `header` says whether there are names, None that they tell it themselves. `known` is
    the encoding of the training set of rows to predict.
    """
    begin, given, comment = _above(lines)
    delimiter = delimiter or given
    sampled = {
        one: _sample(lines, begin, one, is_cut=is_cut)
        for one in ((*DELIMITERS, BLANKS) if delimiter is None else (delimiter,))
    }
    if not any(sampled.values()):
        return None
    if delimiter is None:
        delimiter = _delimiter(lines, begin, sampled)
    sample = _below_titles(sampled[delimiter])
    n_fields = _usual_length(sample)
    has_row_names = _has_row_names(sample, delimiter)
    (end, first), below = sample[0], [fields for _, fields in sample[1:] if len(fields) == n_fields]
    if has_row_names:  # R's write.table names all columns but that of the row names
        first = ["", *first]
    fields, has_names = first, header
    if has_names is None:
        has_names = has_row_names or _are_names(first, below, known)
    n_lines, line_of_names = end, end - sum(field.count("\n") for field in first)
    if not has_names:
        n_lines = line_of_names - 1
        named = _fields_of_comment(comment, delimiter)
        if header is None and len(named) == len(first) > 1 and _are_names(named, [first], known):
            fields, has_names = named, True
    return Dialect(
        delimiter, _names(fields) if has_names else _numbers(len(first)), has_names, n_lines,
        line_of_names, has_names and _are_consecutive(fields), _decimal(delimiter, below),
        is_padded=len(first) > 1 and not any(row[-1].strip() for row in [first, *below]),
    )  # fmt: skip


def _above(lines: Sequence[str]) -> tuple[int, str | None, str]:
    """Return the number of lines above the table, the delimiter of a line sep=;, and a comment.

    The comment is the last line above the table, if it is one.
    """
    given, comment = None, ""
    for k, line in enumerate(lines):
        separator = SEPARATOR_LINE.match(line)
        if separator and given is None:
            given = separator[1]
        elif line.lstrip().startswith("#"):
            comment = line
        elif line.strip():
            return k, given, comment
    return len(lines), given, comment


def _fields_of_comment(comment: str, delimiter: str) -> list[str]:
    """Return the fields of a comment, which may be the names of the columns."""
    text = comment.strip().lstrip("#").strip()
    if delimiter == BLANKS:
        text = collapsed(text.encode()).decode()
    return next((fields for _, fields in records([text], delimiter)), [])


def _sample(lines: Sequence[str], begin: int, delimiter: str, *, is_cut: bool) -> list[Record]:
    """Return the first records; those before a damaged one."""
    rest: Iterable[str] = lines[begin:]
    if delimiter == BLANKS:
        rest = [collapsed(line.encode()).decode() for line in rest]
    sample: list[Record] = []
    try:
        for record in records(rest, delimiter, begin):
            sample.append(record)
            if len(sample) == SAMPLE:
                return sample
    except csv.Error:
        return sample
    return sample[:-1] if is_cut and len(sample) > 1 else sample


def _usual_length(sample: Sequence[Record]) -> int:
    """Return the most frequent number of fields of the records, of equally frequent the first."""
    counts = Counter(len(fields) for _, fields in sample)
    return counts.most_common(1)[0][0] if counts else 0


def _below_titles(sample: list[Record]) -> list[Record]:
    """Leave out the records above the table: a title, or no text at all."""
    n_fields = _usual_length(sample)
    for k, (_, fields) in enumerate(sample[:-1]):
        texts = [field for field in fields if field.strip()]
        after = next((rest for _, rest in sample[k + 1 :] if any(rest)), [""])
        # Excel fills the line of a title with delimiters; then the next text has the names
        is_padded = len(fields) == n_fields > 2 and all(map(_is_word, after))
        is_title = len(texts) == 1 and (len(fields) < n_fields or is_padded)
        if texts and not is_title:
            return sample[k:]
    return sample[-1:]


def _is_word(field: str) -> bool:
    return bool(field.strip()) and not VALUE.fullmatch(field.strip())


def _has_row_names(sample: Sequence[Record], delimiter: str) -> bool:
    """Return whether the first record alone lacks one field, as R writes it."""
    lengths = [len(fields) for _, fields in sample]
    is_of_r = delimiter in (BLANKS, "\t") and len(lengths) > 1
    return is_of_r and set(lengths[1:]) == {lengths[0] + 1}


def _delimiter(lines: Sequence[str], begin: int, sampled: dict[str, list[Record]]) -> str:
    """Return the delimiter that gives the records the same number of fields.

    Semicolons come before commas, which may be decimal marks. Blanks are common in text: they count
    only where the first line has no other delimiter.
    """
    first = re.sub(r'"[^"]*"', "", lines[begin])
    candidates: list[str] = [";", "\t", "|", ","]
    if not any(one in first for one in DELIMITERS[:2] + DELIMITERS[3:]):
        candidates.append(BLANKS)
    agreement = {one: _agreement(sampled[one], one) for one in candidates}
    best = max(candidates, key=agreement.__getitem__)
    return best if agreement[best] else max(DELIMITERS, key=first.count)


def _agreement(sample: list[Record], delimiter: str) -> int:
    """Return 2 if all records have the same number of fields, 1 if most have, else 0."""
    if not sample:
        return 0
    table = _below_titles(sample)
    lengths, n_fields = [len(fields) for _, fields in table], _usual_length(table)
    if _has_row_names(table, delimiter):
        return 2
    if n_fields < 2 or lengths[0] != n_fields or lengths.count(n_fields) < MOST * len(lengths):
        return 0
    return 2 if len(table) == len(sample) and set(lengths) == {n_fields} else 1


def _are_names(
    first: Sequence[str], below: Sequence[Sequence[str]], known: TableEncoding | None
) -> bool:
    """Return whether the first record has names; `below` are records of rows."""
    first = [field.strip() for field in first]
    if known is not None and known.has_names:
        names = [column.name for column in known.columns]
        if 2 * sum(name in first for name in names) >= len(names):
            return True
    if known is not None and len(known.columns) <= len(first):
        places = _places(known, len(first))
        fit = [_fits(first[k], column) for k, column in zip(places, known.columns, strict=True)]
        if not known.has_names or 2 * sum(fit) > len(fit):
            return 2 * sum(fit) < len(fit)
    n_columns = min([len(first), *map(len, below)])
    columns = [[row[k].strip() for row in below] for k in range(n_columns)]
    has_values = [_has_values(column) for column in columns]
    # columns of numbers and dates tell: their names are words
    shown = [
        (field, column)
        for field, column, has in zip(first, columns, has_values, strict=False)
        if has and field not in MISSING_TEXTS
    ]
    n_values = sum(bool(VALUE.fullmatch(field)) for field, _ in shown)
    n_words = sum(not VALUE.fullmatch(field) and field not in column for field, column in shown)
    is_repeated = any(
        field in column
        for field, column, has in zip(first, columns, has_values, strict=False)
        if field not in MISSING_TEXTS and not has
    )
    if shown and n_words + n_values:
        # a word in place of a missing value is rarely in the last column, above nothing but numbers
        is_last = bool(has_values[-1:] and has_values[-1]) and _is_word(first[-1])
        is_name = is_last and first[-1] not in columns[-1] and first[-1] not in MISSING_TEXTS
        are_steps = _are_consecutive(first) and not is_repeated
        return n_words >= n_values or is_name or are_steps
    present = [field for field in first if field]
    is_value = bool(present) and all(
        VALUE.fullmatch(field) or field in MISSING_TEXTS for field in present
    )
    return not (is_value or is_repeated or len(set(present)) < len(present))


def _fits(field: str, column: Column) -> bool:
    """Return whether a field of the first line may be a value of a column of the training set."""
    if field in MISSING_TEXTS or field in column.notation.words:
        return True
    return field in column.categories if column.kind == CATEGORY else bool(VALUE.fullmatch(field))


def _has_values(cells: Sequence[str]) -> bool:
    """Return whether at least half of the cells of a column are numbers, dates or amounts."""
    present = [cell for cell in cells if cell not in MISSING_TEXTS]
    return bool(present) and 2 * sum(bool(VALUE.fullmatch(one)) for one in present) >= len(present)


def _are_consecutive(fields: Sequence[str]) -> bool:
    """Return whether the numbers among names count from 0 or 1, or are years or equal steps."""
    texts = [field.strip() for field in fields]
    numbers = [int(float(text)) for text in texts if WHOLE.fullmatch(text)]
    others = [text for text in texts if not WHOLE.fullmatch(text)]
    if len(numbers) < 2 or any(VALUE.fullmatch(one) or one in MISSING_TEXTS[1:] for one in others):
        return False
    step = numbers[1] - numbers[0]
    if step == 0 or any(b - a != step for a, b in pairwise(numbers)):
        return False
    is_counted = step == 1 and numbers[0] in (0, 1)
    are_years = len(numbers) > 2 and {numbers[0], numbers[-1]} <= set(YEARS)
    return is_counted or are_years or len(numbers) >= MANY_STEPS


def _names(fields: Sequence[str]) -> tuple[str, ...]:
    """Return names of columns; those without one, but the first, have their number."""
    names = [field.strip() for field in fields]
    return tuple(name or (str(k + 1) if k else "") for k, name in enumerate(names))


def _places(known: TableEncoding, n_fields: int) -> Sequence[int]:
    """Return where a row has the columns of a model, in a file that may have others, too."""
    if not known.has_names and not known.is_of_matrix:  # names are numbers, counted from 1
        places = [int(column.name) - 1 for column in known.columns]
        if max(places) < n_fields:
            return places
    return range(len(known.columns))


def _numbers(n_columns: int) -> tuple[str, ...]:
    return tuple(str(k + 1) for k in range(n_columns))


def _decimal(delimiter: str, rows: Sequence[Sequence[str]]) -> str:
    """Return the decimal mark: a comma if numbers have commas, and none has a point.

    Without semicolons between the columns, 12,345 may be a whole number.
    """
    if delimiter == ",":
        return "."
    fields = [field.strip() for row in rows for field in row]
    if any(map(POINT_NUMBER.fullmatch, fields)):
        return "."
    commas = list(filter(COMMA_NUMBER.fullmatch, fields))
    is_clear = delimiter == ";" or not all(map(THOUSANDS.fullmatch, commas))
    return "," if commas and is_clear else "."


def table_hint(start: bytes) -> str:
    """Return the end of an error of a file that is no LIBSVM text but likely a table, or "".

    `start` has its first bytes.
    """
    kind = next((kind for magic, kind in BINARY_TABLES.items() if start.startswith(magic)), None)
    if kind is not None:
        return f": the file has the format {kind}: give --format {kind}"
    delimiter = _plain_delimiter(start)
    if delimiter is None:
        return ""
    kind = "tsv" if delimiter == "\t" else "csv"
    return f": the file looks like a table with {DELIMITER_NAMES[delimiter]}: give --format {kind}"


def _plain_delimiter(start: bytes) -> str | None:
    """Return the delimiter if the first lines are plainly of a table, else None.

    They have the same number of fields, at least 2, and no index:value.
    """
    lines = start.decode("latin-1").split("\n")[:PLAIN_LINES]
    if len(lines) > 2 and lines[-1]:
        lines.pop()  # may be cut
    lines = [line for line in lines if line.strip() and not line.startswith("#")]
    if len(lines) < 2 or any(map(_has_pairs, lines)):
        return None
    unquoted = [re.sub(r'"[^"]*"', "", line).strip() for line in lines]
    for delimiter in (*DELIMITERS, BLANKS):
        sizes = {len(line.split(None if delimiter == BLANKS else delimiter)) for line in unquoted}
        if len(sizes) == 1 and min(sizes) > 1:
            return delimiter
    return None


def _has_pairs(line: str) -> bool:
    """Return whether a line has index:value, which a time such as 12:30 is not."""
    pairs = [word for word in line.split() if re.match(r"[-+]?\d+:", word)]
    return len(pairs) > 1 or any(not re.match(r"\d{1,2}:\d\d", word) for word in pairs)
