"""Compare compressed models with their originals and with the paper's methods of the same size.

    python compressed.py --data DIR --out docs/compressed [--only NAME] [--redraw]

DIR is the output folder of datasets.py. An exact and an early model are trained on each data set.
They are compressed to a tenth, a hundredth and a ten thousandth of the kernel evaluations per row.
All models predict the test rows with one thread, in this process. The microseconds per row are the
median of three rounds; the first prediction also prepares the model and does not count. LLSVM,
FastFood and SpSVM (two classes only, with scikit-learn) have one feature per vector of a compressed
exact model. A row "alone" is the median of 200 calls from Python. The table (.csv) is rewritten
after each model. It keeps the lines of data sets that --only skips; --redraw makes the picture
(.png) from it.
"""

import argparse
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import csv_table
import machine
import numpy as np
from bench import beside_python, talk

TIMES = (10, 100, 10_000)
PEERS = {"LLSVM": "llsvm", "FastFood": "fastfood", "SpSVM": "spsvm"}
MIN_FEATURES = 2  # for a peer: FastFood makes pairs of features
MAX_FEATURES = 2000  # beyond this SpSVM takes minutes
ROUNDS = 3
ALONE = 200  # rows predicted one by one
COLUMNS = (
    "data", "model", "vectors", "bytes", "kernel values", "accuracy", "microseconds", "alone",
)  # fmt: skip
STYLES = {  # color (Okabe and Ito), marker
    "exact": ("#000000", "s"),
    "early": ("#0072B2", "o"),
    "LLSVM": ("#999999", "^"),
    "FastFood": ("#999999", "v"),
    "SpSVM": ("#999999", "D"),
}
INCHES, DOTS = (11.0, 6.2), 150
SHOWN = 11.0  # percent below the best; lower points are in the table only


@dataclass(frozen=True)
class Data:
    """A training and a test file, C and gamma, and the early level."""

    name: str
    train: str
    test: str
    C: float
    gamma: float
    level: str = "auto"

    @property
    def options(self) -> list[str]:
        return ["-c", str(self.C), "-g", str(self.gamma)]


DATA = (
    Data("covtype", "covtype.tr", "covtype.te", 32, 32, "4"),
    Data("MNIST, ten classes", "digits.tr", "digits.te", 10, 0.02 / 255**2),
    Data("ijcnn1", "ijcnn1", "ijcnn1.t", 32, 2),
    Data("a9a", "a9a", "a9a.t", 32, 2**-7),
    Data("letter", "letter", "letter.t", 10, 5),
)


def main() -> None:
    options = parse_arguments()
    table = options.out.with_suffix(".csv")
    if not options.redraw:
        measure(options, table)
    draw(csv_table.read(table), options.out.with_suffix(".png"))


def measure(options: argparse.Namespace, table: Path) -> None:
    about = machine.describe(options.dcsvm_train) | {"threads of prediction": 1}
    chosen = [one for one in DATA if options.only in one.name]
    chosen = [one for one in chosen if (options.data / one.train).exists()]
    old = csv_table.read(table) if table.exists() else []
    lines = [tuple(one.values()) for one in old if one["data"] not in {d.name for d in chosen}]
    for data in chosen:
        with tempfile.TemporaryDirectory(prefix="dcsvm-compressed-") as work:
            for line in lines_of(data, Path(work), options):
                lines.append((data.name, *line))
                talk(" ".join(map(str, lines[-1])))
                csv_table.write(table, about, [COLUMNS, *lines])


def lines_of(data: Data, folder: Path, options: argparse.Namespace) -> Iterator[tuple]:
    """Measure all models of a data set; yield the columns after the first."""
    from dcsvm.data.dataset import Dataset

    test = Dataset.read(options.data / data.test)
    for kind in ("exact", "early"):
        path = folder / kind
        extra = ["--early", "--early-level", data.level] if kind == "early" else []
        train = [options.dcsvm_train, "-q", "--threads", options.threads, *data.options, *extra]
        subprocess.run([*map(str, train), options.data / data.train, path], check=True)
        yield kind, *predicted(path, test)
        for times in TIMES:
            small = folder / f"{kind}.{times}"
            if compressed(path, small, times, data, options):
                line = predicted(small, test)
                yield f"{kind}, {times} times", *line
                if kind == "exact" and MIN_FEATURES <= line[0] <= MAX_FEATURES:
                    yield from peers(data, test, line[0], options)


def compressed(path: Path, small: Path, times: int, data: Data, options) -> bool:
    """Compress the model by this factor; return whether that is possible."""
    command = [options.dcsvm_compress, "-q", "--threads", options.threads, "--times", times]
    command += ["--rows", options.data / data.train, path, small]
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True)
    if done.returncode != 0:
        talk(f"{data.name}, {path.name}, {times} times: {done.stderr.strip()}")
    return done.returncode == 0


def predicted(path: Path, test) -> tuple:
    """Measure a model: (vectors, bytes, kernel values, accuracy, microseconds, for a row alone)."""
    from dcsvm import load_model
    from dcsvm.model.compress import values_of_row

    model = load_model(path)
    part = model.exact or model.early
    seconds, labels = timed(lambda: model.predict(test.rows, threads=1))
    accuracy = 100 * np.mean(labels == test.labels)
    values = values_of_row(model, test.rows, 1)
    return (
        part.rows.n_samples, path.stat().st_size, f"{values:.0f}", f"{accuracy:.2f}",
        f"{1e6 * seconds / len(labels):.3f}", f"{1e6 * alone(model, test.rows):.1f}",
    )  # fmt: skip


