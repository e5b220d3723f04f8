"""The main tables: seconds and accuracy of every method beside the paper's, times over LIBSVM's.

A column of memory beyond the rows is added if it was measured. Methods that exceed their limit are
in a second table, on fewer rows.
"""

from __future__ import annotations

from dataclasses import dataclass

from paper import published
from paper.baselines import TITLES
from paper.cells import Cell
from paper.experiments.comparison import cell, problems
from paper.fewer import pair
from paper.markdown import number, percent, table
from paper.sections import Page, in_paper, title
from paper.sections.fewer import fewer_rows
from paper.sections.words import joined, relation, sentences, span

COMPETITORS = ("lasvm", "cascade", "llsvm", "fastfood", "spsvm", "ltpu")
SHORTEST = 1e-3  # seconds; shorter times are not compared
MEMORY = "MB added"
HEADING = [
    "method",
    "seconds",
    "LIBSVM's seconds over these",
    "accuracy %",
    "model",
    MEMORY,
    "paper: seconds",
    "paper: LIBSVM's over these",
    "paper: accuracy %",
]


@dataclass(frozen=True)
class Compared:
    """A problem's cells and results by method, and the paper's (seconds, accuracy in %)."""

    name: str
    cells: dict[str, Cell]
    results: dict[str, dict]
    limit: float | None
    theirs: dict[str, tuple[float, float]]

    @property
    def n_rows(self) -> int | None:
        return next((result["n_rows"] for result in self.results.values()), None)


def compared(page: Page) -> list[Compared]:
    return [of_problem(page, chosen) for chosen in problems(page.scale, page.names)]


def of_problem(page: Page, chosen: dict) -> Compared:
    cells = {method: cell(page.scale, chosen, method, page.threads) for method in TITLES}
    found = {method: page.results.of(one) for method, one in cells.items()}
    results = {method: result for method, result in found.items() if result}
    limit = page.results.timeout(cells["libsvm"])
    theirs = published.comparison().get(in_paper(chosen["data"]), {})
    return Compared(title(chosen["data"]), cells, results, limit, theirs)


def show(page: Page) -> str:
    return "\n\n".join(one(page, problem) for problem in compared(page))


def one(page: Page, problem: Compared) -> str:
    lines = []
    for method in TITLES:
        result = problem.results.get(method)
        lines.append(
            [
                TITLES[method],
                page.seconds(problem.cells[method]),
                ratio(problem.results.get("libsvm"), problem.limit, result),
                percent(result and result["accuracy"]),
                size(result),
                number(result and result.get("added_mb")),
                *paper(problem.theirs, method),
            ]
        )
    settings = problem.cells["dcsvm"].settings
    C, gamma = settings["C"], settings["kernel"]["gamma"]
    rows = f", {problem.n_rows:,} training rows" if problem.n_rows else ""
    heading = f"**{problem.name}**{rows}, C={C:g}, gamma={gamma:.3g}"
    shown = table(*without_empty(MEMORY, HEADING, lines))
    on_fewer = fewer_rows(page, list(problem.cells.values()))
    return "\n\n".join(filter(None, [heading, shown, on_fewer]))


def without_empty(name: str, heading: list[str], lines: list[list[str]]) -> tuple:
    """Return the heading and lines, without the named column if it is empty in all lines."""
    place = heading.index(name)
    if any(line[place] != "-" for line in lines):
        return heading, lines
    heading, *lines = (line[:place] + line[place + 1 :] for line in (heading, *lines))
    return heading, lines


def ratio(libsvm: dict | None, limit: float | None, result: dict | None) -> str:
    """Return LIBSVM's seconds, or the limit that it exceeded, over seconds of the result."""
    if not result or not result["seconds"] or not (libsvm or limit):
        return "-"
    if libsvm:
        return number(libsvm["seconds"] / result["seconds"])
    return f">{number(limit / result['seconds'])}"


def size(result: dict | None) -> str:
    """Format the number of support vectors, or of an approximate method's features or basis."""
    if not result:
        return "-"
    return f"{result['n_sv']:,} SVs" if "n_sv" in result else f"{result['size']:,}"


def paper(theirs: dict, method: str) -> list[str]:
    if method not in theirs:
        return ["-"] * 3
    seconds, accuracy = theirs[method]
    return [f"{seconds:,g}", number(theirs["libsvm"][0] / seconds), f"{accuracy:g}"]


def conclude(page: Page) -> str:
    found = dict(zip(labels(page), compared(page), strict=True))
    fewer = {
        name: pair(page.scale, one.cells["libsvm"], page.results) for name, one in found.items()
    }
    parts = (
        exact(found), early(found), others(found), times_of_libsvm(found, fewer), direct(found)
    )  # fmt: skip
    return "\n\n".join(filter(None, parts))


