"""The (C, gamma) grids, their sums, and figures of accuracy over C and over gamma."""

from __future__ import annotations

from paper import published, style
from paper.baselines import TITLES
from paper.experiments.grid import (
    EXPONENTS,
    METHODS,
    PEERS,
    SETTINGS,
    cell,
    has_peers,
    subset_cells,
)
from paper.markdown import duration, percent, table
from paper.sections import Page, in_paper, shown_seconds, title
from paper.sections.words import compared, joined, times

IN_PAPER = {"early": "DC-SVM (early)", "dcsvm": "DC-SVM", "libsvm": "LIBSVM"}
SHOWN = (-10, 1, 10)  # fixed exponents in the paper's figures
COMPARED = (*METHODS, *PEERS)
ROBUST = (*METHODS, "libsvm")  # curves in the figures of the subset
FASTER_IN_PAPER = "96 of 100"  # settings in which DC-SVM is faster than LIBSVM

Grid = dict[tuple[int, int], dict]  # results by the exponents of C and gamma


def show(page: Page) -> str:
    parts = [sums(page), subset_sums(page)]
    for name in page.names:
        ours = {method: settings(page, name, method) for method in METHODS}
        text = f"accuracy over C and gamma on {title(name)}"
        plot(page, f"grid-{name}", ours)
        parts += [f"**{title(name)}**", page.image(f"grid-{name}", text), grid(name, ours)]
        if has_peers(name):
            parts += subset(page, name)
    return "\n\n".join(part for part in parts if part)


def settings(page: Page, name: str, method: str) -> Grid:
    """Return the results of each setting on all rows."""
    return by_exponents(page.results.of(cell(page.scale, name, method, page.threads)))


def by_exponents(result: dict | None) -> Grid:
    found = result["settings"] if result else []
    return {(int(one["log2_C"]), int(one["log2_gamma"])): one for one in found}


def subset_settings(page: Page, name: str, method: str) -> Grid:
    """Return the results of each setting on the subset; a setting out of time has its `limit`."""
    found: Grid = {}
    for one in subset_cells(page.scale, name, method):
        found |= by_exponents(page.results.of(one))
        limit = page.results.timeout(one)
        if limit and method in PEERS:
            found |= {tuple(pair): {"limit": limit} for pair in one.settings["exponents"]}
    return found


def subset_names(page: Page) -> list[str]:
    return [name for name in page.names if has_peers(name)]


def subset_rows(page: Page, name: str) -> int | None:
    """Return the number of rows of the subset; None if our methods are not measured on it."""
    (one,) = subset_cells(page.scale, name, "dcsvm")
    result = page.results.of(one)
    return result["n_rows"] if result else None


def sums(page: Page) -> str:
    lines = []
    for name in page.names:
        theirs = published.GRID_SUMS.get(in_paper(name), {})
        ours = [total(page, name, method) for method in METHODS]
        lines.append([title(name), *ours, *(theirs.get(method, "-") for method in IN_PAPER)])
    paper = [f"paper: {method}" for method in IN_PAPER.values()]
    return table(["sum", *(IN_PAPER[method] for method in METHODS), *paper], lines)


def total(page: Page, name: str, method: str) -> str:
    one = cell(page.scale, name, method, page.threads)
    result, limit = page.results.of(one), page.results.timeout(one)
    if result:
        return duration(result["seconds"])
    return f">{duration(limit)}" if limit else "-"


def subset_sums(page: Page) -> str:
    """Make the table of sums on the subsets and of settings in which DC-SVM is faster."""
    lines = []
    for name in subset_names(page):
        found = {method: subset_settings(page, name, method) for method in COMPARED}
        rows, (faster, both) = subset_rows(page, name), faster_than_libsvm(found)
        label = f"{title(name)}, {rows:,} rows" if rows else title(name)
        shown_sums = [subset_total(found[method]) for method in COMPARED]
        lines.append([label, *shown_sums, f"{faster} of {both}" if both else "-"])
    heading = ["sum on a subset", *(TITLES[method] for method in COMPARED)]
    return table([*heading, "DC-SVM faster than LIBSVM"], lines) if lines else ""


