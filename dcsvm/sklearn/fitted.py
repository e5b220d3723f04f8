"""Kernels, options and fitted attributes in scikit-learn's layout, and its own estimators.

For two classes scikit-learn negates LIBSVM's values: `dual_coef_`, `intercept_` and `coef_` are
positive for classes_[1]. `_dual_coef_` and `_intercept_` have LIBSVM's signs.
"""

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy import sparse
from sklearn.base import BaseEstimator
from sklearn.svm import _classes

from dcsvm.model.model import Model
from dcsvm.problem.options import TrainOptions
from dcsvm.sklearn.rows import Input, Matrix, dense, matrix_of

MAX_C = 1e30  # replaces C=inf; rounding spoils solutions with larger alphas
KERNEL_RULE = next(option.rule for name, option, _ in TrainOptions.entries() if name == "kernel")
KERNELS = {  # kernel types by scikit-learn's names
    spelling: TrainOptions(kernel=name).kernel_type
    for spelling, name in zip(KERNEL_RULE.spellings, KERNEL_RULE.names, strict=True)
}
Arguments = tuple[Input, ArrayLike | None, ArrayLike | None]  # X, y and sample_weight of fit
# parameters that are options of the same name
SAME_AS_OPTIONS = ("nu", "epsilon", "degree", "coef0", "levels", "early", "early_level", "overlap",
                   "gap")  # fmt: skip


def kernel_type(kernel: object) -> Any:
    """Return the KernelType of a kernel, given by name or as a callable; None if it is unknown."""
    if callable(kernel):
        return next(kind for kind in KERNELS.values() if kind.is_precomputed)
    return KERNELS.get(kernel) if isinstance(kernel, str) else None


def is_linear(kernel: object) -> bool:
    """Return whether a parameter `kernel` is the linear kernel."""
    return getattr(kernel_type(kernel), "is_linear", False)


def has_kernel_matrix(kernel: object) -> bool:
    """Return whether training uses a kernel matrix, either given or computed by a callable."""
    return getattr(kernel_type(kernel), "is_precomputed", False)


def is_precomputed(kernel: object) -> bool:
    """Return whether the input X contains kernel values instead of features."""
    return not callable(kernel) and has_kernel_matrix(kernel)


def has_probability(classifier: BaseEstimator) -> bool:
    """Return whether a classifier has the parameter `probability` set."""
    return classifier.probability not in (False, "deprecated")


def gamma_option(
    kernel: object, gamma: Any, n_features: int, variance: Callable[[], float]
) -> float | str:
    """Convert gamma to the option: a number, or F/median for kernels of a distance.

    'scale' is 1 / (n_features variance), 'auto' is 1 / n_features. gamma is 0 for kernels that have
    none.
    """
    if is_of_median(gamma):
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


def rows_of_table(data: Any, row_numbers: np.ndarray) -> Matrix:
    """Return the encoded rows, unscaled, of a Dataset of a data frame."""
    ascending, places = np.unique(row_numbers, return_inverse=True)
    taken = data.take(ascending)
    if data.scaling is not None and not data.scaling.is_shift:
        taken = taken.scaled(None)
    rows = taken.rows.with_features(data.n_features)
    matrix = matrix_of(rows, taken.scaling)[places]
    return dense(matrix) if data.rows.is_dense else sparse.csr_matrix(matrix)


def of_columns(X: sparse.csr_matrix, columns: np.ndarray) -> sparse.csr_matrix:
    """Return only these columns of X, ascending."""
    place = np.searchsorted(columns, X.indices)
    kept = np.append(columns, -1)[place] == X.indices
    indptr = np.concatenate(([0], np.cumsum(kept)))[X.indptr]
    return sparse.csr_matrix((X.data[kept], place[kept], indptr), shape=(X.shape[0], len(columns)))


def primal_coefficients(dual_coef: Matrix, vectors: Matrix, n_support: np.ndarray) -> Matrix:
    """Compute the coefficients of a linear kernel, (n_pairs, d), or (1, d) without classes.

    They are positive for the first class of a pair. `n_support` counts the support vectors of each
    class, in whose order the vectors are.
    """
    k = len(n_support)
    if k <= 2:
        return dual_coef @ vectors
    begin = np.concatenate(([0], np.cumsum(n_support)))
    of_class = [slice(a, b) for a, b in zip(begin[:-1], begin[1:], strict=True)]
    # row j of the block of class i belongs to the pair of i with class j, or j + 1 if j >= i
    block: list[Any] = [dual_coef[:, rows] @ vectors[rows] for rows in of_class]
    pairs = [block[i][[j - 1]] + block[j][[i]] for i in range(k) for j in range(i + 1, k)]
    return sparse.vstack(pairs, format="csr") if sparse.issparse(vectors) else np.vstack(pairs)


