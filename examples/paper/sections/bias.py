"""What LIBSVM's bias changes, and whether two independent solvers agree without one."""

from __future__ import annotations

import math
from collections.abc import Iterator

from paper.baselines import TITLES
from paper.cells import Cell
from paper.experiments.bias import METHODS, cell, settings
from paper.markdown import BAR, percent, points, powers, table
from paper.sections import Page, title

HEADING = f"accuracy % | C, gamma | {BAR.join(TITLES[m] for m in METHODS)} | what the bias adds"


def measured(page: Page) -> Iterator[tuple[str, dict[str, Cell], dict[str, dict | None]]]:
    """Yield the data set of each setting, and its cells and results by method."""
    for name in page.names:
        for exponents in settings(name):
            cells = {m: cell(page.scale, name, m, exponents, page.threads) for m in METHODS}
            yield name, cells, {method: page.of(one) for method, one in cells.items()}


def accuracies(page: Page) -> str:
    lines = []
    for name, cells, found in measured(page):
        C, gamma = cells["direct"].settings["C"], cells["direct"].settings["kernel"]["gamma"]
        shown = [
            percent(result["accuracy"]) if result else f"{page.seconds(cells[method])} s"
            for method, result in found.items()
        ]
        changes = "-"
        if found["biased"] and found["direct"]:
            changes = points(found["biased"]["accuracy"] - found["direct"]["accuracy"])
        lines.append([title(name), powers(math.log2(C), math.log2(gamma)), *shown, changes])
    return table(HEADING, lines)


def conclusion(page: Page) -> str:
    """Give the largest differences of both pairs of solvers."""
    found = [results for _, _, results in measured(page)]
    with_bias, without = (
        [(own[one], own[other]) for own in found if own[one] and own[other]]
        for one, other in (("libsvm", "biased"), ("plain", "direct"))
    )
    if not with_bias or not without:
        return ""
    apart, alone = (
        percent(max(abs(one["accuracy"] - other["accuracy"]) for one, other in pairs))
        for pairs in (with_bias, without)
    )
    objectives = max(abs(one["objective"] / other["objective"] - 1) for one, other in without)
    return (
        f"With a bias, LIBSVM and this project's solver differ by at most {apart} % of the "
        f"test rows; without one, this project's solver and the plain one by at most {alone} %, "
        f"and their objectives by at most {objectives:.1e} of their size. What is between "
        "these pairs beyond that is the bias."
    )
