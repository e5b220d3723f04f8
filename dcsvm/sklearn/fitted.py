"""Parameters and fitted attributes in scikit-learn's layout, and its own estimators.

A parameter that is an option of dcsvm has the option's text, default and rule. The others follow
scikit-learn. For two classes scikit-learn negates LIBSVM's values: `dual_coef_`, `intercept_` and
`coef_` are positive for classes_[1]. `_dual_coef_` and `_intercept_` have LIBSVM's signs.
"""

import os
import textwrap
import warnings
from collections.abc import Callable
from copy import deepcopy
from dataclasses import dataclass, make_dataclass, replace
from functools import cached_property
from inspect import cleandoc
from numbers import Integral, Real
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy import sparse
from sklearn.base import BaseEstimator, is_classifier
from sklearn.exceptions import ConvergenceWarning
from sklearn.svm import _classes
from sklearn.utils._param_validation import HasMethods, Hidden, Interval, Options, StrOptions
from sklearn.utils.validation import check_is_fitted

from dcsvm.model.model import Model
from dcsvm.problem.options import DataOptions, SearchOptions, TrainOptions
from dcsvm.sklearn.rows import Input, Matrix, TakesRows, dense, matrix_of

MAX_C = 1e30  # replaces C=inf; rounding spoils solutions with larger alphas
RULES = {name: option.rule for name, option, _ in TrainOptions.entries()}
KERNELS = {  # kernel types by scikit-learn's names
    spelling: TrainOptions(kernel=name).kernel_type
    for spelling, name in zip(RULES["kernel"].spellings, RULES["kernel"].names, strict=True)
}


@dataclass(frozen=True)
class Parameter:
    """Parameter of an estimator: default, scikit-learn's constraints, "type: description"."""

    default: Any
    constraints: list[Any]
    meaning: str


class Ruled(Options):
    """Constraint by the rule of an option of dcsvm, but without None if not `or_none`."""

    def __init__(self, table: Any, name: str, *, or_none: bool = True) -> None:
        super().__init__(object, set())
        self.table, self.name, self.or_none = table, name, or_none

    def is_satisfied_by(self, val: object) -> bool:
        """Return whether the rule accepts a value."""
        if val is None and not self.or_none:
            return False
        try:
            self.table.check(self.name, val)
        except ValueError:
            return False
        return True

    def __str__(self) -> str:
        words = self.table.words(self.name)
        return words if self.or_none else words.removesuffix(" or None")


def shared(table: Any, name: str, *, kind: str = "", more: str = "") -> Parameter:
    """Make the parameter of an option, of another `kind` if given, with `more` words."""
    known, _, words = table.text(name).partition(": ")
    default = next(default for one, _, default in table.entries() if one == name)
    return Parameter(default, [Ruled(table, name)], f"{kind or known}: {words}{more}")


def at_least(n: int) -> Interval:
    """Constrain a parameter to integers of at least n."""
    return Interval(Integral, n, None, closed="left")


def data_option(name: str, kind: str, constraints: list[Any]) -> Parameter:
    """Make a parameter on the data, which has a range of values of its own."""
    return Parameter(None, constraints, shared(DataOptions, name, kind=kind).meaning)


ABOVE_0 = Interval(Real, 0.0, None, closed="neither")
FROM_0 = Interval(Real, 0.0, None, closed="left")
GAMMA_WORDS = TrainOptions.text("gamma").partition(": ")[2].partition(";")[0]

