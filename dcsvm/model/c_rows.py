"""C code that encodes and scales rows to predict as the training rows were (dcsvm.data).

Numbers are computed in double and rounded to float where dcsvm does. A row in C has the features in
use, see `RowCode`, all of them or only those that are not 0.
"""

from __future__ import annotations

from collections.abc import Collection
from string import Template
from typing import NamedTuple

import numpy as np

from dcsvm.data.arrays import Csr, distinct
from dcsvm.data.columns import MISSING, MISSING_TEXTS, Column, TableEncoding, stripped
from dcsvm.data.notations import BOOLEAN, CATEGORY, DATE, PARTS, TRUTH
from dcsvm.data.rows import Rows, of_columns
from dcsvm.data.scaling import ONE_HOT, Interval, Offsets, Quantiles
from dcsvm.kernel.kernels import ABSOLUTE_DISTANCE, SQUARED_DISTANCE
from dcsvm.model.c_literals import array, doubles, floats, integers, number, texts
from dcsvm.model.parts import ModelParts


class Rest(NamedTuple):
    """What features that are 0 in all vectors add to a distance: name of the sum, and terms."""

    name: str
    term: str


REST = {
    SQUARED_DISTANCE: Rest("squares", "value * value"),
    ABSOLUTE_DISTANCE: Rest("sizes", "fabs(value)"),
}
# Kinds of features of a table, in this order of numbers; those of DATES are parts of dates.
KINDS = ("number", "missing", "category", "missing category", *PARTS)
DATES = {KINDS.index(part) for part in PARTS}

