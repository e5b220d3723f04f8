"""Load estimators from model files and from scikit-learn's estimators, and patch sklearn.svm."""

import os
import sys
from typing import Any

import numpy as np
import sklearn.svm
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator
from sklearn.utils._param_validation import InvalidParameterError
from sklearn.utils.validation import check_is_fitted

from dcsvm.model.reader import load_model
from dcsvm.sklearn.estimator import Estimator
from dcsvm.sklearn.estimators import OURS
from dcsvm.sklearn.fitted import THEIRS, is_of_median, lacks_kernel
from dcsvm.sklearn.rows import Input


def load(path: str | os.PathLike[str]) -> Estimator:
    """Load a model file of dcsvm or LIBSVM as a fitted estimator.

    Parameters
    ----------
    path : path of the file
        The range file beside it scales rows if the model was trained with `--scale auto`.

    Returns
    -------
    SVC, NuSVC, SVR, NuSVR or OneClassSVM
        The fitted estimator. Model files do not store C, nu and weights. n_features_in_ is the
        number of features up to the last one of the support vectors. Integer labels become int64.

    Raises
    ------
    dcsvm.ModelError
        For an invalid file.
    """
    model = load_model(path)
    kernel = model.kernel
    estimator = OURS[model.svm_type]()
    estimator.set_params(kernel=kernel.type.short_name)
    if not kernel.is_precomputed:
        estimator.set_params(gamma=kernel.gamma, coef0=kernel.coef0, degree=kernel.degree)
    state: dict[str, Any] = {"_gamma": kernel.gamma, "fit_status_": 0, "_takes_sparse": True}
    if model.is_classifier:
        labels = np.sort(model.labels)
        is_integer = labels.dtype.kind == "f" and np.all(labels == np.round(labels))
        classes = labels.astype(np.int64) if is_integer else labels
        state |= {"classes_": classes, "class_weight_": np.ones(len(classes))}
        estimator.set_params(probability=model.probability is not None)
        model = model.in_label_order(labels)
    rows = model.part().rows
    n_features = rows.n_features
    if model.table is not None:
        state |= _names_of_columns(model.table)
    elif not model.is_scaled:  # rows to be scaled may have features without a range
        state["n_features_in_"] = n_features
    if model.exact is None:
        estimator.set_params(early=True)
    estimator.__dict__.update(state)
    n_rows = n_features if kernel.is_precomputed else rows.n_samples
    estimator._keep(model, (n_rows, n_features))  # noqa: SLF001  not for users
    return estimator


def _names_of_columns(table: Any) -> dict[str, Any]:
    """Return the attributes of the columns that a table encodes."""
    if table.is_of_matrix:
        return {"n_features_in_": table.n_columns_of_matrix}
    names = np.array([column.name for column in table.columns], dtype=object)
    return {"n_features_in_": len(names), "feature_names_in_": names}


def from_sklearn(estimator: BaseEstimator) -> Estimator:
    """Convert a fitted estimator of scikit-learn.

    Parameters
    ----------
    estimator : SVC, NuSVC, SVR, NuSVR or OneClassSVM of sklearn.svm
        The estimator, fitted.

    Returns
    -------
    object
        A fitted estimator of dcsvm with the same decision function.

    Raises
    ------
    TypeError
        For other estimators.
    NotFittedError
        If it is not fitted.
    ValueError
        If values of the support vectors exceed the range of float32.
    """
    svm_type = next((key for key, kind in THEIRS.items() if isinstance(estimator, kind)), None)
    if svm_type is None:
        names = ", ".join(kind.__name__ for kind in THEIRS.values())
        raise TypeError(f"expected one of scikit-learn's {names}, not {type(estimator)}")
    check_is_fitted(estimator)
    params = estimator.get_params(deep=False)
    if params.get("probability") == "deprecated":
        params["probability"] = False
    fitted = OURS[svm_type]().set_params(**params)
    fitted._take_over(estimator)  # noqa: SLF001  not for users
    if fitted.model_ is None:
        raise ValueError("the support vectors do not fit float32")
    return fitted


def fit_or_fall_back(
    self: Estimator, X: Input, y: ArrayLike | None = None, sample_weight: ArrayLike | None = None
) -> Estimator:
    """Fit the model as in the base class, or by scikit-learn's solver after a ValueError.

    Invalid parameters remain errors. If a parameter is set that only dcsvm has, rejected input
    remains an error, too. The reason is logged (dcsvm.sklearn, level INFO).
    """
    try:
        return OURS[self._svm_type].fit(self, X, y, sample_weight=sample_weight)
    except InvalidParameterError:
        raise
    except ValueError as error:
        shared, defaults = THEIRS[self._svm_type]().get_params(), type(self)().get_params()
        own = {name: default for name, default in defaults.items() if name not in shared}
        # what scikit-learn lacks cannot be left to it
        if any(getattr(self, name) != default for name, default in own.items()):
            raise
        if is_of_median(getattr(self, "gamma", None)) or lacks_kernel(self.kernel):
            raise
        try:
            self._fall_back((X, y, sample_weight), error)
        except ValueError:
            raise error from None
    return self


PATCHED = {
    kind.__name__: type(
        kind.__name__,
        (kind,),
        {"__module__": __name__, "__doc__": kind.__doc__, "fit": fit_or_fall_back},
    )
    for kind in OURS.values()
}
globals().update(PATCHED)  # unpickling finds the classes here


def patch() -> None:
    """Replace the five estimators in sklearn.svm, with a message on standard error.

    Names that are already imported from sklearn.svm do not change.
    """
    if sklearn.svm.SVC is PATCHED["SVC"]:
        return
    for name, ours in PATCHED.items():
        setattr(sklearn.svm, name, ours)
    print(
        f"dcsvm: {', '.join(PATCHED)} of scikit-learn {sklearn.__version__} replaced by dcsvm",
        file=sys.stderr,
    )


def unpatch() -> None:
    """Restore scikit-learn's own estimators."""
    for kind in THEIRS.values():
        setattr(sklearn.svm, kind.__name__, kind)