# fmt: off
PARAMETERS = {
    "C": Parameter(1.0, [Interval(Real, 0.0, None, closed="right")],
        "float: cost of an error; inf is a hard margin."),
    "Cs": Parameter(11, [at_least(2), "array-like"],
        "int or array: values of C to try. An integer is a number of values from 2^-5 to 2^15, "
        "evenly spaced in the exponent."),
    "gammas": Parameter(10, [at_least(2), "array-like"],
        "int or array: values of gamma to try. An integer is a number of values from 2^-15 to 2^3, "
        "evenly spaced in the exponent. Kernels without gamma ignore it."),
    "epsilons": Parameter((0.1,), ["array-like"], "array: values of epsilon to try."),
    "cv": Parameter(None, ["cv_object"],
        "int, splitter, iterable or None: number of folds, stratified for classifiers; None is 5. "
        "An iterable has pairs (train, test) of row indices. Test sets must be disjoint, and "
        "training sets must contain all other rows."),
    "metric": shared(SearchOptions, "metric"),
    "refine": shared(SearchOptions, "refine"),
    "every": shared(SearchOptions, "every"),
    "refit": Parameter(True, ["boolean"],
        "bool: train a model on all rows with the best setting."),
    "nu": shared(TrainOptions, "nu"),
    "epsilon": shared(TrainOptions, "epsilon"),
    "kernel": Parameter("rbf", [StrOptions(set(KERNELS)), callable],
        f"{{{', '.join(map(repr, KERNELS))}}} or callable: kernel; a callable "
        "computes the kernel matrix of all training rows."),
    "degree": shared(TrainOptions, "degree"),
    "gamma": Parameter("scale",
        [StrOptions({"scale"}), Ruled(TrainOptions, "gamma", or_none=False)],
        f"{{'scale', 'auto', 'F/median'}} or float: {GAMMA_WORDS}; 'scale' is "
        "1 / (n_features * X.var()), 'auto' is 1 / n_features, both of scaled rows if there is a "
        "scale. 'F/median', such as '2/median', is the number F divided by the median of the "
        "distance in the kernel's formula."),
    "coef0": shared(TrainOptions, "coef0"),
    "scale": data_option("scale", "{'auto', 'quantile'}, scaling or None",
        [StrOptions({"auto", "quantile"}), HasMethods("scaled_rows"), None]),
    "feature_weights": data_option("feature_weights", "array, 'learn' or None",
        ["array-like", StrOptions({"learn"}), None]),
    "shrinking": Parameter(True, ["boolean"], "bool: ignored; for compatibility."),
    "probability": Parameter(False, ["boolean", Hidden(StrOptions({"deprecated"}))],
        "bool: fit probabilities for predict_proba, by 5-fold cross validation."),
    "tol": shared(TrainOptions, "tolerance"),
    "cache_size": Parameter(200, [ABOVE_0], "float: ignored; see memory."),
    "class_weight": Parameter(None, [StrOptions({"balanced"}), dict, None],
        "dict, 'balanced' or None: factors of C by class; for NuSVC, factors of sample weights."),
    "verbose": Parameter(False, ["verbose"], "bool: print progress."),
    "max_iter": Parameter(-1, [at_least(-1)],
        "int: approximate limit of coordinate updates; -1 is no limit."),
    "decision_function_shape": Parameter("ovr", [StrOptions({"ovr", "ovo"})],
        "{'ovr', 'ovo'}: a column per class, or per pair of classes."),
    "break_ties": Parameter(False, ["boolean"],
        "bool: break ties of votes by the 'ovr' decision function."),
    "random_state": Parameter(None, ["random_state"],
        "int, RandomState or None: seed of the folds of probabilities, and of a search if cv is "
        "a number."),
    "levels": shared(TrainOptions, "levels"),
    "early": shared(TrainOptions, "early"),
    "early_level": shared(TrainOptions, "early_level"),
    "overlap": shared(TrainOptions, "overlap"),
    "gap": shared(TrainOptions, "gap"),
    "time_limit": Parameter(None, [Interval(Real, 0.0, float("inf"), closed="both"), None],
        "float or None: stop after this many seconds and keep the current model."),
    "checkpoint": Parameter(None, [str, os.PathLike, None],
        "str or None: folder of the state of a long fit. An existing checkpoint is resumed, and "
        "removed when the fit ends."),
    "warm_start": Parameter(False, ["boolean"],
        "bool: start from the previous fit if its rows are among the new ones."),
    "threads": shared(TrainOptions, "threads",
        more="; threadpoolctl and joblib limit this number, too"),
    "memory": shared(TrainOptions, "cache_mb", kind="float or None"),
}
# fmt: on

