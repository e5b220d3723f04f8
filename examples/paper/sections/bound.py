"""Theorem 1: f(alpha bar) - f(alpha*) and its bounds over the number of clusters."""

from __future__ import annotations

import math

from bench import figures

from paper.experiments.bound import CLUSTERS, PARTITIONS, cell
from paper.markdown import BAR, joined, paragraphs, table, times
from paper.sections import NOT_MEASURED, Page, title

CURVES = {  # key of the result: label, marker, line
    "bound": ("bound of Theorem 1", "^", ":"),
    "support_bound": ("bound of Theorem 3", "v", "--"),
    "difference": ("f(ᾱ) − f(α*)", "o", "-"),
}
COLORS = dict(zip(PARTITIONS, (figures.BLUE, figures.VERMILION), strict=True))
D = {"bound": "D(π)", "support_bound": "D over S* ∪ S̄"}  # bound = 1/2 C^2 D
HEADING = BAR.join(["", *D.values(), *(label for label, _, _ in CURVES.values()), "f(α*)"])
RESOLVED = 1e-3  # smaller differences are within the error of the solutions


def bounds(page: Page) -> str:
    parts = []
    for name in page.names:
        cells = {p: [cell(name, k, p, page.threads) for k in CLUSTERS] for p in PARTITIONS}
        found = {partition: [page.of(one) for one in own] for partition, own in cells.items()}
        draw(page, name, found)
        text = f"the bound of Theorem 1 and the difference of objectives on {title(name)}"
        half = 0.5 * cells[PARTITIONS[0]][0].settings["C"] ** 2
        parts += [f"**{title(name)}**", page.image(f"bound-{name}", text), numbers(found, half)]
        if all(all(results) for results in found.values()):
            parts.append(f"{about_partitions(found)} {about_bounds(found)}")
    return paragraphs(parts)


def numbers(found: dict[str, list[dict | None]], half: float) -> str:
    """Make the table of D, of the bounds from it, and of the difference.

    S* and S̄ are the support vectors of the optimum and of the combined solution of the clusters.
    """
    lines = []
    for partition, results in found.items():
        for k, result in zip(CLUSTERS, results, strict=True):
            shown = [NOT_MEASURED] * (len(D) + len(CURVES) + 1)
            if result:
                apart = result["difference"]
                shown = [f"{value:.3g}" for key in D for value in [result[key] / half]]
                shown += [f"{result[key]:.3g}" for key in D]
                shown.append(f"{apart:.3g}" if apart >= RESOLVED else f"<{RESOLVED:g}")
                shown.append(f"{result['objective']:.6g}")
            lines.append([f"{partition}, {k} clusters", *shown])
    return table(HEADING, lines)


def draw(page: Page, name: str, found: dict[str, list[dict | None]]) -> None:
    """Draw with a linear scale on the left, as in the paper, and a logarithmic one on the right.

    On the latter, values below RESOLVED are on the lower edge.
    """

    def panel(ylabel: str, title: str, least: float, **more) -> figures.Panel:
        series = [
            figures.Series(
                [
                    (k, result and max(result[key], least))
                    for k, result in zip(CLUSTERS, results, strict=True)
                ],
                {"color": COLORS[partition], "marker": marker, "linestyle": line,
                 "label": f"{partition}: {label}"},
            )
            for partition, results in found.items()
            for key, (label, marker, line) in CURVES.items()
        ]  # fmt: skip
        return figures.Panel("clusters", ylabel, series, title, x=2, ticks=[*CLUSTERS], **more)

    left = panel("bound, or difference of objectives", "absolute", -math.inf)
    right = panel("", f"logarithmic, from {RESOLVED:g}", RESOLVED, y=10)
    figures.draw(page.path(f"bound-{name}"), [[left, right]])


def about_partitions(found: dict[str, list[dict]]) -> str:
    """Compare the differences of both partitions, where they are resolved."""
    pairs = list(zip(*(found[partition] for partition in PARTITIONS), strict=True))
    smaller = sum(a["difference"] < b["difference"] for a, b in pairs)
    ratios = [b["difference"] / a["difference"] for a, b in pairs if a["difference"] >= RESOLVED]
    text = (
        f"With kernel k-means the difference of objectives is smaller than with a random partition "
        f"for {smaller} of {len(pairs)} numbers of clusters"
    )
    return f"{text}; {span(ratios)} times where it is resolved." if ratios else f"{text}."


def about_bounds(found: dict[str, list[dict]]) -> str:
    """Compare the bounds with the differences that are resolved, and with |f(alpha*)|."""
    sentences = []
    for partition, results in found.items():
        resolved = [one for one in results if one["difference"] >= RESOLVED]
        holds = [sum(one["difference"] <= one[key] for one in resolved) for key in D]
        text = (
            f"With {partition}, Theorem 1's bound holds in {holds[0]} and Theorem 3's in "
            f"{holds[1]} of {len(resolved)} cases whose difference is resolved"
        )
        if resolved:
            ratios = [one["bound"] / one["difference"] for one in resolved]
            shares = [100 * one["support_bound"] / one["bound"] for one in resolved]
            text += f"; Theorem 1's is {span(ratios)} times the difference, "
            text += f"Theorem 3's {span(shares)} % of it"
        above = sum(one["bound"] > abs(one["objective"]) for one in results)
        sentences.append(f"{text}. Theorem 1's is above |f(α*)| in {above} of {len(results)}.")
    return " ".join(sentences)


def span(values: list[float]) -> str:
    """Format the range of values."""
    return joined(dict.fromkeys(map(times, (min(values), max(values))))).replace(" and ", " to ")
