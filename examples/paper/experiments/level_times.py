"""The table of time per level: clustering and training, on covtype."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path

from dcsvm.kernel.kernels import Kernel
from paper.baselines.dc_svm import fit
from paper.cells import Cell
from paper.experiments import fit_cell, problem
from paper.problems import load
from paper.scales import Scale

DATA_SETS = ("covtype",)


def cells(scale: Scale, names: list[str], threads: int) -> list[Cell]:
    return [
        fit_cell("level_times", name, problem(name, scale.level_rows, 1), "dcsvm", threads)
        for name in names
    ]


def measure(settings: dict, folder: Path) -> dict:
    """Return the reports of the levels, and seconds of refine, gradient and conquer (level 0)."""
    data = load(settings["problem"], folder, as_bytes=True)
    kernel = Kernel(**settings["kernel"])
    fitted = fit(data.X, data.y, settings["C"], kernel, threads=settings["threads"])
    report = fitted.model.report
    ended = {point["step"]: point["seconds"] for point in fitted.history}
    return {
        "n_rows": len(data.y),
        "seconds": fitted.seconds,
        "levels": [asdict(level) for level in report.levels],
        "refine_seconds": report.refine_seconds,
        "gradient_seconds": ended.get("gradient", 0.0) - ended.get("refine", 0.0),
        "conquer_seconds": report.conquer_seconds,
        "n_sv": report.n_sv,
    }
