"""Fitted attributes, in scikit-learn's layout.

For two classes scikit-learn negates LIBSVM's values: `dual_coef_`, `intercept_` and `coef_` are
positive for classes_[1]. `_dual_coef_` and `_intercept_` have LIBSVM's signs.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from dcsvm.model.model import Model
from dcsvm.sklearn.checks import Matrix, dense, matrix_of
from dcsvm.sklearn.parameters import has_kernel_matrix, is_linear
from dcsvm.sklearn.rows import TakesRows


@dataclass(frozen=True, eq=False)
class TrainingRows:
    """The training rows (n, d) of a model.

    `taken` returns rows by their numbers, before scaling. It is None if only the model has its
    support vectors, scaled: a model of a file, or of workers. `is_sparse` is None with it.
    """

    shape: tuple[int, int]
    taken: Callable[[np.ndarray], Matrix] | None = None
    is_sparse: bool | None = None

    @staticmethod
    def of_matrix(X: Matrix, *, is_sparse: bool) -> "TrainingRows":
        """Return the rows of an array or a CSR matrix, or of kernel values."""
        return TrainingRows(X.shape, X.__getitem__, is_sparse)

    @staticmethod
    def of_table(data: Any) -> "TrainingRows":
        """Return the encoded rows of a Dataset of a data frame."""

        def taken(numbers: np.ndarray) -> Matrix:
            ascending, places = np.unique(numbers, return_inverse=True)
            rows = data.take(ascending).scaled(None).rows.with_features(data.n_features)
            return matrix_of(rows)[places]

        return TrainingRows((data.n_rows, data.n_features), taken, not data.rows.is_dense)

    def vectors(self, part: Any, numbers: np.ndarray) -> Matrix:
        """Return the distinct support vectors of a part of the model, float64; see `support_`."""
        if self.taken is None:
            return matrix_of(part.rows.take(part.distinct)).astype(np.float64)
        vectors = self.taken(numbers).astype(np.float64, copy=False)
        return sparse.csr_matrix(vectors) if self.is_sparse else dense(vectors)


@dataclass(frozen=True)
class PrimalCoefficients:
    """Coefficients of a linear kernel (n_pairs, d), positive for the first class of a pair.

    Sparse `values` have only the columns `used`, ascending, because products of sparse matrices
    take memory for every column.
    """

    values: Matrix
    used: np.ndarray | None
    n_features: int

    def products(self, X: Matrix) -> np.ndarray:
        """Multiply rows by the coefficients, (n, n_pairs)."""
        if self.used is not None:
            X = of_columns(X, self.used) if sparse.issparse(X) else X[:, self.used]
        return dense(X @ self.values.T)

    def matrix(self, sign: float) -> Matrix:
        """Return the coefficients times `sign`, read-only."""
        coef = sign * self.values
        if self.used is not None and not isinstance(coef, np.ndarray):
            arrays, shape = (coef.data, self.used[coef.indices], coef.indptr), coef.shape
            coef = sparse.csr_matrix(arrays, shape=(shape[0], self.n_features))
        (coef if isinstance(coef, np.ndarray) else coef.data).flags.writeable = False
        return coef


def of_columns(X: sparse.csr_matrix, columns: np.ndarray) -> sparse.csr_matrix:
    """Return only these columns of X, ascending."""
    place = np.searchsorted(columns, X.indices)
    kept = np.append(columns, -1)[place] == X.indices
    indptr = np.concatenate(([0], np.cumsum(kept)))[X.indptr]
    return sparse.csr_matrix((X.data[kept], place[kept], indptr), shape=(X.shape[0], len(columns)))


class Fitted(TakesRows):
    """The attributes of a fitted estimator."""

    _svm_type: str
    model_: Model | None  # None if scikit-learn fitted, and float32 overflows
    report_: Any  # a TrainReport, or None
    support_vectors_: Matrix
    _dual_coef_: Matrix
    _reference: BaseEstimator | None = None  # scikit-learn's estimator, if that was fitted
    _takes_sparse = False  # accept sparse rows even after a fit of dense ones

    @property
    def _has_kernel_matrix(self) -> bool:
        return has_kernel_matrix(self.kernel)

    def _check_is_fitted(self) -> None:
        """Raise NotFittedError if there is no model."""
        check_is_fitted(self)

    def _keep(self, model: Model, report: Any, rows: TrainingRows) -> None:
        """Set the fitted attributes."""
        part = model.part()
        self.model_, self.report_, self.shape_fit_ = model, report, rows.shape
        self._sparse = not part.rows.is_dense if rows.is_sparse is None else rows.is_sparse
        first = part.distinct  # a row may be a support vector of several clusters
        numbers = np.full(part.rows.n_samples, -1) if part.row_numbers is None else part.row_numbers
        self.support_ = numbers[first].astype(np.int32)
        self.support_vectors_ = np.empty((0, 0))
        if not self._has_kernel_matrix:
            self.support_vectors_ = rows.vectors(part, self.support_)
        counts = np.array([len(self.support_)])
        if part.class_ is not None:
            counts = np.bincount(part.class_[first], minlength=len(model.labels))
        self._n_support = self.n_support_ = counts.astype(np.int32)
        self._iterations = np.zeros(0, np.int32)
        if report is not None:
            self._iterations = report.problems.iterations.astype(np.int32)
        coefficients = ("_dual_coef_", "_intercept_", "dual_coef_", "intercept_", "_coef")
        for name in ("_reference", *coefficients):
            self.__dict__.pop(name, None)
        if model.exact is not None:
            self._keep_coefficients(model.exact.dual_coef, model.exact.rho)

    def _keep_coefficients(self, dual_coef: np.ndarray, rho: np.ndarray) -> None:
        coef = np.ascontiguousarray(dual_coef)
        self._dual_coef_ = _full_csr(coef) if self._sparse else coef
        self._intercept_ = -rho
        sign = -1.0 if self._n_classes == 2 else 1.0
        self.dual_coef_, self.intercept_ = sign * self._dual_coef_, sign * self._intercept_

    @cached_property
    def _coef(self) -> PrimalCoefficients:
        vectors, used = self._vectors(), None
        n_features = vectors.shape[1]
        if not isinstance(vectors, np.ndarray):
            used = np.unique(vectors.indices)
            vectors = of_columns(vectors, used)
        return PrimalCoefficients(self._pair_coef(vectors), used, n_features)

    def _pair_coef(self, vectors: Matrix) -> Matrix:
        k = self._n_classes
        if k <= 2:
            return self._dual_coef_ @ vectors
        begin = np.concatenate(([0], np.cumsum(self._n_support)))
        of_class = [slice(a, b) for a, b in zip(begin[:-1], begin[1:], strict=True)]
        # row j of the block of class i belongs to the pair of i with class j, or j + 1 if j >= i
        block: list[Any] = [self._dual_coef_[:, own] @ vectors[own] for own in of_class]
        pairs = [block[i][[j - 1]] + block[j][[i]] for i in range(k) for j in range(i + 1, k)]
        return sparse.vstack(pairs, format="csr") if self._sparse else np.vstack(pairs)

    @property
    def _n_classes(self) -> int:
        return len(getattr(self, "classes_", ()))

    def _vectors(self) -> Matrix:
        """Return the support vectors as in training, for large coefficients: rounded, scaled."""
        model = self.model_
        if model is not None and model.scaling is not None:
            rows = model.part().rows.with_features(self.shape_fit_[1])
            vectors = matrix_of(rows).astype(np.float64)
            return sparse.csr_matrix(vectors) if self._sparse else dense(vectors)
        return self.support_vectors_.astype(np.float32).astype(np.float64)

    @property
    def n_iter_(self) -> int | np.ndarray:
        """Number of coordinate updates."""
        return int(self._iterations.sum())

    @property
    def coef_(self) -> Matrix:
        """Primal coefficients of a linear kernel, read-only, (n_pairs, d) or (1, d)."""
        if not is_linear(self.kernel):
            raise AttributeError("coef_ is only available when using a linear kernel")
        if self._reference is not None:
            return self._reference.coef_
        model = self.model_
        if not hasattr(self, "_dual_coef_") or model is None or not model.kernel.type.is_linear:
            raise AttributeError("coef_ requires an exact model, fitted with a linear kernel")
        return self._coef.matrix(-1.0 if self._n_classes == 2 else 1.0)

    @property
    def violation_(self) -> float | None:
        """Largest KKT violation, checked in float64."""
        return None if self.report_ is None else self.report_.violation

    @property
    def duality_gap_(self) -> float | None:
        """Duality gap, in the units of LIBSVM's objective."""
        return None if self.report_ is None else self.report_.duality_gap


def _full_csr(coef: np.ndarray) -> sparse.csr_matrix:
    """Convert to CSR with explicit zeros, as scikit-learn does."""
    n_lines, n_sv = coef.shape
    columns, begin = np.tile(np.arange(n_sv), n_lines), n_sv * np.arange(n_lines + 1)
    return sparse.csr_matrix((coef.ravel(), columns, begin), shape=coef.shape)
