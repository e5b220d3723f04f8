"""The main tables: seconds and accuracy of every method beside the paper's, times over LIBSVM's.

A column of memory beyond the rows is added if it was measured.
"""

from __future__ import annotations

from paper import published
from paper.baselines import TITLES
from paper.experiments.comparison import cell, problems
from paper.markdown import number, percent, table
from paper.sections import Page, in_paper, title

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


def show(page: Page) -> str:
    return "\n\n".join(one(page, chosen) for chosen in problems(page.scale, page.names))


def one(page: Page, chosen: dict) -> str:
    name = chosen["data"]
    theirs = published.comparison().get(in_paper(name), {})
    cells = {method: cell(page.scale, chosen, method, page.threads) for method in TITLES}
    results = {method: page.results.of(c) for method, c in cells.items()}
    lines = []
    for method in TITLES:
        result = results[method]
        lines.append(
            [
                TITLES[method],
                page.seconds(cells[method]),
                ratio(results["libsvm"], page.results.timeout(cells["libsvm"]), result),
                percent(result and result["accuracy"]),
                size(result),
                number(result and result.get("added_mb")),
                *paper(theirs, method),
            ]
        )
    n_rows = next((result["n_rows"] for result in results.values() if result), None)
    settings = next(iter(cells.values())).settings
    C, gamma = settings["C"], settings["kernel"]["gamma"]
    rows = f", {n_rows:,} training rows" if n_rows else ""
    shown = table(*without_empty(MEMORY, HEADING, lines))
    return f"**{title(name)}**{rows}, C={C:g}, gamma={gamma:.3g}\n\n{shown}"


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
