"""Naive, BCM and early prediction beside the paper's."""

from __future__ import annotations

from paper import published
from paper.experiments.prediction import CLUSTERS, cell
from paper.markdown import number, percent, table
from paper.sections import Page, in_paper, title

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
