"""Theorem 1: f(alpha bar) - f(alpha*) and its bounds over the number of clusters."""

from __future__ import annotations

import numpy as np

from paper import style
from paper.experiments.bound import CLUSTERS, PARTITIONS, cell
from paper.markdown import table
from paper.sections import Page, title
from paper.sections.words import compared, joined, times

CURVES = {  # key of the result: label, marker, line
    "bound": ("bound of Theorem 1", "^", ":"),
    "support_bound": ("bound of Theorem 3", "v", "--"),
    "difference": ("f(ᾱ) − f(α*)", "o", "-"),
}
COLORS = dict(zip(PARTITIONS, (style.BLUE, style.VERMILION), strict=True))
D = {"bound": "D(π)", "support_bound": "D over S* ∪ S̄"}  # bound = 1/2 C^2 D
FLOOR = 1e-3  # smaller differences are within the error of the solutions


def show(page: Page) -> str:
    parts = []
    for name in page.names:
        plot(page, name)
        text = f"the bound of Theorem 1 and the difference of objectives on {title(name)}"
        parts += [f"**{title(name)}**", page.image(f"bound-{name}", text), numbers(page, name)]
    return "\n\n".join(parts)


def results_of(page: Page, name: str, partition: str) -> list[dict | None]:
    return [page.results.of(cell(name, k, partition, page.threads)) for k in CLUSTERS]


def numbers(page: Page, name: str) -> str:
    """Make the table of D, of the bounds from it, and of the difference.

    S* and S̄ are the support vectors of the optimum and of the combined solution of the clusters.
    """
    half = 0.5 * cell(name, CLUSTERS[0], PARTITIONS[0], page.threads).settings["C"] ** 2
    lines = []
    for partition in PARTITIONS:
        for k, result in zip(CLUSTERS, results_of(page, name, partition), strict=True):
            values = [f"{result[key] / half:.3g}" if result else "-" for key in D]
            values += [f"{result[key]:.3g}" if result else "-" for key in CURVES]
            objective = f"{result['objective']:.6g}" if result else "-"
            lines.append([f"{partition}, {k} clusters", *values, objective])
    heading = ["", *D.values(), *(label for label, _, _ in CURVES.values()), "f(α*)"]
    return table(heading, lines)


def plot(page: Page, name: str) -> None:
    """Plot with a linear scale on the left, as in the paper, and a logarithmic one on the right."""
    figure, axes = style.panels(1, 2)
    for one, scale in zip(axes[0], ("linear", "log"), strict=True):
        for partition in PARTITIONS:
            results = results_of(page, name, partition)
            for key, (label, marker, line) in CURVES.items():
                values = np.array([result[key] if result else np.nan for result in results])
                one.plot(
                    CLUSTERS,
                    np.maximum(values, FLOOR) if scale == "log" else values,
                    color=COLORS[partition],
                    marker=marker,
                    linestyle=line,
                    label=f"{partition}: {label}",
                )
        style.logarithmic(one, x=2, y=10 if scale == "log" else None)
        one.set(xticks=CLUSTERS, xticklabels=CLUSTERS, xlabel="clusters")
    axes[0][0].set_ylabel("bound, or difference of objectives")
    axes[0][0].set_title("absolute")
    axes[0][1].set_title(f"logarithmic, from {FLOOR:g}")
    style.legend_below(figure, list(axes[0]))
    style.save(figure, page.path(f"bound-{name}"))


def conclude(page: Page) -> str:
    """Compare the partitions, and the bounds with the difference, from the cells shown."""
    found = {
        name: {partition: results_of(page, name, partition) for partition in PARTITIONS}
        for name in page.names
    }
    if not found or not all(all(results) for own in found.values() for results in own.values()):
        return ""
    return "\n\n".join(
        f"{title(name)}: {about_partitions(own)} {about_bounds(own)}" for name, own in found.items()
    )


def about_partitions(found: dict[str, list[dict]]) -> str:
    """Compare the differences of both partitions; those below FLOOR are not resolved."""
    pairs = [
        tuple(max(one["difference"], FLOOR) for one in both)
        for both in zip(*(found[partition] for partition in PARTITIONS), strict=True)
    ]
    words = [compared(ours, random, "larger", "smaller") for ours, random in pairs]
    shares = joined(
        [f"{w} for {words.count(w)}" for w in ("smaller", "equal", "larger") if w in words]
    )
    text = (
        "Compared with that of a random partition, the difference of objectives of kernel k-means "
        f"is {shares} of {len(words)} numbers of clusters"
    )
    ratios = [random / ours for ours, random in pairs if ours > FLOOR]
    if not ratios:
        return f"{text}."
    return f"{text}; the random one is {span(ratios)} times as large where both are resolved."


def about_bounds(found: dict[str, list[dict]]) -> str:
    """Compare the bounds with the difference, with |f(alpha*)|, and with each other."""
    sentences = []
    for partition, results in found.items():
        holds = {key: sum(r["difference"] <= r[key] + FLOOR for r in results) for key in D}
        above = sum(one["bound"] > abs(one["objective"]) for one in results)
        ratios = [r["bound"] / r["difference"] for r in results if r["difference"] > FLOOR]
        shares = [100 * r["support_bound"] / r["bound"] for r in results if r["bound"] > FLOOR]
        text = (
            f"With {partition}, Theorem 1's bound holds in {holds['bound']} and Theorem 3's in "
            f"{holds['support_bound']} of {len(results)} cases; Theorem 1's is above |f(α*)| in "
            f"{above}"
        )
        if ratios:
            text += f", {span(ratios)} times the difference"
        if shares:
            text += f", and Theorem 3's is {span(shares)} % of it"
        sentences.append(f"{text}.")
    return " ".join(sentences)


def span(values: list[float]) -> str:
    """Format the range of values."""
    ends = list(dict.fromkeys(times(end) for end in (min(values), max(values))))
    return " to ".join(ends)
