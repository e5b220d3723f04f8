"""Results of cases: all runs, medians and ratios, whether they count, and tables of them."""

from dataclasses import asdict, dataclass, field
from statistics import geometric_mean, median

from cases import Case
from measure import aligned, number
from programs import PEERS, Run

FEASIBLE = 1e-6  # largest allowed distance of an alpha from its bounds, over C
LEEWAY_OURS, LEEWAY_PEERS = 1.01, 2.0  # largest allowed violation over tolerance
LEGEND = """ratio: a peer's time over ours. !: the solution misses its tolerance (a peer's: by more
than twice) in the independent check; it is not in the summary. -: absent, or no such number.
bound: rows x support vectors kernel evaluations at the measured speed of our kernel product."""


@dataclass(frozen=True)
class Standing:
    """All rounds of one solver on one case. `status` is ok if all are, else the first other one.
    `seconds` are the median training time less that of reading, if it is measured separately;
    `violation` is the largest; `holds` says whether all solutions meet their tolerance."""

    status: str
    seconds: float | None
    violation: float | None
    holds: bool
    timeout: float

    @property
    def counts(self) -> bool:
        return self.status == "ok" and self.holds

    @property
    def mark(self) -> str:
        return "" if self.holds else "!"

    def ratio(self, ours: "Standing") -> float | None:
        """Return this time over ours, if ours counts; the caller checks whether this one counts."""
        comparable = self.status == "ok" and ours.counts and ours.seconds
        return self.seconds / ours.seconds if comparable else None

    def ratio_text(self, ours: "Standing") -> str:
        if self.status == "timeout" and ours.counts and ours.seconds:
            return f">{self.timeout / ours.seconds:.1f}"
        value = self.ratio(ours)
        return "-" if value is None else f"{value:.2f}{self.mark}"

    def __str__(self) -> str:
        """Return the seconds as text, or why there are none."""
        if self.status == "ok":
            return number(self.seconds) + self.mark
        return {"timeout": f">{self.timeout:.0f}", "missing": "-"}.get(self.status, self.status)


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
        runs = self.runs.get(solver, [])
        status = next((run.status for run in runs if run.status != "ok"), "ok")
        good = [run for run in runs if run.status == "ok"]
        checks = [run.check for run in runs if run.check]
        seconds = violation = None
        if good:
            reading = median(run.reading for run in good)
            seconds = max(median(run.seconds for run in good) - reading, 0.0)
        if checks:
            violation = max(check["violation"] for check in checks)
        leeway = LEEWAY_PEERS if solver in PEERS else LEEWAY_OURS
        holds = bool(checks) and violation <= leeway * self.case.tolerance
        holds = holds and all(check["infeasibility"] <= FEASIBLE for check in checks)
        return Standing(status if runs else "missing", seconds, violation, holds, self.timeout)

    def as_dict(self) -> dict:
        standings = {name: self.standing(name) for name in self.runs}
        found = {"case": asdict(self.case), "n_rows": self.n_rows, "n_features": self.n_features}
        return found | {
            "verification_bound_seconds": self.bound,
            "median_seconds": {name: standing.seconds for name, standing in standings.items()},
            "counts": {name: standing.counts for name, standing in standings.items()},
            "runs": {name: [run.as_dict() for run in runs] for name, runs in self.runs.items()},
        }


def times(results: list[Result], peers: list[str], direct: bool) -> str:
    """Make a line per case: median seconds, and the peers' time over ours."""
    table = [["seconds of training", "rows", "dcsvm", *direct * ["-l 0"], "bound", "x bound"]]
    table[0] += [text for peer in peers for text in (peer, "ratio")]
    for result in results:
        ours, bound = result.standing("dcsvm"), result.bound
        line = [result.case.name, result.n_rows, ours, *[result.standing("direct")] * direct]
        line += [number(bound), number(ours.seconds / bound if bound and ours.seconds else None)]
        for peer in map(result.standing, peers):
            line += [peer, peer.ratio_text(ours)]
        table.append(line)
    return aligned(table)


def multiples(results: list[Result], unit: Standing) -> str:
    """Make a line per case: our seconds as a multiple of one time of svm-train, and their sum."""
    table, total = [["multiples", f"of svm-train's {unit} s", "seconds", "violation"]], 0.0
    for result in results:
        ours = result.standing("dcsvm")
        multiple = ours.seconds / unit.seconds if ours.seconds and unit.seconds else None
        total += multiple or 0.0
        table.append([result.case.name, number(multiple), ours, number(ours.violation, ".2e")])
    return aligned([*table, ["together", number(total), "", ""]])


def solutions(results: list[Result]) -> str:
    """Make a line per case and solver: the worst result of the check over all rounds."""
    table = [["solutions", "solver", "SVs", "bounded", "violation", "objective", "gap",
              "rows checked", "MB", "accuracy"]]  # fmt: skip
    for result in results:
        for solver, runs in result.runs.items():
            standing, checked = result.standing(solver), [run for run in runs if run.check]
            if checked:
                check = checked[0].check
                accuracies = (100 * run.accuracy for run in runs if run.accuracy is not None)
                line = [result.case.name, solver, check["n_sv"], check["n_bsv"]]
                line += [f"{standing.violation:.2e}{standing.mark}"]
                line += [number(check["objective"], ".6f"), number(check["duality_gap"], ".2e")]
                line += [check["rows_checked"], f"{max(run.peak_mb for run in checked):.0f}"]
                table.append([*line, number(next(accuracies, None), ".3f")])
    return aligned(table)


def profile(results: list[Result]) -> str:
    """Make a line per case: counts and seconds per phase of our median run.

    Seconds of clusters that are solved in parallel add up.
    """
    counts = ["rows_computed", "rows_reused", "iterations", "newton_steps"]
    phases = ["tiles", "inner", "newton", "selection", "rebuild"]
    table = [["profile", "evaluations", "rows computed", "reused", "updates", "Newton steps"]]
    table[0] += ["clustering s", *(f"{phase} s" for phase in phases), "verify s", "train s"]
    for result in results:
        runs = [run for run in result.runs["dcsvm"] if run.report]
        if runs:
            report = sorted(runs, key=lambda run: run.seconds)[len(runs) // 2].report
            seconds = [sum(level["seconds_clustering"] for level in report["levels"])]
            seconds += [report["seconds_by_phase"][phase] for phase in phases]
            seconds += [report["seconds"][part] for part in ("verify", "train")]
            numbers = [f"{report['kernel_evaluations']:.3g}", *map(report.get, counts)]
            table.append([result.case.name, *numbers, *(f"{value:.2f}" for value in seconds)])
    return aligned(table)


def summary(results: list[Result], peers: list[str]) -> str:
    """Make a line per peer: number of compared cases, cases where we are faster, worst case."""
    table = [["peer's time over ours", "cases", "we are faster", "mean", "least", "most",
              "least in"]]  # fmt: skip
    for peer in peers:
        counted = [result for result in results if result.standing(peer).counts]
        pairs = [(r.standing(peer).ratio(r.standing("dcsvm")), r.case.name) for r in counted]
        pairs = sorted(pair for pair in pairs if pair[0])
        line = [peer, 0, *5 * ["-"]]
        if pairs:
            ratios = [value for value, _ in pairs]
            spread = geometric_mean(ratios), ratios[0], ratios[-1]
            line = [peer, len(ratios), sum(value > 1 for value in ratios)]
            line += [*(f"{value:.2f}" for value in spread), pairs[0][1]]
        table.append(line)
    return aligned(table)
