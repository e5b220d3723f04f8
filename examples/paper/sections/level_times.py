"""Seconds of clustering and of training per level beside the paper's."""

from __future__ import annotations

from itertools import pairwise

from paper import published
from paper.experiments.level_times import cells
from paper.markdown import joined, number, paragraphs, percent, table
from paper.sections import Page, title

HEADING = (
    "level | clusters | largest | clustering s | training s | SVs | paper: clustering s | "
    "paper: training s"
)


def levels(page: Page) -> str:
    shown = []
    for cell in cells(page.scale, page.names, page.threads):
        if result := page.of(cell):
            name = title(cell.settings["problem"]["data"])
            total = f"{result['n_rows']:,} rows, {number(result['seconds'])} s in all"
            shown += [f"**{name}**, {total}", table(HEADING, lines(result)), about(name, result)]
    return paragraphs(shown)


def lines(result: dict) -> list[list[str]]:
    ours = {level["level"]: level_line(level) for level in result["levels"]}
    last = number(last_seconds(result))
    ours[0] = ["1", f"{result['n_rows']:,}", "-", last, f"{result['n_sv']:,}"]
    return [
        [str(level), *ours.get(level, ["skipped"] * 5), *map(number, published.LEVEL_TIMES[level])]
        for level in sorted(set(ours) | set(published.LEVEL_TIMES), reverse=True)
    ]


def level_line(level: dict) -> list[str]:
    times = [number(level[f"seconds_{part}"]) for part in ("clustering", "training")]
    clusters, largest, n_sv = (f"{level[k]:,}" for k in ("n_clusters", "largest_cluster", "n_sv"))
    return [clusters, largest, *times, n_sv]


def last_seconds(result: dict) -> float:
    """Return the seconds of level 0: refine, gradient and conquer."""
    return sum(result[f"{step}_seconds"] for step in ("refine", "gradient", "conquer"))


def seconds_of_training(result: dict) -> list[float]:
    """Return the seconds of the levels, from the finest to level 0."""
    found = sorted(result["levels"], key=lambda level: -level["level"])
    return [*(level["seconds_training"] for level in found), last_seconds(result)]


def grows(result: dict) -> bool:
    """Return whether training takes longer at every level than at the one before."""
    return all(one < other for one, other in pairwise(seconds_of_training(result)))


def about(name: str, result: dict) -> str:
    """Compare clustering with training, and the levels with each other."""
    found, training = result["levels"], seconds_of_training(result)
    clustering = sum(level["seconds_clustering"] for level in found)
    does = "does" if grows(result) else "does not"
    theirs = [sum(column) for column in zip(*published.LEVEL_TIMES.values(), strict=True)]
    absent = sorted(set(published.LEVEL_TIMES) - {level["level"] for level in found} - {0})
    skipped = joined(f"level {level}" for level in absent)
    share = percent(clustering / max(clustering + sum(training), 1e-9))
    return (
        f"On {name} clustering takes {share} % of the seconds of all levels "
        f"({percent(theirs[0] / sum(theirs))} % in the paper), and the whole problem "
        f"{percent(training[-1] / max(sum(training), 1e-9))} % of training "
        f"({percent(published.LEVEL_TIMES[0][1] / theirs[1])} %). In the paper training takes "
        f"longer at every level than at the one before; here it {does}."
        f"{f' Too small clusters: {skipped}.' * bool(absent)}"
    )
