"""Precision and recall of support vectors, by clusters and against time."""

from __future__ import annotations

from paper import style
from paper.experiments.support_vectors import METHODS, cell, kernels
from paper.markdown import number, percent, table
from paper.sections import Page, title

MEASURES = ("precision", "recall")
WITH_LEVELS = ("dcsvm", "cascade")


def show(page: Page) -> str:
    parts = []
    for name in page.names:
        for kernel in kernels(name):
            points = {m: points_of(page, name, kernel, m) for m in METHODS}
            file = f"support-{name}-{kernel}"
            plot(page, file, points)
            text = f"precision and recall of support vectors on {title(name)}, {kernel} kernel"
            parts += [f"**{title(name)}, {kernel}**{counts(page, name, kernel)}"]
            parts += [page.image(file, text), numbers(points)]
    return "\n\n".join(parts)


def conclude(page: Page) -> str:
    return ""


def counts(page: Page, name: str, kernel: str) -> str:
    result = page.results.of(cell(page.scale, name, kernel, "dcsvm", page.threads))
    return f", {result['n_rows']:,} rows, {result['n_sv']:,} support vectors" if result else ""


def points_of(page: Page, name: str, kernel: str, method: str) -> list[dict]:
    result = page.results.of(cell(page.scale, name, kernel, method, page.threads))
    return result["points"] if result else []


def numbers(points: dict[str, list[dict]]) -> str:
    lines = [
        [style.TITLES[method], str(point["clusters"]), number(point["seconds"])]
        + [percent(point[measure]) for measure in MEASURES]
        for method in WITH_LEVELS
        for point in points[method]
    ]
    return table(["method", "clusters", "seconds", "precision %", "recall %"], lines)


def plot(page: Page, file: str, points: dict[str, list[dict]]) -> None:
    figure, axes = style.panels(2, 2)
    for column, measure in enumerate(MEASURES):
        by_clusters, by_time = axes[0][column], axes[1][column]
        for method in METHODS:
            values = [100 * point[measure] for point in points[method]]
            seconds = [max(point["seconds"], 1e-3) for point in points[method]]
            by_time.plot(seconds, values, **style.look(method))
            if method in WITH_LEVELS:
                clusters = [point["clusters"] for point in points[method]]
                by_clusters.plot(clusters, values, **style.look(method))
        ticks = sorted({p["clusters"] for m in WITH_LEVELS for p in points[m]})
        style.logarithmic(by_clusters, x=4)
        by_clusters.invert_xaxis()
        by_clusters.set(xticks=ticks, xticklabels=ticks, xlabel="clusters, or parts of the cascade")
        style.logarithmic(by_time, x=10)
        by_time.set(xlabel="seconds")
        for one in (by_clusters, by_time):
            one.set(ylabel=f"{measure}, %")
    style.legend_below(figure, [one for line in axes for one in line])
    style.save(figure, page.path(file))
