"""Naive, BCM and early prediction beside the paper's."""

from __future__ import annotations

from paper import published
from paper.experiments.prediction import CLUSTERS, cell
from paper.markdown import number, percent, table
from paper.sections import Page, in_paper, title
from paper.sections.words import joined, relation, sentences, span

TITLES = {"naive": "naive", "bcm": "BCM", "early": "early"}


def show(page: Page) -> str:
    lines = []
    for name in page.names:
        for clusters in CLUSTERS:
            result = page.results.of(cell(page.scale, name, clusters, page.threads))
            theirs = published.PREDICTION.get((in_paper(name), clusters), {})
            for method, shown in TITLES.items():
                ours = result[method] if result else {"accuracy": None, "milliseconds": None}
                accuracy, milliseconds = theirs.get(method, ("-", "-"))
                lines.append(
                    [
                        f"{title(name)}, {clusters} clusters, {shown}",
                        percent(ours["accuracy"]),
                        number(ours["milliseconds"]),
                        f"{accuracy}",
                        f"{milliseconds}",
                    ]
                )
    heading = ["", "accuracy %", "ms a row", "paper: accuracy %", "paper: ms a row"]
    return table(heading, lines)


def conclude(page: Page) -> str:
    found = results_of(page)
    if not found:
        return ""
    theirs = [
        published.PREDICTION[key]
        for key in dict.fromkeys((in_paper(name), clusters) for name, clusters in found)
        if key in published.PREDICTION
    ]
    best = wins([{m: -one[m]["accuracy"] for m in TITLES} for one in found.values()])
    fastest = wins([{m: one[m]["milliseconds"] for m in TITLES} for one in found.values()])
    paper = ""
    if theirs:
        first = wins([{m: -one[m][0] for m in TITLES} for one in theirs])
        second = wins([{m: one[m][1] for m in TITLES} for one in theirs])
        paper = f" In the paper it is in {first} and {second} of {len(theirs)}."
    return sentences(
        [
            f"Early prediction is the most accurate in {best} and the fastest in {fastest} of "
            f"{len(found)} settings.{paper}",
            *(behind(found, method) for method in ("naive", "bcm")),
            more_clusters(found),
        ]
    )


def results_of(page: Page) -> dict[tuple[str, int], dict]:
    """Return the results by data set and number of clusters."""
    found = {
        (name, clusters): page.results.of(cell(page.scale, name, clusters, page.threads))
        for name in page.names
        for clusters in CLUSTERS
    }
    return {key: result for key, result in found.items() if result}


def wins(settings: list[dict[str, float]]) -> int:
    """Count the settings in which early prediction has the least of the values."""
    return sum(one["early"] == min(one.values()) for one in settings)


def behind(found: dict[tuple[str, int], dict], method: str) -> str:
    """Compare a method's accuracy with that of early prediction, and the paper's."""
    ours = {f"{title(n)}, {k}": accuracies(one, method) for (n, k), one in found.items()}
    theirs = {
        f"{title(n)}, {k}": (one[method][0] - one["early"][0]) / 100
        for n, k in found
        if (one := published.PREDICTION.get((in_paper(n), k)))
    }
    paper = f"; in the paper {span(theirs, 'it')}" if theirs else ""
    name = "Naive" if method == "naive" else TITLES[method]
    return f"{name} prediction is {span(ours, 'it')}{paper}."


def accuracies(result: dict, method: str) -> float:
    return result[method]["accuracy"] - result["early"]["accuracy"]


def more_clusters(found: dict[tuple[str, int], dict]) -> str:
    few, many = CLUSTERS
    parts = []
    for name in dict.fromkeys(name for name, _ in found):
        if (name, few) in found and (name, many) in found:
            by_many, by_few = (found[name, k]["early"]["accuracy"] for k in (many, few))
            parts.append(f"{relation(by_many - by_few, f'that with {few}')} on {title(name)}")
    return f"With {many} clusters it is {joined(parts)}." if parts else ""
