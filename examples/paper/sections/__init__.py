"""A module per section of RESULTS.md:

show(page)       its tables and figures
conclude(page)   sentences on what they show, computed from the same cells; "" without these

A section asks its experiment for cells, so it shows results of the current settings. A cell without
a result is shown as "-", a timeout as its limit. What the text of findings.md says is true of any
run; every number and comparison is a conclusion.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from paper.cells import Cell, Results
from paper.markdown import number
from paper.problems import DATA_SETS
from paper.scales import Scale


@dataclass(frozen=True)
class Page:
    """Input of a section: `names` are the data sets available for its experiment, `plots` is the
    folder of figures, `link` the name of that folder on the page."""

    scale: Scale
    names: list[str]
    threads: int
    results: Results
    plots: Path
    link: str

    def seconds(self, cell: Cell) -> str:
        result, limit = self.results.of(cell), self.results.timeout(cell)
        if result:
            return shown_seconds(result)
        if self.results.exceeded(cell):
            return f">{limit:.0f}" if limit else ">memory"
        return "-"

    def image(self, name: str, text: str) -> str:
        return f"![{text}]({self.link}/{name}.png)"

    def path(self, name: str) -> Path:
        return self.plots / f"{name}.png"


def shown_seconds(result: dict) -> str:
    """Format the seconds of a result; say if its method ended before it converged."""
    missed = "" if result.get("converged", True) else " (not converged)"
    return f"{number(result['seconds'])}{missed}"


def title(name: str) -> str:
    return DATA_SETS[name].title


def in_paper(name: str) -> str:
    """Return the paper's data set that a data set is or replaces."""
    return DATA_SETS[name].stands_for or name
