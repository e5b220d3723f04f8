"""The benchmark's output as aligned plain text: times and ratios, checked solutions, a summary."""

from statistics import geometric_mean

from results import Result, Standing

LEGEND = """ratio: a peer's time over ours. !: the solution misses its tolerance (a peer's: by more
than twice) in the independent check; it is not in the summary. -: absent, or no such number.
bound: rows x support vectors kernel evaluations at the measured speed of our kernel product."""


def times(results: list[Result], peers: list[str], direct: bool) -> str:
    """Make a line per case: median seconds, and the peers' time over ours."""
    heading = ["seconds of training", "rows", "dcsvm", *direct * ["-l 0"], "bound", "x bound"]
    for peer in peers:
        heading += [peer, "ratio"]
    return aligned([heading, *(times_line(result, peers, direct) for result in results)])


def times_line(result: Result, peers: list[str], direct: bool) -> list[str]:
    ours, bound = result.standing("dcsvm"), result.bound
    line = [result.case.name, str(result.n_rows), seconds(ours)]
    if direct:
        line.append(seconds(result.standing("direct")))
    line += [number(bound), number(ours.seconds / bound if bound and ours.seconds else None)]
    for peer in peers:
        standing = result.standing(peer)
        line += [seconds(standing), ratio(standing, ours)]
    return line


def multiples(results: list[Result], unit: Standing) -> str:
    """Make a line per case: our seconds as a multiple of one time of svm-train, and their sum."""
    heading = ["multiples", f"of svm-train's {seconds(unit)} s", "seconds", "violation"]
    lines, total = [], 0.0
    for ours in (result.standing("dcsvm") for result in results):
        multiple = ours.seconds / unit.seconds if ours.seconds and unit.seconds else None
        total += multiple or 0.0
        lines.append([number(multiple), seconds(ours), either(ours.violation, ".2e")])
    named = [[r.case.name, *line] for r, line in zip(results, lines, strict=True)]
    return aligned([heading, *named, ["together", number(total), "", ""]])


def solutions(results: list[Result]) -> str:
    """Make a line per case and solver: the worst result of the check over all rounds."""
    heading = ["solutions", "solver", "SVs", "bounded", "violation", "objective", "gap"]
    lines = [
        solution_line(result, solver)
        for result in results
        for solver in result.runs
        if result.standing(solver).violation is not None
    ]
    return aligned([[*heading, "rows checked", "MB", "accuracy"], *lines])


def solution_line(result: Result, solver: str) -> list[str]:
    standing, runs = result.standing(solver), result.runs[solver]
    check = next(run.check for run in runs if run.check)
    peak = max(run.peak_mb for run in runs if run.check)
    accuracy = next((100 * run.accuracy for run in runs if run.accuracy is not None), None)
    return [
        result.case.name,
        solver,
        str(check["n_sv"]),
        str(check["n_bsv"]),
        f"{standing.violation:.2e}" + ("" if standing.holds else "!"),
        either(check["objective"], ".6f"),
        either(check["duality_gap"], ".2e"),
        str(check["rows_checked"]),
        f"{peak:.0f}",
        either(accuracy, ".3f"),
    ]


def profile(results: list[Result]) -> str:
    """Make a line per case: counts and seconds per phase of our median run.

    Seconds of clusters that are solved in parallel add up.
    """
    counts = ["kernel_evaluations", "rows_computed", "rows_reused", "iterations", "newton_steps"]
    phases = ["tiles", "inner", "newton", "selection", "rebuild"]
    heading = ["profile", "evaluations", "rows computed", "reused", "updates", "Newton steps"]
    heading += ["clustering s", *(f"{phase} s" for phase in phases), "verify s", "train s"]
    lines = []
    for result in results:
        runs = [run for run in result.runs["dcsvm"] if run.report]
        if runs:
            report = sorted(runs, key=lambda run: run.seconds)[len(runs) // 2].report
            clustering = sum(level["seconds_clustering"] for level in report["levels"])
            times = [clustering, *(report["seconds_by_phase"][phase] for phase in phases)]
            times += [report["seconds"]["verify"], report["seconds"]["train"]]
            numbers = [f"{report['kernel_evaluations']:.3g}"]
            numbers += [str(report[count]) for count in counts[1:]]
            lines.append([result.case.name, *numbers, *(f"{value:.2f}" for value in times)])
    return aligned([heading, *lines])


def summary(results: list[Result], peers: list[str]) -> str:
    """Make a line per peer: number of compared cases, cases where we are faster, worst case."""
    heading = ["peer's time over ours", "cases", "we are faster", "mean", "least", "most"]
    lines = [summary_line(results, peer) for peer in peers]
    return aligned([[*heading, "least in"], *lines])


def summary_line(results: list[Result], peer: str) -> list[str]:
    counted = [result for result in results if result.standing(peer).counts]
    pairs = [(r.standing(peer).ratio(r.standing("dcsvm")), r.case.name) for r in counted]
    pairs = sorted(pair for pair in pairs if pair[0])
    if not pairs:
        return [peer, "0", *5 * ["-"]]
    ratios = [value for value, _ in pairs]
    faster = sum(value > 1 for value in ratios)
    spread = [f"{value:.2f}" for value in (geometric_mean(ratios), ratios[0], ratios[-1])]
    return [peer, str(len(ratios)), str(faster), *spread, pairs[0][1]]


def seconds(standing: Standing) -> str:
    if standing.status == "timeout":
        return f">{standing.timeout:.0f}"
    if standing.status != "ok":
        return "-" if standing.status == "missing" else standing.status
    return number(standing.seconds) + ("" if standing.holds else "!")


def ratio(standing: Standing, ours: Standing) -> str:
    if standing.status == "timeout" and ours.counts and ours.seconds:
        return f">{standing.timeout / ours.seconds:.1f}"
    value = standing.ratio(ours)
    return "-" if value is None else f"{value:.2f}" + ("" if standing.holds else "!")


def number(value: float | None) -> str:
    """Format a number with about three digits, without an exponent."""
    if value is None:
        return "-"
    return f"{value:.{0 if value >= 100 else 1 if value >= 10 else 2 if value >= 1 else 3}f}"


def either(value: float | None, form: str) -> str:
    return "-" if value is None else format(value, form)


def aligned(table: list[list[str]]) -> str:
    """Align the first column to the left, the others to the right."""
    widths = [max(map(len, column)) for column in zip(*table, strict=True)]
    return "\n".join(
        "  ".join([line[0].ljust(widths[0]), *map(str.rjust, line[1:], widths[1:])]).rstrip()
        for line in table
    )
