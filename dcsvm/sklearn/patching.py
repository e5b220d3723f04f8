"""scikit-learn's five estimators replaced by ours, for code that is not to be changed.

Only the names in `sklearn.svm` are replaced: what was imported from there before stays, and old
pickles are read as what they are.
"""

from __future__ import annotations

import sys

import sklearn.svm
from sklearn.svm import _classes as theirs

from dcsvm.sklearn import classes
from dcsvm.sklearn.estimator import log
from dcsvm.sklearn.loading import from_sklearn


class FallingBack:
    """A fit that ours refuses and scikit-learn does not is left to it; what it found is taken over.
    The reason is logged (dcsvm.sklearn, level INFO)."""

    def fit(self, X, y=None, sample_weight=None):
        """Fit the model, as the estimator that this one is made of."""
        try:
            return super().fit(X, y, sample_weight=sample_weight)
        except ValueError as error:
            reason = error
        made = getattr(theirs, type(self).__name__)()
        params = self.get_params(deep=False)
        made.set_params(**{name: params[name] for name in made.get_params() if name in params})
        made.fit(X, y, sample_weight=sample_weight)
        self.__dict__.update(vars(from_sklearn(made)) | params)
        log.info("%s: fitted by scikit-learn, %s", type(self).__name__, reason)
        return self


class SVC(FallingBack, classes.SVC):
    __doc__ = classes.SVC.__doc__


class NuSVC(FallingBack, classes.NuSVC):
    __doc__ = classes.NuSVC.__doc__


class SVR(FallingBack, classes.SVR):
    __doc__ = classes.SVR.__doc__


class NuSVR(FallingBack, classes.NuSVR):
    __doc__ = classes.NuSVR.__doc__


class OneClassSVM(FallingBack, classes.OneClassSVM):
    __doc__ = classes.OneClassSVM.__doc__


OURS = {one.__name__: one for one in (SVC, NuSVC, SVR, NuSVR, OneClassSVM)}


def patch() -> None:
    """Replace the five estimators in sklearn.svm, and say so on standard error. To be called before
    they are imported from there."""
    if sklearn.svm.SVC is SVC:
        return
    for name, ours in OURS.items():
        setattr(sklearn.svm, name, ours)
    print(
        f"dcsvm: {', '.join(OURS)} of scikit-learn {sklearn.__version__} are those of dcsvm now",
        file=sys.stderr,
    )


def unpatch() -> None:
    """Put scikit-learn's own estimators back."""
    for name in OURS:
        setattr(sklearn.svm, name, getattr(theirs, name))
