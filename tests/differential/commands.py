"""Whole commands of about 0.3 to 5 s: the table of cases, their data, and their measurement.

To add a case, add a row to `COMMANDS`; `write_files` writes the data files.
"""

import json
import os
import shlex
import shutil
import sys
from dataclasses import dataclass
from importlib.metadata import distribution
from statistics import median

import numpy as np
from builds import ROOT, python
from cases import made, write_text
from ratios import Measured, Ratio, in_turn

sys.path.append(str(ROOT / "examples"))
from bench.process import run  # noqa: E402

LONGEST = 120  # time limit of a command, seconds
CASE_SECONDS = 2.5  # spent on a case in each state
PAIRS = 3, 9  # minimum, for slow commands, and maximum
COUNTS = ("kernel_evaluations", "pairs_skipped", "iterations", "newton_steps")


@dataclass(frozen=True)
class Command:
    """A measured command. `before` runs once and is not measured."""

    group: str
    name: str
    guards: str
    line: str
    before: str = ""

    def __str__(self):
        return self.name


def train(group, name, guards, options):
    return Command(group, name, guards, f"dcsvm-train -q --report report {options} model")


def grid(group, name, guards, options):
    return Command(group, name, guards, f"dcsvm-grid -q --report report {options}")


def predict(group, name, guards, first, options):
    before, line = f"dcsvm-train -q {first} model", f"dcsvm-predict -q {options} labels"
    return Command(group, name, guards, line, before)


# group, name, what it guards, options of the command (for predictions: of training, of prediction)
COMMANDS = (
    train("exact", "levels", "Algorithm 1 with its levels", "-c 8 -g 8 -l 3 waves"),
    train("exact", "early", "clusters alone", "--early -c 8 -g 8 -l 3 more-waves"),
    train("exact", "bias", "pairs of variables", "--bias -c 8 -g 8 waves"),
    train("exact", "free vectors", "Newton steps", "-c 32 -g 0.5 noise"),
    train("exact", "300 binary columns", "rows of bytes or codes", "-c 4 -g 0.02 flags"),
    train("exact", "mixed columns", "codes beside numbers", "-c 8 -g 0.5 mixed"),
    train("exact", "sparse", "sparse rows", "-c 8 -g 0.5 sparse"),
    train("types", "linear", "the solver of linear kernels", "-t 0 -c 1 wide"),
    train("types", "nu-SVC", "two constraints of sums", "-s 1 -n 0.3 -g 8 waves"),
    train("types", "SVR", "two variables a row", "-s 3 -c 4 -g 4 -p 0.05 curve"),
    train("types", "several classes", "a few problems that share rows", "-c 8 -g 4 three"),
    train("types", "80 classes", "many small problems", "-c 8 -g 0.5 many"),
    train("types", "probabilities", "-b 1", "-b 1 -c 8 -g 4 few-waves"),
    Command("types", "folds", "-v", "dcsvm-train -q -v 5 -c 8 -g 4 few-waves"),
    grid("selection", "grid", "held-out rows of exact models",
         "-v 3 -log2c -1,7,2 -log2g 1,-3,-2 few-waves"),
    grid("selection", "early grid", "held-out rows of early models",
         "--early -v 3 -log2c -1,7,2 -log2g 1,-3,-2 waves"),
    Command("selection", "easy", "the choice of all settings",
            "dcsvm-easy -q --report report easy"),
    Command("models", "compression", "fewer vectors",
            "dcsvm-compress -q --vectors 100 --rows waves --steps 300 model small",
            "dcsvm-train -q -c 8 -g 8 waves model"),
    predict("models", "many rows", "kernel products of decision values", "-c 8 -g 8 waves",
            "more-waves model"),
    predict("models", "one row", "loading a model", "-c 8 -g 8 waves", "one-wave model"),
    predict("files", "text", "the reader of LIBSVM text", "-t 0 -c 1 few-waves", "long model"),
    predict("files", "CSV", "the reader of CSV", "-t 0 -c 1 --label label few-waves.csv",
            "long.csv model"),
    Command("files", "start", "imports", "dcsvm-train --help"),
)  # fmt: skip


def flags(size, seed):
    """Return rows of 300 columns of 0 and 1, and labels from the exclusive or of column pairs."""
    X = (np.random.default_rng(seed).random((size, 300)) < 0.3).astype(np.float32)
    return X, np.where((X[:, :20:2] != X[:, 1:20:2]).sum(axis=1) > 4, 1.0, -1.0)


def mixed(size, seed):
    """Return rows of 10 numbers and two sets of exclusive 0/1 columns, 44 in total."""
    X, y = made(size, "two", seed)
    rng = np.random.default_rng(seed)
    places = rng.integers(0, (4, 40), (size, 2))
    sets = [np.eye(n)[some] for n, some in zip((4, 40), places.T, strict=True)]
    wide = np.concatenate([X, X**2, *sets], axis=1).astype(np.float32)
    return wide, np.where(places[:, 1] % 3 == 0, -y, y)


