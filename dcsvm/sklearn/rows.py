"""Rows of fit and predict: arrays and sparse matrices by scikit-learn's checks, and data frames.

A data frame with text or gaps stays one: its columns are encoded, and predictions match them by
name. Other frames become arrays.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy import sparse
from sklearn.base import BaseEstimator
from sklearn.utils.validation import (
    _get_feature_names,
    _num_samples,
    check_consistent_length,
    validate_data,
)

from dcsvm.data.frames import has_only_numbers, known_frame
from dcsvm.sklearn.checks import Input, dense

# dtypes that are not converted to float64
DTYPES = [np.float64, np.float32, np.float16, np.uint8, np.int8, np.uint16, np.int16, np.uint32,
          np.int32, np.uint64, np.int64, np.bool_]  # fmt: skip
CHECKS: dict[str, Any] = {"dtype": DTYPES, "order": "C", "accept_sparse": "csr"}


def in_known_frame(X: Any) -> Any:
    """Return X, but a stream of Arrow, which may be read once, as a table of pyarrow."""
    frame = known_frame(X)
    return X if frame is None else frame


def _finite(X: Input, allows_gaps: bool) -> bool | str:
    """Return scikit-learn's setting for values that are not finite; sparse rows have no gaps."""
    return "allow-nan" if allows_gaps and not sparse.issparse(X) else True


class TakesRows(BaseEstimator):
    """Estimator that checks the rows of fit and predict."""

    _takes_gaps = False  # NaN in arrays is a missing value, and all data frames are encoded
    _least_rows = 1

    def _checked_data(self, X: Input, y: ArrayLike) -> tuple[Any, ArrayLike]:
        """Check arguments of fit; return X as an array, a CSR matrix or a frame to encode.

        X is as of `in_known_frame`.
        """
        if not self._encodes(X):
            return validate_data(
                self, X, y,
                ensure_all_finite=_finite(X, self._takes_gaps),
                ensure_min_samples=self._least_rows, **CHECKS,
            )  # fmt: skip
        y = validate_data(self, "no_validation", y)
        validate_data(self, X, y, skip_check_array=True)
        check_consistent_length(X, y)
        n_rows = _num_samples(X)
        if n_rows < self._least_rows:
            raise ValueError(
                f"Found {n_rows} sample(s), while {type(self).__name__} needs {self._least_rows}"
            )
        return X, y

    def _encodes(self, X: Any) -> bool:
        """Whether X is a data frame whose columns are encoded in a fit."""
        return known_frame(X) is not None and (self._takes_gaps or not has_only_numbers(X))

    def _checked_rows(self, X: Input, model: Any) -> Any:
        """Check rows to predict; frames for a model with encoded columns stay frames."""
        X = in_known_frame(X)
        is_frame = known_frame(X) is not None
        has_table = model is not None and model.table is not None
        if has_table and is_frame:
            self._check_columns(X)
            return X
        finite = _finite(X, self._takes_gaps or has_table or is_frame)
        rows = validate_data(self, X, reset=False, ensure_all_finite=finite, **CHECKS)
        if finite == "allow-nan" and not has_table and np.isnan(dense(rows)).any():
            raise ValueError("Input X contains NaN, but no row of the fit had a missing value.")
        return rows

    def _check_columns(self, frame: Any, *, in_order: bool = False) -> None:
        """Check the names of columns, or their number. Raises ValueError."""
        names, known = _get_feature_names(frame), getattr(self, "feature_names_in_", ())
        if in_order or names is None or sorted(names) != sorted(known):
            validate_data(self, frame, reset=False, skip_check_array=True)
