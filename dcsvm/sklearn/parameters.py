"""The parameters of the estimators, each written once: its default, what it may be, what it means;
and the options of training that they stand for."""

from __future__ import annotations

import os
import textwrap
from collections.abc import Callable
from dataclasses import dataclass, make_dataclass
from numbers import Integral, Real
from typing import Any

import numpy as np
from sklearn.utils._param_validation import Hidden, Interval, StrOptions

from dcsvm.kernel.kernels import DEFAULT, KERNEL_TYPES, PRECOMPUTED, KernelType, users_of

KERNELS = {one.short_name: one for one in KERNEL_TYPES}  # by scikit-learn's names
LARGEST_C = 1e30  # what C=inf is: a solution that needs more is lost in rounding


@dataclass(frozen=True)
class Parameter:
    """Of an estimator: its default, what scikit-learn's validation lets it be, what it means."""

    default: Any
    constraints: list
    meaning: str


ABOVE_0 = Interval(Real, 0.0, None, closed="neither")
FROM_0 = Interval(Real, 0.0, None, closed="left")


def at_least(n: int) -> Interval:
    return Interval(Integral, n, None, closed="left")


# fmt: off
PARAMETERS = {  # default, constraints, meaning
    "C": Parameter(1.0, [Interval(Real, 0.0, None, closed="right")],
        "float: cost of an error; inf is a hard margin."),
    "Cs": Parameter(11, [at_least(2), "array-like"],
        "int or array: the C to try; a number is of values from 2^-5 to 2^15, evenly in the "
        "exponent."),
    "gammas": Parameter(10, [at_least(2), "array-like"],
        "int or array: the gamma to try; a number is of values from 2^-15 to 2^3, evenly in the "
        "exponent. Kernels that have no gamma make nothing of it."),
    "epsilons": Parameter((0.1,), ["array-like"], "array: the epsilon to try."),
    "cv": Parameter(None, ["cv_object"],
        "int, splitter, iterable of pairs of rows (train, test) or None: a number of folds, of "
        "classifiers stratified; None is 5. Test sets have no row in common, and all others "
        "train."),
    "refine": Parameter(False, ["boolean"], "bool: then try a fine grid around the best setting."),
    "every": Parameter(False, ["boolean"],
        "bool: score every setting on all rows, those too that cannot win any more."),
    "refit": Parameter(True, ["boolean"], "bool: train a model of all rows with the best setting."),
    "nu": Parameter(0.5, [Interval(Real, 0.0, 1.0, closed="right")],
        "float: above 0, at most 1: bounds the part of rows that are errors from above, that of "
        "support vectors from below."),
    "epsilon": Parameter(0.1, [FROM_0], "float: errors up to it cost nothing."),
    "kernel": Parameter(DEFAULT, [StrOptions(set(KERNELS)), callable],
        f"{{{', '.join(map(repr, KERNELS))}}} or callable: of a callable the matrix of all "
        "training rows is computed."),
    "degree": Parameter(3, [at_least(0)], f"int: of {users_of('degree')}."),
    "gamma": Parameter("scale", [StrOptions({"scale", "auto"}), FROM_0],
        f"{{'scale', 'auto'}} or float: of {users_of('gamma')}; 'scale' is 1 / (n_features * "
        "X.var()), 'auto' 1 / n_features."),
    "coef0": Parameter(0.0, [Interval(Real, None, None, closed="neither")],
        f"float: of {users_of('coef0')}."),
    "shrinking": Parameter(True, ["boolean"], "bool: taken, and changes nothing."),
    "probability": Parameter(False, ["boolean", Hidden(StrOptions({"deprecated"}))],
        "bool: fit what predict_proba needs, from five folds."),
    "tol": Parameter(1e-3, [ABOVE_0], "float: largest violation of the optimality conditions."),
    "cache_size": Parameter(200, [ABOVE_0], "float: taken, and changes nothing; see memory."),
    "class_weight": Parameter(None, [StrOptions({"balanced"}), dict, None],
        "dict, 'balanced' or None: factors of C of the classes; of NuSVC of the weights of their "
        "rows."),
    "verbose": Parameter(False, ["verbose"], "bool: print what is done."),
    "max_iter": Parameter(-1, [at_least(-1)],
        "int: stop after about so many coordinate updates; -1 is no limit."),
    "decision_function_shape": Parameter("ovr", [StrOptions({"ovr", "ovo"})],
        "{'ovr', 'ovo'}: a column for each class, or for each pair."),
    "break_ties": Parameter(False, ["boolean"],
        "bool: break ties of votes by the 'ovr' decision function."),
    "random_state": Parameter(None, ["random_state"],
        "int, RandomState or None: of the folds of probabilities, and of those of a search where "
        "cv is a number."),
    "levels": Parameter(None, [at_least(0), None],
        "int or None: levels of clusters; None lets the number of rows decide."),
    "early": Parameter(False, ["boolean"],
        "bool: train and predict with the clusters of one level only."),
    "early_level": Parameter(None, [at_least(1), StrOptions({"auto"}), None],
        "int, 'auto' or None: that level; it is kept beside the exact model where early is "
        "False."),
    "overlap": Parameter(None, [Interval(Real, 1, 2, closed="both"), None],
        "float or None: clusters of the early level that a row is in on average, 1 to 2."),
    "gap": Parameter(None, [ABOVE_0, None],
        "float or None: stop at this duality gap relative to the objective, instead of tol."),
    "time_limit": Parameter(None, [FROM_0, None],
        "float or None: seconds after which the model is what there is by then."),
    "checkpoint": Parameter(None, [str, os.PathLike, None],
        "str or None: folder that the state of a long fit is kept in; fit goes on from there "
        "where it exists, and removes it when it is done."),
    "warm_start": Parameter(False, ["boolean"],
        "bool: begin with the last fit, where its rows are among those given."),
    "threads": Parameter(None, [at_least(1), None],
        "int or None: None is the cores this process may use, or what OMP_NUM_THREADS, "
        "threadpoolctl or joblib leave it, and one for small work."),
    "memory": Parameter(None, [ABOVE_0, None],
        "float or None: megabytes for caches and copies; None is half of the machine's, at most "
        "8000."),
}
# fmt: on

