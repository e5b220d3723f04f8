"""Precision and recall of support vectors, by clusters and against time."""

from __future__ import annotations

from bench import figures

from paper.baselines import TITLES
from paper.experiments import support_vectors
from paper.experiments.support_vectors import METHODS, ON_SUBSET, TOLERANCES, kernels, subset_cell
from paper.figures import of_method
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
            parts += [*of_levels(page, name, kernel), *beside_libsvm(page, name, kernel)]
    return paragraphs(parts)


def of_levels(page: Page, name: str, kernel: str) -> list[str]:
    """Make the heading, the figure and the table of the levels on all rows."""
    found = {m: page.result(support_vectors, name, kernel, m) for m in METHODS}
    points = points_of(found)
    leveled = {method: points[method] for method in WITH_LEVELS}
    ticks = sorted({point["clusters"] for own in leveled.values() for point in own})
    how = {"x": 4, "ticks": ticks, "is_reversed": True}
    by_clusters = panels("clusters", "clusters, or parts of the cascade", leveled, **how)
    figures.draw(page.path(f"support-{name}-{kernel}"), [by_clusters, by_time(points)])
    lines = [
        [TITLES[method], str(point["clusters"]), *shown(point)]
        for method, own in leveled.items()
        for point in own
    ]
    lines += [
        [TITLES["direct"], f"tolerance {tolerance:g}", *shown(point)]
        for tolerance, point in zip(TOLERANCES, points["direct"], strict=False)
    ]
    text = f"precision and recall of support vectors on {title(name)}, {kernel} kernel"
    return [
        f"**{title(name)}, {kernel}**{counts(found)}",
        page.image(f"support-{name}-{kernel}", text),
        table("method | clusters, or stopped at | seconds | precision % | recall %", lines),
    ]


def beside_libsvm(page: Page, name: str, kernel: str) -> list[str]:
    """Make the same of the rows that svm-train can solve."""
    found = {m: page.of(subset_cell(page.scale, name, kernel, m)) for m in ON_SUBSET}
    points, file = points_of(found), f"support-subset-{name}-{kernel}"
    figures.draw(page.path(file), [by_time(points)])
    clusters = [point["clusters"] for point in points["dcsvm"]]
    at = {
        "dcsvm": [f"{count} clusters" if count > 1 else "all rows" for count in clusters],
        "libsvm": [f"tolerance {tolerance:g}" for tolerance in TOLERANCES],
    }
    lines = [
        [TITLES[method], step, *shown(point)]
        for method in ON_SUBSET
        for step, point in zip(at[method], points[method], strict=False)
    ]
    text = f"LIBSVM and DC-SVM finding the support vectors of {title(name)}, {kernel} kernel"
    return [
        f"**{title(name)}, {kernel}, beside LIBSVM, on one thread**{counts(found)}",
        page.image(file, text),
        table("method | stopped at | seconds | precision % | recall %", lines),
        first_to_find(points),
    ]


def points_of(results: dict[str, dict | None]) -> Points:
    return {method: result["points"] if result else [] for method, result in results.items()}


def counts(results: dict[str, dict | None]) -> str:
    result = results["dcsvm"]
    return f", {result['n_rows']:,} rows, {result['n_sv']:,} support vectors" if result else ""


def shown(point: dict) -> list[str]:
    return [short(point["seconds"]), *(percent(point[measure]) for measure in MEASURES)]


def by_time(points: Points) -> list[figures.Panel]:
    return panels("seconds", "seconds", points, x=10)


def panels(along: str, label: str, points: Points, **how) -> list[figures.Panel]:
    """Make a panel of each measure along a key of the points."""
    return [
        figures.Panel(
            label,
            f"{measure}, %",
            [
                of_method(method, [(max(one[along], SHORTEST), 100 * one[measure]) for one in own])
                for method, own in points.items()
            ],
            **how,
        )
        for measure in MEASURES
    ]


def first_to_find(points: Points) -> str:
    """Compare the seconds after which DC-SVM and LIBSVM have most of the support vectors."""
    if not all(points.values()):
        return ""
    ours, theirs = (first_found(points[method]) for method in ("dcsvm", "libsvm"))
    told = ["never" if s is None else f"after {number(s)} s" for s in (ours, theirs)]
    text = (
        f"Precision and recall are both {100 * FOUND:g} % or more {told[0]} with DC-SVM and "
        f"{told[1]} with LIBSVM"
    )
    if not ours or not theirs:
        return f"{text}."
    word = "earlier" if ours < theirs else "later"
    return f"{text}: {word} by a factor of {times(max(ours, theirs) / min(ours, theirs))}."


def first_found(points: list[dict]) -> float | None:
    """Return the seconds of the first point with precision and recall of FOUND."""
    ready = (p["seconds"] for p in points if min(p[measure] for measure in MEASURES) >= FOUND)
    return next(ready, None)
