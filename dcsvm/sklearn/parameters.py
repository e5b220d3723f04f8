"""The parameters of the estimators and their training options.

A parameter that is an option of dcsvm has the option's text, default and rule. The others follow
scikit-learn.
"""

import os
import textwrap
from collections.abc import Callable
from dataclasses import dataclass, make_dataclass
from inspect import cleandoc
from numbers import Integral, Real
from typing import Any

import numpy as np
from sklearn.utils._param_validation import HasMethods, Hidden, Interval, Options, StrOptions

from dcsvm.problem.options import DataOptions, SearchOptions, TrainOptions

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
