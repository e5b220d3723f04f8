"""Objective and accuracy against time, for the rbf and for the polynomial kernel."""

from __future__ import annotations

from types import ModuleType

from paper import figures
from paper.baselines import TITLES
from paper.experiments import convergence, polynomial
from paper.markdown import SHORTEST, number, over, paragraphs, percent, points, table
from paper.sections import NOT_MEASURED, Page, on_fewer_rows, shown_seconds, title

EXACT = ("early", "dcsvm", "single", "direct", "libsvm", "cascade")  # they have an objective
SOLVERS = ("dcsvm", "single", "direct", "libsvm")
SPAN = 20  # the figure of accuracies ends this many per cent below the best
LEAST_ERROR = 1e-9  # relative; the optimum is not known more accurately


def rbf(page: Page) -> str:
    return curves(page, convergence)


def polynomial_kernel(page: Page) -> str:
    return curves(page, polynomial)


def curves(page: Page, experiment: ModuleType) -> str:
    parts = []
    for name in page.names:
        found = {method: points_of(page, experiment, name, method) for method in experiment.METHODS}
        best = reference(page, experiment, name)
        file = f"{experiment.__name__.rpartition('.')[2]}-{name}"
        draw(page, file, found, best)
        stands_for = [
            experiment.cell(page.scale, name, method, options, page.threads)
            for method in experiment.METHODS
            for options in [experiment.compared(page.scale, method)]
        ]
        text = f"objective and accuracy against time on {title(name)}"
        parts += [f"**{title(name)}**", page.image(file, text)]
        parts += [solvers(page, experiment, name), best_early(page, experiment, name, found)]
        parts += [numbers(found, best), on_fewer_rows(page, stands_for)]
    return paragraphs(parts)


def points_of(page: Page, experiment: ModuleType, name: str, method: str) -> list[dict]:
    """Return a method's points in the order of their settings: results, or the `limit` of one."""
    found = []
    for options in experiment.steps(page.scale, method):
        cell = experiment.cell(page.scale, name, method, options, page.threads)
        result = page.of(cell)
        (key, value), *_ = options.items()
        setting = f"{key} {value:g}"
        if not result:
            found.append({"set": setting, "limit": page.seconds(cell)})
        elif cell.settings.get("history"):
            found += [{**point, "set": f"size {point['size']}"} for point in result["history"]]
        else:
            found.append({**result, "set": setting})
    return found


def reference(page: Page, experiment: ModuleType, name: str) -> float | None:
    options = experiment.REFERENCE
    result = page.of(experiment.cell(page.scale, name, "dcsvm", options, page.threads))
    return result and result["objective"]


def error(method: str, point: dict, own: list[dict], best: float | None) -> float | None:
    """Compute (f - f*) / |f*|. LIBSVM has a bias, so its last run gives its own optimum."""
    if method == "libsvm":
        last = next((one for one in reversed(own) if "objective" in one), point)
        best = None if point is last else last["objective"]
    if method not in EXACT or best is None or point.get("objective") is None:
        return None
    return (point["objective"] - best) / abs(best)


def numbers(found: dict[str, list[dict]], best: float | None) -> str:
    lines = []
    for method, own in found.items():
        for point in own:
            if "limit" in point:
                lines.append([TITLES[method], point["set"], point["limit"], "-", "-"])
                continue
            relative = error(method, point, own, best)
            shown = "-" if relative is None else f"{relative:.1e}"
            if relative is not None and relative < LEAST_ERROR:
                shown = f"<{LEAST_ERROR:.0e}"
            line = [TITLES[method], point["set"], shown_seconds(point), shown]
            lines.append([*line, percent(point["accuracy"])])
    heading = ["method", "set", "seconds", "relative error of f", "accuracy %"]
    return f"<details><summary>numbers</summary>\n\n{table(heading, lines)}\n\n</details>"


def draw(page: Page, file: str, found: dict[str, list[dict]], best: float | None) -> None:
    """Draw both figures; errors below LEAST_ERROR are on the lower edge.

    As in the paper, methods whose accuracies are all below the figure are not in it.
    """
    objective, accuracy = [], []
    shares = [
        100 * point["accuracy"] for own in found.values() for point in own if "seconds" in point
    ]
    lowest = max(shares, default=0.0) - SPAN
    for method, own in found.items():
        measured = [point for point in own if "limit" not in point]
        seconds = [max(point["seconds"], SHORTEST) for point in measured]
        shares = [100 * point["accuracy"] for point in measured]
        if max(shares, default=lowest) < lowest:
            shares = [None] * len(measured)
        errors = [error(method, point, own, best) for point in measured]
        errors = [None if one is None else max(one, LEAST_ERROR) for one in errors]
        accuracy.append(figures.of_method(method, list(zip(seconds, shares, strict=True))))
        objective.append(figures.of_method(method, list(zip(seconds, errors, strict=True))))
    left = f"(f − f*) / |f*|, from {LEAST_ERROR:.0e}"
    panels = [
        figures.Panel("seconds", left, objective, "objective", x=10, y=10),
        figures.Panel("seconds", "test accuracy, %", accuracy, "accuracy", x=10, span=SPAN),
    ]
    figures.draw(page.path(file), [panels])


def solvers(page: Page, experiment: ModuleType, name: str) -> str:
    """Give the seconds of the exact solvers at the default tolerance, with their threads."""
    told, seconds = [], {}
    for method in SOLVERS:
        cell = experiment.cell(page.scale, name, method, convergence.DEFAULT, page.threads)
        result = page.of(cell)
        if result:
            seconds[method] = result["seconds"]
        shown = page.seconds(cell)
        if shown != NOT_MEASURED:
            told.append(f"{TITLES[method]} {shown}")
    tolerance = convergence.DEFAULT["tolerance"]
    text = f"Seconds to a tolerance of {tolerance:g}: {'; '.join(told)}." if told else ""
    if {"libsvm", "single", "dcsvm"} <= set(seconds):
        several, single = (over(seconds["libsvm"], seconds[m]) for m in ("dcsvm", "single"))
        text += (
            f" LIBSVM's are {several} times DC-SVM's with {page.threads} threads, {single} times "
            "those with its own one."
        )
    return text


def best_early(page: Page, experiment: ModuleType, name: str, found: dict[str, list[dict]]) -> str:
    """Compare the best early model with the optimum, and the last combined solutions with it."""
    options = experiment.REFERENCE
    exact = page.of(experiment.cell(page.scale, name, "dcsvm", options, page.threads))
    early = [point for point in found["early"] if "limit" not in point]
    if not early or not exact:
        return ""
    first = max(early, key=lambda point: point["accuracy"])
    apart = points(first["accuracy"] - exact["accuracy"])
    text = (
        f"The accuracy of the best early model less the exact solution's is {apart} %, after "
        f"{number(first['seconds'])} s"
    )
    for method, words in (("early", "its last level"), ("cascade", "CascadeSVM")):
        last = [point for point in found.get(method, []) if "limit" not in point][-1:]
        if last:
            above = percent(error(method, last[0], found[method], exact["objective"]))
            text += f"; the objective of {words} is {above} % above the least"
    return f"{text}."
