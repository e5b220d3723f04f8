"""What it saves to solve the levels and the refinement only roughly.

Training with the default tolerance of levels that only provide an initial solution, and with that
of the solution at all levels, as in the paper. The early level, whose model predicts, always has
the tolerance of the solution.
"""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from unittest.mock import patch

from dcsvm.kernel.kernels import Kernel
from dcsvm.training import run as steps
from paper.baselines.dc_svm import fit
from paper.cells import Cell
from paper.experiments import fit_cell, problem
from paper.problems import load
from paper.scales import Scale

DATA_SETS = ("covtype", "census")
TOLERANCES = (steps.LEVEL_TOLERANCE, 1e-3)


def cells(scale: Scale, names: list[str], threads: int) -> list[Cell]:
    return [cell(scale, name, one, threads) for name in names for one in TOLERANCES]


def cell(scale: Scale, name: str, tolerance: float, threads: int) -> Cell:
    chosen = problem(name, scale.level_tolerance_rows, 1)
    label = f"{name}-{tolerance:g}"
    return fit_cell("level_tolerance", label, chosen, "dcsvm", threads, level_tolerance=tolerance)


def measure(settings: dict, folder: Path) -> dict:
    """Return the reports of the levels, and the costs of the later steps and in all."""
    data = load(settings["problem"], folder, as_bytes=True)
    problem = data.X, data.y, settings["C"], Kernel(**settings["kernel"])
    with patch.object(steps, "LEVEL_TOLERANCE", settings["level_tolerance"]):
        fitted = fit(*problem, threads=settings["threads"])
    report = fitted.model.report
    return {
        "n_rows": len(data.y),
        "seconds": fitted.seconds,
        "kernel_evaluations": report.kernel_evaluations,
        "n_sv": report.n_sv,
        "levels": [asdict(level) for level in report.levels],
        "steps": {
            "refine": report.refine_seconds,
            "conquer": report.conquer_seconds,
        },
        "evaluations_by_step": report.evaluations_by_phase,
        "support_after": {point["step"]: point["n_sv"] for point in fitted.history},
    }
