"""Seconds of clustering and of training per level beside the paper's."""

from __future__ import annotations

from paper import published
from paper.experiments.level_times import cells
from paper.markdown import number, table
from paper.sections import Page, title

HEADING = [
    "level",
    "clusters",
    "largest",
    "clustering s",
    "training s",
    "SVs",
    "paper: clustering s",
    "paper: training s",
]


def show(page: Page) -> str:
    shown = []
    for cell in cells(page.scale, page.names, page.threads):
        result = page.results.of(cell)
        if result:
            name = title(cell.settings["problem"]["data"])
            total = f"{result['n_rows']:,} rows, {number(result['seconds'])} s in all"
            shown.append(f"**{name}**, {total}\n\n{table(HEADING, lines(result))}")
    return "\n\n".join(shown) or "Not measured."


def lines(result: dict) -> list[list[str]]:
    """Make the lines; level 0 is refine, gradient (absent in older cells) and conquer."""
    ours = {level["level"]: level_line(level) for level in result["levels"]}
    steps = ("refine_seconds", "gradient_seconds", "conquer_seconds")
    last = sum(result.get(step, 0.0) for step in steps)
    ours[0] = ["1", f"{result['n_rows']:,}", "-", number(last), f"{result['n_sv']:,}"]
    levels = sorted(set(ours) | set(published.LEVEL_TIMES), reverse=True)
    return [
        [str(level), *ours.get(level, ["-"] * 5), *map(number, published.LEVEL_TIMES[level])]
        for level in levels
    ]


def level_line(level: dict) -> list[str]:
    times = [number(level[f"seconds_{part}"]) for part in ("clustering", "training")]
    counts = [f"{level[key]:,}" for key in ("n_clusters", "largest_cluster", "n_sv")]
    return [*counts[:2], *times, counts[2]]
