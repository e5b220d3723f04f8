"""The picture of dcsvm-grid -png: contours of the scores over log2(C) and log2(gamma).

Bands are narrow near the best value, where the choice is. Where only C or only gamma has several
values it is a line. matplotlib (the extra [plot]) is known only here; no display is needed.
"""

from __future__ import annotations

import io
import math
from collections.abc import Iterable

import numpy as np

from dcsvm.data.output_file import write_beside
from dcsvm.selection.grid import Score, best_of

INCHES, DOTS_PER_INCH = (8.0, 6.4), 125  # 1000 x 800 pixels
N_BANDS = 8
MAX_TITLE = 60  # characters that fit
EDGE = {"edgecolors": "black", "clip_on": False}  # of marks, at the edge of the picture too


def check_can_draw() -> None:
    """Raise ValueError where there is no matplotlib."""
    try:
        import matplotlib  # noqa: F401
    except ImportError as error:
        raise ValueError("-png needs matplotlib: pip install 'dcsvm[plot]'") from error


def save_picture(
    path: str, scores: Iterable[Score], *, title: str, is_classification: bool
) -> None:
    """Draw scores into a PNG file: accuracy in percent, or the mean squared error.

    Of settings that differ in epsilon the best is drawn; those without a loss, or with gamma 0
    among others, are left out. Raises ValueError where nothing is left, and OSError.
    """
    from matplotlib.figure import Figure

    shown, best = drawn_of(scores)
    C = np.log2([one.setting.C for one in shown])
    gamma = np.log2([one.setting.gamma or 1.0 for one in shown])
    loss = np.maximum([one.loss for one in shown], best.loss)  # estimates may be below
    value = 100 * (1 - loss) if is_classification else loss
    label = "accuracy (%)" if is_classification else "mean squared error"
    figure = Figure(figsize=INCHES, dpi=DOTS_PER_INCH, layout="constrained")
    axes = figure.add_subplot()
    heading = f"{printable(title)}\n{best_in_words(best, is_classification)}"
    axes.set_title(heading, parse_math=False)
    axes.set(xlabel="log2(C)", ylabel="log2(gamma)")
    x, y = C, gamma
    if np.ptp(C) and np.ptp(gamma):
        draw_bands(figure, axes, (C, gamma, value), label, is_classification=is_classification)
    else:
        x, y = gamma if np.ptp(gamma) else C, value
        order = np.argsort(x)
        axes.plot(x[order], y[order], color="tab:blue", zorder=1)
        axes.set(xlabel="log2(gamma)" if np.ptp(gamma) else "log2(C)", ylabel=label)
    is_complete = np.array([one.is_complete for one in shown])
    for some, color, name in (
        (is_complete, "black", "scored on all rows"),
        (~is_complete, "white", "left early, an estimate"),
    ):
        if some.any():
            axes.scatter(x[some], y[some], 16, color, label=name, zorder=3, **EDGE)
    k = shown.index(best)
    axes.scatter(x[k], y[k], 330, "red", marker="*", label="best", zorder=4, **EDGE)
    figure.legend(loc="outside lower center", ncols=3, frameon=False)
    image = io.BytesIO()
    figure.savefig(image, format="png")
    write_beside(path, [image.getvalue()])


def drawn_of(scores: Iterable[Score]) -> tuple[list[Score], Score]:
    """(the best score of each place, the best of all). Raises ValueError where there is none."""
    scores = [one for one in scores if one.n_rows > 0 and math.isfinite(one.loss)]
    if any(one.setting.gamma for one in scores):
        scores = [one for one in scores if one.setting.gamma]
    if not scores:
        raise ValueError("no setting has a score to draw")
    places: dict[tuple, list[Score]] = {}
    for one in scores:
        places.setdefault((one.setting.C, one.setting.gamma), []).append(one)
    return [best_of(among) for among in places.values()], best_of(scores)


def draw_bands(figure, axes, places, label: str, *, is_classification: bool) -> None:
    """Draw filled contours of (x, y, value), or coloured dots where all places are on one line."""
    from matplotlib.colors import BoundaryNorm
    from matplotlib.tri import Triangulation

    x, y, value = places
    spread = np.ptp(value) or 1.0
    distances = spread * np.linspace(0, 1, N_BANDS + 1) ** 3
    ticks = value.max() - distances[::-1] if is_classification else value.min() + distances
    levels = [*ticks[:-1], ticks[-1] + spread / 1000]  # the end of a band is no part of it
    how = {"cmap": "viridis" if is_classification else "viridis_r"}
    how["norm"] = BoundaryNorm(levels, 256)
    try:
        mesh = Triangulation(x, y)
    except (ValueError, RuntimeError):
        filled = axes.scatter(x, y, 600, value, zorder=1, **how)
    else:
        filled = axes.tricontourf(mesh, value, levels, **how)
        lines = axes.tricontour(mesh, value, levels[1:-1], colors="black", linewidths=0.5)
        axes.clabel(lines, fmt="%.4g", fontsize=8)
    bar = figure.colorbar(filled, ax=axes, label=label, spacing="uniform", ticks=ticks)
    bar.ax.set_yticklabels([f"{tick:.4g}" for tick in ticks])


def best_in_words(best: Score, is_classification: bool) -> str:
    names, loss = ", ".join(f"{name} = {x:g}" for name, x in best.setting.sought.items()), best.loss
    if is_classification:
        return f"{names}: {100 * (1 - loss):.2f} %"
    return f"{names}: mean squared error {loss:.4g}"


def printable(title: str) -> str:
    """The end of a title, of characters that every font has."""
    return "".join(x if x.isascii() and x.isprintable() else "?" for x in title[-MAX_TITLE:])
