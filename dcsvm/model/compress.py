"""Fewer vectors for a model: how many, and what they are worth.

Landmarks are fitted to the decision values of the model, not to labels, so rows need none. What
they are worth is the part of the labels that change, counted on test rows, with the bound of
Clopper and Pearson. Rows that the model was trained on cannot say it: hardly any of them is within
the margin, where labels change, and of other rows many are.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from dcsvm.compression.landmarks import (
    fewest_rows,
    in_steps,
    most_changed,
    values_on_the_way,
    with_single_centers,
)
from dcsvm.data.advice import part_among
from dcsvm.data.rows import Rows
from dcsvm.model.compressed import Sample, compressed_early, compressed_exact
from dcsvm.model.parts import EarlyModel, ModelParts
from dcsvm.model.predict import decision_values, predicted_from
from dcsvm.problem.compress_options import CompressOptions
from dcsvm.problem.option_rules import REGRESSIONS, OptionError

MOST_VALUES = 2**27  # of the rows that landmarks are fitted to, and their decision values
# with a loss sizes from 2^-8 of the support vectors on are tried, each twice the one before
SMALLEST_TRIED = 8
# What evenly spaced landmarks may change of decision values, in the mean of some rows, in margins.
# With a tenth of the vectors of MNIST's ten classes it is 0.003, and no label.
MOST_STEPPED, ROWS_OF_STEPS = 0.02, 2000


@dataclass(frozen=True)
class CompressionReport:
    """What compression did: numbers of vectors, and kernel values of a row on average, before and
    after. Of `n_test` rows the part `changed` has another label, and with CONFIDENCE of all such
    rows at most `changed_at_most`; of a regression both are None, and `error` is the root mean
    squared change of the values. All are None without test rows."""

    vectors_before: int
    vectors: int
    values_before: float
    values: float
    n_test: int = 0
    changed: float | None = None
    changed_at_most: float | None = None
    error: float | None = None


def compress(
    model: ModelParts,
    rows: Rows | None,
    test: Rows | None,
    options: CompressOptions,
    tell: Callable[[int, int], None] | None = None,
) -> tuple[ModelParts, CompressionReport]:
    """The model with landmarks in place of the support vectors of one part, without the other one,
    fitted on rows, None for the support vectors, and what it is worth on test rows, if any.

    `tell(done, of)` is told how far it is. Raises ValueError for a model or rows that it cannot be
    done for.
    """
    method = options.method or ("exact" if model.exact else "early")
    _check_model(model, method)
    for name, given in (("rows to fit to", rows), ("test rows", test)):
        if given is not None and given.n_samples == 0:
            raise ValueError(f"there are no {name}")
    one = replace(model, **{"early" if method == "exact" else "exact": None})
    if test is not None:
        _check_unseen(one, test)
    _check_loss(one, test, options)
    compression = _Compression(one, rows, test, options, tell)
    return compression.by_loss() if options.loss is not None else compression.by_size()


def _check_model(model: ModelParts, method: str) -> None:
    part = getattr(model, method)
    if part is None:
        lack = "exact solution" if method == "exact" else "early level"
        raise ValueError(f"the model has no {lack} to compress")
    if model.kernel.is_precomputed:
        raise ValueError("a model of a precomputed kernel cannot be compressed: it has no vectors")
    if model.kernel.type.slopes is None:
        raise ValueError(f"a model of the kernel {model.kernel.name} cannot be compressed")
    n_sv = part.rows.n_samples
    if n_sv < 2:
        raise ValueError(f"the model cannot be compressed: its support vectors are {n_sv}")


def _check_unseen(model: ModelParts, test: Rows) -> None:
    part = model.exact or model.early
    if part_among(part.rows, test) > 0.5:
        raise ValueError(
            "the test rows have most of the support vectors among them: rows that the model was "
            "trained on do not say how it does on others"
        )


def _check_loss(model: ModelParts, test: Rows | None, options: CompressOptions) -> None:
    """Raise ValueError for a loss that cannot be stated."""
    if options.loss is None:
        return
    if model.svm_type in REGRESSIONS:
        raise OptionError("loss", "is of labels, which a regression has none of")
    if test is None:
        raise OptionError("loss", "is stated on test rows: give some the model has not seen")
    needed = fewest_rows(options.loss / 100, SMALLEST_TRIED)
    if test.n_samples < needed:
        raise OptionError(
            "loss",
            f"of {options.loss:g} % cannot be stated on {test.n_samples} test rows: "
            f"that takes at least {needed}",
        )


class _Compression:
    """A compression of a model of one part."""

    def __init__(self, model: ModelParts, rows: Rows | None, test: Rows | None, options, tell):
        self.options, self.tell, self.test = options, tell, test
        self.method = "exact" if model.exact else "early"
        part = model.exact or model.early
        width = max(one.n_features for one in (part.rows, rows or part.rows))
        self.part = part.with_features(width)
        self.model = model = replace(model, **{self.method: self.part})
        rows = self.part.rows if rows is None else self.some_of(rows)
        rows = rows.with_features(width).in_form_of(self.part.rows, options.threads)
        self.sample = Sample.of(model, rows, self.values(model, rows))
        self.before = values_of_row(model, rows, options.threads)
        if test is not None:
            self.expected = predicted_from(model, self.values(model, test))

    def some_of(self, rows: Rows) -> Rows:
        """Random rows, as many as may be kept in float32."""
        most = max(MOST_VALUES // (rows.row_size + self.model.n_pairs), 1)
        if rows.n_samples <= most:
            return rows
        rng = np.random.default_rng(self.options.seed)
        return rows.take(np.sort(rng.choice(rows.n_samples, most, replace=False)))

    def values(self, model: ModelParts, rows: Rows) -> np.ndarray:
        return decision_values(model, rows, self.method, self.options.threads)

    def by_size(self) -> tuple[ModelParts, CompressionReport]:
        n_sv = self.part.rows.n_samples
        n_vectors = self.options.vectors or self.vectors_of_times(self.options.times)
        if n_vectors >= n_sv:
            raise OptionError("vectors", f"must be below the {n_sv} of the model, not {n_vectors}")
        return self.tried(n_vectors, 1)

    def vectors_of_times(self, times: float) -> int:
        wanted, n_sv = self.before / times, self.part.rows.n_samples
        if self.method == "exact":
            n_vectors = int(wanted)
        else:
            routing, others = early_values_of_row(
                self.part, self.sample.wanted.rows, self.options.threads, single_centers=True
            )
            if wanted <= routing:
                raise OptionError(
                    "times",
                    f"must be below {self.before / routing:.3g}, not {times:g}: "
                    f"a row takes {routing:.0f} kernel values to find its cluster alone",
                )
            n_vectors = min(int((wanted - routing) / others * n_sv), n_sv - 1)
        if n_vectors < 1:
            raise OptionError("times", f"{times:g} leaves none of {n_sv} vectors")
        return n_vectors

    def by_loss(self) -> tuple[ModelParts, CompressionReport]:
        """The smallest of some sizes that keeps the loss. Each has its share of the doubt."""
        n_sv, best = self.part.rows.n_samples, 1.0
        for power in range(min(SMALLEST_TRIED, n_sv.bit_length() - 1), 0, -1):
            model, report = self.tried(n_sv >> power, SMALLEST_TRIED)
            if 100 * report.changed_at_most <= self.options.loss:
                return model, report
            best = min(best, report.changed_at_most)
        raise OptionError(
            "loss",
            f"of {self.options.loss:g} % is not kept by half of the {n_sv} support vectors or "
            f"fewer: at best {100 * best:.3g} % of the labels may change",
        )

    def tried(self, n_vectors: int, n_trials: int) -> tuple[ModelParts, CompressionReport]:
        """Landmarks, and what they are worth as one of so many trials."""
        make = compressed_exact if self.method == "exact" else compressed_early
        part = make(self.model, self.sample, n_vectors, self.options, self.tell)
        model = self.in_steps(replace(self.model, **{self.method: part}))
        part = getattr(model, self.method)
        report = CompressionReport(
            vectors_before=self.part.rows.n_samples,
            vectors=part.rows.n_samples,
            values_before=self.before,
            values=values_of_row(model, self.sample.wanted.rows, self.options.threads),
        )
        return model, report if self.test is None else self.stated(model, report, n_trials)

    def in_steps(self, model: ModelParts) -> ModelParts:
        """Landmarks of rows of bytes as evenly spaced integers, where values hardly change."""
        part, rows = getattr(model, self.method), self.sample.wanted.rows
        is_of_bytes = model.kernel.type.fall and self.part.rows.is_bytes
        vectors = in_steps(part.rows) if is_of_bytes else None
        if vectors is None:
            return model
        stepped = replace(model, **{self.method: replace(part, rows=vectors)})
        some = rows.take(np.arange(0, rows.n_samples, -(-rows.n_samples // ROWS_OF_STEPS)))
        change = (self.values(stepped, some) - self.values(model, some)) / self.sample.scale
        return stepped if np.sqrt(np.nanmean(change**2)) <= MOST_STEPPED else model

    def stated(
        self, model: ModelParts, report: CompressionReport, n_trials: int
    ) -> CompressionReport:
        found, n = predicted_from(model, self.values(model, self.test)), len(self.expected)
        report = replace(report, n_test=n)
        if model.svm_type in REGRESSIONS:
            return replace(report, error=float(np.sqrt(np.mean((found - self.expected) ** 2))))
        n_changed = int(np.count_nonzero(found != self.expected))
        bound = most_changed(n_changed, n, n_trials)
        return replace(report, changed=n_changed / n, changed_at_most=bound)


def values_of_row(model: ModelParts, rows: Rows, threads: int) -> float:
    """Kernel values that predicting one of these rows takes on average: with the support vectors it
    meets, and with the centers on the way to its cluster."""
    if model.exact is not None:
        return float(model.exact.rows.n_samples)
    return sum(early_values_of_row(model.early, rows, threads))


def early_values_of_row(
    part: EarlyModel, rows: Rows, threads: int, *, single_centers: bool = False
) -> tuple[float, float]:
    """Kernel values to find the cluster of a row, and those with its support vectors, on average.
    Near a border a row goes down on both sides."""
    part = part.with_features(max(rows.n_features, part.rows.n_features))
    rows = rows.with_features(part.rows.n_features).in_form_of(part.rows, threads)
    if single_centers:
        part = replace(part, partition=with_single_centers(part.partition))
    blend = part.partition.blend
    placed = part.partition.place(rows, threads, second=blend > 0)
    routing = values_on_the_way(part.partition)[placed.nearest].mean()
    sizes = np.bincount(part.cluster, minlength=part.partition.n_clusters)
    own = sizes[placed.nearest].astype(np.float64)
    second = placed.across(np.arange(rows.n_samples))
    is_blended = (placed.shares(blend) < 1) & (second >= 0)
    own[is_blended] += sizes[second[is_blended]]
    return float(routing * (2 if blend > 0 else 1)), float(own.mean())
