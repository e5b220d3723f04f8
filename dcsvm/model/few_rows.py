"""Decision values of a few dense rows at once, for those who ask again and again.

Most of the time of a row alone is not arithmetic: arrays that are checked, values that are made for
each call. Here everything about the model is prepared once, for the first such rows, and a call of
the core does the rest. The values are the same bits.
"""

from __future__ import annotations

import threading
import weakref

import numpy as np

from dcsvm import _core
from dcsvm.data.arrays import as_float32
from dcsvm.kernel.kernel_rows import KernelRows
from dcsvm.kernel.partition import Partition
from dcsvm.kernel.sources import COPY_BYTES, Sources
from dcsvm.model.pair_weights import PairWeights, needs_float64
from dcsvm.model.parts import EarlyModel, ExactModel, ModelParts

# Rows that are taken one by one. All rows of an exact model meet the same vectors: with the 2487 of
# ijcnn1 8 rows take as long either way, 16 twice as long here. Rows of an early model have clusters
# of their own: with 1024 of covtype 64 rows take a fifth, with 16 clusters as long.
FEW = {ExactModel: 8, EarlyModel: 64}

_kept: weakref.WeakKeyDictionary = weakref.WeakKeyDictionary()
_lock = threading.Lock()


def few_values(model: ModelParts, X, method: str | None) -> np.ndarray | None:
    """Decision values float64 (n, n_pairs) of X (n, d), a NumPy array of real numbers, by the part
    of the model that a method takes, None is the best there is. None for what module predict has to
    look at: other rows, other models, wrong ones."""
    if method not in (None, "exact", "early"):
        return None
    part = model.exact or model.early if method is None else getattr(model, method)
    if part is None or type(X) is not np.ndarray or X.ndim != 2 or X.dtype.kind not in "biuf":
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
    """A part of a model with a kernel in the core's form, None for one that is not for it."""

    def __init__(self, model: ModelParts, part: ExactModel | EarlyModel):
        kernel = model.kernel
        self.kernel, self.core = kernel, None
        tree = part.partition if isinstance(part, EarlyModel) else None
        if kernel.name == "linear" or not _suits(Sources.kept(part.rows, kernel)):
            return
        if tree is not None and not _suits_tree(tree):
            return
        sources = _served(Sources.kept(part.rows, kernel))
        n, rho = part.rows.n_samples, np.atleast_2d(part.rho)
        start = [0, n]
        if tree is not None:
            start = np.searchsorted(part.cluster, np.arange(tree.n_clusters + 1))
        core = _core.FewRows(
            sources.setup,
            sources.points,
            PairWeights.kept(part, model.n_pairs).all(),
            np.asarray(start, np.int64),
            np.ascontiguousarray(0.0 - rho, np.float64),
            needs_float64(model, part),
        )
        if tree is not None:
            sampled = _served(Sources.kept(tree.sample, tree.kernel))
            core.set_tree(sampled.setup, tree.found(sampled), tree.blend)
        self.core = core


def _served(sources: Sources) -> KernelRows:
    """The form in which a row meets these."""
    return sources.form(how="stepped") or sources.form()


def _suits(sources: Sources) -> bool:
    """Whether rows may meet these one by one, and their lanes are not too many."""
    if not sources.rows.is_dense or sources.kernel.is_precomputed:
        return False
    form = _served(sources)
    is_known = form.encoding.grid is None and form.setup.form in ("difference", "product", "bytes")
    return is_known and _core.packed_bytes(form.setup, form.points) <= COPY_BYTES


def _suits_tree(tree: Partition) -> bool:
    """The same of sampled rows. With a linear kernel a product with several rows of a center is not
    taken value by value."""
    if tree.kernel.name == "linear" and tree.sample.n_samples > sum(
        np.count_nonzero(np.repeat(fork.n_parts > 1, fork.n_parts)) for fork in tree.forks
    ):
        return False
    return _suits(Sources.kept(tree.sample, tree.kernel))
