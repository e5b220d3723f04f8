"""Objective and accuracy against time, for the rbf and for the polynomial kernel."""

from __future__ import annotations

from types import ModuleType

from paper import style
from paper.baselines import TITLES
from paper.experiments import convergence
from paper.markdown import number, percent, table
from paper.sections import Page, title

EXACT = ("early", "dcsvm", "direct", "libsvm", "cascade")
ACCURACY_SPAN = 20  # the figure ends this many percent below the best
MIN_ERROR = 1e-9  # relative; the optimum is not known more accurately


def show(page: Page, experiment: ModuleType = convergence) -> str:
    kind = experiment.__name__.rpartition(".")[2]
    parts = []
    for name in page.names:
        points = {
            method: points_of(page, experiment, name, method) for method in experiment.METHODS
        }
        best = reference(page, experiment, name)
        file = f"{kind}-{name}"
        plot(page, file, points, best)
        text = f"objective and accuracy against time on {title(name)}"
        parts += [f"**{title(name)}**", page.image(file, text), numbers(points, best)]
    return "\n\n".join(parts)


def points_of(page: Page, experiment: ModuleType, name: str, method: str) -> list[dict]:
    """Return seconds, accuracy and, for exact methods, objective, with the settings."""
    points = []
    for options in experiment.steps(page.scale, method):
        cell = experiment.cell(page.scale, name, method, options, page.threads)
        result = page.results.of(cell)
        if not result:
            continue
        if cell.settings.get("history"):
            points += [{**point, "set": f"size {point['size']}"} for point in result["history"]]
        else:
            (key, value), *_ = options.items()
            points.append({**result, "set": f"{key} {value:g}"})
    return points


def reference(page: Page, experiment: ModuleType, name: str) -> float | None:
    options = experiment.REFERENCE
    cell = experiment.cell(page.scale, name, "dcsvm", options, page.threads)
    result = page.results.of(cell)
    return result and result["objective"]


def error(method: str, point: dict, points: list[dict], best: float | None) -> float | None:
    """Compute (f - f*) / |f*|. LIBSVM has a bias, so its last run gives its own optimum."""
    if method == "libsvm":
        best = None if point is points[-1] else points[-1]["objective"]
    if best is None or point.get("objective") is None:
        return None
    return max((point["objective"] - best) / abs(best), MIN_ERROR)


def numbers(points: dict[str, list[dict]], best: float | None) -> str:
    lines = []
    for method, own in points.items():
        for point in own:
            relative = error(method, point, own, best) if method in EXACT else None
            shown = "-" if relative is None else f"{relative:.1e}"
            line = [TITLES[method], point["set"], number(point["seconds"]), shown]
            lines.append([*line, percent(point["accuracy"])])
    heading = ["method", "set", "seconds", "relative error of f", "accuracy %"]
    return f"<details><summary>numbers</summary>\n\n{table(heading, lines)}\n\n</details>"


def plot(page: Page, file: str, points: dict[str, list[dict]], best: float | None) -> None:
    figure, ((objective, accuracy),) = style.panels(1, 2)
    for method, own in points.items():
        seconds = [max(point["seconds"], 1e-3) for point in own]
        accuracy.plot(seconds, [100 * point["accuracy"] for point in own], **style.look(method))
        if method in EXACT:
            errors = [error(method, point, points[method], best) for point in own]
            known = [(s, e) for s, e in zip(seconds, errors, strict=True) if e is not None]
            if known:
                objective.plot(*zip(*known, strict=True), **style.look(method))
    style.logarithmic(objective, x=10, y=10)
    style.logarithmic(accuracy, x=10)
    objective.set(xlabel="seconds", ylabel="(f − f*) / |f*|", title="objective")
    accuracy.set(xlabel="seconds", ylabel="test accuracy, %", title="accuracy")
    style.percent_axis([accuracy], ACCURACY_SPAN)
    style.legend_below(figure, [objective, accuracy])
    style.save(figure, page.path(file))
