"""A pytest plugin: scikit-learn's own tests of its SVM run against ours.

The classes are replaced before a test module is imported. Tests of EXPECTED_FAILURES have to fail,
with a reason; an entry that fits no test is an error.
"""
import sklearn.svm
from dcsvm.sklearn import classes
for name in ("SVC","NuSVC","SVR","NuSVR","OneClassSVM"):
    setattr(sklearn.svm, name, getattr(classes, name))
