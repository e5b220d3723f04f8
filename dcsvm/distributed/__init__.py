"""Train on the workers of a Dask cluster (requires the extra: pip install 'dcsvm[dask]').

from dcsvm.distributed import train

model = train(client, X, y, C=32, gamma=2)   # dask arrays, dataframes or delayed chunks
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

__all__ = ["DaskSVC", "DaskSVR", "RemoteDataset", "train"]

try:
    import distributed as _distributed  # noqa: F401
except ImportError as _error:
    raise ImportError("dcsvm.distributed requires Dask: pip install 'dcsvm[dask]'") from _error

if TYPE_CHECKING:
    from distributed import Client
    from numpy.typing import ArrayLike

    from dcsvm._core import Stop
    from dcsvm.data.dataset import Dataset
    from dcsvm.data.scaling import Scaling
    from dcsvm.model.model import Model
    from dcsvm.training.report import Progress
    from dcsvm.training.state import Checkpoint


def train(  # noqa: PLR0913 (a client and the arguments of dcsvm.train)
    client: Client,
    X: Any,
    y: Any = None,
    *,
    sample_weight: Any = None,
    progress: Progress | None = None,
    stop: Stop | None = None,
    checkpoint: Checkpoint | None = None,
    init_model: Model | None = None,
    test: tuple[ArrayLike, ArrayLike] | Dataset | None = None,
    scale: str | Scaling | None = None,
    feature_weights: ArrayLike | str | None = None,
    **options: Any,
) -> Model:
    """Train a support vector machine on the workers of a Dask cluster.

    Rows stay on the workers; tasks exchange the rows that they need. The client holds about 100
    bytes per row, the support vectors and the model. Early models are bit-identical for any number
    of workers.

    Parameters
    ----------
    client : distributed.Client
        A client of the cluster.
    X : dask array of shape (n, d), dask dataframe, or list of delayed chunks
        The rows. A delayed chunk is an array, a SciPy sparse matrix or a data frame. Columns of
        text and missing values are encoded as by `dcsvm.train`. Data frames have the same
        columns, in any order.
    y : dask array of shape (n,), dask series, or list of delayed chunks, optional
        The labels or targets, not used by one-class SVM. A list, or an array with unknown chunk
        sizes, must be chunked as X.
    sample_weight : array or dask array of shape (n,), or list of delayed chunks, optional
        The weight of each row, at least 0.
    progress, stop, checkpoint, init_model, test, scale, feature_weights : as for `dcsvm.train`
        These arguments have the same meaning.
    **options : dict
        As in `dcsvm.train`. `cache_mb` is the memory budget of a task in MB, 1000 by default. A
        worker runs one task per thread at a time.

    Returns
    -------
    Model
        The model, with the TrainReport as its attribute `report`.

    Raises
    ------
    ValueError
        If data or options are invalid, or all workers are lost.
    TypeError
        If an option is unknown, or X and y are not dask collections.
    dcsvm.Stopped
        If training is stopped before a model exists.
    """
    from dcsvm.distributed.connection import check_workers
    from dcsvm.distributed.dataset import RemoteDataset
    from dcsvm.problem.options import TrainOptions
    from dcsvm.training.train import train as train_data

    TrainOptions.of(**options)  # errors are found before work begins
    check_workers(client)
    data = RemoteDataset(client, X, y, sample_weight=sample_weight, scale=scale).disposable()
    return train_data(
        data, progress=progress, stop=stop, checkpoint=checkpoint,
        init_model=init_model, test=test, feature_weights=feature_weights, **options,
    )  # fmt: skip


def __getattr__(name: str) -> Any:
    """Import the estimators on first use, because they require scikit-learn."""
    if name == "RemoteDataset":
        from dcsvm.distributed.dataset import RemoteDataset

        return RemoteDataset
    if name not in ("DaskSVC", "DaskSVR"):
        raise AttributeError(f"module 'dcsvm.distributed' has no attribute {name!r}")
    import dcsvm.sklearn  # noqa: F401 (its ImportError names the extra)
    from dcsvm.distributed import estimators

    return getattr(estimators, name)
