"""What the estimators share: checked input, a fit, and decision values from it.

Input is checked by scikit-learn, so that its own tests and tools find what they expect. A Model of
dcsvm is trained, and its parts are told in scikit-learn's layout (fitted.py).
"""

from __future__ import annotations

import logging
import warnings
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.base import BaseEstimator, _fit_context
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state, column_or_1d
from sklearn.utils.validation import validate_data

from dcsvm import _core
from dcsvm.data.rows import Rows
from dcsvm.kernel.kernels import BeyondFloat32
from dcsvm.model.few_rows import few_values
from dcsvm.model.model import Model
from dcsvm.model.predict import decision_values
from dcsvm.problem.option_rules import OptionError
from dcsvm.problem.options import TrainOptions
from dcsvm.sklearn.checks import (
    NOT_FINITE,
    checked_weights,
    dense,
    gamma_of,
    kernel_matrix,
    largest_value,
    rows_to_fit,
    threads_for,
    variance_of,
    warn_of_offsets,
)
from dcsvm.sklearn.fitted import Fitted, Given
from dcsvm.sklearn.parameters import (
    is_linear,
    is_of_matrix,
    is_precomputed,
    train_options,
)
from dcsvm.sklearn.theirs import Convertible, fitted_by_scikit_learn, pair_values, take_over
from dcsvm.solving.checkpoint import Checkpoint, Control
from dcsvm.solving.extraction import NoMargin
from dcsvm.solving.report import Progress, TrainReport
from dcsvm.training.train import train_rows
from dcsvm.training.warm_start import OtherModel

log = logging.getLogger("dcsvm.sklearn")

FEW_ROWS = 1000
FEW_OF_LINEAR = 64  # that the solver of all kernels takes at once
# violation that few rows are solved to, whatever tol is: it costs a millisecond, and then weights
# are copies and the order of rows does not matter, to 7 digits
FINE_TOLERANCE = 1e-12  # of the largest kernel value
FINE_ITERATIONS = 200_000  # coordinate updates, of which usually some thousands are enough
# of scikit-learn's solver, some seconds; fewer of many rows
MOST_ITERATIONS, MOST_UPDATES = 20_000_000, 20_000_000_000
# checked arrays of these are taken as they are, others become float64
DTYPES = [np.float64, np.float32, np.float16, np.uint8, np.int8, np.uint16, np.int16, np.uint32,
          np.int32, np.uint64, np.int64, np.bool_]  # fmt: skip
OWN_NAMES = {"cache_mb": "memory", "tolerance": "tol", "max_iterations": "max_iter"}


