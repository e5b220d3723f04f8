"""Naive, BCM and early prediction beside the paper's."""

from __future__ import annotations

from collections.abc import Iterator

from paper import published
from paper.experiments import prediction
from paper.markdown import number, percent, table
from paper.sections import NOT_MEASURED, Page, in_paper, title

TITLES = {"naive": "naive", "bcm": "BCM", "early": "early"}
HEADING = " | accuracy % | ms a row | paper: accuracy % | paper: ms a row"


def settings(page: Page) -> Iterator[tuple[str, dict | None, dict]]:
    """Yield a setting's name, its result, and the paper's (accuracy in %, ms) by method."""
    for name in page.names:
        for clusters in prediction.CLUSTERS:
            theirs = published.PREDICTION.get((in_paper(name), clusters), {})
            result = page.result(prediction, name, clusters)
            yield f"{title(name)}, {clusters} clusters", result, theirs


def methods(page: Page) -> str:
    lines = []
    for setting, result, theirs in settings(page):
        for method, shown in TITLES.items():
            ours = [NOT_MEASURED] * 2
            if result:
                ours = [percent(result[method]["accuracy"]), number(result[method]["milliseconds"])]
            lines.append([f"{setting}, {shown}", *ours, *map(str, theirs.get(method, ("-", "-")))])
    return table(HEADING, lines)


def wins(page: Page) -> str:
    """Count the settings in which early prediction is the most accurate, and the fastest."""
    found = [(result, paper) for _, result, paper in settings(page) if result]
    ours = [{m: (one[m]["accuracy"], one[m]["milliseconds"]) for m in TITLES} for one, _ in found]
    theirs = [paper for _, paper in found if paper]
    if not ours:
        return ""
    text = "the most accurate in {} and the fastest in {} of {}".format(*counted(ours))
    paper = " (in the paper in {} and {} of {})".format(*counted(theirs)) if theirs else ""
    return f"Early prediction is {text}{paper}."


def counted(found: list[dict[str, tuple[float, float]]]) -> tuple[int, int, int]:
    best = sum(one["early"][0] == max(a for a, _ in one.values()) for one in found)
    fastest = sum(one["early"][1] == min(s for _, s in one.values()) for one in found)
    return best, fastest, len(found)
