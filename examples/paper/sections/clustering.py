"""Gap, D(pi) and costs of every level by clustering, and of the complete training."""

from __future__ import annotations

from paper.experiments.clustering import CLUSTERINGS, cell
from paper.markdown import number, percent, table
from paper.sections import Page, title
from paper.sections.words import compared, joined

LEVELS_HEADING = [
    "clusters, clustering",
    "largest",
    "gap of f, % of f(α*)",
    "D(π), sampled",
    "% of all pairs",
    "kernel values, millions",
    "clustering s",
    "training s",
]
WHOLE_HEADING = ["complete training", "kernel values, millions", "seconds"]
MILLION = 1e6
SOLVED = 1e-5  # relative gaps up to this are within the error of the solutions


def show(page: Page) -> str:
    parts = []
    for name in page.names:
        results = results_of(page, name)
        if not results:
            parts.append(f"**{title(name)}**, not measured.")
            continue
        rows, sampled = (next(iter(results.values()))[key] for key in ("n_rows", "n_sampled"))
        parts += [f"**{title(name)}**, {rows:,} rows, D(π) of {sampled:,} of them"]
        parts += [levels(results), whole(results)]
    return "\n\n".join(parts)


def results_of(page: Page, name: str) -> dict[str, dict]:
    """Return the results of the measured clusterings."""
    found = {
        clustering: page.results.of(cell(page.scale, name, clustering, page.threads))
        for clustering in CLUSTERINGS
    }
    return {clustering: result for clustering, result in found.items() if result}


def levels(results: dict[str, dict]) -> str:
    n_levels = max(len(result["levels"]) for result in results.values())
    lines = [
        level_line(clustering, result, result["levels"][place])
        for place in range(n_levels)
        for clustering, result in results.items()
        if place < len(result["levels"])
    ]
    return table(LEVELS_HEADING, lines)


def level_line(clustering: str, result: dict, level: dict) -> list[str]:
    return [
        f"{level['clusters']}, {clustering}",
        f"{level['largest_cluster']:,}",
        f"{100 * level['gap']:.3g}",
        f"{level['between']:.4g}",
        percent(level["between"] / result["between_all"]),
        number(level["kernel_evaluations"] / MILLION),
        number(level["seconds_clustering"]),
        number(level["seconds_training"]),
    ]


def whole(results: dict[str, dict]) -> str:
    lines = [
        [clustering, number(result["kernel_evaluations"] / MILLION), number(result["seconds"])]
        for clustering, result in results.items()
    ]
    return table(WHOLE_HEADING, lines)


def conclude(page: Page) -> str:
    """Compare adaptive clustering with a random sample and the tree, from the cells shown."""
    found = {name: results_of(page, name) for name in page.names}
    if any(len(results) < len(CLUSTERINGS) for results in found.values()):
        return ""
    return "\n\n".join(about(name, results) for name, results in found.items())


def about(name: str, results: dict[str, dict]) -> str:
    """Compare the levels above the finest, and the complete training."""
    levels = {clustering: result["levels"][1:] for clustering, result in results.items()}
    sentences = [
        against(other, levels["adaptive"], levels[other]) for other in ("random", "tree")
    ] * bool(levels["adaptive"])
    fastest, fewest = (
        min(results, key=lambda one: results[one][key]) for key in ("seconds", "kernel_evaluations")
    )
    seconds = {clustering: number(result["seconds"]) for clustering, result in results.items()}
    sentences.append(
        f"The complete training is fastest with {fastest}, {seconds[fastest]} s, and takes "
        f"{joined([f'{seconds[one]} s with {one}' for one in results if one != fastest])}; it "
        f"computes the fewest kernel values with {fewest}."
    )
    return f"{title(name)}: {' '.join(sentences)}"


def against(other: str, ours: list[dict], theirs: list[dict]) -> str:
    """Count the levels at which the gap of adaptive clustering is smaller, and give the largest."""
    pairs = list(zip(ours, theirs, strict=True))
    words = [compared(gap_of(a), gap_of(b), "larger", "smaller") for a, b in pairs]
    phrases = {"smaller": "smaller", "equal": "the same up to rounding", "larger": "larger"}
    shares = joined(
        [f"{phrase} at {words.count(word)}" for word, phrase in phrases.items() if word in words]
    )
    text = (
        f"Compared with {other}, the gap of adaptive above the finest level is {shares} of "
        f"{len(pairs)} levels"
    )
    a, b = max(pairs, key=lambda pair: max(gap_of(one) for one in pair))
    if gap_of(a) == gap_of(b):
        return f"{text}."
    return (
        f"{text}; with {a['clusters']} clusters it is {100 * gap_of(a):.3g} % of f(α*) instead of "
        f"{100 * gap_of(b):.3g}, and the largest cluster has {a['largest_cluster']:,} rows instead "
        f"of {b['largest_cluster']:,}."
    )


def gap_of(level: dict) -> float:
    """Return the relative gap, as 0 if it is within the error of the solutions."""
    return level["gap"] if level["gap"] > SOLVED else 0.0
