"""Measure the missing cells of experiments, each in a separate process.

    python -m paper.run comparison grid --scale small --data data --results results

Stop it at any time and start it again: finished cells of the same commit are kept. What exceeds its
limit is measured on ever fewer rows until it does not, with DC-SVM on the same rows beside it.
"""

from __future__ import annotations

import json
import signal
import sys
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path

import click
from bench import machine, process
from tqdm import tqdm

from paper import EXPERIMENTS, problems, provenance
from paper.cells import Cell, Results, write
from paper.fewer import on_fewer_rows
from paper.scales import SCALES, Scale


def cells_of(experiment: str, scale: Scale, data: Path, threads: int) -> list[Cell]:
    """List all cells of an experiment for the available data sets."""
    module = import_module(f"paper.experiments.{experiment}")
    names = problems.available(module.DATA_SETS, data)
    return module.cells(scale, names, threads)


def run_cell(cell: Cell, data: Path, timeout: float) -> dict:
    """Measure a cell; return the record to save. `status` is ok, timeout, memory or failed."""
    command = [sys.executable, "-m", "paper.measure", cell.experiment, data.resolve()]
    finished = process.run([*command, json.dumps(cell.settings)], timeout, cell.settings["threads"])
    record = {
        "timeout": timeout,
        "wall_seconds": finished.wall,
        "processor_seconds": finished.processor,
        "peak_mb": finished.peak_mb,
    }
    if finished.timed_out:
        return {"status": "timeout", **record}
    if finished.code != 0:
        lines = finished.stderr.strip().splitlines() or [f"exit status {finished.code}"]
        no_memory = finished.code == -signal.SIGKILL or "MemoryError" in lines[-1]
        status = "memory" if no_memory else "failed"
        return {"status": status, "message": lines[-1], **record}
    return {"status": "ok", "result": json.loads(finished.stdout.splitlines()[-1]), **record}


@dataclass
class Measuring:
    """Measures cells that are missing; `commit` is the only one that they may be of (None: any).

    `origin` is saved with each cell: its commit and machine.
    """

    folder: Path
    data: Path
    timeout: float
    commit: str | None
    origin: dict
    bar: tqdm
    count: int = 0
    failed: int = 0

    def is_missing(self, cell: Cell) -> bool:
        return not cell.is_done(self.folder, self.timeout, self.commit)

    def measure(self, cell: Cell) -> None:
        label = f"{cell.experiment}/{cell.name}"
        self.bar.set_description(label)
        record = run_cell(cell, self.data, self.timeout)
        cell.save(self.folder, {**record, **self.origin})
        self.count += 1
        self.bar.update()
        outcome = record.get("message", record["status"])
        if self.bar.disable:
            click.echo(f"{self.count}/{self.bar.total} {label}: {outcome}", err=True)
        elif "message" in record:
            self.bar.write(f"{label}: {outcome}", file=sys.stderr)
        self.failed += record["status"] == "failed"

    def with_fewer_rows(self, scale: Scale, cell: Cell) -> None:
        """Measure a cell if it is missing, and what is missing on fewer rows in its place."""
        if self.is_missing(cell):
            self.measure(cell)
        for follower in on_fewer_rows(scale, cell, Results(self.folder).exceeded):
            if self.is_missing(follower):
                self.bar.total += 1
                self.measure(follower)


def progress(wanted: list[Cell], missing: list[Cell], folder: Path) -> str:
    """Say how many cells are measured, and how many have a result that does not count."""
    text = f"{len(wanted) - len(missing)} of {len(wanted)} cells are measured"
    others = sum(cell.saved(folder) is not None for cell in missing)
    why = "of another commit, failed or with a shorter limit"
    return f"{text}; {others} {why} are measured again" if others else text


@click.command()
@click.argument("experiments", nargs=-1, type=click.Choice(EXPERIMENTS))
@click.option("--scale", type=click.Choice(SCALES), default="small", show_default=True)
@click.option("--data", type=click.Path(path_type=Path), required=True, help="prepared files")
@click.option("--results", type=click.Path(path_type=Path), required=True, help="folder of cells")
@click.option("--threads", type=int, default=machine.usable_cores(), show_default="usable cores")
@click.option("--timeout", type=float, help="seconds for a cell  [default: the scale's]")
@click.option("--only", default="", help="only cells with this in their name")
@click.option("--keep", is_flag=True, help="keep cells that were measured at another commit")
def main(experiments, scale, data, results, threads, timeout, only, keep) -> None:
    """Measure the missing cells of EXPERIMENTS (default: all)."""
    scale = SCALES[scale]
    folder = results / scale.name
    wanted = [
        cell
        for experiment in experiments or EXPERIMENTS
        for cell in cells_of(experiment, scale, data, threads)
        if only in f"{cell.experiment}/{cell.name}"
    ]
    if problems.available((), data) == ["generated"]:
        click.echo(f"no prepared data in {data}: measuring on generated data", err=True)
    commit = provenance.commit()
    about = machine.describe(str(Path(sys.executable).with_name("dcsvm-train")))
    with tqdm(total=0, unit="cell", disable=not sys.stderr.isatty()) as bar:
        measuring = Measuring(
            folder,
            data,
            timeout or scale.timeout,
            None if keep else commit,
            {"commit": commit, "machine": about},
            bar,
        )
        missing = [cell for cell in wanted if measuring.is_missing(cell)]
        bar.total = len(missing)
        click.echo(progress(wanted, missing, folder), err=True)
        if missing:
            write(folder / "machine.json", {**about, "threads": threads})
        for cell in wanted:
            measuring.with_fewer_rows(scale, cell)
    if measuring.failed:
        click.echo(f"{measuring.failed} cells failed; they are tried again next time", err=True)


if __name__ == "__main__":
    main()
