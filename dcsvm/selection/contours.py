"""A picture of what the settings of a grid are worth: contours over log2(C) and log2(gamma).

Lines are dense near the best value, where the choice is, and sparse far from it; all bands between
them have the same share of the colours. Where only C or only gamma has several values it is a line
plot instead. matplotlib is imported when there is something to draw, and keeps its state.
"""

from __future__ import annotations

import io
import math
import os
import warnings
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from dcsvm.data.output_file import write_beside
from dcsvm.selection.score import Score, best_of

INCHES, DOTS_PER_INCH = (8.0, 6.4), 125  # 1000 x 800 pixels
LEAST_POINTS = 0.1  # of accuracy in percent: from the best to the nearest line
LEAST_SHARE = 0.01  # the same of a squared error, as a share of the best one
MOST_LINES = 10
MOST_TICKS = 16  # at the values of the grid themselves
ROOM = 0.06  # for a number on a line, of the width of the picture
LONGEST_TITLE = 72
TITLE_SIZE, WIDEST_TITLE = 14, 60  # points; signs that fit in that size
WIDE_RANGE = 20  # from which ratio of squared errors on their axis is logarithmic


def check_can_draw() -> None:
    """Raises ValueError where there is no matplotlib."""
    try:
        import matplotlib  # noqa: F401
    except ImportError as error:
        raise ValueError("a picture needs matplotlib: pip install 'dcsvm[plot]'") from error


def save_contours(
    path: str | os.PathLike[str], scores: Iterable[Score], *, title: str, is_classification: bool
) -> None:
    """Draw scores into a PNG file: accuracy in percent, or the mean squared error where it is no
    classification. Of settings that differ in epsilon only the best is drawn; settings without a
    loss, and those whose gamma is 0 among others, are left out.

    Raises ValueError where there is no matplotlib or nothing to draw, and OSError that names
    `path`."""
    check_can_draw()
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    drawn = _Drawn.of(scores, is_classification)
    figure = Figure(figsize=INCHES, dpi=DOTS_PER_INCH, layout="constrained")
    canvas = FigureCanvasAgg(figure)
    axes = figure.add_subplot()
    if drawn.is_line:
        _draw_line(axes, drawn)
    else:
        _draw_map(figure, axes, drawn)
    size = min(TITLE_SIZE, TITLE_SIZE * WIDEST_TITLE / len(drawn.text))
    figure.suptitle(f"\n{drawn.text}", fontsize=size, fontweight="bold")  # the title is above
    figure.text(0.5, 0.99, _printable(title), ha="center", va="top", fontsize=11, parse_math=False)
    figure.legend(loc="outside lower center", ncols=3, frameon=False, fontsize=10)
    image = io.BytesIO()
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Glyph")  # signs of the title that no font has
        canvas.print_png(image)
    write_beside(path, [image.getvalue()])


