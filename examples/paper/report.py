"""Write RESULTS.md and its figures from the measured cells, the paper's numbers and page.md.

    python -m paper.report --scale full --results results --out RESULTS.md --plots plots

page.md is the page with slots: {{section.slot}} is what this function of the section makes from the
results, and {{section}} says when, at which commit and where its cells were measured, and what is
missing. A slot without results is left out.
"""

from __future__ import annotations

import re
from collections import Counter
from importlib import import_module
from pathlib import Path

import click
from bench import machine

from paper import EXPERIMENTS, provenance
from paper.cells import Cell, Results
from paper.fewer import on_fewer_rows
from paper.markdown import counted, joined
from paper.problems import STAND_INS
from paper.run import is_repeated
from paper.scales import SCALES, Scale
from paper.sections import Page, names_with_results, title

TEMPLATE = Path(__file__).with_name("page.md")
SECTIONS = {"polynomial": "convergence"}  # experiments whose slots are in another module
NONE = "Not measured."


def page_of(scale: Scale, results: Results, plots: Path) -> Page:
    """Return the page of a folder of results, without the names of a section."""
    records = [record for e in EXPERIMENTS for record in results.table(e).values()]
    threads = Counter(record["settings"]["threads"] for record in records)
    del threads[1]  # some cells have one thread in any run
    usual = threads.most_common(1)[0][0] if threads else 1 if records else machine.usable_cores()
    return Page(scale, [], usual, results, plots, plots.name)


def cells_of(experiment: str, page: Page) -> list[Cell]:
    """List the cells of an experiment on the page, with those on fewer rows."""
    module = import_module(f"paper.experiments.{experiment}")
    names = names_with_results(module, page.results)
    return [
        one
        for cell in module.cells(page.scale, names, page.threads)
        for one in (cell, *on_fewer_rows(page.scale, cell, page.results.exceeded))
    ]


def about(experiment: str, page: Page) -> str:
    """Say which runs the cells of an experiment are of, and how many are missing or failed."""
    cells = cells_of(experiment, page)
    of_run: dict[str, list[str]] = {}
    for cell in cells:
        if record := page.results.record(cell):
            name = title(cell.settings["problem"]["data"])
            names = of_run.setdefault(provenance.line_of(record["run"]), [])
            names += [name] * (name not in names)
    if not of_run:
        return NONE
    listed = "; ".join(
        f"{joined(names)}: {run}" if len(of_run) > 1 else run for run, names in of_run.items()
    )
    records = [(cell, page.results.record(cell)) for cell in cells]
    counts = {
        "Not measured": sum(record is None for _, record in records),
        "Failed": sum(page.results.status(cell) == "failed" for cell in cells),
        "Not repeated yet": sum(
            not is_repeated(cell, page.scale, record["results"])
            for cell, record in records
            if record and record["status"] == "ok"
        ),
    }
    parts = [f"Measured {listed}."]
    parts += [f"{what}: {counted(count, 'cell')}." for what, count in counts.items() if count]
    module = import_module(f"paper.experiments.{experiment}")
    known = names_with_results(module, page.results)
    absent = [
        name
        for name in module.DATA_SETS
        if "generated" not in known and not {name, *STAND_INS.get(name, ())} & set(known)
    ]
    parts += [f"Without any result: {joined(map(title, absent))}."] * bool(absent)
    return f"*{' '.join(parts)}*"


def slot(name: str, page: Page) -> str:
    """Return the text of a slot."""
    if name == "head":
        return head(page)
    section, _, function = name.partition(".")
    if not function:
        return about(section, page)
    module = import_module(f"paper.sections.{SECTIONS.get(section, section)}")
    if section in EXPERIMENTS:
        page = page.about(import_module(f"paper.experiments.{section}"))
    return getattr(module, function)(page)


def head(page: Page) -> str:
    """List the scale, the threads, and each machine of the results."""
    records = [record for e in EXPERIMENTS for record in page.results.table(e).values()]
    facts: dict[str, dict[str, None]] = {
        "scale": {page.scale.name: None}, "threads": {str(page.threads): None}
    }  # fmt: skip
    for record in records:
        for key, value in record["run"]["machine"].items():
            facts.setdefault(key.replace("_", " "), {})[str(value)] = None
    lines = [f"- {key}: {'; '.join(values)}" for key, values in facts.items()]
    generated = any(r["settings"]["problem"]["data"] == "generated" for r in records)
    note = "**Measured on generated data:** the published files were not there.\n\n" * generated
    return note + "\n".join(lines)


def written(template: str, page: Page) -> str:
    """Fill the slots of a template; paragraphs that are empty then are left out."""
    text = re.sub(r"\{\{([\w.]+)\}\}", lambda match: slot(match[1], page), template)
    return re.sub(r"\n{3,}", "\n\n", text).strip() + "\n"


@click.command()
@click.option("--scale", type=click.Choice(SCALES), default="small", show_default=True)
@click.option("--results", type=click.Path(path_type=Path), required=True, help="folder of results")
@click.option("--out", type=click.Path(path_type=Path), required=True, help="RESULTS.md")
@click.option("--plots", type=click.Path(path_type=Path), required=True, help="folder of plots")
def main(scale, results, out, plots) -> None:
    """Write the results page."""
    page = page_of(SCALES[scale], Results(results / scale), plots)
    text = written(TEMPLATE.read_text(encoding="utf-8"), page)
    out.write_text(text, encoding="utf-8")
    click.echo(f"{out}, plots in {plots}", err=True)


if __name__ == "__main__":
    main()