def seconds_of(found: dict) -> float:
    """Return the seconds of a setting, or the limit that it exceeded."""
    return found["limit"] if "limit" in found else found["seconds"]


def sum_of(found: Grid) -> float:
    return sum(map(seconds_of, found.values()))


def subset_total(found: Grid) -> str:
    if len(found) < len(SETTINGS):
        return "-"
    bound = ">" if any("limit" in one for one in found.values()) else ""
    return f"{bound}{duration(sum_of(found))}"


def faster_than_libsvm(found: dict[str, Grid]) -> tuple[int, int]:
    """Count the settings in which DC-SVM is faster than LIBSVM, and those that both have."""
    ours, theirs = found["dcsvm"], found["libsvm"]
    both = ours.keys() & theirs.keys()
    return sum(seconds_of(ours[one]) < seconds_of(theirs[one]) for one in both), len(both)


def grid(name: str, ours: dict[str, Grid]) -> str:
    """Make the table of one data set beside the paper's."""
    theirs = published.grid()
    has_paper = any(key[0] == in_paper(name) for key in theirs)
    heading = ["C, gamma", *(f"{IN_PAPER[method]}: %, s" for method in ours)]
    heading += [f"paper, {method}" for method in IN_PAPER.values()] * has_paper
    lines = []
    for c, g in SETTINGS:
        line = [f"2^{c}, 2^{g}", *(shown(found.get((c, g))) for found in ours.values())]
        for method in IN_PAPER if has_paper else ():
            accuracy, seconds = theirs.get((in_paper(name), c, g, method), ("", ""))
            line.append(f"{accuracy or '-'}, {seconds or '-'}")
        lines.append(line)
    return table(heading, lines)


def subset(page: Page, name: str) -> list[str]:
    """Make the heading, the figure and the table of all methods on the subset."""
    found = {method: subset_settings(page, name, method) for method in COMPARED}
    rows, file = subset_rows(page, name), f"grid-subset-{name}"
    plot(page, file, {method: found[method] for method in ROBUST})
    heading = ["C, gamma", *(f"{TITLES[method]}: %, s" for method in COMPARED)]
    lines = [
        [f"2^{c}, 2^{g}", *(shown(found[method].get((c, g))) for method in COMPARED)]
        for c, g in SETTINGS
    ]
    text = f"accuracy over C and gamma on a subset of {title(name)}"
    on_rows = f"on {rows:,} rows" if rows else "on a subset"
    return [
        f"**{title(name)}, {on_rows}**, each setting trained alone, on one thread",
        page.image(file, text),
        table(heading, lines),
    ]


def shown(found: dict | None) -> str:
    if found is None:
        return "-, -"
    if "limit" in found:
        return f"-, >{found['limit']:.0f}"
    return f"{percent(found['accuracy'])}, {shown_seconds(found)}"


def plot(page: Page, file: str, grids: dict[str, Grid]) -> None:
    figure, axes = style.panels(2, len(SHOWN))
    for column, fixed in enumerate(SHOWN):
        for row, (parameter, other) in enumerate((("C", "gamma"), ("gamma", "C"))):
            draw(axes[row][column], grids, parameter, fixed)
            axes[row][column].set(
                title=f"{parameter} = $2^{{{fixed}}}$",
                xlabel=f"log2 {other}",
                ylabel="test accuracy, %" if column == 0 else "",
                xticks=EXPONENTS,
            )
    everyone = [one for line in axes for one in line]
    style.percent_axis(everyone)
    style.legend_below(figure, everyone)
    style.save(figure, page.path(file))


def draw(axes, grids: dict[str, Grid], parameter: str, fixed: int) -> None:
    """Draw smaller markers over larger ones, so that equal accuracies all show."""
    for place, (method, found) in reversed(list(enumerate(grids.items()))):
        points = []
        for e in EXPONENTS:
            one = found.get((fixed, e) if parameter == "C" else (e, fixed), {})
            points.append(100 * one.get("accuracy", float("nan")))
        axes.plot(EXPONENTS, points, **style.look(method), markersize=4 + 2.5 * place)


