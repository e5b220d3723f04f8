"""Compress a model: landmarks in place of support vectors, as few as a loss or a size allows.

Landmarks are fitted to the decision values of the model, so rows need no labels. The loss is the
fraction of predicted labels that change, over all clusters of an early model. It is measured on
test rows, with the upper bound of Clopper and Pearson, which holds for any number of rows and
changes; a multiple of the standard error would be 0 where no label changes. Test rows must be new.
Training rows would underestimate the loss: labels change within the margin, which contains few
training rows but many new rows. So would the rows to fit to, which have chosen the landmarks.

The landmarks of an exact model are fitted on all rows. An early model has separate landmarks for
each cluster, and its tree of clusters has one center per cluster, unless these change too many
labels. Landmarks start at rows near the decision boundary, or stay at support vectors. Scaled,
weighted and encoded rows are those of the model.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple

import numpy as np

from dcsvm.data.arrays import group_order
from dcsvm.data.rows import Rows, stacked
from dcsvm.data.used_columns import part_among, part_repeated
from dcsvm.kernel.sources import Partition
from dcsvm.machine import usable_threads
from dcsvm.model.fit_loss import between, loss_of
from dcsvm.model.greedy import can_choose, greedy, kept
from dcsvm.model.landmarks import (
    CONFIDENCE,
    MAX_START,
    Fit,
    FitOptions,
    FitTarget,
    Map,
    fewest_rows,
    fitted,
    most_changed,
    moved_features,
    refined,
    shares,
    values_on_the_way,
    width_of,
    with_single_centers,
)
from dcsvm.model.parts import EarlyModel, ExactModel, ModelParts
from dcsvm.model.predict import pairs_of_lines
from dcsvm.model.rounding import roundings, shortest
from dcsvm.problem.option_table import OptionError
from dcsvm.problem.options import CompressOptions

MARGIN = 1.01  # largest |decision value| of a support vector: 1 plus a tolerance
OTHER_PAIRS = 0.1  # loss weight of the pairs that do not contain the predicted class
Tell = Callable[[int, int], None] | None


def fit_target(model: ModelParts, rows: Rows, values: np.ndarray) -> FitTarget:
    """Return rows and their decision values (n, n_pairs), nan for no vote, as a target to fit.

    A row is near the decision boundary if a decision value of a pair with the predicted class is
    within MARGIN.
    """
    known = np.isfinite(values)
    filled, weights = np.where(known, values, 0.0), known.astype(np.float32)
    class_, near, scale = np.zeros(len(values), np.int32), np.ones(len(values), bool), 1.0
    if model.is_classifier:
        class_ = model.most_voted(values).astype(np.int32)
        # pairs without the predicted class hardly change the vote
        pairs = pairs_of_lines(class_, len(model.labels))
        others = np.ones(values.shape, bool)
        np.put_along_axis(others, pairs, False, axis=1)
        weights[others] *= OTHER_PAIRS
        # near the boundary: a small value in a pair with the predicted class
        sizes = np.take_along_axis(np.where(known, np.abs(values), np.inf), pairs, axis=1)
        near = sizes.min(axis=1, initial=np.inf) <= MARGIN
    else:
        scale = float(values.std()) or 1.0
    by_sign = not model.is_regression
    values = (filled / scale).astype(np.float32)
    moved = moved_features(model.kernel, rows)
    return FitTarget(rows, values, weights, by_sign, class_, near, moved, scale)


def _summed_by_pairs(model: ModelParts, part: ExactModel) -> ExactModel:
    """Replace the support vectors of pair (i, j) by their weighted sum: class i, coefficient 1."""
    n_pairs, k = model.n_pairs, len(model.labels)
    owner, pair, coefficients = model.predictor("exact").entries()
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
    # dense sums, but only of the columns in use: rows may have millions of others
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


@contextmanager
def side_by_side(threads: int) -> Iterator[Map]:
    """Provide a map that uses several threads."""
    if threads == 1:
        yield map
        return
    from concurrent.futures import ThreadPoolExecutor  # slow to import, and used only here

    with ThreadPoolExecutor(threads) as pool:
        yield pool.map


def _constant(model: ModelParts, target: FitTarget) -> ExactModel:
    """Return a model without landmarks: its values are the mean decision values."""
    values = target.values.astype(np.float64)
    if target.by_sign:
        values = np.clip(values, -MAX_START, MAX_START)
    totals = target.weights.sum(axis=0, dtype=np.float64)
    with np.errstate(invalid="ignore"):
        mean = (values * target.weights).sum(axis=0) / totals * target.scale
    class_, coef = np.empty(0, np.int32), np.zeros((0, model.n_pairs))
    return _model_of_landmarks(model, class_, target.rows.take([]), coef, mean)


def _model_of_landmarks(
    model: ModelParts, class_: np.ndarray, rows: Rows, coef: np.ndarray, offset: np.ndarray
) -> ExactModel:
    """Return landmarks with coefficients (m, n_pairs) as a model, with LIBSVM's sv_coef."""
    if model.n_pairs > 1:
        coef = np.take_along_axis(coef, pairs_of_lines(class_, len(model.labels)), axis=1)
    n_sv = np.bincount(class_, minlength=len(model.labels)) if model.is_classifier else None
    numbers = np.arange(len(class_))
    return ExactModel(rows, shortest(coef.T), -shortest(offset), n_sv, numbers)


