"""Compare early models with the exact one: accuracy and seconds by level and overlap.

    python early.py --data DIR --out docs/early [--only NAME] [--redraw]

DIR is the output folder of datasets.py. Each setting is trained with `dcsvm-train --early` at the
level that it finds, then at each level with each overlap, then exactly. `dcsvm-predict` predicts
the test rows. The table (.csv) is rewritten after each run; --redraw makes the picture (.png)
from it.
"""

import argparse
import json
import subprocess
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

import csv_table
import machine
from bench import beside_python, talk

OVERLAPS = ("1", "1.5", "2")
COLUMNS = ("data", "model", "level", "clusters", "overlap", "seconds", "vectors", "accuracy",
           "predicting", "megabytes", "left out")  # fmt: skip
COLORS = {"1": "#999999", "1.5": "#0072B2", "2": "#009E73"}  # Okabe and Ito
EXACT, FOUND = "#000000", "#D55E00"
INCHES, DOTS = (11.0, 6.2), 150


@dataclass(frozen=True)
class Data:
    """A training and a test file, options, and the levels to train."""

    name: str
    train: str
    test: str
    options: str
    levels: tuple[int, ...]


DATA = (
    Data("covtype, C=32, gamma=32", "covtype.tr", "covtype.te", "-c 32 -g 32", (6, 5, 4, 3)),
    Data("covtype, C=32, gamma=2", "covtype.tr", "covtype.te", "-c 32 -g 2", (6, 5, 4, 3)),
    Data("ijcnn1", "ijcnn1", "ijcnn1.t", "-c 32 -g 2", (4, 3, 2, 1)),
    Data("a9a", "a9a", "a9a.t", "-c 32 -g 0.0078125", (4, 3, 2, 1)),
    Data("census", "census.tr", "census.te", "-c 512 -g 0.001953125", (5, 4, 3, 2)),
    Data("digits, round or not", "mnist.tr", "mnist.te", "-c 1 -g 4.76837158203125e-07",
         (4, 3, 2, 1)),
    Data("letter", "letter", "letter.t", "-c 10 -g 5", (3, 2, 1)),
    Data("kddcup 10 %", "kdd10.tr", "kdd10.te", "-c 256 -g 0.5", (5, 4, 3, 2, 1)),
)  # fmt: skip


def main() -> None:
    options = parse_arguments()
    table = options.out.with_suffix(".csv")
    if not options.redraw:
        measure(options, table)
    draw(read(table), options.out.with_suffix(".png"))


def measure(options: argparse.Namespace, table: Path) -> None:
    about = machine.describe(options.dcsvm_train) | {"threads": options.threads}
    lines: list[tuple] = []
    for data in DATA:
        if options.only not in data.name or not (options.data / data.train).exists():
            continue
        for model, extra in settings(data):
            lines.append((data.name, model, *run(data, extra, options)))
            talk(" ".join(map(str, lines[-1])))
            csv_table.write(table, about, [COLUMNS, *lines])


def settings(data: Data):
    """List the models to train: (name, options)."""
    yield "found", ["--early"]
    for overlap in OVERLAPS:
        for level in data.levels:
            yield "early", ["--early", "--early-level", str(level), "--overlap", overlap]
    yield "exact", []


def run(data: Data, extra: list[str], options: argparse.Namespace) -> tuple:
    """Train and predict once; return the columns after the first two."""
    with tempfile.TemporaryDirectory(prefix="dcsvm-early-") as work:
        folder = Path(work)
        threads = ["--threads", str(options.threads)]
        train = [options.dcsvm_train, "-q", *threads, *data.options.split(), *extra]
        train += ["--report", folder / "report", options.data / data.train, folder / "model"]
        subprocess.run(train, check=True)
        report = json.loads((folder / "report").read_text())
        predict = [options.dcsvm_predict, *threads, options.data / data.test]
        predict += [folder / "model", folder / "out"]
        begin = time.perf_counter()
        said = subprocess.run(predict, check=True, capture_output=True, text=True).stdout
        predicting = time.perf_counter() - begin
        size = (folder / "model").stat().st_size / 1e6
    choice, level = report["early_choice"], {"level": "", "n_clusters": 1, "overlap": ""}
    if extra:
        level = report["levels"][-1]
    seconds, accuracy = report["seconds"]["train"], said.split("Accuracy = ")[1].split("%")[0]
    return (
        level["level"], level["n_clusters"], level["overlap"] and round(level["overlap"], 3),
        f"{seconds:.3f}", report["n_sv"], accuracy, f"{predicting:.2f}", f"{size:.1f}",
        f"{100 * choice['loss']:.3f}" if choice else "",
    )  # fmt: skip


