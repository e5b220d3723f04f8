"""Picture of dcsvm-predict --plot: bars of the largest feature weights.

Requires matplotlib (the extra [plot]) but no display.
"""

from __future__ import annotations

import io
from collections.abc import Sequence

import numpy as np

from dcsvm.cli.grid_picture import DOTS_PER_INCH, check_can_draw, printable
from dcsvm.cli.predict import PredictJob
from dcsvm.data.files import write_beside
from dcsvm.model.reader import load_model

MAX_BARS = 30
WIDTH, HEIGHT_OF_BAR, MARGIN = 8.0, 0.2, 1.2  # inches


def plot_file(job: PredictJob) -> int:
    """Draw the feature weights of a model file to a PNG file; return the exit status."""
    assert job.plotted is not None
    model_file, path = job.plotted
    check_can_draw("--plot")
    model = load_model(model_file)
    if model.scaling is None or model.scaling.weights is None:
        raise ValueError(f"{model_file}: the model has no feature weights")
    save_weights(path, model.scaling.weights, model.feature_names, title=model_file)
    return 0


def save_weights(path: str, weights: np.ndarray, names: Sequence[str], *, title: str) -> None:
    """Draw the largest weights (d,) as horizontal bars, the largest at the top, to a PNG file.

    Raises OSError if the file cannot be written.
    """
    from matplotlib.figure import Figure

    shown = np.argsort(-weights, kind="stable")[:MAX_BARS]
    size = (WIDTH, MARGIN + HEIGHT_OF_BAR * len(shown))
    figure = Figure(figsize=size, dpi=DOTS_PER_INCH, layout="constrained")
    axes = figure.add_subplot()
    axes.barh(np.arange(len(shown)), weights[shown])
    axes.set_yticks(np.arange(len(shown)), [printable(names[k]) for k in shown], parse_math=False)
    axes.set_ylim(len(shown) - 0.5, -0.5)
    part = f"the largest {len(shown)} of {len(weights)}, " if len(shown) < len(weights) else ""
    axes.set(xlabel="feature weight", ylabel="feature")
    axes.set_title(f"{part}{printable(title)}", parse_math=False)
    image = io.BytesIO()
    figure.savefig(image, format="png")
    write_beside(path, [image.getvalue()])