MAX_VALUES = 2**27  # features plus decision values, summed over the rows to fit
# Fraction of labels that single centers of clusters may change, on up to ROWS_OF_ROUTING rows.
MAX_REROUTED, ROWS_OF_ROUTING = 0.01, 20_000
MUCH_WORSE = 1.5  # ratio of losses; on phoneme 2.3 is not made up for, 1.1 is
# Features of two values are moved if the ratio of losses is less than MUCH_BETTER, and there are at
# most FEW_LANDMARKS landmarks for each feature: the file has more digits, but remains small.
MUCH_BETTER, FEW_LANDMARKS = 0.7, 2
# sizes tried to meet a loss, as fractions of the support vectors
TRIED = (*(2.0**-power for power in range(8, 0, -1)), 0.75)
# MAX_ROUNDED is the largest root mean square change of decision values by rounding landmarks, in
# units of the margin of a classifier. On MNIST with a tenth of the vectors, rounded to integers, it
# is 0.003, and no label changes. For a regression it is MAX_ROUNDED_ERROR times the error of the
# landmarks. At most ROWS_OF_ROUNDING rows are used to measure it.
MAX_ROUNDED, MAX_ROUNDED_ERROR, ROWS_OF_ROUNDING = 0.02, 0.1, 2000
# Where rows repeat, new rows equal known ones by chance, as often as known ones equal each other.
# SHARED is the fraction by which they may do so more often.
SHARED = 0.1


class Trial(NamedTuple):
    """A fit, its loss on new rows, and the classes of its landmarks."""

    loss: float
    fit: Fit
    class_: np.ndarray


@dataclass(frozen=True)
class CompressionReport:
    """Size and prediction cost before and after compression, and the changes of predictions.

    Attributes
    ----------
    vectors_before, vectors : int
        Number of support vectors, before and after.
    values_before, values : float
        Mean number of kernel evaluations to predict a row, before and after.
    n_test : int
        Number of test rows. If it is 0, the attributes below are None.
    changed : float or None
        Fraction of the test rows whose predicted label changes; None for regression.
    changed_at_most : float or None
        Upper bound, with 95 % confidence, on the probability that the label of a new row changes;
        None for regression.
    error : float or None
        Root mean square change of the predicted values of a regression, else None.
    """

    vectors_before: int
    vectors: int
    values_before: float
    values: float
    n_test: int = 0
    changed: float | None = None
    changed_at_most: float | None = None
    error: float | None = None

    def lines(self) -> Iterator[str]:
        """Yield lines on the size of the new model and the changes of its predictions."""
        ratio = self.values_before / max(self.values, 1)
        yield (
            f"{self.vectors} of {self.vectors_before} vectors; {self.values:.0f} kernel "
            f"evaluations per row, {ratio:.3g} times fewer"
        )
        if self.changed is not None and self.changed_at_most is not None:
            yield (
                f"labels changed: {100 * self.changed:.3g} % of {self.n_test} test rows, at most "
                f"{100 * self.changed_at_most:.3g} % with {100 * CONFIDENCE:g} % confidence"
            )
        if self.error is not None:
            yield f"root mean squared change of values: {self.error:.3g} (test rows)"


