"""Fitted estimators of model files, and of scikit-learn's own."""

from __future__ import annotations

import os
import sys

import numpy as np
import sklearn.svm
from sklearn.utils._param_validation import InvalidParameterError
from sklearn.utils.validation import check_is_fitted

from dcsvm.model.file import load_model
from dcsvm.model.ordering import with_label_order
from dcsvm.sklearn.estimators import OURS
from dcsvm.sklearn.fitted import ModelRows
from dcsvm.sklearn.theirs import THEIRS, take_over


def load(path: str | os.PathLike[str]):
    """The estimator of a model file, of dcsvm or LIBSVM, ready to predict.

    A file does not say C, nu, weights or how many features there were beyond the last one of its
    support vectors. A model of `--scale auto` scales rows by the range file beside it; its support
    vectors are scaled. Labels that are whole numbers become int64. Raises ModelError.
    """
    model = load_model(path)
    part, kernel = model.exact or model.early, model.kernel
    made = OURS[model.svm_type]()
    made.set_params(kernel=kernel.type.short_name)
    if not kernel.is_precomputed:
        made.set_params(gamma=kernel.gamma, coef0=kernel.coef0, degree=kernel.degree)
    made._gamma, made.fit_status_ = kernel.gamma, 0
    if model.scaling is None:  # else rows may have features that the ranges leave out
        made.n_features_in_ = part.rows.n_features
    if model.is_classifier:
        made._labels = np.sort(model.labels)
        whole = np.all(made._labels == np.round(made._labels))
        made.classes_ = made._labels.astype(np.int64) if whole else made._labels
        made.class_weight_ = np.ones(len(made.classes_))
        made.set_params(probability=model.probability is not None)
        model = with_label_order(model, made._labels)
        part = model.exact or model.early
    if model.exact is None:
        made.set_params(early=True)
    made._takes_sparse = True
    n_features = part.rows.n_features
    n_rows = n_features if kernel.is_precomputed else part.rows.n_samples
    made._keep(model, None, ModelRows(part, (n_rows, n_features)))
    return made


def from_sklearn(estimator):
    """The estimator of dcsvm with the decision function of a fitted one of scikit-learn.

    Raises TypeError for what is none of the five, NotFittedError, and ValueError for support
    vectors that do not fit float32.
    """
    svm_type = next((one for one, kind in THEIRS.items() if isinstance(estimator, kind)), None)
    if svm_type is None:
        names = ", ".join(kind.__name__ for kind in THEIRS.values())
        raise TypeError(f"expected one of scikit-learn's {names}, not {type(estimator)}")
    check_is_fitted(estimator)
    params = estimator.get_params(deep=False)
    if params.get("probability") == "deprecated":
        params["probability"] = False
    made = OURS[svm_type]().set_params(**params)
    take_over(made, estimator)
    if made.model_ is None:
        raise ValueError("the support vectors do not fit float32")
    return made


class FallingBack:
    """A fit that ours refuses and scikit-learn does not is left to it; what it found is taken over.
    The reason is logged (dcsvm.sklearn, level INFO)."""

    def fit(self, X, y=None, sample_weight=None):
        """Fit the model, as the estimator that this one is made of."""
        try:
            return super().fit(X, y, sample_weight=sample_weight)
        except InvalidParameterError:
            raise
        except ValueError as error:
            theirs, defaults = THEIRS[self._svm_type]().get_params(), type(self)().get_params()
            own = {name: value for name, value in defaults.items() if name not in theirs}
            # parameters that scikit-learn does not have are set
            if any(getattr(self, name) != default for name, default in own.items()):
                raise
            try:
                self._leave(X, y, sample_weight, error)
            except ValueError:
                raise error from None
        return self


def patched(kind: type) -> type:
    own = {"__module__": __name__, "__doc__": kind.__doc__}
    return type(kind.__name__, (FallingBack, kind), own)


PATCHED = {kind.__name__: patched(kind) for kind in OURS.values()}
globals().update(PATCHED)  # where pickles look for them


def patch() -> None:
    """Replace the five estimators in sklearn.svm, and say so on standard error. To be called before
    they are imported from there."""
    if sklearn.svm.SVC is PATCHED["SVC"]:
        return
    for name, ours in PATCHED.items():
        setattr(sklearn.svm, name, ours)
    print(
        f"dcsvm: {', '.join(PATCHED)} of scikit-learn {sklearn.__version__} are those of dcsvm now",
        file=sys.stderr,
    )


def unpatch() -> None:
    """Put scikit-learn's own estimators back."""
    for own in THEIRS.values():
        setattr(sklearn.svm, own.__name__, own)
