"""LLSVM, FastFood and LTPU: a linear SVM without bias on features that approximate the kernel.

The linear SVM is LIBLINEAR's dual coordinate descent for the hinge loss (scikit-learn's LinearSVC)
at LIBLINEAR's tolerance. LIBLINEAR keeps 16 bytes for a value beside the 8 of the matrix. The
number of features is reduced to fit into memory; `size` is the number used.
"""

from __future__ import annotations

import os
import warnings

import numpy as np
from sklearn.cluster import MiniBatchKMeans
from sklearn.exceptions import ConvergenceWarning
from sklearn.kernel_approximation import Nystroem
from sklearn.svm import LinearSVC

from paper.baselines.fastfood import FastFood
from paper.fitted import Decide, Fitted, Watch, in_blocks, kernel_matrix, linear

FEATURES = 3000
TOLERANCE = 0.1
BYTES_PER_VALUE = 28  # float32, float64, LIBLINEAR's own
MEMORY_SHARE = 0.7
CLUSTERED_ROWS = 100_000  # sample for k-means


def fit_llsvm(X, y, C, kernel, *, threads, seed=0, evaluate=None, features=FEATURES) -> Fitted:
    """Train on Nystroem features with the centers of k-means as landmarks.

    Zhang, Lan, Wang and Moerchen, "Scaling up Kernel SVM on Limited Resources" (AISTATS 2012).
    """

    def prepare(n_features: int) -> Decide:
        centers = cluster_centers(X, n_features, seed)
        name = {"polynomial": "poly"}.get(kernel.name, kernel.name)
        mapping = Nystroem(
            kernel=name,
            gamma=kernel.gamma,
            coef0=kernel.coef0,
            degree=kernel.degree,
            n_components=len(centers),
            random_state=seed,
        ).fit(centers)
        return lambda rows: mapping.transform(rows).astype(np.float32)

    return fit_linear(X, y, C, prepare, features, seed, evaluate)


def fit_fastfood(X, y, C, kernel, *, threads, seed=0, evaluate=None, features=FEATURES) -> Fitted:
    """Train on random Fourier features with structured frequencies, for the rbf kernel.

    Le, Sarlos and Smola, "Fastfood: Approximating Kernel Expansions in Loglinear Time" (ICML 2013).
    A frequency makes two features.
    """
    if kernel.name != "rbf":
        raise ValueError(f"FastFood is for the rbf kernel, not {kernel.name}")

    def prepare(n_features: int) -> Decide:
        return FastFood(X.shape[1], n_features // 2, kernel.gamma, seed)

    return fit_linear(X, y, C, prepare, features, seed, evaluate)


def fit_ltpu(X, y, C, kernel, *, threads, seed=0, evaluate=None, features=FEATURES) -> Fitted:
    """Train on kernel values with the centers of k-means as features.

    Moody and Darken, "Fast Learning in Networks of Locally-Tuned Processing Units" (1989); the
    weights are a linear SVM's, as in the paper.
    """

    def prepare(n_features: int) -> Decide:
        centers = cluster_centers(X, n_features, seed)
        return lambda rows: kernel_matrix(kernel, rows, centers)

    return fit_linear(X, y, C, prepare, features, seed, evaluate)


def fit_linear(X, y, C, prepare, n_features, seed, evaluate) -> Fitted:
    """Train a linear SVM; `prepare` takes a number of features and returns the feature map."""
    watch = Watch(evaluate)
    memory = MEMORY_SHARE * os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    n_features = min(n_features, int(memory / (BYTES_PER_VALUE * len(y))))
    transform = prepare(n_features)
    mapped = in_blocks(transform, X)
    svm = LinearSVC(
        loss="hinge", dual=True, fit_intercept=False, C=C, tol=TOLERANCE, random_state=seed
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        svm.fit(mapped, y)
    converged = svm.n_iter_ < svm.max_iter
    decide = linear(transform, svm.coef_[0])
    return watch.fitted(decide, size=mapped.shape[1], converged=bool(converged))


def cluster_centers(X: np.ndarray, count: int, seed: int) -> np.ndarray:
    """Return the centers of k-means on a sample of the rows, float32 (count, d)."""
    rows = X
    if len(X) > CLUSTERED_ROWS:
        rows = X[np.random.default_rng(seed).choice(len(X), CLUSTERED_ROWS, replace=False)]
    kmeans = MiniBatchKMeans(min(count, len(rows)), batch_size=4096, n_init=1, random_state=seed)
    return kmeans.fit(rows).cluster_centers_.astype(np.float32)