GROUPS = {
    "KERNEL": "kernel degree gamma coef0",
    "SEARCHED_KERNEL": "kernel degree coef0",  # whose gamma is sought
    "SOLVING": "tol cache_size verbose max_iter",
    "CLASSES": "probability class_weight decision_function_shape break_ties random_state",
    "CLUSTERS": "levels early early_level overlap",
    "LIMITS": "gap time_limit checkpoint warm_start",
    "MACHINE": "threads memory",
    "SEARCH": "Cs gammas cv refine every refit",
}


def with_parameters(*names: str, **others: Parameter) -> Callable[[type], type]:
    """Give an estimator a constructor with the parameters of these names, or GROUPS of them, and
    with `others`, by keyword; scikit-learn's constraints on them; and their meanings in its
    docstring."""
    listed = [one for name in names for one in GROUPS.get(name, name).split()]
    own = {name: PARAMETERS[name] for name in listed} | others

    def given(cls: type) -> type:
        fields = [(name, Any, one.default) for name, one in own.items()]
        cls.__init__ = make_dataclass(cls.__name__, fields, kw_only=True).__init__
        cls.__init__.__annotations__ = {}
        cls._parameter_constraints = {name: one.constraints for name, one in own.items()}
        listed = "\n".join(_listed(name, one) for name, one in own.items())
        cls.__doc__ = cls.__doc__.replace("    {parameters}", textwrap.indent(listed, "    "))
        return cls

    return given


def _listed(name: str, parameter: Parameter) -> str:
    meaning = "\n    ".join(textwrap.wrap(parameter.meaning, 88))
    return f"{name} : default={parameter.default!r}\n    {meaning}"


def kernel_type(kernel: object) -> KernelType | None:
    """What a parameter `kernel` stands for; None where there is no such kernel."""
    if callable(kernel):
        return PRECOMPUTED
    return KERNELS.get(kernel) if isinstance(kernel, str) else None


def is_linear(kernel: object) -> bool:
    known = kernel_type(kernel)
    return known is not None and known.is_linear


def is_precomputed(kernel: object) -> bool:
    """Whether rows are given as kernel values, not computed from by a callable."""
    return not callable(kernel) and is_of_matrix(kernel)


def is_of_matrix(kernel: object) -> bool:
    known = kernel_type(kernel)
    return known is not None and known.is_precomputed


def train_options(params: dict, svm_type: str, gamma: float, **others) -> dict:
    """The options of training that parameters of an estimator stand for."""
    kernel = params["kernel"]
    same = ("nu", "epsilon", "degree", "coef0", "levels", "early", "early_level", "overlap", "gap")
    found = {name: params[name] for name in same if name in params}
    memory = params["memory"]
    found |= {
        "svm_type": svm_type,
        "kernel": kernel_type(kernel).name,
        "gamma": float(gamma),
        "max_iterations": max(params["max_iter"], 1) if params["max_iter"] >= 0 else -1,
        "cache_mb": None if memory is None else float(np.ceil(memory)),
    }
    if "C" in params:
        found["C"] = min(float(params["C"]), LARGEST_C)
    return found | others
