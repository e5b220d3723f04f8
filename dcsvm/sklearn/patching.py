"""scikit-learn's five estimators replaced by ours, for code that is not to be changed.

Only the names in `sklearn.svm` are replaced: what was imported from there before stays, and old
pickles are read as what they are.
"""

from __future__ import annotations

import sys

import sklearn.svm
from sklearn.utils._param_validation import InvalidParameterError

from dcsvm.sklearn.estimators import OURS
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
