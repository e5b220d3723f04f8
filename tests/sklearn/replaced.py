"""A pytest plugin that runs scikit-learn's own tests of its SVM against ours.

The classes are replaced before a test module is imported. The tests of `expected_failures.py` must
fail; an entry that fits no test is an error.
"""

import pytest
import sklearn.svm
from expected_failures import EXPECTED_FAILURES

from dcsvm.sklearn import classes

for _name in ("SVC", "NuSVC", "SVR", "NuSVR", "OneClassSVM"):
    setattr(sklearn.svm, _name, getattr(classes, _name))


def pytest_collection_modifyitems(items):
    unmatched = dict(EXPECTED_FAILURES)
    for item in items:
        name = f"{item.path.name}::{item.name}"
        if name in EXPECTED_FAILURES:
            reason = EXPECTED_FAILURES[name]
            item.add_marker(pytest.mark.xfail(reason=reason, strict=True))
            unmatched.pop(name, None)
    if unmatched:
        raise pytest.UsageError(f"expected failures that fit no test: {sorted(unmatched)}")
