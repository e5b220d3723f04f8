"""The five estimators, and the table of the parameters of all estimators.

A parameter that is an option of dcsvm has the option's text, default and rule. The others follow
scikit-learn. Classifiers have the labels of a fit, votes, scores and probabilities.
"""

from __future__ import annotations

import os
import textwrap
from collections.abc import Callable
from dataclasses import make_dataclass
from inspect import cleandoc
from numbers import Integral, Real
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import ClassifierMixin, OutlierMixin, RegressorMixin
from sklearn.exceptions import NotFittedError
from sklearn.utils._param_validation import HasMethods, Hidden, Interval, Options, StrOptions
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import _num_samples

from dcsvm.problem.options import DataOptions, SearchOptions, TrainOptions
from dcsvm.sklearn.estimator import Estimator
from dcsvm.sklearn.fitted import KERNELS, SAME_AS_OPTIONS, THEIRS, has_probability
from dcsvm.sklearn.rows import ONE_CLASS, Input, Weights, encoded_classes, in_known_frame


class Parameter(NamedTuple):
    """Parameter of an estimator: default, scikit-learn's constraints, "type: description"."""

    default: Any
    constraints: list[Any]
    meaning: str


class OptionRule(Options):
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
        values = self.table.words(self.name)
        return values if self.or_none else values.removesuffix(" or None")


def shared(table: Any, name: str, *, kind: str = "", more: str = "") -> Parameter:
    """Make the parameter of an option, of another `kind` if given, with `more` words."""
    kind_of_option, _, text = table.text(name).partition(": ")
    default = next(default for option, _, default in table.entries() if option == name)
    meaning = f"{kind or kind_of_option}: {text}{more}"
    return Parameter(default, [OptionRule(table, name)], meaning)


def at_least(n: int) -> Interval:
    """Constrain a parameter to integers of at least n."""
    return Interval(Integral, n, None, closed="left")


def data_option(name: str, kind: str, constraints: list[Any]) -> Parameter:
    """Make a parameter on the data, which has a range of values of its own."""
    return Parameter(None, constraints, shared(DataOptions, name, kind=kind).meaning)


ABOVE_0 = Interval(Real, 0.0, None, closed="neither")
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
    "refit": Parameter(True, ["boolean"],
        "bool: train a model on all rows with the best setting."),
    "kernel": Parameter("rbf", [StrOptions(set(KERNELS)), callable],
        f"{{{', '.join(map(repr, KERNELS))}}} or callable: kernel; a callable "
        "computes the kernel matrix of all training rows."),
    "gamma": Parameter("scale",
        [StrOptions({"scale"}), OptionRule(TrainOptions, "gamma", or_none=False)],
        f"{{'scale', 'auto', 'F/median'}} or float: {GAMMA_WORDS}; 'scale' is "
        "1 / (n_features * X.var()), 'auto' is 1 / n_features, both of scaled rows if there is a "
        "scale. 'F/median', such as '2/median', is the number F divided by the median of the "
        "distance in the kernel's formula."),
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
    "time_limit": Parameter(None, [Interval(Real, 0.0, float("inf"), closed="both"), None],
        "float or None: stop after this many seconds and keep the current model."),
    "checkpoint": Parameter(None, [str, os.PathLike, None],
        "str or None: folder of the state of a long fit. An existing checkpoint is resumed, and "
        "removed when the fit ends."),
    "warm_start": Parameter(False, ["boolean"],
        "bool: start from the previous fit if its rows are among the new ones."),
    "threads": shared(TrainOptions, "threads",
        more="; threadpoolctl and joblib limit the default, too"),
    "memory": shared(TrainOptions, "cache_mb", kind="float or None"),
}
# fmt: on
PARAMETERS |= {name: shared(TrainOptions, name) for name in SAME_AS_OPTIONS}
PARAMETERS |= {name: shared(SearchOptions, name) for name in ("metric", "refine", "every")}

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
        fields = [(name, Any, parameter.default) for name, parameter in parameters.items()]
        cls.__init__ = vars(make_dataclass(cls.__name__, fields, kw_only=True))["__init__"]
        cls.__init__.__annotations__ = {}
        cls._parameter_constraints = {
            name: parameter.constraints for name, parameter in parameters.items()
        }
        section = "\n".join(_described(*item) for item in parameters.items())
        if cls.__doc__ is not None:  # python -OO
            cls.__doc__ = cleandoc(cls.__doc__).replace("{parameters}", section)
        return cls

    return decorate


