"""Costs by level and step with rough and with accurate levels."""

from __future__ import annotations

from itertools import chain

from paper.experiments import level_tolerance
from paper.experiments.level_tolerance import TOLERANCES
from paper.markdown import number, paragraphs, table
from paper.sections import NOT_MEASURED, Page, title

MILLION = 1e6
MEASURES = ("training s", "kernel values, millions", "SVs")


def costs(page: Page) -> str:
    """Make a table for each data set, with a column for each measure and tolerance."""
    parts = []
    heading = "".join(f" | {measure}: {t:g}" for measure in MEASURES for t in TOLERANCES)
    absent = [NOT_MEASURED] * len(MEASURES)
    for name in page.names:
        results = [page.result(level_tolerance, name, tolerance) for tolerance in TOLERANCES]
        columns = [steps_of(result) if result else {} for result in results]
        steps = next(filter(None, columns), {})
        lines = [
            [step, *chain(*zip(*(own.get(step, absent) for own in columns), strict=True))]
            for step in steps
        ]
        if steps:
            rows = next(result["n_rows"] for result in results if result)
            parts += [f"**{title(name)}**, {rows:,} rows", table(heading, lines)]
    return paragraphs(parts)


def steps_of(result: dict) -> dict[str, list[str]]:
    """Return the seconds, kernel values and support vectors of each level and step."""
    found = {
        f"{level['n_clusters']} clusters": line(
            level["seconds_training"], level["kernel_evaluations"], level["n_sv"]
        )
        for level in result["levels"]
    }
    for step, seconds in result["steps"].items():
        n_sv = result["support_after"].get(step)
        found[step] = line(seconds, result["evaluations_by_step"][step], n_sv)
    total = line(result["seconds"], result["kernel_evaluations"], result["n_sv"])
    return found | {"all, with clustering": total}


def line(seconds: float, evaluations: int, n_sv: int | None) -> list[str]:
    return [number(seconds), number(evaluations / MILLION), "-" if n_sv is None else f"{n_sv:,}"]
