"""Seconds of clustering and of training per level beside the paper's."""

from __future__ import annotations

from itertools import pairwise

from paper import published
from paper.experiments.level_times import cells
from paper.markdown import number, percent, table
from paper.sections import Page, title
from paper.sections.words import joined, sentences

SHORTEST = 1e-9  # seconds
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


def conclude(page: Page) -> str:
    results = [page.results.of(cell) for cell in cells(page.scale, page.names, page.threads)]
    named = zip(page.names, results, strict=True)
    return "\n\n".join(of_levels(title(name), result) for name, result in named if result)


def of_levels(name: str, result: dict) -> str:
    """Compare clustering with training, and the levels with each other."""
    levels = sorted(result["levels"], key=lambda level: -level["level"])
    clustering = [level["seconds_clustering"] for level in levels]
    training = [*(level["seconds_training"] for level in levels), last_seconds(result)]
    theirs = [published.LEVEL_TIMES[level] for level in sorted(published.LEVEL_TIMES, reverse=True)]
    paper = share([c for c, _ in theirs], [t for _, t in theirs])
    grows = all(one < other for one, other in pairwise(training))
    absent = sorted(set(published.LEVEL_TIMES) - {level["level"] for level in levels} - {0})
    return sentences(
        [
            f"On {name} clustering takes {percent(share(clustering, training))} % of the seconds "
            f"of all levels ({percent(paper)} % in the paper).",
            "Training takes longer at every level than at the one before, as in the paper."
            if grows
            else "Training does not take longer at every level, as it does in the paper.",
            f"The whole problem is {percent(training[-1] / max(sum(training), SHORTEST))} % of "
            f"training ({percent(theirs[-1][1] / sum(t for _, t in theirs))} % in the paper).",
            f"Not there, as their clusters would be too small: {joined(map(name_of, absent))}."
            if absent
            else "",
        ]
    )


def share(clustering: list[float], training: list[float]) -> float:
    return sum(clustering) / max(sum(clustering) + sum(training), SHORTEST)


def name_of(level: int) -> str:
    return f"level {level}"


def last_seconds(result: dict) -> float:
    """Return the seconds of level 0: refine, gradient (absent in older cells) and conquer."""
    steps = ("refine_seconds", "gradient_seconds", "conquer_seconds")
    return sum(result.get(step, 0.0) for step in steps)


def lines(result: dict) -> list[list[str]]:
    ours = {level["level"]: level_line(level) for level in result["levels"]}
    last = number(last_seconds(result))
    ours[0] = ["1", f"{result['n_rows']:,}", "-", last, f"{result['n_sv']:,}"]
    levels = sorted(set(ours) | set(published.LEVEL_TIMES), reverse=True)
    return [
        [str(level), *ours.get(level, ["-"] * 5), *map(number, published.LEVEL_TIMES[level])]
        for level in levels
    ]


def level_line(level: dict) -> list[str]:
    times = [number(level[f"seconds_{part}"]) for part in ("clustering", "training")]
    counts = [f"{level[key]:,}" for key in ("n_clusters", "largest_cluster", "n_sv")]
    return [*counts[:2], *times, counts[2]]
