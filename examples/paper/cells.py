"""A cell is one measurement: its settings, and its record in the results of its experiment.

results/SCALE/EXPERIMENT.json has a line for each measured cell. The file is written under a
temporary name and renamed, so that it is always complete. A record counts if its settings equal the
current ones. It has:

    status     ok, timeout, memory (the machine's was not enough), skipped (with a message: the data
               cannot be used) or failed (with a message)
    results    of an "ok": what was measured, each time; the one of median seconds is the result
    limit      seconds of training that the cell had
    run        the commit, the day and the machine
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import click

EXCEEDED = ("timeout", "memory")  # statuses of a cell that is too large for this machine


@dataclass(frozen=True)
class Cell:
    """One measurement: a module of experiments/ and its settings, which are JSON values."""

    experiment: str
    name: str
    settings: dict

    @property
    def method(self) -> str | None:
        return self.settings.get("method")


class Results:
    """The records of a folder, by cell."""

    def __init__(self, folder: Path):
        self.folder = folder
        self._tables: dict[str, dict[str, dict]] = {}

    def table(self, experiment: str) -> dict[str, dict]:
        """Return the records of an experiment by the names of cells."""
        if experiment not in self._tables:
            self._tables[experiment] = read(self.path(experiment))
        return self._tables[experiment]

    def path(self, experiment: str) -> Path:
        return self.folder / f"{experiment}.json"

    def record(self, cell: Cell) -> dict | None:
        """Return the record of a cell for exactly its settings."""
        record = self.table(cell.experiment).get(cell.name)
        return record if record and record["settings"] == as_json(cell.settings) else None

    def status(self, cell: Cell) -> str | None:
        record = self.record(cell)
        return record and record["status"]

    def of(self, cell: Cell) -> dict | None:
        """Return the result of a cell; None if it has none."""
        record = self.record(cell)
        return median(record["results"]) if record and record["status"] == "ok" else None

    def limit(self, cell: Cell) -> float | None:
        """Return the seconds that a cell exceeded, or None."""
        record = self.record(cell)
        return record["limit"] if record and record["status"] == "timeout" else None

    def exceeded(self, cell: Cell) -> bool:
        """Return whether a cell exceeded its limit or the memory."""
        return self.status(cell) in EXCEEDED

    @contextlib.contextmanager
    def locked(self) -> Iterator[None]:
        """Keep other processes from measuring into this folder; ClickException if one does."""
        self.folder.mkdir(parents=True, exist_ok=True)
        with open(self.folder / ".lock", "w") as file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise click.ClickException(f"another run measures into {self.folder}") from None
            yield

    def save(self, cell: Cell, record: dict) -> None:
        table = self.table(cell.experiment)
        table[cell.name] = {"settings": as_json(cell.settings), **record}
        write(self.path(cell.experiment), table)


def median(results: list[dict]) -> dict:
    """Return the result of median seconds; of two, the faster one."""
    ordered = sorted(results, key=lambda result: result["seconds"])
    return ordered[(len(ordered) - 1) // 2]


def as_json(settings: dict) -> dict:
    """Return the settings as a JSON file returns them."""
    return json.loads(json.dumps(settings))


def read(path: Path) -> dict[str, dict]:
    """Read the records of a file; none if there is no file. ClickException if it is damaged."""
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
        runs = content["runs"]
        return {n: {**cell, "run": runs[cell["run"]]} for n, cell in content["cells"].items()}
    except FileNotFoundError:
        return {}
    except (ValueError, KeyError, IndexError, TypeError) as error:
        raise click.ClickException(f"{path} is damaged, restore or delete it: {error}") from error


def write(path: Path, table: dict[str, dict]) -> None:
    """Write records, one per line and each run once; rename a temporary file."""
    runs: list[dict] = []
    for record in table.values():
        if record["run"] not in runs:
            runs.append(record["run"])
    cells = {n: {**record, "run": runs.index(record["run"])} for n, record in table.items()}
    lines = [f"{json.dumps(name)}: {json.dumps(cell)}" for name, cell in cells.items()]
    text = '{"runs": [\n%s\n],\n"cells": {\n%s\n}}\n'
    path.parent.mkdir(parents=True, exist_ok=True)
    beside = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        listed = ",\n".join(map(json.dumps, runs)), ",\n".join(lines)
        beside.write_text(text % listed, encoding="utf-8")
        os.replace(beside, path)
    finally:
        beside.unlink(missing_ok=True)
