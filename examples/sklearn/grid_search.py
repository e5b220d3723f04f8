"""Choose C and gamma by cross validation: tumours from scaled measurements, benign or malignant.

With scikit-learn alone:  python examples/sklearn/grid_search.py
With dcsvm's solver:      python -m dcsvm.sklearn examples/sklearn/grid_search.py
"""

import numpy as np
from sklearn.datasets import load_breast_cancer
from sklearn.metrics import balanced_accuracy_score
from sklearn.model_selection import GridSearchCV, StratifiedKFold, train_test_split
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

data = load_breast_cancer()
labels = data.target_names[data.target]  # the strings "malignant" and "benign"
X_train, X_test, y_train, y_test = train_test_split(
    data.data, labels, test_size=0.3, stratify=labels, random_state=0
)

# each fold fits the scaler again, without the held-out rows
pipeline = Pipeline([("scale", StandardScaler()), ("svm", SVC(class_weight="balanced"))])
grid = {"svm__C": [1, 10, 100], "svm__gamma": [0.001, 0.01, 0.1]}
folds = StratifiedKFold(n_splits=5, shuffle=True, random_state=0)
search = GridSearchCV(pipeline, grid, cv=folds).fit(X_train, y_train)

print("mean accuracy of the folds:")
print("        C  " + "".join(f"  gamma={gamma:<6}" for gamma in grid["svm__gamma"]))
scores = search.cv_results_["mean_test_score"].reshape(len(grid["svm__C"]), -1)
for C, line in zip(grid["svm__C"], scores, strict=True):
    print(f"{C:9}  " + "".join(f"{score:14.3f}" for score in line))

best = search.best_params_
predicted = search.predict(X_test)
print(f"\nbest parameters: C={best['svm__C']}, gamma={best['svm__gamma']}")
print(f"accuracy of the test rows: {np.mean(predicted == y_test):.3f}")
print(f"balanced accuracy of the test rows: {balanced_accuracy_score(y_test, predicted):.3f}")