def compress(
    model: ModelParts,
    rows: Rows | None,
    test: Rows | None,
    options: CompressOptions,
    tell: Tell = None,
) -> tuple[ModelParts, CompressionReport]:
    """Replace the support vectors of one part of a model by landmarks, and drop the other part.

    Landmarks are fitted on `rows`, or on the support vectors if it is None. `tell(done, total)`
    reports progress. Raises ValueError if the model cannot be compressed, or if rows or options do
    not suit it.
    """
    part = model.part(options.method)
    if model.kernel.is_precomputed:
        raise ValueError("a model of a precomputed kernel cannot be compressed: it has no vectors")
    if part.rows.n_samples < 2:
        raise ValueError(f"a model must have 2 support vectors or more, got {part.rows.n_samples}")
    for name, given in (("rows to fit to", rows), ("test rows", test)):
        if given is not None and given.n_samples == 0:
            raise ValueError(f"there are no {name}")
    if test is not None:
        _check_new(test, part.rows, rows)
    if options.loss is not None:
        _check_loss(model, test, options.loss)
    compression = Compressor(model, part, rows, test, options, tell)
    return compression.by_size() if options.loss is None else compression.by_loss(options.loss)


def _check_new(test: Rows, vectors: Rows, rows: Rows | None) -> None:
    """Raise ValueError if test rows are training rows, or rows to fit to, more than by chance.

    Labels of these rows change less than those of new rows.
    """
    share = part_among(vectors, test)
    if share > max(0.5, _repeated_by_chance(test, vectors.n_samples)):
        raise ValueError(
            "the test rows include most of the support vectors: give rows that the model was not "
            "trained on"
        )
    if rows is None:
        return
    share = part_among(test, rows)
    if share > _repeated_by_chance(rows, test.n_samples):
        raise ValueError(
            f"{100 * share:.0f} % of the test rows are among the rows to fit to: give test rows "
            "that no landmark was fitted to"
        )


def _repeated_by_chance(rows: Rows, n: int) -> float:
    """Return the largest likely fraction of n new rows that are among `rows`."""
    return part_repeated(rows) + SHARED + 2 / n**0.5


def _check_loss(model: ModelParts, test: Rows | None, loss: float) -> None:
    """Raise ValueError if the loss cannot be measured."""
    if model.is_regression:
        raise OptionError("loss", "requires a classifier")
    if test is None:
        raise OptionError("loss", "requires test rows, which the model has not seen")
    needed = fewest_rows(loss / 100, len(TRIED))
    if test.n_samples < needed:
        reason = f"of {loss:g} % requires at least {needed} test rows, got {test.n_samples}"
        raise OptionError("loss", reason)


