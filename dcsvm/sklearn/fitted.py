"""What a fit leaves, in scikit-learn's layout.

For two classes scikit-learn turns the signs of LIBSVM's values: `dual_coef_`, `intercept_` and
`coef_` are positive for classes_[1]. `_dual_coef_` and `_intercept_` are those of LIBSVM.
"""

from __future__ import annotations

import numpy as np
from scipy import sparse
from sklearn.utils.validation import check_is_fitted

from dcsvm.model.model import Model
from dcsvm.model.parts import EarlyModel, ExactModel
from dcsvm.sklearn.parameters import is_linear
from dcsvm.solving.report import TrainReport


class Given:
    """Rows as they were given to fit: an array or a sparse matrix (n, d), or kernel values."""

    def __init__(self, X, is_sparse: bool):
        self.X, self.shape, self.is_sparse = X, X.shape, is_sparse

    def vectors(self, places, numbers: np.ndarray):
        """The support vectors at some places of a model, which are rows of these `numbers`."""
        vectors = self.X[numbers].astype(np.float64, copy=False)
        return sparse.csr_matrix(vectors) if self.is_sparse else vectors


class ModelRows:
    """Rows that are not here, of this shape: a `part` of a model has the support vectors."""

    def __init__(self, part: ExactModel | EarlyModel, shape: tuple[int, int]):
        self.rows, self.shape, self.is_sparse = part.rows, shape, not part.rows.is_dense

    def vectors(self, places, _numbers: np.ndarray):
        """As of Given."""
        rows = self.rows.take(np.arange(self.rows.n_samples)[places])
        if rows.is_dense:
            return rows.features.astype(np.float64)
        arrays = rows.values.astype(np.float64), rows.indices, rows.indptr
        return sparse.csr_matrix(arrays, shape=(rows.n_samples, rows.n_features))


class Fitted:
    """The attributes of a fitted estimator."""

    model_: Model
    report_: TrainReport | None
    _theirs = None  # the estimator of scikit-learn that was fitted instead
    _takes_sparse = False  # whatever the rows it was fitted to were

    def _check_is_fitted(self) -> None:
        """Raises NotFittedError where there is no model."""
        check_is_fitted(self)

    def _keep(self, model: Model, report: TrainReport | None, given: Given | ModelRows) -> None:
        """Keep a model of these rows."""
        part: ExactModel | EarlyModel = model.exact or model.early
        self.model_, self.report_, self._sparse = model, report, given.is_sparse
        self.shape_fit_ = given.shape
        # rows of one cluster may be in another, too
        first = slice(None) if model.exact else _first_of_each(part)
        numbers = np.full(part.rows.n_samples, -1) if part.row_numbers is None else part.row_numbers
        self.support_ = numbers[first].astype(np.int32)
        self.support_vectors_ = np.empty((0, 0))
        if not self._is_of_matrix:
            self.support_vectors_ = given.vectors(first, self.support_)
        self._n_support = _counts(model, part, first)
        self.n_support_ = self._n_support
        problems = [] if report is None else report.problems
        self._iterations = np.array([problem.iterations for problem in problems], np.int32)
        for name in ("_theirs", "_dual_coef_", "_intercept_", "dual_coef_", "intercept_", "_coef"):
            vars(self).pop(name, None)
        if model.exact is not None:
            self._keep_coefficients(model.exact)

    def _keep_coefficients(self, exact: ExactModel) -> None:
        coef = np.ascontiguousarray(exact.dual_coef)
        self._dual_coef_ = _full_csr(coef) if self._sparse else coef
        self._intercept_ = -exact.rho
        sign = -1.0 if self._n_classes == 2 else 1.0
        self.dual_coef_, self.intercept_ = sign * self._dual_coef_, sign * self._intercept_
        if is_linear(self.kernel):
            self._coef = self._pair_coef()

    def _pair_coef(self):
        """Coefficients of the features (n_pairs, d), positive for the first class of a pair."""
        vectors, k = self._vectors(), self._n_classes
        if k <= 2:
            return self._dual_coef_ @ vectors
        begin = np.concatenate(([0], np.cumsum(self._n_support)))
        of_class = [slice(a, b) for a, b in zip(begin[:-1], begin[1:], strict=True)]
        # line j of the block of class i is for the pair with class j, or j + 1 where j >= i
        block = [self._dual_coef_[:, own] @ vectors[own] for own in of_class]
        pairs = [block[i][[j - 1]] + block[j][[i]] for i in range(k) for j in range(i + 1, k)]
        return sparse.vstack(pairs, format="csr") if self._sparse else np.vstack(pairs)

    @property
    def _n_classes(self) -> int:
        return len(getattr(self, "classes_", ()))

    def _vectors(self):
        """The support vectors as they were trained on: with large coefficients it matters."""
        return self.support_vectors_.astype(np.float32).astype(np.float64)

    @property
    def n_iter_(self) -> int:
        """Coordinate updates."""
        return int(self._iterations.sum())

    @property
    def coef_(self):
        """Coefficients of the features of a linear kernel, read-only: (n_pairs, d), or (1, d)."""
        if not is_linear(self.kernel):
            raise AttributeError("coef_ is only available when using a linear kernel")
        if self._theirs is not None:
            return self._theirs.coef_
        if not hasattr(self, "_coef"):
            raise AttributeError("coef_ is that of an exact model, fitted with a linear kernel")
        sign = -1.0 if self._n_classes == 2 else 1.0
        coef = sign * self._coef
        (coef.data if self._sparse else coef).flags.writeable = False
        return coef

    @property
    def violation_(self) -> float | None:
        """The largest violation of the optimality conditions, checked in float64."""
        return self.report_ and self.report_.violation

    @property
    def duality_gap_(self) -> float | None:
        """The duality gap of the solution, in the units of LIBSVM's objective."""
        return self.report_ and self.report_.duality_gap


def _full_csr(coef: np.ndarray) -> sparse.csr_matrix:
    """A CSR matrix of all entries, as scikit-learn has it, those that are 0 too."""
    n_lines, n_sv = coef.shape
    columns, begin = np.tile(np.arange(n_sv), n_lines), n_sv * np.arange(n_lines + 1)
    return sparse.csr_matrix((coef.ravel(), columns, begin), shape=coef.shape)


def _first_of_each(part: EarlyModel) -> np.ndarray:
    """The places of the support vectors, those in two clusters once, class by class."""
    _, first = np.unique(part.row_numbers, return_index=True)
    return first if part.class_ is None else first[np.argsort(part.class_[first], kind="stable")]


def _counts(model: Model, part: ExactModel | EarlyModel, first) -> np.ndarray:
    """How many support vectors there are of each class, int32 (k,), or in all (1,)."""
    if part.class_ is None:
        return np.array([len(part.cluster[first]) if model.exact is None else part.rows.n_samples],
                        np.int32)  # fmt: skip
    return np.bincount(part.class_[first], minlength=len(model.labels)).astype(np.int32)
