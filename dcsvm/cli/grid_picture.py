"""Picture of dcsvm-grid -png: contours of the scores over log2(C) and log2(gamma).

Contour levels are denser near the best value. If only C or only gamma varies, the picture is a line
plot. Requires matplotlib (the extra [plot]) but no display.
"""

from __future__ import annotations

import io
import math
from typing import TYPE_CHECKING, Any

import numpy as np

from dcsvm.data.files import write_beside
from dcsvm.training.grid import GridSearch

INCHES, DOTS_PER_INCH = (8.0, 6.4), 125  # 1000 x 800 pixels
N_BANDS = 8
NAMES = {"mse": "mean squared error"}
MAX_TITLE = 60  # characters that fit the width

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.cm import ScalarMappable
    from matplotlib.figure import Figure


def check_can_draw(option: str = "-png") -> None:
    """Raise ValueError if matplotlib is not installed, which `option` needs."""
    try:
        import matplotlib  # noqa: F401
    except ImportError as error:
        raise ValueError(f"{option} requires matplotlib: pip install 'dcsvm[plot]'") from error


def save_picture(path: str, search: GridSearch, *, title: str) -> None:
    """Draw the scores of a search to a PNG file.

    For each C and gamma the score of the best epsilon is drawn. Settings without a finite loss are
    skipped. Settings with gamma 0 are skipped if other settings have a positive gamma. Raises
    ValueError if no setting remains, and OSError if the file cannot be written.
    """
    from matplotlib.figure import Figure

    shown, best = select_scores(search)
    definition, metric = search.definition, NAMES.get(search.metric, search.metric)
    C = np.log2([one.setting.C for one in shown])
    gamma = np.log2([one.setting.gamma or 1.0 for one in shown])
    loss = np.maximum([one.loss for one in shown], best.loss)  # estimates may be lower than best
    value = definition.shown(loss)
    label = f"{metric}{' (%)' if definition.is_percent else ''}"
    figure = Figure(figsize=INCHES, dpi=DOTS_PER_INCH, layout="constrained")
    axes = figure.add_subplot()
    heading = f"{printable(title)}\n{best_in_words(best, metric, definition)}"
    axes.set_title(heading, parse_math=False)
    axes.set(xlabel="log2(C)", ylabel="log2(gamma)")
    x, y = C, gamma
    if np.ptp(C) and np.ptp(gamma):
        draw_bands(figure, axes, (C, gamma, value), label, is_gain=definition.is_gain)
    else:
        x, y = gamma if np.ptp(gamma) else C, value
        order = np.argsort(x)
        axes.plot(x[order], y[order], color="tab:blue", zorder=1)
        axes.set(xlabel="log2(gamma)" if np.ptp(gamma) else "log2(C)", ylabel=label)
    is_complete = np.array([one.is_complete for one in shown])
    is_best = np.array([one is best for one in shown])
    for mask, color, size, marker, name, zorder in (
        (is_complete, "black", 16, "o", "scored on all rows", 3),
        (~is_complete, "white", 16, "o", "pruned, an estimate", 3),
        (is_best, "red", 330, "*", "best", 4),
    ):
        if mask.any():
            axes.scatter(
                x[mask], y[mask], size, color, label=name, marker=marker, zorder=zorder,
                edgecolors="black", clip_on=False,
            )  # fmt: skip
    figure.legend(loc="outside lower center", ncols=3, frameon=False)
    image = io.BytesIO()
    figure.savefig(image, format="png")
    write_beside(path, [image.getvalue()])


def select_scores(search: GridSearch) -> tuple[list[Any], Any]:
    """Return the best score for each C and gamma, and the best of all. Raises ValueError."""
    scores = [one for one in search.scores if one.n_rows > 0 and math.isfinite(one.loss)]
    if any(one.setting.gamma for one in scores):
        scores = [one for one in scores if one.setting.gamma]
    if not scores:
        raise ValueError("no setting has a score to draw")
    groups: dict[tuple[float, float | None], list[Any]] = {}
    for one in scores:
        groups.setdefault((one.setting.C, one.setting.gamma), []).append(one)
    return [search.best_of(group) for group in groups.values()], search.best_of(scores)


def draw_bands(
    figure: Figure,
    axes: Axes,
    points: tuple[np.ndarray, np.ndarray, np.ndarray],
    label: str,
    *,
    is_gain: bool,
) -> None:
    """Draw filled contours of points (x, y, value), or coloured dots if they are collinear.

    Bands are denser near the largest value of a gain, else near the smallest.
    """
    from matplotlib.colors import BoundaryNorm
    from matplotlib.tri import Triangulation

    x, y, value = points
    spread = np.ptp(value) or 1.0
    distances = spread * np.linspace(0, 1, N_BANDS + 1) ** 3
    ticks = value.max() - distances[::-1] if is_gain else value.min() + distances
    levels = [*ticks[:-1], ticks[-1] + spread / 1000]  # bands exclude their upper end
    cmap, norm = "viridis" if is_gain else "viridis_r", BoundaryNorm(levels, 256)
    try:
        mesh = Triangulation(x, y)
    except (ValueError, RuntimeError):
        filled: ScalarMappable = axes.scatter(x, y, 600, value, zorder=1, cmap=cmap, norm=norm)
    else:
        filled = axes.tricontourf(mesh, value, levels, cmap=cmap, norm=norm)
        lines = axes.tricontour(mesh, value, levels[1:-1], colors="black", linewidths=0.5)
        axes.clabel(lines, fmt="%.4g", fontsize=8)
    bar = figure.colorbar(filled, ax=axes, label=label, spacing="uniform", ticks=ticks)
    bar.ax.set_yticklabels([f"{tick:.4g}" for tick in ticks])


def best_in_words(best: Any, metric: str, definition: Any) -> str:
    """Format the best setting and its score for the title."""
    names = ", ".join(f"{key} = {x:g}" for key, x in best.setting.sought.items())
    value = definition.shown(best.loss)
    return f"{names}: {metric} {f'{value:.2f} %' if definition.is_percent else f'{value:.4g}'}"


def printable(title: str) -> str:
    """Return the end of a title, with ? for characters that a font may lack."""
    return "".join(x if x.isascii() and x.isprintable() else "?" for x in title[-MAX_TITLE:])
