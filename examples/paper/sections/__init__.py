"""A module per section of RESULTS.md, with a function for each slot of page.md: slot(page) -> text.

A section asks its experiment for cells, so it shows results of the current settings. What the text
of page.md says is true of any run; every number and comparison is a slot. A cell is its result or
its limit, and "not measured" if it has neither.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from types import ModuleType

from paper import problems
from paper.baselines import TITLES
from paper.cells import Cell, Results
from paper.fewer import on_fewer_rows as parts_of
from paper.fewer import pair
from paper.markdown import SHORTEST, number, over, percent, table
from paper.scales import Scale

NOT_MEASURED, BELOW = "not measured", "below"
ON_FEWER_ROWS = (
    "Methods that exceeded their limit, on the largest part of the rows (a quarter, a sixteenth, "
    "...) on which they kept the limit of that part:"
)
FEWER = (
    "method | limit | rows | seconds | accuracy % | model | DC-SVM: seconds | DC-SVM: accuracy % | "
    "seconds over DC-SVM's"
)


@dataclass(frozen=True)
class Page:
    """What slots are made from.

    `names` are the data sets with results of the section's experiment, `plots` is the folder of
    figures, `link` the name of that folder on the page.
    """

    scale: Scale
    names: list[str]
    threads: int
    results: Results
    plots: Path
    link: str

    def of(self, cell: Cell) -> dict | None:
        return self.results.of(cell)

    def result(self, experiment: ModuleType, *what) -> dict | None:
        """Return the result of the cell of these arguments, between scale and threads."""
        return self.of(experiment.cell(self.scale, *what, self.threads))

    def about(self, experiment: ModuleType) -> Page:
        """Return the page for the data sets of another experiment."""
        return replace(self, names=names_with_results(experiment, self.results))

    def seconds(self, cell: Cell) -> str:
        result, limit = self.of(cell), self.results.limit(cell)
        if result:
            return shown_seconds(result)
        if self.results.exceeded(cell):
            return f">{limit:,.0f}" if limit else ">memory"
        record = self.results.record(cell)
        return f"{record['status']}: {record['message']}" if record else NOT_MEASURED

    def image(self, name: str, text: str) -> str:
        return f"![{text}]({self.link}/{name}.png)"

    def path(self, name: str) -> Path:
        return self.plots / f"{name}.png"


def names_with_results(experiment: ModuleType, results: Results) -> list[str]:
    """List the data sets of an experiment, or their substitutes, that have a record."""
    name = experiment.__name__.rpartition(".")[2]
    records = results.table(name).values()
    measured = {record["settings"]["problem"]["data"] for record in records}
    known = [
        one for name in experiment.DATA_SETS for one in (name, *problems.STAND_INS.get(name, ()))
    ]
    return [one for one in (*known, "generated") if one in measured]


def shown_seconds(result: dict) -> str:
    """Format the seconds of a result; say if its method ended before it converged."""
    missed = "" if result.get("converged", True) else " (not converged)"
    return f"{short(result['seconds'])}{missed}"


def short(seconds: float) -> str:
    return number(seconds) if seconds >= SHORTEST else f"<{SHORTEST:g}"


def model_size(result: dict) -> str:
    """Format the number of support vectors, or of an approximate method's features or basis."""
    return f"{result['n_sv']:,} SVs" if "n_sv" in result else f"rank {result['size']:,}"


def title(name: str) -> str:
    return problems.DATA_SETS[name].title


def in_paper(name: str) -> str:
    """Return the paper's data set that a data set is or replaces."""
    return problems.DATA_SETS[name].stands_for or name


def on_fewer_rows(page: Page, cells: list[Cell]) -> str:
    """Make the table of the `cells` that exceeded their limit; empty if none did."""
    lines = []
    for cell in filter(page.results.exceeded, cells):
        both = pair(page.scale, cell, page.results)
        parts = parts_of(page.scale, cell, page.results.exceeded)
        is_open = any(page.results.record(part) is None for part in parts)
        absent = NOT_MEASURED if is_open else "none"
        shown = fewer(*both) if both else [absent, *["-"] * 6]
        lines.append([TITLES[cell.method], page.seconds(cell), *shown])
    return f"{ON_FEWER_ROWS}\n\n{table(FEWER, lines)}" if lines else ""


def fewer(result: dict, ours: dict | None) -> list[str]:
    """Format a result on fewer rows and DC-SVM's beside it."""
    shown = [f"{result['n_rows']:,}", shown_seconds(result), percent(result["accuracy"])]
    shown.append(model_size(result))
    if not ours:
        return [*shown, *[NOT_MEASURED] * 3]
    factor = over(result["seconds"], ours["seconds"])
    return [*shown, shown_seconds(ours), percent(ours["accuracy"]), factor]