GROUPS = {
    "KERNEL": "kernel degree gamma coef0",
    "SEARCHED_KERNEL": "kernel degree coef0",  # the search sets gamma
    "DATA": "scale feature_weights",
    "SOLVING": "tol cache_size verbose max_iter",
    "CLASSES": "probability class_weight decision_function_shape break_ties random_state",
    "CLUSTERS": "levels early early_level overlap",
    "LIMITS": "gap time_limit checkpoint warm_start",
    "MACHINE": "threads memory",
    "SEARCH": "Cs gammas cv metric refine every refit",
}


def with_parameters(*names: str, **others: Parameter) -> Callable[[type], type]:
    """Return a decorator that adds parameters to an estimator.

    It adds a constructor with keyword-only parameters, scikit-learn's constraints, and a section of
    the docstring. `names` are keys of PARAMETERS or GROUPS; `others` are further parameters.
    """
    listed = [name for group in names for name in GROUPS.get(group, group).split()]
    parameters = {name: PARAMETERS[name] for name in listed} | others

    def decorate(cls: Any) -> Any:
        fields = [(name, Any, one.default) for name, one in parameters.items()]
        cls.__init__ = vars(make_dataclass(cls.__name__, fields, kw_only=True))["__init__"]
        cls.__init__.__annotations__ = {}
        cls._parameter_constraints = {name: one.constraints for name, one in parameters.items()}
        section = "\n".join(_described(name, one) for name, one in parameters.items())
        if cls.__doc__ is not None:  # python -OO
            cls.__doc__ = cleandoc(cls.__doc__).replace("{parameters}", section)
        return cls

    return decorate


def _described(name: str, parameter: Parameter) -> str:
    kind, _, text = parameter.meaning.partition(": ")
    sentence = f"{text[0].upper()}{text[1:].removesuffix('.')}."
    description = "\n    ".join(textwrap.wrap(sentence, 88, break_on_hyphens=False))
    return f"{name} : {kind}, default={parameter.default!r}\n    {description}"


def kernel_type(kernel: object) -> Any:
    """Return the KernelType of a kernel, given by name or as a callable; None if it is unknown."""
    if callable(kernel):
        return next(one for one in KERNELS.values() if one.is_precomputed)
    return KERNELS.get(kernel) if isinstance(kernel, str) else None


def is_linear(kernel: object) -> bool:
    """Return whether a parameter `kernel` is the linear kernel."""
    known = kernel_type(kernel)
    return known is not None and known.is_linear


def has_kernel_matrix(kernel: object) -> bool:
    """Return whether training uses a kernel matrix, either given or computed by a callable."""
    known = kernel_type(kernel)
    return known is not None and known.is_precomputed


def is_precomputed(kernel: object) -> bool:
    """Return whether the input X contains kernel values instead of features."""
    return not callable(kernel) and has_kernel_matrix(kernel)


def gamma_option(
    kernel: object, gamma: Any, n_features: int, variance: Callable[[], float]
) -> float | str:
    """Convert gamma to the option: a number, or F/median for kernels of a distance.

    'scale' is 1 / (n_features variance), 'auto' is 1 / n_features. gamma is 0 for kernels that have
    none.
    """
    if isinstance(gamma, str) and gamma not in ("scale", "auto"):
        return gamma
    if not kernel_type(kernel).has_gamma:
        return 0.0
    if isinstance(gamma, Real):
        return float(gamma)
    if gamma == "auto":
        return 1.0 / n_features
    with np.errstate(over="ignore", invalid="ignore"):
        value = variance()
    return 1.0 / (n_features * value) if value > 0 else 1.0


def train_options(
    params: dict[str, Any], svm_type: str, gamma: float | str | None, **others: Any
) -> TrainOptions:
    """Convert parameters of an estimator to training options. Raises OptionError."""
    same = ("nu", "epsilon", "degree", "coef0", "levels", "early", "early_level", "overlap", "gap")
    options = {name: params[name] for name in same if name in params}
    options |= {
        "svm_type": svm_type,
        "kernel": kernel_type(params["kernel"]).name,
        "gamma": gamma,
        "tolerance": float(params["tol"]),
        "max_iterations": max(params["max_iter"], 1) if params["max_iter"] >= 0 else -1,
        "cache_mb": params["memory"],
    }
    if "C" in params:
        options["C"] = min(float(params["C"]), MAX_C)
    return TrainOptions(**options | others)


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


