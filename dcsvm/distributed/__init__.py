"""Training on the workers of a Dask cluster (an extra: pip install 'dcsvm[dask]').

from dcsvm.distributed import train

model = train(client, X, y, C=32, gamma=2)   # dask arrays, dataframes or delayed chunks
"""

from __future__ import annotations

from typing import TYPE_CHECKING

__all__ = ["DaskSVC", "DaskSVR", "train"]

try:
    import distributed as _distributed  # noqa: F401
except ImportError as _error:
    raise ImportError("dcsvm.distributed needs Dask: pip install 'dcsvm[dask]'") from _error

if TYPE_CHECKING:
    from distributed import Client

    from dcsvm.model.model import Model


def train(
    client: Client,
    X,
    y,
    *,
    sample_weight=None,
    progress=None,
    stop=None,
    checkpoint=None,
    init_model=None,
    test=None,
    **options,
) -> Model:
    """Train on the workers of a Dask `client`; returns a Model, and the rest is as of
    `dcsvm.train`.

    X is a dask array (n, d), a dask dataframe, or a list of delayed chunks, each a NumPy array or a
    scipy sparse matrix; y in the same chunks, or a dask array of n labels. `sample_weight` (n,) is
    an array of NumPy or dask. Rows stay where they are but for what a task needs; the client holds
    about 100 bytes for each of them, the support vectors and the model.

    `cache_mb` is that of a task, of which a worker runs as many at a time as it has threads; None
    is 1000. Early models are the same bits for any number of workers. Raises ValueError as
    `dcsvm.train`, and where workers are lost for good.
    """
    from dcsvm.distributed.connection import check_workers
    from dcsvm.distributed.tasks import Tasks
    from dcsvm.distributed.training import chunks_of, remote_data, train_data, whole_array
    from dcsvm.problem.options import TrainOptions
    from dcsvm.training import arguments

    options = TrainOptions.of(**options)
    control = arguments.checked_control(progress, stop, checkpoint, init_model)
    test = arguments.test_rows_of(test, X, options)
    options = options if test is None else options.choosing_by_test()
    check_workers(client)
    tasks = Tasks(client)
    data = remote_data(tasks, chunks_of(tasks, X, y), control)
    arguments.warn_of_labels(options, data.labels)
    weights = whole_array(client, sample_weight)
    given = {"sample_weight": weights, "init_model": init_model, "test": test}
    model, report = train_data(data, options, control, **given)
    arguments.warn_of_report(report)
    return model


def __getattr__(name):
    """The estimators are imported when they are asked for: they need scikit-learn, too."""
    if name not in ("DaskSVC", "DaskSVR"):
        raise AttributeError(f"module 'dcsvm.distributed' has no attribute {name!r}")
    import dcsvm.sklearn  # noqa: F401 (which says what to install)
    from dcsvm.distributed import estimators

    return getattr(estimators, name)
