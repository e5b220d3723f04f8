"""Choose nu and gamma of a one-class model, without labels, by the stability of its boundary.

Two models are trained on different rows; both decide on held-out rows. For each nu, gamma is the
largest one that is consistent: the share of held-out rows that are outside is not larger than nu,
up to two standard errors (Tax and Müller, "A consistency-based model selection for one-class
classification", ICPR 2004). A larger gamma has a tighter boundary, but rejects rows because they
were not trained. Of these, the nu is chosen whose two models agree best on what is outside, by
Cohen's kappa, which is 0 for agreement by chance and 1 for equal decisions. The share of new rows
outside is then estimated by cross-validation.
"""

from __future__ import annotations

import math
import time
from dataclasses import dataclass, field, replace

import numpy as np

from dcsvm import _core
from dcsvm.data.dataset import Dataset
from dcsvm.problem.options import TrainOptions
from dcsvm.selection.costs import Costs
from dcsvm.selection.trials import Clock
from dcsvm.training.report import Progress
from dcsvm.training.scores import held_out

NUS = (0.01, 0.02, 0.05, 0.1, 0.2)
GAMMAS = (1 / 9, 1 / 3, 1.0, 3.0, 9.0, 27.0)  # in units of 1/median
MAX_ROWS = 6000  # a sample: two parts of 2/5 are trained, 1/5 is held out
N_DIVISIONS = 3  # of the rows into these parts
N_FOLDS = 5  # of the estimate at the end
LEAST_ROWS = 20
LIMIT = 2.0  # standard errors of the share outside
SHARE_OF_SEARCH, SHARE_OF_FIGURE = 0.6, 0.8  # of the time limit, at their ends


@dataclass(frozen=True)
class Boundary:
    """A setting with the share of held-out rows outside, its error, and the agreement.

    `costs` has the seconds of its trainings by `setting`; `is_incomplete` says that time ended
    before all settings were scored.
    """

    options: TrainOptions
    outside: float
    error: float
    n_held: int
    kappa: float
    costs: Costs = field(default_factory=Costs, compare=False)
    is_incomplete: bool = False

    @property
    def setting(self) -> tuple[float, str]:
        return self.options.nu, str(self.options.gamma)

    @property
    def is_consistent(self) -> bool:
        nu = self.options.nu
        return self.outside <= nu + LIMIT * math.sqrt(nu * (1.0 - nu) / self.n_held)


