"""Scales of measurement: small in minutes, medium in hours, full as in the paper if possible.

Tiny, in seconds, is for tests of everything; its times say nothing.

Rows are the maximum for a data set; None is all. Full also takes a sample for experiments of many
runs (convergence, the polynomial kernel), for which LIBSVM would need days.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Scale:
    """Sizes of the experiments.

    `features` is the number of landmarks, Fourier features or centers of the approximate methods,
    `basis` the number of SpSVM's basis vectors. `timeout` is seconds for one cell, `limit` the
    least that a competitor has; cells of a few seconds are measured `repeats` times. `subsets` adds
    problems with fewer rows, as (data set, rows), to the main comparison. `grid_peer_rows` and
    `support_peer_rows` are for comparisons with svm-train, on fewer rows. The choice of C and gamma
    has `choice_rows` for early and `choice_exact_rows` for exact models, and the paper's grid in
    steps of `choice_step` exponents.
    """

    name: str
    rows: int | None
    test_rows: int | None
    features: int
    basis: int
    prediction_rows: int | None
    level_rows: int | None
    support_rows: int | None
    convergence_rows: int
    polynomial_rows: int
    grid_rows: int | None
    grid_test_rows: int | None
    timeout: float
    limit: float
    repeats: int = 1
    subsets: tuple[tuple[str, int], ...] = ()
    grid_peer_rows: int = 500
    support_peer_rows: int = 1_000
    choice_rows: int = 2_000
    choice_exact_rows: int = 500
    choice_step: int = 4
    clustering_rows: int | None = 2_000
    level_tolerance_rows: int | None = 2_000
    bias_rows: int = 500

    def options(self, method: str) -> dict:
        """Return the size of a method's model at this scale, as options of its fit."""
        if method in ("llsvm", "fastfood", "ltpu"):
            return {"features": self.features}
        return {"basis": self.basis} if method == "spsvm" else {}


SCALES = {
    scale.name: scale
    for scale in (
        Scale(
            "tiny",
            rows=500,
            test_rows=200,
            features=32,
            basis=16,
            prediction_rows=10_000,
            level_rows=2_000,
            support_rows=500,
            convergence_rows=500,
            polynomial_rows=500,
            grid_rows=600,
            grid_test_rows=150,
            timeout=60,
            limit=60,
        ),
        Scale(
            "small",
            rows=3_000,
            test_rows=10_000,
            features=128,
            basis=64,
            prediction_rows=20_000,
            level_rows=30_000,
            support_rows=10_000,
            convergence_rows=2_000,
            polynomial_rows=2_000,
            grid_rows=2_000,
            grid_test_rows=5_000,
            timeout=40,
            limit=40,
            bias_rows=1_000,
            grid_peer_rows=1_000,
            support_peer_rows=3_000,
            choice_rows=4_000,
            choice_exact_rows=1_000,
            clustering_rows=5_000,
            level_tolerance_rows=5_000,
        ),
        Scale(
            "medium",
            rows=20_000,
            test_rows=None,
            features=1_000,
            basis=200,
            prediction_rows=100_000,
            level_rows=100_000,
            support_rows=50_000,
            convergence_rows=10_000,
            polynomial_rows=5_000,
            grid_rows=3_000,
            grid_test_rows=10_000,
            timeout=1_800,
            limit=1_800,
            repeats=3,
            bias_rows=2_000,
            grid_peer_rows=5_000,
            support_peer_rows=10_000,
            choice_rows=50_000,
            choice_exact_rows=3_000,
            choice_step=2,
            clustering_rows=30_000,
            level_tolerance_rows=100_000,
        ),
        Scale(
            "full",
            rows=None,
            test_rows=None,
            features=3_000,
            basis=200,
            prediction_rows=None,
            level_rows=None,
            support_rows=None,
            convergence_rows=20_000,
            polynomial_rows=20_000,
            grid_rows=None,
            grid_test_rows=None,
            timeout=4 * 3_600,
            limit=300,
            repeats=3,
            bias_rows=2_000,
            subsets=(("covtype", 50_000),),
            grid_peer_rows=5_000,
            support_peer_rows=20_000,
            choice_rows=500_000,
            choice_exact_rows=5_000,
            choice_step=2,
            clustering_rows=100_000,
            level_tolerance_rows=None,
        ),
    )
}
