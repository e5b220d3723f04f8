"""Objective and accuracy against time, for the rbf and for the polynomial kernel."""

from __future__ import annotations

from types import ModuleType

from paper import style
from paper.baselines import TITLES
from paper.cells import Cell
from paper.experiments import convergence
from paper.markdown import number, percent, table
from paper.sections import Page, shown_seconds, title
from paper.sections.fewer import fewer_rows
from paper.sections.words import relation, sentences

EXACT = ("early", "dcsvm", "direct", "libsvm", "cascade")
ACCURACY_SPAN = 20  # the figure ends this many percent below the best
SOLVERS = {"dcsvm": "DC-SVM", "direct": "*direct*", "libsvm": "LIBSVM"}
SHORTEST = 1e-3  # seconds; shorter times are not compared
MIN_ERROR = 1e-9  # relative; the optimum is not known more accurately


def show(page: Page, experiment: ModuleType = convergence) -> str:
    kind = experiment.__name__.rpartition(".")[2]
    parts = []
    for name in page.names:
        points = {
            method: points_of(page, experiment, name, method) for method in experiment.METHODS
        }
        best = reference(page, experiment, name)
        if best is None and not any(points.values()):
            parts.append(f"**{title(name)}**, not measured.")
            continue
        file = f"{kind}-{name}"
        plot(page, file, points, best)
        text = f"objective and accuracy against time on {title(name)}"
        parts += [f"**{title(name)}**", page.image(file, text)]
        exceeded = {m: exceeded_steps(page, experiment, name, m) for m in experiment.METHODS}
        parts.append(numbers(points, exceeded, best))
        parts.append(fewer_rows(page, compared(page, experiment, name)))
    return "\n\n".join(filter(None, parts))


def compared(page: Page, experiment: ModuleType, name: str) -> list[Cell]:
    """Return the run of every method that stands for it."""
    return [
        experiment.cell(page.scale, name, method, options, page.threads)
        for method in experiment.METHODS
        for options in [experiment.compared(page.scale, method)]
    ]


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


def exceeded_steps(
    page: Page, experiment: ModuleType, name: str, method: str
) -> list[tuple[str, str]]:
    """Return the setting and the limit of the runs that exceeded it."""
    found = []
    for options in experiment.steps(page.scale, method):
        cell = experiment.cell(page.scale, name, method, options, page.threads)
        (key, value), *_ = options.items()
        if page.results.exceeded(cell):
            found.append((f"{key} {value:g}", page.seconds(cell)))
    return found


def numbers(
    points: dict[str, list[dict]], exceeded: dict[str, list[tuple[str, str]]], best: float | None
) -> str:
    lines = []
    for method, own in points.items():
        for point in own:
            relative = error(method, point, own, best) if method in EXACT else None
            shown = "-" if relative is None else f"{relative:.1e}"
            line = [TITLES[method], point["set"], shown_seconds(point), shown]
            lines.append([*line, percent(point["accuracy"])])
        lines += [[TITLES[method], *setting, "-", "-"] for setting in exceeded[method]]
    heading = ["method", "set", "seconds", "relative error of f", "accuracy %"]
    return f"<details><summary>numbers</summary>\n\n{table(heading, lines)}\n\n</details>"


def plot(page: Page, file: str, points: dict[str, list[dict]], best: float | None) -> None:
    figure, ((objective, accuracy),) = style.panels(1, 2)
    for method, own in points.items():
        if not own:
            continue
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


def conclude(page: Page, experiment: ModuleType = convergence) -> str:
    """Compare the solvers at the default tolerance, then what is below the optimum's accuracy."""
    parts = []
    for name in page.names:
        best = reference(page, experiment, name)
        text = sentences(
            [
                solvers(page, experiment, name),
                early(page, experiment, name, best),
                cascade(page, experiment, name, best),
            ]
        )
        if text:
            parts.append(f"- {title(name)}: {text}")
    return "\n".join(parts)


def solvers(page: Page, experiment: ModuleType, name: str) -> str:
    """Give the seconds of the exact solvers at the default tolerance."""
    cells = {
        method: experiment.cell(page.scale, name, method, convergence.DEFAULT, page.threads)
        for method in SOLVERS
    }
    seconds = {method: page.results.of(cell) for method, cell in cells.items()}
    seconds = {method: result["seconds"] for method, result in seconds.items() if result}
    parts = []
    for method, text in SOLVERS.items():
        limit = page.results.timeout(cells[method])
        if method in seconds:
            ratio = seconds[method] / max(seconds.get("dcsvm", 0.0), SHORTEST)
            other = method != "dcsvm" and "dcsvm" in seconds
            times = f", {number(ratio)} times as long" if other else ""
            parts.append(f"{text} {number(seconds[method])}{times}")
        elif limit:
            parts.append(f"{text} more than {limit:.0f}")
    tolerance = convergence.DEFAULT["tolerance"]
    return f"Seconds to a tolerance of {tolerance:g} are {'; '.join(parts)}." if parts else ""


def early(page: Page, experiment: ModuleType, name: str, best: float | None) -> str:
    """Compare the best early model with the optimum, and the objective of the last one."""
    points = points_of(page, experiment, name, "early")
    options = experiment.REFERENCE
    exact = page.results.of(experiment.cell(page.scale, name, "dcsvm", options, page.threads))
    if not points or not exact:
        return ""
    first = max(points, key=lambda point: point["accuracy"])
    apart = relation(first["accuracy"] - exact["accuracy"], "the exact solution")
    above = error("early", points[-1], points, best)
    return (
        f"The best early model is {apart}, after {number(first['seconds'])} s; the combined "
        f"solution of the last level is {percent(above)} % above the least objective."
    )


def cascade(page: Page, experiment: ModuleType, name: str, best: float | None) -> str:
    if "cascade" not in experiment.METHODS:
        return ""
    points = points_of(page, experiment, name, "cascade")
    above = points and error("cascade", points[-1], points, best)
    return f"CascadeSVM ends {percent(above)} % above it." if above else ""