THEIRS = {  # from the defining module: patch() may have replaced the names in sklearn.svm
    "c_svc": _classes.SVC,
    "nu_svc": _classes.NuSVC,
    "epsilon_svr": _classes.SVR,
    "nu_svr": _classes.NuSVR,
    "one_class": _classes.OneClassSVM,
}
SHARED = (  # attributes of both libraries, in the same layout
    "support_", "support_vectors_", "n_features_in_", "feature_names_in_", "shape_fit_",
    "fit_status_", "classes_", "class_weight_", "_gamma", "_sparse", "_dual_coef_", "_intercept_",
    "dual_coef_", "intercept_", "_n_support", "_probA", "_probB",
)  # fmt: skip
X_FIT = "_BaseLibSVM__Xfit"  # attribute with the training rows of a callable kernel


class Convertible(Fitted):
    """Fitted estimator that converts to scikit-learn's estimator and to a model file."""

    def to_sklearn(self) -> BaseEstimator:
        """Convert to scikit-learn's estimator with the same decision function.

        Returns
        -------
        fitted : estimator of sklearn.svm with the same name

        Raises
        ------
        ValueError
            For an early model, which has a decision function per cluster; for a model that scales
            rows; and for a kernel that scikit-learn lacks.
        """
        self._check_is_fitted()
        kernel = kernel_type(self.kernel)
        if kernel is None or kernel.sklearn_name is None:
            raise ValueError(f"scikit-learn has no kernel {self.kernel!r}")
        if self._reference is not None:
            return deepcopy(self._reference)
        model = self.model_
        assert model is not None  # only None if a reference was fitted
        if model.exact is None:
            raise ValueError(
                "an early model has a decision function for each cluster, which scikit-learn's"
                " estimators do not support"
            )
        if model.scaling is not None:
            raise ValueError(
                f"the rows of the model are scaled by {model.scaling.name}: scikit-learn's"
                " estimator cannot scale"
            )
        if model.table is not None:
            raise ValueError(
                "the model encodes the columns of a data frame: scikit-learn's estimator cannot"
            )
        state = {name: getattr(self, name) for name in SHARED if hasattr(self, name)}
        state = {"_probA": np.empty(0), "_probB": np.empty(0), **state}
        n_support = self._n_support if model.is_classifier else [self._n_support[0], 0]
        n_iter = self._iterations if len(self._iterations) else np.zeros(1, np.int32)
        state |= {
            "_effective_probability": len(state["_probA"]) > 0,
            "_n_support": np.array(n_support, np.int32),
            "support_vectors_": np.empty((0, 0)) if self._has_kernel_matrix else self._vectors(),
            "_num_iter": n_iter,
            "n_iter_": n_iter if model.is_classifier else int(n_iter[0]),
        }
        if callable(self.kernel):
            state[X_FIT] = self._X_fit
        if self._svm_type == "one_class":
            state["offset_"] = -self._intercept_
        reference = self._make_reference()
        vars(reference).update(state)
        return reference

    def save(self, path: str | os.PathLike[str], format: str = "dcsvm") -> None:
        """Write a model file for dcsvm-predict, and for svm-predict if the model is exact.

        The format 'libsvm' omits dcsvm's extensions. Raises ValueError for string labels and for
        values outside the range of float32.
        """
        self._check_is_fitted()
        if self.model_ is None:
            raise ValueError("the model does not fit float32, the precision of model files")
        self.model_.save(path, format)

    def _settings(self) -> dict[str, Any]:
        """Return the parameters that the model is trained with."""
        return self.get_params(deep=False)

    def _make_reference(self) -> BaseEstimator:
        """Make scikit-learn's estimator; parameters that it lacks are dropped.

        A kernel that it lacks becomes a callable.
        """
        made, params = THEIRS[self._svm_type](), self._settings()
        if self._lacks_kernel:
            params["kernel"] = _Distances(self.kernel, self._gamma)
        if params.get("probability") in (False, np.False_, "deprecated"):
            del params["probability"]  # its default gives the fewest warnings
        gamma = params.get("gamma")
        if isinstance(gamma, str) and gamma not in ("scale", "auto"):  # F/median
            params["gamma"] = self._gamma
        names = [name for name in made.get_params() if name in params]
        return made.set_params(**{name: params[name] for name in names})

    @property
    def _lacks_kernel(self) -> bool:
        """Whether scikit-learn has no kernel of this name."""
        own = kernel_type(self.kernel)
        return own is not None and own.sklearn_name is None

    def _fit_reference(
        self, X: Input, y: ArrayLike | None, sample_weight: ArrayLike | None, max_iter: int | None
    ) -> BaseEstimator:
        """Fit scikit-learn's estimator, with `max_iter` if it is not None.

        Warnings that `probability` is deprecated or that this `max_iter` is reached are suppressed.
        """
        reference = self._make_reference()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", FutureWarning)
            if max_iter is not None:
                reference.set_params(max_iter=max_iter)
                warnings.simplefilter("ignore", ConvergenceWarning)
            return reference.fit(X, y, sample_weight=sample_weight)

    def _take_over(self, fitted: BaseEstimator) -> None:
        """Copy the fitted attributes of scikit-learn's estimator.

        `model_` is None if its values exceed the range of float32.
        """
        state = vars(fitted)
        shared = {name: state[name] for name in SHARED if name in state}
        if self._lacks_kernel:
            del shared["_gamma"]  # scikit-learn's is 0 for a callable
        self.__dict__.update(shared)
        self._n_support = self.n_support_ = np.asarray(fitted.n_support_, np.int32)
        self._iterations = np.atleast_1d(fitted.n_iter_).astype(np.int32)
        self.report_ = None
        self.__dict__.pop("_coef", None)
        if self._lacks_kernel:
            self.support_vectors_ = state[X_FIT][self.support_]
            self._sparse = sparse.issparse(state[X_FIT])
        elif callable(fitted.kernel):
            self._X_fit = state[X_FIT]
        if self._has_kernel_matrix:
            self.support_vectors_ = np.empty((0, 0))
        try:
            self.model_ = self._model_of_attributes()
        except ValueError:
            self.model_ = None

    def _model_of_attributes(self) -> Model:
        options = TrainOptions(svm_type=self._svm_type, kernel=kernel_type(self.kernel).name)
        if not self._has_kernel_matrix:
            parameters = {"gamma": self._gamma, "coef0": self.coef0, "degree": self.degree}
            options = replace(options, **parameters)
        has_classes = is_classifier(self)
        model = Model.of_vectors(
            options,
            None if self._has_kernel_matrix else self.support_vectors_,
            np.ascontiguousarray(dense(self._dual_coef_)),
            -self._intercept_,
            row_numbers=self.support_,
            n_rows=self.shape_fit_[0],
            n_sv=self._n_support.astype(np.int64) if has_classes else None,
            sigmoids=(self._probA, self._probB) if len(self._probA) else None,
        )
        return model.with_labels(self.classes_) if has_classes else model


class _Distances:
    """A kernel that scikit-learn lacks, as a callable for its estimators."""

    def __init__(self, kernel: str, gamma: float):
        options = TrainOptions(kernel=kernel_type(kernel).name, gamma=gamma)
        self.kernel = options.kernel_on(0)

    def __call__(self, X: Input, others: Input) -> np.ndarray:
        return self.kernel.values_of_distances(dense(X), dense(others))


def pair_values(fitted: BaseEstimator, X: Input) -> np.ndarray:
    """Compute decision values (n, n_pairs) of scikit-learn's estimator.

    Positive values stand for the first class of a pair.
    """
    if not hasattr(fitted, "classes_"):
        return getattr(fitted, "decision_function", fitted.predict)(X)[:, None]
    shape = fitted.decision_function_shape
    try:
        values = fitted.set_params(decision_function_shape="ovo").decision_function(X)
    finally:
        fitted.set_params(decision_function_shape=shape)
    return -values[:, None] if values.ndim == 1 else values
