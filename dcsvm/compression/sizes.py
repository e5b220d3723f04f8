"""How many landmarks, and how sure is what was counted on some rows."""

from __future__ import annotations

import math

import numpy as np

CONFIDENCE = 0.95


def shares(sizes: np.ndarray, total: int) -> np.ndarray:
    """`total` divided in proportion to `sizes` int (n,), at most as many for each, by the largest
    remainders; int64 (n,)."""
    total = min(total, int(sizes.sum()))
    wanted = sizes * (total / max(int(sizes.sum()), 1))
    found = np.floor(wanted).astype(np.int64)
    order = np.argsort(found - wanted, kind="stable")
    found[order[: total - int(found.sum())]] += 1
    return found


def most_changed(n_changed: int, n: int, n_trials: int) -> float:
    """The part that n_changed of n random rows says is not exceeded, with CONFIDENCE in all of
    n_trials together (Clopper and Pearson 1934)."""
    from scipy.special import betaincinv  # slow to import, and used here alone

    doubt = (1 - CONFIDENCE) / n_trials
    if n_changed >= n:
        return 1.0
    return float(betaincinv(n_changed + 1, n - n_changed, 1 - doubt))


def fewest_rows(part: float, n_trials: int) -> int:
    """Rows of which most_changed is at most this part if not one changes."""
    return math.ceil(math.log((1 - CONFIDENCE) / n_trials) / math.log1p(-part))
