"""Gap, D(pi) and costs of every level by clustering, and of the complete training."""

from __future__ import annotations

from operator import itemgetter

from paper.experiments import clustering
from paper.experiments.clustering import CLUSTERINGS
from paper.markdown import compared, counted, joined, number, paragraphs, percent, table
from paper.sections import Page, title

LEVELS = (
    "clusters, clustering | largest | gap of f, % of f(α*) | D(π), sampled | % of all pairs | "
    "kernel values, millions | clustering s | training s"
)
WHOLE = "complete training | kernel values, millions | seconds"
MILLION = 1e6
SOLVED = 1e-5  # relative gaps up to this are within the error of the solutions


def levels(page: Page) -> str:
    parts = []
    for name in page.names:
        found = {one: page.result(clustering, name, one) for one in CLUSTERINGS}
        results = {one: result for one, result in found.items() if result}
        if results:
            first = next(iter(results.values()))
            counts = f"{first['n_rows']:,} rows, D(π) of {first['n_sampled']:,} of them"
            whole = [
                [one, number(result["kernel_evaluations"] / MILLION), number(result["seconds"])]
                for one, result in results.items()
            ]
            parts += [f"**{title(name)}**, {counts}", of_levels(results), table(WHOLE, whole)]
            parts.append(about(results) if len(results) == len(CLUSTERINGS) else "")
    return paragraphs(parts)


def of_levels(results: dict[str, dict]) -> str:
    lines = [
        (place, level_line(one, result, level))
        for one, result in results.items()
        for place, level in enumerate(result["levels"])
    ]
    return table(LEVELS, [line for _, line in sorted(lines, key=itemgetter(0))])


def level_line(one: str, result: dict, level: dict) -> list[str]:
    return [
        f"{level['clusters']}, {one}",
        f"{level['largest_cluster']:,}",
        f"{100 * level['gap']:.3g}",
        f"{level['between']:.4g}",
        percent(level["between"] / result["between_all"]),
        number(level["kernel_evaluations"] / MILLION),
        *(number(level[f"seconds_{part}"]) for part in ("clustering", "training")),
    ]


def about(results: dict[str, dict]) -> str:
    """Count the levels above the finest at which the gap of adaptive clusters is smaller."""
    own = {one: result["levels"][1:] for one, result in results.items()}
    sentences = [against(other, own["adaptive"], own[other]) for other in ("random", "tree")]
    fastest, fewest = (
        min(results, key=lambda one: results[one][key]) for key in ("seconds", "kernel_evaluations")
    )
    text = f"The complete training is fastest with {fastest}; {fewest} computes the fewest values."
    return " ".join([*filter(None, sentences), text])


def against(other: str, ours: list[dict], theirs: list[dict]) -> str:
    words = [
        compared(gap_of(a), gap_of(b), "larger", "smaller")
        for a, b in zip(ours, theirs, strict=True)
    ]
    counts = joined(f"{word} at {words.count(word)}" for word in dict.fromkeys(words))
    text = f"Above the finest level, the gap of adaptive clusters is {counts} of "
    return f"{text}{counted(len(words), 'level')}, compared with {other}." * bool(words)


def gap_of(level: dict) -> float:
    """Return the relative gap, as 0 if it is within the error of the solutions."""
    return level["gap"] if level["gap"] > SOLVED else 0.0
