"""What LIBSVM's bias changes, and whether two independent solvers agree without one."""

from __future__ import annotations

import math

from paper.baselines import TITLES
from paper.experiments.bias import METHODS, cell, settings
from paper.markdown import percent, points, powers, table
from paper.sections import Page, title


def results_of(page: Page) -> dict[tuple[str, tuple | None], dict[str, dict | None]]:
    """Return the results by data set and exponents, and by method."""
    return {
        (name, exponents): {
            method: page.of(cell(page.scale, name, method, exponents, page.threads))
            for method in METHODS
        }
        for name in page.names
        for exponents in settings(name)
    }


def accuracies(page: Page) -> str:
    lines = []
    for (name, exponents), found in results_of(page).items():
        cells = {m: cell(page.scale, name, m, exponents, page.threads) for m in METHODS}
        C, gamma = cells["direct"].settings["C"], cells["direct"].settings["kernel"]["gamma"]
        shown = [
            percent(found[m]["accuracy"]) if found[m] else f"{page.seconds(cells[m])} s"
            for m in METHODS
        ]
        changes = "-"
        if found["biased"] and found["direct"]:
            changes = points(found["biased"]["accuracy"] - found["direct"]["accuracy"])
        lines.append([title(name), powers(math.log2(C), math.log2(gamma)), *shown, changes])
    heading = ["accuracy %", "C, gamma", *(TITLES[method] for method in METHODS)]
    return table([*heading, "what the bias adds"], lines) if lines else ""


def conclusion(page: Page) -> str:
    """Give the largest differences of both pairs of solvers."""
    found = results_of(page)
    apart = {
        pair: [
            abs(own[pair[0]]["accuracy"] - own[pair[1]]["accuracy"])
            for own in found.values()
            if own[pair[0]] and own[pair[1]]
        ]
        for pair in (("libsvm", "biased"), ("plain", "direct"))
    }
    objectives = [
        abs(own["plain"]["objective"] / own["direct"]["objective"] - 1)
        for own in found.values()
        if own["plain"] and own["direct"]
    ]
    if not all(apart.values()):
        return ""
    with_bias, without = (percent(max(differences)) for differences in apart.values())
    return (
        f"With a bias, LIBSVM and this project's solver differ by at most {with_bias} % of the "
        f"test rows; without one, this project's solver and the plain one by at most {without} %, "
        f"and their objectives by at most {max(objectives):.1e} of their size. Between these pairs "
        "there is the bias alone."
    )