def read(table: Path) -> dict[str, list[dict]]:
    """Read the lines of each data set."""
    lines = csv_table.read(table)
    return {name: [one for one in lines if one["data"] == name] for name in
            dict.fromkeys(line["data"] for line in lines)}  # fmt: skip


def draw(lines: dict[str, list[dict]], path: Path) -> None:
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot as plt

    style = {"font.size": 9, "axes.spines.top": False, "axes.spines.right": False}
    with plt.rc_context(style):
        columns = -(-len(lines) // 2)
        figure, axes = plt.subplots(2, columns, figsize=INCHES, squeeze=False)
        for panel, (name, own) in zip(axes.flat, lines.items(), strict=False):
            draw_panel(panel, name, own)
        for panel in axes.flat[len(lines) :]:
            panel.axis("off")
        for panel in axes[:, 0]:
            panel.set_ylabel("% of the test rows right")
        for panel in axes[-1]:
            panel.set_xlabel("seconds of training")
        handles, labels = axes.flat[0].get_legend_handles_labels()
        figure.legend(handles, labels, loc="lower center", ncols=len(labels), frameon=False)
        figure.tight_layout(rect=(0, 0.05, 1, 1))
        figure.savefig(path, dpi=DOTS, facecolor="white")
        plt.close(figure)


def draw_panel(axes, name: str, lines: list[dict]) -> None:
    from matplotlib.ticker import LogLocator, NullLocator

    for overlap, color in COLORS.items():
        own = [one for one in lines if one["model"] == "early" and near(one, overlap)]
        own.sort(key=lambda one: -int(one["clusters"]))
        axes.plot(*points(own), color=color, marker="o", markersize=4, linewidth=1.2,
                  label=f"overlap {overlap}")  # fmt: skip
        for one in own if overlap == "1.5" else []:
            axes.annotate(one["clusters"], (float(one["seconds"]), float(one["accuracy"])),
                          textcoords="offset points", xytext=(4, -9), fontsize=7,
                          color=color)  # fmt: skip
    for model, color, marker in (("found", FOUND, "*"), ("exact", EXACT, "s")):
        own = [one for one in lines if one["model"] == model]
        size = 11 if marker == "*" else 5
        label = "the level that was found" if model == "found" else "exact"
        axes.plot(*points(own), color=color, marker=marker, markersize=size, linewidth=0,
                  label=label)  # fmt: skip
    axes.set(xscale="log")
    axes.set_title(name, loc="left", fontsize=10)
    axes.xaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
    axes.xaxis.set_minor_locator(NullLocator())
    axes.xaxis.set_major_formatter("{x:g}")
    axes.grid(color="#e5e5e5", linewidth=0.6)
    axes.set_axisbelow(True)


def near(line: dict, overlap: str) -> bool:
    return abs(float(line["overlap"]) - float(overlap)) < 0.1


def points(lines: list[dict]) -> tuple[list[float], list[float]]:
    return [float(one["seconds"]) for one in lines], [float(one["accuracy"]) for one in lines]


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__.splitlines()[0], formatter_class=argparse.ArgumentDefaultsHelpFormatter
    )
    add = parser.add_argument
    add("--data", type=Path, required=True, help="folder that datasets.py filled")
    add("--out", type=Path, required=True, metavar="NAME", help="of the table and the picture")
    add("--redraw", action="store_true", help="measure nothing")
    add("--only", default="", metavar="NAME", help="data sets with this in their name")
    add("--threads", type=int, default=machine.usable_cores(), help="for every run")
    add("--dcsvm-train", default=beside_python("dcsvm-train"), help="program")
    add("--dcsvm-predict", default=beside_python("dcsvm-predict"), help="program")
    return parser.parse_args()


if __name__ == "__main__":
    main()
