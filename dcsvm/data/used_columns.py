"""The columns that rows use, if there are far more columns than values."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, TypeVar

import numpy as np

from dcsvm.data.rows import ChosenRows, Rows, Storage, are_far
from dcsvm.data.sorting import distinct

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