def many(size, seed):
    """Return rows of 10 columns around 80 points, one for each class."""
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 80, size)
    centers = np.random.default_rng(0).normal(size=(80, 10))
    return (centers[y] + rng.normal(0, 0.4, (size, 10))).astype(np.float32), y


def noise(size, seed):
    """Return rows of 20 columns, and labels independent of the rows."""
    rng = np.random.default_rng(seed)
    return rng.uniform(-1, 1, (size, 20)).astype(np.float32), rng.choice([-1.0, 1.0], size)


def files():
    """Return (X, y) of the data files by their names."""
    text = {
        "waves": made(8000, "two", 1), "more-waves": made(12000, "two", 2),
        "few-waves": made(2000, "two", 3), "one-wave": made(1, "two", 4),
        "easy": made(3000, "two", 5), "long": made(100_000, "two", 6),
        "curve": made(3000, "curve", 7), "three": made(5000, "three", 8),
        "sparse": made(4000, "sparse", 9), "wide": made(20000, "sparse", 10),
        "flags": flags(4000, 11), "mixed": mixed(5000, 12), "many": many(4000, 13),
        "noise": noise(2500, 14),
    }  # fmt: skip
    return text | {f"{name}.csv": text[name] for name in ("few-waves", "long")}


def write_files(folder):
    """Write the data files of all cases into the folder."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    for name, (X, y) in files().items():
        if name.endswith(".csv"):
            head = ",".join(["label", *(f"x{k}" for k in range(1, X.shape[1] + 1))])
            rows = np.column_stack([y, X])
            np.savetxt(folder / name, rows, "%.9g", ",", header=head, comments="")
        else:
            write_text(folder / name, X, y)


class FailedError(Exception):
    """A command failed."""


class Runner:
    """Runs cases with the package of a state, each in a folder with links to the data files."""

    def __init__(self, site, place, data):
        shutil.rmtree(place, ignore_errors=True)
        self.site, self.place, self.data = site, place, data

    def prepare(self, case):
        """Run the commands of a case once; return the counts of its report."""
        folder = self._folder(case)
        folder.mkdir(parents=True)
        for path in self.data.iterdir():
            (folder / path.name).symlink_to(path)
        for line in (case.before, case.line):
            if line:
                self._run(line, folder)
        report = folder / "report"
        found = json.loads(report.read_text()) if report.exists() else {}
        return {name: found[name] for name in COUNTS if name in found}

    def measure(self, case):
        """Run a prepared case again; return its times and memory."""
        return self._run(case.line, self._folder(case))

    def _folder(self, case):
        return self.place / case.name.replace(" ", "-")

    def _run(self, line, folder):
        name, *words = shlex.split(line)
        (entry,) = distribution("dcsvm").entry_points.select(name=name)
        module, _, function = entry.value.partition(":")
        imports = f"import sys; from {module} import {function}"
        program = f"{imports}; sys.argv[0] = {name!r}; {function}()"
        os.chdir(folder)
        done = run(python(self.site, "-c", program, *words), LONGEST, os.cpu_count())
        if done.code != 0:
            last = (done.stderr.strip().splitlines() or [""])[-1]
            how = f"no end after {LONGEST} s" if done.timed_out else f"status {done.code}"
            raise FailedError(f"{name}: {how}: {last}")
        return done


def prepare(cases, runners):
    """Run every case once. Return the cases to measure, remarks, and failures of this state."""
    print(f"running {len(cases)} commands once in each state", flush=True)
    known, remarks, failures = [], [], []
    for case in cases:
        try:
            before = runners["base"].prepare(case)
        except FailedError as error:
            remarks.append(f"{case}: not measured, base fails: {error}")
            continue
        try:
            now = runners["now"].prepare(case)
        except FailedError as error:
            failures.append(f"{case}: {error}")
            continue
        known.append(case)
        remarks += [f"{case}: {count} {before[count]:,} is now {now[count]:,}"
                    for count in COUNTS if before.get(count, 0) != now.get(count, 0)]  # fmt: skip
    return known, remarks, failures


def measure(cases, runners, times=1):
    """Measure prepared cases; `times` multiplies the number of pairs."""
    for case in cases:
        pairs, spent = [], 0.0
        for pair in in_turn(lambda side: runners[side].measure(case)):  # noqa: B023 (used at once)
            pairs.append(pair)
            spent += pair[0].wall
            if len(pairs) >= (PAIRS[0] if spent > times * CASE_SECONDS else PAIRS[1]) * times:
                break
        seconds = median(base.wall for base, _ in pairs)
        memory = (median(done.peak_mb for done in side) for side in zip(*pairs, strict=True))
        ratio, processor = (
            Ratio.of([(getattr(base, what), getattr(now, what)) for base, now in pairs])
            for what in ("wall", "processor")
        )
        words = "{:7.2f} s  {:5.0f} MB, now {:5.0f}".format(seconds, *memory)
        yield Measured(case, ratio, f"{words}  processor {processor.middle:5.2f}")
