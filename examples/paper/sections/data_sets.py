"""The table of data sets, beside the paper's counts."""

from __future__ import annotations

from paper import published
from paper.experiments.data_sets import cells
from paper.markdown import joined, number, percent, table
from paper.sections import NOT_MEASURED, Page, in_paper, title

COUNTS = {"n_train": "training rows", "n_test": "test rows", "n_features": "features"}
HEADING = [
    "data set",
    *COUNTS.values(),
    "labels +1, %",
    "values",
    "paper: training, test, features",
]


def sizes(page: Page) -> str:
    lines = []
    for name, one in zip(page.names, cells(page.scale, page.names, page.threads), strict=True):
        result, theirs = page.of(one), published.DATA_SETS.get(in_paper(name))
        shown = [NOT_MEASURED] * 5
        if result:
            shown = [f"{result[key]:,}" for key in COUNTS] + [percent(result["positive"])]
            shown.append(f"{number(result['least'])} to {number(result['greatest'])}")
        paper = ", ".join(f"{count:,}" for count in theirs) if theirs else "-"
        lines.append([title(name), *shown, paper])
    return table(HEADING, lines) if lines else ""


def agreement(page: Page) -> str:
    """Name the data sets that have the paper's counts, and the counts of the others."""
    same, others = [], []
    for name, one in zip(page.names, cells(page.scale, page.names, page.threads), strict=True):
        result, theirs = page.of(one), published.DATA_SETS.get(in_paper(name))
        if not result or not theirs:
            continue
        apart = [
            f"{result[key]:,} {words} ({count:,})"
            for (key, words), count in zip(COUNTS.items(), theirs, strict=True)
            if result[key] != count
        ]
        if apart:
            others.append(f"{title(name)} has {joined(apart)}")
        else:
            same.append(title(name))
    parts = [f"The paper's rows and features have {joined(same)}."] if same else []
    if others:
        text = "; ".join(others)
        parts.append(f"Others differ, with the paper's counts in brackets: {text}.")
    return " ".join(parts)
