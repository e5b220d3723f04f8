"""Checkpoints: a folder with the state of a run, for another process to resume.

`state.npz` has the arrays of the state (RunState.to_arrays) and an array "run": the options and the
data fingerprint as JSON. numpy.savez writes it, with a CRC-32 of each array. `early.model` is the
model of the early level, written once it exists. It can be used like any model file. Both files are
written under a temporary name and renamed, so a crash leaves the previous version. Only one process
at a time can use a folder.
"""

from __future__ import annotations

import hashlib
import json
import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, field, fields
from typing import IO, Any, Protocol, TextIO

import numpy as np

from dcsvm import _core
from dcsvm.data.files import UNFINISHED, write_beside
from dcsvm.data.range_file import range_file_of
from dcsvm.data.rows import Rows
from dcsvm.model.model import Model
from dcsvm.model.parts import EarlyModel
from dcsvm.model.reader import load_model
from dcsvm.problem.formulation import BoxQP
from dcsvm.problem.option_table import option_of
from dcsvm.problem.options import TrainOptions
from dcsvm.solving.report import Progress
from dcsvm.solving.state import RunState

try:
    import fcntl
except ImportError:  # not POSIX
    fcntl = None  # type: ignore[assignment]  # mypy has no optional modules

NAME = "lock"

ModelOfEarly = Callable[[EarlyModel], Model]


class HasShape(Protocol):
    """Rows in this process or on workers, of known shape."""

    @property
    def n_samples(self) -> int: ...

    @property
    def n_features(self) -> int: ...


class FolderInUseError(ValueError):
    """A folder is locked by another process; the message names that process."""


class FolderLock:
    """The lock of an existing folder, held from `take` to `let_go`."""

    def __init__(self, folder: str):
        self.folder, self.path = folder, os.path.join(folder, NAME)
        self.file: TextIO | None = None

    def take(self) -> None:
        """Lock the folder; try again if the lock file was removed meanwhile.

        Raises FolderInUseError and OSError.
        """
        while fcntl is not None and not self._is_in_place:
            if self.file is not None:
                self.file.close()
            # append: do not erase the holder's name before the lock is acquired
            self.file = open(self.path, "a+", encoding="utf-8")  # noqa: SIM115 (until let go)
            try:
                fcntl.flock(self.file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                self.file.seek(0)
                holder = self.file.read(200).strip() or "another process"
                self.file.close()
                self.file = None
                raise FolderInUseError(f"{self.folder}: {holder} is using this folder") from None
            except OSError:  # the file system has no locks
                return
            self.file.truncate(0)
            self.file.write(f"process {os.getpid()} on {os.uname().nodename}\n")
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


# errors raised by damaged arrays
UNREADABLE = (ValueError, KeyError, TypeError, AttributeError, RecursionError, OverflowError)


class CheckpointError(ValueError):
    """A checkpoint that cannot be used; the message says why."""


class Checkpoint:
    """The checkpoint of one run, in a folder that is created if missing.

    `resume` continues the stored run. Raises FolderInUseError, and CheckpointError if `resume`
    finds no checkpoint or a new run would overwrite one. `error` is the reason why the last store
    failed, or None.
    """

    def __init__(self, folder: str | os.PathLike[str], *, resume: bool = False):
        self.folder, self.resume = os.fspath(folder), resume
        self.path = os.path.join(self.folder, STATE)
        self.early_path = os.path.join(self.folder, EARLY)
        self.run: dict = {}
        self.early: EarlyModel | None = None
        self.error: str | None = None
        self.for_file: Callable[[Model], Model] = lambda model: model  # before saving early.model
        self.lock = FolderLock(self.folder)
        if os.path.isdir(self.folder):
            self._tidy()
        elif os.path.lexists(self.folder):
            raise CheckpointError(f"{self.folder}: is not a folder")
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

    def begin(self, data: dict, options: TrainOptions, *, is_warm: bool) -> None:
        """Lock the folder until `let_go`, and set `run` from fingerprint, options and warm start.

        Raises FolderInUseError.
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
        except (OSError, FolderInUseError) as error:
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
            self.for_file(model_of_early(state.early)).save(self.early_path)
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


def fingerprint(rows: HasShape, values: str, labels: np.ndarray, sample_weight: np.ndarray) -> dict:
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


@dataclass(frozen=True)
class RunControl:
    """Progress, stop request or deadline, and checkpoint of a run."""

    progress: Progress = field(default_factory=Progress)
    stop: _core.Stop = field(default_factory=_core.Stop)
    checkpoint: Checkpoint | None = None

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

    def save(self, state: RunState, model_of_early: ModelOfEarly) -> None:
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

    def __init__(self, control: RunControl, save: Callable[[], None]):
        self.control, self.save, self.stop = control, save, control.stop
        self.before_saving: Callable[[], None] = lambda: None
        self.is_up_to_date = False
        self.error: BaseException | None = None

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
            self.save()
        self.is_up_to_date = not self.is_up_to_date
        return self.is_up_to_date


@dataclass(frozen=True)
class SolveControl:
    """State of a solve, its stop request, and its progress."""

    state: _core.SolveState
    stop: _core.Stop
    progress: CoreProgress | None = None
