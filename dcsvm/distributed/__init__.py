"""Train on the workers of a Dask cluster (requires the extra: pip install 'dcsvm[dask]').

from dcsvm.distributed import train

model = train(client, X, y, C=32, gamma=2)   # dask arrays, dataframes or delayed chunks
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

__all__ = ["DaskSVC", "DaskSVR", "train"]

try:
    import distributed as _distributed  # noqa: F401
except ImportError as _error:
    raise ImportError("dcsvm.distributed requires Dask: pip install 'dcsvm[dask]'") from _error

if TYPE_CHECKING:
    from distributed import Client
    from numpy.typing import ArrayLike

    from dcsvm._core import Stop
    from dcsvm.model.model import Model
    from dcsvm.solving.checkpoint import Checkpoint
    from dcsvm.solving.report import Progress


def train(  # noqa: PLR0913 (a client and the arguments of dcsvm.train)
    client: Client,
    X: Any,
    y: Any,
    *,
    sample_weight: Any = None,
    progress: Progress | None = None,
    stop: Stop | None = None,
    checkpoint: Checkpoint | None = None,
    init_model: Model | None = None,
    test: tuple[ArrayLike, ArrayLike] | None = None,
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
        The rows. A delayed chunk is a NumPy array or a SciPy sparse matrix. A dataframe is encoded
        as by `dcsvm.train`; the columns of rows to predict are matched by name.
    y : dask array of shape (n,), dask series, or list of delayed chunks
        The labels or targets. A list, or an array with unknown chunk sizes, must be chunked as X.
    sample_weight : array or dask array of shape (n,), optional
        The weight of each row, at least 0.
    progress, stop, checkpoint, init_model, test
        As in `dcsvm.train`.
    **options
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
    from dcsvm.distributed.tasks import Tasks
    from dcsvm.distributed.training import chunks_of, remote_data, train_data, whole_array
    from dcsvm.problem.options import TrainOptions
    from dcsvm.training import arguments

    checked = TrainOptions.of(**options)
    control = arguments.checked_control(progress, stop, checkpoint, init_model)
    check_workers(client)
    tasks = Tasks(client)
    chunks, table = chunks_of(tasks, X, y, has_table=True)
    test_rows = arguments.test_rows_of(test, X, checked, table=table)
    if test_rows is not None:
        checked = checked.choosing_by_test()
    data = remote_data(tasks, chunks, control, test_rows)
    arguments.warn_of_labels(checked, data.labels)
    weights = whole_array(client, sample_weight)
    model, report = train_data(
        data, checked, control, sample_weight=weights, init_model=init_model, test=test_rows
    )
    arguments.warn_of_report(report)
    return replace(model, table=table)


def __getattr__(name: str) -> Any:
    """Import the estimators on first use, because they require scikit-learn."""
    if name not in ("DaskSVC", "DaskSVR"):
        raise AttributeError(f"module 'dcsvm.distributed' has no attribute {name!r}")
    import dcsvm.sklearn  # noqa: F401 (its ImportError names the extra)
    from dcsvm.distributed import estimators

    return getattr(estimators, name)
