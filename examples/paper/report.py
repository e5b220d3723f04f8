"""Write RESULTS.md and its plots from the measured cells, the paper's numbers and findings.md.

    python -m paper.report --scale small --data data --results results --out RESULTS.md

A section is the text of findings.md, which is true of any run, the conclusions that its module
computes from its cells, and its tables and figures. Cells of several commits make no page, unless
--mixed says that they may.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path

import click
from bench import machine

from paper import EXPERIMENTS, problems, provenance
from paper.cells import Cell, Results, commit_of
from paper.fewer import on_fewer_rows
from paper.run import cells_of
from paper.scales import SCALES, Scale
from paper.sections import Page

FINDINGS = Path(__file__).with_name("findings.md")
TITLES = {
    "data_sets": "Data sets",
    "comparison": "All methods, rbf kernel",
    "prediction": "Prediction from a lower level",
    "level_times": "Time per level",
    "grid": "Grids of C and gamma",
    "bound": "The bound of Theorem 1",
    "support_vectors": "Support vectors found early",
    "convergence": "Objective and accuracy against time, rbf kernel",
    "polynomial": "Objective and accuracy against time, polynomial kernel",
    "choice": "C and gamma by five folds",
    "clustering": "Clusterings compared",
    "level_tolerance": "Rough and accurate levels",
}


@dataclass(frozen=True)
class Shown:
    """What the page shows of an experiment: its records of `wanted` cells and of fewer rows."""

    records: list[dict]
    missing: int
    failed: int

    @property
    def commits(self) -> Counter:
        """Count the records of each commit."""
        return Counter(map(commit_of, self.records))


def shown_of(cells: list[Cell], scale: Scale, results: Results) -> Shown:
    everything = {
        one.path(results.folder): one
        for cell in cells
        for one in (cell, *on_fewer_rows(scale, cell, results.exceeded))
    }
    saved = [cell.saved(results.folder) for cell in cells]
    records = [one.saved(results.folder) for one in everything.values()]
    return Shown(
        [record for record in records if record and record["status"] != "failed"],
        sum(record is None for record in saved),
        sum(bool(record) and record["status"] == "failed" for record in saved),
    )


def findings() -> dict[str, str]:
    """Return the paragraphs of findings.md by the experiment in their heading."""
    parts = re.split(r"^## (\w+)\n", FINDINGS.read_text(encoding="utf-8"), flags=re.MULTILINE)
    return {name: text.strip() for name, text in zip(parts[1::2], parts[2::2], strict=True)}


def last_threads(folder: Path) -> int:
    """Return the number of threads of the last measurements."""
    try:
        return json.loads((folder / "machine.json").read_text())["threads"]
    except FileNotFoundError:
        return machine.usable_cores()


def refuse_several_commits(shown: dict[str, Shown]) -> None:
    """Raise ClickException if the records are of more than one commit."""
    if len(set().union(*(one.commits for one in shown.values()))) < 2:
        return
    listed = "; ".join(
        f"{experiment} {of_commits(one)}" for experiment, one in shown.items() if one.records
    )
    raise click.ClickException(
        f"the cells are of several commits ({listed}): measure them again, or give --mixed"
    )


def of_commits(shown: Shown) -> str:
    """Name the commits of an experiment's records, with their numbers of cells if several."""
    if len(shown.commits) == 1:
        return provenance.shown(*shown.commits)
    return ", ".join(f"{provenance.shown(c)} ({n} cells)" for c, n in shown.commits.items())


def head(about: dict, generated: bool, text: str, records: list[dict]) -> str:
    """Make the head: `about` the page, and all commits and machines of the records."""
    lines = ["# The paper's experiments on this machine", text]
    if generated:
        lines.append("**Measured on generated data:** the published files were not there.")
    facts = {key: {value: None} for key, value in about.items()}
    for record in records:
        commit = provenance.shown(commit_of(record))
        for key, value in {"commit": commit, **record.get("machine", {})}.items():
            if key != "load_average":  # it differs between cells
                facts.setdefault(key, {})[value] = None
    listed = [f"- {key.replace('_', ' ')}: {'; '.join(map(fact, v))}" for key, v in facts.items()]
    return "\n\n".join([*lines, "\n".join(listed)])


def fact(value: object) -> str:
    return f"{value:.2f}" if isinstance(value, float) else str(value)


def section(experiment: str, page: Page, shown: Shown, text: str, mixed: bool) -> str:
    """Make a section; with `mixed` it names the commits of its cells."""
    module = import_module(f"paper.sections.{experiment}")
    notes = [
        f"*Cells that are not measured: {shown.missing}.*" if shown.missing else "",
        f"*Cells that failed: {shown.failed}.*" if shown.failed else "",
        f"*Commit {of_commits(shown)}.*" if mixed and shown.records else "",
    ]
    if page.names:
        parts = [*notes, text, module.conclude(page), module.show(page)]
    else:
        parts = [*notes, text, "None of its data sets is there."]
    return "\n\n".join([f"## {TITLES[experiment]}", *filter(None, parts)])


@click.command()
@click.option("--scale", type=click.Choice(SCALES), default="small", show_default=True)
@click.option("--data", type=click.Path(path_type=Path), required=True, help="prepared files")
@click.option("--results", type=click.Path(path_type=Path), required=True, help="folder of cells")
@click.option("--threads", type=int, show_default="those that were measured with")
@click.option("--out", type=click.Path(path_type=Path), required=True, help="RESULTS.md")
@click.option("--plots", type=click.Path(path_type=Path), required=True, help="folder of plots")
@click.option("--mixed", is_flag=True, help="show cells of several commits, and which they are")
def main(scale, data, results, threads, out, plots, mixed) -> None:
    """Write the results page."""
    found, scale = Results(results / scale), SCALES[scale]
    threads = threads or last_threads(found.folder)
    shown = {
        experiment: shown_of(cells_of(experiment, scale, data, threads), scale, found)
        for experiment in EXPERIMENTS
    }
    if not mixed:
        refuse_several_commits(shown)
    texts = findings()
    records = [record for one in shown.values() for record in one.records]
    generated = problems.available((), data) == ["generated"]
    about = {"scale": scale.name, "threads": threads}
    parts = [head(about, generated, texts["introduction"], records)]
    for experiment in EXPERIMENTS:
        wanted = import_module(f"paper.experiments.{experiment}").DATA_SETS
        names = problems.available(wanted, data)
        page = Page(scale, names, threads, found, plots, plots.name)
        text = texts.get(experiment, "")
        parts.append(section(experiment, page, shown[experiment], text, mixed))
    out.write_text("\n\n".join(parts) + "\n", encoding="utf-8")
    click.echo(f"{out}, plots in {plots}", err=True)


if __name__ == "__main__":
    main()
