"""A table of the methods that exceeded their limit, on fewer rows."""

from __future__ import annotations

from paper import fewer
from paper.baselines import TITLES
from paper.cells import Cell
from paper.markdown import number, percent, table
from paper.sections import Page, shown_seconds

HEADING = ["method", "rows", "seconds", "accuracy %", "DC-SVM: seconds", "DC-SVM: accuracy %"]
RATIO = "seconds over DC-SVM's"


def fewer_rows(page: Page, cells: list[Cell]) -> str:
    """Make the table of the `cells` that exceeded their limit; empty if none did."""
    lines = []
    for cell in cells:
        if not page.results.exceeded(cell):
            continue
        result, ours = fewer.pair(page.scale, cell, page.results) or (None, None)
        lines.append([TITLES[cell.settings["method"]], *line(result, ours)])
    if not lines:
        return ""
    text = (
        "Methods that exceeded their limit, on the largest part of the rows (a quarter, a "
        "sixteenth, ...) for which they did not:"
    )
    return f"{text}\n\n{table([*HEADING, RATIO], lines)}"


def line(result: dict | None, ours: dict | None) -> list[str]:
    shown = [f"{result['n_rows']:,}" if result else "-"]
    for one in (result, ours):
        shown += [shown_seconds(one), percent(one["accuracy"])] if one else ["-", "-"]
    has_ratio = result and ours and ours["seconds"]
    return [*shown, number(result["seconds"] / ours["seconds"]) if has_ratio else "-"]
