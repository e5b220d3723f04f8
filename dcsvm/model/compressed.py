"""A model with few landmarks in place of its support vectors; compress.py says how many.

The landmarks of an exact model are found for all rows, those of an early one cluster by cluster,
in a tree of single centers. They begin at rows near the border.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace

import numpy as np

from dcsvm.compression.landmarks import (
    LARGEST_START,
    Landmarks,
    Wanted,
    fitted,
    shares,
    with_single_centers,
)
from dcsvm.data.rows import Rows, stacked
from dcsvm.data.sorting import group_order
from dcsvm.model.pair_weights import PairWeights, most_voted, pairs_of_lines
from dcsvm.model.parts import EarlyModel, ExactModel, ModelParts
from dcsvm.problem.compress_options import CompressOptions

MARGIN = 1.01  # a decision value of support vectors, and what the tolerance may add
OTHER_PAIRS = 0.1  # what the pairs count that the label of a row does not depend on
Tell = Callable[[int, int], None] | None


@dataclass(frozen=True, eq=False)
class Sample:
    """Rows to fit landmarks to: what is `wanted` there, with decision values in units of `scale`,
    the `class_` (n,) that the model predicts, and whether each is `near` the border: some
    decision value that its label depends on is within the margin, as it is for support vectors."""

    wanted: Wanted
    class_: np.ndarray
    near: np.ndarray
    scale: float

    @staticmethod
    def of(model: ModelParts, rows: Rows, values: np.ndarray) -> Sample:
        """Of rows with these decision values (n, n_pairs) of the model, nan for none."""
        known = np.isfinite(values)
        filled, weights = np.where(known, values, 0.0), known.astype(np.float32)
        class_, near, scale = np.zeros(len(values), np.int32), np.ones(len(values), bool), 1.0
        if model.is_classifier:
            k = len(model.labels)
            class_ = most_voted(values, k).astype(np.int32)
            own = pairs_of_lines(class_, k)
            others = np.ones(values.shape, bool)
            np.put_along_axis(others, own, False, axis=1)
            weights[others] *= OTHER_PAIRS
            of_own = np.take_along_axis(np.where(known, np.abs(values), np.inf), own, axis=1)
            near = of_own.min(axis=1, initial=np.inf) <= MARGIN
        else:
            scale = float(values.std()) or 1.0
        by_sign = model.is_classifier or model.svm_type == "one_class"
        values = (filled / scale).astype(np.float32)
        return Sample(Wanted(rows, values, weights, by_sign), class_, near, scale)

    def take(self, numbers: np.ndarray) -> Sample:
        return replace(
            self,
            wanted=self.wanted.take(numbers),
            class_=self.class_[numbers],
            near=self.near[numbers],
        )

    def starts(self, n: int, rng: np.random.Generator) -> np.ndarray:
        """Numbers of n random rows, or of all, near ones before the others; class by class."""
        order = rng.permutation(len(self.near))
        order = order[np.argsort(~self.near[order], kind="stable")][:n]
        return order[np.lexsort((order, self.class_[order]))]


def compressed_exact(
    model: ModelParts, sample: Sample, n_vectors: int, options: CompressOptions, tell: Tell
) -> ExactModel:
    """At most n_vectors landmarks for all rows; of a linear kernel the vector of each pair, which
    changes nothing, where so many are allowed."""
    if model.kernel.type.is_linear and n_vectors >= model.n_pairs:
        return _summed_by_pairs(model)
    with side_by_side(options.threads) as each:
        class_, found = _landmarks(model, sample, n_vectors, options, each=each, tell=tell)
    n_sv = np.bincount(class_, minlength=len(model.labels)) if model.is_classifier else None
    coef = _coefficients_by_line(found.coefficients, class_, model)
    return ExactModel(found.rows, coef, -found.offset, n_sv, np.arange(len(class_)))


def _summed_by_pairs(model: ModelParts) -> ExactModel:
    """The vector of pair (i, j) is one of class i, with the coefficient 1 for class j alone."""
    part, n_pairs, k = model.exact, model.n_pairs, len(model.labels)
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
    """Float32 rows (p, d) in the same form, sum_i coefficients[i, k] rows[i], of coefficients
    float64 (n, p): with a linear kernel sum_i a_i x_i'x is (sum_i a_i x_i)'x."""
    n_sums = coefficients.shape[1]
    if rows.is_dense:
        total = np.zeros((n_sums, rows.n_features))
        for some in rows.slices():
            total += coefficients[some].T @ rows.part(some).as_floats().dense
        return Rows(n_sums, rows.n_features, dense=total.astype(np.float32))
    columns, place = np.unique(rows.indices, return_inverse=True)
    row = np.repeat(np.arange(rows.n_samples), np.diff(rows.indptr))
    total = np.stack(
        [np.bincount(place, one[row] * rows.values, len(columns)) for one in coefficients.T]
    ).astype(np.float32)
    owner, at = np.nonzero(total)
    return Rows(
        n_sums,
        rows.n_features,
        indptr=np.searchsorted(owner, np.arange(n_sums + 1)).astype(np.int64),
        indices=columns[at].astype(np.int32),
        values=total[owner, at],
    )


def compressed_early(
    model: ModelParts, sample: Sample, n_vectors: int, options: CompressOptions, tell: Tell
) -> EarlyModel:
    """At most n_vectors landmarks in all clusters together, by what is near in each."""
    part = model.early
    partition = with_single_centers(part.partition)
    cluster = partition.assign(sample.wanted.rows, options.threads)
    n_clusters = partition.n_clusters
    counted = sample.near if n_vectors < np.count_nonzero(sample.near) else slice(None)
    sizes = shares(np.bincount(cluster[counted], minlength=n_clusters), n_vectors)
    ends = np.cumsum(np.bincount(cluster, minlength=n_clusters))
    members = np.split(group_order(cluster), ends[:-1])

    def solved(c: int) -> tuple[np.ndarray, Landmarks]:
        own = sample.take(members[c])
        if len(members[c]) == 0:
            return own.class_, replace(_constant(model, own), offset=-part.rho[c])
        return _landmarks(model, own, int(sizes[c]), replace(options, seed=options.seed + c))

    found = []
    with side_by_side(options.threads) as each:
        for one in each(solved, range(n_clusters)):
            found.append(one)
            if tell is not None:
                tell(len(found), n_clusters)
    class_ = np.concatenate([own for own, _ in found]).astype(np.int32)
    coef = np.concatenate([one.coefficients for _, one in found])
    return EarlyModel(
        level=part.level,
        partition=partition,
        cluster=np.repeat(np.arange(n_clusters), [len(own) for own, _ in found]).astype(np.int32),
        class_=class_ if model.is_classifier else None,
        rows=stacked(*(one.rows.as_floats() for _, one in found)),
        dual_coef=_coefficients_by_line(coef, class_, model),
        rho=-np.array([one.offset for _, one in found]),
        row_numbers=np.arange(len(class_)),
    )


@contextmanager
def side_by_side(threads: int) -> Iterator[Callable]:
    """A map that so many threads share."""
    if threads == 1:
        yield map
        return
    from concurrent.futures import ThreadPoolExecutor  # slow to import, and used here alone

    with ThreadPoolExecutor(threads) as pool:
        yield pool.map


def _landmarks(
    model: ModelParts,
    sample: Sample,
    n: int,
    options: CompressOptions,
    *,
    each: Callable = map,
    tell: Tell = None,
) -> tuple[np.ndarray, Landmarks]:
    """The classes and the landmarks for the rows of a sample."""
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
    """No landmarks: the mean decision values."""
    wanted, n_pairs = sample.wanted, model.n_pairs
    values = wanted.values.astype(np.float64)
    if wanted.by_sign:
        values = np.clip(values, -LARGEST_START, LARGEST_START)
    totals = wanted.weights.sum(axis=0, dtype=np.float64)
    with np.errstate(invalid="ignore"):
        mean = (values * wanted.weights).sum(axis=0) / totals * sample.scale
    none = np.zeros((0, n_pairs))
    return Landmarks(wanted.rows.take([]), none.astype(bool), none, mean)


def _coefficients_by_line(coef: np.ndarray, class_: np.ndarray, model: ModelParts) -> np.ndarray:
    """LIBSVM's sv_coef (k - 1, m) of coefficients (m, n_pairs)."""
    if model.n_pairs > 1:
        coef = np.take_along_axis(coef, pairs_of_lines(class_, len(model.labels)), axis=1)
    return np.ascontiguousarray(coef.T)