def _described(name: str, parameter: Parameter) -> str:
    kind, _, text = parameter.meaning.partition(": ")
    sentence = f"{text[0].upper()}{text[1:].removesuffix('.')}."
    description = "\n    ".join(textwrap.wrap(sentence, 88, break_on_hyphens=False))
    return f"{name} : {kind}, default={parameter.default!r}\n    {description}"


def class_scores(values: np.ndarray) -> np.ndarray:
    """Combine decision values (n, k (k - 1) / 2) of pairs to scores (n, k) of classes.

    A score is the number of votes plus s / (3 (|s| + 1)) for the sum s of the decision values. Thus
    the decision values only break ties of votes.
    Pairs with nan do not vote.
    """
    n_pairs = values.shape[1]
    k = int((1 + np.sqrt(1 + 8 * n_pairs)) / 2)
    first, second = np.triu_indices(k, 1)
    finite = np.nan_to_num(values)
    sums, votes = np.zeros((2, len(values), k))
    for pair, (i, j) in enumerate(zip(first, second, strict=True)):
        value = finite[:, pair]
        is_known = ~np.isnan(values[:, pair])
        sums[:, i] += value
        sums[:, j] -= value
        votes[:, i] += is_known & (value >= 0)
        votes[:, j] += is_known & (value < 0)
    return votes + sums / (3 * (np.abs(sums) + 1))


class Classifier(ClassifierMixin, Estimator):
    """Base class of the classifiers. Classes are sorted, as in `classes_`."""

    classes_: np.ndarray
    class_weight_: np.ndarray
    _one_class = ONE_CLASS  # the error if only one class has weight

    def _check_probability(self) -> bool:
        if has_probability(self):
            return True
        raise AttributeError("predict_proba is not available when probability=False")

    @property
    def n_iter_(self) -> np.ndarray:
        """Number of coordinate updates of each pair of classes, int32 (n_pairs,)."""
        return self._iterations

    @property
    def probA_(self) -> np.ndarray:  # noqa: N802  scikit-learn's name
        """A of each pair: 1 / (1 + exp(A f)) is the probability of its first class."""
        return self._probA

    @property
    def probB_(self) -> np.ndarray:  # noqa: N802  scikit-learn's name
        """B of each pair: 0, so that probabilities agree with decision values."""
        return self._probB

    def _targets(self, y: ArrayLike, weights: Weights) -> tuple[np.ndarray, Weights]:
        classes = encoded_classes(y, weights, self.class_weight, self._one_class)
        self.classes_, self.class_weight_, indices = classes
        return indices, weights

    def decision_function(self, X: Input, *, method: str | None = None) -> np.ndarray:
        """Compute decision values.

        Parameters
        ----------
        X : array, data frame or sparse matrix (n, d)
            The rows.
        method : {'exact', 'early'} or None
            Part of the model; None is the exact one, if fitted.

        Returns
        -------
        float64 array
            (n,) for two classes; positive values stand for classes_[1]. For k > 2 classes (n, k),
            or (n, k (k - 1) / 2) if decision_function_shape is 'ovo'; positive values then stand
            for the first class of a pair.
        """
        values = self._values(X, method)
        if len(self.classes_) == 2:
            return -values[:, 0]
        return values if self.decision_function_shape == "ovo" else class_scores(values)

    def predict(self, X: Input, *, method: str | None = None) -> np.ndarray:
        """Predict labels.

        Parameters
        ----------
        X : array, data frame or sparse matrix (n, d)
            The rows.
        method : {'exact', 'early'} or None
            Part of the model; None is the exact one, if fitted.

        Returns
        -------
        array (n,)
            With probability=True the most probable classes, else the classes with most votes. Ties
            go to the first class; with break_ties they go to the highest decision value.
        """
        self._check_is_fitted()
        if self.break_ties and self.decision_function_shape == "ovo":
            raise ValueError("break_ties must be False when decision_function_shape is 'ovo'")
        reference = self._reference
        if self.model_ is None and reference is not None:  # values are beyond float32
            return reference.predict(X)
        return self.classes_[self._values(X, method, self._predicted)]

    def _predicted(self, values: np.ndarray) -> np.ndarray:
        """Return the predicted class indices (n,) for decision values (n, n_pairs)."""
        if len(self.classes_) == 2:
            return (values[:, 0] < 0).astype(np.intp)
        if len(self._probA):
            return self._probabilities(values).argmax(axis=1)
        if self.break_ties:
            return class_scores(values).argmax(axis=1)
        assert self.model_ is not None  # see predict
        return self.model_.most_voted(values)

    @available_if(_check_probability)
    def predict_proba(self, X: Input, *, method: str | None = None) -> np.ndarray:
        """Predict the probabilities of the classes.

        Parameters
        ----------
        X : array, data frame or sparse matrix (n, d)
            The rows.
        method : {'exact', 'early'} or None
            Part of the model; None is the exact one, if fitted.

        Returns
        -------
        float64 array (n, k)
            The probabilities, in the order of classes_. The label that predict returns has the
            highest one.
        """
        self._check_is_fitted()
        if not len(self._probA):
            if self.report_ and "probabilities" in self.report_.missing:
                raise NotFittedError("the fit stopped before the probabilities")
            raise NotFittedError(
                "predict_proba is not available when fitted with probability=False"
            )
        reference = self._reference
        if self.model_ is None and reference is not None:  # values are beyond float32
            return reference.predict_proba(X)
        return self._probabilities(self._values(X, method))

    @available_if(_check_probability)
    def predict_log_proba(self, X: Input, *, method: str | None = None) -> np.ndarray:
        """Compute the logarithms of predict_proba, float64 (n, k)."""
        return np.log(self.predict_proba(X, method=method))

    def _onnx_choice(self) -> dict[str, Any]:
        by = "votes"
        if len(self._probA):
            by = "probabilities"
        elif self.break_ties:
            by = "scores"
        return {"by": by, "has_scores": by == "scores" or self.decision_function_shape == "ovr"}

    def _probabilities(self, values: np.ndarray) -> np.ndarray:
        assert self.model_ is not None  # see predict_proba
        proba = self.model_.probabilities_from(values)
        if proba.shape[1] == 2:  # rounding may lose the sign of a decision value near 0
            proba[:, 0] = np.where(values[:, 0] >= 0, np.maximum(proba[:, 0], ABOVE_HALF),
                                   np.minimum(proba[:, 0], 1 - ABOVE_HALF))  # fmt: skip
            proba[:, 1] = 1 - proba[:, 0]
        return proba


