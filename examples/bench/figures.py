"""Figures as tables of series, in one style: panels of curves or of bars. They need matplotlib.

The colours are distinct for every kind of colour blindness.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

# Okabe and Ito, "Color Universal Design" (2008)
BLACK, ORANGE, SKY, GREEN, BLUE, VERMILION, PURPLE, GREY = (
    "#000000", "#E69F00", "#56B4E9", "#009E73", "#0072B2", "#D55E00", "#CC79A7", "#777777",
)  # fmt: skip
WIDTH, HEIGHT = 4.4, 3.3  # of a panel, inches
LETTER, HANDLE = 0.075, 0.6  # of a legend entry, inches
LINE_HEIGHT = 13.5  # of the texts at the ends of curves, points
STYLE = {
    "font.size": 9, "axes.titlesize": 10, "axes.titlelocation": "left", "axes.axisbelow": True,
    "axes.spines.top": False, "axes.spines.right": False, "axes.grid": True,
    "axes.xmargin": 0.08, "axes.ymargin": 0.08, "grid.color": "#dddddd", "grid.linewidth": 0.6,
    "xtick.minor.size": 0, "lines.linewidth": 1.6, "lines.markersize": 5.5,
    "legend.frameon": False, "legend.fontsize": 8.5, "savefig.dpi": 160,
}  # fmt: skip


@dataclass(frozen=True)
class Series:
    """A curve of points (x, y), or bars of (length, name). Points without y are left out.

    `look` are arguments of plot() or barh(); `notes` are texts beside the points, `end` is one at
    the last point, to its left if `is_left`.
    """

    points: Sequence[tuple]
    look: dict
    notes: Sequence[str] = ()
    end: str = ""
    is_left: bool = False

    @property
    def known(self) -> list[tuple]:
        return [(x, y) for x, y in self.points if y is not None]

    @property
    def is_bars(self) -> bool:
        return any(isinstance(y, str) for _, y in self.points)


@dataclass(frozen=True)
class Panel:
    """Axes with series. `x` and `y` are bases of logarithmic axes, `ticks` the marks of x.

    `span` is how far the vertical axis reaches below the greatest value. Bars may have a vertical
    line at `line`; `form` formats their lengths.
    """

    xlabel: str = ""
    ylabel: str = ""
    series: Sequence[Series] = ()
    title: str = ""
    x: float | None = None
    y: float | None = None
    ticks: Sequence[int] = ()
    is_reversed: bool = False
    span: float | None = None
    line: float | None = None
    form: str = "%.1f"


def in_rows(panels: dict[str, list[Series]], n_rows: int, **labels) -> list[list[Panel]]:
    """Return the panels of these series in rows, with more arguments of Panel for all."""
    listed, columns = list(panels.items()), -(-len(panels) // n_rows)
    return [
        [Panel(series=own, title=title, **labels) for title, own in listed[first : first + columns]]
        for first in range(0, len(panels), columns)
    ]


def draw(path: Path, panels: list[list[Panel]], *, inches=None, same_axis: bool = False) -> None:
    """Draw rows of panels with one legend below; a series without points is not in it.

    With `same_axis`, the spans of all panels begin at the greatest value of all.
    """
    import matplotlib
    from matplotlib.figure import Figure

    path.parent.mkdir(parents=True, exist_ok=True)
    columns = max(map(len, panels))
    inches = inches or (WIDTH * columns, HEIGHT * len(panels))
    is_bars = any(one.is_bars for one in panels[0][0].series)
    with matplotlib.rc_context(STYLE):
        figure = Figure(figsize=inches, layout="constrained")
        axes = figure.subplots(len(panels), columns, squeeze=False, sharey=is_bars)
        filled = [
            (axes[i, j], panel) for i, line in enumerate(panels) for j, panel in enumerate(line)
        ]
        for one in set(axes.flat) - {one for one, _ in filled}:
            one.axis("off")
        for one, panel in filled:
            (bars if is_bars else curves)(one, panel)
        for one, panel in filled:
            limit(one, [own for own, _ in filled] if same_axis else [one], panel.span)
            label_ends(one, [series for series in panel.series if series.end])
        legend_below(figure, [one for one, _ in filled])
        figure.savefig(path, facecolor="white")


def bars(axes, panel: Panel) -> None:
    for series in panel.series:
        lengths, names = zip(*series.points, strict=True)
        drawn = axes.barh(names, lengths, height=0.6, **series.look)
        beside = {"facecolor": "white", "edgecolor": "none", "pad": 0.5}
        axes.bar_label(drawn, fmt=panel.form, padding=3, bbox=beside)
    axes.set_xlim(0, 1.15 * max(length for series in panel.series for length, _ in series.points))
    axes.set(xlabel=panel.xlabel, ylabel=panel.ylabel, title=panel.title)
    axes.tick_params(left=False)
    axes.yaxis.set_inverted(True)
    axes.grid(visible=False)
    if panel.line is not None:
        axes.axvline(panel.line, color=BLACK, linewidth=0.8)


def curves(axes, panel: Panel) -> None:
    for series in panel.series:
        if series.known:
            (line,) = axes.plot(*zip(*series.known, strict=True), **series.look)
        for point, text in zip(series.known, series.notes, strict=False):
            place = {"textcoords": "offset points", "xytext": (4, -9), "fontsize": 7}
            axes.annotate(text, point, color=line.get_color(), **place)
    for base, axis, name in ((panel.x, axes.xaxis, "x"), (panel.y, axes.yaxis, "y")):
        values = [v for line in axes.get_lines() for v in line.get_data()[name == "y"] if v > 0]
        if base and values:
            make_logarithmic(axes, axis, name, base, values)
    axes.set(xlabel=panel.xlabel, ylabel=panel.ylabel, title=panel.title)
    if panel.ticks:
        axes.set_xticks(panel.ticks, [f"{tick:,}" for tick in panel.ticks])
    if panel.is_reversed:
        axes.invert_xaxis()


def make_logarithmic(axes, axis, name: str, base: float, values: list[float]) -> None:
    """Make an axis logarithmic, with plain numbers where they are short."""
    from matplotlib.ticker import LogLocator, NullFormatter, StrMethodFormatter

    (axes.set_xscale if name == "x" else axes.set_yscale)("log", base=base)
    if base == 10 and min(values) > 1e-4 and max(values) < 1e5:
        if max(values) < 100 * min(values):
            axis.set_major_locator(LogLocator(10, subs=(1, 2, 5)))
        axis.set_major_formatter(StrMethodFormatter("{x:g}"))
    axis.set_minor_formatter(NullFormatter())


def limit(axes, sharing: list, span: float | None) -> None:
    """Let the vertical axis reach from `span` below the greatest value of the sharing axes."""
    heights = [y for one in sharing for line in one.get_lines() for y in line.get_ydata()]
    if span and heights:
        high = max(heights)
        low = max(min(heights), high - span)
        margin = 0.06 * max(high - low, 1.0)
        axes.set_ylim(low - margin, high + margin)


def label_ends(axes, series: list[Series]) -> None:
    """Write the texts at the ends of curves; move texts at the same x apart."""
    if not series:
        return
    axes.figure.draw_without_rendering()
    point = axes.figure.dpi / 72  # pixels
    taken: dict[float, float] = {}
    ends = [(axes.transData.transform(one.known[-1]), one) for one in series]
    for (x, y), one in sorted(ends, key=lambda end: end[0][1]):
        place = {"xytext": (-9, 2), "va": "bottom", "ha": "right"}
        if not one.is_left:
            taken[x] = max(y, taken.get(x, y) + LINE_HEIGHT * point * (x in taken))
            place = {"xytext": (9, (taken[x] - y) / point), "va": "center"}
        place |= {"textcoords": "offset points", "annotation_clip": False}
        axes.annotate(one.end, one.known[-1], color=one.look["color"], **place)


def legend_below(figure, axes: list) -> None:
    """Put one legend for all panels below them, if there are labels of several series."""
    entries = {}
    for one in axes:
        for handle, label in zip(*one.get_legend_handles_labels(), strict=True):
            entries.setdefault(label, handle)
    if entries:
        widest = max(map(len, entries)) * LETTER + HANDLE
        columns = max(1, min(len(entries), int(figure.get_figwidth() / widest)))
        place = {"loc": "outside lower center", "ncols": columns}
        figure.legend(entries.values(), entries.keys(), **place)
