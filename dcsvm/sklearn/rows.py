"""Rows of fit and predict: arrays and sparse matrices by scikit-learn's checks, and data frames.

A data frame with text or gaps stays one: its columns are encoded, and predictions match them by
name. Other frames become arrays, but the medians of their columns are kept for gaps in later rows.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy import sparse
from sklearn.base import BaseEstimator
from sklearn.utils.validation import (
    _get_feature_names,
    check_array,
    check_consistent_length,
    validate_data,
)

from dcsvm.data.dataset import Dataset
from dcsvm.data.frames import has_only_numbers, known_frame
from dcsvm.sklearn.checks import Input

# dtypes that are not converted to float64
DTYPES = [np.float64, np.float32, np.float16, np.uint8, np.int8, np.uint16, np.int16, np.uint32,
          np.int32, np.uint64, np.int64, np.bool_]  # fmt: skip
CHECKS: dict[str, Any] = {"dtype": DTYPES, "order": "C", "accept_sparse": "csr"}


def in_known_frame(X: Any) -> Any:
    """Return X, but a stream of Arrow, which may be read once, as a table of pyarrow.

    Raises TypeError for a Dataset.
    """
    if isinstance(X, Dataset):
        raise TypeError("estimators take X and y, not a Dataset: dcsvm.train takes a Dataset")
    frame = known_frame(X)
    return X if frame is None else frame


def _finite(X: Input, allows_gaps: bool) -> bool | str:
    """Return scikit-learn's setting for values that are not finite; sparse rows have no gaps."""
    return "allow-nan" if allows_gaps and not sparse.issparse(X) else True


def _has_nan(rows: Any) -> bool:
    return bool(np.isnan(rows.data if sparse.issparse(rows) else rows).any())


def _table_of(X: Any) -> Any:
    """Return the encoding of numbers without gaps; None if names of columns are equal."""
    try:
        return Dataset.table_of(X)
    except ValueError:
        return None


class TakesRows(BaseEstimator):
    """Estimator that checks the rows of fit and predict.

    Its methods take X as of `in_known_frame`.
    """

    _takes_gaps = False  # NaN in arrays is a missing value, and all data frames are encoded
    _least_rows = 1
    # how rows with gaps are encoded, if the rows of the fit had none and their model has no table
    _table_of_gaps: Any = None

    def _checked_data(self, X: Any, y: ArrayLike) -> tuple[Any, ArrayLike]:
        """Check arguments of fit; return X as an array, a CSR matrix or a frame to encode."""
        self._table_of_gaps = None
        self._check_size(X, self._least_rows)
        if not self._encodes(X):
            rows, y = validate_data(
                self, X, y,
                ensure_all_finite=_finite(X, self._takes_gaps),
                ensure_min_samples=self._least_rows, **CHECKS,
            )  # fmt: skip
            if self._is_table(X):
                self._table_of_gaps = _table_of(X)
            elif self._takes_gaps and not sparse.issparse(rows) and not _has_nan(rows):
                self._table_of_gaps = _table_of(rows)
            return rows, y
        y = validate_data(self, "no_validation", y)
        validate_data(self, X, y, skip_check_array=True)
        check_consistent_length(X, y)
        return X, y

    def _is_table(self, X: Any) -> bool:
        """Whether X is a data frame of features."""
        return known_frame(X) is not None

    def _encodes(self, X: Any) -> bool:
        """Whether X is a data frame whose columns are encoded in a fit."""
        return self._is_table(X) and (self._takes_gaps or not has_only_numbers(X))

    def _check_size(self, X: Any, least_rows: int = 1) -> None:
        """Refuse a frame without columns or with too few rows in scikit-learn's words."""
        if known_frame(X) is not None and (X.shape[0] < least_rows or not X.shape[1]):
            check_array(np.zeros(X.shape), ensure_min_samples=least_rows, estimator=self)

    def _fills(self, X: Any) -> bool:
        """Whether X is a data frame with gaps or text for a model of numbers without gaps."""
        known = self._table_of_gaps is not None and self._is_table(X)
        return known and not has_only_numbers(X)

    def _checked_rows(self, X: Any, model: Any) -> tuple[Any, Any]:
        """Check rows to predict; return them with the model that predicts them.

        Frames for a model with encoded columns stay frames. If rows have gaps and those of the fit
        had none, the model returned encodes them.
        """
        self._check_size(X)
        is_frame, has_table = self._is_table(X), model is not None and model.table is not None
        fills = model is not None and self._fills(X)
        if is_frame and (has_table or fills):
            self._check_columns(X, in_order=fills)
            return X, replace(model, table=self._table_of_gaps) if fills else model
        finite = _finite(X, self._takes_gaps or has_table or is_frame)
        rows = validate_data(self, X, reset=False, ensure_all_finite=finite, **CHECKS)
        if finite is True or has_table or not _has_nan(rows):
            return rows, model
        if self._table_of_gaps is None:
            raise ValueError("Input X contains NaN, but no row of the fit had a missing value.")
        return rows, replace(model, table=self._table_of_gaps)

    def _check_columns(self, frame: Any, *, in_order: bool) -> None:
        """Check the names of columns, or their number. Raises ValueError."""
        names, known = _get_feature_names(frame), getattr(self, "feature_names_in_", ())
        if in_order or names is None or sorted(names) != sorted(known):
            validate_data(self, frame, reset=False, skip_check_array=True)
