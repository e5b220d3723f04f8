"""The columns that rows use, if there are far more columns than values, and warnings about them.

For warnings the rows are read once. One-hot columns and images give none: their columns have the
same scale, and each constant column holds zero or the minimum or maximum of all values.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, TypeVar

import numpy as np

from dcsvm.data.arrays import distinct
from dcsvm.data.rows import ChosenRows, Rows, Storage, are_far, row_hashes

AnyModel = TypeVar("AnyModel", bound=Any)


@dataclass(frozen=True, eq=False)
class UsedColumns:
    """Columns of rows with `n_features` columns.

    `used`, int32 ascending, are the columns with values, None if all columns are used. Memory then
    grows with the number of distinct indices, not with the largest index.
    """

    n_features: int
    used: np.ndarray | None = None

    @staticmethod
    def of_rows(rows: Rows, *others: Rows) -> UsedColumns:
        """Find the columns with values in any of the rows; all columns if some rows are dense."""
        sides = [rows, *others]
        if not has_far_columns(*sides):
            return UsedColumns(rows.n_features)
        used = distinct(np.concatenate([one.csr.indices for one in sides]))
        return UsedColumns(rows.n_features, used)

    def of(self, rows: Rows) -> Rows:
        """Return the rows with only these columns, renumbered from 0."""
        if self.used is None:
            return rows
        if rows.is_dense:
            rows = rows.in_storage(Storage.SPARSE)
        return narrowed(rows, self.used)

    def all_of(self, rows: Any) -> Any:
        """Expand Rows or ChosenRows to all columns."""
        if self.used is None:
            return rows
        if isinstance(rows, ChosenRows):
            return replace(rows, rows=self.all_of(rows.rows))
        return replace(rows, n_features=self.n_features, indices=self.used[rows.csr.indices])

    def model(self, model: AnyModel) -> AnyModel:
        """Convert a model trained on these columns to the caller's column indices."""
        if self.used is None:
            return model
        exact, early = model.exact, model.early
        if exact is not None:
            exact = replace(exact, rows=self.all_of(exact.rows))
        if early is not None:
            partition = replace(early.partition, sample=self.all_of(early.partition.sample))
            early = replace(early, rows=self.all_of(early.rows), partition=partition)
        return replace(model, exact=exact, early=early)


def has_far_columns(*sides: Rows) -> bool:
    """Return whether rows have far more columns than values; dense rows never have."""
    if any(rows.is_dense for rows in sides):
        return False
    n_values = sum(len(rows.csr.values) for rows in sides)
    return are_far(max(rows.n_features for rows in sides), n_values)


def without_empty_columns(*sides: Rows) -> tuple[Rows, ...]:
    """Remove columns that are zero in all sides if there are far more columns than values."""
    columns = UsedColumns.of_rows(*sides)
    return tuple(columns.of(rows) for rows in sides)


def narrowed(rows: Rows, used: np.ndarray) -> Rows:
    """Keep only the columns `used`, renumbered from 0; others are zero in all rows."""
    if rows.is_dense:
        floats = rows.as_floats()
        dense = np.take(floats.features, used, axis=1)
        return replace(floats, n_features=len(used), dense=dense)
    indices = np.searchsorted(used, rows.csr.indices).astype(np.int32)
    return replace(rows, n_features=len(used), indices=indices)


MIN_ROWS = 20  # with fewer rows, only the check for serial numbers is done
DIFFERENT_SCALES = 1000  # warn above this ratio: largest span of a feature / lower quartile
DISTINCT_LABELS = 0.9  # warn above this ratio: distinct labels / rows
# Warn of more distinct labels than this, if they have fractions, or fewer rows each than this.
MANY_LABELS, FEW_ROWS_OF_LABEL = 32, 100
BLOCK = 2**18  # values in a block of rows, which fits in the CPU cache


def data_warnings(rows: Rows, labels: np.ndarray | None, first_index: int = 1) -> list[str]:
    """Return the warnings about training rows, one sentence each.

    `labels` are the classes, float64 (n_samples,); None if the rows have no classes.
    `first_index` is the index of column 0 in the file.
    """
    if first_index == 0 and _are_numbered(rows):
        return ["the rows are numbered 0:1, 0:2, ..., as in files of a precomputed kernel (-t 4)"]
    if rows.n_samples < MIN_ROWS:
        return []
    warnings = [] if labels is None else list(_label_warnings(labels))
    if rows.columns is None:
        columns, minimum, maximum = _extremes(rows)
        warnings += _feature_warnings(columns + first_index, minimum, maximum)
    return warnings


def _are_numbered(rows: Rows) -> bool:
    """Return whether column 0 of the first three rows holds serial numbers."""
    first = rows.part(slice(0, min(rows.n_samples, 3)))
    if first.is_dense:
        return first.n_samples == 3 and first.features[:, 0].tolist() == [1, 2, 3]
    csr = first.csr
    return csr.values[csr.indices == 0].tolist() == [1, 2, 3]


