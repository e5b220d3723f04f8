"""The work of dcsvm-grid: read, score the settings, train the best one; and all pictures.

The picture of dcsvm-grid -png has contours of the scores over log2(C) and log2(gamma), denser near
the best value; it is a line plot if only one of them varies. That of dcsvm-predict --plot has bars
of the largest feature weights. Both require matplotlib (the extra [plot]) but no display.
"""

from __future__ import annotations

import io
import math
import re
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from dcsvm._core import Stop
from dcsvm.cli.grid import GridJob
from dcsvm.cli.guard import FAILED, NOT_CONVERGED, Interrupts, status_of
from dcsvm.cli.options import print_result, print_status
from dcsvm.cli.predict import PredictJob
from dcsvm.cli.reading import (
    TerminalProgress,
    apply_feature_weights,
    print_warnings,
    read_other_set,
    read_training_set,
    write_report,
)
from dcsvm.data.dataset import Dataset
from dcsvm.data.files import write_beside
from dcsvm.model.reader import load_model
from dcsvm.problem.options import TrainOptions
from dcsvm.training.grid import GridSearch
from dcsvm.training.train import train

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.cm import ScalarMappable
    from matplotlib.figure import Figure


INCHES, DOTS_PER_INCH = (8.0, 6.4), 125  # 1000 x 800 pixels
N_BANDS = 8
NAMES = {"mse": "mean squared error"}
MAX_TITLE = 60  # characters that fit the width


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
    # the values to draw, and the heading
    C = np.log2([score.setting.C for score in shown])
    gamma = np.log2([score.setting.gamma or 1.0 for score in shown])
    loss = np.maximum([score.loss for score in shown], best.loss)  # estimates may be lower
    value = definition.shown(loss)
    label = f"{metric}{' (%)' if definition.is_percent else ''}"
    figure = Figure(figsize=INCHES, dpi=DOTS_PER_INCH, layout="constrained")
    axes = figure.add_subplot()
    heading = f"{printable(title)}\n{best_in_words(best, metric, definition)}"
    axes.set_title(heading, parse_math=False)
    axes.set(xlabel="log2(C)", ylabel="log2(gamma)")
    # a map if both vary, else a line
    x, y = C, gamma
    if np.ptp(C) and np.ptp(gamma):
        draw_bands(figure, axes, (C, gamma, value), label, is_gain=definition.is_gain)
    else:
        x, y = gamma if np.ptp(gamma) else C, value
        order = np.argsort(x)
        axes.plot(x[order], y[order], color="tab:blue", zorder=1)
        axes.set(xlabel="log2(gamma)" if np.ptp(gamma) else "log2(C)", ylabel=label)
    # a mark per setting
    is_complete = np.array([score.is_complete for score in shown])
    is_best = np.array([score is best for score in shown])
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
    write_png(path, figure)


def write_png(path: str, figure: Figure) -> None:
    image = io.BytesIO()
    figure.savefig(image, format="png")
    write_beside(path, [image.getvalue()])


def select_scores(search: GridSearch) -> tuple[list[Any], Any]:
    """Return the best score for each C and gamma, and the best of all. Raises ValueError."""
    scores = [score for score in search.scores if score.n_rows and math.isfinite(score.loss)]
    if any(score.setting.gamma for score in scores):
        scores = [score for score in scores if score.setting.gamma]
    if not scores:
        raise ValueError("no setting has a score to draw")
    groups: dict[tuple[float, float | None], list[Any]] = {}
    for score in scores:
        groups.setdefault((score.setting.C, score.setting.gamma), []).append(score)
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
    write_png(path, figure)


