"""The base class of the estimators: fit, and decision values.

A fit is checked, its settings are chosen, a model is trained, and its attributes are kept.
scikit-learn checks the input (rows.py), as its tests and tools expect. fitted.py converts the Model
trained by dcsvm to scikit-learn's attributes.
"""

from __future__ import annotations

import logging
import warnings
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy import sparse
from sklearn.base import _fit_context
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state, column_or_1d

from dcsvm.data.dataset import Dataset
from dcsvm.kernel.kernels import BeyondFloat32Error
from dcsvm.machine import shared_threads
from dcsvm.model.model import Model
from dcsvm.problem.option_table import OptionError
from dcsvm.problem.options import TrainOptions
from dcsvm.sklearn.fitted import (
    Convertible,
    TrainingRows,
    gamma_option,
    is_linear,
    is_precomputed,
    pair_values,
    train_options,
)
from dcsvm.sklearn.rows import (
    DTYPES,
    NOT_FINITE,
    Input,
    Weights,
    check_sizes,
    checked_weights,
    dense,
    in_known_frame,
    matrix_of,
    variance_of,
    warn_of_offsets,
)
from dcsvm.training.extraction import NoMarginError
from dcsvm.training.fit import fit
from dcsvm.training.report import Progress
from dcsvm.training.state import RunControl
from dcsvm.training.train import with_weights_and_gamma
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
OWN_NAMES = {"cache_mb": "memory", "tolerance": "tol", "max_iterations": "max_iter"}
Arguments = tuple[Input, ArrayLike | None, ArrayLike | None]  # X, y and sample_weight of fit