def conclude(page: Page) -> str:
    """Give the sums, and compare times and accuracies on the subsets, from the cells shown."""
    paragraphs = [about_sums(page)]
    grids = {n: {m: subset_settings(page, n, m) for m in COMPARED} for n in subset_names(page)}
    if grids and all(len(g) == len(SETTINGS) for own in grids.values() for g in own.values()):
        paragraphs += [about_time(page, grids), about_accuracy(grids)]
    return "\n\n".join(paragraph for paragraph in paragraphs if paragraph)


def about_sums(page: Page) -> str:
    """Give the time of both searches on each data set; empty unless all of them ended."""
    results = {
        name: [page.results.of(cell(page.scale, name, method, page.threads)) for method in METHODS]
        for name in page.names
    }
    if not results or not all(result for both in results.values() for result in both):
        return ""
    sentences = []
    for name, both in results.items():
        early, exact = (result["seconds"] for result in both)
        missed = sum(not one["converged"] for one in both[1]["settings"])
        sentences.append(
            f"On {both[0]['n_rows']:,} rows of {title(name)} all {len(both[1]['settings'])} "
            f"settings take {duration(early)} with early models and {duration(exact)}, "
            f"{times(exact / early)} times as long, with exact ones; "
            f"{missed} of these did not converge."
        )
    return " ".join(sentences)


def about_time(page: Page, grids: dict[str, dict[str, Grid]]) -> str:
    counts = [faster_than_libsvm(found) for found in grids.values()]
    faster, both = (sum(column) for column in zip(*counts, strict=True))
    where = joined([f"{subset_rows(page, name):,} rows of {title(name)}" for name in grids])
    seconds = {m: sum(sum_of(found[m]) for found in grids.values()) for m in COMPARED}
    sentences = [
        f"On {where}, with each setting trained alone on one thread, DC-SVM is faster than LIBSVM "
        f"in {faster} of {both} settings ({FASTER_IN_PAPER} in the paper)."
    ]
    for method in PEERS:
        cut = any("limit" in one for found in grids.values() for one in found[method].values())
        sentences.append(
            f"All settings together take {TITLES[method].split(',')[0]} "
            f"{'more than ' if cut else ''}{duration(seconds[method])}, "
            f"{'at least ' if cut else ''}{times(seconds[method] / seconds['dcsvm'])} times the "
            f"{duration(seconds['dcsvm'])} of DC-SVM and "
            f"{times(seconds[method] / seconds['early'])} times the "
            f"{duration(seconds['early'])} of early prediction."
        )
    return " ".join(sentences)


def about_accuracy(grids: dict[str, dict[str, Grid]]) -> str:
    """Compare means and ranges over the settings that all of the methods finished."""
    sentences = []
    for name, found in grids.items():
        done = [s for s in SETTINGS if all("accuracy" in found[m][s] for m in ROBUST)]
        if not done:
            continue
        values = {m: [found[m][s]["accuracy"] for s in done] for m in ROBUST}
        mean = {method: round(100 * sum(v) / len(v), 2) for method, v in values.items()}
        lowest = {method: round(100 * min(v), 2) for method, v in values.items()}
        against = [
            f"{compared(mean['early'], mean[m], 'above', 'below')} "
            f"{'to ' * (mean['early'] == mean[m])}{IN_PAPER[m]}'s {mean[m]:.2f}"
            for m in ROBUST[1:]
        ]
        sentences.append(
            f"On {title(name)} early prediction has {mean['early']:.2f} % on average over "
            f"{len(done)} settings, {joined(against)}; its lowest is {lowest['early']:.2f} %, "
            f"DC-SVM's {lowest['dcsvm']:.2f} and LIBSVM's {lowest['libsvm']:.2f}."
        )
    return " ".join(sentences)
