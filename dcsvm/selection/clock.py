"""The time limit of a search and of the training after it."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from dcsvm import _core

GRACE = 2.0  # seconds for the last training if the search was stopped or no time is left
WATCHED = 0.05  # seconds between checks of the user's stop


@dataclass(eq=False)
class Clock:
    """Time limit in seconds from the start; `request` ends the current step and the search.

    The last training then has GRACE seconds. Early training is not stopped, since that would
    leave no model.
    """

    limit: float
    start: float = field(default_factory=time.perf_counter)
    is_requested: bool = False
    current: _core.Stop = field(default_factory=_core.Stop)

    @property
    def used(self) -> float:
        return time.perf_counter() - self.start

    def left(self, share: float = 1.0) -> float:
        """Return the seconds left of a share of the time limit."""
        return 0.0 if self.is_requested else share * self.limit - self.used

    def stop(self, share: float = 1.0) -> _core.Stop:
        """Return a stop at the end of a share of the time limit. Raises Stopped if it is over."""
        left = self.left(share)
        if left > 0:
            stop = self._stop_after(left)
            if not self.is_requested:  # a request from now on ends this stop
                return stop
        raise _core.Stopped("no time is left")

    def _stop_after(self, seconds: float) -> _core.Stop:
        self.current = _core.Stop(seconds)
        return self.current

    @property
    def left_of_last(self) -> float:
        """Seconds left for the training on all rows."""
        left = self.left()
        return left if left > 0 else GRACE

    def stop_of_last(self, *, early: bool) -> _core.Stop:
        """Return the stop of the training on all rows."""
        if early:
            return _core.Stop()
        was_requested = self.is_requested
        stop = self._stop_after(self.left_of_last)
        if self.is_requested and not was_requested:  # the request may have ended the previous stop
            stop = self._stop_after(GRACE)
        return stop

    def request(self) -> None:
        self.is_requested = True
        self.current.request()

    @contextmanager
    def following(self, stop: _core.Stop | None) -> Iterator[None]:
        """Request this clock as soon as the user's stop is requested or its time is over."""
        if stop is None:
            yield
            return
        is_done = threading.Event()

        def is_stopped() -> bool:
            try:
                stop.check()
            except _core.Stopped:
                self.request()
                return True
            return False

        def watch() -> None:
            while not is_stopped() and not is_done.wait(WATCHED):
                pass

        is_stopped()  # before the search begins, not only in the watcher
        watcher = threading.Thread(target=watch, daemon=True)
        watcher.start()
        try:
            yield
        finally:
            is_done.set()
            watcher.join()
