"""Make the checkpoints that fuzzing begins with, in corpus/checkpoint: `make fuzz-checkpoints`.

They fit the run of `sound.small_run`: before the first step inside a solve, inside a level, and
inside a check after a certificate.
"""

import json
from pathlib import Path

import numpy as np
from sound import small_run

from dcsvm import _core
from dcsvm.training.certificate import Certificate, CheckState
from dcsvm.training.report import EarlyChoice, LevelReport

FOLDER = Path(__file__).with_name("corpus") / "checkpoint"


def begun(state):
    state.solve = _core.SolveState(np.array([2, 3, 1]))


def level(state):
    state.next_step = "level 1"
    state.level = {"alpha": np.zeros(8)}
    state.sample = np.array([0, 1], np.int32)
    state.early_choice = EarlyChoice(
        level=1, finest=2, coarsest=1, loss=0.1, standard_error=0.01, n_rows=5,
        metric="error_rate", on_test_rows=False,
    )  # fmt: skip
    state.levels = [
        LevelReport(
            level=2, n_clusters=4, largest_cluster=3, seconds_clustering=0.1,
            seconds_training=0.2, n_sv=5, objective=-1.0, kernel_evaluations=7, pairs_skipped=0,
        )
    ]  # fmt: skip
    state.support_by_level = [np.arange(3)]


def checked(state):
    state.next_step = "conquer"
    state.checks = 2
    state.checked = CheckState.nothing(6)
    for values in vars(state.checked).values():
        values[:2] = 1
    state.iterate.gradient[:2] = 1
    state.certificate = Certificate(
        objectives=np.array([-1.0]), violations=np.array([0.1]), gaps=np.array([np.nan]),
        kernel_errors=np.array([1e-6]), counts=np.array([3]), objective_errors=np.array([1e-9]),
        scales=np.ones(1), multipliers=np.zeros((1, 0)),
    )  # fmt: skip


def checkpoints():
    """Return the arrays of each checkpoint, by the name of its file."""
    made = {}
    for change in (begun, checked, level):
        problem, state = small_run()
        change(state)
        run = json.dumps({"options": {}, "data": {}}).encode()
        made[change.__name__] = {"run": np.frombuffer(run, np.uint8), **state.to_arrays()}
    return made


if __name__ == "__main__":
    FOLDER.mkdir(parents=True, exist_ok=True)
    for name, arrays in checkpoints().items():
        with (FOLDER / name).open("wb") as file:
            np.savez(file, **arrays)
        print(FOLDER / name)
