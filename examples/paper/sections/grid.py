"""The (C, gamma) grids, their sums, and figures of accuracy over C and over gamma."""

from __future__ import annotations

import math
from statistics import mean

from bench import figures

from paper import published
from paper.baselines import TITLES
from paper.experiments import grid
from paper.experiments.grid import ALONE, METHODS, PEERS, SETTINGS, cell, has_peers, subset_cells
from paper.figures import of_method
from paper.markdown import (
    BAR,
    SHORTEST,
    duration,
    joined,
    number,
    paragraphs,
    percent,
    powers,
    table,
    times,
)
from paper.sections import NOT_MEASURED, Page, in_paper, shown_seconds, title

HERE = {"early": "early, 64 clusters", "found": "early, clusters found", "dcsvm": "DC-SVM"}
IN_SUMS = {"early": "DC-SVM (early)", "dcsvm": "DC-SVM", "libsvm": "LIBSVM"}
IN_PAPER = IN_SUMS | {"lasvm": "LaSVM"}
SHOWN = (-10, 1, 10)  # fixed exponents in the paper's figures
COMPARED = (*ALONE, *PEERS)
ROBUST = (*ALONE, "libsvm")  # curves in the figures of the subset
NEAR = 0.5  # per cent of the test rows: an accuracy that agrees with the paper's
SPAN = 100  # per cent that the figures show

Grid = dict[tuple[int, int], dict]  # results by the exponents of C and gamma; `limit` without one


def tables(page: Page) -> str:
    return paragraphs(part for name in page.names for part in of_data_set(page, name))


def of_data_set(page: Page, name: str) -> list[str]:
    """Make the heading, the figure and the table of a data set and of its subset."""
    ours = {method: settings(page, name, method) for method in METHODS}
    draw(page, f"grid-{name}", ours)
    theirs = published.grid()
    in_it = [m for m in IN_PAPER if (in_paper(name), *SETTINGS[0], m) in theirs]
    lines = []
    for c, g in SETTINGS:
        printed = [theirs.get((in_paper(name), c, g, method), ("-", "-")) for method in in_it]
        found = [shown(own.get((c, g))) for own in ours.values()]
        lines.append(
            [powers(c, g), *found, *(", ".join(one or "-" for one in pair) for pair in printed)]
        )
    heading = ["C, gamma", *(f"{HERE[method]}: %, s" for method in ours)]
    heading += [f"paper, {IN_PAPER[method]}" for method in in_it]
    image = page.image(f"grid-{name}", f"accuracy over C and gamma on {title(name)}")
    parts = [f"**{title(name)}**", image, table(BAR.join(heading), lines)]
    return parts + (of_subset(page, name) if has_peers(name) else [])


def of_subset(page: Page, name: str) -> list[str]:
    """Make the heading, the figure and the table of all methods on the subset."""
    found = {method: subset_settings(page, name, method) for method in COMPARED}
    draw(page, f"grid-subset-{name}", {method: found[method] for method in ROBUST})
    lines = [
        [powers(*pair), *(shown(found[method].get(pair)) for method in COMPARED)]
        for pair in SETTINGS
    ]
    text = f"accuracy over C and gamma on a subset of {title(name)}"
    return [
        f"**{subset_title(page, name)}**, each setting trained alone, on one thread",
        page.image(f"grid-subset-{name}", text),
        table(BAR.join(["C, gamma", *(f"{TITLES[m]}: %, s" for m in COMPARED)]), lines),
    ]


def shown(found: dict | None) -> str:
    if found is None:
        return NOT_MEASURED
    if "limit" in found:
        return found["limit"]
    return f"{percent(found['accuracy'])}, {shown_seconds(found)}"


def settings(page: Page, name: str, method: str) -> Grid:
    """Return the results of each setting on all rows."""
    one = cell(page.scale, name, method, page.threads)
    if page.results.exceeded(one):
        return {pair: {"limit": f"{page.seconds(one)} for all"} for pair in SETTINGS}
    return by_exponents(page.of(one))


