"""The base class of the estimators: checks of input, fit, and decision values.

scikit-learn checks the input, as its tests and tools expect. fitted.py converts the Model trained
by dcsvm to scikit-learn's attributes.
"""

from __future__ import annotations

import logging
import warnings
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy import sparse
from sklearn.base import _fit_context
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state, column_or_1d
from sklearn.utils.validation import validate_data

from dcsvm import _core
from dcsvm.data.rows import Rows
from dcsvm.data.scaling import Scaling
from dcsvm.kernel.kernels import BeyondFloat32Error
from dcsvm.model.model import Model
from dcsvm.model.predict import blocks, decision_values, few_values
from dcsvm.problem.data_gamma import RowStatistics
from dcsvm.problem.option_table import OptionError
from dcsvm.problem.options import TrainOptions
from dcsvm.sklearn.checks import (
    NOT_FINITE,
    Arguments,
    Input,
    Matrix,
    Weights,
    checked_weights,
    gamma_of,
    kernel_matrix,
    largest_value,
    rows_to_fit,
    threads_for,
    variance_of,
    warn_of_offsets,
)
from dcsvm.sklearn.fitted import TrainingRows
from dcsvm.sklearn.parameters import is_linear, is_precomputed, train_options
from dcsvm.sklearn.reference import Convertible, pair_values
from dcsvm.solving.checkpoint import Checkpoint, RunControl
from dcsvm.solving.extraction import NoMarginError
from dcsvm.solving.report import LevelReport, Progress, TrainReport
from dcsvm.training.arguments import weights_of
from dcsvm.training.feature_weights import weighted_rows
from dcsvm.training.train import train_rows
from dcsvm.training.warm_start import OtherModelError

log = logging.getLogger("dcsvm.sklearn")

# Small problems are solved to a fine tolerance, even if tol is larger. Results then agree to 7
# digits for any order of the rows, and for weights instead of copies. This takes 4 us per dual
# variable.
FEW_ROWS = 1000
FEW_OF_LINEAR = 64  # limit for the linear kernel; larger problems use the linear solver
FINE_TOLERANCE = 1e-12  # relative to the largest kernel value
FEW_VARIABLES = 5000  # n (k - 1) for k classes
FINE_ITERATIONS = 200_000  # coordinate updates; a few thousand usually suffice
# limits on scikit-learn's solver, about ten seconds: iterations, and iterations times rows
MAX_ITERATIONS, MAX_UPDATES = 20_000_000, 20_000_000_000
# dtypes that are not converted to float64
DTYPES = [np.float64, np.float32, np.float16, np.uint8, np.int8, np.uint16, np.int16, np.uint32,
          np.int32, np.uint64, np.int64, np.bool_]  # fmt: skip
OWN_NAMES = {"cache_mb": "memory", "tolerance": "tol", "max_iterations": "max_iter"}


