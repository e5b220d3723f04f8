"""The parameters of the estimators and their training options."""

import os
import textwrap
from collections.abc import Callable
from dataclasses import dataclass, make_dataclass
from numbers import Integral, Real
from typing import Any

import numpy as np
from sklearn.utils._param_validation import Hidden, Interval, StrOptions

from dcsvm.kernel.kernels import DEFAULT, KERNEL_TYPES, PRECOMPUTED, KernelType, users_of
from dcsvm.problem.option_table import is_per_median, with_section

KERNELS = {one.short_name: one for one in KERNEL_TYPES}  # keys: scikit-learn's names
MAX_C = 1e30  # replaces C=inf; rounding spoils solutions with larger alphas


@dataclass(frozen=True)
class Parameter:
    """Parameter of an estimator: default, scikit-learn's constraints, "type: description"."""

    default: Any
    constraints: list[Any]
    meaning: str


class GammaOptions(StrOptions):
    """Constraint that allows scikit-learn's words for gamma, and F/median."""

    def __init__(self) -> None:
        super().__init__({"scale", "auto"})

    def is_satisfied_by(self, val: object) -> bool:
        """Return whether a value is one of the words, or F/median."""
        return super().is_satisfied_by(val) or is_per_median(val)

    def __str__(self) -> str:
        return f"{super().__str__()} or of the form 'F/median'"


ABOVE_0 = Interval(Real, 0.0, None, closed="neither")
FROM_0 = Interval(Real, 0.0, None, closed="left")


def at_least(n: int) -> Interval:
    """Constrain a parameter to integers of at least n."""
    return Interval(Integral, n, None, closed="left")


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
    "refine": Parameter(False, ["boolean"],
        "bool: then search a fine grid around the best setting."),
    "every": Parameter(False, ["boolean"],
        "bool: score every setting on all rows, without pruning."),
    "refit": Parameter(True, ["boolean"],
        "bool: train a model on all rows with the best setting."),
    "nu": Parameter(0.5, [Interval(Real, 0.0, 1.0, closed="right")],
        "float: in (0, 1]; upper bound on the fraction of margin errors and lower bound on the "
        "fraction of support vectors."),
    "epsilon": Parameter(0.1, [FROM_0], "float: errors up to epsilon cost nothing."),
    "kernel": Parameter(DEFAULT, [StrOptions(set(KERNELS)), callable],
        f"{{{', '.join(map(repr, KERNELS))}}} or callable: kernel; a callable "
        "computes the kernel matrix of all training rows."),
    "degree": Parameter(3, [at_least(0)], f"int: degree of {users_of('degree')}."),
    "gamma": Parameter("scale", [GammaOptions(), FROM_0],
        f"{{'scale', 'auto', 'F/median'}} or float: gamma of {users_of('gamma')}; 'scale' is "
        "1 / (n_features * X.var()), 'auto' is 1 / n_features. 'F/median', such as '2/median', is "
        "the number F divided by the median of |u-v|^2 (rbf), |u-v|_1 (laplacian) or |u-v| "
        "(exponential) over the pairs of 256 rows."),
    "feature_weights": Parameter(None, ["array-like", StrOptions({"learn"}), None],
        "array of shape (n_features,), 'learn' or None: factors of the features, for kernels of a "
        "distance. 'learn' finds them from the slopes of decision values and chooses by held-out "
        "rows; model_.scaling.weights has the result."),
    "coef0": Parameter(0.0, [Interval(Real, None, None, closed="neither")],
        f"float: coef0 of {users_of('coef0')}."),
    "shrinking": Parameter(True, ["boolean"], "bool: ignored; for compatibility."),
    "probability": Parameter(False, ["boolean", Hidden(StrOptions({"deprecated"}))],
        "bool: fit probabilities for predict_proba, by 5-fold cross validation."),
    "tol": Parameter(1e-3, [ABOVE_0], "float: largest violation of the optimality conditions."),
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
    "levels": Parameter(None, [at_least(0), None],
        "int or None: number of levels of clusters; None chooses it by the number of rows."),
    "early": Parameter(False, ["boolean"],
        "bool: train and predict with the clusters of one level only."),
    "early_level": Parameter(None, [at_least(1), StrOptions({"auto"}), None],
        "int, 'auto' or None: level of the early model. If early is False, it is kept beside the "
        "exact model."),
    "overlap": Parameter(None, [Interval(Real, 1, 2, closed="both"), None],
        "float or None: average number of clusters of a row at the early level, 1 to 2."),
    "gap": Parameter(None, [ABOVE_0, None],
        "float or None: stop at this duality gap relative to the objective, instead of tol."),
    "time_limit": Parameter(None, [FROM_0, None],
        "float or None: stop after this many seconds and keep the current model."),
    "checkpoint": Parameter(None, [str, os.PathLike, None],
        "str or None: folder of the state of a long fit. An existing checkpoint is resumed, and "
        "removed when the fit ends."),
    "warm_start": Parameter(False, ["boolean"],
        "bool: start from the previous fit if its rows are among the new ones."),
    "threads": Parameter(None, [at_least(1), None],
        "int or None: number of threads. None is the number of usable cores, limited by "
        "OMP_NUM_THREADS, threadpoolctl and joblib, and 1 for small work."),
    "memory": Parameter(None, [ABOVE_0, None],
        "float or None: megabytes for caches and copies; None is half of the machine's memory, at "
        "most 8000."),
}
# fmt: on

GROUPS = {
    "KERNEL": "kernel degree gamma coef0",
    "SEARCHED_KERNEL": "kernel degree coef0",  # the search sets gamma
    "SOLVING": "tol cache_size verbose max_iter",
    "CLASSES": "probability class_weight decision_function_shape break_ties random_state",
    "CLUSTERS": "levels early early_level overlap",
    "LIMITS": "gap time_limit checkpoint warm_start",
    "MACHINE": "threads memory",
    "SEARCH": "Cs gammas cv refine every refit",
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
        cls.__doc__ = with_section(cls.__doc__, "parameters", section)
        return cls

    return decorate


def _described(name: str, parameter: Parameter) -> str:
    kind, _, text = parameter.meaning.partition(": ")
    description = "\n    ".join(textwrap.wrap(text[0].upper() + text[1:], 88))
    return f"{name} : {kind}, default={parameter.default!r}\n    {description}"


def kernel_type(kernel: object) -> KernelType | None:
    """Return the type of a kernel, given by name or as a callable; None if it is unknown."""
    if callable(kernel):
        return PRECOMPUTED
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


def train_options(
    params: dict[str, Any], svm_type: str, gamma: float, **others: Any
) -> dict[str, Any]:
    """Convert parameters of an estimator to training options."""
    kernel = kernel_type(params["kernel"])
    assert kernel is not None  # scikit-learn has validated it
    same = ("nu", "epsilon", "degree", "coef0", "levels", "early", "early_level", "overlap", "gap")
    options = {name: params[name] for name in same if name in params}
    memory = params["memory"]
    options |= {
        "svm_type": svm_type,
        "kernel": kernel.name,
        "gamma": float(gamma),
        "max_iterations": max(params["max_iter"], 1) if params["max_iter"] >= 0 else -1,
        "cache_mb": None if memory is None else float(np.ceil(memory)),
    }
    if "C" in params:
        options["C"] = min(float(params["C"]), MAX_C)
    return options | others
