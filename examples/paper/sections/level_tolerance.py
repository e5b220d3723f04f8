"""Costs by level and step with rough and with accurate levels."""

from __future__ import annotations

from paper.experiments.level_tolerance import TOLERANCES, cell
from paper.markdown import number, paragraphs, table
from paper.sections import NOT_MEASURED, Page, title

MILLION = 1e6
MEASURES = ("training s", "kernel values, millions", "SVs")


def costs(page: Page) -> str:
    """Make a table for each data set, with a column for each measure and tolerance."""
    parts = []
    for name in page.names:
        results = {t: page.of(cell(page.scale, name, t, page.threads)) for t in TOLERANCES}
        columns = {t: steps_of(result) if result else {} for t, result in results.items()}
        steps = next((list(column) for column in columns.values() if column), [])
        if not steps:
            continue
        absent = (NOT_MEASURED,) * len(MEASURES)
        lines = [
            [
                step,
                *(c.get(step, absent)[i] for i in range(len(MEASURES)) for c in columns.values()),
            ]
            for step in steps
        ]
        rows = next(result["n_rows"] for result in results.values() if result)
        heading = [f"{measure}: {t:g}" for measure in MEASURES for t in columns]
        parts += [f"**{title(name)}**, {rows:,} rows", table(["", *heading], lines)]
    return paragraphs(parts)


def steps_of(result: dict) -> dict[str, tuple[str, str, str]]:
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


def line(seconds: float, evaluations: int, n_sv: int | None) -> tuple[str, str, str]:
    shown = "-" if n_sv is None else f"{n_sv:,}"
    return number(seconds), number(evaluations / MILLION), shown
