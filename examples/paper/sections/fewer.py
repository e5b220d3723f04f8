"""A table of methods on fewer rows, beside the table or figure where they exceed their limit."""

from __future__ import annotations

from paper import fewer
from paper.baselines import TITLES
from paper.cells import Cell
from paper.markdown import number, percent, table
from paper.sections import Page

HEADING = ["method", "rows", "seconds", "accuracy %", "DC-SVM: seconds", "DC-SVM: accuracy %"]
RATIO = "seconds over DC-SVM's"


def fewer_rows(page: Page, cells: list[Cell]) -> str:
    """Make the table of those of `cells` that exceed their limit; empty if none does."""
    lines = []
    for cell in cells:
        if not page.results.exceeded(cell):
            continue
        result, ours = fewer.pair(page.scale, cell, page.results) or (None, None)
        lines.append([TITLES[cell.settings["method"]], *line(result, ours)])
    if not lines:
        return ""
    text = (
        "What exceeds its limit, on the most rows (a quarter, a sixteenth, ...) that it does not:"
    )
    return f"{text}\n\n{table([*HEADING, RATIO], lines)}"


def line(result: dict | None, ours: dict | None) -> list[str]:
    shown = [f"{result['n_rows']:,}" if result else "-"]
    for one in (result, ours):
        shown += [number(one["seconds"]), percent(one["accuracy"])] if one else ["-", "-"]
    has_ratio = result and ours and ours["seconds"]
    return [*shown, number(result["seconds"] / ours["seconds"]) if has_ratio else "-"]