class Estimator(Convertible, Fitted, BaseEstimator):
    """Base of the estimators. `model_` is the dcsvm.Model, `report_` its TrainReport."""

    _svm_type: str

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.pairwise = is_precomputed(self.kernel)
        tags.input_tags.sparse = not is_precomputed(self.kernel)
        return tags

    @_fit_context(prefer_skip_nested_validation=True)
    def fit(self, X, y, sample_weight=None):
        """Fit the model.

        X (n, d) is an array, a data frame or a sparse matrix, or (n, n) kernel values where the
        kernel is 'precomputed'; features are used as float32. y (n,) are labels or targets.
        sample_weight (n,) counts each row as that many copies; rows of weight 0 or less are left
        out. Returns self. Raises ValueError for input that does not fit, dcsvm.Stopped where
        time_limit leaves nothing; warns (ConvergenceWarning) when tol is not reached.
        """
        before = dict(vars(self))
        try:
            self._fit(X, y, sample_weight)
        except BaseException:  # what was fitted before stays as it was
            self.__dict__ = before
            raise
        return self

    def _fit(self, X, y, sample_weight) -> None:
        seed = self._seed()
        is_sparse, as_given = sparse.issparse(X), (X, y, sample_weight)
        if is_sparse and is_precomputed(self.kernel):
            raise TypeError("Sparse precomputed kernels are not supported.")
        X, y = self._checked(X, y)
        weights = checked_weights(sample_weight, X)
        labels, weights = self._targets(y, weights)
        if len(labels) != X.shape[0]:
            raise ValueError(
                f"X and y have incompatible shapes.\nX has {X.shape[0]} samples, but y has "
                f"{len(labels)}."
            )
        rows = rows_to_fit(X)
        warn_of_offsets(X)
        try:
            with threads_for(self.threads, rows, rows.n_samples) as threads:
                if not self._choose(rows, labels, weights, as_given, seed, threads):
                    return
                params = self._settings()
                variance = partial(variance_of, X, weights)
                self._gamma = gamma_of(self.kernel, params.get("gamma"), X.shape[1], variance)
                options = train_options(params, self._svm_type, self._gamma, threads=threads)
                # folds of probabilities are random, clusters are not: the same fit gives the same
                # model
                options |= self._options(seed)
                model, report = self._trained(rows, labels, options, weights)
        except NoMargin as reason:  # scikit-learn's solver stops before it finds that out
            if not self._leave(*as_given[:2], weights, reason, max_iter=_most_iterations(X)):
                raise
            return
        except BeyondFloat32 as reason:
            raise ValueError(f"{NOT_FINITE} ({reason})") from None
        except OptionError as error:
            name = OWN_NAMES.get(error.option, error.option)
            raise OptionError(name, error.reason) from None
        # given kernel values may be too large for float32
        is_small = X.shape[0] <= FEW_ROWS and not self._has_limit
        if not report.converged and self._is_of_matrix and is_small:
            reason = "kernel values need float64"
            if self._leave(*as_given, reason, max_iter=_most_iterations(X)):
                return
        self._keep(model, report, Given(X, is_sparse and not callable(self.kernel)))
        self._warn(report)

    def _seed(self) -> int:
        """Drawn by every fit, as scikit-learn does, so that scripts find the same numbers after
        it."""
        return check_random_state(getattr(self, "random_state", None)).randint(np.iinfo("i").max)

    def _checkpoint(self) -> Checkpoint | None:
        """That which was asked for; a fit goes on from there where it exists."""
        if self.checkpoint is None:
            return None
        return Checkpoint(self.checkpoint, resume=Checkpoint.exists(self.checkpoint))

    def _control(self, checkpoint: Checkpoint | None) -> Control:
        progress = Lines() if self.verbose else Progress()
        return Control(progress, _core.Stop(self.time_limit), checkpoint)

    @property
    def _has_limit(self) -> bool:
        limits = (self.time_limit, self.gap, self.checkpoint)
        return self.max_iter >= 0 or any(limit is not None for limit in limits)

    def _leave(self, X, y, sample_weight, reason, *, max_iter: int | None = None) -> bool:
        """Leave a fit to scikit-learn; False where it does not get there within a `max_iter` of
        ours. Raises what it raises."""
        made = fitted_by_scikit_learn(self, X, y, sample_weight, max_iter)
        if max_iter is not None and made.fit_status_:
            return False
        take_over(self, made)
        self._theirs = made
        log.info("%s: fitted by scikit-learn, %s", type(self).__name__, reason)
        return True

    def _choose(self, rows: Rows, labels, weights, given, seed: int, threads: int) -> bool:
        """Choose the parameters that are left to fit, by the `given` X, y and sample_weight too;
        whether a model is to be trained."""
        return True

    def _settings(self) -> dict[str, Any]:
        """The parameters that a model is trained with."""
        return self.get_params(deep=False)

    def _options(self, seed: int) -> dict[str, Any]:
        """Options of training that the parameters do not say."""
        return {}

    def _checked(self, X, y):
        """X as an array or CSR matrix, kernel values of a callable kernel, and y as it is."""
        if callable(self.kernel):
            kernel = kernel_matrix(self.kernel, X, X)
            if kernel.ndim != 2 or kernel.shape[0] != kernel.shape[1]:
                raise ValueError(
                    f"X.shape[0] should be equal to X.shape[1]: the kernel gave {kernel.shape}"
                )
            self._X_fit = X
            return kernel, y
        X, y = validate_data(self, X, y, dtype=DTYPES, order="C", accept_sparse="csr")
        if is_precomputed(self.kernel) and X.shape[0] != X.shape[1]:
            raise ValueError(
                "Precomputed matrix must be a square matrix. Input is a "
                f"{X.shape[0]}x{X.shape[1]} matrix."
            )
        return X, y

    def _targets(self, y, weights: np.ndarray | None) -> tuple[np.ndarray, np.ndarray | None]:
        """What is trained on: labels or targets, and weights."""
        return column_or_1d(y, warn=True).astype(np.float64), weights

    def _trained(
        self, rows: Rows, labels: np.ndarray, options: dict, weights: np.ndarray | None
    ) -> tuple[Model, TrainReport]:
        """The model; of few rows solved as far as rounding allows, else to tol."""
        checkpoint = self._checkpoint()
        most = FEW_OF_LINEAR if is_linear(self.kernel) else FEW_ROWS
        if rows.n_samples <= most and not (self._has_limit or options.get("early")):
            wanted = min(self.tol, FINE_TOLERANCE * largest_value(rows, options))
            few = {"tolerance": wanted, "max_iterations": FINE_ITERATIONS}
            model, report = self._solved(rows, labels, options | few, weights)
            if not report.stopped and report.violation <= self.tol:
                exact = model.exact
                worth = exact.worth and replace(exact.worth, converged=True)
                model = replace(model, exact=replace(exact, worth=worth))
                return model, replace(report, converged=True)
        options = {**options, "tolerance": float(self.tol)}
        found = self._solved(rows, labels, options, weights, checkpoint)
        if checkpoint is not None and not found[1].stopped:
            checkpoint.remove()
        return found

    def _solved(self, rows, labels, options, weights, checkpoint=None):
        control, options = self._control(checkpoint), TrainOptions.of(**options)
        if self.warm_start and getattr(self, "model_", None) is not None:
            try:
                numbers = np.arange(len(self.model_.labels), dtype=np.uint32)  # as _targets gives
                first = replace(self.model_, labels=numbers)
                return train_rows(
                    rows, labels, options, control, sample_weight=weights, init_model=first
                )
            except OtherModel as reason:
                log.info("%s: begun anew, %s", type(self).__name__, reason)
        return train_rows(rows, labels, options, control, sample_weight=weights)

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
        worth = "" if report.violation is None else f" The violation is {report.violation:.3g}."
        warnings.warn(
            f"Solver terminated early {reason}.  Consider pre-processing your data with"
            f" StandardScaler or MinMaxScaler.{worth}",
            ConvergenceWarning,
            stacklevel=3,
        )

    def _values(self, X, method: str | None) -> np.ndarray:
        """Decision values float64 (n, n_pairs), positive for the first class of a pair."""
        self._check_is_fitted()
        if self._theirs is not None:
            return pair_values(self._theirs, X)
        values = self._few_values(X, method)
        if values is not None:
            return values
        X = self._checked_for_predict(X)
        model = self.model_
        is_linear = model.kernel.type.is_linear and model.exact is not None
        if is_linear and model.scaling is None and method in (None, "exact"):
            return dense(X @ self._coef.T) + self._intercept_
        method, rows = method or ("exact" if model.exact else "early"), model.rows_of(X)
        with threads_for(self.threads, rows, len(self.support_)) as threads:
            return decision_values(model, rows, method, threads)

    def _few_values(self, X, method: str | None) -> np.ndarray | None:
        """The same of a few rows that there is nothing wrong with, in microseconds; else None."""
        is_plain = type(X) is np.ndarray and X.dtype in DTYPES and X.ndim == 2
        if not is_plain or self._is_of_matrix or hasattr(self, "feature_names_in_"):
            return None
        if X.shape[1] != getattr(self, "n_features_in_", None):
            return None
        self._check_unaltered()
        is_scaled = self.model_.scaling is not None
        return None if is_scaled else few_values(self.model_, X, method)

    def _checked_for_predict(self, X):
        n_fitted = self.shape_fit_[0]
        if callable(self.kernel):
            X = kernel_matrix(self.kernel, X, self._X_fit)
        else:
            X = validate_data(self, X, accept_sparse="csr", dtype=DTYPES, order="C", reset=False)
            if sparse.issparse(X) and not (self._sparse or self._takes_sparse):
                name = type(self).__name__
                raise ValueError(f"cannot use sparse input in {name!r} trained on dense data")
        if self._is_of_matrix and (X.ndim != 2 or X.shape[1] != n_fitted):
            raise ValueError(
                f"X.shape[1] = {X.shape[-1]} should be equal to {n_fitted}, the number of samples "
                "at training time"
            )
        self._check_unaltered()
        return X

    def _check_unaltered(self) -> None:
        vectors = self.support_vectors_
        if vectors.shape[0] > 0 and self._n_support.sum() != vectors.shape[0]:
            name = type(self).__name__
            raise ValueError(f"The internal representation of {name} was altered")

    @property
    def _is_of_matrix(self) -> bool:
        return is_of_matrix(self.kernel)


class Lines(Progress):
    """What verbose=True prints."""

    def plan(self, text):
        print(f"[dcsvm] {text}")

    def end_level(self, report):
        print(f"[dcsvm] level {report.level}: {report.n_sv} support vectors")

    def end(self, name, seconds, n_sv=None):
        left = "" if n_sv is None else f", {n_sv} support vectors"
        print(f"[dcsvm] {name}: {seconds:.2f} s{left}")


def _most_iterations(X) -> int:
    return min(MOST_ITERATIONS, MOST_UPDATES // X.shape[0])
