"""Support vector regression: a linear, a polynomial and an rbf kernel on a noisy sine.

With scikit-learn alone:  python examples/sklearn/regression.py
With dcsvm's solver:      python -m dcsvm.sklearn examples/sklearn/regression.py
"""

import numpy as np
from sklearn.metrics import max_error, mean_absolute_error
from sklearn.svm import SVR

random = np.random.default_rng(3)
X = np.sort(5 * random.random((120, 1)), axis=0)
y = np.sin(X).ravel()
y[::5] += 1.5 * (random.random(24) - 0.5)  # every fifth target is disturbed

X_test = np.linspace(0.1, 4.9, 97).reshape(-1, 1)
y_test = np.sin(X_test).ravel()

models = {
    "linear": SVR(kernel="linear", C=100),
    "poly": SVR(kernel="poly", C=1, degree=3, gamma="auto", coef0=1),
    "rbf": SVR(kernel="rbf", C=100, gamma=0.1, epsilon=0.1),
}
print("kernel    R^2    mean error    largest error")
for name, model in models.items():
    predicted = model.fit(X, y).predict(X_test)
    mean, largest = mean_absolute_error(y_test, predicted), max_error(y_test, predicted)
    print(f"{name:7}{model.score(X_test, y_test):6.3f}{mean:14.3f}{largest:17.3f}")