@dataclass(frozen=True)
class _Drawn:
    """What is drawn of each place (n,): log2 of C and gamma, nan where no setting has a gamma; the
    `value`, not beyond that of the best one; and whether it is of all rows. `at_best` (n,) is true
    for one place. `step` is the least difference that is shown."""

    log_C: np.ndarray
    log_gamma: np.ndarray
    value: np.ndarray
    is_complete: np.ndarray
    at_best: np.ndarray
    best: Score
    step: float
    is_classification: bool

    @staticmethod
    def of(scores: Iterable[Score], is_classification: bool) -> _Drawn:
        """Raises ValueError where no score has a loss."""
        scores = [one for one in scores if one.n_rows > 0 and math.isfinite(one.loss)]
        if any(one.setting.gamma for one in scores):
            scores = [one for one in scores if one.setting.gamma]
        if not scores:
            raise ValueError("no setting has a score to draw")
        at: dict[tuple, list[Score]] = {}
        for one in scores:
            log_gamma = math.log2(one.setting.gamma) if one.setting.gamma else None
            place = round(math.log2(one.setting.C), 6), log_gamma and round(log_gamma, 6)
            at.setdefault(place, []).append(one)
        shown, best = [best_of(among) for among in at.values()], best_of(scores)
        loss = np.maximum([one.loss for one in shown], best.loss)
        places = np.array(list(at), float)
        return _Drawn(
            log_C=places[:, 0],
            log_gamma=places[:, 1],
            value=100 * (1 - loss) if is_classification else loss,
            is_complete=np.array([one.is_complete for one in shown]),
            at_best=np.array([one is best for one in shown]),
            best=best,
            step=_least_step(best, float(np.ptp(loss)), is_classification),
            is_classification=is_classification,
        )

    @property
    def is_line(self) -> bool:
        return self.along_C or len(np.unique(self.log_C)) == 1

    @property
    def along_C(self) -> bool:
        return bool(np.isnan(self.log_gamma[0])) or len(np.unique(self.log_gamma)) == 1

    @property
    def label(self) -> str:
        return "accuracy (%)" if self.is_classification else "mean squared error"

    @property
    def text(self) -> str:
        """The best setting and its value, in words."""
        setting, loss = self.best.setting, self.best.loss
        values = {"C": setting.C, "gamma": setting.gamma, "epsilon": setting.epsilon}
        names = ", ".join(f"{name} = {x:g}" for name, x in values.items() if x is not None)
        if self.is_classification:
            return f"{names}: {100 * (1 - loss):.2f} %"
        return f"{names}: mean squared error {loss:.4g}"

    @property
    def levels(self) -> np.ndarray:
        """Ascending (m,), m >= 2: the worst value, those of the lines and the best one, or from the
        best to the worst where it is an error. Lines are dense near the best."""
        best = self.value[self.at_best][0]
        sign = -1 if self.is_classification else 1
        worst = sign * max((sign * self.value).max(), sign * best + self.step)
        lines = {
            round(best + sign * distance, -_decade(distance))
            for distance in _distances(self.step, abs(worst - best))
        }
        margin = self.step / 4  # from the ends, which have numbers of their own
        lines = {x for x in lines if margin < sign * (x - best) < abs(worst - best) - margin}
        return np.array(sorted({best, worst, *lines}))


def _least_step(best: Score, spread: float, is_classification: bool) -> float:
    """From the best value to the nearest line: a share of the spread of losses where that is small,
    but no less than one row."""
    if is_classification:
        return max(min(LEAST_POINTS, 100 * spread / 10), 100 / best.n_rows)
    if spread == 0:
        return LEAST_SHARE * best.loss or 1.0
    return min(LEAST_SHARE * best.loss, spread / 10) or spread / 1000


def _distances(least: float, most: float) -> list[float]:
    """1, 2, 5, 10, 20, 50, ... times a power of ten, from the least one to the most."""
    decades = range(_decade(least), _decade(most) + 1)
    steps = [digit * 10.0**decade for decade in decades for digit in (1, 2, 5)]
    return [x for x in steps if least * (1 - 1e-9) <= x < most][:MOST_LINES]


def _decade(x: float) -> int:
    return math.floor(math.log10(x) + 1e-9)


def _draw_map(figure, axes, drawn: _Drawn) -> None:
    """Contours, or coloured dots where all places are on one line."""
    from matplotlib import colormaps
    from matplotlib.colors import BoundaryNorm

    x, y, levels = drawn.log_C, drawn.log_gamma, drawn.levels
    colors = colormaps["viridis" if drawn.is_classification else "viridis_r"]
    norm = BoundaryNorm(levels, colors.N)
    mesh = _triangles(x, y)
    if mesh is None:
        filled = axes.scatter(x, y, 600, drawn.value, cmap=colors, norm=norm, zorder=1)
        axes.margins(0.1)
    else:
        ends = [*levels[:-1], levels[-1] + drawn.step / 1000]  # the last one is no part of a band
        filled = axes.tricontourf(mesh, drawn.value, ends, cmap=colors, norm=norm)
        axes.use_sticky_edges = False
        axes.margins(0.03)
        axes.autoscale_view()
        if len(levels) > 2:
            lines = axes.tricontour(
                mesh, drawn.value, levels[1:-1], colors="black", linewidths=0.6, alpha=0.7
            )
            _number(axes, lines, (x[drawn.at_best][0], y[drawn.at_best][0]))
    _mark(axes, x, y, drawn)
    bar = figure.colorbar(filled, ax=axes, label=drawn.label, spacing="uniform", ticks=levels)
    digits = 1 - _decade(drawn.step)
    bar.ax.set_yticklabels([f"{round(level, digits):.10g}" for level in levels])
    bar.ax.minorticks_off()
    axes.set(xlabel="log2(C)", ylabel="log2(gamma)")
    _tick(axes.xaxis, x)
    _tick(axes.yaxis, y)