class Compressor:
    """A part of a model, the target that landmarks are fitted to, and the test rows."""

    def __init__(
        self,
        model: ModelParts,
        part: ExactModel | EarlyModel,
        rows: Rows | None,
        test: Rows | None,
        options: CompressOptions,
        tell: Tell,
    ):
        self.options, self.tell, self.threads = options, tell, usable_threads(options.threads)
        width = max(part.rows.n_features, 0 if rows is None else rows.n_features)
        self.part = part.with_features(width)
        self.model = model.with_only(self.part)
        rows = self.part.rows if rows is None else self.sampled(rows)
        rows = rows.with_features(width).in_form_of(self.part.rows, self.threads)
        self.target = fit_target(self.model, rows, self.values(self.model, rows))
        self.before = values_of_row(self.model, rows, self.threads)
        self.test = test
        self.are_codes_moved = False  # features of two values were moved
        self.expected = None if test is None else self.predictions(self.model, test)

    def sampled(self, rows: Rows) -> Rows:
        """Return the rows, or a random sample if they exceed MAX_VALUES."""
        most = max(MAX_VALUES // (rows.row_size + self.model.n_pairs), 1)
        if rows.n_samples <= most:
            return rows
        rng = np.random.default_rng(self.options.seed)
        return rows.take(np.sort(rng.choice(rows.n_samples, most, replace=False)))

    def values(self, model: ModelParts, rows: Rows) -> np.ndarray:
        return model.pair_values(rows, None, self.threads)

    def predictions(self, model: ModelParts, rows: Rows) -> np.ndarray:
        return model.predicted_from(self.values(model, rows))

    def by_size(self) -> tuple[ModelParts, CompressionReport]:
        n_sv, n_vectors = self.part.rows.n_samples, self.options.vectors
        if n_vectors is None:
            assert self.options.times is not None  # one of vectors, times and loss is given
            n_vectors = self.vectors_of_times(self.options.times)
        if n_vectors >= n_sv:
            reason = f"must be below the number of support vectors, {n_sv}, got {n_vectors}"
            raise OptionError("vectors", reason)
        return self.tried(n_vectors, 1)

    def vectors_of_times(self, times: float) -> int:
        """Return the number of vectors that divides kernel evaluations per row by `times`."""
        target, n_sv = self.before / times, self.part.rows.n_samples
        # an exact model takes a kernel value per vector
        if isinstance(self.part, ExactModel):
            n_vectors, most = int(target), float(self.before)
        else:
            # an early model takes some more to assign a row to its cluster
            routing, others = early_values_of_row(
                self.part, self.target.rows, self.threads, single_centers=True
            )
            if target <= routing:
                raise OptionError(
                    "times",
                    f"must be below {self.before / routing:.3g}, got {times:g}: "
                    f"it takes {routing:.0f} kernel values to assign a row to its cluster",
                )
            n_vectors = min(int((target - routing) / others * n_sv), n_sv - 1)
            most = self.before / (routing + others / n_sv)  # a single vector
        if n_vectors < 1:
            reason = f"must be at most {most:.3g}, got {times:g}: no vector is left"
            raise OptionError("times", reason)
        return n_vectors

    def by_loss(self, loss: float) -> tuple[ModelParts, CompressionReport]:
        """Return the smallest model tried whose loss bound is at most `loss` percent."""
        n_sv, best = self.part.rows.n_samples, 1.0
        for size in sorted({int(part * n_sv) for part in TRIED} - {0}):
            model, report = self.tried(size, len(TRIED))
            assert report.changed_at_most is not None  # a classifier has it with test rows
            if 100 * report.changed_at_most <= loss:
                return model, report
            best = min(best, report.changed_at_most)
        raise OptionError(
            "loss",
            f"of {loss:g} % requires more than three quarters of the {n_sv} support vectors: with "
            f"fewer up to {100 * best:.3g} % of the labels may change",
        )

    def tried(self, n_vectors: int, n_trials: int) -> tuple[ModelParts, CompressionReport]:
        """Fit and test landmarks; the loss bounds of n_trials calls hold simultaneously."""
        part: ExactModel | EarlyModel
        if isinstance(self.part, ExactModel):
            part = self.exact_landmarks(self.part, n_vectors)
        else:
            part = self.early_landmarks(self.part, n_vectors)
        part = self.rounded(part)
        model = self.model.with_only(part)
        report = CompressionReport(
            vectors_before=self.part.rows.n_samples,
            vectors=part.rows.n_samples,
            values_before=self.before,
            values=values_of_row(model, self.target.rows, self.threads),
        )
        return model, self.with_loss(report, model, n_trials)

    def exact_landmarks(self, part: ExactModel, n_vectors: int) -> ExactModel:
        """Fit at most n_vectors landmarks to all rows.

        With a linear kernel and n_vectors >= n_pairs, one vector per pair is exact and is used
        instead.
        """
        if self.model.kernel.type.is_linear and n_vectors >= self.model.n_pairs:
            return _summed_by_pairs(self.model, part)
        vectors = np.arange(part.rows.n_samples)
        with side_by_side(self.threads) as each:
            return self.landmarks(
                self.target, n_vectors, vectors, self.options.seed, each, self.tell
            )

    def early_landmarks(self, part: EarlyModel, n_vectors: int) -> EarlyModel:
        """Fit at most n_vectors landmarks, divided among the clusters.

        A cluster's share is proportional to its number of near rows, or of all rows if n_vectors is
        at least the total number of near rows.
        """
        target, partition = self.target, self.clusters(part)
        cluster, n_clusters = partition.assign(target.rows, self.threads), partition.n_clusters
        # divide the vectors among the clusters
        counted = target.near if n_vectors < np.count_nonzero(target.near) else slice(None)
        sizes = shares(np.bincount(cluster[counted], minlength=n_clusters), n_vectors)
        # the rows of each cluster
        ends = np.cumsum(np.bincount(cluster, minlength=n_clusters))
        members = np.split(group_order(cluster), ends[:-1])

        def landmarks_of(c: int) -> ExactModel:
            own = target.take(members[c])
            if len(members[c]) == 0:
                return replace(_constant(self.model, own), rho=part.rho[c])
            vectors = np.flatnonzero(part.cluster == c)
            return self.landmarks(own, int(sizes[c]), vectors, self.options.seed + c)

        _ = self.own_sums  # before several threads need them
        # fit the clusters, several at a time, and join their landmarks
        local_models: list[ExactModel] = []
        with side_by_side(self.threads) as each:
            for local_model in each(landmarks_of, range(n_clusters)):
                local_models.append(local_model)
                if self.tell is not None:
                    self.tell(len(local_models), n_clusters)
        sizes = np.array([model.rows.n_samples for model in local_models])
        classes = [model.class_ for model in local_models if model.class_ is not None]
        return EarlyModel(
            level=part.level,
            partition=partition,
            cluster=np.repeat(np.arange(n_clusters), sizes).astype(np.int32),
            class_=np.concatenate(classes).astype(np.int32) if classes else None,
            rows=stacked(*(model.rows.as_floats() for model in local_models)),
            dual_coef=np.concatenate([model.dual_coef for model in local_models], axis=1),
            rho=np.array([model.rho for model in local_models]),
            row_numbers=np.arange(sizes.sum()),
        )

    def clusters(self, part: EarlyModel) -> Partition:
        """Return clusters without overlap, with single centers unless too many labels change.

        The fewest kernel evaluations are those with single centers.
        """
        single = with_single_centers(part.partition)
        if self.options.times is not None or self.model.is_regression:
            return single
        n = self.target.rows.n_samples
        rows = self.target.rows.take(np.arange(0, n, -(-n // ROWS_OF_ROUTING)))
        before, after = (
            self.predictions(self.model.with_only(replace(part, partition=one)), rows)
            for one in (part.partition, single)
        )
        if np.mean(before != after) <= MAX_REROUTED:
            return single
        return replace(part.partition, blend=0.0)

    def landmarks(
        self,
        target: FitTarget,
        n: int,
        vectors: np.ndarray,
        seed: int,
        each: Map = map,
        tell: Tell = None,
    ) -> ExactModel:
        """Fit at most n landmarks to a target, which some support vectors of the part predict.

        Landmarks that move are best where few are enough. Where many are needed, some of the
        vectors represent the others better. Both are fitted, and the better fit on other rows is
        taken.
        """
        model, rng = self.model, np.random.default_rng(seed)
        chosen = target.starts(n, rng)
        if len(chosen) == 0:
            return _constant(model, target)
        options = FitOptions(seed, self.options.steps, each, tell)
        class_, start = target.class_[chosen], target.rows.take(chosen)
        used = self.used_coefficients(class_)
        fit = fitted(model.kernel, target, start, used, options)
        # other fits, compared with this one
        is_small = isinstance(self.part, ExactModel) and n <= FEW_LANDMARKS * start.n_features
        has_codes = target.rows.is_dense and len(target.moved) < start.n_features
        may_stay = can_choose(model.kernel, len(vectors), n)
        if may_stay or (is_small and has_codes):
            compared = self.compared(target, rng)

            def trial(fit: Fit, class_: np.ndarray) -> Trial:
                return Trial(loss_of(model.kernel, compared, fit), fit, class_)

            best = moved = trial(fit, class_)
            if may_stay:
                best = self.of_vectors(best, trial, target, vectors, n, options)
            if best is moved and is_small and has_codes:
                free = replace(target, moved=np.arange(start.n_features))
                moved = trial(fitted(model.kernel, free, start, used, options), class_)
                if moved.loss < MUCH_BETTER * best.loss:
                    best, self.are_codes_moved = moved, True
            fit, class_ = best.fit, best.class_
        rows, coef, offset = fit
        # a pair that no row votes in has no model
        is_known = target.weights.any(axis=0)
        coef = np.where(is_known, coef, 0.0) * target.scale
        offset = np.where(is_known, offset, np.nan) * target.scale
        return _model_of_landmarks(model, class_, rows, coef, offset)

    def of_vectors(
        self,
        best: Trial,
        trial: Callable[[Fit, np.ndarray], Trial],
        target: FitTarget,
        vectors: np.ndarray,
        n: int,
        options: FitOptions,
    ) -> Trial:
        """Return the best trial, or a better one whose landmarks are support vectors.

        Support vectors that are much worse as they are remain so if they are moved.
        """
        kernel = self.model.kernel
        class_, rows, sums = self.represented(vectors, n)
        if len(class_) == 0:
            return best
        used = self.used_coefficients(class_)
        own = trial(kept(kernel, target, rows, sums / target.scale, used, options), class_)
        if own.loss > MUCH_WORSE * best.loss:
            return best
        more = trial(refined(kernel, target, own.fit, used, options), class_)
        return min(best, own, more, key=lambda one: one.loss)

    def compared(self, target: FitTarget, rng: np.random.Generator) -> FitTarget:
        """Return rows to compare fits on: new ones, as fits are too close to the rows of a target.

        New rows would have too many features if rows are sparse.
        """
        if not target.rows.is_dense:
            return target
        rows = between(self.model.kernel, target, rng).in_form_of(self.part.rows, 1)
        new = fit_target(self.model, rows, self.model.pair_values(rows, None, 1))
        return replace(new, values=new.values * np.float32(new.scale / target.scale))

    def used_coefficients(self, class_: np.ndarray) -> np.ndarray:
        """Mark the coefficients for pairs with a landmark's class, bool (m, n_pairs)."""
        used = np.ones((len(class_), self.model.n_pairs), bool)
        if self.model.n_pairs > 1:
            used[:] = False
            pairs = pairs_of_lines(class_, len(self.model.labels))
            np.put_along_axis(used, pairs, True, axis=1)
        return used

    def represented(self, vectors: np.ndarray, n: int) -> tuple[np.ndarray, Rows, np.ndarray]:
        """Choose at most n support vectors that represent the others: classes, rows and sums."""
        kernel = self.model.kernel
        chosen = greedy(kernel, self.part.rows.take(vectors), self.own_sums[vectors], n)
        vectors = vectors[chosen]
        vectors = vectors[np.argsort(self.own_class[vectors], kind="stable")]
        return self.own_class[vectors], self.part.rows.take(vectors), self.own_sums[vectors]

    @cached_property
    def own_sums(self) -> np.ndarray:
        """Kernel sums of the support vectors, float64 (n_sv, n_pairs)."""
        predictor = self.model.predictor(self.options.method)
        return predictor.sums(np.arange(self.part.rows.n_samples, dtype=np.int32))

    @cached_property
    def own_class(self) -> np.ndarray:
        """Predicted class of the support vectors, int32 (n_sv,); 0 without classes."""
        if not self.model.is_classifier:
            return np.zeros(len(self.own_sums), np.int32)
        rho = self.part.rho
        own_rho = rho if isinstance(self.part, ExactModel) else rho[self.part.cluster]
        return self.model.most_voted(self.own_sums - own_rho).astype(np.int32)

    def rounded(self, part: ExactModel | EarlyModel) -> ExactModel | EarlyModel:
        """Round dense landmarks if decision values hardly change."""
        kernel, target = self.model.kernel, self.target
        if kernel.type.is_linear or not part.rows.is_dense or part.rows.n_samples == 0:
            return part
        n = target.rows.n_samples
        chosen = np.arange(0, n, -(-n // ROWS_OF_ROUNDING))
        rows = target.rows.take(chosen)
        before = self.values(self.model.with_only(part), rows) / target.scale
        limit = MAX_ROUNDED
        if not target.by_sign:
            limit = MAX_ROUNDED_ERROR * _root_mean_square(before - target.values[chosen])
        moved = np.arange(rows.n_features) if self.are_codes_moved else target.moved
        width = width_of(kernel, rows, len(moved))
        are_for_bytes = self.part.rows.is_bytes
        for vectors in roundings(kernel, part.rows, moved, width, are_for_bytes=are_for_bytes):
            short = replace(part, rows=vectors)
            values = self.values(self.model.with_only(short), rows) / target.scale
            if _root_mean_square(values - before) <= limit:
                return short
        return part

    def with_loss(
        self, report: CompressionReport, model: ModelParts, n_trials: int
    ) -> CompressionReport:
        """Add the changes of predictions on the test rows, if any."""
        if self.test is None or self.expected is None:
            return report
        predicted, n = self.predictions(model, self.test), len(self.expected)
        report = replace(report, n_test=n)
        if model.is_regression:
            return replace(report, error=float(np.sqrt(np.mean((predicted - self.expected) ** 2))))
        n_changed = int(np.count_nonzero(predicted != self.expected))
        bound = most_changed(n_changed, n, n_trials)
        return replace(report, changed=n_changed / n, changed_at_most=bound)


def _root_mean_square(changes: np.ndarray) -> float:
    """Return the root of the mean square of changes, without nan; nan if all are."""
    known = changes[~np.isnan(changes)]
    return float(np.sqrt(np.mean(known**2))) if len(known) else np.nan


def values_of_row(model: ModelParts, rows: Rows, threads: int) -> float:
    """Return the mean number of kernel evaluations to predict one of the rows."""
    part = model.part()
    if isinstance(part, ExactModel):
        return float(part.rows.n_samples)
    return float(sum(early_values_of_row(part, rows, threads)))


def early_values_of_row(
    part: EarlyModel, rows: Rows, threads: int, *, single_centers: bool = False
) -> tuple[float, float]:
    """Return the mean kernel evaluations per row with centers, and with support vectors.

    With overlap, a row near a cluster boundary is assigned to the clusters on both sides.
    `single_centers` counts one center per cluster, as in a compressed model.
    """
    part = part.with_features(max(rows.n_features, part.rows.n_features))
    rows = rows.with_features(part.rows.n_features).in_form_of(part.rows, threads)
    if single_centers:
        part = replace(part, partition=with_single_centers(part.partition))
    blend = part.partition.blend
    placed = part.partition.place(rows, threads, second=blend > 0)
    routing = values_on_the_way(part.partition)[placed.nearest].mean()
    sizes = np.bincount(part.cluster, minlength=part.partition.n_clusters)
    n_vectors = sizes[placed.nearest].astype(np.float64)
    second = placed.across(np.arange(rows.n_samples))
    is_blended = (placed.shares(blend) < 1) & (second >= 0)
    n_vectors[is_blended] += sizes[second[is_blended]]
    return float(routing * (2 if blend > 0 else 1)), float(n_vectors.mean())
