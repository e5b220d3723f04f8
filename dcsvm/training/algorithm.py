"""Algorithm 1 of Hsieh, Si and Dhillon, "A Divide-and-Conquer Solver for Kernel SVMs" (2014).

As printed it is `-l L --clustering adaptive`; by default the clusters are a tree, and of the levels
those run that pay.

Levels from the finest up: solve the clusters of the rows from the solution of the level below; then
the support vectors of the last alone (refine), then all rows (conquer) to the tolerance, checked
with float64 kernel values. For early models alone one level is enough, which may be found first.
"""

from __future__ import annotations

from collections.abc import Callable

from dcsvm import _core
from dcsvm.solving.relaxation import resume_relaxed
from dcsvm.training.run import Run
from dcsvm.training.steps import conquer, divide, extend_gradient, find_early_level, refine

LEVEL = "level "
STEPS: dict[str, Callable[[Run], None]] = {
    "early level": find_early_level,
    "refine": refine,
    "gradient": extend_gradient,
    "conquer": conquer,
}


def steps_of(run: Run) -> list[str]:
    """The names of the steps of a run, in order: of STEPS, or "level 3"."""
    plan, solver = run.plan, run.solver
    if plan.choices:
        return ["early level"]
    if solver.is_near:
        return ["conquer"]
    levels = [f"{LEVEL}{level}" for level in plan.levels]
    if run.options.early and plan.early_level in plan.levels:
        return levels[: plan.levels.index(plan.early_level) + 1]
    before = ["refine", "gradient"] if plan.levels or solver.is_warm else []
    return [*levels, *before, "conquer"]


def resume(run: Run) -> None:
    """Go on from the checkpoint, where that is wanted. Raises CheckpointError."""
    checkpoint = run.control.checkpoint
    if checkpoint is None or not checkpoint.resume:
        return
    checkpoint.load(run.state, run.solver.problem, run.prepared.data.rows.n_samples)
    names = steps_of(run)
    if run.state.steps_done >= len(names):
        raise checkpoint.damaged()
    resume_relaxed(run.solver)
    run.control.progress.resume(names[run.state.steps_done])


def improve(run: Run) -> None:
    """Carry out the steps of a run, from wherever its state is. Raises Stopped."""
    names = steps_of(run)
    for name in names[run.state.steps_done :]:
        if run.control.stop.is_requested:
            raise _core.Stopped
        if run.prepared.work.has_far_rows:
            _core.give_back_memory()  # the system keeps more of the rows instead
        if name.startswith(LEVEL):
            divide(run, int(name.removeprefix(LEVEL)))
        else:
            STEPS[name](run)
        run.report.count_values_of("levels" if "level" in name else name)
        run.state.steps_done += name != names[-1]
        run.save()