def _label_warnings(labels: np.ndarray) -> Iterator[str]:
    known = distinct(labels)
    n_distinct = len(known)
    are_few = len(labels) < FEW_ROWS_OF_LABEL * n_distinct
    if n_distinct > DISTINCT_LABELS * len(labels):
        yield (
            f"{n_distinct} distinct labels in {len(labels)} rows: these look like targets of a "
            "regression (-s 3), or the first column is not the label"
        )
    elif n_distinct > MANY_LABELS and (are_few or np.any(known != np.round(known))):
        yield (
            f"each of the {n_distinct} distinct labels is a class: for targets of a regression, "
            "give -s 3"
        )


def _feature_warnings(index: np.ndarray, minimum: np.ndarray, maximum: np.ndarray) -> Iterator[str]:
    """Yield warnings about the features with these indices, minima and maxima."""
    if len(index) == 0:
        return
    span = maximum.astype(np.float64) - minimum
    varying = np.flatnonzero(span)
    # a feature that spans much more than a quarter of the others decides the kernel alone
    if len(varying) > 1:
        order = varying[np.argsort(span[varying], kind="stable")]
        low, high = order[(len(order) - 1) // 4], order[-1]
        if span[high] > DIFFERENT_SCALES * span[low]:
            yield (
                f"feature {index[high]} spans {span[high]:.3g}, but a quarter of the features "
                f"at most {span[low]:.3g} (feature {index[low]}): these hardly affect the kernel; "
                "scale the data, e.g. with --scale auto"
            )
    # constants other than the ends of a scaling, such as 0 and 1
    ordinary = (0, min(0, minimum.min()), max(0, maximum.max()))
    constant = np.flatnonzero((span == 0) & ~np.isin(minimum, ordinary))
    if len(constant) == 1:
        yield f"feature {index[constant[0]]} is constant: {minimum[constant[0]]:g} in all rows"
    elif len(constant) > 1:
        yield f"{len(constant)} features are constant, the first is feature {index[constant[0]]}"


def _extremes(rows: Rows) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return (columns, minima, maxima); CSR columns without values may be omitted."""
    if rows.is_dense:
        minimum, maximum = (rows.part(slice(0, 1)).features[0].copy() for _ in range(2))
        for batch in rows.slices(BLOCK):
            block = rows.part(batch).features
            np.minimum(minimum, block.min(axis=0), out=minimum)
            np.maximum(maximum, block.max(axis=0), out=maximum)
        return np.arange(rows.n_features), minimum, maximum
    _, indices, values = rows.csr
    if rows.n_features > len(indices):
        columns, position = np.unique(indices, return_inverse=True)
    else:
        columns, position = np.arange(rows.n_features), indices
    # a row without an entry has a 0
    minimum = np.where(np.bincount(position, minlength=len(columns)) < rows.n_samples, 0, np.inf)
    maximum = -minimum
    np.minimum.at(minimum, position, values)
    np.maximum.at(maximum, position, values)
    return columns, minimum, maximum


FAR_FROM_ZERO = 250  # size / spread; float32 rounds a value by up to 2^-24 of it, a 2^-16 / 256
SAMPLED = 100  # rows of a sample


def columns_far_from_zero(rows: Rows) -> np.ndarray:
    """Return the columns, ascending, that may lose more than 2^-16 of their spread in float32.

    A sample of the rows tells: values of such a column differ by less than 1/256 of their size, so
    none of them is 0 and a sample has nearly their size, but at most their spread.
    """
    if rows.n_samples == 0 or rows.is_bytes or rows.columns is not None:
        return np.zeros(0, np.int64)
    numbers = distinct(np.linspace(0, rows.n_samples - 1, SAMPLED).astype(np.int64))
    columns, minimum, maximum = _extremes(rows.take(numbers))
    minimum, maximum = minimum.astype(np.float64), maximum.astype(np.float64)
    size = np.maximum(np.abs(minimum), np.abs(maximum))
    return columns[size > FAR_FROM_ZERO * (maximum - minimum)].astype(np.int64)


def part_among(rows: Rows, others: Rows) -> float:
    """Return the fraction of `rows` that also occur in `others`.

    Rows are compared by hashes: two distinct rows have equal ones with probability 2^-64.
    """
    if rows.n_samples == 0:
        return 0.0
    n_features = max(rows.n_features, others.n_features)
    rows, others = without_empty_columns(
        rows.with_features(n_features), others.with_features(n_features)
    )
    hashes, others_hashes = (row_hashes(side, by_value=True) for side in (rows, others))
    return float(np.isin(hashes, others_hashes).mean())


def part_repeated(rows: Rows) -> float:
    """Return the fraction of `rows` that equal another one, as `part_among` compares them."""
    hashes = row_hashes(without_empty_columns(rows)[0], by_value=True)
    counts = np.unique(hashes, return_counts=True)[1]
    return float(counts[counts > 1].sum()) / max(rows.n_samples, 1)
