"""DaskSVC and DaskSVR: SVC and SVR of dcsvm.sklearn, fitted on the workers of a Dask cluster.

To fit, X and y must be dask collections. Predictions for dask collections are lazy. Predictions for
arrays use the local estimators.
"""

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from inspect import signature
from typing import Any

import numpy as np
from distributed import Client, default_client
from sklearn.base import clone, is_classifier
from sklearn.metrics import accuracy_score, r2_score
from sklearn.utils.validation import _check_feature_names

from dcsvm.distributed.connection import check_workers
from dcsvm.distributed.tasks import Tasks
from dcsvm.distributed.training import (
    chunks_of,
    is_collection,
    remote_data,
    train_data,
    whole_array,
)
from dcsvm.problem.options import TrainOptions
from dcsvm.sklearn import SVC, SVR
from dcsvm.sklearn.checks import gamma_of
from dcsvm.sklearn.estimator import Estimator
from dcsvm.sklearn.fitted import ModelFileRows
from dcsvm.sklearn.parameters import Parameter, train_options, with_parameters

CLIENT = Parameter(None, [Client, None], "Client or None: None is the current client.")


class OnWorkers(Estimator):
    """Mixin of estimators that fit and predict dask collections on the workers."""

    _local: type[Estimator]

    @property
    def client_(self) -> Client:
        """The client of the constructor, or the current client if None."""
        return self.client or default_client()

    def __getstate__(self) -> dict[str, Any]:
        return super().__getstate__() | {"client": None}

    def __sklearn_clone__(self) -> "OnWorkers":
        """Clone the parameters, but share the client."""
        params = {name: clone(value, safe=False) for name, value in self._own_params().items()}
        return type(self)(**params, client=self.client)

    def _own_params(self) -> dict[str, Any]:
        params = self.get_params(deep=False)
        params.pop("client")
        return params

    def to_local(self) -> Estimator:
        """Return a dcsvm.sklearn estimator with the same parameters and, if fitted, attributes.

        Returns
        -------
        SVC or SVR
        """
        local = self._local(**self._own_params())
        local.__dict__.update({name: one for name, one in vars(self).items() if name != "client"})
        return local

    def _fit(self, X: Any, y: Any, sample_weight: Any) -> None:
        if not is_collection(X):
            raise TypeError(f"X must be a dask collection, not {type(X).__name__}")
        seed, client = self._seed(), self.client_
        check_workers(client)
        tasks, checkpoint = Tasks(client), self._checkpoint()
        control = self._control(checkpoint)
        chunks, _ = chunks_of(tasks, X, y)
        data = remote_data(tasks, chunks, control)
        weights = whole_array(client, sample_weight)
        labels, weights = self._targets(data.labels, weights)
        n_features = data.columns.n_features
        self._gamma = gamma_of(self.kernel, self.gamma, data.statistics, lambda: data.variance)
        keywords = train_options(self._own_params(), self._svm_type, self._gamma, threads=None)
        keywords |= {"tolerance": float(self.tol), "cache_mb": self.memory}
        options = TrainOptions.of(**keywords | self._options(seed))
        data = replace(data, labels=labels)
        model, report = train_data(data, options, control, sample_weight=weights)
        if checkpoint is not None and not report.stopped:
            checkpoint.remove()
        part = model.exact or model.early
        assert part is not None  # a model has at least one of them
        _check_feature_names(self, _names_of(X), reset=True)
        self.n_features_in_ = n_features
        self._keep(model, report, ModelFileRows(part, (data.rows.n_samples, n_features)))
        self._warn(report)

    def predict(self, X: Any, *, method: str | None = None) -> Any:
        """Predict labels or targets.

        Parameters
        ----------
        X : array, sparse matrix or dask collection of shape (n, d)
        method : {"exact", "early"}, optional
            The part of the model to use; the default is "exact" if the model has it.

        Returns
        -------
        array or lazy dask array of shape (n,)
        """
        if not is_collection(X):
            return super().predict(X, method=method)
        dtype = self.classes_.dtype if hasattr(self, "classes_") else np.float64
        return self._lazily("predict", X, None, dtype, method=method)

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Return the accuracy of predicted classes, or R^2 of predicted values.

        Parameters
        ----------
        X : array, sparse matrix or dask collection of shape (n, d)
        y, sample_weight : array or dask collection of shape (n,)
        """
        predicted, y, sample_weight = (
            whole_array(self.client_, one) if is_collection(one) else one
            for one in (self.predict(X), y, sample_weight)
        )
        metric = accuracy_score if is_classifier(self) else r2_score
        return float(metric(y, predicted, sample_weight=sample_weight))

    def _lazily(
        self, name: str, X: Any, width: int | None, dtype: np.typing.DTypeLike, **kwargs: Any
    ) -> Any:
        """Apply a method of the local estimator to dask X; return an array (n,) or (n, width)."""
        self._check_is_fitted()
        _check_feature_names(self, _names_of(X), reset=False)
        local = self.to_local()
        local.__dict__.pop("feature_names_in_", None)  # blocks are arrays
        shape = () if width is None else (width,)
        call = partial(_of_block, partial(getattr(local, name), **kwargs), shape, dtype)
        if hasattr(X, "map_partitions"):  # a dataframe
            X = X.to_dask_array(lengths=None)
        X = X.rechunk({1: -1})
        if width is None:
            return X.map_blocks(call, drop_axis=1, dtype=dtype)
        return X.map_blocks(call, chunks=(X.chunks[0], (width,)), dtype=dtype)


def _names_of(X: Any) -> Any:
    """Return the object from which scikit-learn reads the column names of a dask collection."""
    return getattr(X, "_meta", X)


def _of_block(
    call: Callable[[np.ndarray], np.ndarray],
    shape: tuple[int, ...],
    dtype: np.typing.DTypeLike,
    block: np.ndarray,
) -> np.ndarray:
    """Apply a method to a block of rows; scikit-learn refuses empty blocks."""
    return call(block) if len(block) else np.empty((0, *shape), dtype)


@with_parameters(*signature(SVC).parameters, client=CLIENT)
class DaskSVC(OnWorkers, SVC):
    """SVC of dcsvm.sklearn fitted on the workers of a Dask cluster, with the same attributes.

    `memory` is the budget of a task. fit takes dask arrays, dataframes or lists of delayed chunks.
    predict, decision_function and predict_proba of a dask array or dataframe are lazy. Pickles do
    not contain the client.

    Parameters
    ----------
    {parameters}
    """

    _local = SVC

    def decision_function(self, X: Any, *, method: str | None = None) -> Any:
        """Compute decision values.

        Parameters
        ----------
        X : array, sparse matrix or dask collection of shape (n, d)
        method : {"exact", "early"}, optional
            The part of the model to use; the default is "exact" if the model has it.

        Returns
        -------
        array or lazy dask array of float64, shape (n,), (n, n_classes) or (n, n_pairs)
        """
        if not is_collection(X):
            return super().decision_function(X, method=method)
        k = len(self.classes_)
        n_columns = k if self.decision_function_shape == "ovr" else k * (k - 1) // 2
        width = None if k == 2 else n_columns
        return self._lazily("decision_function", X, width, np.float64, method=method)

    def predict_proba(self, X: Any, *, method: str | None = None) -> Any:
        """Compute class probabilities.

        Parameters
        ----------
        X : array, sparse matrix or dask collection of shape (n, d)
        method : {"exact", "early"}, optional
            The part of the model to use; the default is "exact" if the model has it.

        Returns
        -------
        array or lazy dask array of float64, shape (n, n_classes)
        """
        if is_collection(X):
            width = len(self.classes_)
            return self._lazily("predict_proba", X, width, np.float64, method=method)
        return super().predict_proba(X, method=method)


@with_parameters(*signature(SVR).parameters, client=CLIENT)
class DaskSVR(OnWorkers, SVR):
    """SVR of dcsvm.sklearn fitted on the workers of a Dask cluster; see DaskSVC.

    Parameters
    ----------
    {parameters}
    """

    _local = SVR
