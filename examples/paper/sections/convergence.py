"""Objective and accuracy against time, for the rbf and for the polynomial kernel."""

from __future__ import annotations

from types import ModuleType

from bench import figures

from paper.baselines import TITLES
from paper.experiments import convergence, polynomial
from paper.figures import of_method
from paper.markdown import SHORTEST, number, over, paragraphs, percent, points, table
from paper.sections import NOT_MEASURED, Page, on_fewer_rows, shown_seconds, title

EXACT = ("early", "dcsvm", "single", "direct", "libsvm", "cascade")  # they have an objective
SOLVERS = ("dcsvm", "single", "direct", "libsvm")
SPAN = 20  # the figure of accuracies ends this many per cent below the best
LEAST_ERROR = 1e-9  # relative; the optimum is not known more accurately
HEADING = "method | set | seconds | relative error of f | accuracy %"

Points = dict[str, list[dict]]  # by method


def rbf(page: Page) -> str:
    return curves(page, convergence)


def polynomial_kernel(page: Page) -> str:
    return curves(page, polynomial)


def curves(page: Page, experiment: ModuleType) -> str:
    parts = []
    for name in page.names:
        found = {method: points_of(page, experiment, name, method) for method in experiment.METHODS}
        optimum = page.result(experiment, name, "dcsvm", experiment.REFERENCE)
        best = least_objective(page, experiment, name)
        file = f"{experiment.__name__.rpartition('.')[2]}-{name}"
        draw(page, file, found, best)
        text = f"objective and accuracy against time on {title(name)}"
        parts += [f"**{title(name)}**", page.image(file, text), solvers(page, experiment, name)]
        stand_for = [
            experiment.cell(page.scale, name, m, experiment.compared(page.scale, m), page.threads)
            for m in experiment.METHODS
        ]
        parts += [
            best_early(found, optimum, best),
            numbers(found, best),
            on_fewer_rows(page, stand_for),
        ]
    return paragraphs(parts)


def least_objective(page: Page, experiment: ModuleType, name: str) -> float | None:
    """Return the least f of all runs without a bias, if there is one at the tightest tolerance."""
    optimum = page.result(experiment, name, "dcsvm", experiment.REFERENCE)
    runs = [
        point
        for method in ("dcsvm", "single", "direct")
        for point in measured(points_of(page, experiment, name, method))
    ]
    return min(one["objective"] for one in (optimum, *runs)) if optimum else None


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


def measured(own: list[dict]) -> list[dict]:
    return [point for point in own if "limit" not in point]


def error(method: str, point: dict, own: list[dict], best: float | None) -> float | None:
    """Compute (f - f*) / |f*|. LIBSVM has a bias, so its last run gives its own optimum."""
    if method == "libsvm":
        last = next((one for one in reversed(own) if "objective" in one), point)
        best = None if point is last else last["objective"]
    if method not in EXACT or best is None or point.get("objective") is None:
        return None
    return (point["objective"] - best) / abs(best)


def numbers(found: Points, best: float | None) -> str:
    lines = []
    for method, own in found.items():
        for point in own:
            shown = [point.get("limit"), "-", "-"]
            if "limit" not in point:
                relative = error(method, point, own, best)
                least = "-" if relative is None else f"<{LEAST_ERROR:.0e}" if relative else "least"
                is_known = relative is not None and relative >= LEAST_ERROR
                shown = [shown_seconds(point), f"{relative:.1e}" if is_known else least]
                shown.append(percent(point["accuracy"]))
            lines.append([TITLES[method], point["set"], *shown])
    return f"<details><summary>numbers</summary>\n\n{table(HEADING, lines)}\n\n</details>"


def draw(page: Page, file: str, found: Points, best: float | None) -> None:
    """Draw both figures; errors below LEAST_ERROR are on the lower edge.

    As in the paper, methods whose accuracies are all below the figure are not in it.
    """
    shares = [100 * point["accuracy"] for own in found.values() for point in measured(own)]
    lowest = max(shares, default=0.0) - SPAN
    objective, accuracy = [], []
    for method, own in found.items():
        errors, shares = [], []
        for point in measured(own):
            relative, seconds = error(method, point, own, best), max(point["seconds"], SHORTEST)
            errors.append((seconds, None if relative is None else max(relative, LEAST_ERROR)))
            shares.append((seconds, 100 * point["accuracy"]))
        if all(share < lowest for _, share in shares):
            shares = []
        objective.append(of_method(method, errors))
        accuracy.append(of_method(method, shares))
    left = f"(f − f*) / |f*|, from {LEAST_ERROR:.0e}"
    panels = [
        figures.Panel("seconds", left, objective, "objective", x=10, y=10),
        figures.Panel("seconds", "test accuracy, %", accuracy, "accuracy", x=10, span=SPAN),
    ]
    figures.draw(page.path(file), [panels])


def solvers(page: Page, experiment: ModuleType, name: str) -> str:
    """Give the seconds of the exact solvers at the default tolerance, with their threads."""
    default = convergence.DEFAULT
    cells = {m: experiment.cell(page.scale, name, m, default, page.threads) for m in SOLVERS}
    shown = {method: page.seconds(cell) for method, cell in cells.items()}
    told = [f"{TITLES[method]} {text}" for method, text in shown.items() if text != NOT_MEASURED]
    text = f"Seconds to a tolerance of {default['tolerance']:g}: {'; '.join(told)}." * bool(told)
    several, single, _, libsvm = map(page.of, cells.values())
    if several and single and libsvm:
        text += (
            f" LIBSVM's are {over(libsvm['seconds'], several['seconds'])} times DC-SVM's with "
            f"{page.threads} threads, {over(libsvm['seconds'], single['seconds'])} times those "
            "with its own one."
        )
    return text


def best_early(found: Points, optimum: dict | None, best: float | None) -> str:
    """Compare the best early model with the optimum, and the last combined solutions with it."""
    early = measured(found["early"])
    if not early or not optimum:
        return ""
    first = max(early, key=lambda point: point["accuracy"])
    apart = points(first["accuracy"] - optimum["accuracy"])
    text = (
        f"The accuracy of the best early model less the exact solution's is {apart} %, after "
        f"{number(first['seconds'])} s"
    )
    for method, words in (("early", "its last level"), ("cascade", "CascadeSVM")):
        for last in measured(found.get(method, []))[-1:]:
            above = percent(error(method, last, found[method], best))
            text += f"; the objective of {words} is {above} % above the least"
    return f"{text}."