def grid_file(job: GridJob, options: TrainOptions) -> int:
    """Run a grid job: score the grid, train the best setting; return the exit status."""
    options = options.with_threads()
    if job.png_file is not None:
        check_can_draw()
    stop, start = Stop(job.time_limit), time.perf_counter()
    data = read_training_set(job, options)
    if not job.quiet:
        print_warnings(data, options)
    data, learned = apply_feature_weights(job, data, options)
    test = None
    if job.test_file is not None:
        test = read_other_set(job.test_file, job, data, threads=options.threads)
        if not options.is_regression and not set(test.labels) & set(data.labels):
            print_status(f"warning: no label in {job.test_file} is one of the training set's")
    read = time.perf_counter()
    with Interrupts(stop) as interrupts:
        search = GridSearch(
            data, options, job.grid(options), gamma_unit=job.gamma_unit, feature_weights=learned,
            folds=min(job.n_folds, data.n_rows), test=test, every=job.every, metric=job.metric,
            stop=stop, progress=TerminalProgress(job.quiet),
        )  # fmt: skip
        lines = GridLines(search, None if job.log2c else options.C)
        score_settings(job, search, lines)
    end_of_search = time.perf_counter()
    best = search.best
    if best is None:
        print_status("error: stopped before any setting was scored")
        return status_of(interrupts.received, FAILED)
    if job.png_file is not None:
        save_picture(job.png_file, search, title=job.training_set_file)
    say_caveats(search, best)
    print_result(lines.last(best))
    seconds = {"read": read - start, "search": end_of_search - read}
    training, status = None, 0
    if job.model_file is not None and not search.is_stopped:
        best_options = best.setting.options(search.options)
        data = search.release()  # frees memory for training
        training, status = train_best(job, job.model_file, best_options, data)
        seconds["train"] = time.perf_counter() - end_of_search
    seconds["total"] = time.perf_counter() - start
    if job.report_file is not None:
        settings = [as_dict(score) for score in search.scores]
        values = {"best": as_dict(best), "settings": settings, "seconds": seconds}
        write_report(job.report_file, {**values, "training": training})
    if search.is_stopped:
        return status_of(interrupts.received, NOT_CONVERGED)
    return status if best.converged else NOT_CONVERGED


def score_settings(job: GridJob, search: GridSearch, lines: GridLines) -> None:
    """Run a search; print its scores with the best so far, and write them to the -out file."""
    progress, file = TerminalProgress(job.quiet), None

    def show(score: Any, source: str) -> None:
        if not job.quiet:
            progress.clear()
            print_result(lines.printed(source, score, search.best))

    known = [] if job.resume_file is None else lines.read(job.resume_file)
    if job.out_file is not None:
        # known scores first: if stopped at any time, the file has all that was scored
        write_beside(job.out_file, [f"{lines.stored(score)}\n".encode() for score in known])
        file = open(job.out_file, "a", encoding="ascii")  # noqa: SIM115 (closed below)
    try:
        search.tell(lambda n_done: progress.advance(round(n_done, 1)))
        for score in known:
            search.add(score)
            show(score, "resumed")
        progress.begin("settings", len(search.grid.settings), unit="setting")
        for score in search.run(refine=job.refine):
            if file is not None and score.n_rows:
                with naming(file.name):
                    file.write(lines.stored(score) + "\n")
                    file.flush()
            show(score, "local")
        for score in search.use_estimates():
            show(score, "estimate")
    finally:
        progress.close()
        if file is not None:
            with naming(file.name):  # closing writes again what could not be written
                file.close()


@contextmanager
def naming(path: str) -> Iterator[None]:
    """Name the file in errors of writing it."""
    try:
        yield
    except OSError as error:
        raise OSError(error.errno, error.strerror, path) from error


def say_caveats(search: GridSearch, best: Any) -> None:
    """Print warnings and notes about the best setting."""
    scores, grid = search.scores, search.grid
    n_failed = sum(not score.converged for score in scores)
    if n_failed:
        print_status(f"warning: {n_failed} of {len(scores)} settings did not converge: not chosen")
    if search.is_stopped:
        print_status("warning: stopped; the best setting so far is printed")
    # a best setting at the edge hints that a better one lies outside
    edges = grid.edges(best.setting) if best.setting in grid.settings else []
    if edges:
        print_status(
            f"note: the best setting has {' and '.join(edges)} of the grid: extend the grid"
        )
    n_pruned = sum(not score.is_complete for score in scores)
    if n_pruned and not search.is_stopped:
        print_status(
            f"{n_pruned} of {len(scores)} settings pruned; scores are estimates (see --every)"
        )


def train_best(
    job: GridJob, model_file: str, options: TrainOptions, data: Dataset
) -> tuple[dict[str, Any], int]:
    """Train the best setting on all rows, write the model; return its report and exit status."""
    stop, progress = Stop(), TerminalProgress(job.quiet)
    with Interrupts(stop) as interrupts:
        model = train(data, progress=progress, stop=stop, **options.values)
    model.save(model_file, threads=options.threads)
    progress.finish()
    status = 0 if model.report.converged else NOT_CONVERGED
    return model.report.as_dict(), status_of(interrupts.received, status)


def as_dict(score: Any) -> dict[str, Any]:
    """Convert a score for JSON; infinite losses become None."""
    values = vars(score.setting).copy()
    names = ("loss", "losses", "n_rows", "is_complete", "converged", "n_sv", "seconds")
    values |= {name: getattr(score, name) for name in names}
    values["losses"] = [loss if math.isfinite(loss) else None for loss in score.losses]
    return values | {"loss": score.loss if math.isfinite(score.loss) else None}


