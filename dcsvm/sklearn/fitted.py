"""Fitted attributes, in scikit-learn's layout.

For two classes scikit-learn negates LIBSVM's values: `dual_coef_`, `intercept_` and `coef_` are
positive for classes_[1]. `_dual_coef_` and `_intercept_` have LIBSVM's signs.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from dcsvm.model.model import Model
from dcsvm.model.parts import EarlyModel, ExactModel
from dcsvm.sklearn.checks import Matrix, dense
from dcsvm.sklearn.parameters import has_kernel_matrix, is_linear
from dcsvm.solving.report import TrainReport


class TrainingRows:
    """Training rows as passed to fit: an array or a sparse matrix (n, d), or kernel values."""

    def __init__(self, X: Matrix, is_sparse: bool):
        self.X, self.shape, self.is_sparse = X, X.shape, is_sparse

    def vectors(self, _positions: np.ndarray | slice, row_numbers: np.ndarray) -> Matrix:
        """Return the support vectors with these row numbers, float64."""
        vectors = self.X[row_numbers].astype(np.float64, copy=False)
        return sparse.csr_matrix(vectors) if self.is_sparse else vectors


class ModelFileRows:
    """Training rows of a loaded model, which has only the support vectors."""

    def __init__(self, part: ExactModel | EarlyModel, shape: tuple[int, int]):
        self.rows, self.shape, self.is_sparse = part.rows, shape, not part.rows.is_dense

    def vectors(self, positions: np.ndarray | slice, _row_numbers: np.ndarray) -> Matrix:
        """Return the support vectors at these positions of the model, float64."""
        rows = self.rows.take(np.arange(self.rows.n_samples)[positions])
        if rows.is_dense:
            return rows.features.astype(np.float64)
        arrays = rows.csr.values.astype(np.float64), rows.csr.indices, rows.csr.indptr
        return sparse.csr_matrix(arrays, shape=(rows.n_samples, rows.n_features))


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


class Fitted(BaseEstimator):
    """The attributes of a fitted estimator."""

    _svm_type: str
    model_: Model | None  # None if scikit-learn fitted, and float32 overflows
    report_: TrainReport | None
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

    def _keep(
        self, model: Model, report: TrainReport | None, rows: TrainingRows | ModelFileRows
    ) -> None:
        """Set the fitted attributes."""
        part = part_of(model)
        self.model_, self.report_, self._sparse = model, report, rows.is_sparse
        self.shape_fit_ = rows.shape
        # a row may be a support vector of several clusters
        first = _first_of_each(part) if isinstance(part, EarlyModel) else slice(None)
        numbers = np.full(part.rows.n_samples, -1) if part.row_numbers is None else part.row_numbers
        self.support_ = numbers[first].astype(np.int32)
        self.support_vectors_ = np.empty((0, 0))
        if not self._has_kernel_matrix:
            self.support_vectors_ = rows.vectors(first, self.support_)
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
            self._keep_coefficients(model.exact)

    def _keep_coefficients(self, exact: ExactModel) -> None:
        coef = np.ascontiguousarray(exact.dual_coef)
        self._dual_coef_ = _full_csr(coef) if self._sparse else coef
        self._intercept_ = -exact.rho
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
        """Return the support vectors rounded as in training, for large coefficients."""
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


def part_of(model: Model) -> ExactModel | EarlyModel:
    """Return the exact part of a model, else the early one."""
    part = model.exact or model.early
    assert part is not None  # a model has at least one of them
    return part


def _full_csr(coef: np.ndarray) -> sparse.csr_matrix:
    """Convert to CSR with explicit zeros, as scikit-learn does."""
    n_lines, n_sv = coef.shape
    columns, begin = np.tile(np.arange(n_sv), n_lines), n_sv * np.arange(n_lines + 1)
    return sparse.csr_matrix((coef.ravel(), columns, begin), shape=coef.shape)


def _first_of_each(part: EarlyModel) -> np.ndarray:
    """Return the positions of the distinct support vectors, by class."""
    _, first = np.unique(part.row_numbers, return_index=True)
    return first if part.class_ is None else first[np.argsort(part.class_[first], kind="stable")]
