"""Precision and recall of support vectors, by clusters and against time."""

from __future__ import annotations

from paper import figures
from paper.baselines import TITLES
from paper.experiments.support_vectors import (
    METHODS,
    ON_SUBSET,
    TOLERANCES,
    cell,
    kernels,
    subset_cell,
)
from paper.markdown import SHORTEST, number, paragraphs, percent, table, times
from paper.sections import Page, short, title

MEASURES = ("precision", "recall")
WITH_LEVELS = ("dcsvm", "cascade")
FOUND = 0.9  # share of the support vectors that counts as having found them

Points = dict[str, list[dict]]  # by method


def curves(page: Page) -> str:
    parts = []
    for name in page.names:
        for kernel in kernels(name):
            parts += [of_levels(page, name, kernel), beside_libsvm(page, name, kernel)]
    return paragraphs(parts)


def of_levels(page: Page, name: str, kernel: str) -> str:
    """Make the heading, the figure and the table of the levels on all rows."""
    found = {m: page.of(cell(page.scale, name, kernel, m, page.threads)) for m in METHODS}
    points = points_of(found)
    file = f"support-{name}-{kernel}"
    ticks = sorted({p["clusters"] for m in WITH_LEVELS for p in points[m]})
    by_clusters = [
        figures.Panel(
            "clusters, or parts of the cascade",
            f"{measure}, %",
            [of_method(m, "clusters", measure, points[m]) for m in WITH_LEVELS],
            x=4,
            ticks=ticks,
            is_reversed=True,
        )
        for measure in MEASURES
    ]
    figures.draw(page.path(file), [by_clusters, by_time(points)])
    lines = [
        [TITLES[method], str(point["clusters"]), *shown(point)]
        for method in WITH_LEVELS
        for point in points[method]
    ]
    text = f"precision and recall of support vectors on {title(name)}, {kernel} kernel"
    return paragraphs(
        [
            f"**{title(name)}, {kernel}**{counts(found)}",
            page.image(file, text),
            table(["method", "clusters", "seconds", "precision %", "recall %"], lines),
        ]
    )


def beside_libsvm(page: Page, name: str, kernel: str) -> str:
    """Make the same of the rows that svm-train can solve."""
    found = {m: page.of(subset_cell(page.scale, name, kernel, m)) for m in ON_SUBSET}
    points = points_of(found)
    file = f"support-subset-{name}-{kernel}"
    figures.draw(page.path(file), [by_time(points)])
    at = {
        "dcsvm": [
            f"{point['clusters']} clusters" if point["clusters"] > 1 else "all rows"
            for point in points["dcsvm"]
        ],
        "libsvm": [f"tolerance {tolerance:g}" for tolerance in TOLERANCES],
    }
    lines = [
        [TITLES[method], step, *shown(point)]
        for method in ON_SUBSET
        for step, point in zip(at[method], points[method], strict=False)
    ]
    text = f"LIBSVM and DC-SVM finding the support vectors of {title(name)}, {kernel} kernel"
    return paragraphs(
        [
            f"**{title(name)}, {kernel}, beside LIBSVM, on one thread**{counts(found)}",
            page.image(file, text),
            table(["method", "stopped at", "seconds", "precision %", "recall %"], lines),
            first_to_find(points),
        ]
    )


def points_of(results: dict[str, dict | None]) -> Points:
    return {method: result["points"] if result else [] for method, result in results.items()}


def counts(results: dict[str, dict | None]) -> str:
    result = results["dcsvm"]
    return f", {result['n_rows']:,} rows, {result['n_sv']:,} support vectors" if result else ""


def shown(point: dict) -> list[str]:
    return [short(point["seconds"]), *(percent(point[measure]) for measure in MEASURES)]


def by_time(points: Points) -> list[figures.Panel]:
    return [
        figures.Panel(
            "seconds",
            f"{measure}, %",
            [of_method(method, "seconds", measure, own) for method, own in points.items()],
            x=10,
        )
        for measure in MEASURES
    ]


def of_method(method: str, along: str, measure: str, points: list[dict]) -> figures.Series:
    places = [max(point[along], SHORTEST) for point in points]
    values = [100 * point[measure] for point in points]
    return figures.of_method(method, list(zip(places, values, strict=True)))


def first_to_find(points: Points) -> str:
    """Compare the seconds after which DC-SVM and LIBSVM have most of the support vectors."""
    at = {method: first_found(own) for method, own in points.items()}
    if not all(points.values()):
        return ""
    told = {m: "never" if s is None else f"after {number(s)} s" for m, s in at.items()}
    text = (
        f"Precision and recall are both {100 * FOUND:g} % or more {told['dcsvm']} with DC-SVM and "
        f"{told['libsvm']} with LIBSVM"
    )
    if not at["dcsvm"] or not at["libsvm"]:
        return f"{text}."
    ours, theirs = at["dcsvm"], at["libsvm"]
    word = "earlier" if ours < theirs else "later"
    return f"{text}: {word} by a factor of {times(max(ours, theirs) / min(ours, theirs))}."


def first_found(points: list[dict]) -> float | None:
    """Return the seconds of the first point with precision and recall of FOUND."""
    ready = (p["seconds"] for p in points if min(p[measure] for measure in MEASURES) >= FOUND)
    return next(ready, None)
