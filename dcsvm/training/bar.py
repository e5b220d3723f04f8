"""A progress bar for notebooks and terminals."""

from __future__ import annotations

import sys
import time
from typing import Any

from dcsvm.solving.report import Progress

DELAY = 2.0  # seconds before the first bar appears


class BarProgress(Progress):
    """A bar of tqdm.auto for each phase, once training takes over DELAY seconds."""

    def __init__(self) -> None:
        self.start = time.perf_counter()
        self.bar: Any = None  # tqdm bar

    def begin(self, name: str, n_rows: int) -> None:
        from tqdm.auto import tqdm

        self.close()
        left = max(DELAY - (time.perf_counter() - self.start), 0.0)
        self.bar = tqdm(total=n_rows, desc=name, unit="row", leave=False, delay=left)

    def advance(
        self, rows_done: float, violation: float | None = None, n_active: int | None = None
    ) -> None:
        if self.bar is not None:
            self.bar.update(rows_done - self.bar.n)

    def note(self, text: str) -> None:  # noqa: ARG002 (only the bar is shown)
        self.close()

    def close(self) -> None:
        if self.bar is not None:
            self.bar.close()
            self.bar = None


def default_progress() -> Progress:
    """Return a bar if someone can see it: in a notebook or on a terminal."""
    is_notebook = "ipykernel" in sys.modules
    is_terminal = sys.stderr is not None and sys.stderr.isatty()
    return BarProgress() if is_notebook or is_terminal else Progress()
