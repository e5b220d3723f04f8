"""The (C, gamma) grids, their sums, and figures of accuracy over C and over gamma."""

from __future__ import annotations

from itertools import product

from paper import published, style
from paper.experiments.grid import EXPONENTS, METHODS, cell
from paper.markdown import duration, number, percent, table
from paper.sections import Page, in_paper, title

IN_PAPER = {"early": "DC-SVM (early)", "dcsvm": "DC-SVM", "libsvm": "LIBSVM"}
SHOWN = (-10, 1, 10)  # fixed exponents in the paper's figures


def show(page: Page) -> str:
    parts = [sums(page)]
    for name in page.names:
        plot(page, name)
        image = page.image(f"grid-{name}", f"accuracy over C and gamma on {title(name)}")
        parts += [f"**{title(name)}**", image, grid(page, name)]
    return "\n\n".join(parts)


def conclude(page: Page) -> str:
    return ""


def settings(page: Page, name: str, method: str) -> dict[tuple[int, int], dict]:
    """Return the results of each setting, by the exponents of C and gamma."""
    result = page.results.of(cell(page.scale, name, method, page.threads))
    found = result["settings"] if result else []
    return {(int(one["log2_C"]), int(one["log2_gamma"])): one for one in found}


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


def grid(page: Page, name: str) -> str:
    theirs = published.grid()
    ours = {method: settings(page, name, method) for method in METHODS}
    has_paper = any(key[0] == in_paper(name) for key in theirs)
    heading = ["C, gamma", *(f"{IN_PAPER[method]}: %, s" for method in METHODS)]
    heading += [f"paper, {method}" for method in IN_PAPER.values()] * has_paper
    lines = []
    for c, g in product(EXPONENTS, EXPONENTS):
        line = [f"2^{c}, 2^{g}", *(shown(ours[method].get((c, g))) for method in METHODS)]
        for method in IN_PAPER if has_paper else ():
            accuracy, seconds = theirs.get((in_paper(name), c, g, method), ("", ""))
            line.append(f"{accuracy or '-'}, {seconds or '-'}")
        lines.append(line)
    return table(heading, lines)


def shown(found: dict | None) -> str:
    if found is None:
        return "-, -"
    missed = "" if found["converged"] else " (not converged)"
    return f"{percent(found['accuracy'])}, {number(found['seconds'])}{missed}"


def plot(page: Page, name: str) -> None:
    ours = {method: settings(page, name, method) for method in METHODS}
    figure, axes = style.panels(2, len(SHOWN))
    for column, fixed in enumerate(SHOWN):
        for row, (parameter, other) in enumerate((("C", "gamma"), ("gamma", "C"))):
            draw(axes[row][column], ours, parameter, fixed)
            axes[row][column].set(
                title=f"{parameter} = $2^{{{fixed}}}$",
                xlabel=f"log2 {other}",
                ylabel="test accuracy, %" if column == 0 else "",
                xticks=EXPONENTS,
            )
    everyone = [one for line in axes for one in line]
    style.percent_axis(everyone)
    style.legend_below(figure, everyone)
    style.save(figure, page.path(f"grid-{name}"))


def draw(axes, ours: dict[str, dict], parameter: str, fixed: int) -> None:
    """Draw smaller markers over larger ones, so that equal accuracies all show."""
    for place, method in reversed(list(enumerate(METHODS))):
        points = []
        for e in EXPONENTS:
            found = ours[method].get((fixed, e) if parameter == "C" else (e, fixed))
            points.append(100 * found["accuracy"] if found else float("nan"))
        axes.plot(EXPONENTS, points, **style.look(method), markersize=4 + 2.5 * place)
