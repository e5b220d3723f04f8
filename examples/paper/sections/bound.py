"""Theorem 1: f(alpha bar) - f(alpha*) and its bounds over the number of clusters."""

from __future__ import annotations

from paper import figures
from paper.experiments.bound import CLUSTERS, PARTITIONS, cell
from paper.markdown import joined, paragraphs, table, times
from paper.sections import NOT_MEASURED, Page, title

CURVES = {  # key of the result: label, marker, line
    "bound": ("bound of Theorem 1", "^", ":"),
    "support_bound": ("bound of Theorem 3", "v", "--"),
    "difference": ("f(ᾱ) − f(α*)", "o", "-"),
}
COLORS = dict(zip(PARTITIONS, (figures.BLUE, figures.VERMILION), strict=True))
D = {"bound": "D(π)", "support_bound": "D over S* ∪ S̄"}  # bound = 1/2 C^2 D
RESOLVED = 1e-3  # smaller differences are within the error of the solutions
BELOW = f"<{RESOLVED:g}"


def bounds(page: Page) -> str:
    parts = []
    for name in page.names:
        found = {
            partition: [page.of(cell(name, k, partition, page.threads)) for k in CLUSTERS]
            for partition in PARTITIONS
        }
        draw(page, name, found)
        text = f"the bound of Theorem 1 and the difference of objectives on {title(name)}"
        parts += [f"**{title(name)}**", page.image(f"bound-{name}", text)]
        C = cell(name, CLUSTERS[0], PARTITIONS[0], page.threads).settings["C"]
        parts.append(numbers(found, 0.5 * C**2))
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
                shown = [f"{result[key] / half:.3g}" for key in D]
                shown += [f"{result[key]:.3g}" for key in D]
                is_resolved = result["difference"] >= RESOLVED
                shown.append(f"{result['difference']:.3g}" if is_resolved else BELOW)
                shown.append(f"{result['objective']:.6g}")
            lines.append([f"{partition}, {k} clusters", *shown])
    return table(["", *D.values(), *(label for label, _, _ in CURVES.values()), "f(α*)"], lines)


def draw(page: Page, name: str, found: dict[str, list[dict | None]]) -> None:
    """Draw with a linear scale on the left, as in the paper, and a logarithmic one on the right.

    On the latter, values below RESOLVED are on the lower edge.
    """

    def series(least: float | None) -> list[figures.Series]:
        return [
            figures.Series(
                [
                    (k, result and (result[key] if least is None else max(result[key], least)))
                    for k, result in zip(CLUSTERS, results, strict=True)
                ],
                {
                    "color": COLORS[partition],
                    "marker": marker,
                    "linestyle": line,
                    "label": f"{partition}: {label}",
                },
            )
            for partition, results in found.items()
            for key, (label, marker, line) in CURVES.items()
        ]

    ticks = list(CLUSTERS)
    left = figures.Panel(
        "clusters", "bound, or difference of objectives", series(None), "absolute", x=2, ticks=ticks
    )
    right = figures.Panel(
        "clusters", "", series(RESOLVED), f"logarithmic, from {RESOLVED:g}", x=2, y=10, ticks=ticks
    )
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
            text += (
                f"; Theorem 1's is {span(ratios)} times the difference, Theorem 3's {span(shares)} "
                "% of it"
            )
        above = sum(one["bound"] > abs(one["objective"]) for one in results)
        sentences.append(f"{text}. It is above |f(α*)| in {above} of {len(results)}.")
    return " ".join(sentences)


def span(values: list[float]) -> str:
    """Format the range of values."""
    return joined(dict.fromkeys(map(times, (min(values), max(values))))).replace(" and ", " to ")
