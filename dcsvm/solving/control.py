"""How the caller follows a run and ends it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from dcsvm import _core
from dcsvm.solving.checkpoint import Checkpoint
from dcsvm.solving.report import Progress


@dataclass(frozen=True)
class Control:
    """`progress` is told what happens; `stop` ends the run early, when it is requested or its time
    is over; `checkpoint` is kept up to date for another process to go on from."""

    progress: Progress = field(default_factory=Progress)
    stop: _core.Stop = field(default_factory=_core.Stop)
    checkpoint: Checkpoint | None = None

    @property
    def is_checkpoint_due(self) -> bool:
        return self.checkpoint is not None and self.checkpoint.is_due

    def save(self, state, model_of_early) -> None:
        """Store a checkpoint; warn when storing begins to fail or works again."""
        told = self.checkpoint.save(state, model_of_early)
        if told is not None:
            self.progress.warn(told)

    @contextmanager
    def held(self) -> Iterator[None]:
        """Release the checkpoint's folder when the run ends, however it ends."""
        try:
            yield
        finally:
            if self.checkpoint is not None:
                self.checkpoint.let_go()


class CoreProgress:
    """Passes on what the core tells while it solves, and stores checkpoints: the iterate is brought
    up to date when one is due, and stored at the call after that."""

    def __init__(self, control: Control, save: Callable[[], None]):
        self.control, self.save, self.stop = control, save, control.stop
        self.is_up_to_date = False
        self.error: BaseException | None = None

    def __call__(self, clusters_done, rows_done, violation, n_active, outer_steps) -> bool:
        self.control.progress.advance(rows_done, violation, n_active)
        if not self.control.is_checkpoint_due:
            return False
        if self.is_up_to_date:
            self.save()
        self.is_up_to_date = not self.is_up_to_date
        return self.is_up_to_date