def labels(page: Page) -> list[str]:
    """Name the problems; one of a data set that is there twice by its rows too."""
    chosen = problems(page.scale, page.names)
    names = [title(one["data"]) for one in chosen]
    return [
        f"{one['rows']:,} rows of {name}" if one["rows"] and names.count(name) > 1 else name
        for one, name in zip(chosen, names, strict=True)
    ]


def differences(found: dict[str, Compared], method: str) -> dict[str, float]:
    """Return how much more accurate a method is than DC-SVM, as a share, by problem."""
    return {
        name: one.results[method]["accuracy"] - one.results["dcsvm"]["accuracy"]
        for name, one in found.items()
        if method in one.results and "dcsvm" in one.results
    }


def exact(found: dict[str, Compared]) -> str:
    """Compare the accuracies of the exact solvers."""
    parts = []
    for method, who in (
        ("direct", "The accuracy of the direct solver, exact and without bias as DC-SVM,"),
        ("libsvm", "The accuracy of LIBSVM, with its bias,"),
    ):
        if apart := differences(found, method):
            parts.append(f"{who} is {span(apart, 'that of DC-SVM')}.")
    return sentences(parts)


def early(found: dict[str, Compared]) -> str:
    """Compare early prediction with the exact solution."""
    parts = []
    for name, apart in differences(found, "early").items():
        one = found[name]
        here = f"{relation(apart, 'DC-SVM')} in {share(one.results, 'early')} of its time on {name}"
        paper = ""
        if {"early", "dcsvm"} <= set(one.theirs):
            (seconds, accuracy), (all_seconds, all_accuracy) = (
                one.theirs[method] for method in ("early", "dcsvm")
            )
            theirs = relation((accuracy - all_accuracy) / 100, "it")
            paper = f" (in the paper {theirs} in {number(seconds / all_seconds)})"
        parts.append(here + paper)
    return f"Early prediction is {joined(parts)}." if parts else ""


def share(results: dict[str, dict], method: str) -> str:
    return number(results[method]["seconds"] / max(results["dcsvm"]["seconds"], SHORTEST))


def others(found: dict[str, Compared]) -> str:
    """Compare every competitor but LIBSVM with DC-SVM, and name the best of them."""
    parts = []
    for method in COMPETITORS:
        if apart := differences(found, method):
            parts.append(f"{TITLES[method]} is {span(apart, 'DC-SVM')}.")
    best = []
    for name, one in found.items():
        accuracy = {m: one.results[m]["accuracy"] for m in COMPETITORS if m in one.results}
        if accuracy:
            method = max(accuracy, key=accuracy.get)
            best.append(f"{TITLES[method]} on {name} ({percent(accuracy[method])} %)")
    if best:
        parts.append(f"The most accurate of these is {joined(best)}.")
    return sentences(parts)


def times_of_libsvm(
    found: dict[str, Compared], fewer: dict[str, tuple[dict, dict | None] | None]
) -> str:
    """Give LIBSVM's seconds over DC-SVM's, beside the paper's; on fewer rows if LIBSVM needs that.

    `fewer` has both results on these rows.
    """
    parts = []
    for name, one in found.items():
        libsvm, ours = one.results.get("libsvm"), one.results.get("dcsvm")
        where = name
        if both := fewer[name]:
            libsvm, ours = both
            where = f"{libsvm['n_rows']:,} rows of {name.split(' rows of ')[-1]}"
        shown = ratio(libsvm, one.limit, ours)
        if shown == "-":
            continue
        theirs = paper(one.theirs, "dcsvm")[1]
        beside = f" ({theirs} in the paper)" if theirs != "-" else ""
        more = f"more than {shown[1:]}" if shown.startswith(">") else shown
        parts.append(f"{more} on {where}{beside}")
    return f"LIBSVM's seconds are DC-SVM's times {joined(parts)}." if parts else ""


def direct(found: dict[str, Compared]) -> str:
    """Say where the levels pay: DC-SVM against the same solver without them."""
    ratios = {
        name: one.results["direct"]["seconds"] / max(one.results["dcsvm"]["seconds"], SHORTEST)
        for name, one in found.items()
        if {"direct", "dcsvm"} <= set(one.results)
    }
    if not ratios:
        return ""
    listed = joined(f"{number(ratio)} on {name}" for name, ratio in ratios.items())
    pays = sum(ratio > 1 for ratio in ratios.values())
    return (
        f"*direct*, without levels, takes DC-SVM's seconds times {listed}: the levels save time on "
        f"{pays} of {len(ratios)}."
    )
