"""Measure the missing cells of experiments, each in a separate process.

    python -m paper.run comparison grid --scale small --data data --results results

Stop it at any time and start it again: finished cells of the same commit are kept. The cells of a
data set are measured in turn, in one run: if some of them are missing, the others are measured
again where they are of another machine. Cells of less than SHORT seconds are measured several
times. What exceeds its limit is measured on ever fewer rows until it does not, with DC-SVM on the
same rows beside it.

A competitor has ten times DC-SVM's seconds on all rows of the data set, at least --limit and at
most MOST; reading and testing are not counted, up to three times of what they take with DC-SVM.
"""

from __future__ import annotations

import json
import math
import signal
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path

import click
from bench import machine, process
from tqdm import tqdm

from paper import EXPERIMENTS, problems, provenance
from paper.cells import Cell, Results
from paper.experiments import divided
from paper.fewer import on_fewer_rows
from paper.measure import OUT_OF_TIME, UNUSABLE
from paper.scales import SCALES, Scale

TIMES_OURS, MOST = 10, 1_800  # a competitor's limit: DC-SVM's seconds times this, and the greatest
LEAST_AT_FULL = 200  # seconds: below this the results at scale full would be of our choosing
ROUND_TO = 10  # seconds: limits are multiples
LIMITING = ("dcsvm", "single")  # the methods whose seconds set limits
# not `-m paper.measure`: the limit would be set in __main__, and read in paper.measure
MEASURE = "import sys; from paper.measure import main; main(*sys.argv[1:])"
LONGEST_WRITING = 900  # seconds in which svm-train's rows are written and read
BESIDE = 3  # time for reading and testing, over what DC-SVM takes for that
SHORT = 10  # seconds of a cell that is measured several times


def cells_of(experiment: str, scale: Scale, data: Path, threads: int) -> list[Cell]:
    """List all cells of an experiment for the available data sets."""
    module = import_module(f"paper.experiments.{experiment}")
    return module.cells(scale, problems.names_of(module, data), threads)


def run_cell(cell: Cell, data: Path, limit: float, more: float = 0.0) -> dict:
    """Measure a cell once, with `more` seconds beside training; return its record with one result.

    svm-train's limit is enforced where it is started, after the rows were written and read.
    """
    command = [sys.executable, "-c", MEASURE, cell.experiment, data.resolve()]
    command += [json.dumps(cell.settings), limit]
    timeout = limit + more + (LONGEST_WRITING if cell.method == "libsvm" else 0.0)
    finished = process.run(command, timeout, cell.settings["threads"])
    if finished.timed_out or finished.code == OUT_OF_TIME:
        return {"status": "timeout"}
    if finished.code != 0:
        lines = finished.stderr.strip().splitlines() or [f"exit status {finished.code}"]
        no_memory = finished.code == -signal.SIGKILL or "MemoryError" in lines[-1]
        status = {UNUSABLE: "skipped"}.get(finished.code, "memory" if no_memory else "failed")
        return {"status": status, "message": lines[-1]}
    result = json.loads(finished.stdout.splitlines()[-1])
    about = {"wall_seconds": finished.wall, "peak_mb": finished.peak_mb}
    return {"status": "ok", "results": [{"seconds": finished.wall, **about, **result}]}


def limit_of(cell: Cell, scale: Scale, least: float, results: Results) -> float:
    """Return the seconds of training that a cell has.

    They are the scale's for our own solver, and for experiments that nobody competes in.
    """
    module = import_module(f"paper.experiments.{cell.experiment}")
    if cell.method not in getattr(module, "LIMITED", ()):
        return scale.timeout
    own = problems.DATA_SETS[cell.settings["problem"]["data"]].limit
    if own is not None:
        return max(own, least)
    if hasattr(module, "ours") and results.exceeded(module.ours(scale, divided(cell, 1))):
        return max(MOST, least)
    ours = dcsvm_of(module, scale, cell, results)
    wanted = TIMES_OURS * ours["seconds"] if ours else least
    return min(max(ROUND_TO * math.ceil(wanted / ROUND_TO), least), max(MOST, least))


def beside_training(cell: Cell, scale: Scale, results: Results) -> float:
    """Return the seconds that a cell has for reading and testing."""
    module = import_module(f"paper.experiments.{cell.experiment}")
    ours = dcsvm_of(module, scale, cell, results)
    return BESIDE * max(ours["wall_seconds"] - ours["seconds"], 0.0) if ours else 0.0


def dcsvm_of(module, scale: Scale, cell: Cell, results: Results) -> dict | None:
    """Return DC-SVM's result on all rows of the problem of a cell."""
    if not hasattr(module, "ours"):
        return None
    return results.of(module.ours(scale, divided(cell, 1)))


def is_repeated(cell: Cell, scale: Scale, measured: list[dict]) -> bool:
    """Return whether a cell was measured as often as its seconds demand."""
    module = import_module(f"paper.experiments.{cell.experiment}")
    once = getattr(module, "UNTIMED", False) or measured[0]["seconds"] >= SHORT
    return once or len(measured) >= scale.repeats


def turns(cells: list[Cell]) -> list[list[Cell]]:
    """Divide the cells into those of each problem; the limits of all others need DC-SVM's."""
    found: dict[str, list[Cell]] = {}
    for cell in cells:
        key = f"{cell.experiment} {json.dumps(cell.settings.get('problem'))}"
        found.setdefault(key, []).append(cell)
    return [sorted(own, key=lambda cell: cell.method not in LIMITING) for own in found.values()]


