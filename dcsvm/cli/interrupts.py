"""SIGINT, SIGTERM and SIGHUP while there is work: the first asks it to stop, the second ends the
process at once.

Python runs its signal handlers between two of its own instructions, so not while the core computes.
But it writes the number of a signal to a pipe at once, and a thread that reads there can act.
"""

from __future__ import annotations

import os
import signal
import threading

from dcsvm.cli.streams import say

SIGNALS = [
    getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name)
]


class Interrupts:
    """Inside the `with`, signals request the `stop` (any object with `request`); with None the
    first one ends the process. `received` is the number of the first. Signals that are ignored
    when it begins stay ignored."""

    def __init__(self, stop=None):
        self.stop = stop
        self.received: int | None = None
        self.pipe: tuple[int, int] | None = None
        self.wakeup_before = -1
        self.handlers_before: dict = {}
        self.watcher = threading.Thread(target=self.watch, daemon=True)

    def __enter__(self) -> Interrupts:
        if threading.current_thread() is not threading.main_thread():
            return self  # only the main thread can have signal handlers
        self.pipe = _, writer = os.pipe()
        os.set_blocking(writer, False)
        self.wakeup_before = signal.set_wakeup_fd(writer, warn_on_full_buffer=False)
        caught = [one for one in SIGNALS if signal.getsignal(one) != signal.SIG_IGN]
        self.handlers_before = {one: signal.signal(one, lambda *_: None) for one in caught}
        self.watcher.start()
        return self

    def __exit__(self, *_error) -> None:
        if self.pipe is None:
            return
        signal.set_wakeup_fd(self.wakeup_before)
        for one, handler in self.handlers_before.items():
            signal.signal(one, handler)
        reader, writer = self.pipe
        os.close(writer)
        self.watcher.join()
        os.close(reader)

    def watch(self) -> None:
        while numbers := os.read(self.pipe[0], 1):
            number = numbers[0]
            if number not in self.handlers_before:
                continue
            if self.received is not None or self.stop is None:
                end_at_once(number)
            self.received = number
            self.stop.request()
            say(f"{signal.Signals(number).name}: stopping; a second one ends at once")


def end_at_once(number: int) -> None:
    """End the process with what it has written so far, and nothing half-written."""
    from dcsvm.data.output_file import remove_unfinished

    remove_unfinished()
    say("interrupted")
    os._exit(128 + number)
