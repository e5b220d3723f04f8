"""Build models with landmarks in place of support vectors; compress.py chooses their number.

The landmarks of an exact model are fitted on all rows. An early model has separate landmarks for
each cluster, and its tree of clusters has one center per cluster. Landmarks start at rows near the
decision boundary.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace

import numpy as np

from dcsvm.compression.landmarks import (
    MAX_START,
    FitTarget,
    Landmarks,
    fitted,
    shares,
    with_single_centers,
)
from dcsvm.compression.optimizer import Map
from dcsvm.data.rows import Rows, stacked
from dcsvm.data.sorting import group_order
from dcsvm.model.pair_weights import PairWeights, most_voted, pairs_of_lines
from dcsvm.model.parts import EarlyModel, ExactModel, ModelParts
from dcsvm.problem.options import CompressOptions

MARGIN = 1.01  # largest |decision value| of a support vector: 1 plus a tolerance
OTHER_PAIRS = 0.1  # loss weight of the pairs that do not contain the predicted class
Tell = Callable[[int, int], None] | None


@dataclass(frozen=True, eq=False)
class Sample:
    """Rows to fit landmarks to.

    `wanted` has the rows and their decision values, divided by `scale`. `class_` int32 (n,) is the
    predicted class, 0 without classes. `near` bool (n,) marks rows near the decision boundary: a
    decision value of a pair with the predicted class is within MARGIN. Without classes all rows are
    near.
    """

    wanted: FitTarget
    class_: np.ndarray
    near: np.ndarray
    scale: float

    @staticmethod
    def of(model: ModelParts, rows: Rows, values: np.ndarray) -> Sample:
        """Make a sample from rows and their decision values (n, n_pairs), nan for no vote."""
        known = np.isfinite(values)
        filled, weights = np.where(known, values, 0.0), known.astype(np.float32)
        class_, near, scale = np.zeros(len(values), np.int32), np.ones(len(values), bool), 1.0
        if model.is_classifier:
            k = len(model.labels)
            class_ = most_voted(values, k).astype(np.int32)
            pairs = pairs_of_lines(class_, k)
            others = np.ones(values.shape, bool)
            np.put_along_axis(others, pairs, False, axis=1)
            weights[others] *= OTHER_PAIRS
            sizes = np.take_along_axis(np.where(known, np.abs(values), np.inf), pairs, axis=1)
            near = sizes.min(axis=1, initial=np.inf) <= MARGIN
        else:
            scale = float(values.std()) or 1.0
        values = (filled / scale).astype(np.float32)
        return Sample(
            FitTarget(rows, values, weights, not model.is_regression), class_, near, scale
        )

    def take(self, indices: np.ndarray) -> Sample:
        wanted = self.wanted.take(indices)
        return replace(self, wanted=wanted, class_=self.class_[indices], near=self.near[indices])

    def starts(self, n: int, rng: np.random.Generator) -> np.ndarray:
        """Choose at most n random rows, near ones first; return indices, sorted by class."""
        order = rng.permutation(len(self.near))
        order = order[np.argsort(~self.near[order], kind="stable")][:n]
        return order[np.lexsort((order, self.class_[order]))]


def compressed_exact(
    model: ModelParts,
    part: ExactModel,
    sample: Sample,
    n_vectors: int,
    options: CompressOptions,
    threads: int,
    tell: Tell,
) -> ExactModel:
    """Fit at most n_vectors landmarks to all rows.

    With a linear kernel and n_vectors >= n_pairs, one vector per pair is exact and is used instead.
    """
    if model.kernel.type.is_linear and n_vectors >= model.n_pairs:
        return _summed_by_pairs(model, part)
    with side_by_side(threads) as each:
        class_, found = _landmarks(model, sample, n_vectors, options, each, tell)
    n_sv = np.bincount(class_, minlength=len(model.labels)) if model.is_classifier else None
    coef = _coefficients_by_line(found.coefficients, class_, model)
    return ExactModel(found.rows, coef, -found.offset, n_sv, np.arange(len(class_)))


def _summed_by_pairs(model: ModelParts, part: ExactModel) -> ExactModel:
    """Replace the support vectors of pair (i, j) by their weighted sum: class i, coefficient 1."""
    n_pairs, k = model.n_pairs, len(model.labels)
    owner, pair, coefficients = PairWeights(part, n_pairs).entries()
    weights = np.zeros((part.rows.n_samples, n_pairs))
    weights[owner, pair] = coefficients
    coef, n_sv = np.ones((1, 1)), None
    if model.is_classifier:
        first, second = np.triu_indices(k, 1)
        n_sv = np.bincount(first, minlength=k)
        coef = (np.arange(1, k)[:, None] == second).astype(np.float64)
    return ExactModel(_summed(part.rows, weights), coef, part.rho, n_sv, np.arange(n_pairs))


def _summed(rows: Rows, coefficients: np.ndarray) -> Rows:
    """Compute sum_i coefficients[i, k] rows[i] for each k, float32 (p, d), dense if `rows` is.

    With a linear kernel, sum_i a_i x_i'x = (sum_i a_i x_i)'x.
    """
    n_constraints, n_features = coefficients.shape[1], rows.n_features
    if rows.is_dense:
        total = np.zeros((n_constraints, n_features))
        for batch in rows.slices():
            total += coefficients[batch].T @ rows.part(batch).as_floats().features
        return Rows(n_constraints, n_features, dense=total.astype(np.float32))
    csr = rows.csr
    columns, column = np.unique(csr.indices, return_inverse=True)
    row = np.repeat(np.arange(rows.n_samples), np.diff(csr.indptr))
    total = np.stack(
        [np.bincount(column, a[row] * csr.values, len(columns)) for a in coefficients.T]
    ).astype(np.float32)
    owner, at = np.nonzero(total)
    return Rows(
        n_constraints,
        n_features,
        indptr=np.searchsorted(owner, np.arange(n_constraints + 1)).astype(np.int64),
        indices=columns[at].astype(np.int32),
        values=total[owner, at],
    )


def compressed_early(
    model: ModelParts,
    part: EarlyModel,
    sample: Sample,
    n_vectors: int,
    options: CompressOptions,
    threads: int,
    tell: Tell,
) -> EarlyModel:
    """Fit at most n_vectors landmarks, divided among the clusters.

    A cluster's share is proportional to its number of near rows, or of all rows if n_vectors is at
    least the total number of near rows.
    """
    partition = with_single_centers(part.partition)
    cluster = partition.assign(sample.wanted.rows, threads)
    n_clusters = partition.n_clusters
    counted = sample.near if n_vectors < np.count_nonzero(sample.near) else slice(None)
    sizes = shares(np.bincount(cluster[counted], minlength=n_clusters), n_vectors)
    ends = np.cumsum(np.bincount(cluster, minlength=n_clusters))
    members = np.split(group_order(cluster), ends[:-1])

    def compressed(c: int) -> tuple[np.ndarray, Landmarks]:
        rows = sample.take(members[c])
        if len(members[c]) == 0:
            return rows.class_, replace(_constant(model, rows), offset=-part.rho[c])
        return _landmarks(model, rows, int(sizes[c]), replace(options, seed=options.seed + c))

    found: list[tuple[np.ndarray, Landmarks]] = []
    with side_by_side(threads) as each:
        for one in each(compressed, range(n_clusters)):
            found.append(one)
            if tell is not None:
                tell(len(found), n_clusters)
    class_ = np.concatenate([classes for classes, _ in found]).astype(np.int32)
    coef = np.concatenate([landmarks.coefficients for _, landmarks in found])
    sizes = np.array([len(classes) for classes, _ in found])
    return EarlyModel(
        level=part.level,
        partition=partition,
        cluster=np.repeat(np.arange(n_clusters), sizes).astype(np.int32),
        class_=class_ if model.is_classifier else None,
        rows=stacked(*(landmarks.rows.as_floats() for _, landmarks in found)),
        dual_coef=_coefficients_by_line(coef, class_, model),
        rho=-np.array([landmarks.offset for _, landmarks in found]),
        row_numbers=np.arange(len(class_)),
    )


@contextmanager
def side_by_side(threads: int) -> Iterator[Map]:
    """Provide a map that uses several threads."""
    if threads == 1:
        yield map
        return
    from concurrent.futures import ThreadPoolExecutor  # slow to import, and used only here

    with ThreadPoolExecutor(threads) as pool:
        yield pool.map


def _landmarks(
    model: ModelParts,
    sample: Sample,
    n: int,
    options: CompressOptions,
    each: Map = map,
    tell: Tell = None,
) -> tuple[np.ndarray, Landmarks]:
    """Fit at most n landmarks to a sample; return their classes and the landmarks."""
    chosen = sample.starts(n, np.random.default_rng(options.seed))
    class_, wanted = sample.class_[chosen], sample.wanted
    if len(chosen) == 0:
        return class_, _constant(model, sample)
    used = np.ones((len(chosen), model.n_pairs), bool)
    if model.n_pairs > 1:
        used[:] = False
        np.put_along_axis(used, pairs_of_lines(class_, len(model.labels)), True, axis=1)
    found = fitted(
        model.kernel,
        wanted,
        wanted.rows.take(chosen),
        used,
        seed=options.seed,
        steps=options.steps,
        each=each,
        tell=tell,
    )
    is_known = wanted.weights.any(axis=0)
    return class_, replace(
        found,
        coefficients=np.where(is_known, found.coefficients, 0.0) * sample.scale,
        offset=np.where(is_known, found.offset, np.nan) * sample.scale,
    )


def _constant(model: ModelParts, sample: Sample) -> Landmarks:
    """Return an empty set of landmarks with the mean decision values as offset."""
    wanted = sample.wanted
    values = wanted.values.astype(np.float64)
    if wanted.by_sign:
        values = np.clip(values, -MAX_START, MAX_START)
    totals = wanted.weights.sum(axis=0, dtype=np.float64)
    with np.errstate(invalid="ignore"):
        mean = (values * wanted.weights).sum(axis=0) / totals * sample.scale
    none = np.zeros((0, model.n_pairs))
    return Landmarks(wanted.rows.take([]), none.astype(bool), none, mean)


def _coefficients_by_line(coef: np.ndarray, class_: np.ndarray, model: ModelParts) -> np.ndarray:
    """Convert coefficients (m, n_pairs) to LIBSVM's sv_coef (k - 1, m)."""
    if model.n_pairs > 1:
        coef = np.take_along_axis(coef, pairs_of_lines(class_, len(model.labels)), axis=1)
    return np.ascontiguousarray(coef.T)
