"""What the core tells a run while it solves."""

from __future__ import annotations

from collections.abc import Callable

from dcsvm.solving.control import Control


class CoreProgress:
    """Passes the core's calls on, and stores checkpoints: the iterate is brought up to date when
    one is due, and stored at the call after that."""

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
