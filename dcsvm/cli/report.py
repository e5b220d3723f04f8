"""Output of the commands: progress on stderr, reports as JSON."""

import json
import resource
import sys
from collections.abc import Callable
from typing import Any

from dcsvm.cli.files import print_status
from dcsvm.data.files import write_beside
from dcsvm.solving.report import Progress


class TerminalProgress(Progress):
    """Progress on stderr: a line per phase, and a bar on a terminal; silent if `quiet`."""

    def __init__(self, quiet: bool):
        self.quiet = quiet
        self.bar: Any = None  # tqdm bar
        self.step = ""  # of a search
        self.caveats: list[str] = []  # about the model
        # makes the warning of a stopped run from the state of its model
        self.stop_sentence: Callable[[str], str] | None = None

    def begin(self, name: str, n_rows: int, unit: str = "row") -> None:
        if self.quiet or not sys.stderr.isatty():
            return
        from tqdm import tqdm

        self.bar = tqdm(total=n_rows, desc=name, unit=unit, leave=False, file=sys.stderr)

    def advance(
        self, rows_done: float, violation: float | None = None, n_active: int | None = None
    ) -> None:
        if self.bar is None:
            return
        if violation is not None:
            self.bar.set_postfix_str(f"violation {violation:.2g}, active {n_active}", refresh=False)
        self.bar.update(rows_done - self.bar.n)

    def trial(self, step: str, n_trials: int, best: str) -> None:
        if step != self.step:
            self.step = step
            self.begin(step, 8, unit="trial")
        self.advance(n_trials)
        if self.bar is not None:
            self.bar.set_postfix_str(best)

    def clear(self) -> None:
        """Hide the bar until its next update, so that a line can be printed."""
        if self.bar is not None:
            self.bar.clear()

    def close(self) -> None:
        if self.bar is not None:
            self.bar.close()
            self.bar = None

    def note(self, text: str) -> None:
        """End the bar, and print a line unless quiet."""
        self.close()
        if not self.quiet:
            print_status(text)

    def warn(self, sentence: str) -> None:
        self.close()
        print_status(f"warning: {sentence}")

    def caveat(self, report: Any, sentence: str) -> None:
        if report.stopped and self.stop_sentence is not None:
            sentence = self.stop_sentence(report.state)
        self.caveats.append(sentence)

    def finish(self) -> None:
        """Print the warnings about the model, after the results."""
        for sentence in self.caveats:
            self.warn(sentence)


def peak_rss_mb() -> float:
    """Return the peak memory of this program in MB; getrusage may include its parent's."""
    try:
        with open("/proc/self/status", encoding="ascii") as file:
            peak = next(int(line.split()[1]) for line in file if line.startswith("VmHWM:"))
    except (OSError, StopIteration):
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return round(peak * (1 if sys.platform == "darwin" else 1024) / 1e6, 1)


def write_report(path: str, values: dict[str, Any]) -> None:
    """Write values and the peak memory as one JSON object."""
    values["peak_rss_mb"] = peak_rss_mb()
    write_beside(path, [json.dumps(values, indent=1).encode(), b"\n"])
