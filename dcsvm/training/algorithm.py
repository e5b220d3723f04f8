"""Algorithm 1 of Hsieh, Si and Dhillon, "A Divide-and-Conquer Solver for Kernel SVMs" (2014).

Levels run from the finest to the coarsest: each solves its clusters from the solution of the level
below. Then the support vectors are solved alone (refine), and all rows to the tolerance (conquer),
which is checked with float64 kernel values. Early models need one level only; it may be searched.

`-l L --clustering adaptive` is Algorithm 1 as printed. By default the clusters form a tree, and
levels that do not save time are skipped.
"""

from collections.abc import Callable

from dcsvm import _core
from dcsvm.solving.conquer import conquer
from dcsvm.solving.relaxation import resume_relaxed
from dcsvm.solving.state import DONE
from dcsvm.training.run import Run
from dcsvm.training.steps import divide, find_early_level, refine

LEVEL = "level "
STEPS: dict[str, Callable[[Run], None]] = {
    "early level": find_early_level,
    "refine": refine,
    "gradient": lambda run: run.solver.extend_gradient(),
    "conquer": lambda run: conquer(run.solver),
}


def steps_of(run: Run) -> list[str]:
    """Return the names of a run's steps, in order: keys of STEPS, or "level 3"."""
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
    """Resume from the checkpoint, if that was asked for. Raises CheckpointError."""
    checkpoint = run.control.checkpoint
    if checkpoint is None or not checkpoint.resume:
        return
    run.load(checkpoint)
    state, names = run.state, steps_of(run)
    state.next_step = state.next_step or names[0]
    if state.next_step == DONE and run.options.certify:
        state.next_step = names[-1]
    if state.next_step not in (DONE, *names):
        raise checkpoint.damaged()
    resume_relaxed(run.solver)
    run.control.progress.resume(state.next_step if state.next_step in names else names[-1])


def improve(run: Run) -> None:
    """Carry out the remaining steps of a run. Raises Stopped."""
    state, names = run.state, steps_of(run)
    for name, next_name in zip(names, [*names[1:], DONE], strict=True):
        if state.next_step not in ("", name):
            continue
        run.control.stop.check()
        if run.prepared.engine.is_out_of_core:
            _core.give_back_memory()  # leaves the page cache more memory for the rows
        if name.startswith(LEVEL):
            divide(run, int(name.removeprefix(LEVEL)))
        else:
            STEPS[name](run)
        state.costs.count_values_of("levels" if "level" in name else name)
        # without an exact model the last step stays open: its level's solver estimates the loss
        state.next_step = name if next_name == DONE and run.options.early else next_name
        run.save()
