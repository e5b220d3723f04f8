"""Precision and recall of support vectors, by clusters and against time."""

from __future__ import annotations

from paper import style
from paper.experiments.support_vectors import (
    METHODS,
    ON_SUBSET,
    TOLERANCES,
    cell,
    kernels,
    subset_cell,
)
from paper.markdown import number, percent, table
from paper.sections import Page, title
from paper.sections.words import compared, times

MEASURES = ("precision", "recall")
WITH_LEVELS = ("dcsvm", "cascade")
FOUND = 0.9  # share of the support vectors that counts as having found them


def show(page: Page) -> str:
    parts = []
    for name in page.names:
        for kernel in kernels(name):
            results = results_of(page, name, kernel)
            points = points_of(results)
            file = f"support-{name}-{kernel}"
            plot(page, file, points)
            text = f"precision and recall of support vectors on {title(name)}, {kernel} kernel"
            parts += [f"**{title(name)}, {kernel}**{counts(results)}"]
            parts += [page.image(file, text), numbers(points), *subset(page, name, kernel)]
    return "\n\n".join(parts)


def results_of(page: Page, name: str, kernel: str) -> dict[str, dict | None]:
    return {
        method: page.results.of(cell(page.scale, name, kernel, method, page.threads))
        for method in METHODS
    }


def subset_results(page: Page, name: str, kernel: str) -> dict[str, dict | None]:
    return {
        method: page.results.of(subset_cell(page.scale, name, kernel, method))
        for method in ON_SUBSET
    }


def points_of(results: dict[str, dict | None]) -> dict[str, list[dict]]:
    return {method: result["points"] if result else [] for method, result in results.items()}


def counts(results: dict[str, dict | None]) -> str:
    result = results["dcsvm"]
    return f", {result['n_rows']:,} rows, {result['n_sv']:,} support vectors" if result else ""


def subset(page: Page, name: str, kernel: str) -> list[str]:
    """Make the heading, the figure and the table of the rows that svm-train can solve."""
    results = subset_results(page, name, kernel)
    points = points_of(results)
    file = f"support-subset-{name}-{kernel}"
    figure, axes = style.panels(1, 2)
    for one, measure in zip(axes[0], MEASURES, strict=True):
        plot_by_time(one, measure, points)
    style.legend_below(figure, list(axes[0]))
    style.save(figure, page.path(file))
    text = f"LIBSVM and DC-SVM finding the support vectors of {title(name)}, {kernel} kernel"
    return [
        f"**{title(name)}, {kernel}, beside LIBSVM, on one thread**{counts(results)}",
        page.image(file, text),
        subset_numbers(points),
    ]


def subset_numbers(points: dict[str, list[dict]]) -> str:
    at = {
        "dcsvm": [
            f"{point['clusters']} clusters" if point["clusters"] > 1 else "all rows"
            for point in points["dcsvm"]
        ],
        "libsvm": [f"tolerance {tolerance:g}" for tolerance in TOLERANCES],
    }
    lines = [
        [style.TITLES[method], step, number(point["seconds"])]
        + [percent(point[measure]) for measure in MEASURES]
        for method in ON_SUBSET
        for step, point in zip(at[method], points[method], strict=False)
    ]
    return table(["method", "stopped at", "seconds", "precision %", "recall %"], lines)


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
        for method in WITH_LEVELS:
            values = [100 * point[measure] for point in points[method]]
            clusters = [point["clusters"] for point in points[method]]
            by_clusters.plot(clusters, values, **style.look(method))
        ticks = sorted({p["clusters"] for m in WITH_LEVELS for p in points[m]})
        style.logarithmic(by_clusters, x=4)
        by_clusters.invert_xaxis()
        by_clusters.set(xticks=ticks, xticklabels=ticks, xlabel="clusters, or parts of the cascade")
        by_clusters.set(ylabel=f"{measure}, %")
        plot_by_time(by_time, measure, points)
    style.legend_below(figure, [one for line in axes for one in line])
    style.save(figure, page.path(file))


def plot_by_time(axes, measure: str, points: dict[str, list[dict]]) -> None:
    for method, found in points.items():
        seconds = [max(point["seconds"], 1e-3) for point in found]
        axes.plot(seconds, [100 * point[measure] for point in found], **style.look(method))
    style.logarithmic(axes, x=10)
    axes.set(xlabel="seconds", ylabel=f"{measure}, %")


def conclude(page: Page) -> str:
    """Say when each method has found the support vectors, from the cells shown."""
    levels, beside = [], []
    for name in page.names:
        for kernel in kernels(name):
            results, others = results_of(page, name, kernel), subset_results(page, name, kernel)
            if not all(results.values()) or not all(others.values()):
                return ""
            where = f"On {title(name)}, {kernel} kernel"
            levels.append(f"{where}{about_levels(points_of(results))}")
            beside.append(f"{where}{counts(others)}: {about_libsvm(points_of(others))}")
    return "\n\n".join(" ".join(sentences) for sentences in (levels, beside) if sentences)


def about_levels(points: dict[str, list[dict]]) -> str:
    """Compare the finest clusters of DC-SVM with the last level of CascadeSVM."""
    first, last = points["dcsvm"][0], points["cascade"][-1]
    shares = [
        f"a {measure} of {percent(first[measure])} %, "
        f"{compared(first[measure], last[measure], 'above', 'below')} "
        f"{'to ' * (first[measure] == last[measure])}CascadeSVM's {percent(last[measure])} at its "
        "end"
        for measure in MEASURES
    ]
    return f", {first['clusters']} clusters of DC-SVM have {', and '.join(shares)}."


def about_libsvm(points: dict[str, list[dict]]) -> str:
    """Compare the seconds after which DC-SVM and LIBSVM have most of the support vectors."""
    at = {method: first_found(found) for method, found in points.items()}
    told = {m: "never" if s is None else f"after {number(s)} s" for m, s in at.items()}
    text = (
        f"precision and recall are both {100 * FOUND:g} % or more {told['dcsvm']} with DC-SVM and "
        f"{told['libsvm']} with LIBSVM"
    )
    if not at["dcsvm"] or not at["libsvm"]:
        return f"{text}."
    ours, theirs = at["dcsvm"], at["libsvm"]
    ratio = times(max(ours, theirs) / min(ours, theirs))
    word = compared(ours, theirs, "later", "earlier")
    return f"{text}: DC-SVM is {word} by a factor of {ratio}." if ours != theirs else f"{text}."


def first_found(points: list[dict]) -> float | None:
    """Return the seconds of the first point with precision and recall of FOUND."""
    ready = (p["seconds"] for p in points if min(p[measure] for measure in MEASURES) >= FOUND)
    return next(ready, None)
