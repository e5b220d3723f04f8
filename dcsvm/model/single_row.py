"""Decision values of a few dense rows, for callers that predict often.

Validation and allocation take most of the time of a single row. Here the model is prepared once, at
the first such call, and later calls only call the core. The values are the same bits as in
predict.py.
"""

import threading
import weakref

import numpy as np

from dcsvm import _core
from dcsvm.data.arrays import as_float32
from dcsvm.kernel.kernel_rows import KernelRows
from dcsvm.kernel.partition import Partition
from dcsvm.kernel.sources import COPY_BYTES, EncodedSources
from dcsvm.model.pair_weights import PairWeights, needs_float64
from dcsvm.model.parts import EarlyModel, ExactModel, ModelParts

# Maximum number of rows. With the 2487 support vectors of ijcnn1 8 rows take as long as in blocks,
# 16 rows twice as long. Rows of an early model are in different clusters: with the 1024 clusters of
# covtype 64 rows take a fifth of the time, with 16 clusters the same.
FEW = {ExactModel: 8, EarlyModel: 64}

_kept: "weakref.WeakKeyDictionary[ExactModel | EarlyModel, _Prepared]" = weakref.WeakKeyDictionary()
_lock = threading.Lock()


def few_values(model: ModelParts, X: object, method: str | None) -> np.ndarray | None:
    """Compute decision values float64 (n, n_pairs) of a real NumPy array X (n, d).

    `method` is as for ModelParts.part. Returns None if the values have to be computed by
    predict.py, which also reports invalid rows.
    """
    part = model.part(method)
    if type(X) is not np.ndarray or X.ndim != 2 or X.dtype.kind not in "biuf":
        return None
    if not 0 < len(X) <= FEW[type(part)] or X.shape[1] != part.rows.n_features:
        return None
    prepared = _kept.get(part)
    if prepared is None or prepared.kernel != model.kernel:
        with _lock:
            prepared = _kept.get(part)
            if prepared is None or prepared.kernel != model.kernel:
                prepared = _kept[part] = _Prepared(model, part)
    return None if prepared.core is None else prepared.core.values(as_float32(X))


class _Prepared:
    """A part of a model and its kernel, in the form of the core; `core` None: not supported."""

    def __init__(self, model: ModelParts, part: ExactModel | EarlyModel):
        kernel = model.kernel
        self.kernel = kernel
        self.core: _core.FewRows | None = None
        tree = part.partition if isinstance(part, EarlyModel) else None
        if kernel.type.is_linear or not _suits(EncodedSources.cached(part.rows, kernel)):
            return
        if tree is not None and not _suits_tree(tree):
            return
        sources = _served(EncodedSources.cached(part.rows, kernel))
        start = np.array([0, part.rows.n_samples])
        if isinstance(part, EarlyModel):
            start = np.searchsorted(part.cluster, np.arange(part.partition.n_clusters + 1))
        core = _core.FewRows(
            sources.setup,
            sources.points,
            PairWeights.kept(part, model.n_pairs).all(),
            np.asarray(start, np.int64),
            np.ascontiguousarray(0.0 - np.atleast_2d(part.rho), np.float64),
            needs_float64(model, part),
        )
        if tree is not None:
            sampled = _served(EncodedSources.cached(tree.sample, tree.kernel))
            core.set_tree(sampled.setup, tree.found(sampled), tree.blend)
        self.core = core


def _served(sources: EncodedSources) -> KernelRows:
    """Return the form of sources that serves single rows."""
    form = sources.stepped() or sources.form()
    assert form is not None  # only the "stepped" form can be missing
    return form


def _suits(sources: EncodedSources) -> bool:
    """Return whether single rows are supported and their copy of the sources is small enough."""
    if not sources.rows.is_dense or sources.kernel.is_precomputed:
        return False
    form = _served(sources)
    is_known = form.encoding.grid is None and form.setup.form in ("difference", "product", "bytes")
    return is_known and _core.packed_bytes(form.setup, form.points) <= COPY_BYTES


def _suits_tree(tree: Partition) -> bool:
    """Return whether the sampled rows of a partition suit.

    With a linear kernel, predict.py takes the product with the mean of a center's rows, not with
    each of them, which rounds differently.
    """
    if tree.kernel.type.is_linear and tree.sample.n_samples > sum(
        np.count_nonzero(np.repeat(split.n_parts > 1, split.n_parts)) for split in tree.splits
    ):
        return False
    return _suits(EncodedSources.cached(tree.sample, tree.kernel))
