"""DaskSVC and DaskSVR: SVC and SVR of dcsvm.sklearn, fitted on the workers of a Dask cluster.

To fit, X and y must be dask collections. Predictions for dask collections are lazy. Predictions for
arrays use the local estimators.
"""

from collections.abc import Callable
from contextlib import nullcontext
from functools import partial
from inspect import signature
from typing import Any

import dask.array as da
import numpy as np
from dask.delayed import Delayed, delayed
from distributed import Client, default_client
from sklearn.base import clone, is_classifier
from sklearn.metrics import accuracy_score, r2_score
from sklearn.utils.validation import check_array, validate_data

from dcsvm.data.dataset import Dataset
from dcsvm.distributed.connection import check_workers
from dcsvm.distributed.dataset import RemoteDataset, is_collection, parts_of, whole_array
from dcsvm.model.model import Model
from dcsvm.problem.options import TrainOptions
from dcsvm.sklearn import SVC, SVR
from dcsvm.sklearn.estimator import Estimator, FitInput
from dcsvm.sklearn.estimators import Parameter, with_parameters
from dcsvm.sklearn.rows import check_columns, checked_weights

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
            The estimator of dcsvm.sklearn.
        """
        local = self._local(**self._own_params())
        local.__dict__.update({name: one for name, one in vars(self).items() if name != "client"})
        return local

    def _checked(self, X: Any, y: Any, sample_weight: Any) -> FitInput:
        if not is_collection(X):
            raise TypeError(f"X must be a dask collection, not {type(X).__name__}")
        client = self.client_
        check_workers(client)
        self._takes_sparse = True  # chunks may be of either kind
        data = RemoteDataset(client, X, y, scale=self.scale, encode_numbers=False)
        if data.table is not None and data.table.is_of_matrix:  # scikit-learn's words
            check_array([[np.nan]], input_name="X", estimator=self)
        weights = whole_array(client, sample_weight)
        weights = checked_weights(weights, (data.n_rows, data.n_features))
        labels, weights = self._targets(data.given_labels, weights)
        self._keep_columns(X, data)
        own = self._shifted(data.with_labels(labels, weights)).disposable()
        return FitInput((X, y, sample_weight), own, own.variance, rows_at=None)

    def _keep_columns(self, X: Any, data: RemoteDataset) -> None:
        """Set the names and the number of the columns."""
        columns = _columns_of(X)
        if columns is not None:
            validate_data(self, columns, skip_check_array=True)
            return
        self.__dict__.pop("feature_names_in_", None)
        self.n_features_in_ = data.n_features if data.table is None else len(data.table.columns)

    def _threads(self, data: Dataset) -> nullcontext[None]:  # noqa: ARG002 (of Estimator)
        return nullcontext(None)

    def _weighted(self, checked: FitInput, options: TrainOptions) -> tuple[Dataset, TrainOptions]:
        data, options = super()._weighted(checked, options)
        if isinstance(checked.data, RemoteDataset) and data is not checked.data:
            checked.data.forget_rows()
        return data, options

    def _trained(self, data: Dataset, options: TrainOptions) -> Model:
        return self._solve(data, options)

    def predict(self, X: Any, *, method: str | None = None) -> Any:
        """Predict labels or targets.

        Parameters
        ----------
        X : array, sparse matrix or dask collection of shape (n, d)
            The rows.
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
            The rows.
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
        columns, has_table = _columns_of(X), self.model_ is not None and bool(self.model_.table)
        if columns is not None:
            check_columns(self, columns, in_order=not has_table)
        local = self.to_local()
        shape = () if width is None else (width,)
        call = partial(_of_block, partial(getattr(local, name), **kwargs), shape, dtype)
        if (columns is not None and has_table) or isinstance(X, (list, tuple, Delayed)):
            blocks = [
                da.from_delayed(delayed(call)(part), (np.nan, *shape), dtype)
                for part in parts_of(X)
            ]
            return da.concatenate(blocks, allow_unknown_chunksizes=True)
        local.__dict__.pop("feature_names_in_", None)  # blocks are arrays
        if columns is not None:
            X = X.to_dask_array(lengths=None)
        X = X.rechunk({1: -1})
        if width is None:
            return X.map_blocks(call, drop_axis=1, dtype=dtype)
        return X.map_blocks(call, chunks=(X.chunks[0], (width,)), dtype=dtype)


def _columns_of(X: Any) -> Any | None:
    """Return an empty data frame with the columns of a dask dataframe; None for other rows."""
    return X._meta if hasattr(type(X), "map_partitions") else None  # noqa: SLF001 (Dask's word for it)


def _of_block(
    call: Callable[[Any], np.ndarray],
    shape: tuple[int, ...],
    dtype: np.typing.DTypeLike,
    block: Any,
) -> np.ndarray:
    """Apply a method to a block of rows; scikit-learn refuses empty blocks."""
    return call(block) if block.shape[0] else np.empty((0, *shape), dtype)


@with_parameters(*signature(SVC).parameters, client=CLIENT)
class DaskSVC(OnWorkers, SVC):
    """SVC of dcsvm.sklearn fitted on the workers of a Dask cluster, with the same attributes.

    `memory` is the budget of a task. fit takes dask arrays, dataframes or lists of delayed chunks.
    predict, decision_function and predict_proba of a dask array or dataframe are lazy. Pickles do
    not contain the client. The client has no rows: support_vectors_ are those of model_, encoded,
    scaled and weighted.

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
            The rows.
        method : {"exact", "early"}, optional
            The part of the model to use; the default is "exact" if the model has it.

        Returns
        -------
        array or lazy dask array of float64, shape (n,), (n, n_classes) or (n, n_pairs)
            As for SVC.
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
            The rows.
        method : {"exact", "early"}, optional
            The part of the model to use; the default is "exact" if the model has it.

        Returns
        -------
        array or lazy dask array of float64, shape (n, n_classes)
            The probabilities, in the order of classes_.
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