ROW = Template(
    """\
/* The features of a row, scaled$comment. */
typedef struct {
$members} dcsvm_row;

/* Rounds to float; compilers that keep more digits, or lose this step, heed volatile. */
static float dcsvm_rounded(double number) {
  const volatile float rounded = (float)number;
  return rounded;
}

/* Sets feature k, of ascending ones, to a number before scaling. */
static void dcsvm_put(dcsvm_row *x, int k, double number) {
  const float value = $value;
$store}
"""
)
DENSE_MEMBERS, DENSE_STORE = "  double value[$size];\n", "  x->value[k] = value;\n"
SPARSE_MEMBERS = "  int size, index[$size];\n  float value[$size];\n"
SPARSE_STORE = """\
  if (value != 0.0f) {
    x->index[x->size] = k;
    x->value[x->size++] = value;
  }
"""
REST_OF_ROW = Template(
    """
/* Adds a feature that is 0 in all vectors. */
static void dcsvm_add_rest(dcsvm_row *x, double number) {
  const double value = dcsvm_rounded(number);
$terms}
"""
)
INTERVAL = Template(
    """\
/* Maps the range of feature k linearly to $lower ... $upper. */
static double dcsvm_scaled(int k, double number) {
  const double minimum = dcsvm_minima[k], maximum = dcsvm_maxima[k];
  if (number == minimum) return $lower;
  if (number == maximum) return $upper;
  return $lower + $width * (number - minimum) / (maximum - minimum);
}

"""
)
QUANTILES = """\
/* Maps feature k linearly between its knots. */
static double dcsvm_scaled(int k, double number) {
  int low = dcsvm_knot_starts[k], high = dcsvm_knot_starts[k + 1] - 1;
  if (number <= dcsvm_knots[low]) return dcsvm_levels[low];
  if (number >= dcsvm_knots[high]) return dcsvm_levels[high];
  while (high - low > 1) {
    const int middle = low + (high - low) / 2;
    if (dcsvm_knots[middle] <= number) low = middle;
    else high = middle;
  }
  return (dcsvm_levels[high] - dcsvm_levels[low]) / (dcsvm_knots[high] - dcsvm_knots[low]) *
             (number - dcsvm_knots[low]) + dcsvm_levels[low];
}

"""
DAYS = """\
/* Returns the days from 1970 to the beginning of a year. */
static double dcsvm_days_before(double year) {
  const double last = year - 1.0;
  return 365.0 * (year - 1970.0) + floor(last / 4.0) - floor(last / 100.0) +
         floor(last / 400.0) - 477.0;
}

/* Returns the year of a date in days since 1970, or its month. */
static double dcsvm_calendar(double days, int is_month) {
  static const int ends[] = {31, 59, 90, 120, 151, 181, 212, 243, 273, 304, 334};
  const double day = floor(days);
  double year = 1970.0 + floor(day / 365.2425), in_year;
  int month = 0, leap;
  if (dcsvm_days_before(year) > day) year -= 1.0;
  else if (dcsvm_days_before(year + 1.0) <= day) year += 1.0;
  if (!is_month) return year;
  leap = dcsvm_days_before(year + 1.0) - dcsvm_days_before(year) > 365.0;
  in_year = day - dcsvm_days_before(year);
  while (month < 11 && in_year >= ends[month] + (month > 0 ? leap : 0)) ++month;
  return month + 1.0;
}

"""
FEATURE = Template(
    """\
/* Returns feature k of a row of the table, before scaling. */
static double dcsvm_feature(const double *row, int k) {
  const double number = row[dcsvm_places[k]];
  const double filled = isnan(number) ? dcsvm_numbers[k] : number;
  switch (dcsvm_kinds[k]) {
    case $missing: return isnan(number) ? 1.0 : 0.0;
    case $category: return number == dcsvm_numbers[k] ? $one_hot : 0.0;
    case $missing_category: return filled == dcsvm_numbers[k] ? $one_hot : 0.0;
$dates    default: return filled;
  }
}

"""
)
OF_DATES = {
    "days": "filled - dcsvm_first_days[k]",
    "year": "dcsvm_calendar(filled, 0)",
    "month": "dcsvm_calendar(filled, 1)",
    "weekday": "floor(filled) + 3.0 - 7.0 * floor((floor(filled) + 3.0) / 7.0)",
    "hour": "rint(24.0 * (filled - floor(filled)) * 1e8) / 1e8",
}
VALUES = Template(
    """\
int dcsvm_values(const double *row, double *values) {
  dcsvm_row x;
  int k;
$start  for (k = 0; k < DCSVM_FEATURES; ++k) dcsvm_put(&x, k, $number);
  return dcsvm_decide(&x, values);
}

"""
)
VALUES_WITH_REST = Template(
    """\
int dcsvm_values(const double *row, double *values) {
  dcsvm_row x;
  int place, k = 0;
$start  for (place = 0; place < DCSVM_COLUMNS; ++place) {
    if (k < DCSVM_FEATURES && dcsvm_places[k] == place) dcsvm_put(&x, k++, row[place]);
    else dcsvm_add_rest(&x, row[place]);
  }
  return dcsvm_decide(&x, values);
}

"""
)
SPARSE_VALUES = Template(
    """\
int dcsvm_values_sparse(int n, const int *index, const double *value, double *values) {
  dcsvm_row x;
  int i = 0, k;
$start  for (k = 0; k < DCSVM_FEATURES; ++k) {
    while (i < n && index[i] < dcsvm_places[k]) $skip;
    dcsvm_put(&x, k, i < n && index[i] == dcsvm_places[k] ? value[i++] : 0.0);
  }
$rest  return dcsvm_decide(&x, values);
}

"""
)
SPARSE_VALUES_OF_TABLE = """\
int dcsvm_values_sparse(int n, const int *index, const double *value, double *values) {
  double row[DCSVM_COLUMNS] = {0.0};
  int i;
  for (i = 0; i < n; ++i) {
    if (index[i] >= 0 && index[i] < DCSVM_COLUMNS) row[index[i]] = value[i];
  }
  return dcsvm_values(row, values);
}

"""
CODE = """\
/* Compares n characters with a text, as strcmp does. */
static int dcsvm_compare(const char *characters, size_t n, const char *text) {
  const int order = strncmp(characters, text, n);
  if (order != 0) return order;
  return text[n] == 0 ? 0 : -1;
}

double dcsvm_code(int column, const char *text) {
  const char *const blanks = " \\t\\n\\v\\f\\r";
  size_t n, k;
  int low, high;
  if (column < 0 || column >= DCSVM_COLUMNS) return NAN;
  text += strspn(text, blanks);
  n = strlen(text);
  while (n > 0 && strchr(blanks, text[n - 1]) != NULL) --n;
  for (k = 0; k < sizeof dcsvm_missing / sizeof *dcsvm_missing; ++k) {
    if (dcsvm_compare(text, n, dcsvm_missing[k]) == 0) return NAN;
  }
  low = dcsvm_text_starts[column];
  high = dcsvm_text_starts[column + 1];
  if (low == high) return NAN;
  while (low < high) {
    const int middle = low + (high - low) / 2;
    const int order = dcsvm_compare(text, n, dcsvm_texts[middle]);
    if (order == 0) return dcsvm_text_codes[middle];
    if (order < 0) high = middle;
    else low = middle + 1;
  }
  return -1.0;
}

"""