def by_exponents(result: dict | None) -> Grid:
    found = result["settings"] if result else []
    return {(int(one["log2_C"]), int(one["log2_gamma"])): one for one in found}


def subset_settings(page: Page, name: str, method: str) -> Grid:
    """Return the results of each setting on the subset."""
    found: Grid = {}
    for one in subset_cells(page.scale, name, method):
        found |= by_exponents(page.of(one))
        if page.results.exceeded(one):
            limit = {"limit": page.seconds(one), "seconds": page.results.limit(one)}
            found |= {tuple(pair): limit for pair in one.settings["exponents"]}
    return found


def subset_grids(page: Page) -> dict[str, dict[str, Grid]]:
    """Return the grids of all methods, for the data sets where all settings are measured."""
    grids = {
        name: {method: subset_settings(page, name, method) for method in COMPARED}
        for name in filter(has_peers, page.names)
    }
    return {
        n: own for n, own in grids.items() if all(len(one) == len(SETTINGS) for one in own.values())
    }


def subset_title(page: Page, name: str) -> str:
    (one,) = subset_cells(page.scale, name, "dcsvm")
    result = page.of(one)
    return f"{title(name)}, {result['n_rows']:,} rows" if result else f"{title(name)}, a part"


def draw(page: Page, file: str, grids: dict[str, Grid]) -> None:
    """Draw smaller markers over larger ones, so that equal accuracies all show."""

    def curve(place: int, method: str, parameter: str, fixed: int) -> figures.Series:
        points = []
        for e in grid.EXPONENTS:
            one = grids[method].get((fixed, e) if parameter == "C" else (e, fixed), {})
            points.append((e, 100 * one["accuracy"] if "accuracy" in one else None))
        return of_method(method, points, markersize=4 + 2.5 * place)

    panels = [
        [
            figures.Panel(
                f"log2 {other}",
                "" if column else "test accuracy, %",
                [curve(i, m, parameter, fixed) for i, m in reversed(list(enumerate(grids)))],
                f"{parameter} = $2^{{{fixed}}}$",
                ticks=list(grid.EXPONENTS),
                span=SPAN,
            )
            for column, fixed in enumerate(SHOWN)
        ]
        for parameter, other in (("C", "gamma"), ("gamma", "C"))
    ]
    figures.draw(page.path(file), panels, same_axis=True)


def sums(page: Page) -> str:
    """Make the table of the searches' seconds, beside the paper's sums."""
    lines = []
    for name in page.names:
        theirs = published.GRID_SUMS.get(in_paper(name), {})
        ours = [total(page, name, method) for method in METHODS]
        lines.append([title(name), *ours, *(theirs.get(method, "-") for method in IN_SUMS)])
    paper = [f"paper: {method}" for method in IN_SUMS.values()]
    return table(BAR.join(["sum", *HERE.values(), *paper]), lines)


def total(page: Page, name: str, method: str) -> str:
    one = cell(page.scale, name, method, page.threads)
    result, limit = page.of(one), page.results.limit(one)
    if result:
        missed = sum(not setting["converged"] for setting in result["settings"])
        return duration(result["seconds"]) + f" ({missed} not converged)" * bool(missed)
    return f">{duration(limit)}" if limit else page.seconds(one)


def agreement(page: Page) -> str:
    """Compare all accuracies with those of the paper's tables."""
    lines, theirs = [], published.grid()
    for name in page.names:
        for method in METHODS:
            printed = "dcsvm" if method == "dcsvm" else "early"
            apart = [
                abs(100 * one["accuracy"] - float(theirs[key][0]))
                for pair, one in settings(page, name, method).items()
                if (key := (in_paper(name), *pair, printed)) in theirs and "accuracy" in one
            ]
            if apart:
                near = f"{sum(value <= NEAR for value in apart)} of {len(apart)}"
                span = number(mean(apart)), number(max(apart))
                lines.append([f"{title(name)}, {HERE[method]}", *span, near])
    return table(f"difference to the paper's accuracy, % | mean | largest | at most {NEAR}", lines)