class Estimator(Convertible):
    """Base class of the estimators."""

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.pairwise = is_precomputed(self.kernel)
        tags.input_tags.sparse = not is_precomputed(self.kernel)
        return tags

    @_fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: Input, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Estimator:
        """Fit the model.

        Parameters
        ----------
        X : array, data frame or sparse matrix (n, d), or kernel values (n, n)
            Features are rounded to float32. kernel='precomputed' takes kernel values.
        y : labels or targets (n,)
        sample_weight : array (n,) or None
            Number of copies of each row; rows of weight 0 or less are ignored.

        Returns
        -------
        self

        Raises
        ------
        ValueError
            For invalid input.
        dcsvm.Stopped
            If time_limit ends the fit before a model exists.

        Warns
        -----
        ConvergenceWarning
            If tol is not reached.
        """
        before = dict(vars(self))
        try:
            self._fit(X, y, sample_weight)
        except BaseException:  # keep the previous fit
            self.__dict__ = before
            raise
        return self

    def _fit(self, X: Input, y: ArrayLike, sample_weight: ArrayLike | None) -> None:
        seed = self._seed()
        is_sparse, as_given = sparse.issparse(X), (X, y, sample_weight)
        if is_sparse and is_precomputed(self.kernel):
            raise TypeError("Sparse precomputed kernels are not supported.")
        checked, y = self._check_input(X, y)
        weights = checked_weights(sample_weight, checked)
        labels, weights = self._targets(y, weights)
        if len(labels) != checked.shape[0]:
            raise ValueError(
                f"X and y have incompatible shapes.\nX has {checked.shape[0]} samples, but y has "
                f"{len(labels)}."
            )
        rows = rows_to_fit(checked)
        warn_of_offsets(checked)
        try:
            with threads_for(self.threads, rows, rows.n_samples) as threads:
                self._choose(rows, labels, weights, as_given, seed, threads)
                if not self._trains_model:
                    return
                params = self._settings()
                variance = partial(variance_of, checked, weights)
                statistics = RowStatistics.of(rows, threads)
                self._gamma = gamma_of(self.kernel, params.get("gamma"), statistics, variance)
                options = train_options(params, self._svm_type, self._gamma, threads=threads)
                # the random seed is for the folds of probabilities only: models are reproducible
                options |= self._options(seed)
                rows, scaling = self._weighted(rows, labels, options)
                model, report = self._train(rows, labels, options, weights)
                model = model if scaling is None else model.scaled_by(scaling)
        except NoMarginError as error:  # scikit-learn's solver stops before it detects this
            is_weighted = getattr(self, "feature_weights", None) is not None
            if is_weighted or not self._delegate(
                (*as_given[:2], weights), error, _max_iterations(checked)
            ):
                raise
            return
        except BeyondFloat32Error as error:
            raise ValueError(f"{NOT_FINITE} ({error})") from None
        except OptionError as error:
            name = OWN_NAMES.get(error.option, error.option)
            raise OptionError(name, error.reason) from None
        # kernel values of the caller may exceed the precision of float32
        is_small = checked.shape[0] <= FEW_ROWS and not self._has_limit
        if not report.converged and self._has_kernel_matrix and is_small:
            reason = "kernel values require float64"
            if self._delegate(as_given, reason, _max_iterations(checked)):
                return
        self._keep(model, report, TrainingRows(checked, is_sparse and not callable(self.kernel)))
        self._warn(report)

    def _weighted(
        self, rows: Rows, labels: np.ndarray, options: dict[str, Any]
    ) -> tuple[Rows, Scaling | None]:
        """Multiply the features by the weights; return the rows, and their scaling if weighted."""
        given = getattr(self, "feature_weights", None)
        if given is None:
            return rows, None
        settings = TrainOptions.of(**options)
        if settings.kernel_type.fall is None:
            raise ValueError(f"feature_weights require a kernel of a distance, got {self.kernel!r}")
        stop = _core.Stop(self.time_limit)
        learned = weights_of(given, rows.n_features, rows, labels, settings, stop)
        return weighted_rows(rows, learned, None, "X")

    def _seed(self) -> int:
        """Draw one random number per fit, as scikit-learn does, for reproducible scripts."""
        return check_random_state(getattr(self, "random_state", None)).randint(np.iinfo("i").max)

    def _checkpoint(self) -> Checkpoint | None:
        """Return the checkpoint, to be resumed if it exists."""
        if self.checkpoint is None:
            return None
        return Checkpoint(self.checkpoint, resume=Checkpoint.exists(self.checkpoint))

    def _control(self, checkpoint: Checkpoint | None) -> RunControl:
        progress = _PrintProgress() if self.verbose else Progress()
        return RunControl(progress, _core.Stop(self.time_limit), checkpoint)

    @property
    def _has_limit(self) -> bool:
        limits = (self.time_limit, self.gap, self.checkpoint)
        return self.max_iter >= 0 or any(limit is not None for limit in limits)

    def _delegate(
        self, arguments: Arguments, reason: str | Exception, max_iter: int | None = None
    ) -> bool:
        """Fit with scikit-learn's solver; return whether it converges within `max_iter`."""
        try:
            reference = self._fit_reference(*arguments, max_iter)
        except ValueError:  # its solution is not finite, as the input was checked before
            if max_iter is None:
                raise
            return False
        if max_iter is not None and reference.fit_status_:
            return False
        self._take_over(reference)
        self._reference = reference
        log.info("%s: fitted by scikit-learn, %s", type(self).__name__, reason)
        return True

    @property
    def _trains_model(self) -> bool:
        """Whether fit trains a model, or only chooses parameters."""
        return True

    def _choose(
        self,
        rows: Rows,
        labels: np.ndarray,
        weights: Weights,
        data: Arguments,
        seed: int,
        threads: int,
    ) -> None:
        """Choose parameters before training; no-op."""

    def _options(self, _seed: int) -> dict[str, Any]:
        """Return training options beyond the converted parameters."""
        return {}

    def _check_input(self, X: Input, y: ArrayLike) -> tuple[Matrix, ArrayLike]:
        """Check the input; return X as an array or CSR matrix, or its kernel matrix, and y.

        A callable kernel is evaluated here.
        """
        if callable(self.kernel):
            kernel = kernel_matrix(self.kernel, X, X)
            if kernel.ndim != 2 or kernel.shape[0] != kernel.shape[1]:
                raise ValueError(
                    f"X.shape[0] should be equal to X.shape[1]: the kernel gave {kernel.shape}"
                )
            self._X_fit = X
            return kernel, y
        rows, y = validate_data(self, X, y, dtype=DTYPES, order="C", accept_sparse="csr")
        if is_precomputed(self.kernel) and rows.shape[0] != rows.shape[1]:
            raise ValueError(
                "Precomputed matrix must be a square matrix. Input is a "
                f"{rows.shape[0]}x{rows.shape[1]} matrix."
            )
        return rows, y

    def _targets(self, y: ArrayLike, weights: Weights) -> tuple[np.ndarray, Weights]:
        """Convert y to class indices or targets, and adapt the weights."""
        return column_or_1d(y, warn=True).astype(np.float64), weights

    def _train(
        self, rows: Rows, labels: np.ndarray, options: dict[str, Any], weights: Weights
    ) -> tuple[Model, TrainReport]:
        """Train to tol; try the fine tolerance first if the problem is small."""
        max_rows = FEW_OF_LINEAR if is_linear(self.kernel) else FEW_ROWS
        n_variables = rows.n_samples * max(len(getattr(self, "classes_", ())) - 1, 1)
        is_small = rows.n_samples <= max_rows and n_variables <= FEW_VARIABLES
        if is_small and not (self._has_limit or options.get("early")):
            tolerance = min(self.tol, FINE_TOLERANCE * largest_value(rows, options))
            fine = {"tolerance": tolerance, "max_iterations": FINE_ITERATIONS}
            model, report = self._solve(rows, labels, options | fine, weights)
            if not report.stopped and report.violation <= self.tol:
                exact = model.exact
                assert exact is not None  # not an early fit
                worth = exact.status and replace(exact.status, converged=True)
                model = replace(model, exact=replace(exact, status=worth))
                return model, replace(report, converged=True)
        return self._solve(rows, labels, options | {"tolerance": float(self.tol)}, weights)

    def _solve(
        self, rows: Rows, labels: np.ndarray, options: dict[str, Any], weights: Weights
    ) -> tuple[Model, TrainReport]:
        """Train a model, with warm_start from the previous one; remove a completed checkpoint."""
        checkpoint, settings = self._checkpoint(), TrainOptions.of(**options)
        control = self._control(checkpoint)
        train = partial(train_rows, rows, labels, settings, control, sample_weight=weights)
        previous = getattr(self, "model_", None) if self.warm_start else None
        if previous is not None:  # with class indices for labels, as in _targets
            previous = replace(previous, labels=np.arange(len(previous.labels), dtype=np.uint32))
        try:
            model, report = train(init_model=previous)
        except OtherModelError as error:
            log.info("%s: cold start, %s", type(self).__name__, error)
            model, report = train()
        if checkpoint is not None and not report.stopped:
            checkpoint.remove()
        return model, report

    def _warn(self, report: TrainReport) -> None:
        self.fit_status_ = int(not report.converged)
        if report.missing:
            missing = " and ".join(report.missing)
            warnings.warn(f"stopped before the {missing}", ConvergenceWarning, stacklevel=3)
        if self.fit_status_ == 0:
            return
        reason = f"(max_iter={self.max_iter})" if self.max_iter >= 0 else ""
        if report.stopped:
            reason = f"(time_limit={self.time_limit:g})"
        violation = "" if report.violation is None else f" The violation is {report.violation:.3g}."
        warnings.warn(
            f"Solver terminated early {reason}.  Consider pre-processing your data with"
            f" StandardScaler or MinMaxScaler.{violation}",
            ConvergenceWarning,
            stacklevel=3,
        )

    def _values(self, X: Input, method: str | None) -> np.ndarray:
        """Compute decision values float64 (n, n_pairs), positive for the first class of a pair."""
        return self._reduced_values(X, method, None)

    def _reduced_values(
        self, X: Input, method: str | None, reduce: Callable[[np.ndarray], np.ndarray] | None
    ) -> np.ndarray:
        """Compute decision values (n, n_pairs), or apply `reduce` to them in blocks of rows."""
        whole = reduce or np.asarray
        self._check_is_fitted()
        if self._reference is not None:
            return whole(pair_values(self._reference, X))
        model = self.model_
        assert model is not None  # as no reference was fitted
        values = self._few_values(model, X, method)
        if values is not None:
            return whole(values)
        checked = self._check_rows_to_predict(X)
        has_weights = model.kernel.type.is_linear and model.exact is not None
        if has_weights and model.scaling is None and method in (None, "exact"):
            return whole(self._coef.products(checked) + self._intercept_)
        rows = model.rows_of(checked)
        method = method or ("exact" if model.exact else "early")
        with threads_for(self.threads, rows, len(self.support_)) as threads:
            if reduce is None:
                return decision_values(model, rows, method, threads)
            return np.concatenate([reduce(one) for _, one in blocks(model, rows, method, threads)])

    def _few_values(self, model: Model, X: Input, method: str | None) -> np.ndarray | None:
        """Compute decision values of a few rows by the fast path; None if it does not apply."""
        if type(X) is not np.ndarray or X.dtype not in DTYPES or X.ndim != 2:
            return None
        if self._has_kernel_matrix or hasattr(self, "feature_names_in_"):
            return None
        if X.shape[1] != getattr(self, "n_features_in_", None):
            return None
        self._check_unaltered()
        return None if model.scaling is not None else few_values(model, X, method)

    def _check_rows_to_predict(self, X: Input) -> Matrix:
        n_fitted = self.shape_fit_[0]
        rows: Any
        if callable(self.kernel):
            rows = kernel_matrix(self.kernel, X, self._X_fit)
        else:
            rows = validate_data(self, X, accept_sparse="csr", dtype=DTYPES, order="C", reset=False)
            if sparse.issparse(rows) and not (self._sparse or self._takes_sparse):
                name = type(self).__name__
                raise ValueError(f"cannot use sparse input in {name!r} trained on dense data")
        if self._has_kernel_matrix and (rows.ndim != 2 or rows.shape[1] != n_fitted):
            raise ValueError(
                f"X.shape[1] = {rows.shape[-1]} should be equal to {n_fitted}, the number of "
                "samples at training time"
            )
        self._check_unaltered()
        return rows

    def _check_unaltered(self) -> None:
        vectors = self.support_vectors_
        if vectors.shape[0] > 0 and self._n_support.sum() != vectors.shape[0]:
            name = type(self).__name__
            raise ValueError(f"The internal representation of {name} was altered")


class _PrintProgress(Progress):
    """The output of verbose=True."""

    def plan(self, text: str) -> None:
        print(f"[dcsvm] {text}")

    def end_level(self, report: LevelReport) -> None:
        print(f"[dcsvm] level {report.level}: {report.n_sv} support vectors")

    def end(self, name: str, seconds: float, n_sv: int | None = None) -> None:
        vectors = "" if n_sv is None else f", {n_sv} support vectors"
        print(f"[dcsvm] {name}: {seconds:.2f} s{vectors}")


def _max_iterations(X: Matrix) -> int:
    return min(MAX_ITERATIONS, MAX_UPDATES // X.shape[0])
