"""Rows and features of the prepared data sets beside the paper's."""

from __future__ import annotations

from paper import published
from paper.experiments.data_sets import cells
from paper.markdown import number, percent, table
from paper.sections import Page, in_paper, title


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
