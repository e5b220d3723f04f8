"""Compare early models with the exact one: accuracy and seconds by level and overlap.

Each setting is trained with `dcsvm-train --early` at the level that it finds, then at each level
with each overlap, then exactly. `dcsvm-predict` predicts the test rows.
"""

import argparse
from collections.abc import Iterator
from itertools import product
from pathlib import Path

import figures
import measure
from cases import Case
from programs import Job, jobs

COLORS = {"1": figures.GREY, "1.5": figures.BLUE, "2": figures.GREEN}  # by overlap
COLUMNS = ("data", "model", "level", "clusters", "overlap", "seconds", "vectors", "accuracy",
           "predicting", "megabytes", "left out")  # fmt: skip
LEVELS = {  # to train, of each case
    Case("covtype, C=32, gamma=32", "covtype.tr", "covtype.te", 32, 32): (6, 5, 4, 3),
    Case("covtype, C=32, gamma=2", "covtype.tr", "covtype.te", 32, 2): (6, 5, 4, 3),
    Case("ijcnn1", "ijcnn1", "ijcnn1.t", 32, 2): (4, 3, 2, 1),
    Case("a9a", "a9a", "a9a.t", 32, 2**-7): (4, 3, 2, 1),
    Case("census", "census.tr", "census.te", 512, 2**-9): (5, 4, 3, 2),
    Case("MNIST, round digits", "mnist.tr", "mnist.te", 1, 2**-21): (4, 3, 2, 1),
    Case("letter", "letter", "letter.t", 10, 5): (3, 2, 1),
    Case("kddcup 10 %", "kdd10.tr", "kdd10.te", 256, 0.5): (5, 4, 3, 2, 1),
}


def main() -> None:
    names = "data out redraw only threads dcsvm-train dcsvm-predict"
    options = measure.parser_of(__doc__, names).parse_args()
    measure.tabled(options, COLUMNS, lines_of(options), picture, threads=options.threads)


def lines_of(options: argparse.Namespace) -> Iterator[tuple]:
    for job in jobs(measure.chosen(LEVELS, options.only), options):
        for model, words in models(LEVELS[job.case]):
            yield job.case.name, model, *measured(job, words)


def models(levels: tuple[int, ...]) -> Iterator[tuple[str, list]]:
    """List the models to train: (name, options)."""
    yield "found", ["--early", "--early-level", "auto"]
    for overlap, level in product(COLORS, levels):
        yield "early", ["--early", "--early-level", level, "--overlap", overlap]
    yield "exact", []


def measured(job: Job, words: list[str]) -> tuple:
    """Train and predict once; return the columns after the first two."""
    threads, model = ["--threads", job.options.threads], job.work / "model"
    train = [job.options.dcsvm_train, *threads, *job.case.options(), *words]
    report = measure.reported(*train, job.train, model)
    predict = [job.options.dcsvm_predict, *threads, job.test, model, job.work / "out"]
    tested = measure.reported(*predict)
    choice, level = report["early_choice"], {"level": "", "n_clusters": 1, "overlap": ""}
    if words:
        level = report["levels"][-1]
    return (
        level["level"], level["n_clusters"], level["overlap"] and round(level["overlap"], 3),
        f"{report['seconds']['train']:.3f}", report["n_sv"],
        f"{100 * tested['metrics']['accuracy']:g}", f"{tested['wall']:.2f}",
        f"{model.stat().st_size / 1e6:.1f}", f"{100 * choice['loss']:.3f}" if choice else "",
    )  # fmt: skip


def picture(lines: list[dict], path: Path) -> None:
    panels = {name: series_of(own) for name, own in measure.grouped(lines, "data").items()}
    labels = {"xlabel": "seconds of training", "ylabel": "% of the test rows right"}
    figures.draw(path, figures.in_rows(panels, 2, x=10, **labels), inches=(11.0, 6.2))


def series_of(lines: list[dict]) -> list[figures.Series]:
    found = []
    for overlap, color in COLORS.items():
        own = [one for one in lines if one["model"] == "early"
               and abs(float(one["overlap"]) - float(overlap)) < 0.1]  # fmt: skip
        own.sort(key=lambda one: -int(one["clusters"]))
        notes = [one["clusters"] for one in own if overlap == "1.5"]
        look = {"color": color, "marker": "o", "label": f"overlap {overlap}"}
        found.append(figures.Series(points(own), look, notes))
    for model, look in (
        ("found", {"color": figures.VERMILION, "marker": "*", "markersize": 11,
                   "label": "the level that was found"}),
        ("exact", {"color": figures.BLACK, "marker": "s", "label": "exact"}),
    ):  # fmt: skip
        own = [one for one in lines if one["model"] == model]
        found.append(figures.Series(points(own), {"linestyle": "", **look}))
    return found


def points(lines: list[dict]) -> list[tuple[float, float]]:
    return [(float(one["seconds"]), float(one["accuracy"])) for one in lines]


if __name__ == "__main__":
    main()
