"""Figures as tables of series, drawn in one style: a colour, a marker and a line for each method.

The colours are distinct for every kind of colour blindness.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
from matplotlib import pyplot as plt  # noqa: E402
from matplotlib.axes import Axes  # noqa: E402
from matplotlib.figure import Figure  # noqa: E402
from matplotlib.ticker import LogLocator, NullFormatter, StrMethodFormatter  # noqa: E402

from paper.baselines import TITLES  # noqa: E402

# Okabe and Ito, "Color Universal Design" (2008)
BLACK, ORANGE, SKY, GREEN, BLUE, VERMILION, PURPLE = (
    "#000000", "#E69F00", "#56B4E9", "#009E73", "#0072B2", "#D55E00", "#CC79A7",
)  # fmt: skip
GREY = "#777777"
METHODS = {  # colour, marker, line
    "early": (VERMILION, "o", "-"),
    "found": (ORANGE, "*", "-"),
    "dcsvm": (BLUE, "s", "-"),
    "single": (BLUE, "p", ":"),
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
STYLE = {
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


@dataclass(frozen=True)
class Series:
    """A curve: its points (x, y) and keyword arguments of plot(). Points without y are left out."""

    points: list[tuple[float, float | None]]
    look: dict


@dataclass(frozen=True)
class Panel:
    """Axes with series. `x` and `y` are bases of logarithmic axes, `ticks` the marks of x.

    `span` is how far the vertical axis reaches below the greatest value.
    """

    xlabel: str
    ylabel: str
    series: list[Series]
    title: str = ""
    x: float | None = None
    y: float | None = None
    ticks: list = field(default_factory=list)
    is_reversed: bool = False
    span: float | None = None


def of_method(method: str, points: list[tuple[float, float | None]], **more) -> Series:
    color, marker, line = METHODS[method]
    look = {"color": color, "marker": marker, "linestyle": line, "label": TITLES[method]}
    return Series(points, look | more)


def draw(path: Path, panels: list[list[Panel]], *, same_axis: bool = False) -> None:
    """Draw rows of panels with one legend below; a series without points is not in it.

    With `same_axis`, the spans of all panels begin at the greatest value of all.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    size = WIDTH * len(panels[0]), HEIGHT * len(panels)
    with plt.rc_context(STYLE):
        figure, axes = plt.subplots(len(panels), len(panels[0]), figsize=size, squeeze=False)
        for line, own in zip(axes, panels, strict=True):
            for one, panel in zip(line, own, strict=True):
                fill(one, panel)
        everyone = [one for line in axes for one in line]
        for one, panel in zip(everyone, [panel for own in panels for panel in own], strict=True):
            limit(one, everyone if same_axis else [one], panel.span)
        legend_below(figure, everyone)
        figure.savefig(path)
        plt.close(figure)


def fill(axes: Axes, panel: Panel) -> None:
    for series in panel.series:
        known = [(x, y) for x, y in series.points if y is not None]
        if known:
            axes.plot(*zip(*known, strict=True), **series.look)
    for base, axis, name in ((panel.x, axes.xaxis, "x"), (panel.y, axes.yaxis, "y")):
        values = [v for line in axes.get_lines() for v in line.get_data()[name == "y"] if v > 0]
        if base and values:
            make_logarithmic(axes, axis, name, base, values)
    axes.set(xlabel=panel.xlabel, ylabel=panel.ylabel, title=panel.title)
    if panel.ticks:
        axes.set(xticks=panel.ticks, xticklabels=panel.ticks)
    if panel.is_reversed:
        axes.invert_xaxis()


def limit(axes: Axes, sharing: list[Axes], span: float | None) -> None:
    """Let the vertical axis reach from `span` below the greatest value of the sharing axes."""
    heights = [y for one in sharing for line in one.get_lines() for y in line.get_ydata()]
    if span and heights:
        high = max(heights)
        low = max(min(heights), high - span)
        margin = 0.06 * max(high - low, 1.0)
        axes.set_ylim(low - margin, high + margin)


def make_logarithmic(axes: Axes, axis, name: str, base: float, values: list[float]) -> None:
    (axes.set_xscale if name == "x" else axes.set_yscale)("log", base=base)
    if base == 10 and max(values) < 100 * min(values):
        axis.set_major_locator(LogLocator(10, subs=(1, 2, 5)))
        axis.set_major_formatter(StrMethodFormatter("{x:g}"))
    axis.set_minor_formatter(NullFormatter())


def legend_below(figure: Figure, axes: list[Axes]) -> None:
    """Put one legend for all panels below them."""
    entries = {}
    for one in axes:
        for handle, label in zip(*one.get_legend_handles_labels(), strict=True):
            entries.setdefault(label, handle)
    widest = max(map(len, entries), default=1) * LETTER + HANDLE
    columns = max(1, min(len(entries), int(figure.get_figwidth() / widest)))
    figure.legend(entries.values(), entries.keys(), loc="outside lower center", ncols=columns)
