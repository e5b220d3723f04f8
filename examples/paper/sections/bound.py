"""Theorem 1: f(alpha bar) - f(alpha*) and its bounds over the number of clusters."""

from __future__ import annotations

import numpy as np

from paper import style
from paper.experiments.bound import CLUSTERS, PARTITIONS, cell
from paper.markdown import table
from paper.sections import Page, title

CURVES = {  # key of the result: label, marker, line
    "bound": ("bound of Theorem 1", "^", ":"),
    "support_bound": ("bound of Theorem 3", "v", "--"),
    "difference": ("f(ᾱ) − f(α*)", "o", "-"),
}
COLORS = dict(zip(PARTITIONS, (style.BLUE, style.VERMILION), strict=True))
FLOOR = 1e-3  # smaller differences are within the error of the solutions


def show(page: Page) -> str:
    parts = []
    for name in page.names:
        plot(page, name)
        text = f"the bound of Theorem 1 and the difference of objectives on {title(name)}"
        parts += [f"**{title(name)}**", page.image(f"bound-{name}", text), numbers(page, name)]
    return "\n\n".join(parts)


def conclude(page: Page) -> str:
    return ""


def results_of(page: Page, name: str, partition: str) -> list[dict | None]:
    return [page.results.of(cell(name, k, partition, page.threads)) for k in CLUSTERS]


def numbers(page: Page, name: str) -> str:
    lines = []
    for partition in PARTITIONS:
        for k, result in zip(CLUSTERS, results_of(page, name, partition), strict=True):
            values = [f"{result[key]:.3g}" if result else "-" for key in CURVES]
            objective = f"{result['objective']:.6g}" if result else "-"
            lines.append([f"{partition}, {k} clusters", *values, objective])
    return table(["", *(label for label, _, _ in CURVES.values()), "f(α*)"], lines)


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
