"""The (C, gamma) grids, their sums, and figures of accuracy over C and over gamma."""

from __future__ import annotations

from itertools import product

from paper import published, style
from paper.baselines import TITLES
from paper.experiments.grid import EXPONENTS, cell, methods
from paper.markdown import duration, percent, table
from paper.sections import Page, in_paper, title

IN_PAPER = {"early": "DC-SVM (early)", "dcsvm": "DC-SVM", "libsvm": "LIBSVM", "lasvm": "LaSVM"}
SHOWN = (-10, 1, 10)  # exponents that the paper fixes in its figures


def show(page: Page) -> str:
    parts = [sums(page)]
    for name in page.names:
        plot(page, name)
        image = page.image(f"grid-{name}", f"accuracy over C and gamma on {title(name)}")
        parts += [f"**{title(name)}**", image, grid(page, name)]
    return "\n\n".join(parts)


def cell_of(page: Page, name: str, c: int, g: int, method: str):
    return cell(page.scale, name, c, g, method, page.threads)


def sums(page: Page) -> str:
    """A cell that ran out of time counts with its limit, and the sum is then a lower bound."""
    shown = ("early", "dcsvm", "direct", "libsvm")
    lines = []
    for name in page.names:
        theirs = published.GRID_SUMS.get(in_paper(name), {})
        ours = [total(page, name, method) for method in shown]
        printed = [theirs.get(method, "-") for method in ("early", "dcsvm", "libsvm")]
        lines.append([title(name), *ours, *printed])
    heading = [TITLES[method] for method in shown]
    paper = [f"paper: {IN_PAPER[method]}" for method in ("early", "dcsvm", "libsvm")]
    return table(["sum", *heading, *paper], lines)


def total(page: Page, name: str, method: str) -> str:
    cells = [cell_of(page, name, c, g, method) for c, g in product(EXPONENTS, EXPONENTS)]
    results = [page.results.of(one) for one in cells]
    limits = [page.results.timeout(one) for one in cells]
    missing = sum(not result and not limit for result, limit in zip(results, limits, strict=True))
    seconds = sum(result["seconds"] for result in results if result) + sum(filter(None, limits))
    if missing:
        return f"{missing} of {len(cells)} missing"
    return f"{'>' * any(limits)}{duration(seconds)}"


def grid(page: Page, name: str) -> str:
    theirs = published.grid()
    chosen = methods(name)
    heading = ["C, gamma"]
    heading += [f"{TITLES[m]}: %, s" for m in chosen] + [
        f"paper, {IN_PAPER[m]}" for m in chosen if m in IN_PAPER
    ]
    lines = []
    for c, g in product(EXPONENTS, EXPONENTS):
        line = [f"2^{c}, 2^{g}"]
        for method in chosen:
            one = cell_of(page, name, c, g, method)
            result = page.results.of(one)
            line.append(f"{percent(result and result['accuracy'])}, {page.seconds(one)}")
        for method in filter(IN_PAPER.get, chosen):
            accuracy, seconds = theirs.get((in_paper(name), c, g, method), ("", ""))
            line.append(f"{accuracy or '-'}, {seconds or '-'}")
        lines.append(line)
    return table(heading, lines)


def plot(page: Page, name: str) -> None:
    figure, axes = style.panels(2, len(SHOWN))
    for column, fixed in enumerate(SHOWN):
        for row, (parameter, other) in enumerate((("C", "gamma"), ("gamma", "C"))):
            draw(axes[row][column], page, name, parameter, fixed)
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


def draw(axes, page: Page, name: str, parameter: str, fixed: int) -> None:
    """Smaller markers over larger ones, so that equal accuracies all show; direct has DC-SVM's."""
    shown = [method for method in methods(name) if method in IN_PAPER]
    for number, method in reversed(list(enumerate(shown))):
        points = []
        for e in EXPONENTS:
            c, g = (fixed, e) if parameter == "C" else (e, fixed)
            result = page.results.of(cell_of(page, name, c, g, method))
            points.append(100 * result["accuracy"] if result else float("nan"))
        axes.plot(EXPONENTS, points, **style.look(method), markersize=4 + 2.5 * number)
