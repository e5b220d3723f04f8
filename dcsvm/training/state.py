"""The state of a run, and checkpoints: exactly this state, for another process to resume.

A checkpoint is a folder. `state.npz` has the arrays of the state (RunState.to_arrays) and an array
"run": the options and the data fingerprint as JSON. numpy.savez writes it, with a CRC-32 of each
array. `early.model` is the model of the early level, written once it exists. It can be used like
any model file. Both files are written under a temporary name and renamed, so a crash leaves the
previous version. Only one process at a time can use a folder.
"""

from __future__ import annotations

import hashlib
import json
import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, field, fields
from typing import IO, TYPE_CHECKING, Any, TextIO

import numpy as np

from dcsvm import _core, system
from dcsvm.data.files import UNFINISHED, write_beside
from dcsvm.data.rows import Rows
from dcsvm.data.scaling import range_file_of
from dcsvm.model.model import Model
from dcsvm.model.parts import EarlyModel
from dcsvm.model.reader import load_model
from dcsvm.problem.formulation import BoxQP
from dcsvm.problem.option_table import option_of
from dcsvm.problem.options import TrainOptions
from dcsvm.training.certificate import AT_ALPHA, Certificate, CheckState, Iterate
from dcsvm.training.report import Costs, EarlyChoice, LevelReport, Progress

if TYPE_CHECKING:
    from numpy.typing import DTypeLike


DONE = "done"  # value of `next_step` after the last step
# What a checkpoint stores of a RunState: plain values as JSON, and arrays. The fields of a group
# are the arrays GROUP.FIELD.
SCALARS = ("next_step", "neglected", "is_global", "has_begun", "n_bsv", "checks", "last_violation",
           "float64", "rounding", "n_moves", "multiplier", "move", "missing", "weight",
           "gap_tolerance")  # fmt: skip
GROUPS = {"iterate": Iterate, "checked": CheckState, "certificate": Certificate, "level": dict}
# The type of each array, and what its length counts; C++ reads them without a check.
ARRAYS = {
    "iterate.alpha": (np.float64, "variable"),
    "iterate.base": (np.float64, "variable"),
    "iterate.gradient": (np.float64, "variable"),
    "iterate.known": (np.uint8, "variable"),
    "checked.difference": (np.float64, "variable"),
    "checked.is_exact": (np.uint8, "variable"),
    "checked.drawn": (np.uint8, "variable"),
    "checked.wanted": (np.uint8, "variable"),
    "best_alpha": (np.float64, "variable"),
    "best_gradient": (np.float64, "variable"),
    "best_excess": (np.float64, "fold"),
    "whole_tolerance": (np.float64, "component"),
    "n_iterations": (np.int64, "problem"),
    "converged": (np.bool_, "fold"),
    "certificate.counts": (np.int64, "problem"),
    **{
        f"certificate.{name}": (np.float64, "problem")
        for name in ("objectives", "violations", "gaps", "kernel_errors", "objective_errors",
                     "scales")
    },
}  # fmt: skip
LARGEST_FLAG = {  # enumerations and booleans of C++
    "iterate.known": AT_ALPHA, "checked.is_exact": 1, "checked.drawn": 1, "checked.wanted": 1,
}  # fmt: skip
# Work that an option limits, by its name in SOLVE_REPORT and in `Limits` of csrc/solver/solve.h.
LIMITS = {"iterations": "max_iterations"}


