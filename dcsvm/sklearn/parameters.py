"""The parameters of the estimators: what each may be, what it means, and the options of training
that they stand for."""

from __future__ import annotations

import inspect
import os
import textwrap
from numbers import Integral, Real

import numpy as np
from sklearn.utils._param_validation import Hidden, Interval, StrOptions

KERNELS = {
    "linear": "linear",
    "poly": "polynomial",
    "rbf": "rbf",
    "sigmoid": "sigmoid",
    "precomputed": "precomputed",
}
LARGEST_C = 1e30  # what C=inf is: a solution that needs more is lost in rounding

CONSTRAINTS: dict[str, list] = {
    "C": [Interval(Real, 0.0, None, closed="right")],
    "Cs": [Interval(Integral, 2, None, closed="left"), "array-like"],
    "gammas": [Interval(Integral, 2, None, closed="left"), "array-like"],
    "epsilons": ["array-like"],
    "cv": ["cv_object"],
    "refine": ["boolean"],
    "every": ["boolean"],
    "refit": ["boolean"],
    "nu": [Interval(Real, 0.0, 1.0, closed="right")],
    "epsilon": [Interval(Real, 0.0, None, closed="left")],
    "kernel": [StrOptions(set(KERNELS)), callable],
    "degree": [Interval(Integral, 0, None, closed="left")],
    "gamma": [StrOptions({"scale", "auto"}), Interval(Real, 0.0, None, closed="left")],
    "coef0": [Interval(Real, None, None, closed="neither")],
    "shrinking": ["boolean"],
    "probability": ["boolean", Hidden(StrOptions({"deprecated"}))],
    "tol": [Interval(Real, 0.0, None, closed="neither")],
    "cache_size": [Interval(Real, 0, None, closed="neither")],
    "class_weight": [StrOptions({"balanced"}), dict, None],
    "verbose": ["verbose"],
    "max_iter": [Interval(Integral, -1, None, closed="left")],
    "decision_function_shape": [StrOptions({"ovr", "ovo"})],
    "break_ties": ["boolean"],
    "random_state": ["random_state"],
    "levels": [Interval(Integral, 0, None, closed="left"), None],
    "early": ["boolean"],
    "early_level": [Interval(Integral, 1, None, closed="left"), StrOptions({"auto"}), None],
    "overlap": [Interval(Real, 1, 2, closed="both"), None],
    "gap": [Interval(Real, 0.0, None, closed="neither"), None],
    "time_limit": [Interval(Real, 0.0, None, closed="left"), None],
    "checkpoint": [str, os.PathLike, None],
    "warm_start": ["boolean"],
    "threads": [Interval(Integral, 1, None, closed="left"), None],
    "memory": [Interval(Real, 0.0, None, closed="neither"), None],
}

MEANINGS = {
    "C": "float: cost of an error; inf is a hard margin.",
    "Cs": "int or array: the C to try; a number is of values from 2^-5 to 2^15, evenly in the\n"
    "exponent.",
    "gammas": "int or array: the gamma to try; a number is of values from 2^-15 to 2^3, evenly in\n"
    "the exponent. Kernels that have no gamma make nothing of it.",
    "epsilons": "array: the epsilon to try.",
    "cv": "int, splitter, iterable of pairs of rows (train, test) or None: a number of folds, of\n"
    "classifiers stratified; None is 5. Test sets have no row in common, and all others train.",
    "refine": "bool: then try a fine grid around the best setting.",
    "every": "bool: score every setting on all rows, those too that cannot win any more.",
    "refit": "bool: train a model of all rows with the best setting.",
    "nu": "float: above 0, at most 1: bounds the part of rows that are errors from above, that of\n"
    "support vectors from below.",
    "epsilon": "float: errors up to it cost nothing.",
    "kernel": "{'linear', 'poly', 'rbf', 'sigmoid', 'precomputed'} or callable: of a callable the\n"
    "matrix of all training rows is computed.",
    "degree": "int: of the polynomial kernel.",
    "gamma": "{'scale', 'auto'} or float: of rbf, poly and sigmoid; 'scale' is\n"
    "1 / (n_features * X.var()), 'auto' 1 / n_features.",
    "coef0": "float: of the polynomial and the sigmoid kernel.",
    "shrinking": "bool: taken, and changes nothing.",
    "probability": "bool: fit what predict_proba needs, from five folds.",
    "tol": "float: largest violation of the optimality conditions.",
    "cache_size": "float: taken, and changes nothing; see memory.",
    "class_weight": "dict, 'balanced' or None: factors of C of the classes; of NuSVC of the\n"
    "weights of their rows.",
    "verbose": "bool: print what is done.",
    "max_iter": "int: stop after about so many coordinate updates; -1 is no limit.",
    "decision_function_shape": "{'ovr', 'ovo'}: a column for each class, or for each pair.",
    "break_ties": "bool: break ties of votes by the 'ovr' decision function.",
    "random_state": "int, RandomState or None: of the folds of probabilities, and of those of a\n"
    "search where cv is a number.",
    "levels": "int or None: levels of clusters; None lets the number of rows decide.",
    "early": "bool: train and predict with the clusters of one level only.",
    "early_level": "int, 'auto' or None: that level; it is kept beside the exact model\n"
    "where early is False.",
    "overlap": "float or None: clusters of the early level that a row is in on average, 1 to 2.",
    "gap": "float or None: stop at this duality gap relative to the objective, instead of tol.",
    "time_limit": "float or None: seconds after which the model is what there is by then.",
    "checkpoint": "str or None: folder that the state of a long fit is kept in; fit goes on from\n"
    "there where it exists, and removes it when it is done.",
    "warm_start": "bool: begin with the last fit, where its rows are among those given.",
    "threads": "int or None: None is the cores this process may use, or what OMP_NUM_THREADS,\n"
    "threadpoolctl or joblib leave it, and one for small work.",
    "memory": "float or None: megabytes for caches and copies; None is half of the machine's, at\n"
    "most 8000.",
}  # fmt: skip


def documented(cls: type) -> type:
    """Add the parameters of its constructor to the docstring of an estimator, and their
    constraints."""
    lines = []
    for name, parameter in list(inspect.signature(cls.__init__).parameters.items())[1:]:
        meaning = textwrap.indent(MEANINGS[name], "    ")
        lines.append(f"{name} : default={parameter.default!r}\n{meaning}")
    listed = textwrap.indent("\n".join(lines), "    ")
    cls.__doc__ = cls.__doc__.replace("    {parameters}", listed)
    names = inspect.signature(cls.__init__).parameters
    cls._parameter_constraints = {name: CONSTRAINTS[name] for name in names if name != "self"}
    return cls


def train_options(params: dict, svm_type: str, gamma: float, **others) -> dict:
    """The options of training that parameters of an estimator stand for."""
    kernel = params["kernel"]
    same = ("nu", "epsilon", "degree", "coef0", "levels", "early", "early_level", "overlap", "gap")
    found = {name: params[name] for name in same if name in params}
    memory = params["memory"]
    found |= {
        "svm_type": svm_type,
        "kernel": "precomputed" if callable(kernel) else KERNELS[kernel],
        "gamma": float(gamma),
        "max_iterations": max(params["max_iter"], 1) if params["max_iter"] >= 0 else -1,
        "cache_mb": None if memory is None else float(np.ceil(memory)),
    }
    if "C" in params:
        found["C"] = min(float(params["C"]), LARGEST_C)
    return found | others
