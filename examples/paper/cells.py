"""A cell is one measurement: its settings, and a JSON file with its result once it is measured.

A file is written under a temporary name and renamed, so that it is always complete. A result counts
if its settings equal the current ones. A timeout counts for its limit and shorter ones. A failed
cell is measured again. A record names the commit and describes the machine that it is of.
"""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from pathlib import Path

from paper.provenance import UNKNOWN

EXCEEDED = ("timeout", "memory")  # statuses of a cell that is too large for this machine


@dataclass(frozen=True)
class Cell:
    """One measurement: a module of experiments/ and its settings, which are JSON values."""

    experiment: str
    name: str
    settings: dict

    def path(self, results: Path) -> Path:
        return results / self.experiment / f"{self.name}.json"

    def saved(self, results: Path) -> dict | None:
        """Return the record on file for exactly these settings: `status`, and `result` if "ok".

        The other statuses are timeout, memory (the machine's was not enough) and failed.
        """
        try:
            record = json.loads(self.path(results).read_text())
        except (FileNotFoundError, json.JSONDecodeError):
            return None
        return record if record["settings"] == as_json(self.settings) else None

    def is_done(self, results: Path, timeout: float, commit: str | None = None) -> bool:
        """Return whether the result counts; `commit` is the only one it may be of (None: any)."""
        record = self.saved(results)
        if record is None or commit not in (None, commit_of(record)):
            return False
        if record["status"] == "timeout":
            return record["timeout"] >= timeout
        return record["status"] in ("ok", "memory")

    def save(self, results: Path, record: dict) -> None:
        write(self.path(results), {"settings": as_json(self.settings), **record})


def commit_of(record: dict) -> str:
    return record.get("commit", UNKNOWN)


def as_json(settings: dict) -> dict:
    """Return the settings as a JSON file returns them."""
    return json.loads(json.dumps(settings))


def write(path: Path, content: dict) -> None:
    """Write JSON to a temporary file and rename it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    beside = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        beside.write_text(json.dumps(content, indent=1) + "\n")
        os.replace(beside, path)
    finally:
        beside.unlink(missing_ok=True)


class Results:
    """The saved results of a scale, looked up by cell."""

    def __init__(self, folder: Path):
        self.folder = folder

    def of(self, cell: Cell) -> dict | None:
        """Return the result of a cell; None if it is not measured, failed or is too large."""
        record = cell.saved(self.folder)
        return record["result"] if record and record["status"] == "ok" else None

    def timeout(self, cell: Cell) -> float | None:
        """Return the time limit that a cell exceeded, or None."""
        record = cell.saved(self.folder)
        return record["timeout"] if record and record["status"] == "timeout" else None

    def exceeded(self, cell: Cell) -> bool:
        """Return whether a cell exceeded its time limit or the memory."""
        record = cell.saved(self.folder)
        return bool(record) and record["status"] in EXCEEDED
