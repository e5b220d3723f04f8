"""The run that a measurement is of: the commit, the day and the machine."""

from __future__ import annotations

import datetime
import hashlib
import subprocess
import sys
from pathlib import Path

from bench import machine

import dcsvm

ROOT = Path(__file__).resolve().parents[2]
# What a measurement depends on: not the order of cells, nor the sections of the page.
MEASURED = (
    "dcsvm", "csrc", "examples/made", "examples/paper",
    *(f":!examples/paper/{name}" for name in (
        "__init__.py", "cells.py", "fetch.py", "fewer.py", "figures.py", "markdown.py", "page.md",
        "provenance.py", "published.py", "published_numbers", "report.py", "run.py", "sections",
    )),
)  # fmt: skip
CHANGED, UNKNOWN = "-dirty", "unknown"
SHOWN_DIGITS = 10


def run_of_now() -> dict:
    """Describe a run of today: its commit, its day (UTC) and the machine."""
    about = machine.describe(str(Path(sys.executable).with_name("dcsvm-train")))
    del about["load_average"]  # it differs between cells
    today = datetime.datetime.now(datetime.timezone.utc).date().isoformat()
    return {"commit": commit(), "date": today, "machine": about}


def commit(root: Path = ROOT) -> str:
    """Return the last commit that changed what is measured.

    If that differs now, "-dirty" and a digest of the difference follow.
    It is "unknown" outside of a checkout, and if the imported dcsvm is not the checkout's.
    """
    if Path(dcsvm.__file__).resolve().parents[1] != ROOT:
        return UNKNOWN
    try:
        if Path(git(root, "rev-parse", "--show-toplevel")).resolve() != root.resolve():
            return UNKNOWN
        head = git(root, "log", "-1", "--format=%H", "--", *MEASURED)
        changes = git(root, "status", "--porcelain", "--untracked-files=no", "--", *MEASURED)
    except (OSError, subprocess.CalledProcessError):
        return UNKNOWN
    if not changes:
        return head
    digest = hashlib.sha256(git(root, "diff", "HEAD", "--", *MEASURED).encode()).hexdigest()
    return f"{head}{CHANGED}-{digest[:SHOWN_DIGITS]}"


def git(root: Path, *arguments: str) -> str:
    command = ["git", "-C", str(root), *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()


def shown(commit: str) -> str:
    """Return a commit as the page names it: its first digits, and whether files had changes."""
    head, changed, _ = commit.partition(CHANGED)
    return head[:SHOWN_DIGITS] + " with changes" * bool(changed)


def line_of(run: dict) -> str:
    """Describe a run in a few words: day, commit and machine."""
    about = run["machine"]
    cores = about["usable_cores"]
    processor = f"{about['processor']}, {cores} core{'s' * (cores != 1)}"
    return f"{run['date']}, commit {shown(run['commit'])}, {processor}"
