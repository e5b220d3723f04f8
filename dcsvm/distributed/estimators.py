"""DaskSVC and DaskSVR: SVC and SVR of dcsvm.sklearn, fitted on the workers of a Dask cluster.

X and y are dask collections; what is predicted of dask collections is lazy, and of arrays it is as
the local estimators predict it.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
from distributed import Client, default_client
from sklearn.base import clone

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
from dcsvm.sklearn.fitted import ModelRows
from dcsvm.sklearn.parameters import Parameter, train_options, with_parameters

CLIENT = Parameter(None, [Client, None], "Client or None: None is the client that is current.")


class OnWorkers:
    """What makes an estimator fit and predict on workers."""

    _local: type

    @property
    def client_(self) -> Client:
        """The client: that of the constructor, or the one that is current."""
        return self.client or default_client()

    def __getstate__(self) -> dict[str, Any]:
        return super().__getstate__() | {"client": None}

    def __sklearn_clone__(self):
        """Of equal parameters, and the same client."""
        params = {name: clone(value, safe=False) for name, value in self._own_params().items()}
        return type(self)(**params, client=self.client)

    def _own_params(self) -> dict[str, Any]:
        params = self.get_params(deep=False)
        params.pop("client")
        return params

    def to_local(self):
        """The estimator of dcsvm.sklearn with the same parameters and, where this one is fitted,
        the same fit."""
        local = self._local(**self._own_params())
        vars(local).update({name: one for name, one in vars(self).items() if name != "client"})
        return local

    def _fit(self, X, y, sample_weight) -> None:
        if not is_collection(X):
            raise TypeError(f"X must be a dask collection, not {type(X).__name__}")
        seed, client = self._seed(), self.client_
        check_workers(client)
        tasks, checkpoint = Tasks(client), self._checkpoint()
        control = self._control(checkpoint)
        data = remote_data(tasks, chunks_of(tasks, X, y), control)
        weights = whole_array(client, sample_weight)
        labels, weights = self._targets(data.labels, weights)
        n_features = data.rows.n_features
        self._gamma = gamma_of(self.kernel, self.gamma, n_features, lambda: data.variance)
        options = train_options(self._own_params(), self._svm_type, self._gamma, threads=None)
        options |= {"tolerance": float(self.tol), "cache_mb": self.memory}
        options = TrainOptions.of(**options | self._options(seed))
        data = replace(data, labels=labels)
        model, report = train_data(data, options, control, sample_weight=weights)
        if checkpoint is not None and not report.stopped:
            checkpoint.remove()
        shape = data.rows.n_samples, data.rows.n_features
        self.n_features_in_ = shape[1]
        self._keep(model, report, ModelRows(model.exact or model.early, shape))
        self._warn(report)

    def predict(self, X, *, method=None):
        if not is_collection(X):
            return super().predict(X, method=method)
        dtype = self.classes_.dtype if hasattr(self, "classes_") else np.float64
        return self._lazily("predict", X, None, dtype, method=method)

    def _lazily(self, name: str, X, width: int | None, dtype, **how):
        """What a method of the local estimator gives of dask's X, lazily: an array (n,), or
        (n, width)."""
        call = partial(getattr(self.to_local(), name), **how)
        if hasattr(X, "map_partitions"):  # a dataframe
            X = X.to_dask_array(lengths=None)
        X = X.rechunk({1: -1})
        if width is None:
            return X.map_blocks(call, drop_axis=1, dtype=dtype)
        return X.map_blocks(call, chunks=(X.chunks[0], (width,)), dtype=dtype)


@with_parameters(*SVC._parameter_constraints, client=CLIENT)
class DaskSVC(OnWorkers, SVC):
    """dcsvm.sklearn.SVC fitted on the workers of a Dask cluster, with its attributes.

    `memory` is that of a task. fit takes dask arrays, dataframes or lists of delayed chunks;
    predict, decision_function and predict_proba of a dask array or dataframe are lazy. Pickles have
    no client.

    Parameters
    ----------
    {parameters}
    """

    _local = SVC

    def decision_function(self, X, *, method=None):
        if not is_collection(X):
            return super().decision_function(X, method=method)
        k = len(self.classes_)
        width = k if self.decision_function_shape == "ovr" else k * (k - 1) // 2
        width = None if k == 2 else width
        return self._lazily("decision_function", X, width, np.float64, method=method)

    def predict_proba(self, X, *, method=None):
        if is_collection(X):
            width = len(self.classes_)
            return self._lazily("predict_proba", X, width, np.float64, method=method)
        return super().predict_proba(X, method=method)


@with_parameters(*SVR._parameter_constraints, client=CLIENT)
class DaskSVR(OnWorkers, SVR):
    """dcsvm.sklearn.SVR fitted on the workers of a Dask cluster; see DaskSVC.

    Parameters
    ----------
    {parameters}
    """

    _local = SVR