class BoundarySearch:
    """Scores settings on a sample of scaled rows while there is time."""

    def __init__(self, data: Dataset, options: TrainOptions, clock: Clock, progress: Progress):
        rows = np.arange(data.n_rows)
        if data.sample_weight is not None:
            rows = np.flatnonzero(data.sample_weight > 0)
        chosen = np.random.default_rng(options.seed).permutation(rows)[:MAX_ROWS]
        if len(chosen) < LEAST_ROWS:
            raise ValueError(
                f"a boundary is chosen from at least {LEAST_ROWS} rows: got {len(chosen)}"
            )
        self.sample = data.take(np.sort(chosen)).as_floats()
        self.options, self.clock, self.progress = options, clock, progress
        self.costs, self.found = Costs(), dict[float, Boundary]()  # the consistent ones by nu

    def run(self) -> Boundary:
        """Return the best boundary. Raises Stopped if none was scored in time."""
        is_incomplete = False
        try:
            for nu in NUS:
                self._search_gamma(nu)
            if not self.found:  # rows so few, or so many features, that models reject new rows
                self.found[NUS[-1]] = self._scored(NUS[-1], GAMMAS[0])
        except _core.Stopped:
            is_incomplete = True
            if not self.found:
                raise
        best = max(self.found.values(), key=lambda one: (one.kappa, -one.options.nu))
        self.progress.note(
            f"nu and gamma: {len(self.found)} boundaries; the most stable one: "
            f"nu={best.options.nu:g}, gamma={best.options.gamma}: models of different rows agree "
            f"on {100 * best.kappa:.0f} %"
        )
        best = replace(best, costs=self.costs, is_incomplete=is_incomplete)
        try:
            return self._with_figure(best)
        except _core.Stopped:  # the figure of the choice is that of models on fewer rows
            return best

    def _search_gamma(self, nu: float) -> None:
        """Find the boundary of the largest gamma up to which all are consistent."""
        for gamma in GAMMAS:
            scored = self._scored(nu, gamma)
            if not scored.is_consistent:
                return
            self.found[nu] = scored
            self.progress.trial("nu and gamma", len(self.found), "")

    def _scored(self, nu: float, gamma: float) -> Boundary:
        """Train and compare two models in each division of the rows. Raises Stopped."""
        options = replace(self.options, nu=nu, gamma=f"{gamma!r}/median", probability=False)
        rng, n = np.random.default_rng(options.seed), self.sample.n_rows
        first, second, held = [], [], []
        for _ in range(N_DIVISIONS):
            parts = np.split(rng.permutation(n), [2 * n // 5, 4 * n // 5])
            held.append(np.sort(parts[2]))
            first.append(self._outside(parts[0], held[-1], options, SHARE_OF_SEARCH))
            second.append(self._outside(parts[1], held[-1], options, SHARE_OF_SEARCH))
        rows, counts = np.concatenate(held), self._counts
        weights = counts[rows]
        a, b = np.concatenate(first), np.concatenate(second)
        p, q = (np.average(one, weights=weights) for one in (a, b))
        by_chance = p * q + (1 - p) * (1 - q)
        agree = np.average(a == b, weights=weights)
        kappa = (agree - by_chance) / (1 - by_chance) if by_chance < 1 else 0.0
        share, n_held = float((p + q) / 2), len(np.unique(rows))
        return Boundary(options, share, error_of(share, n_held), n_held, float(kappa))

    def _with_figure(self, best: Boundary) -> Boundary:
        """Estimate the share of new rows outside by cross-validation. Raises Stopped."""
        n = self.sample.n_rows
        fold = best.options.fold_of_rows(self.sample.labels, N_FOLDS)
        outside = np.zeros(n, bool)
        for k in range(N_FOLDS):
            held = np.flatnonzero(fold == k)
            trained = np.flatnonzero(fold != k)
            outside[held] = self._outside(trained, held, best.options, SHARE_OF_FIGURE)
        share = float(np.average(outside, weights=self._counts))
        return replace(best, outside=share, error=error_of(share, n), n_held=n)

    @property
    def _counts(self) -> np.ndarray:
        weights = self.sample.sample_weight
        return np.ones(self.sample.n_rows) if weights is None else weights

    def _outside(
        self, trained: np.ndarray, held: np.ndarray, options: TrainOptions, share: float
    ) -> np.ndarray:
        """Return which held-out rows, ascending, are outside of the boundary of others.

        `share` is that of the time limit. Raises Stopped.
        """
        reserve = (1.0 - share) * self.clock.limit
        begin, is_used = time.perf_counter(), np.zeros(self.sample.n_rows, bool)
        is_used[trained] = is_used[held] = True
        is_held = np.isin(np.flatnonzero(is_used), held)
        part = self.sample.take(np.flatnonzero(is_used))
        outcome = held_out([(part, is_held)], options, self.clock.stop(reserve))
        setting = options.nu, str(options.gamma)
        self.costs.add(setting, len(trained), time.perf_counter() - begin)
        return outcome.predicted < 0


def error_of(share: float, n_rows: int) -> float:
    """Return the standard error of a share of rows; that of 0 or 1 is not 0."""
    return math.sqrt(max(share * (1 - share), 0.25 / n_rows) / n_rows)


def choose_boundary(
    data: Dataset, options: TrainOptions, clock: Clock, progress: Progress
) -> Boundary:
    """Choose nu and gamma for scaled rows. Raises Stopped if nothing was scored in time."""
    return BoundarySearch(data, options, clock, progress).run()
