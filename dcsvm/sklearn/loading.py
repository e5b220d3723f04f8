"""Fitted estimators of model files, and of scikit-learn's own."""

from __future__ import annotations

import os

import numpy as np
from scipy import sparse
from sklearn.svm import _classes as theirs
from sklearn.utils.validation import check_is_fitted

from dcsvm.data.rows import Rows
from dcsvm.kernel.kernels import Kernel
from dcsvm.model.file import load_model
from dcsvm.model.model import Model
from dcsvm.model.parts import ExactModel, Probability
from dcsvm.sklearn import classes
from dcsvm.sklearn.classifier import labels_of
from dcsvm.sklearn.conversion import NAMES, SHARED
from dcsvm.sklearn.fitted import Given
from dcsvm.sklearn.parameters import KERNELS


class FromFile(Given):
    """Support vectors as a model file has them."""

    def __init__(self, rows: Rows, is_matrix: bool):
        n = rows.n_features if is_matrix else rows.n_samples
        self.rows, self.shape = rows, (n, rows.n_features)
        self.is_sparse = not rows.is_dense

    def vectors(self, places, numbers):
        rows = self.rows.take(np.arange(self.rows.n_samples)[places])
        if rows.is_dense:
            return rows.dense.astype(np.float64)
        shape = rows.n_samples, rows.n_features
        arrays = rows.values.astype(np.float64), rows.indices, rows.indptr
        return sparse.csr_matrix(arrays, shape=shape)


def load(path: str | os.PathLike[str]):
    """The estimator of a model file, of dcsvm or LIBSVM, ready to predict.

    A file does not say C, nu, weights or how many features there were beyond the last one of its
    support vectors. Labels that are whole numbers become int64. Raises ModelError.
    """
    model = load_model(path)
    part, kernel = model.exact or model.early, model.kernel
    made = _ours(model.svm_type)
    name = next(ours for ours, name in KERNELS.items() if name == kernel.name)
    made.set_params(kernel=name)
    if not kernel.is_precomputed:
        made.set_params(gamma=kernel.gamma, coef0=kernel.coef0, degree=kernel.degree)
    made._gamma, made.n_features_in_, made.fit_status_ = kernel.gamma, part.rows.n_features, 0
    if model.is_classifier:
        made._labels = np.sort(model.labels)
        whole = np.all(made._labels == np.round(made._labels))
        made.classes_ = made._labels.astype(np.int64) if whole else made._labels
        made.class_weight_ = np.ones(len(made.classes_))
        made.set_params(probability=model.probability is not None)
    if model.exact is None:
        made.set_params(early=True)
    made._keep(model, None, FromFile(part.rows, kernel.is_precomputed))
    return made


def from_sklearn(estimator):
    """The estimator of dcsvm with the decision function of a fitted one of scikit-learn.

    Raises TypeError for what is none of the five, NotFittedError, and ValueError for a kernel of
    its own in which rows were not kept.
    """
    svm_type = next(
        (one for one, name in NAMES.items() if isinstance(estimator, getattr(theirs, name))), None
    )
    if svm_type is None:
        raise TypeError(f"expected one of {', '.join(NAMES.values())}, not {estimator!r}")
    check_is_fitted(estimator)
    made = _ours(svm_type)
    params = {**estimator.get_params(deep=False)}
    if params.get("probability") == "deprecated":
        params["probability"] = False
    made.set_params(**params)
    made.__dict__.update(
        {name: vars(estimator)[name] for name in SHARED if name in vars(estimator)}
    )
    made._n_support = np.asarray(estimator.n_support_, np.int32)
    made.n_support_ = made._n_support
    made._iterations = np.atleast_1d(estimator.n_iter_).astype(np.int32)
    made.report_ = None
    if callable(estimator.kernel):
        made._X_fit = estimator._BaseLibSVM__Xfit
    made.model_ = _model_of(made, svm_type)
    if made.kernel == "linear":
        made._coef = made._pair_coef()
    return made


def _model_of(made, svm_type: str) -> Model:
    """The Model of what was taken over from scikit-learn."""
    is_classifier = svm_type in ("c_svc", "nu_svc")
    if made._is_of_matrix:
        kernel = Kernel("precomputed", 0.0)
        made.support_vectors_ = np.empty((len(made.support_), 0))
        rows = Rows(len(made.support_), made.shape_fit_[0], columns=made.support_)
    else:
        kernel = Kernel(KERNELS[made.kernel], float(made._gamma), made.coef0, made.degree)
        rows = Rows.from_array(made.support_vectors_)
    coef = made._dual_coef_.toarray() if made._sparse else made._dual_coef_
    labels, probability = np.empty(0), None
    if is_classifier:
        labels = made._labels = labels_of(made.classes_)
        if len(made._probA):
            probability = Probability(made._probA, made._probB)
    exact = ExactModel(
        rows=rows,
        dual_coef=np.ascontiguousarray(coef),
        rho=-made._intercept_,
        n_sv=made._n_support.astype(np.int64) if is_classifier else None,
        row_numbers=made.support_.astype(np.int64),
    )
    return Model(kernel, labels, exact, None, svm_type=svm_type, probability=probability)


def _ours(svm_type: str):
    return getattr(classes, NAMES[svm_type])()
