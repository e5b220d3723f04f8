"""The base class of the estimators: fit, fitted attributes, conversion, and decision values.

A fit is checked, its options are chosen, a model is trained, and its attributes are kept.
scikit-learn checks the input (rows.py), as its tests and tools expect. fitted.py has kernels and
attributes in scikit-learn's layout, and its own estimators.
"""

from __future__ import annotations

import logging
import os
import warnings
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from copy import deepcopy
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy import sparse
from sklearn.base import BaseEstimator, _fit_context, is_classifier
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state, column_or_1d
from sklearn.utils.validation import check_is_fitted

from dcsvm.data.dataset import Dataset
from dcsvm.kernel.kernels import BeyondFloat32Error
from dcsvm.machine import shared_threads
from dcsvm.model.model import Model
from dcsvm.problem.option_table import OptionError
from dcsvm.problem.options import TrainOptions
from dcsvm.sklearn.fitted import (
    MAX_C,
    SAME_AS_OPTIONS,
    SHARED,
    X_FIT,
    Arguments,
    attributes_of,
    check_is_sklearns,
    full_csr,
    gamma_option,
    has_kernel_matrix,
    has_probability,
    is_linear,
    is_precomputed,
    kernel_type,
    lacks_kernel,
    of_columns,
    pair_values,
    primal_coefficients,
    rows_of_table,
    sklearns_estimator,
)
from dcsvm.sklearn.onnx_methods import OnnxMethods
from dcsvm.sklearn.rows import (
    DTYPES,
    NOT_FINITE,
    Input,
    Matrix,
    Weights,
    check_frame_size,
    check_sizes,
    checked_data,
    checked_rows,
    checked_weights,
    dense,
    in_known_frame,
    matrix_of,
    needs_encoding,
    variance_of,
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


class FitInput(NamedTuple):
    """The checked arguments of a fit.

    `arguments` are those of the user. `data` has the rows, with class indices or targets for
    labels. `variance` returns the variance of all entries of the (scaled) rows, for gamma='scale'.
    `rows_at` returns training rows by their numbers, before scaling; it is None if only workers
    have them.
    """

    arguments: Arguments
    data: Dataset
    variance: Callable[[], float]
    rows_at: Callable[[np.ndarray], Matrix] | None


class Estimator(OnnxMethods, BaseEstimator):
    """Base class of the estimators."""

    _svm_type: str
    model_: Model | None  # None if scikit-learn fitted, and float32 overflows
    report_: Any  # a TrainReport, or None
    support_vectors_: Matrix
    _dual_coef_: Matrix
    _reference: BaseEstimator | None = None  # scikit-learn's estimator, if that was fitted
    _primal: tuple[Matrix, np.ndarray | None] | None = None  # of _primal_coefficients
    _encoding_of_gaps: Any = None  # of later rows, if the rows of the fit had no gaps
    _takes_sparse = False  # accept sparse rows even after a fit of dense ones

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
        y : array (n,)
            Labels or targets.
        sample_weight : array (n,) or None
            Number of copies of each row; rows of weight 0 or less are ignored.

        Returns
        -------
        object
            This estimator.

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
        # one random number per fit, as scikit-learn draws, for reproducible scripts
        random_state = check_random_state(getattr(self, "random_state", None))
        seed = random_state.randint(np.iinfo("i").max)
        checked = self._checked(X, y, sample_weight)
        data = checked.data
        shape = data.n_rows, data.n_features  # workers may forget the rows they train
        try:
            with errors_in_own_names(), self._threads(data) as threads:
                chosen = self._chosen(checked, seed, threads)
                if chosen is None:  # a search without refit
                    return
                model = self._trained(*chosen)
        except NoMarginError as error:  # scikit-learn's solver stops before it detects this
            is_scaled = data.scaling is not None and not data.scaling.is_shift
            is_encoded = data.table is not None or is_scaled
            arguments = (*checked.arguments[:2], data.sample_weight)
            if is_encoded or self.feature_weights is not None:  # it would get other rows
                raise
            if not self._fall_back(arguments, error, data.n_rows):
                raise
            return
        # kernel values of the caller may exceed the precision of float32
        if self._has_kernel_matrix and not model.report.converged and self._is_small(data):
            reason = "kernel values require float64"
            if self._fall_back(checked.arguments, reason, data.n_rows):
                return
        self._keep(model, shape, checked.rows_at)
        self._warn(model.report)

    def _checked(self, X: Input, y: ArrayLike, sample_weight: ArrayLike | None) -> FitInput:
        """Check the arguments of fit. Raises ValueError and TypeError."""
        if sparse.issparse(X) and is_precomputed(self.kernel):
            raise TypeError("Sparse precomputed kernels are not supported.")
        X, y = in_known_frame(X), Dataset.complete_labels(y)
        rows, labels = self._checked_input(X, y)
        weights = checked_weights(sample_weight, rows.shape)
        labels, weights = self._targets(labels, weights)
        if len(labels) != rows.shape[0]:
            raise ValueError(
                f"X and y have incompatible shapes.\nX has {rows.shape[0]} samples, but y has "
                f"{len(labels)}."
            )
        # features must fit float32: as they are, or scaled
        if self._has_kernel_matrix and self.scale is not None:
            raise ValueError("scale needs features, not a precomputed kernel")
        data = Dataset(rows, scale=self.scale).with_labels(labels, weights)
        data = self._shifted(data)
        trained_rows = rows  # float64, for a more accurate variance
        if data.table is not None or data.scaling is not None:
            trained_rows = matrix_of(data.rows.with_features(data.n_features))
        check_sizes(trained_rows)
        rows_at = rows.__getitem__ if data.table is None else partial(rows_of_table, data)
        variance = partial(variance_of, trained_rows, weights)
        return FitInput((X, y, sample_weight), data, variance, rows_at)

    def _shifted(self, data: Any) -> Any:
        """Shift columns for float32, as in the previous model if training starts from it."""
        previous = getattr(self, "model_", None) if self.warm_start else None
        tell = partial(warnings.warn, stacklevel=7)
        try:
            return data.shifted(kernel_type(self.kernel), tell, previous)
        except ValueError as error:  # values beyond float32
            raise ValueError(f"{NOT_FINITE} ({error})") from None

    def _checked_input(self, X: Input, y: ArrayLike) -> tuple[Any, ArrayLike]:
        """Check the input; return X, or its kernel matrix, and y. A callable is evaluated here."""
        if callable(self.kernel):
            kernel = self._kernel_matrix(X, X)
            if kernel.ndim != 2 or kernel.shape[0] != kernel.shape[1]:
                raise ValueError(
                    f"X.shape[0] should be equal to X.shape[1]: the kernel gave {kernel.shape}"
                )
            self._X_fit, self._encoding_of_gaps = X, None
            return kernel, y
        is_kernel = self._has_kernel_matrix
        rows, y, self._encoding_of_gaps = checked_data(self, X, y, is_kernel=is_kernel)
        if is_precomputed(self.kernel) and rows.shape[0] != rows.shape[1]:
            raise ValueError(
                "Precomputed matrix must be a square matrix. Input is a "
                f"{rows.shape[0]}x{rows.shape[1]} matrix."
            )
        return rows, y

    def _kernel_matrix(self, X: Input, others: Input) -> np.ndarray:
        """Compute the kernel matrix, float64 (n, m), of a callable kernel."""
        return np.asarray(dense(self.kernel(X, others)), dtype=np.float64, order="C")

    def _targets(self, y: ArrayLike, weights: Weights) -> tuple[np.ndarray, Weights]:
        """Convert y to class indices or targets, and adapt the weights."""
        return column_or_1d(y, warn=True).astype(np.float64), weights

    def _chosen(
        self, checked: FitInput, seed: int, threads: int | None
    ) -> tuple[Dataset, TrainOptions] | None:
        """Return the weighted rows and the options to train a model, None to train none."""
        params = self.get_params(deep=False)
        n_features = checked.data.n_features
        gamma = gamma_option(self.kernel, params["gamma"], n_features, checked.variance)
        data, options = self._weighted(checked, self._options(params, gamma, seed, threads))
        self._gamma = options.gamma
        return data, options

    def _options(
        self, params: dict[str, Any], gamma: float | str | None, seed: int, threads: int | None
    ) -> TrainOptions:
        """Convert parameters to training options. Raises OptionError."""
        options = {name: params[name] for name in SAME_AS_OPTIONS if name in params}
        options |= {
            "svm_type": self._svm_type,
            "kernel": kernel_type(params["kernel"]).name,
            "gamma": gamma,
            "tolerance": float(params["tol"]),
            "max_iterations": max(params["max_iter"], 1) if params["max_iter"] >= 0 else -1,
            "cache_mb": params["memory"],
            "threads": threads,
            "seed": 0,  # models are reproducible
        }
        if "C" in params:
            options["C"] = min(float(params["C"]), MAX_C)
        if "probability" in params and has_probability(self):
            # decision value 0 has probability 1/2, so that probabilities agree with predictions
            options |= {"probability": "centered", "seed": seed}  # of the folds of probabilities
        if self._svm_type == "c_svc":
            weights = dict(enumerate(self.class_weight_.tolist()))
            options |= {"bias": True, "class_weight": weights}
        return TrainOptions(**options)

    def _weighted(self, checked: FitInput, options: TrainOptions) -> tuple[Dataset, TrainOptions]:
        """Return the weighted rows, and the options with the number of gamma before weights."""
        stop = self._control().stop
        return with_weights_and_gamma(checked.data, self.feature_weights, options, stop)

    def _trained(self, data: Dataset, options: TrainOptions) -> Model:
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

    def _fall_back(
        self, arguments: Arguments, reason: str | Exception, n_rows: int | None = None
    ) -> bool:
        """Fit with scikit-learn's solver; return whether it converges.

        `n_rows` limits its iterations to those that the rows take in ten seconds; without it,
        ValueError is raised if the solution is not finite.
        """
        max_iter = None if n_rows is None else min(MAX_ITERATIONS, MAX_UPDATES // n_rows)
        params, gamma = self._trained_params(), getattr(self, "_gamma", 0.0)
        reference = sklearns_estimator(self._svm_type, params, gamma)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", FutureWarning)  # `probability` is deprecated
            if max_iter is not None:
                reference.set_params(max_iter=max_iter)
                warnings.simplefilter("ignore", ConvergenceWarning)
            try:
                reference.fit(*arguments)
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

    def _keep(
        self,
        model: Model,
        shape: tuple[int, int],
        rows_at: Callable[[np.ndarray], Matrix] | None = None,
    ) -> None:
        """Set the fitted attributes, after training on rows (n, d) of a shape.

        Without `rows_at`, see FitInput, the support vectors are those of the model, scaled.
        """
        if self._n_classes:
            model = model.with_labels(self.classes_)
            sigmoid = model.probability
            sigmoids = (sigmoid.A, sigmoid.B) if sigmoid else (np.empty(0), np.empty(0))
            self._probA, self._probB = map(np.ascontiguousarray, sigmoids)
        # support vectors, grouped by class
        part = model.part()
        self.model_, self.report_, self.shape_fit_ = model, model.report, shape
        distinct = part.distinct  # a row may be a support vector of several clusters
        numbers = np.full(part.rows.n_samples, -1) if part.row_numbers is None else part.row_numbers
        self.support_ = numbers[distinct].astype(np.int32)
        vectors: Matrix = np.empty((0, 0))
        if not self._has_kernel_matrix:
            own = part.rows.take(distinct)
            vectors = rows_at(self.support_) if rows_at else matrix_of(own, model.scaling)
        self._sparse = sparse.issparse(vectors)
        vectors = vectors.astype(np.float64, copy=False)
        self.support_vectors_ = sparse.csr_matrix(vectors) if self._sparse else vectors
        counts = np.array([len(self.support_)])
        if part.class_ is not None:
            counts = np.bincount(part.class_[distinct], minlength=len(model.labels))
        self._n_support = self.n_support_ = counts.astype(np.int32)
        self._iterations = np.zeros(0, np.int32)
        if model.report is not None:
            self._iterations = model.report.problems.iterations.astype(np.int32)
        # an early model has no coefficients: those of a previous fit must not stay
        coefficients = ("_dual_coef_", "_intercept_", "dual_coef_", "intercept_", "_primal")
        for name in ("_reference", *coefficients):
            self.__dict__.pop(name, None)
        if model.exact is not None:  # in scikit-learn's layout
            coef = np.ascontiguousarray(model.exact.dual_coef)
            self._dual_coef_ = full_csr(coef) if self._sparse else coef
            self._intercept_ = -model.exact.rho
            self.dual_coef_ = self._sign * self._dual_coef_
            self.intercept_ = self._sign * self._intercept_

    def _warn(self, report: Any) -> None:
        self.fit_status_ = int(not report.converged)
        if report.missing:
            missing = " and ".join(report.missing)
            warnings.warn(f"stopped before the {missing}", ConvergenceWarning, stacklevel=3)
        if self.fit_status_ == 0:
            return
        reason = f"(max_iter={self.max_iter})" if self.max_iter >= 0 else ""
        # the sentence of scikit-learn, as users filter by it
        if report.stopped:
            reason = f"(time_limit={self.time_limit:g})"
        violation = "" if report.violation is None else f" The violation is {report.violation:.3g}."
        warnings.warn(
            f"Solver terminated early {reason}.  Consider pre-processing your data with"
            f" StandardScaler or MinMaxScaler.{violation}",
            ConvergenceWarning,
            stacklevel=3,
        )

    def _check_is_fitted(self) -> None:
        """Raise NotFittedError if there is no model."""
        check_is_fitted(self)

    @property
    def _has_kernel_matrix(self) -> bool:
        return has_kernel_matrix(self.kernel)

    @property
    def _n_classes(self) -> int:
        return len(getattr(self, "classes_", ()))

    @property
    def _sign(self) -> float:
        """The sign of scikit-learn's coefficients, relative to LIBSVM's."""
        return -1.0 if self._n_classes == 2 else 1.0

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
        primal, columns = self._primal_coefficients()
        coef: Any = self._sign * primal
        if columns is not None:
            arrays = coef.data, columns[coef.indices], coef.indptr
            coef = sparse.csr_matrix(arrays, shape=(coef.shape[0], self.shape_fit_[1]))
        (coef if columns is None else coef.data).flags.writeable = False
        return coef

    @property
    def violation_(self) -> float | None:
        """Largest KKT violation, checked in float64."""
        return None if self.report_ is None else self.report_.violation

    @property
    def duality_gap_(self) -> float | None:
        """Duality gap, in the units of LIBSVM's objective."""
        return None if self.report_ is None else self.report_.duality_gap

    def _primal_coefficients(self) -> tuple[Matrix, np.ndarray | None]:
        """Return `primal_coefficients`; sparse ones have only the columns returned, ascending."""
        if self._primal is None:
            vectors: Any = self._vectors_in_training()
            columns = None
            if sparse.issparse(vectors):  # products of sparse matrices take memory for every column
                columns = np.unique(vectors.indices)
                vectors = of_columns(vectors, columns)
            primal = primal_coefficients(self._dual_coef_, vectors, self._n_support)
            self._primal = primal, columns
        return self._primal

    def _vectors_in_training(self) -> Matrix:
        """Return the support vectors as in training, for large coefficients: rounded, scaled."""
        model = self.model_
        if model is not None and model.scaling is not None:
            rows = model.part().rows.with_features(self.shape_fit_[1])
            vectors = matrix_of(rows, model.scaling).astype(np.float64)
            return sparse.csr_matrix(vectors) if self._sparse else dense(vectors)
        return self.support_vectors_.astype(np.float32).astype(np.float64)

    def to_sklearn(self) -> BaseEstimator:
        """Convert to scikit-learn's estimator with the same decision function.

        Returns
        -------
        object
            A fitted estimator of sklearn.svm with the same name.

        Raises
        ------
        ValueError
            For an early model, which has a decision function per cluster; and for a model that
            scales rows.

        Notes
        -----
        A kernel that scikit-learn lacks becomes a function, which needs dcsvm: `support_` are then
        the numbers of the support vectors, and `support_vectors_` are in the function's rows.
        """
        self._check_is_fitted()
        check_is_sklearns(self.model_ if self._reference is None else None)
        if self._reference is not None:
            return deepcopy(self._reference)
        state = {name: getattr(self, name) for name in SHARED if hasattr(self, name)}
        state = {"_probA": np.empty(0), "_probB": np.empty(0), **state}
        has_classes = is_classifier(self)
        # scikit-learn stores a regression as if it had a second class without vectors
        n_support = self._n_support if has_classes else [self._n_support[0], 0]
        n_iter = self._iterations if len(self._iterations) else np.zeros(1, np.int32)
        is_kernel = self._has_kernel_matrix
        state |= {
            "_effective_probability": len(state["_probA"]) > 0,
            "_n_support": np.array(n_support, np.int32),
            "support_vectors_": np.empty((0, 0)) if is_kernel else self._vectors_in_training(),
            "_num_iter": n_iter,
            "n_iter_": n_iter if has_classes else int(n_iter[0]),
        }
        if callable(self.kernel):
            state[X_FIT] = self._X_fit
        elif lacks_kernel(self.kernel):  # a callable of the support vectors
            vectors = dense(state["support_vectors_"])
            state |= {
                X_FIT: vectors,
                "support_": np.arange(len(vectors), dtype=np.int32),
                "support_vectors_": np.empty((0, 0)),
                "_sparse": False,
            }
        if self._svm_type == "one_class":
            state["offset_"] = -self._intercept_
        reference = sklearns_estimator(self._svm_type, self._trained_params(), self._gamma)
        vars(reference).update(state)
        return reference

    def save(self, path: str | os.PathLike[str], format: str = "dcsvm") -> None:
        """Write a model file for dcsvm-predict, and for svm-predict if the model is exact.

        Parameters
        ----------
        path : str or path-like
            The file to write.
        format : {'dcsvm', 'libsvm'}
            'libsvm' omits dcsvm's extensions.

        Raises
        ------
        ValueError
            For string labels with 'libsvm', and for values outside the range of float32.
        """
        self._check_is_fitted()
        if self.model_ is None:
            raise ValueError("the model does not fit float32, the precision of model files")
        self.model_.save(path, format)

    def _trained_params(self) -> dict[str, Any]:
        """Return the parameters that the model is trained with."""
        return self.get_params(deep=False)

    def _take_over(self, fitted: BaseEstimator) -> None:
        """Copy the fitted attributes of scikit-learn's estimator."""
        gamma = getattr(self, "_gamma", 0.0)
        attributes = attributes_of(fitted, self._svm_type, self._trained_params(), gamma)
        self.__dict__.update(attributes)

    def _values(
        self,
        X: Input,
        method: str | None,
        reduce: Callable[[np.ndarray], np.ndarray] | None = None,
    ) -> np.ndarray:
        """Compute decision values float64 (n, n_pairs), positive for the first class of a pair.

        `reduce` is applied to them in blocks of rows.
        """
        reduced = reduce or np.asarray
        self._check_is_fitted()
        model, values = self.model_, None
        if self._reference is None:
            assert model is not None
            values = self._few_values(model, X, method)
        if values is not None:
            return reduced(values)
        X = in_known_frame(X)
        # scikit-learn's estimator predicts in float64, but cannot encode
        if self._reference is not None and not (
            model is not None and needs_encoding(X, self._encoding_of_gaps)
        ):
            check_frame_size(self, X)
            return reduced(pair_values(self._reference, X))
        assert model is not None  # as no reference was fitted
        checked, model = self._check_rows_to_predict(X, model)
        is_encoded = model.is_scaled or model.table is not None
        has_primal = not is_encoded and model.kernel.type.is_linear and model.exact is not None
        if has_primal and method in (None, "exact"):
            primal, columns = self._primal_coefficients()
            if columns is not None:
                is_sparse = sparse.issparse(checked)
                checked = of_columns(checked, columns) if is_sparse else checked[:, columns]
            return reduced(dense(checked @ primal.T) + self._intercept_)
        rows = model.rows_of(checked)
        with shared_threads(self.threads, rows.work_with(len(self.support_))) as threads:
            return model.pair_values(rows, method, threads, reduce)

    def _few_values(self, model: Model, X: Input, method: str | None) -> np.ndarray | None:
        """Compute decision values of a few rows by the fast path; None if it does not apply."""
        if type(X) is not np.ndarray or X.dtype not in DTYPES or X.ndim != 2:
            return None
        is_as_fitted = X.shape[1] == getattr(self, "n_features_in_", None)
        if not is_as_fitted or self._has_kernel_matrix or hasattr(self, "feature_names_in_"):
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
            rows, model = checked_rows(self, X, model, self._encoding_of_gaps)
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
def errors_in_own_names() -> Iterator[None]:
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
