"""Rows and features of the prepared data sets beside the paper's."""

from __future__ import annotations

from paper import published
from paper.experiments.data_sets import cells
from paper.markdown import number, percent, table
from paper.sections import Page, in_paper, title
from paper.sections.words import joined, sentences

COUNTED = ("training rows", "test rows", "features")


def show(page: Page) -> str:
    lines = []
    for cell in cells(page.scale, page.names, page.threads):
        name = cell.settings["problem"]["data"]
        result = page.results.of(cell)
        theirs = published.DATA_SETS.get(in_paper(name))
        lines.append([title(name), *(line(result) if result else ["-"] * 5), paper(theirs)])
    heading = ["data set", "training rows", "test rows", "features", "labels +1, %", "values"]
    return table([*heading, "paper: training, test, features"], lines)


def line(result: dict) -> list[str]:
    counts = [f"{result[key]:,}" for key in ("n_train", "n_test", "n_features")]
    span = f"{number(result['least'])} to {number(result['greatest'])}"
    return [*counts, percent(result["positive"]), span]


def paper(counts: tuple[int, int, int] | None) -> str:
    return ", ".join(f"{count:,}" for count in counts) if counts else "-"


def conclude(page: Page) -> str:
    """Compare the counts with the paper's."""
    same, other = [], []
    for cell in cells(page.scale, page.names, page.threads):
        name = cell.settings["problem"]["data"]
        result, theirs = page.results.of(cell), published.DATA_SETS.get(in_paper(name))
        if not result or not theirs:
            continue
        ours = [result[key] for key in ("n_train", "n_test", "n_features")]
        apart = [
            f"{count:,} {what} ({their:,})"
            for what, count, their in zip(COUNTED, ours, theirs, strict=True)
            if count != their
        ]
        if apart:
            other.append(f"{title(name)} has {joined(apart)}")
        else:
            same.append(title(name))
    have = "has" if len(same) == 1 else "have"
    return sentences(
        [
            f"{joined(same)} {have} the paper's rows and features." if same else "",
            f"Others differ, with the paper's counts in brackets: {'; '.join(other)}."
            if other
            else "",
        ]
    )
