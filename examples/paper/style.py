"""Common style of all figures: a colour, a marker and a line for each method, and saving.

The colours are distinct for every kind of colour blindness.
"""

from __future__ import annotations

from pathlib import Path

import matplotlib

matplotlib.use("Agg")
from matplotlib import pyplot as plt  # noqa: E402
from matplotlib.axes import Axes  # noqa: E402
from matplotlib.figure import Figure  # noqa: E402
from matplotlib.ticker import LogLocator, NullFormatter, StrMethodFormatter  # noqa: E402

from paper.baselines import TITLES  # noqa: E402

# Okabe and Ito, "Color Universal Design" (2008)
BLACK, ORANGE, SKY, GREEN, YELLOW, BLUE, VERMILION, PURPLE = (
    "#000000",
    "#E69F00",
    "#56B4E9",
    "#009E73",
    "#F0E442",
    "#0072B2",
    "#D55E00",
    "#CC79A7",
)
GREY = "#777777"

METHODS = {  # colour, marker, line
    "early": (VERMILION, "o", "-"),
    "dcsvm": (BLUE, "s", "-"),
    "direct": (SKY, "D", "-"),
    "libsvm": (BLACK, "^", "--"),
    "lasvm": (PURPLE, "v", "--"),
    "cascade": (GREEN, "P", "--"),
    "llsvm": (ORANGE, "X", ":"),
    "fastfood": (GREY, "<", ":"),
    "spsvm": (ORANGE, ">", "-."),
    "ltpu": (GREY, "d", "-."),
}
WIDTH, HEIGHT = 4.4, 3.3  # of a panel, inches
LETTER, HANDLE = 0.075, 0.6  # of a legend entry, inches

plt.rcParams.update(
    {
        "figure.dpi": 130,
        "font.size": 9,
        "axes.titlesize": 10,
        "axes.spines.top": False,
        "axes.spines.right": False,
        "axes.grid": True,
        "xtick.minor.size": 0,
        "grid.color": "#dddddd",
        "grid.linewidth": 0.6,
        "axes.axisbelow": True,
        "lines.linewidth": 1.6,
        "lines.markersize": 5.5,
        "legend.frameon": False,
        "legend.fontsize": 8.5,
        "figure.constrained_layout.use": True,
    }
)


def panels(rows: int, columns: int) -> tuple[Figure, list[list[Axes]]]:
    size = WIDTH * columns, HEIGHT * rows
    return plt.subplots(rows, columns, figsize=size, squeeze=False)


def look(method: str) -> dict:
    """Return the keyword arguments of plot() for a method."""
    color, marker, line = METHODS[method]
    return {"color": color, "marker": marker, "linestyle": line, "label": TITLES[method]}


def legend_below(figure: Figure, axes: list[Axes]) -> None:
    """Put one legend for all panels below them."""
    entries = {}
    for one in axes:
        for handle, label in zip(*one.get_legend_handles_labels(), strict=True):
            entries.setdefault(label, handle)
    widest = max(map(len, entries), default=1) * LETTER + HANDLE
    columns = max(1, min(len(entries), int(figure.get_figwidth() / widest)))
    figure.legend(entries.values(), entries.keys(), loc="outside lower center", ncols=columns)


def logarithmic(axes: Axes, x: float | None = None, y: float | None = None) -> None:
    """Make the axes logarithmic to the bases x and y, unless the plot is empty."""
    for base, axis, name in ((x, axes.xaxis, "x"), (y, axes.yaxis, "y")):
        values = [v for line in axes.get_lines() for v in line.get_data()[name == "y"] if v > 0]
        if not base or not values:
            continue
        (axes.set_xscale if name == "x" else axes.set_yscale)("log", base=base)
        if base == 10 and max(values) < 100 * min(values):
            axis.set_major_locator(LogLocator(10, subs=(1, 2, 5)))
            axis.set_major_formatter(StrMethodFormatter("{x:g}"))
        axis.set_minor_formatter(NullFormatter())


def percent_axis(axes: list[Axes], span: float = 100) -> None:
    """Give all panels the same axis: from the best value down to at most `span` percent below."""
    lines = [line for one in axes for line in one.get_lines()]
    values = [y for line in lines for y in line.get_ydata() if y == y]
    if not values:
        return
    low, high = max(min(values), max(values) - span), max(values)
    margin = 0.06 * max(high - low, 1.0)
    for one in axes:
        one.set_ylim(low - margin, high + margin)


def save(figure: Figure, path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path)
    plt.close(figure)
