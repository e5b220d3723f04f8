"""scikit-learn's five estimators replaced by ours, for code that is not to be changed.

Only the names in `sklearn.svm` are replaced: what was imported from there before stays, and old
pickles are read as what they are.
"""

from __future__ import annotations

import sys

import sklearn.svm
from sklearn.utils._param_validation import InvalidParameterError

from dcsvm.sklearn import classification, one_class, regression
from dcsvm.sklearn.theirs import THEIRS


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
            if self._has_own():
                raise
            try:
                self._leave(X, y, sample_weight, error)
            except ValueError:
                raise error from None
        return self

    def _has_own(self) -> bool:
        """Whether parameters are set that scikit-learn does not have."""
        theirs_have, defaults = THEIRS[self._svm_type]().get_params(), type(self)().get_params()
        given = self.get_params(deep=False)
        return any(given[name] != defaults[name] for name in set(defaults) - set(theirs_have))


class SVC(FallingBack, classification.SVC):
    __doc__ = classification.SVC.__doc__


class NuSVC(FallingBack, classification.NuSVC):
    __doc__ = classification.NuSVC.__doc__


class SVR(FallingBack, regression.SVR):
    __doc__ = regression.SVR.__doc__


class NuSVR(FallingBack, regression.NuSVR):
    __doc__ = regression.NuSVR.__doc__


class OneClassSVM(FallingBack, one_class.OneClassSVM):
    __doc__ = one_class.OneClassSVM.__doc__


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
    for own in THEIRS.values():
        setattr(sklearn.svm, own.__name__, own)
