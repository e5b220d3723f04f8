"""Problem types as box QPs: linear term, bounds, groups of fixed sum (csrc/box_qp.h).

The solver knows none of the types. Only binary C-SVC without bias, the paper's problem, is here.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True, eq=False)
class BoxProblem:
    """minimise 1/2 a'Ka - linear'a, lower <= a <= upper, sums over each group kept.

    All arrays have one entry per variable: `linear`, `lower`, `upper` float64; `group` int8 (-1 for
    none) or None; `row` int32, the row of K a variable uses, or None for its own number.
    """

    linear: np.ndarray
    lower: np.ndarray
    upper: np.ndarray
    group: np.ndarray | None = None
    n_groups: int = 0
    row: np.ndarray | None = None

    @property
    def size(self) -> int:
        return len(self.linear)


def c_svc(sign: np.ndarray, C: float, copies: np.ndarray | int = 1) -> BoxProblem:
    """Equation (1) of the paper in signed alpha (y_i alpha_i): `sign` is +1.0 or -1.0 per variable,
    `copies` the number of equal rows it stands for."""
    if not 0 < C < float("inf"):
        raise ValueError(f"C must be positive and finite, not {C:g}")
    sign = np.ascontiguousarray(sign, dtype=np.float64)
    return BoxProblem(
        linear=sign,
        lower=np.where(sign > 0, 0.0, -C * copies),
        upper=np.where(sign > 0, C * copies, 0.0),
    )
