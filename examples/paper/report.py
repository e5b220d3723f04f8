"""Write RESULTS.md and its plots from the measured cells, the paper's numbers and findings.md.

python -m paper.report --scale small --data data --results results --out RESULTS.md
"""

from __future__ import annotations

import json
import re
from importlib import import_module
from pathlib import Path

import click
from bench import machine

from paper import EXPERIMENTS, problems
from paper.cells import Results
from paper.run import cells_of
from paper.scales import SCALES, Scale
from paper.sections import Page

TEXT_SCALE = "full"  # scale of the run that findings.md describes
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


def findings() -> dict[str, str]:
    """Return the paragraphs of findings.md by the experiment in their heading."""
    parts = re.split(r"^## (\w+)\n", FINDINGS.read_text(encoding="utf-8"), flags=re.MULTILINE)
    return {name: text.strip() for name, text in zip(parts[1::2], parts[2::2], strict=True)}


def about(results: Path) -> dict:
    """Return the description of the machine and the number of threads of the measurements."""
    try:
        return json.loads((results / "machine.json").read_text())
    except FileNotFoundError:
        return {}


def head(scale: Scale, results: Path, generated: bool, text: str) -> str:
    lines = ["# The paper's experiments on this machine", text]
    if generated:
        lines.append("**Measured on generated data:** the published files were not there.")
    shown = [f"- {key.replace('_', ' ')}: {value}" for key, value in about(results).items()]
    return "\n\n".join([*lines, "\n".join([f"- scale: {scale.name}", *shown])])


def section(experiment: str, page: Page, missing: int, paragraph: str) -> str:
    module = import_module(f"paper.sections.{experiment}")
    note = [f"*{missing} cells are not measured.*"] if missing else []
    if page.scale.name != TEXT_SCALE:
        note.append(f"*The conclusions are of a run at scale {TEXT_SCALE}, not of these cells.*")
    shown = module.show(page) if page.names else "None of its data sets is there."
    return "\n\n".join([f"## {TITLES[experiment]}", *note, paragraph, shown])


@click.command()
@click.option("--scale", type=click.Choice(SCALES), default="small", show_default=True)
@click.option("--data", type=click.Path(path_type=Path), required=True, help="prepared files")
@click.option("--results", type=click.Path(path_type=Path), required=True, help="folder of cells")
@click.option("--threads", type=int, show_default="those that were measured with")
@click.option("--out", type=click.Path(path_type=Path), required=True, help="RESULTS.md")
@click.option("--plots", type=click.Path(path_type=Path), required=True, help="folder of plots")
def main(scale, data, results, threads, out, plots) -> None:
    """Write the results page."""
    folder, scale = results / scale, SCALES[scale]
    threads = threads or about(folder).get("threads", machine.usable_cores())
    texts = findings()
    generated = problems.available((), data) == ["generated"]
    parts = [head(scale, folder, generated, texts["introduction"])]
    for experiment in EXPERIMENTS:
        cells = cells_of(experiment, scale, data, threads)
        missing = sum(not cell.saved(folder) for cell in cells)
        wanted = import_module(f"paper.experiments.{experiment}").DATA_SETS
        names = problems.available(wanted, data)
        page = Page(scale, names, threads, Results(folder), plots, plots.name)
        parts.append(section(experiment, page, missing, texts[experiment]))
    out.write_text("\n\n".join(parts) + "\n", encoding="utf-8")
    click.echo(f"{out}, plots in {plots}", err=True)


if __name__ == "__main__":
    main()