@dataclass
class Measuring:
    """Measures what is missing. Records count if they are of `run`'s commit, or of any if `keep`.

    `run` describes the present one and is saved with each record.
    """

    scale: Scale
    results: Results
    data: Path
    least: float
    run: dict
    keep: bool
    bar: tqdm
    count: int = 0
    failed: int = 0

    def counts(self, cell: Cell) -> bool:
        """Return whether the record of a cell counts, wherever it was measured."""
        record = self.results.record(cell)
        if record is None or record["status"] == "failed":
            return False
        if not self.keep and record["run"]["commit"] != self.run["commit"]:
            return False
        if record["status"] == "timeout":
            return record["limit"] >= limit_of(cell, self.scale, self.least, self.results)
        return record["status"] != "ok" or is_repeated(cell, self.scale, record["results"])

    def missing(self, cells: list[Cell]) -> list[Cell]:
        """List the cells of a problem that do not count, those on fewer rows included."""
        return [one for cell in cells for one in self.with_fewer_rows(cell) if not self.counts(one)]

    def with_fewer_rows(self, cell: Cell) -> Iterator[Cell]:
        """Yield a cell, and those on fewer rows if it exceeds its limit when they are asked for."""
        yield cell
        yield from on_fewer_rows(self.scale, cell, self.results.exceeded)

    def in_turn(self, cells: list[Cell]) -> None:
        """Measure the missing cells of a problem, one after the other, several times if short."""
        begins_anew = bool(self.missing(cells)) and not self.keep
        begun: set[str] = set()
        for _ in range(self.scale.repeats):
            for cell in cells:
                for one in self.with_fewer_rows(cell):
                    if not self.counts(one) or (begins_anew and self.is_away(one)):
                        self.once(one, begun)

    def is_away(self, cell: Cell) -> bool:
        """Return whether the record of a cell is of another machine."""
        return self.results.record(cell)["run"]["machine"] != self.run["machine"]

    def once(self, cell: Cell, begun: set[str]) -> None:
        """Measure a cell, and add the result to those of this run; a failed one is not repeated."""
        earlier = self.results.record(cell) if cell.name in begun else {}
        if earlier.get("status") == "failed":
            return
        begun.add(cell.name)
        label = f"{cell.experiment}/{cell.name}"
        self.bar.set_description(label)
        limit = limit_of(cell, self.scale, self.least, self.results)
        more = beside_training(cell, self.scale, self.results)
        record = run_cell(cell, self.data, limit, more)
        measured = earlier.get("results", [])
        if record["status"] == "ok":
            record["results"] = measured + record["results"]
        if record["status"] == "ok" or not measured:  # else earlier repeats stay
            self.results.save(cell, {**record, "limit": limit, "run": self.run})
        self.count += 1
        self.bar.update()
        outcome = record.get("message", record["status"])
        if self.bar.disable:
            click.echo(f"{self.count} {label}: {outcome}", err=True)
        elif "message" in record:
            self.bar.write(f"{label}: {outcome}", file=sys.stderr)
        self.failed += record["status"] == "failed"


@click.command()
@click.argument("experiments", nargs=-1, type=click.Choice(EXPERIMENTS))
@click.option("--scale", type=click.Choice(SCALES), default="small", show_default=True)
@click.option("--data", type=click.Path(path_type=Path), required=True, help="prepared files")
@click.option("--results", type=click.Path(path_type=Path), required=True, help="folder of results")
@click.option("--threads", type=int, default=machine.usable_cores(), show_default="usable cores")
@click.option("--limit", type=float, help="least seconds of a competitor  [default: the scale's]")
@click.option("--only", default="", help="only cells with this in their name")
@click.option("--keep", is_flag=True, help="keep what was measured at another commit or machine")
def main(experiments, scale, data, results, threads, limit, only, keep) -> None:
    """Measure the missing cells of EXPERIMENTS (default: all)."""
    scale = SCALES[scale]
    least = limit or scale.limit
    if scale.name == "full" and least < LEAST_AT_FULL:
        raise click.BadParameter(
            f"at scale full competitors have at least {LEAST_AT_FULL} seconds", param_hint="--limit"
        )
    wanted = [
        cell
        for experiment in experiments or EXPERIMENTS
        for cell in cells_of(experiment, scale, data, threads)
        if only in f"{cell.experiment}/{cell.name}"
    ]
    if problems.available((), data) == ["generated"]:
        click.echo(f"no prepared data in {data}: measuring on generated data", err=True)
    found, run = Results(results / scale.name), provenance.run_of_now()
    with found.locked(), tqdm(total=0, unit="cell", disable=not sys.stderr.isatty()) as bar:
        measuring = Measuring(scale, found, data, least, run, keep, bar)
        bar.total = sum(len(measuring.missing(cells)) for cells in turns(wanted))
        others = sum(
            found.record(cell) is not None for cell in wanted if not measuring.counts(cell)
        )
        text = f"{sum(map(measuring.counts, wanted))} of {len(wanted)} cells are measured"
        why = "of another commit, failed, once only or with a shorter limit"
        click.echo(f"{text}; {others} {why}" if others else text, err=True)
        for cells in turns(wanted):
            measuring.in_turn(cells)
    if measuring.failed:
        click.echo(f"{measuring.failed} cells failed; they are tried again next time", err=True)
        raise SystemExit(1)


if __name__ == "__main__":
    main()