def subset_sums(page: Page) -> str:
    """Make the table of sums on the subsets and of settings in which DC-SVM is faster."""
    lines = []
    for name, found in subset_grids(page).items():
        faster = "{} of {}".format(*faster_than_libsvm(found))
        sums = (f"{'>' * is_cut(found[m])}{duration(sum_of(found[m]))}" for m in COMPARED)
        lines.append([subset_title(page, name), *sums, faster])
    titles = BAR.join(TITLES[method] for method in COMPARED)
    return table(f"sum on a subset | {titles} | DC-SVM faster than LIBSVM", lines)


def sum_of(found: Grid) -> float:
    """Add the seconds of all settings, or the limits that they exceeded."""
    return sum(one["seconds"] or 0.0 for one in found.values())


def is_cut(found: Grid) -> bool:
    return any("limit" in one for one in found.values())


def faster_than_libsvm(found: dict[str, Grid]) -> tuple[int, int]:
    """Count the settings in which DC-SVM is faster than LIBSVM, and those that both have.

    A limit of LIBSVM is a lower bound; DC-SVM's own means that it is not faster.
    """
    ours, theirs = found["dcsvm"], found["libsvm"]
    both = ours.keys() & theirs.keys()
    faster = sum(
        "limit" not in ours[one] and ours[one]["seconds"] < (theirs[one]["seconds"] or math.inf)
        for one in both
    )
    return faster, len(both)


def times_together(page: Page) -> str:
    """Compare the seconds of all settings of all subsets."""
    grids = subset_grids(page).values()
    seconds = {method: sum(sum_of(own[method]) for own in grids) for method in COMPARED}
    sentences = []
    for method in PEERS if grids else ():
        cut = any(is_cut(own[method]) for own in grids)
        exact, early = (times(seconds[method] / max(seconds[m], SHORTEST)) for m in reversed(ALONE))
        sentences.append(
            f"All settings of the subsets take {TITLES[method].split(',')[0]} "
            f"{'more than ' * cut}{duration(seconds[method])}, {'at least ' * cut}{exact} times "
            f"the {duration(seconds['dcsvm'])} of DC-SVM and {early} times the "
            f"{duration(seconds['early'])} of early prediction."
        )
    return " ".join(sentences)


def accuracies(found: dict[str, Grid]) -> dict[str, list[float]]:
    """Return the accuracies of the curves in the settings that all have finished."""
    done = [s for s in SETTINGS if all("accuracy" in found[m][s] for m in ROBUST)]
    return {method: [found[method][s]["accuracy"] for s in done] for method in ROBUST}


def robustness(page: Page) -> str:
    """Make the table of means and least accuracies over the settings that all have finished."""
    lines = []
    for name, found in subset_grids(page).items():
        values = accuracies(found).values()
        shown = [f"{percent(mean(v))}, {percent(min(v))}" if v else "-" for v in values]
        lines.append([subset_title(page, name), str(len([*values][0])), *shown])
    titles = BAR.join(TITLES[method] for method in ROBUST)
    return table(f"mean and least accuracy % | settings | {titles}", lines)


def bias_on_grids(page: Page) -> str:
    """Count the settings in which DC-SVM, without a bias, and LIBSVM differ much."""
    apart = {
        f"{powers(*pair)} on {title(name)}": own["dcsvm"][pair]["accuracy"] - one["accuracy"]
        for name, own in subset_grids(page).items()
        for pair, one in own["libsvm"].items()
        if "accuracy" in one and "accuracy" in own["dcsvm"][pair]
    }
    if not apart:
        return ""
    widest = sorted(apart, key=lambda key: -abs(apart[key]))[:3]
    listed = joined(f"{100 * apart[key]:+.2f} % ({key})" for key in widest)
    above, below = (sum(sign * v > NEAR / 100 for v in apart.values()) for sign in (1, -1))
    return (
        f"DC-SVM has no bias and LIBSVM has one: DC-SVM is more than {NEAR} % above LIBSVM in "
        f"{above} of {len(apart)} settings and below in {below}, most at {listed}. Both are "
        "solved exactly, so this is the bias, not robustness."
    )