NUMBER = r"(-?[0-9]+(?:\.[0-9]*)?(?:e[-+]?[0-9]+)?)(?![\w.])"
LETTERS = {"C": "c", "gamma": "g", "epsilon": "p"}


class GridLines:
    """Format of the printed and stored lines of a search.

    `C` is None if it is searched. The exponent of gamma is log2(gamma / unit).
    """

    def __init__(self, search: GridSearch, C: float | None):
        self.search, self.C, self.definition = search, C, search.definition
        grid = search.grid
        searched = {"C": C is None, "gamma": grid.gammas[0] is not None,
                    "epsilon": grid.epsilons[0] is not None}  # fmt: skip
        self.names = [name for name, is_searched in searched.items() if is_searched]
        self.units = {"C": 1.0, "gamma": search.gamma_unit, "epsilon": 1.0}
        self.word = "rate" if self.definition.is_percent else search.metric

    def rate(self, score: Any) -> float:
        return self.definition.shown(score.loss)

    def printed(self, source: str, score: Any, best: Any | None) -> str:
        """Format as `[local] 5.0 -7.0 96.15 (best c=32.0, g=0.0078125, rate=96.15)`."""
        exponents = " ".join(str(exponent) for exponent in self.exponents(score.setting).values())
        line = f"[{source}] {exponents} {self.rate(score):g}"
        if best is None:
            return line
        values = [f"{LETTERS[name]}={getattr(best.setting, name)!r}, " for name in self.names]
        return f"{line} (best {''.join(values)}{self.word}={self.rate(best):g})"

    def last(self, best: Any) -> str:
        """Format as `32.0 0.0078125 96.15`."""
        values = [repr(getattr(best.setting, name)) for name in self.names]
        return f"{' '.join(values)} {self.rate(best):g}"

    def stored(self, score: Any) -> str:
        """Format as `log2c=5.0 log2g=-7.0 rate=96.15`; mark partial and unconverged scores."""
        exponents = " ".join(
            f"log2{LETTERS[name]}={exponent}"
            for name, exponent in self.exponents(score.setting).items()
        )
        digits = 12 if self.definition.is_gain else 17
        partial = "" if score.is_complete else f" rows={score.n_rows}"
        failed = "" if score.converged else " not_converged"
        return f"{exponents} {self.word}={self.rate(score):.{digits}g}{partial}{failed}"

    def exponents(self, setting: Any) -> dict[str, float]:
        return {
            name: round(math.log2(getattr(setting, name) / self.units[name]), 9)
            for name in self.names
        }

    def read(self, path: str) -> list[Any]:
        """Read the scores of an -out file of dcsvm-grid or svm-grid. Raises ValueError."""
        with open(path, encoding="utf-8", errors="replace", newline="") as file:
            text = file.read()
        scores: dict[Any, Any] = {}
        # an interrupted search may leave an incomplete last line
        for number, line in enumerate(text.split("\n")[:-1], 1):
            if line.strip():
                score = self._parsed(line)
                if score is None:
                    raise ValueError(
                        f"{path}:{number}: expected a line such as "
                        f"{' '.join(f'log2{LETTERS[name]}=1' for name in self.names)} "
                        f"{self.word}=90, found {line[:40]!r}"
                    )
                scores[score.setting] = score
        # exponents in the file are rounded: use the exact settings of the grid
        exact = {tuple(self.exponents(one).values()): one for one in self.search.grid.settings}
        return [
            replace(score, setting=exact.get(tuple(self.exponents(setting).values()), setting))
            for setting, score in scores.items()
        ]

    def _parsed(self, line: str) -> Any | None:
        values = {}
        for name in self.names:
            match = re.search(rf"\blog2{LETTERS[name]}={NUMBER}", line)
            if not match or abs(float(match[1])) > 1000:
                return None
            values[name] = 2.0 ** float(match[1]) * self.units[name]
        match, rows = re.search(rf"\b{self.word}={NUMBER}", line), re.search(r"\brows=(\d+)", line)
        n_held = self.search.n_held
        n_rows = int(rows[1]) if rows else n_held
        if not match or not 1 <= n_rows <= n_held:
            return None
        loss = self.definition.loss_of_shown(float(match[1]))
        if self.search.metric == "accuracy":  # a whole number of rows, despite the digits
            loss = round(n_rows * loss) / n_rows
        if not 0.0 <= loss <= (1.0 if self.definition.is_percent else math.inf):
            return None
        return self.search.known(
            (values.get("C", self.C) or 0.0, values.get("gamma"), values.get("epsilon")),
            loss, n_rows, is_complete=rows is None, converged="not_converged" not in line,
        )  # fmt: skip