def _triangles(x: np.ndarray, y: np.ndarray):
    """Triangles between places (n,), for both axes alike; None where all are on one line."""
    from matplotlib.tri import Triangulation

    u, v = (x - x.mean()) / np.ptp(x), (y - y.mean()) / np.ptp(y)
    if np.linalg.matrix_rank(np.stack([u, v]), tol=1e-6) < 2:
        return None
    return Triangulation(x, y, Triangulation(u, v).triangles)


def _number(axes, lines, star: tuple[float, float]) -> None:
    """Numbers on lines where there is room: not at the star, nor at another number."""
    from matplotlib.patheffects import withStroke

    halo = [withStroke(linewidth=2.5, foreground="white")]
    taken = [axes.transLimits.transform(star)]
    look = {"fontsize": 9, "colors": "black", "inline": False, "zorder": 3.5}
    for text in axes.clabel(lines, fmt=lambda x: f"{x:.10g}", **look):
        place = axes.transLimits.transform(text.get_position())
        if min(math.dist(place, other) for other in taken) < ROOM:
            text.remove()
        else:
            text.set_path_effects(halo)
            taken.append(place)


def _draw_line(axes, drawn: _Drawn) -> None:
    x = drawn.log_C if drawn.along_C else drawn.log_gamma
    order = np.argsort(x)
    axes.plot(x[order], drawn.value[order], color="tab:blue", zorder=1)
    _mark(axes, x, drawn.value, drawn)
    axes.set(xlabel="log2(C)" if drawn.along_C else "log2(gamma)", ylabel=drawn.label)
    least, most = drawn.value.min(), drawn.value.max()
    if not drawn.is_classification and most > WIDE_RANGE * least > 0:
        axes.set_yscale("log")
    else:
        axes.ticklabel_format(axis="y", useOffset=False)
    axes.grid(axis="y", alpha=0.3)
    axes.margins(0.05, 0.08)
    _tick(axes.xaxis, x)


def _mark(axes, x: np.ndarray, y: np.ndarray, drawn: _Drawn) -> None:
    """Dots at the settings and a star at the best one."""
    full, left = drawn.is_complete & ~drawn.at_best, ~drawn.is_complete & ~drawn.at_best
    dots = {"s": 16, "edgecolors": "black", "linewidths": 0.8, "clip_on": False, "zorder": 3}
    if full.any():
        axes.scatter(x[full], y[full], facecolors="black", label="scored on all rows", **dots)
    if left.any():
        label = "left early, an estimate"
        axes.scatter(x[left], y[left], facecolors="white", label=label, **dots)
    star = {**dots, "s": 330, "linewidths": 1.2, "zorder": 4}
    best = drawn.at_best
    axes.scatter(x[best], y[best], facecolors="red", marker="*", label="best", **star)


def _tick(axis, values: np.ndarray) -> None:
    """Numbers at the whole values that there are, or where they fit."""
    from matplotlib.ticker import MaxNLocator

    several = np.unique(values)
    whole = several[several == np.round(several)]
    if len(several) == 1 or 2 <= len(whole) <= MOST_TICKS:
        axis.set_ticks(whole if len(whole) else several)
    else:
        axis.set_major_locator(MaxNLocator(MOST_TICKS // 2))


def _printable(title: str) -> str:
    """A title of one line that fits."""
    title = "".join(x if x.isprintable() else "?" for x in title)
    return title if len(title) <= LONGEST_TITLE else title[: LONGEST_TITLE - 1] + "…"