ABOVE_HALF = 0.5 + 2.0**-52


@with_parameters(
    "C", "KERNEL", "DATA", "shrinking", "SOLVING", "CLASSES", "CLUSTERS", "LIMITS", "MACHINE"
)
class SVC(Classifier):
    """C-support vector classification, one-vs-one, with a bias.

    A drop-in replacement for sklearn.svm.SVC, with certified optimality (`violation_`,
    `duality_gap_`). Sample weights count copies of rows, and predict_proba agrees with predict.

    Parameters
    ----------
    {parameters}

    Attributes
    ----------
    model_ : dcsvm.Model
    report_ : dcsvm.TrainReport or None
        None if scikit-learn's solver was used.
    violation_, duality_gap_ : float or None
        Largest KKT violation and duality gap.

    The other attributes are scikit-learn's: support_, support_vectors_, n_support_, dual_coef_,
    intercept_, coef_, classes_, class_weight_, fit_status_, n_iter_, shape_fit_, n_features_in_,
    feature_names_in_, probA_, probB_. With early=True dual_coef_ and intercept_ do not exist; each
    cluster has its own, in model_.early.

    Notes
    -----
    Features are rounded to float32. Up to 1000 rows are solved to a finer tolerance than tol if
    n (k - 1) is at most 5000 for n rows of k classes, unless max_iter, gap, time_limit or
    checkpoint is set. With probability=True and more than two classes predict returns the most
    probable class.
    """

    _svm_type = "c_svc"


@with_parameters("nu", "KERNEL", "DATA", "shrinking", "SOLVING", "CLASSES", "LIMITS", "MACHINE")
class NuSVC(Classifier):
    """Nu-support vector classification, one-vs-one.

    A drop-in replacement for sklearn.svm.NuSVC, but class_weight is supported: it multiplies sample
    weights, and may make nu infeasible. If a pair of classes has no margin, scikit-learn's solver
    is used, which stops early.

    Parameters
    ----------
    {parameters}

    Attributes
    ----------
    As of SVC, without an early model.
    """

    _svm_type = "nu_svc"
    _one_class = (
        "specified nu is infeasible: all samples with positive weights belong to the same class."
    )

    def _targets(self, y: ArrayLike, weights: Weights) -> tuple[np.ndarray, Weights]:
        indices, weights = super()._targets(y, weights)
        if self.class_weight is None or (weights is not None and len(weights) != len(indices)):
            return indices, weights
        return indices, (1.0 if weights is None else weights) * self.class_weight_[indices]


