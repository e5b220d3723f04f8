"""From decision values to probabilities: a sigmoid for two classes, Laplace noise for regression.

Both are fitted to values of rows that the model has not seen; where those come from (folds, leave
one out) is not decided here.
"""

from __future__ import annotations

import numpy as np

LARGEST_STEPS = 100
SMALLEST_STEP = 1e-10  # of a Newton direction; a shorter step does not improve the fit
SMALL_GRADIENT = 1e-5
RIDGE = 1e-12  # keeps the Hessian positive definite
DECREASE = 1e-4  # of what the gradient promises, that a step has to keep
OUTLIER = 5  # standard deviations of the noise


def fit_sigmoid(
    values: np.ndarray,
    is_first: np.ndarray,
    weights: np.ndarray | None = None,
    *,
    centered: bool = False,
) -> tuple[float, float]:
    """(A, B) such that P(first class) = 1 / (1 + exp(A f + B)) fits decision values f best.

    `values` float64 (n,), positive for the first class; `is_first` bool (n,); `weights` float64
    (n,), as how many values each counts, None is one. The minimum of
    equation (2) of Lin, Lin and Weng, "A note on Platt's probabilistic outputs for support vector
    machines", Machine Learning 68 (2007), by their Newton's method with backtracking.
    `centered` keeps B at 0 and A below: the first class has more than 1/2 where f is above 0.
    Raises ValueError for values that are not finite or do not fit the rows.
    """
    values, is_first = np.asarray(values, np.float64), np.asarray(is_first, bool)
    if values.shape != is_first.shape or values.ndim != 1 or len(values) == 0:
        raise ValueError(f"{values.shape} decision values do not fit {is_first.shape} classes")
    if not np.isfinite(values).all():
        raise ValueError("decision values must be finite numbers")
    weights = np.ones(len(values)) if weights is None else weights
    n_first, n_other = weights[is_first].sum(), weights[~is_first].sum()
    target = np.where(is_first, (n_first + 1) / (n_first + 2), 1 / (n_other + 2))
    at = np.array([0.0, 0.0 if centered else np.log((n_other + 1) / (n_first + 1))])
    free = slice(0, 1 if centered else 2)
    loss = log_loss(at, values, target, weights)
    for _ in range(LARGEST_STEPS):
        gradient, hessian = derivatives(at, values, target, weights)
        if np.abs(gradient[free]).max() < SMALL_GRADIENT:
            break
        direction, curved = np.zeros(2), (hessian + RIDGE * np.eye(2))[free, free]
        direction[free] = -np.linalg.solve(curved, gradient[free])
        step = 1.0
        while step >= SMALLEST_STEP:
            reached = log_loss(at + step * direction, values, target, weights)
            if reached < loss + DECREASE * step * (gradient @ direction):
                break
            step /= 2
        else:
            break
        at, loss = at + step * direction, reached
    return float(min(at[0], -RIDGE) if centered else at[0]), float(at[1])


def log_loss(at: np.ndarray, values: np.ndarray, target: np.ndarray, weights: np.ndarray) -> float:
    """-sum w (t log p + (1 - t) log(1 - p)) at (A, B), without cancellation or overflow (section
    3 of Lin, Lin and Weng)."""
    z = at[0] * values + at[1]
    losses = np.where(z >= 0, target, target - 1) * z + np.log1p(np.exp(-np.abs(z)))
    return float(np.sum(weights * losses))


def derivatives(at: np.ndarray, values: np.ndarray, target: np.ndarray, weights: np.ndarray):
    """Gradient (2,) and Hessian (2, 2) of `log_loss`."""
    p = sigmoid(values, *at)
    slope, curvature = weights * (target - p), weights * p * (1 - p)
    mixed = curvature @ values
    gradient = np.array([slope @ values, slope.sum()])
    hessian = np.array([[curvature @ values**2, mixed], [mixed, curvature.sum()]])
    return gradient, hessian


def sigmoid(values: np.ndarray, A: float, B: float) -> np.ndarray:
    """1 / (1 + exp(A f + B)) for decision values f, without overflow."""
    z = A * values + B
    small = np.exp(-np.abs(z))
    return np.where(z >= 0, small, 1.0) / (1.0 + small)


def laplace_sigma(residuals: np.ndarray, weights: np.ndarray | None = None) -> float:
    """Scale sigma of Laplace noise, density exp(-|z| / sigma) / (2 sigma), of a regression.

    `residuals` float64 (n,) are label minus prediction of rows the prediction has not seen, each
    counted as often as `weights` float64 (n,) say, None is once. The mean absolute residual, again
    without those beyond 5 standard deviations sqrt(2) sigma: LIBSVM's rule, after Lin and Weng,
    "Simple probabilistic predictions for support vector regression" (2004). Raises ValueError
    without residuals.
    """
    size = np.abs(np.asarray(residuals, np.float64))
    if len(size) == 0:
        raise ValueError("noise cannot be estimated without residuals")
    weights = np.ones(len(size)) if weights is None else weights
    kept = size <= OUTLIER * np.sqrt(2.0) * np.average(size, weights=weights)
    return float(np.average(size[kept], weights=weights[kept]))