@dataclass(frozen=True, eq=False)
class Given:
    """The checked arguments of a fit.

    `arguments` are those of the user. `data` has the rows, with class indices or targets for
    labels. `rows` are the training rows of the attributes. `variance` returns the variance of all
    entries of the (scaled) rows of `n_features`, for gamma='scale'.
    """

    arguments: Arguments
    data: Dataset
    rows: TrainingRows
    n_features: int
    variance: Callable[[], float]


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
            Features are rounded to float32. Columns of a data frame may have text, categories and
            gaps, which are missing values. kernel='precomputed' takes kernel values.
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
        given = self._checked(X, y, sample_weight)
        try:
            with plain_errors(), self._threads(given.data) as threads:
                chosen = self._choose(given, seed, threads)
                if chosen is None:
                    return
                model = self._train(*chosen)
        except NoMarginError as error:  # scikit-learn's solver stops before it detects this
            arguments = (*given.arguments[:2], given.data.sample_weight)
            if self._is_changed(given.data) or not self._delegate(arguments, error, given):
                raise
            return
        # kernel values of the caller may exceed the precision of float32
        if self._has_kernel_matrix and not model.report.converged and self._is_small(given.data):
            reason = "kernel values require float64"
            if self._delegate(given.arguments, reason, given):
                return
        self._keep(model, model.report, given.rows)
        self._warn(model.report)

    def _checked(self, X: Input, y: ArrayLike, sample_weight: ArrayLike | None) -> Given:
        """Check the arguments of fit. Raises ValueError and TypeError."""
        if sparse.issparse(X) and is_precomputed(self.kernel):
            raise TypeError("Sparse precomputed kernels are not supported.")
        X = in_known_frame(X)
        checked, checked_y = self._checked_input(X, y)
        weights = checked_weights(sample_weight, checked.shape)
        labels, weights = self._targets(checked_y, weights)
        if len(labels) != checked.shape[0]:
            raise ValueError(
                f"X and y have incompatible shapes.\nX has {checked.shape[0]} samples, but y has "
                f"{len(labels)}."
            )
        data = self._dataset(checked).with_labels(labels, weights)
        rows = checked
        if data.table is not None or data.scaling is not None:
            rows = matrix_of(data.rows.with_features(data.n_features))
            check_sizes(rows)
        else:
            warn_of_offsets(checked)
        if data.table is not None:
            kept = TrainingRows.of_table(data)
        else:
            kept = TrainingRows.of_matrix(checked, is_sparse=sparse.issparse(checked))
        variance = partial(variance_of, rows, weights)
        return Given((X, y, sample_weight), data, kept, data.n_features, variance)

    def _checked_input(self, X: Input, y: ArrayLike) -> tuple[Any, ArrayLike]:
        """Check the input; return X, or its kernel matrix, and y. A callable is evaluated here."""
        if callable(self.kernel):
            kernel = self._kernel_matrix(X, X)
            if kernel.ndim != 2 or kernel.shape[0] != kernel.shape[1]:
                raise ValueError(
                    f"X.shape[0] should be equal to X.shape[1]: the kernel gave {kernel.shape}"
                )
            self._X_fit = X
            return kernel, y
        rows, y = self._checked_data(X, y)
        if is_precomputed(self.kernel) and rows.shape[0] != rows.shape[1]:
            raise ValueError(
                "Precomputed matrix must be a square matrix. Input is a "
                f"{rows.shape[0]}x{rows.shape[1]} matrix."
            )
        return rows, y

    def _kernel_matrix(self, X: Input, others: Input) -> np.ndarray:
        """Compute the kernel matrix, float64 (n, m), of a callable kernel."""
        return np.asarray(dense(self.kernel(X, others)), dtype=np.float64, order="C")

    def _dataset(self, checked: Any) -> Dataset:
        """Make the data set of checked rows, scaled. Raises ValueError."""
        if self._has_kernel_matrix and self.scale is not None:
            raise ValueError("scale needs features, not a precomputed kernel")
        is_matrix = isinstance(checked, np.ndarray) or sparse.issparse(checked)
        if is_matrix and self.scale is None:
            check_sizes(checked)
        return Dataset(checked, scale=self.scale)

    def _is_table(self, X: Any) -> bool:
        return not self._has_kernel_matrix and super()._is_table(X)

    def _targets(self, y: ArrayLike, weights: Weights) -> tuple[np.ndarray, Weights]:
        """Convert y to class indices or targets, and adapt the weights."""
        return column_or_1d(y, warn=True).astype(np.float64), weights

    def _choose(
        self, given: Given, seed: int, threads: int | None
    ) -> tuple[Dataset, TrainOptions] | None:
        """Return the weighted rows and the options to train a model, None to train none."""
        params = self.get_params(deep=False)
        gamma = gamma_option(self.kernel, params["gamma"], given.n_features, given.variance)
        data, options = self._weighted(given, self._options(params, gamma, seed, threads))
        self._gamma = options.gamma
        return data, options

    def _options(
        self, params: dict[str, Any], gamma: float | str | None, seed: int, threads: int | None
    ) -> TrainOptions:
        """Return the training options of parameters."""
        # the random seed is for the folds of probabilities only: models are reproducible
        own = self._class_options()
        own["seed"] = seed if own.get("probability") else 0
        return train_options(params, self._svm_type, gamma, threads=threads, **own)

    def _class_options(self) -> dict[str, Any]:
        """Return training options beyond the converted parameters."""
        return {}

    def _weighted(self, given: Given, options: TrainOptions) -> tuple[Dataset, TrainOptions]:
        """Return the weighted rows, and the options with the number of gamma before weights."""
        stop = self._control().stop
        return with_weights_and_gamma(given.data, self.feature_weights, options, stop)

    def _train(self, data: Dataset, options: TrainOptions) -> Model:
        """Train to tol; try the fine tolerance first if the problem is small."""
        max_rows = FEW_OF_LINEAR if is_linear(self.kernel) else FEW_ROWS
        n_variables = data.n_rows * max(self._n_classes - 1, 1)
        if self._is_small(data, max_rows) and n_variables <= FEW_VARIABLES and not options.early:
            largest = max(1.0, options.kernel_on(data.n_features).largest_value_of(data.rows))
            tolerance = min(options.tolerance, FINE_TOLERANCE * largest)
            fine = replace(options, tolerance=tolerance, max_iterations=FINE_ITERATIONS)
            model = self._solve(data, fine)
            if not model.report.stopped and model.report.violation <= self.tol:
                exact, report = model.exact, replace(model.report, converged=True)
                assert exact is not None  # not an early fit
                status = exact.status and replace(exact.status, converged=True)
                return replace(model, exact=replace(exact, status=status), report=report)
        return self._solve(data, options)

    def _is_small(self, data: Dataset, max_rows: int = FEW_ROWS) -> bool:
        """Whether another solution of the rows would take little time and no limit forbids it."""
        limits = (self.time_limit, self.gap, self.checkpoint)
        has_limit = self.max_iter >= 0 or any(limit is not None for limit in limits)
        return data.n_rows <= max_rows and not has_limit

    def _solve(self, data: Dataset, options: TrainOptions) -> Model:
        """Train a model, with warm_start from the previous one; remove a completed checkpoint."""
        control = self._control(self.checkpoint)
        previous = getattr(self, "model_", None) if self.warm_start else None
        if previous is not None:  # with class indices for labels, as in _targets
            previous = replace(previous, labels=np.arange(len(previous.labels), dtype=np.uint32))
        try:
            model = fit(data, options, control, init_model=previous)
        except OtherModelError as error:
            log.info("%s: cold start, %s", type(self).__name__, error)
            model = fit(data, options, control)
        if control.checkpoint is not None and not model.report.stopped:
            control.checkpoint.remove()
        return model

    def _control(self, checkpoint: Any = None) -> RunControl:
        """Return a control with time_limit, which goes on from a checkpoint in this folder."""
        progress = _PrintProgress() if self.verbose else Progress()
        return RunControl.of(progress, self.time_limit, checkpoint)

    def _threads(self, data: Dataset) -> AbstractContextManager[int | None]:
        """Choose the number of threads of a fit."""
        return shared_threads(self.threads, data.rows.work_with(data.n_rows))

    def _seed(self) -> int:
        """Draw one random number per fit, as scikit-learn does, for reproducible scripts."""
        return check_random_state(getattr(self, "random_state", None)).randint(np.iinfo("i").max)

    def _is_changed(self, data: Dataset) -> bool:
        """Whether models of the rows encode, scale or weight the rows they predict."""
        is_weighted = self.feature_weights is not None
        return is_weighted or data.table is not None or data.scaling is not None

    def _delegate(
        self, arguments: Arguments, reason: str | Exception, given: Given | None = None
    ) -> bool:
        """Fit with scikit-learn's solver.

        Return whether it converges within the iterations that the `given` rows take in ten seconds.
        """
        max_iter = None
        if given is not None:
            max_iter = min(MAX_ITERATIONS, MAX_UPDATES // given.data.n_rows)
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

    def _warn(self, report: Any) -> None:
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

    def _values(
        self,
        X: Input,
        method: str | None,
        reduce: Callable[[np.ndarray], np.ndarray] | None = None,
    ) -> np.ndarray:
        """Compute decision values float64 (n, n_pairs), positive for the first class of a pair.

        `reduce` is applied to them in blocks of rows.
        """
        whole = reduce or np.asarray
        self._check_is_fitted()
        model, values = self.model_, None
        if self._reference is None:
            assert model is not None
            values = self._few_values(model, X, method)
        if values is not None:
            return whole(values)
        X = in_known_frame(X)
        if self._reference is not None and (model is None or not self._fills(X)):
            self._check_size(X)
            return whole(pair_values(self._reference, X))
        assert model is not None  # as no reference was fitted
        checked, model = self._check_rows_to_predict(X, model)
        is_plain = model.scaling is None and model.table is None
        has_weights = is_plain and model.kernel.type.is_linear and model.exact is not None
        if has_weights and method in (None, "exact"):
            return whole(self._coef.products(checked) + self._intercept_)
        rows = model.rows_of(checked)
        with shared_threads(self.threads, rows.work_with(len(self.support_))) as threads:
            return model.pair_values(rows, method, threads, reduce)

    def _few_values(self, model: Model, X: Input, method: str | None) -> np.ndarray | None:
        """Compute decision values of a few rows by the fast path; None if it does not apply."""
        if type(X) is not np.ndarray or X.dtype not in DTYPES or X.ndim != 2:
            return None
        if self._has_kernel_matrix or hasattr(self, "feature_names_in_"):
            return None
        if X.shape[1] != getattr(self, "n_features_in_", None):
            return None
        self._check_unaltered()
        return model.few_values(X, method)

    def _check_rows_to_predict(self, X: Input, model: Model) -> tuple[Any, Model]:
        """Check rows to predict; return them, or kernel values, with the model for them."""
        n_fitted = self.shape_fit_[0]
        rows: Any
        if callable(self.kernel):
            rows = self._kernel_matrix(X, self._X_fit)
        else:
            rows, model = self._checked_rows(X, model)
            if sparse.issparse(X) and not (self._sparse or self._takes_sparse):
                name = type(self).__name__
                raise ValueError(f"cannot use sparse input in {name!r} trained on dense data")
        if self._has_kernel_matrix and (rows.ndim != 2 or rows.shape[1] != n_fitted):
            raise ValueError(
                f"X.shape[1] = {rows.shape[-1]} should be equal to {n_fitted}, the number of "
                "samples at training time"
            )
        self._check_unaltered()
        return rows, model

    def _check_unaltered(self) -> None:
        vectors = self.support_vectors_
        if vectors.shape[0] > 0 and self._n_support.sum() != vectors.shape[0]:
            name = type(self).__name__
            raise ValueError(f"The internal representation of {name} was altered")


@contextmanager
def plain_errors() -> Iterator[None]:
    """Raise errors of values beyond float32 in scikit-learn's words, of options by their names."""
    try:
        yield
    except BeyondFloat32Error as error:
        raise ValueError(f"{NOT_FINITE} ({error})") from None
    except OptionError as error:
        name = OWN_NAMES.get(error.option, error.option)
        raise OptionError(name, error.reason) from None


class _PrintProgress(Progress):
    """The output of verbose=True."""

    def plan(self, text: str) -> None:
        print(f"[dcsvm] {text}")

    def end_level(self, report: Any) -> None:
        print(f"[dcsvm] level {report.level}: {report.n_sv} support vectors")

    def end(self, name: str, seconds: float, n_sv: int | None = None) -> None:
        vectors = "" if n_sv is None else f", {n_sv} support vectors"
        print(f"[dcsvm] {name}: {seconds:.2f} s{vectors}")