class RowCode:
    """The rows to predict in C.

    `features` (d,) are the features in use, ascending: of a scaled model the scaled ones, of a
    table all, else those that are not 0 in the model's `rows`. With `arguments` that are distances
    the last kind adds the others, see REST. `places` (d,) are their columns among the `n_columns`
    of a row.
    """

    def __init__(self, model: ModelParts, rows: list[Rows], arguments: Collection[str]):
        self.table, self.scaling, self.rest = model.table, model.scaling, dict[str, Rest]()
        if model.is_scaled and model.scaling is not None:
            self.features = model.scaling.columns
        elif model.table is not None:
            self.features = np.arange(model.table.n_features)
        else:
            shifted = np.zeros(0, np.int64) if model.scaling is None else model.scaling.columns
            used = [csr_of(one).indices for one in rows]
            self.features = distinct(np.concatenate([shifted, *used]).astype(np.int64))
            self.rest = {one: rest for one, rest in REST.items() if one in arguments}
        self.places, self.n_columns = self.features, int(self.features.max(initial=-1)) + 1
        if model.table is not None:
            self._place(model.table)
        elif not model.is_scaled:
            self.n_columns = max(self.n_columns, rows[0].n_features)
        self.size = max(len(self.features), 1)

    def _place(self, table: TableEncoding) -> None:
        """Find the columns of the features of a table."""
        self._owner = np.searchsorted(table.start, self.features, side="right") - 1
        columns, self.n_columns = np.arange(len(table.columns)), len(table.columns)
        if table.is_of_matrix:
            columns = np.array([int(one.name[1:]) for one in table.columns])
            self.n_columns = table.n_columns_of_matrix
        self.places, self._columns = columns[self._owner], columns

    def vectors(self, rows: Rows) -> Csr:
        """Return rows of the model, whose indices are places among the features in use."""
        csr = csr_of(rows)
        places = np.searchsorted(self.features, csr.indices)
        is_used = np.append(self.features, -1)[places] == csr.indices
        return csr._replace(indices=places, values=csr.values * is_used).without_zeros()

    @property
    def has_codes(self) -> bool:
        """Whether columns have text, which `dcsvm_code` makes numbers."""
        kinds = () if self.table is None else (one.kind for one in self.table.columns)
        return not {CATEGORY, BOOLEAN}.isdisjoint(kinds)

    def definitions(self, *, is_sparse: bool) -> str:
        """Return the code of a row: its type, and how a feature becomes a part of it."""
        members = SPARSE_MEMBERS if is_sparse else DENSE_MEMBERS
        members = Template(members).substitute(size=self.size)
        members += "".join(f"  double {rest.name};\n" for rest in self.rest.values())
        row = ROW.substitute(
            comment="; those that are 0 are left out" if is_sparse else "",
            members=members,
            value=self._value(),
            store=SPARSE_STORE if is_sparse else DENSE_STORE,
        )
        code = self._maps() + row
        if self.rest:
            terms = "".join(f"  x->{name} += {term};\n" for name, term in self.rest.values())
            code += REST_OF_ROW.substitute(terms=terms)
        return f"{integers('dcsvm_places', self.places)}\n{code}\n"

    def functions(self, *, is_sparse: bool) -> str:
        """Return the functions that take rows; they call `dcsvm_decide`."""
        start = "".join(f"  x.{rest.name} = 0.0;\n" for rest in self.rest.values())
        if is_sparse:
            start = f"  x.size = 0;\n{start}"
        elif len(self.features) == 0:
            start = f"  x.value[0] = 0.0;\n{start}"
        if self.table is not None:
            code = self._encoding(self.table)
            code += VALUES.substitute(start=start, number="dcsvm_feature(row, k)")
            code += SPARSE_VALUES_OF_TABLE
            return code + (self._codes(self.table) if self.has_codes else "")
        values = VALUES_WITH_REST if self.rest else VALUES
        code = values.substitute(start=start, number="row[dcsvm_places[k]]")
        skip, rest = "++i", ""
        if self.rest:
            skip = "dcsvm_add_rest(&x, value[i++])"
            rest = f"  while (i < n) {skip};\n"
        return code + SPARSE_VALUES.substitute(start=start, skip=skip, rest=rest)

    def _value(self) -> str:
        """Return the expression of a scaled value, a float."""
        scaling = self.scaling
        value = "number"
        if scaling is not None and isinstance(scaling.features, Offsets):
            value = "number - dcsvm_offsets[k]"
        elif scaling is not None and not scaling.has_only_weights:
            value = "dcsvm_scaled(k, number)"
        if scaling is None or scaling.weights is None:
            return f"dcsvm_rounded({value})"
        return f"dcsvm_rounded(dcsvm_rounded({value}) * dcsvm_factors[k])"

    def _maps(self) -> str:
        """Return the arrays and functions of the scaling."""
        scaling = self.scaling
        if scaling is None:
            return ""
        maps, code = scaling.features, ""
        if isinstance(maps, Offsets):
            offsets = of_columns(maps.offset, scaling.columns, self.features)
            code = array("double", "dcsvm_offsets", doubles(offsets))
        elif isinstance(maps, Quantiles):
            code = integers("dcsvm_knot_starts", maps.start)
            code += array("double", "dcsvm_knots", doubles(maps.knots))
            code += f"{array('double', 'dcsvm_levels', doubles(maps.levels))}\n{QUANTILES}"
        elif isinstance(maps, Interval) and not scaling.has_only_weights:
            code = array("double", "dcsvm_minima", doubles(maps.minimum))
            code += array("double", "dcsvm_maxima", doubles(maps.maximum)) + "\n"
            lower, upper, width = map(number, (maps.lower, maps.upper, maps.upper - maps.lower))
            code += INTERVAL.substitute(lower=lower, upper=upper, width=width)
        if scaling.weights is not None:
            weights = floats(scaling.weights.astype(np.float32))
            code += array("float", "dcsvm_factors", weights) + "\n"
        return code

    def _encoding(self, table: TableEncoding) -> str:
        """Return the arrays and functions that make features of columns."""
        kinds, numbers, first = [], [], []
        in_column = (self.features - table.start[self._owner]).tolist()
        for owner, k in zip(self._owner.tolist(), in_column, strict=True):
            column = table.columns[owner]
            kinds.append(KINDS.index(_kind_of_feature(column, k)))
            numbers.append(float(k) if column.kind == CATEGORY else column.fill)
            first.append(column.first)
        has_dates = not DATES.isdisjoint(kinds)
        cases = [f"    case {KINDS.index(part)}: return {OF_DATES[part]};\n" for part in PARTS]
        code = integers("dcsvm_kinds", np.array(kinds))
        code += array("double", "dcsvm_numbers", doubles(np.array(numbers)))
        if has_dates:
            code += f"{array('double', 'dcsvm_first_days', doubles(np.array(first)))}\n{DAYS}"
        return code + FEATURE.substitute(
            missing=KINDS.index("missing"),
            category=KINDS.index("category"),
            missing_category=KINDS.index("missing category"),
            one_hot=number(ONE_HOT),
            dates="".join(cases) if has_dates else "",
        )

    def _codes(self, table: TableEncoding) -> str:
        """Return `dcsvm_code` and its arrays: the texts of each column of a row, sorted."""
        known: list[dict[bytes, tuple[str, int]]] = [{} for _ in range(self.n_columns)]
        for column, place in zip(table.columns, self._columns.tolist(), strict=True):
            own = _codes(column).items()
            known[place] = {text.encode("utf-8", "replace"): (text, code) for text, code in own}
        ordered = [own[key] for own in known for key in sorted(own)]
        starts = np.cumsum([0, *map(len, known)])
        code = texts("dcsvm_missing", MISSING_TEXTS)
        code += texts("dcsvm_texts", [text for text, _ in ordered])
        code += integers("dcsvm_text_codes", np.array([code for _, code in ordered]))
        return f"{code}{integers('dcsvm_text_starts', starts)}\n{CODE}"


def csr_of(rows: Rows) -> Csr:
    """Return rows of any storage as CSR arrays."""
    return rows.csr if rows.dense is None else Csr.of_dense(rows.dense)


def _kind_of_feature(column: Column, k: int) -> str:
    """Return the kind, see KINDS, of feature k of a column."""
    if column.kind == CATEGORY:
        return "missing category" if column.places.get(MISSING) == k else "category"
    if column.has_indicator and k == column.n_features - 1:
        return "missing"
    return column.parts[k] if column.kind == DATE else "number"


def _codes(column: Column) -> dict[str, int]:
    """Return the number of each text of a column of text or of booleans."""
    if column.kind == BOOLEAN:
        words = {text: int(value) for text, value in TRUTH.items()}
        titles, uppers = (
            {form(text): value for text, value in words.items()} for form in (str.title, str.upper)
        )
        return words | titles | uppers | {"0": 0, "1": 1}
    if column.kind != CATEGORY:
        return {}
    return {text: code for text, code in column.places.items() if stripped(text) == text}
