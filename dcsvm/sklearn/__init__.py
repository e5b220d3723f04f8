"""scikit-learn's SVM estimators with dcsvm's solver; requires the extra [sklearn].

>>> from dcsvm.sklearn import SVC
>>> SVC(C=32, gamma=2).fit(X, y).predict(X_test)

`dcsvm.sklearn.patch()` replaces the estimators of sklearn.svm, `python -m dcsvm.sklearn script.py`
does so for an unchanged script.
"""

try:
    from sklearn.utils.validation import validate_data as _since_1_6  # noqa: F401
except ImportError as _error:
    raise ImportError(
        "dcsvm.sklearn needs scikit-learn 1.6 or later: pip install 'dcsvm[sklearn]'"
    ) from _error

from dcsvm.sklearn.estimators import SVC, SVR, NuSVC, NuSVR, OneClassSVM
from dcsvm.sklearn.loading import from_sklearn, load, patch, unpatch
from dcsvm.sklearn.search import SVCCV, SVRCV, AutoSVC, AutoSVR

__all__ = [
    "SVC", "NuSVC", "SVR", "NuSVR", "OneClassSVM", "SVCCV", "SVRCV", "AutoSVC", "AutoSVR",
    "from_sklearn", "load", "patch", "unpatch",
]  # fmt: skip
