"""Whether the decision values of a model need kernel values in float64.

A kernel value in float32 is off by some 2^-24 of it, a sum of them by that times their |weights|.
That is nothing beside 1, the margin of a classifier, as long as weights are small; with C = 1000
and more it may be seen. Which it is, is found once for a model: some of its support vectors are
predicted either way. So it depends on the model alone, not on the rows that are predicted.
"""

from __future__ import annotations

import weakref

import numpy as np

from dcsvm.kernel.kernel_rows import ClusterRanges, Evaluation, KernelRows
from dcsvm.kernel.kernels import Kernel
from dcsvm.kernel.sources import Sources
from dcsvm.model.pair_weights import PairWeights
from dcsvm.model.parts import EarlyModel, ExactModel, ModelParts

SAMPLED = 64  # support vectors
# Errors that show nowhere: of the margin, which training knows to 1e-3, and of the spread of the
# values of a regression. a9a with C = 32 has 4e-5.
SMALL, SMALL_OF_REGRESSION = 1e-4, 2e-5
ROUNDING = 2.0**-22  # at most, of a kernel value that is at most 1

_kept: weakref.WeakKeyDictionary[ExactModel | EarlyModel, tuple[Kernel, bool]]
_kept = weakref.WeakKeyDictionary()


def is_seen(error: float, size: float, *, is_regression: bool = False) -> bool:
    """Whether an error of decision values shows beside what they are compared with: the margin, or
    the spread of the values of a regression. One that is not a number does."""
    return not error <= (SMALL_OF_REGRESSION if is_regression else SMALL) * size


def needs_float64(model: ModelParts, part: ExactModel | EarlyModel) -> bool:
    """Whether float32 kernel values would show in the decision values of a part of a model."""
    found = _kept.get(part)
    if found is None or found[0] != model.kernel:
        found = _kept[part] = model.kernel, _shows(model, part)
    return found[1]


def _shows(model: ModelParts, part: ExactModel | EarlyModel) -> bool:
    kernel, weights = model.kernel, PairWeights.kept(part, model.n_pairs)
    if kernel.is_precomputed or part.rows.n_samples == 0:
        return False
    is_regression = not (model.is_classifier or model.svm_type == "one_class")
    margin = 1.0 if model.is_classifier else float(np.nanmax(np.abs(part.rho), initial=0.0))
    if kernel.name in ("rbf", "sigmoid") and not is_regression:
        most = ROUNDING * weights.totals().max(initial=0.0)
        if not is_seen(most, margin, is_regression=False):
            return False
    sources = Sources.kept(part.rows, kernel).form()
    n = part.rows.n_samples
    some = np.unique(np.linspace(0, n - 1, SAMPLED).astype(np.int32))
    rounded, exact = (_values(part, sources, weights.all(), some, float64=f) for f in (False, True))
    if is_regression:
        margin = float(np.std(exact))
    error = float(np.max(np.abs(rounded - exact)))  # nan where float32 does not hold them
    return is_seen(error, margin, is_regression=is_regression)


def _values(
    part: ExactModel | EarlyModel, sources: KernelRows, weights, some: np.ndarray, *, float64: bool
) -> np.ndarray:
    """Decision values, but for rho, of some support vectors (ascending), each in its cluster."""
    if isinstance(part, ExactModel):
        return sources.product(weights, target_rows=some, how=Evaluation(float64))
    ranges = ClusterRanges.of(part.cluster[some], part.cluster)
    return sources.cluster_product(weights, ranges, sources, some, float64)