def full_csr(coef: np.ndarray) -> sparse.csr_matrix:
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


def lacks_kernel(kernel: object) -> bool:
    """Return whether scikit-learn has no kernel of this name of dcsvm."""
    return getattr(kernel_type(kernel), "sklearn_name", "") is None


def check_is_sklearns(model: Model | None) -> None:
    """Raise ValueError if scikit-learn's estimators cannot have the model."""
    if model is None:  # scikit-learn fitted it
        return
    if model.exact is None:
        raise ValueError(
            "an early model has a decision function for each cluster, which scikit-learn's"
            " estimators do not support"
        )
    if model.scaling is not None and model.is_scaled:
        raise ValueError(
            f"the rows of the model are scaled by {model.scaling.name}: scikit-learn's"
            " estimator cannot scale"
        )
    if model.table is not None:
        raise ValueError(
            "the model encodes the columns of a data frame: scikit-learn's estimator cannot"
        )


def sklearns_estimator(
    svm_type: str, params: dict[str, Any], gamma: float | str | None
) -> BaseEstimator:
    """Make scikit-learn's estimator; parameters that it lacks are dropped.

    A kernel that it lacks becomes a callable. `gamma` is the number of a gamma of F/median.
    """
    estimator, params = THEIRS[svm_type](), dict(params)
    if lacks_kernel(params["kernel"]):
        name = kernel_type(params["kernel"]).name
        kernel = TrainOptions(kernel=name, gamma=gamma).kernel_on(0)
        params["kernel"] = partial(_values_of_distances, kernel)
    if params.get("probability") in (False, np.False_, "deprecated"):
        del params["probability"]  # its default gives the fewest warnings
    if is_of_median(params.get("gamma")):
        params["gamma"] = gamma
    names = [name for name in estimator.get_params() if name in params]
    return estimator.set_params(**{name: params[name] for name in names})


def _values_of_distances(kernel: Any, X: Input, others: Input) -> np.ndarray:
    return kernel.values_of_distances(dense(X), dense(others))


def is_of_median(gamma: object) -> bool:
    """Return whether a parameter `gamma` is F/median."""
    return isinstance(gamma, str) and gamma not in ("scale", "auto")


def attributes_of(
    fitted: BaseEstimator, svm_type: str, params: dict[str, Any], gamma: float | str | None
) -> dict[str, Any]:
    """Return the attributes of our estimator with the solution of a fitted one of scikit-learn.

    `model_` is None if its values exceed the range of float32. `gamma` is the number of a kernel
    that scikit-learn lacks.
    """
    state, kernel = vars(fitted), params["kernel"]
    n_support, has_classes = np.asarray(fitted.n_support_, np.int32), hasattr(fitted, "classes_")
    attributes = {name: state[name] for name in SHARED if name in state}
    attributes |= {"_n_support": n_support, "n_support_": n_support, "report_": None}
    attributes |= {"_iterations": np.atleast_1d(fitted.n_iter_).astype(np.int32), "_primal": None}
    vectors = state["support_vectors_"]
    if lacks_kernel(kernel):  # it was a callable
        vectors = state[X_FIT][fitted.support_]
        attributes |= {"_gamma": gamma, "_sparse": sparse.issparse(vectors)}
    elif callable(fitted.kernel):
        attributes["_X_fit"] = state[X_FIT]
    options = TrainOptions(svm_type=svm_type, kernel=kernel_type(kernel).name)
    if has_kernel_matrix(kernel):
        vectors = None
    else:
        numbers = {"coef0": params["coef0"], "degree": params["degree"]}
        options = replace(options, gamma=attributes["_gamma"], **numbers)
    attributes["support_vectors_"] = np.empty((0, 0)) if vectors is None else vectors
    try:
        model = Model.of_vectors(
            options,
            vectors,
            np.ascontiguousarray(dense(state["_dual_coef_"])),
            -state["_intercept_"],
            row_numbers=fitted.support_,
            n_rows=fitted.shape_fit_[0],
            n_sv=n_support.astype(np.int64) if has_classes else None,
            sigmoids=(state["_probA"], state["_probB"]) if len(state["_probA"]) else None,
        )
        attributes["model_"] = model.with_labels(fitted.classes_) if has_classes else model
    except ValueError:  # values are beyond float32
        attributes["model_"] = None
    return attributes


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
