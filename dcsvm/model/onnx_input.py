"""Nodes that encode and scale rows to predict as the training rows were (dcsvm.data).

Numbers are computed in float64 and rounded to float32 where dcsvm does.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dcsvm.data.columns import MISSING, MISSING_TEXTS, Column, TableEncoding
from dcsvm.data.notations import BOOLEAN, CATEGORY, DATE, NUMBER
from dcsvm.data.rows import Rows, Storage, of_columns
from dcsvm.data.scaling import ONE_HOT, Interval, Offsets, Quantiles, Scaling
from dcsvm.model.onnx_nodes import DOUBLE, FLOAT, STRING, Graph
from dcsvm.model.parts import ModelParts

# Largest change of a scaled value by rounding to float32 before the scaling. A value that fills its
# range changes by 2^-23.
ROUNDED = 2.0**-21


@dataclass(frozen=True, eq=False)
class Inputs:
    """Tensors of the rows to predict: `matrix` (n, d), or `columns` (n, 1) by name in their order.

    `texts` are the tensors of text.
    """

    matrix: str | None
    columns: dict[str, str]
    texts: frozenset[str] = frozenset()


class RowNodes:
    """Rows to predict, as features of the model.

    `features` (d,) are the features in use, ascending.
    """

    def __init__(self, graph: Graph, model: ModelParts, inputs: Inputs, n_features: int):
        self.scaling, self.table = model.scaling, model.table
        self.features = np.arange(n_features)
        if self.scaling is not None and not self.scaling.is_shift:
            self.features = self.scaling.columns
        if self.table is not None:
            self._place(self.table)
            self._given = _table(graph, self.table, self._columns, inputs)
        else:
            self._given = _matrix(graph, inputs, FLOAT if self.scaling is None else DOUBLE)

    def _place(self, table: TableEncoding) -> None:
        """Find the columns in use, and for each feature its place among them and in its column."""
        owner = np.searchsorted(table.start, self.features, side="right") - 1
        self._columns, self._owner = np.unique(owner, return_inverse=True)
        if len(self._columns) == 0:  # the rows must be counted
            self._columns = np.zeros(1, np.int64)
        self._in_column = self.features - table.start[owner]

    def count(self, graph: Graph) -> str:
        """Return the number of rows (1,)."""
        return graph.n_rows(self._given)

    def taken(self, graph: Graph, items: str) -> str:
        """Return the features in use of some rows, float64 (m, d), or a column of zeros."""
        if len(self.features) == 0:
            return graph.filled(graph.Concat(graph.Shape(items), [1], axis=0), 0.0)
        rows = graph.Gather(self._given, items)
        if self.table is not None:
            rows = self._encoded(graph, self.table, rows)
        if self.scaling is None:
            return graph.cast(graph.cast(rows, FLOAT), DOUBLE)
        if self.table is None and not self.scaling.is_shift:
            rows = graph.columns(rows, self.features)
        return graph.cast(_scaled(graph, self.scaling, self.features, rows), DOUBLE)

    def vectors(self, rows: Rows) -> np.ndarray:
        """Return the features in use of rows of the model, float32 (n, d), or zeros."""
        dense = rows.in_storage(Storage.FLOATS).matrix
        if len(self.features) == 0:
            return np.zeros((len(dense), 1), np.float32)
        vectors = np.zeros((len(dense), len(self.features)), np.float32)
        known = self.features < rows.n_features
        vectors[:, known] = dense[:, self.features[known]]
        return vectors

    def _encoded(self, graph: Graph, table: TableEncoding, rows: str) -> str:
        """Return the features of rows of numbers and codes (m, n_columns)."""
        columns = [table.columns[c] for c in self._columns]
        owners = [columns[k] for k in self._owner]
        # each feature is a number, a mark of a missing one, a category, or a part of a date
        kinds = np.array(list(map(_kind_of_feature, owners, self._in_column.tolist())), str)
        fill = np.array([column.fill for column in owners])
        joined = Pieces()
        for kind in np.unique(kinds).tolist():
            which = np.flatnonzero(kinds == kind)
            given = graph.columns(rows, self._owner[which])
            if kind == CATEGORY:
                is_own = graph.Equal(given, self._in_column[which].astype(np.float64))
                values = graph.Mul(graph.cast(is_own, DOUBLE), ONE_HOT)
            elif kind == MISSING:
                values = graph.cast(graph.IsNaN(given), DOUBLE)
            else:
                values = graph.Where(graph.IsNaN(given), fill[which], given)
                if kind != NUMBER:
                    first = np.array([owners[k].first for k in which])
                    values = _part_of_date(graph, values, kind, first)
            joined.add(values, which)
        return joined.ordered(graph)


class Pieces:
    """Matrices whose columns are parts of a matrix."""

    def __init__(self) -> None:
        self.tensors: list[str] = []
        self.columns: list[np.ndarray] = []

    def add(self, tensor: str, columns: np.ndarray) -> None:
        self.tensors.append(tensor)
        self.columns.append(columns)

    def ordered(self, graph: Graph) -> str:
        """Return the whole matrix."""
        if len(self.tensors) == 1:
            return self.tensors[0]
        order = np.argsort(np.concatenate(self.columns))
        return graph.columns(graph.Concat(*self.tensors, axis=1), order)


def input_kinds(model: ModelParts) -> dict[str, int]:
    """Return the type of the input of each column of a table.

    Text is STRING. Numbers are DOUBLE where rounding to float32 could show.
    """
    assert model.table is not None
    return {
        column.name: _input_kind(column, model.scaling, int(first))
        for column, first in zip(model.table.columns, model.table.start, strict=False)
    }


def _input_kind(column: Column, scaling: Scaling | None, feature: int) -> int:
    if column.kind == CATEGORY:
        return STRING
    if column.kind not in (NUMBER, BOOLEAN):
        return DOUBLE
    place = [] if scaling is None else np.flatnonzero(scaling.columns == feature).tolist()
    if scaling is None or not place:
        return FLOAT
    maps = scaling.features.of(np.array(place))
    if isinstance(maps, Offsets):
        return DOUBLE
    if isinstance(maps, Interval):
        knots = np.array([maps.minimum[0], maps.maximum[0]])
        levels = np.array([maps.lower, maps.upper])
    else:
        knots, levels = maps.knots, maps.levels
        if np.array_equal(knots, np.round(knots)) and np.abs(knots).max() <= 2**24:
            return FLOAT  # whole numbers
    sizes = np.maximum(np.abs(knots[:-1]), np.abs(knots[1:]))
    changes = 2.0**-24 * sizes * np.diff(levels) / np.diff(knots)
    return FLOAT if changes.max(initial=0.0) <= ROUNDED else DOUBLE


def _matrix(graph: Graph, inputs: Inputs, kind: int) -> str:
    """Return the features (n, d) of rows without a table."""
    if inputs.matrix is not None:
        return graph.cast(inputs.matrix, kind)
    columns = [graph.cast(one, kind) for one in inputs.columns.values()]
    return graph.Concat(*columns, axis=1) if len(columns) > 1 else columns[0]


def _table(graph: Graph, table: TableEncoding, which: np.ndarray, inputs: Inputs) -> str:
    """Return numbers and codes of some columns of a table, float64 (n, m). Raises ValueError."""
    columns = [table.columns[c] for c in which]
    matrix = inputs.matrix
    if matrix is None:
        given = [_named(inputs, column.name) for column in columns]
    else:
        places = [int(one.name[1:]) for one in columns] if table.is_of_matrix else which.tolist()
        if matrix not in inputs.texts:
            if any(column.kind == CATEGORY for column in columns):
                raise ValueError(
                    "the model encodes text: give an input for each column of the table"
                )
            return graph.columns(graph.cast(matrix, DOUBLE), places)
        given = [graph.columns(matrix, [place]) for place in places]
    texts = inputs.texts if matrix is None else frozenset(given)
    values = [
        graph.cast(
            _code(graph, column, one if one in texts else graph.cast(one, STRING))
            if column.kind == CATEGORY
            else one,
            DOUBLE,
        )
        for column, one in zip(columns, given, strict=True)
    ]
    return graph.Concat(*values, axis=1) if len(values) > 1 else values[0]


def _named(inputs: Inputs, name: str) -> str:
    if name not in inputs.columns:
        raise ValueError(f"there is no input for the column {name}")
    return inputs.columns[name]


def _code(graph: Graph, column: Column, text: str) -> str:
    """Return the category of each text, int64 (n, 1), -1 for none."""
    places = column.places
    if MISSING in places:
        places = dict.fromkeys(MISSING_TEXTS, places[MISSING]) | places
    # files have text with a blank before or after it
    for blanks in ("{} ", " {}", " {} "):
        places = {blanks.format(one): place for one, place in places.items()} | places
    return graph.LabelEncoder(
        text, domain="ai.onnx.ml", keys_strings=list(places),
        values_int64s=list(places.values()), default_int64=-1,
    )  # fmt: skip


def _kind_of_feature(column: Column, number: int) -> str:
    """Return CATEGORY, MISSING for a mark, the part of a date, or NUMBER."""
    if column.kind == CATEGORY:
        return CATEGORY
    if column.has_indicator and number == column.n_features - 1:
        return MISSING
    return column.parts[number] if column.kind == DATE else NUMBER


def _scaled(graph: Graph, scaling: Scaling, features: np.ndarray, rows: str) -> str:
    """Scale and weight rows float64 (m, d) of some features; returns float32."""
    maps = scaling.features
    if isinstance(maps, Offsets):
        scaled = graph.Sub(rows, of_columns(maps.offset, scaling.columns, features))
    elif isinstance(maps, Interval):
        difference = graph.Mul(graph.Sub(rows, maps.minimum), maps.upper - maps.lower)
        scaled = graph.Add(graph.Div(difference, maps.maximum - maps.minimum), maps.lower)
    else:
        n_knots, joined = np.diff(maps.start), Pieces()
        for which in (np.flatnonzero(n_knots <= 2), np.flatnonzero(n_knots > 2)):
            if len(which):
                own = graph.columns(rows, which)
                joined.add(_interpolated(graph, maps.of(which), own), which)
        scaled = joined.ordered(graph)
    scaled = graph.cast(scaled, FLOAT)
    if scaling.weights is None:
        return scaled
    return graph.Mul(scaled, scaling.weights.astype(np.float32))


def _interpolated(graph: Graph, maps: Quantiles, values: str) -> str:
    """Map each column of values (m, d) linearly between its knots."""
    start, last = maps.start[:-1], np.diff(maps.start) - 2  # of the pieces of each column
    low, high = maps.knots[start], maps.knots[start + last + 1]
    values = graph.Max(graph.Min(values, high), low)
    knots, levels = graph.constant(maps.knots), graph.constant(maps.levels)
    # the last piece that begins at or below the value, by binary search
    piece = graph.constant(np.zeros(len(start), np.int64))
    for power in reversed(range(int(last.max()).bit_length())):
        tried = graph.Min(graph.Add(piece, [2**power]), last)
        begin = graph.Gather(knots, graph.Add(tried, start))
        piece = graph.Where(graph.GreaterOrEqual(values, begin), tried, piece)
    at = graph.Add(piece, start)
    after = graph.Add(at, [1])
    x, x_after, y, y_after = (
        graph.Gather(table, place) for table in (knots, levels) for place in (at, after)
    )
    slope = graph.Div(graph.Sub(y_after, y), graph.Sub(x_after, x))
    return graph.Add(graph.Mul(slope, graph.Sub(values, x)), y)


def _part_of_date(graph: Graph, days: str, part: str, first: np.ndarray) -> str:
    """Return a part of dates (m, d), see dcsvm.data.notations.part_of_date."""

    def quotient(number: str, divisor: float) -> str:
        return graph.Floor(graph.Div(number, divisor))

    def rest(number: str, divisor: float) -> str:
        return graph.Sub(number, graph.Mul(quotient(number, divisor), divisor))

    if part == "days":
        return graph.Sub(days, first)
    whole = graph.Floor(days)
    if part == "weekday":
        return rest(graph.Add(whole, 3.0), 7.0)
    if part == "hour":
        hours = graph.Mul(graph.Sub(days, whole), 24.0)
        return graph.Div(graph.Round(graph.Mul(hours, 1e8)), 1e8)
    # Years begin in March, so that a leap day is the last one; 400 years have 146,097 days.
    since = graph.Add(whole, 719468.0)  # 0000-03-01
    day = rest(since, 146097.0)
    n_leap = graph.Sub(
        quotient(day, 36524.0), graph.Add(quotient(day, 1460.0), quotient(day, 146096.0))
    )
    year = quotient(graph.Add(day, n_leap), 365.0)
    before = graph.Add(
        graph.Mul(year, 365.0), graph.Sub(quotient(year, 4.0), quotient(year, 100.0))
    )
    day_of_year = graph.Sub(day, before)
    month = quotient(graph.Add(graph.Mul(day_of_year, 5.0), 2.0), 153.0)  # 0 is March
    is_next = graph.cast(graph.GreaterOrEqual(month, 10.0), DOUBLE)
    if part == "month":
        return graph.Sub(graph.Add(month, 3.0), graph.Mul(is_next, 12.0))
    return graph.Add(graph.Add(year, graph.Mul(quotient(since, 146097.0), 400.0)), is_next)