@dataclass(eq=False)
class Budget:
    """Remaining work, by its names in LIMITS; work without a limit is absent."""

    left: dict[str, int]

    @staticmethod
    def of(options: TrainOptions) -> Budget:
        """Make the budget that these options set; a negative option means no limit."""
        most = {name: getattr(options, option) for name, option in LIMITS.items()}
        return Budget({name: limit for name, limit in most.items() if limit >= 0})

    def at_most(self, work: dict[str, int]) -> Budget:
        """Return a new budget of the remaining work, limited to `work`."""
        return Budget(self.left | {k: min(n, self.left.get(k, n)) for k, n in work.items()})

    @property
    def is_used_up(self) -> bool:
        return 0 in self.left.values()

    def use(self, solved: np.ndarray, n_folds: int = 1) -> None:
        """Subtract the work of a SOLVE_REPORT array, a mean over `n_folds` folds."""
        self.left = {
            name: max(0, left - int(solved[name].sum()) // n_folds)
            for name, left in self.left.items()
        }


@dataclass(eq=False, kw_only=True)
class RunState:
    """State of a run, exactly as a checkpoint stores it.

    Attributes
    ----------
    iterate : alpha and its gradient, as far as known.
    whole_tolerance : float64 (n_components,), tolerance to which a level solved a component as a
        whole, or inf.
    budget : remaining work of all steps.
    n_iterations : int64 (n_problems,), coordinate updates of each problem in finished solves.
    converged : bool (n_folds,), convergence of each fold.
    costs : cost of the run.
    next_step : name of the step that is next or in progress, "" before the first, or DONE.
    neglected : bound on the truncation error of each entry of the gradient.
    is_global : whether the gradient belongs to the whole problem, not to separate clusters.
    has_begun : whether the level in progress has changed its starting point.
    solve : state of the solve in progress, without its iterate; None between solves. `costs`
        includes a solve only after its end.
    begun_with : int32, variables selected at the start of the refine or gradient step; None outside
        these steps.
    level : arrays of the LevelSolver of the level in progress, by name; or None.
    sample : int32, sample rows of the clustering of the level in progress, or of the finished
        level of an early model, if it used no tree.
    early : model of the early level, or of the last level before it.
    n_bsv : number of bounded support vectors of `early`.
    multiplier : multiplier of the relaxed constraint (conquer.py), or None.
    n_moves, move, missing : number of changes of the multiplier, the current or next change, and
        the required minus the actual sum of alpha at the last measurement.
    weight : sum of |alpha| before the conquer solve in progress, else None.
    checked : state of the float64 check in progress, or None.
    checks : number of finished checks of the whole problem.
    last_violation : violation of the last check, inf before.
    gap_tolerance : tolerance of the solve of the whole problem for the duality gap, or None.
    float64 : whether float32 kernel values were not accurate enough.
    rounding : largest error of a float32 gradient in a check.
    best_alpha, best_gradient, best_excess : solutions of the folds with the smallest violation or
        relative gap in a check, and that excess, inf for absent ones, float64 (n_folds,), while
        another solve follows; or None.
    certificate : certificate of the solution, or None.
    levels, support_by_level : reports of the levels, and the input rows of their support vectors.
    early_choice : choice of the early level, or None.
    """

    iterate: Iterate
    whole_tolerance: np.ndarray
    budget: Budget
    n_iterations: np.ndarray
    converged: np.ndarray
    costs: Costs = field(default_factory=Costs)
    next_step: str = ""
    neglected: float = 0.0
    is_global: bool = True
    has_begun: bool = False
    solve: _core.SolveState | None = None
    begun_with: np.ndarray | None = None
    level: dict[str, np.ndarray] | None = None
    sample: np.ndarray | None = None
    early: EarlyModel | None = None
    n_bsv: int = 0
    multiplier: float | None = None
    n_moves: int = 0
    move: float | None = None
    missing: float | None = None
    weight: float | None = None
    checked: CheckState | None = None
    checks: int = 0
    last_violation: float = np.inf
    gap_tolerance: float | None = None
    float64: bool = False
    rounding: float = 0.0
    best_alpha: np.ndarray | None = None
    best_gradient: np.ndarray | None = None
    best_excess: np.ndarray | None = None
    certificate: Certificate | None = None
    levels: list[LevelReport] = field(default_factory=list)
    support_by_level: list[np.ndarray] = field(default_factory=list)
    early_choice: EarlyChoice | None = None

    def to_arrays(self) -> dict[str, np.ndarray]:
        """Return the state, without the early model, as arrays by name; "values" is JSON."""
        arrays: dict[str, np.ndarray] = {}
        values: dict[str, Any] = {
            "budget": self.budget.left,
            "costs": asdict(self.costs),
            "levels": [asdict(level) for level in self.levels],
            "early_choice": self.early_choice and asdict(self.early_choice),
            "has_early": self.early is not None,
        }
        # what is None is left out
        for name, value in vars(self).items():
            if isinstance(value, np.ndarray):
                arrays[name] = value
            elif isinstance(value, _core.SolveState):
                arrays[name] = value.to_array()
            elif name in GROUPS and value is not None:
                members = value if isinstance(value, dict) else vars(value)
                arrays |= {f"{name}.{member}": array for member, array in members.items()}
            elif name in SCALARS:
                values[name] = value
        arrays |= {f"support.{k}": rows for k, rows in enumerate(self.support_by_level)}
        arrays["values"] = np.frombuffer(json.dumps(values).encode(), np.uint8)
        return arrays

    def set_arrays(
        self, arrays: dict[str, np.ndarray], problem: BoxQP, n_rows: int, n_groups: int
    ) -> bool:
        """Restore the state from the arrays of `to_arrays`.

        The run has `n_rows` rows in `n_groups` components. Returns whether it had an early model.
        Raises one of UNREADABLE if the arrays do not fit this problem. Their types and lengths,
        bounds and indices are checked, because C++ relies on them; other accidents are left to the
        check sums of the file.
        """
        values = json.loads(arrays["values"].tobytes())
        for name in SCALARS:
            default, value = getattr(self, name), values[name]
            if type(value) not in (
                (int, float, type(None)) if default is None else (type(default),)
            ):
                raise ValueError(name)
            setattr(self, name, value)
        n_components = len(self.whole_tolerance)
        if self.multiplier is not None:  # relaxed: the components are separate problems
            if problem.n_constraints != 1 or n_components != 1:
                raise ValueError("multiplier")
            n_components = n_groups
        lengths = {
            "variable": problem.size,
            "component": n_components,
            "problem": len(self.n_iterations),
            "fold": len(self.converged),
        }
        _check_arrays(arrays, problem, lengths, n_rows)
        for name in ("whole_tolerance", "n_iterations", "converged"):
            setattr(self, name, arrays[name])
        for name in ("begun_with", "sample", "best_alpha", "best_gradient", "best_excess"):
            setattr(self, name, arrays.get(name))
        for name, kind in GROUPS.items():
            members = {
                stored.removeprefix(f"{name}."): array
                for stored, array in arrays.items()
                if stored.startswith(f"{name}.")
            }
            setattr(self, name, kind(**members) if members else None)
        self.solve = None
        if "solve" in arrays:
            self.solve = _core.SolveState.from_array(arrays["solve"])
        self.budget = Budget({name: values["budget"][name] for name in self.budget.left})
        self.costs = Costs(**values["costs"])
        self.levels = [LevelReport(**level) for level in values["levels"]]
        self.support_by_level = [arrays[f"support.{k}"] for k in range(len(self.levels))]
        choice = values["early_choice"]
        self.early_choice = choice and EarlyChoice(**choice)
        return values["has_early"]


def _check_arrays(
    arrays: dict[str, np.ndarray], problem: BoxQP, lengths: dict[str, int], n_rows: int
) -> None:
    """Check the arrays of a state. Raises ValueError."""
    for name, (dtype, counted) in ARRAYS.items():
        if name in arrays:
            check_array(arrays[name], dtype, lengths[counted])
    # alpha must be feasible: the solver keeps it so, but does not make it so
    for name in ("iterate.alpha", "iterate.base", "best_alpha"):
        alpha = arrays.get(name, problem.lower)
        if not np.all((problem.lower <= alpha) & (alpha <= problem.upper)):
            raise ValueError(f"{name} is out of its bounds")
    if not np.isfinite(arrays["iterate.gradient"]).all():
        raise ValueError("gradient")
    for name, most in LARGEST_FLAG.items():
        if name in arrays and arrays[name].max(initial=0) > most:
            raise ValueError(name)
    for name, end in (("begun_with", problem.size), ("sample", n_rows)):
        if name in arrays:
            _check_indices(arrays[name], end)
    multipliers = arrays.get("certificate.multipliers")
    if multipliers is not None and multipliers.shape != (
        lengths["problem"], problem.n_constraints,
    ):  # fmt: skip
        raise ValueError("multipliers")


def check_array(values: np.ndarray, dtype: DTypeLike, size: int) -> None:
    """Raise ValueError unless the values have this type and length."""
    if values.shape != (size,) or values.dtype != dtype:
        raise ValueError(f"{values.dtype} {values.shape} instead of {dtype} {size}")


def _check_indices(indices: np.ndarray, end: int) -> None:
    if indices.ndim != 1 or indices.dtype != np.int32 or np.any(np.diff(indices) <= 0):
        raise ValueError("indices do not ascend")
    if len(indices) and not 0 <= indices[0] <= indices[-1] < end:
        raise ValueError("indices out of range")


NAME = "lock"

ModelOfEarly = Callable[[EarlyModel], Model]


# errors raised by damaged arrays
UNREADABLE = (ValueError, KeyError, TypeError, AttributeError, RecursionError, OverflowError)


class CheckpointError(ValueError):
    """A checkpoint that cannot be used; the message says why."""


class FolderLock:
    """The lock of an existing folder, held from `take` to `let_go`."""

    def __init__(self, folder: str):
        self.folder, self.path = folder, os.path.join(folder, NAME)
        self.file: TextIO | None = None

    def take(self) -> None:
        """Lock the folder; try again if the lock file was removed meanwhile.

        Raises CheckpointError and OSError.
        """
        while system.HAS_LOCKS and not self._is_in_place:
            if self.file is not None:
                self.file.close()
            # append: do not erase the holder's name before the lock is acquired
            self.file = open(self.path, "a+", encoding="utf-8")  # noqa: SIM115 (until let go)
            try:
                system.lock(self.file)
            except BlockingIOError:
                self.file.seek(0)
                holder = self.file.read(200).strip() or "another process"
                self.file.close()
                self.file = None
                raise CheckpointError(f"{self.folder}: {holder} is using this folder") from None
            except OSError:  # the file system has no locks
                return
            self.file.truncate(0)
            self.file.write(f"process {os.getpid()} on {system.host_name()}\n")
            self.file.flush()

    def let_go(self) -> None:
        """Release the folder and remove the lock file."""
        if self.file is None:
            return
        with suppress(OSError):
            if self._is_in_place:
                os.unlink(self.path)
        self.file.close()
        self.file = None

    @property
    def _is_in_place(self) -> bool:
        """Whether the locked file is still in the folder; another `let_go` may have removed it."""
        if self.file is None:
            return False
        try:
            return os.path.samestat(os.fstat(self.file.fileno()), os.stat(self.path))
        except OSError:
            return False


STATE, EARLY = "state.npz", "early.model"
COUNTS = ("rows", "features")  # of a fingerprint
MIN_PAUSE = 5.0  # seconds between two checkpoints inside a step
MAX_SHARE = 0.05  # maximum share of the run time for storing checkpoints


class Checkpoint:
    """The checkpoint of one run, in a folder that is created if missing.

    Parameters
    ----------
    folder : str or path-like
        The folder of the checkpoint. Only one process can use it at a time.
    resume : bool, default False
        Continue the stored run.

    Attributes
    ----------
    error : OSError or None
        The reason why the last store failed.

    Raises
    ------
    CheckpointError
        If another process uses the folder, `resume` finds no checkpoint, or a new run would
        overwrite one.
    """

    def __init__(self, folder: str | os.PathLike[str], *, resume: bool = False):
        self.folder, self.resume = os.fspath(folder), resume
        self.path = os.path.join(self.folder, STATE)
        self.early_path = os.path.join(self.folder, EARLY)
        self.run: dict = {}
        self.early: EarlyModel | None = None
        self.error: str | None = None
        self.described: Callable[[Model], Model] = lambda model: model
        self.lock = FolderLock(self.folder)
        if os.path.isdir(self.folder):
            self._tidy()
        elif os.path.lexists(self.folder):
            raise CheckpointError(f"{self.folder}: is not a folder")
        # neither made up nor overwritten
        exists = self.exists(folder)
        if resume and not exists:
            raise CheckpointError(f"{self.folder}: there is no checkpoint to resume")
        if exists and not resume:
            raise CheckpointError(
                f"{self.folder}: there is a checkpoint already: resume it, or remove the folder"
            )
        os.makedirs(self.folder, exist_ok=True)
        self.due = time.monotonic() + MIN_PAUSE

    def _tidy(self) -> None:
        """Remove the unfinished files of killed processes."""
        self.lock.take()
        try:
            for name in os.listdir(self.folder):
                if name.startswith(UNFINISHED):
                    os.unlink(os.path.join(self.folder, name))
        finally:
            self.lock.let_go()

    @staticmethod
    def exists(folder: str | os.PathLike[str]) -> bool:
        return os.path.exists(os.path.join(folder, STATE))

    def describe_models(self, described: Callable[[Model], Model]) -> None:
        """Let `described` add to the early model what its file has: scaling, columns, labels."""
        self.described = described

    def begin(self, data: dict, options: TrainOptions, *, is_warm: bool) -> None:
        """Lock the folder until `let_go`, and set `run` from fingerprint, options and warm start.

        Raises CheckpointError if another process uses the folder.
        """
        self.lock.take()
        chosen = {**_chosen(options), "init_model": is_warm}
        self.run = {"options": chosen, "data": data}

    @property
    def is_due(self) -> bool:
        return time.monotonic() >= self.due

    def save(self, state: RunState, model_of_early: ModelOfEarly) -> str | None:
        """Store the state; `model_of_early` converts its early model to a Model.

        A failure does not end training; the next due checkpoint is another attempt.
        Returns a message when storing begins to fail or works again, else None.
        """
        start, before = time.monotonic(), self.error
        try:
            self._store(state, model_of_early)
            self.error = None
        except (OSError, CheckpointError) as error:
            self.error = getattr(error, "strerror", None) or str(error)
        end = time.monotonic()
        self.due = end + max(MIN_PAUSE, (end - start) / MAX_SHARE)
        if before is None and self.error is not None:
            return f"{self.folder}: the checkpoint is not stored: {self.error.lower()}"
        if before is not None and self.error is None:
            return f"{self.folder}: the checkpoint is stored again"
        return None

    def _store(self, state: RunState, model_of_early: ModelOfEarly) -> None:
        os.makedirs(self.folder, exist_ok=True)  # somebody may have removed it
        self.lock.take()
        is_known = state.early is self.early and os.path.exists(self.early_path)
        if state.early is not None and not is_known:
            self.described(model_of_early(state.early)).save(self.early_path, threads=1)
            self.early = state.early
        run = np.frombuffer(json.dumps(self.run).encode(), np.uint8)
        arrays: dict[str, Any] = {"run": run, **state.to_arrays()}
        write_beside(self.path, lambda file: np.savez(file, **arrays))

    def let_go(self) -> None:
        """Release the folder at the end of a run."""
        self.lock.let_go()

    def load(self, state: RunState, problem: BoxQP, n_rows: int, n_groups: int) -> None:
        """Load `state` for a problem over `n_rows` rows in `n_groups` components.

        Raises OSError, and CheckpointError if the checkpoint is damaged or its data or options
        differ; the message names the difference.
        """
        with open(self.path, "rb") as file:
            has_early = self.restore(file, state, problem, n_rows, n_groups)
        if has_early:
            state.early = self.early = load_model(self.early_path).early

    def restore(
        self, file: IO[bytes], state: RunState, problem: BoxQP, n_rows: int, n_groups: int
    ) -> bool:
        """Load `state` from an open file; return whether an early model is stored beside it."""
        try:
            with np.load(file, allow_pickle=False) as stored:
                arrays = {name: stored[name] for name in stored.files}
        except OSError:
            raise
        except Exception:  # errors of the parsers of NumPy, zipfile and zlib
            raise self.damaged() from None
        try:
            difference = _difference(json.loads(arrays["run"].tobytes()), self.run)
            has_early = difference is None and state.set_arrays(arrays, problem, n_rows, n_groups)
        except UNREADABLE:
            raise self.damaged() from None
        if difference is not None:
            raise CheckpointError(f"{self.folder}: the checkpoint is of {difference}")
        return has_early

    def damaged(self) -> CheckpointError:
        return CheckpointError(f"{self.path}: the checkpoint is damaged")

    def remove(self) -> None:
        """Remove the checkpoint after the model is written; ignore failures."""
        for path in (self.path, self.early_path, range_file_of(self.early_path)):
            with suppress(OSError):
                os.unlink(path)
        with suppress(OSError):  # other files may be there
            os.rmdir(self.folder)


def _chosen(options: TrainOptions) -> dict:
    """Return the options that must be equal on resume."""
    free = {one.name for one in fields(options) if option_of(one).is_free}
    return {name: value for name, value in _plain(asdict(options)).items() if name not in free}


def _plain(value: Any) -> Any:
    """Return the value as JSON would restore it."""
    return json.loads(json.dumps(value))


def fingerprint(rows: Any, values: str, labels: np.ndarray, sample_weight: np.ndarray) -> dict:
    """Return the fingerprint of rows; `values` is the digest of their values."""
    return {
        "rows": rows.n_samples,
        "features": rows.n_features,
        "labels": _digest([labels]),
        "sample weights": _digest([sample_weight]),
        "values": values,
    }


def digest_of(rows: Rows) -> str:
    """Compute the digest of the values of rows."""
    stored = None if rows.dense is None else rows.stored
    parts = [stored, rows.columns, rows.indptr, rows.indices, rows.values]
    return _digest([part for part in parts if part is not None])


def _digest(arrays: list[np.ndarray]) -> str:
    digest = hashlib.blake2b(digest_size=16)
    for array in arrays:
        array = np.ascontiguousarray(array)
        digest.update(array.view(np.uint8).data if array.dtype.kind == "U" else array.data)
    return digest.hexdigest()


def _difference(stored: dict, wanted: dict) -> str | None:
    """Describe the first difference of two runs; None if they are equal.

    Options precede the values of rows, which the kernel may encode.
    """
    data, was_data = wanted["data"], stored["data"]
    for name, value in data.items():
        if name in COUNTS and was_data[name] != value:
            return f"data with {was_data[name]} {name}, not {value}"
    for name, value in wanted["options"].items():
        was = stored["options"].get(name)
        if was != value:
            return f"a run with {name} {_said(was)}, not {_said(value)}"
    for name, value in data.items():
        if was_data[name] != value:
            causes = ", another scaling or other feature weights" if name == "values" else ""
            return f"data with other {name}{causes}"
    return None


def _said(value: Any) -> str:
    return "unset" if value is None else str(value)


def nothing_to_save() -> None:
    """Do nothing: a run that has not begun has no state."""


@dataclass(frozen=True)
class RunControl:
    """Progress, stop request or deadline, and checkpoint of a run.

    `save` stores a checkpoint of the run; solvers call it when one is due.
    """

    progress: Progress = field(default_factory=Progress)
    stop: _core.Stop = field(default_factory=_core.Stop)
    checkpoint: Checkpoint | None = None
    save: Callable[[], None] = nothing_to_save

    @staticmethod
    def of(
        progress: Progress, time_limit: float | None, folder: str | os.PathLike[str] | None
    ) -> RunControl:
        """Return a control with a limit in seconds that goes on from a checkpoint, if it exists."""
        checkpoint = None
        if folder is not None:
            checkpoint = Checkpoint(folder, resume=Checkpoint.exists(folder))
        return RunControl(progress, _core.Stop(time_limit), checkpoint)

    @property
    def is_checkpoint_due(self) -> bool:
        return self.checkpoint is not None and self.checkpoint.is_due

    def store(self, state: RunState, model_of_early: ModelOfEarly) -> None:
        """Store a checkpoint; warn when storing begins to fail or works again."""
        assert self.checkpoint is not None
        told = self.checkpoint.save(state, model_of_early)
        if told is not None:
            self.progress.warn(told)

    @contextmanager
    def held(self) -> Iterator[None]:
        """Release the checkpoint's folder at the end of a run, also after an error."""
        try:
            yield
        finally:
            if self.checkpoint is not None:
                self.checkpoint.let_go()


class CoreProgress:
    """Callback of the core: reports progress and stores checkpoints.

    If a checkpoint is due, a call returns True to make the core update the iterate. The next call
    then stores the checkpoint.
    """

    def __init__(self, control: RunControl):
        self.control, self.stop = control, control.stop
        self.before_saving: Callable[[], None] = lambda: None
        self.is_up_to_date = False
        self.error: BaseException | None = None

    def call_before_saving(self, work: Callable[[], None]) -> None:
        """Let `work` bring the state of the run up to date before each checkpoint."""
        self.before_saving = work

    def __call__(
        self,
        _clusters_done: int,
        rows_done: int,
        violation: float | None,
        n_active: int,
        _outer_steps: int,
    ) -> bool:
        self.control.progress.advance(rows_done, violation, n_active)
        if not self.control.is_checkpoint_due:
            return False
        if self.is_up_to_date:
            self.before_saving()
            self.control.save()
        self.is_up_to_date = not self.is_up_to_date
        return self.is_up_to_date


@dataclass(frozen=True)
class SolveControl:
    """State of a solve, its stop request, and its progress."""

    state: _core.SolveState
    stop: _core.Stop
    progress: CoreProgress | None = None