def alone(model, rows) -> float:
    """Measure the median seconds for one row."""
    from dcsvm.data.rows import Rows

    width, seconds = (model.exact or model.early).rows.n_features, []
    X = rows.take(np.arange(min(ALONE, rows.n_samples))).with_features(width)
    X = X.in_form_of(Rows(0, 0, dense=np.empty((0, 0))), 1).as_floats().dense
    model.predict(X[:1], threads=1)
    for row in X:
        begin = time.perf_counter()
        model.predict(row[None], threads=1)
        seconds.append(time.perf_counter() - begin)
    return float(np.median(seconds))


def timed(predict) -> tuple[float, np.ndarray]:
    """Return the median seconds and the predictions."""
    labels, seconds = predict(), []
    for _ in range(ROUNDS):
        begin = time.perf_counter()
        predict()
        seconds.append(time.perf_counter() - begin)
    return float(np.median(seconds)), labels


def peers(data: Data, test, n_features: int, options: argparse.Namespace) -> Iterator[tuple]:
    """Measure the paper's methods with this number of features."""
    try:
        import sklearn  # noqa: F401
    except ImportError:
        return
    sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
    from paper.baselines import fitter

    from dcsvm.data.dataset import Dataset
    from dcsvm.kernel.kernels import Kernel

    train = Dataset.read(options.data / data.train)
    if len(np.unique(train.labels)) != 2:
        return
    width = max(train.rows.n_features, test.rows.n_features)
    X, T = (one.rows.with_features(width).as_floats().dense for one in (train, test))
    y, expected = (np.where(one.labels == train.labels[0], 1.0, -1.0) for one in (train, test))
    for title, name in PEERS.items():
        size = {"basis" if name == "spsvm" else "features": n_features}
        fitted = fitter(name)(
            X, y, data.C, Kernel("rbf", data.gamma), threads=options.threads, **size
        )
        seconds, values = timed(lambda fitted=fitted: fitted.decision_function(T))
        accuracy = 100 * np.mean((values > 0) == (expected > 0))
        cost = f"{1e6 * seconds / len(T):.3f}"
        yield title, n_features, "", n_features, f"{accuracy:.2f}", cost, ""


def draw(lines: list[dict], path: Path) -> None:
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot as plt

    names = list(dict.fromkeys(line["data"] for line in lines))
    with plt.rc_context({"font.size": 9, "axes.spines.top": False, "axes.spines.right": False}):
        columns = -(-len(names) // 2)
        figure, axes = plt.subplots(2, columns, figsize=INCHES, squeeze=False)
        for panel, name in zip(axes.flat, names, strict=False):
            draw_panel(panel, name, [line for line in lines if line["data"] == name])
        for panel in axes.flat[len(names) :]:
            panel.axis("off")
        for panel in axes[:, 0]:
            panel.set_ylabel("% of the test rows right")
        for panel in axes[-1]:
            panel.set_xlabel("microseconds of a row")
        handles, labels = axes.flat[0].get_legend_handles_labels()
        figure.legend(handles, labels, loc="lower center", ncols=len(labels), frameon=False)
        figure.tight_layout(rect=(0, 0.05, 1, 1))
        figure.savefig(path, dpi=DOTS, facecolor="white")
        plt.close(figure)


def draw_panel(axes, name: str, lines: list[dict]) -> None:
    from matplotlib.ticker import FormatStrFormatter, LogLocator, NullLocator

    best = max(float(line["accuracy"]) for line in lines)
    lines = [line for line in lines if float(line["accuracy"]) > best - SHOWN]
    for kind, (color, marker) in STYLES.items():
        own = [line for line in lines if line["model"].split(",")[0] == kind]
        x, y = ([float(line[key]) for line in own] for key in ("microseconds", "accuracy"))
        width = 1.2 if kind in ("exact", "early") else 0
        axes.plot(x, y, color=color, marker=marker, markersize=4, linewidth=width, label=kind)
        for line in own:
            axes.annotate(line["vectors"], (float(line["microseconds"]), float(line["accuracy"])),
                          textcoords="offset points", xytext=(4, -9), fontsize=7,
                          color=color)  # fmt: skip
    axes.set(xscale="log")
    axes.margins(0.12)
    axes.xaxis.set(
        major_locator=LogLocator(subs=(1, 2, 5)), minor_locator=NullLocator(),
        major_formatter=FormatStrFormatter("%g"),
    )  # fmt: skip
    axes.set_title(name, loc="left", fontsize=10)
    axes.grid(color="#e5e5e5", linewidth=0.6)
    axes.set_axisbelow(True)


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__.splitlines()[0], formatter_class=argparse.ArgumentDefaultsHelpFormatter
    )
    add = parser.add_argument
    add("--data", type=Path, required=True, help="folder that datasets.py filled")
    add("--out", type=Path, required=True, metavar="NAME", help="of the table and the picture")
    add("--redraw", action="store_true", help="measure nothing")
    add("--only", default="", metavar="NAME", help="data sets with this in their name")
    add("--threads", type=int, default=machine.usable_cores(), help="of training and compression")
    add("--dcsvm-train", default=beside_python("dcsvm-train"), help="program")
    add("--dcsvm-compress", default=beside_python("dcsvm-compress"), help="program")
    return parser.parse_args()


if __name__ == "__main__":
    main()