@with_parameters(
    "C", "epsilon", "KERNEL", "DATA", "shrinking", "SOLVING", "CLUSTERS", "LIMITS", "MACHINE"
)
class SVR(RegressorMixin, Estimator):
    """Epsilon-support vector regression.

    A drop-in replacement for sklearn.svm.SVR, with certified optimality (`violation_`,
    `duality_gap_`). Sample weights count copies of rows.

    Parameters
    ----------
    {parameters}

    Attributes
    ----------
    As of SVC, without classes_, class_weight_, probA_ and probB_.
    """

    _svm_type = "epsilon_svr"

    def predict(self, X: Input, *, method: str | None = None) -> np.ndarray:
        """Predict targets.

        Parameters
        ----------
        X : array, data frame or sparse matrix (n, d)
            The rows.
        method : {'exact', 'early'} or None
            Part of the model; None is the exact one, if fitted.

        Returns
        -------
        float64 array (n,)
            The target of each row.
        """
        return self._values(X, method)[:, 0]


@with_parameters("nu", "C", "KERNEL", "DATA", "shrinking", "SOLVING", "LIMITS", "MACHINE")
class NuSVR(RegressorMixin, Estimator):
    """Nu-support vector regression: nu instead of epsilon.

    A drop-in replacement for sklearn.svm.NuSVR.

    Parameters
    ----------
    {parameters}

    Attributes
    ----------
    As of SVR, without an early model.
    """

    _svm_type = "nu_svr"

    def predict(self, X: Input) -> np.ndarray:
        """Predict targets.

        Parameters
        ----------
        X : array, data frame or sparse matrix (n, d)
            The rows.

        Returns
        -------
        float64 array (n,)
            The target of each row.
        """
        return self._values(X, None)[:, 0]


@with_parameters("nu", "KERNEL", "DATA", "shrinking", "SOLVING", "LIMITS", "MACHINE")
class OneClassSVM(OutlierMixin, Estimator):
    """Novelty detection: the support of a distribution.

    A drop-in replacement for sklearn.svm.OneClassSVM.

    Parameters
    ----------
    {parameters}

    Attributes
    ----------
    As of NuSVR, and offset_: decision_function is score_samples minus offset_.
    """

    _svm_type = "one_class"

    def fit(
        self,
        X: Input,
        y: ArrayLike | None = None,  # noqa: ARG002  scikit-learn's signature
        sample_weight: ArrayLike | None = None,
    ) -> Estimator:
        """Fit the model.

        Parameters
        ----------
        X : array, data frame or sparse matrix (n, d), or kernel values (n, n)
            The rows, as for SVC.
        y : object
            Ignored.
        sample_weight : array (n,) or None
            Number of copies of each row; rows of weight 0 or less are ignored.

        Returns
        -------
        OneClassSVM
            This estimator.
        """
        X = in_known_frame(X)
        return super().fit(X, np.ones(_num_samples(X)), sample_weight=sample_weight)

    def decision_function(self, X: Input) -> np.ndarray:
        """Compute decision values.

        Parameters
        ----------
        X : array, data frame or sparse matrix (n, d)
            The rows.

        Returns
        -------
        float64 array (n,)
            The decision values; negative values stand for outliers.
        """
        return self._values(X, None)[:, 0]

    def score_samples(self, X: Input) -> np.ndarray:
        """Compute decision values without the offset.

        Parameters
        ----------
        X : array, data frame or sparse matrix (n, d)
            The rows.

        Returns
        -------
        float64 array (n,)
            The decision values plus offset_.
        """
        return self.decision_function(X) + self.offset_

    def predict(self, X: Input) -> np.ndarray:
        """Predict which rows are outliers.

        Parameters
        ----------
        X : array, data frame or sparse matrix (n, d)
            The rows.

        Returns
        -------
        int array (n,)
            +1 for inliers, -1 for outliers.
        """
        return np.where(self.decision_function(X) >= 0, 1, -1).astype(np.intp)

    @property
    def offset_(self) -> np.ndarray:
        """Offset of decision_function, float64 (1,)."""
        return -self.intercept_


OURS = dict(zip(THEIRS, (SVC, NuSVC, SVR, NuSVR, OneClassSVM), strict=True))
