"""The table of data sets, beside the paper's counts."""

from __future__ import annotations

from collections.abc import Iterator

from paper import published
from paper.experiments.data_sets import cells
from paper.markdown import joined, number, percent, table
from paper.sections import NOT_MEASURED, Page, in_paper, title

COUNTS = {"n_train": "training rows", "n_test": "test rows", "n_features": "features"}
HEADING = (
    "data set | training rows | test rows | features | labels +1, % | values | "
    "paper: training, test, features"
)


def measured(page: Page) -> Iterator[tuple[str, dict | None, tuple | None]]:
    """Yield the title, the result and the paper's counts of each data set."""
    for name, cell in zip(page.names, cells(page.scale, page.names, page.threads), strict=True):
        yield title(name), page.of(cell), published.DATA_SETS.get(in_paper(name))


def sizes(page: Page) -> str:
    lines = []
    for name, result, theirs in measured(page):
        shown = [NOT_MEASURED] * 5
        if result:
            shown = [f"{result[key]:,}" for key in COUNTS] + [percent(result["positive"])]
            shown.append(f"{number(result['least'])} to {number(result['greatest'])}")
        lines.append([name, *shown, ", ".join(f"{count:,}" for count in theirs or ()) or "-"])
    return table(HEADING, lines)


def agreement(page: Page) -> str:
    """Name the data sets that have the paper's counts, and the counts of the others."""
    same, others = [], []
    for name, result, theirs in measured(page):
        if result and theirs:
            apart = [
                f"{result[key]:,} {words} ({count:,})"
                for (key, words), count in zip(COUNTS.items(), theirs, strict=True)
                if result[key] != count
            ]
            others += [f"{name} has {joined(apart)}"] * bool(apart)
            same += [name] * (not apart)
    have = "has" if len(same) == 1 else "have"
    first = f"{joined(same)} {have} the paper's numbers of rows and features. " * bool(same)
    text = f"Others differ, with the paper's counts in brackets: {'; '.join(others)}."
    return (first + text * bool(others)).strip()
