"""Measure the missing cells of experiments, each in a separate process.

    python -m paper.run comparison grid --scale small --data data --results results

Stop it at any time and start it again: finished cells are kept.
"""

from __future__ import annotations

import json
import sys
from importlib import import_module
from pathlib import Path

import click
from bench import machine, process
from tqdm import tqdm

from paper import EXPERIMENTS, problems
from paper.cells import Cell, write
from paper.scales import SCALES, Scale


def cells_of(experiment: str, scale: Scale, data: Path, threads: int) -> list[Cell]:
    """List all cells of an experiment for the available data sets."""
    module = import_module(f"paper.experiments.{experiment}")
    names = problems.available(module.DATA_SETS, data)
    return module.cells(scale, names, threads)


def run_cell(cell: Cell, data: Path, timeout: float) -> dict:
    """Measure a cell; return the record to save. `status` is ok, timeout or failed."""
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
        return {"status": "failed", "message": lines[-1], **record}
    return {"status": "ok", "result": json.loads(finished.stdout.splitlines()[-1]), **record}


@click.command()
@click.argument("experiments", nargs=-1, type=click.Choice(EXPERIMENTS))
@click.option("--scale", type=click.Choice(SCALES), default="small", show_default=True)
@click.option("--data", type=click.Path(path_type=Path), required=True, help="prepared files")
@click.option("--results", type=click.Path(path_type=Path), required=True, help="folder of cells")
@click.option("--threads", type=int, default=machine.usable_cores(), show_default="usable cores")
@click.option("--timeout", type=float, help="seconds for a cell  [default: the scale's]")
@click.option("--only", default="", help="only cells with this in their name")
def main(experiments, scale, data, results, threads, timeout, only) -> None:
    """Measure the missing cells of EXPERIMENTS (default: all)."""
    scale = SCALES[scale]
    timeout = timeout or scale.timeout
    folder = results / scale.name
    wanted = [
        cell
        for experiment in experiments or EXPERIMENTS
        for cell in cells_of(experiment, scale, data, threads)
        if only in f"{cell.experiment}/{cell.name}"
    ]
    if problems.available((), data) == ["generated"]:
        click.echo(f"no prepared data in {data}: measuring on generated data", err=True)
    missing = [cell for cell in wanted if not cell.is_done(folder, timeout)]
    click.echo(f"{len(wanted) - len(missing)} of {len(wanted)} cells are measured", err=True)
    if missing:
        about = machine.describe(str(Path(sys.executable).with_name("dcsvm-train")))
        write(folder / "machine.json", {**about, "threads": threads})
    failed = 0
    bar = tqdm(missing, unit="cell", disable=not sys.stderr.isatty())
    for number, cell in enumerate(bar, start=1):
        label = f"{cell.experiment}/{cell.name}"
        bar.set_description(label)
        record = run_cell(cell, data, timeout)
        cell.save(folder, record)
        failed += record["status"] == "failed"
        outcome = record.get("message", record["status"])
        if bar.disable:
            click.echo(f"{number}/{len(missing)} {label}: {outcome}", err=True)
        elif record["status"] == "failed":
            bar.write(f"{label}: {outcome}", file=sys.stderr)
    if failed:
        click.echo(f"{failed} cells failed; they are tried again next time", err=True)


if __name__ == "__main__":
    main()
