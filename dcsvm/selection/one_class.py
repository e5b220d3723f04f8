"""Choose nu and gamma of a one-class model, without labels, by the stability of its boundary.

Two models are trained on different rows; both decide on held-out rows. For each nu, gamma is the
largest one that is consistent: the share of held-out rows that are outside is not larger than nu,
up to two standard errors (Tax and Müller, "A consistency-based model selection for one-class
classification", ICPR 2004). A larger gamma has a tighter boundary, but rejects rows because they
were not trained. Of these, the nu is chosen whose two models agree best on what is outside, by
Cohen's kappa, which is 0 for agreement by chance and 1 for equal decisions.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from dcsvm import _core
from dcsvm.data.dataset import Dataset
from dcsvm.problem.options import TrainOptions
from dcsvm.selection.trials import Clock
from dcsvm.training.fit import fit
from dcsvm.training.report import Progress
from dcsvm.training.state import RunControl

NUS = (0.01, 0.02, 0.05, 0.1, 0.2)
GAMMAS = (1 / 9, 1 / 3, 1.0, 3.0, 9.0, 27.0)  # in units of 1/median
MAX_ROWS = 6000  # a sample: two parts of 2/5 are trained, 1/5 is held out
N_DIVISIONS = 3  # of the rows into these parts
LEAST_ROWS = 20
LIMIT = 2.0  # standard errors of the share outside


@dataclass(frozen=True)
class Boundary:
    """A setting with the share of held-out rows outside, its error, and the agreement."""

    options: TrainOptions
    outside: float
    error: float
    n_held: int
    kappa: float

    @property
    def is_consistent(self) -> bool:
        nu = self.options.nu
        return self.outside <= nu + LIMIT * math.sqrt(nu * (1.0 - nu) / self.n_held)


def choose_boundary(
    data: Dataset, options: TrainOptions, clock: Clock, progress: Progress
) -> Boundary:
    """Choose nu and gamma for scaled rows. Raises Stopped if nothing was scored in time."""
    rng = np.random.default_rng(options.seed)
    chosen = rng.permutation(data.n_rows)[:MAX_ROWS]
    if len(chosen) < LEAST_ROWS:
        raise ValueError(f"a boundary is chosen from at least {LEAST_ROWS} rows: got {len(chosen)}")
    sample = data.take(np.sort(chosen)).as_floats()
    found: list[Boundary] = []
    try:
        for nu in NUS:
            consistent = _largest_consistent(sample, replace(options, nu=nu), clock)
            found += [consistent] if consistent is not None else []
            progress.trial("nu and gamma", len(found), "")
    except _core.Stopped:
        if not found:
            raise
    if not found:  # rows so few, or so many features, that each model rejects new rows
        smallest = replace(options, nu=NUS[-1], gamma=f"{GAMMAS[0]!r}/median")
        found = [_scored(sample, smallest, clock)]
    best = max(found, key=lambda one: (one.kappa, -one.options.nu))
    progress.note(
        f"nu and gamma: {len(found)} boundaries; the most stable one: nu={best.options.nu:g}, "
        f"gamma={best.options.gamma}: models of different rows agree on {100 * best.kappa:.0f} %"
    )
    return best


def _largest_consistent(sample: Dataset, options: TrainOptions, clock: Clock) -> Boundary | None:
    """Return the boundary of the largest gamma up to which all are consistent."""
    best = None
    for gamma in GAMMAS:
        scored = _scored(sample, replace(options, gamma=f"{gamma!r}/median"), clock)
        if not scored.is_consistent:
            break
        best = scored
    return best


def _scored(sample: Dataset, options: TrainOptions, clock: Clock) -> Boundary:
    """Train and compare two models in each division of the rows. Raises Stopped."""
    rng = np.random.default_rng(options.seed)
    n, first, second = sample.n_rows, [], []
    for _ in range(N_DIVISIONS):
        parts = np.split(rng.permutation(n), [2 * n // 5, 4 * n // 5])
        held = sample.take(np.sort(parts[2]))
        for part, outside in zip(parts[:2], (first, second), strict=True):
            control = RunControl(Progress(), clock.stop())
            model = fit(sample.take(np.sort(part)), options, control)
            if model.report.stopped:
                raise _core.Stopped
            outside.append(model.predict(held.rows, threads=options.threads) < 0)
    a, b = np.concatenate(first), np.concatenate(second)
    p, q = a.mean(), b.mean()
    by_chance = p * q + (1 - p) * (1 - q)
    kappa = (np.mean(a == b) - by_chance) / (1 - by_chance) if by_chance < 1 else 0.0
    share = float((p + q) / 2)
    # divisions hold out some rows again: the error is that of the different rows
    n_held = min(n, len(a))
    error = math.sqrt(max(share * (1 - share), 0.25 / n_held) / n_held)
    return Boundary(options, share, error, n_held, float(kappa))
