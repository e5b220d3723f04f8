"""Results of a case: all runs, medians and ratios, and whether they count."""

from dataclasses import asdict, dataclass, field
from functools import cached_property
from statistics import median

from cases import Case
from solvers import PEERS, Run

FEASIBLE = 1e-6  # largest allowed distance of an alpha from its bounds, over C
LEEWAY_OURS, LEEWAY_PEERS = 1.01, 2.0  # largest allowed violation over tolerance


@dataclass(frozen=True)
class Standing:
    """All rounds of one solver on one case. `status` is ok if all are, else the first other one."""

    runs: list[Run]
    allowed: float  # violation
    timeout: float

    @cached_property
    def status(self) -> str:
        if not self.runs:
            return "missing"
        return next((run.status for run in self.runs if run.status != "ok"), "ok")

    @cached_property
    def seconds(self) -> float | None:
        """Median training time minus the median reading time, if that is measured separately."""
        good = [run for run in self.runs if run.status == "ok"]
        if not good:
            return None
        return max(median(r.seconds for r in good) - median(r.reading for r in good), 0.0)

    @cached_property
    def violation(self) -> float | None:
        return max((run.check["violation"] for run in self.runs if run.check), default=None)

    @property
    def holds(self) -> bool:
        checks = [run.check for run in self.runs if run.check]
        feasible = all(check["infeasibility"] <= FEASIBLE for check in checks)
        return bool(checks) and feasible and self.violation <= self.allowed

    @property
    def counts(self) -> bool:
        return self.status == "ok" and self.holds

    def ratio(self, ours: "Standing") -> float | None:
        """Return this time over ours, if ours counts; the caller checks whether this one counts."""
        comparable = self.status == "ok" and ours.counts and ours.seconds
        return self.seconds / ours.seconds if comparable else None


@dataclass
class Result:
    """All runs of all solvers on one case."""

    case: Case
    timeout: float
    n_rows: int
    n_features: int
    runs: dict[str, list[Run]] = field(default_factory=dict)
    bound: float | None = None

    def standing(self, solver: str) -> Standing:
        leeway = LEEWAY_PEERS if solver in PEERS else LEEWAY_OURS
        return Standing(self.runs.get(solver, []), leeway * self.case.tolerance, self.timeout)

    def as_dict(self) -> dict:
        standings = {name: self.standing(name) for name in self.runs}
        return {
            "case": asdict(self.case),
            "n_rows": self.n_rows,
            "n_features": self.n_features,
            "verification_bound_seconds": self.bound,
            "median_seconds": {name: standing.seconds for name, standing in standings.items()},
            "counts": {name: standing.counts for name, standing in standings.items()},
            "runs": {name: [run.as_dict() for run in runs] for name, runs in self.runs.items()},
        }
