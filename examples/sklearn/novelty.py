"""Detect novelties: a one-class SVM learns two blobs of points and finds points outside them.

With scikit-learn alone:  python examples/sklearn/novelty.py
With dcsvm's solver:      python -m dcsvm.sklearn examples/sklearn/novelty.py
"""

import numpy as np
from sklearn.svm import OneClassSVM

random = np.random.default_rng(7)


def two_blobs(n):
    """Return n points around (2, 2) and n around (-2, -2)."""
    blob = 0.3 * random.standard_normal((2 * n, 2))
    return blob + np.repeat([[2.0, 2.0], [-2.0, -2.0]], n, axis=0)


known = two_blobs(200)
regular = two_blobs(50)
strangers = random.uniform(-4, 4, size=(60, 2))

detector = OneClassSVM(kernel="rbf", nu=0.1, gamma=0.1).fit(known)


def count(rows, label):
    """Count the rows with this predicted label: +1 is known, -1 is new."""
    return np.sum(detector.predict(rows) == label)


print(f"errors of training rows: {count(known, -1)} of {len(known)}")
print(f"errors of regular rows: {count(regular, -1)} of {len(regular)}")
print(f"errors of strangers: {count(strangers, 1)} of {len(strangers)}")

middle, corner = detector.decision_function([[2.0, 2.0], [4.0, -4.0]])
print(f"decision values: {middle:.3f} in a blob, {corner:.3f} far from both")
