"""Values of rows by solutions that have not seen them: folds solved side by side over the same
rows, in which the rows a fold holds out have no variables.

Cross validation starts the folds from zero. Probabilities start five of them from the solution of
all rows, less what is held out.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from dcsvm.kernel.kernel_sums import weighted_sums
from dcsvm.model.parts import Probability
from dcsvm.problem.folds import FOLDS_FOR_PROBABILITY, Folds, shuffled_folds, stratified_folds
from dcsvm.problem.formulation import Formulation, in_folds, pairs_of
from dcsvm.solving.extraction import Division, check_margins, offset_and_margin, offsets_of_clusters
from dcsvm.solving.preparation import Prepared
from dcsvm.training.probability import fit_sigmoid, laplace_sigma

VALUES_AT_ONCE = 2**21


def folds_of(prepared: Prepared, n_folds: int) -> Folds:
    """Folds by the seed of the options: stratified for classes and shuffled otherwise."""
    given, weights = prepared.duplicates.given
    values, seed = prepared.task.values[given], prepared.options.seed
    if prepared.task.kind == "classification":
        fold = stratified_folds(prepared.task.labels[values], n_folds, seed)
    else:
        fold = shuffled_folds(len(values), n_folds, seed)
    return Folds.of(fold, prepared.row_of_given[given], weights)


def formulation_of_folds(prepared: Prepared, folds: Folds, some: Sequence[int]) -> Formulation:
    """The problems of some folds: of rows that they do not hold out."""
    copies = (folds.left(k) for k in some)
    return in_folds(prepared.task.formulate, prepared.values, copies)


def held_out_values(
    run, folds: Folds, some: Sequence[int], division: Division | None = None
) -> Iterator[tuple[slice, np.ndarray]]:
    """Decision values of what `some` folds hold out by the solutions of a run of those folds: a
    slice of the entries and their values float64 (m, n_pairs), until all have been.

    With a division each is that of the row's cluster alone. nan for a pair of classes of which a
    fold, or a cluster of it, has not both to learn from. Raises ValueError for a nu-SVC without
    margin.
    """
    place, n_clusters = run.group, 1
    if division is not None:
        n_clusters = division.partition.n_clusters
        place = run.group * n_clusters + division.cluster
    n_pairs = run.formulation.n_problems_of_fold
    number = run.formulation.number
    offset, margin = _offsets_and_margins(run, division)
    for k, fold in enumerate(some):
        pairs = slice(k * n_pairs, (k + 1) * n_pairs)
        support = run.formulation.variables_of_fold(k)
        support = support[run.alpha[support] != 0]
        rows, column = run.problem.rows[support], number[support] - k * n_pairs
        for entries in _blocks(folds.entries(fold), max(VALUES_AT_ONCE // n_pairs, 1)):
            targets = folds.row[entries]
            values = np.zeros((len(targets), n_pairs))
            for one in np.unique(place[targets]):
                own, other = place[targets] == one, place[rows] == one
                values[own] = weighted_sums(
                    run.data, targets[own], rows[other], column[other], run.alpha[support[other]],
                    n_pairs, run.reach, run.threads, float64=False, stop=run.stop
                )[0]  # fmt: skip
            cluster = place[targets] % n_clusters
            yield entries, (values - offset[cluster, pairs]) / margin[pairs]


def _offsets_and_margins(run, division: Division | None) -> tuple[np.ndarray, np.ndarray]:
    """rho (n_clusters, n_problems) and what the values of a problem are divided by."""
    ones = np.ones(run.formulation.n_problems)
    if division is not None:
        return offsets_of_clusters(run, division), ones
    found = [
        offset_and_margin(run, np.arange(part.start, part.stop))
        if part.start < part.stop
        else (np.nan, 1.0)
        for part in run.formulation.parts()
    ]
    rho, margin = np.array(found).T
    if run.options.svm_type != "nu_svc":
        return rho[None], ones
    check_margins(margin)
    return rho[None], margin


def _blocks(entries: slice, size: int) -> list[slice]:
    return [
        slice(begin, min(begin + size, entries.stop))
        for begin in range(entries.start, entries.stop, size)
    ]


def folds_for_probability(prepared: Prepared) -> Folds:
    n_given = len(prepared.duplicates.rows)
    return folds_of(prepared, min(FOLDS_FOR_PROBABILITY, n_given))


def alpha_without_held_out(run, folds: Folds, formulation: Formulation) -> np.ndarray:
    """Where all folds start from the solution of a run: what they hold out is taken back, and the
    sums are brought to what they are in each fold."""
    rows = run.problem.rows
    alpha = []
    for k in range(folds.n_folds):
        kept = folds.left(k)[rows] > 0
        sizes = np.diff(formulation.start)[k * run.formulation.n_problems :]
        kept &= sizes[run.formulation.number] > 0
        alpha.append(run.alpha[kept])
    problem = formulation.problem
    alpha = np.clip(np.concatenate(alpha), problem.lower, problem.upper)
    return formulation.with_sums(alpha)


def probability_of(run, folds: Folds) -> Probability:
    """What turns decision values into probabilities, by a run of all folds."""
    values = np.concatenate([v for _, v in held_out_values(run, folds, range(folds.n_folds))])
    truth = run.values[folds.row]
    if run.task.kind == "regression":
        return Probability(np.array([laplace_sigma(truth - values[:, 0], folds.copies)]), None)
    one_class = _values_of_one_class(folds, truth, run.task.n_classes)
    fits = []
    for pair, (first, second) in enumerate(pairs_of(run.task.n_classes)):
        own = np.flatnonzero((truth == first) | (truth == second))
        known = values[own, pair]
        known = np.where(np.isnan(known), one_class[folds.fold[own], first, second], known)
        fits.append(fit_sigmoid(known, truth[own] == first, folds.copies[own]))
    A, B = np.array(fits).T
    return Probability(A, B)


def _values_of_one_class(folds: Folds, classes: np.ndarray, n_classes: int) -> np.ndarray:
    """Decision values (n_folds, n_classes, n_classes) of pairs of which a fold has not both classes
    to learn from, as in LIBSVM: 1 for the first, -1 for the second, 0 where it has neither."""
    is_known = folds.learns(classes, n_classes).astype(np.float64)
    return is_known[:, :, None] - is_known[:, None, :]
