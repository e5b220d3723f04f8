"""Costs by level and step with rough and with accurate levels."""

from __future__ import annotations

from paper.experiments.level_tolerance import TOLERANCES, cell
from paper.markdown import number, table
from paper.sections import Page, title
from paper.sections.words import compared, joined

MILLION = 1e6
MEASURES = ("training s", "kernel values, millions", "SVs")


def show(page: Page) -> str:
    parts = []
    for name in page.names:
        results = results_of(page, name)
        if any(results.values()):
            rows = next(result["n_rows"] for result in results.values() if result)
            parts.append(f"**{title(name)}**, {rows:,} rows\n\n{costs(results)}")
    return "\n\n".join(parts) or "Not measured."


def results_of(page: Page, name: str) -> dict[float, dict | None]:
    return {t: page.results.of(cell(page.scale, name, t, page.threads)) for t in TOLERANCES}


def costs(results: dict[float, dict | None]) -> str:
    """Make the table; a column for each measure and tolerance."""
    columns = {t: steps_of(result) if result else {} for t, result in results.items()}
    steps = next(list(column) for column in columns.values() if column)
    heading = [f"{measure}: {t:g}" for measure in MEASURES for t in columns]
    lines = [
        [step] + [column.get(step, ("-",) * 3)[i] for i in range(3) for column in columns.values()]
        for step in steps
    ]
    return table(["", *heading], lines)


def steps_of(result: dict) -> dict[str, tuple[str, str, str]]:
    """Return the seconds, kernel values and support vectors of each level and step."""
    found = {
        f"{level['n_clusters']} clusters": (
            number(level["seconds_training"]),
            number(level["kernel_evaluations"] / MILLION),
            f"{level['n_sv']:,}",
        )
        for level in result["levels"]
    }
    for step, seconds in result["steps"].items():
        evaluations = result["evaluations_by_step"][step] / MILLION
        n_sv = result["support_after"].get(step)
        found[step] = (number(seconds), number(evaluations), "-" if n_sv is None else f"{n_sv:,}")
    total = result["kernel_evaluations"] / MILLION
    found["all, with clustering"] = (
        number(result["seconds"]),
        number(total),
        f"{result['n_sv']:,}",
    )
    return found


def conclude(page: Page) -> str:
    """Compare the costs of rough and accurate levels, from the cells shown."""
    found = {name: results_of(page, name) for name in page.names}
    if not found or not all(result for results in found.values() for result in results.values()):
        return ""
    return " ".join(about(name, results) for name, results in found.items())


def about(name: str, results: dict[float, dict]) -> str:
    (rough, ours), (accurate, theirs) = results.items()
    units = {"seconds": (1, "s"), "kernel_evaluations": (MILLION, "million kernel values")}
    phrases = []
    for key, (unit, words) in units.items():
        change = compared(ours[key], theirs[key], "more", "less")
        share = 100 * abs(ours[key] / theirs[key] - 1)
        phrases.append(
            f"{number(ours[key] / unit)} {words} instead of {number(theirs[key] / unit)} "
            f"({'no change' if change == 'equal' else f'{share:.0f} % {change}'})"
        )
    return (
        f"On {title(name)} training takes {joined(phrases)} with a tolerance of {rough:g} instead "
        f"of {accurate:g} for the levels; the solutions have {ours['n_sv']:,} and "
        f"{theirs['n_sv']:,} support vectors."
    )
