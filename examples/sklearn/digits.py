"""Recognize hand-written digits: images of 8 x 8 pixels, with a support vector machine.

With scikit-learn alone:  python examples/sklearn/digits.py
With dcsvm's solver:      python -m dcsvm.sklearn examples/sklearn/digits.py
"""

from sklearn import svm
from sklearn.datasets import load_digits
from sklearn.metrics import classification_report, confusion_matrix
from sklearn.model_selection import train_test_split

digits = load_digits()
pixels = digits.images.reshape(len(digits.images), -1)  # a row of 64 values for each image

# learn from the first half, test on the second
X_train, X_test, y_train, y_test = train_test_split(
    pixels, digits.target, test_size=0.5, shuffle=False
)
classifier = svm.SVC(gamma=0.001).fit(X_train, y_train)
predicted = classifier.predict(X_test)

print(f"{len(X_train)} images to learn from, {classifier.n_support_.sum()} support vectors")
print(f"{(predicted == y_test).sum()} of {len(y_test)} digits are recognized\n")
print(classification_report(y_test, predicted))

matrix = confusion_matrix(y_test, predicted)
mistakes = [
    (matrix[digit, other], digit, other) for digit in range(10) for other in range(10)
    if digit != other and matrix[digit, other]
]  # fmt: skip
print("Most frequent mistakes:")
for count, digit, other in sorted(mistakes, reverse=True)[:3]:
    print(f"  {digit} read as {other}: {count} times")
