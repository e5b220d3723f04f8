"""Models with random numbers and any number of classes, and frames, for tests of prediction; text
of models as svm-train writes it."""

from itertools import combinations

import numpy as np
import pytest
from reference import dense_rows

from dcsvm.kernel.kernels import Kernel
from dcsvm.kernel.sources import partition_of
from dcsvm.model.model import Model
from dcsvm.model.parts import EarlyModel, ExactModel, Probability


def svm_train_text(support_vectors, **changes):
    """Return the text of a model of two classes as svm-train writes it.

    `support_vectors` are its last lines; `changes` replace values of keys, None omits a key.
    """
    n = support_vectors.count("\n")
    header = {"svm_type": "c_svc", "kernel_type": "rbf", "gamma": 0.5, "nr_class": 2, "total_sv": n}
    header |= {"rho": -0.25, "label": "1 -1", "nr_sv": f"{n - 1} 1"} | changes
    lines = (f"{key} {value}\n" for key, value in header.items() if value is not None)
    return f"{''.join(lines)}SV\n{support_vectors}"


def made_model(k, *, form=dense_rows, svm_type="c_svc", seed=0):
    """Make an exact and an early model with random numbers: 30 and 40 support vectors, 4 clusters.

    Cluster 0 has all classes, cluster 1 the first, cluster 2 the last two; cluster 3 is empty.
    """
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1, 1, (70, 3)).astype(np.float32)
    n_pairs = k * (k - 1) // 2
    classes = np.sort(rng.integers(0, k, 30))
    coef = rng.normal(size=(k - 1, 30)) * (rng.random((k - 1, 30)) < 0.7)
    exact = ExactModel(form(X[:30]), coef, rng.normal(size=n_pairs),
                       np.bincount(classes, minlength=k), np.arange(30))  # fmt: skip
    present = [set(range(k)), {0}, {k - 2, k - 1}, set()]
    rho = np.full((4, n_pairs), np.nan)
    for pair, (i, j) in enumerate(combinations(range(k), 2)):
        for c, there in enumerate(present):
            if {i, j} <= there:
                rho[c, pair] = rng.normal()
            elif there & {i, j}:
                rho[c, pair] = -1 if i in there else 1
    cluster = np.repeat([0, 1, 2], [20, 8, 12]).astype(np.int32)
    class_ = np.concatenate(
        [
            np.sort(rng.choice(sorted(there), n))
            for there, n in zip(present, [20, 8, 12], strict=False)
        ]
    ).astype(np.int32)
    coef = rng.normal(size=(k - 1, 40))
    for s in range(40):
        for line in range(k - 1):
            if line + (line >= class_[s]) not in present[cluster[s]]:
                coef[line, s] = 0
    centers = np.array([[0, 0, 0], [1, 1, 1], [-1, 1, -1], [1, -1, 1]], np.float32)
    partition = partition_of(Kernel("linear"), form(centers), np.array([4]), [np.arange(4)], 0.0)
    early = EarlyModel(1, partition, cluster, class_, form(X[30:]), coef, rho, np.arange(30, 70))
    probability = Probability(-1 - rng.random(n_pairs), rng.normal(size=n_pairs))
    return Model(Kernel("rbf", 0.5), np.arange(k) * 2.0 - 3, exact, early, svm_type, probability)


def mixed_frame(n, seed, categories):
    """Return a data frame of n rows with columns of every kind, and a target; needs pandas.

    The word "red" must be among the categories.
    """
    pandas = pytest.importorskip("pandas")
    rng = np.random.default_rng(seed)
    number, words = rng.normal(size=n), rng.choice(categories, n)
    frame = pandas.DataFrame(
        {
            "number": np.where(rng.random(n) < 0.1, np.nan, number),
            "word": words,
            "whole number": rng.integers(0, 9, n),
            "flag": rng.random(n) < 0.5,
            "kind": pandas.Categorical(rng.integers(1, 4, n)),
            "gap": np.where(rng.random(n) < 0.2, None, words),
            "constant": np.ones(n),
        }
    )
    target = number + 2.0 * (words == "red") - (frame["whole number"] > 4) + frame["flag"]
    return frame, target.to_numpy()
