"""scikit-learn's SVM estimators, solved by dcsvm: needs the extra [sklearn].

from dcsvm.sklearn import SVC

SVC(C=32, gamma=2).fit(X, y).predict(X_test)

dcsvm.sklearn.patch()               # from here on `from sklearn.svm import SVC` gives ours
python -m dcsvm.sklearn script.py   # for a script that is not to be changed
"""

from __future__ import annotations

try:
    from sklearn.utils.validation import validate_data as _since_1_6  # noqa: F401
except ImportError as _error:
    raise ImportError(
        "dcsvm.sklearn needs scikit-learn 1.6 or later: pip install 'dcsvm[sklearn]'"
    ) from _error

from dcsvm.sklearn.estimators import SVC, SVR, NuSVC, NuSVR, OneClassSVM
from dcsvm.sklearn.loading import from_sklearn, load, patch, unpatch
from dcsvm.sklearn.search import SVCCV, SVRCV

__all__ = [
    "SVC", "NuSVC", "SVR", "NuSVR", "OneClassSVM", "SVCCV", "SVRCV",
    "from_sklearn", "load", "patch", "unpatch",
]  # fmt: skip
