"""Run a command: handle signals, print errors as one sentence, set the exit status."""

from __future__ import annotations

import os
import signal
import sys
import threading
from importlib import import_module
from typing import TYPE_CHECKING, Any, NoReturn

import click

import dcsvm
from dcsvm import system
from dcsvm.cli.options import check_files, occupy_closed, print_status, reason_of

if TYPE_CHECKING:
    from dcsvm._core import Stop
    from dcsvm.cli.options import DataJob


class Interrupts:
    """Signal handling: the first signal requests a `stop`, the second ends the process.

    Without a `stop` the first signal ends the process. `received` is the number of the first
    signal. Signals that were ignored before stay ignored.
    """

    def __init__(self, stop: Stop | None = None):
        self.stop = stop
        self.received: int | None = None
        self.pipe: tuple[int, int] | None = None
        self.wakeup_before = -1
        self.handlers_before: dict[int, Any] = {}

    def __enter__(self) -> Interrupts:
        if threading.current_thread() is not threading.main_thread():
            return self  # only the main thread can have signal handlers
        # Python runs handlers between two of its own steps only, which a loop in C++ may delay for
        # minutes; but the number of the signal is written to the pipe at once
        self.pipe = _, writer = os.pipe()
        system.unblock(writer)
        self.wakeup_before = signal.set_wakeup_fd(writer, warn_on_full_buffer=False)
        caught = [one for one in system.STOP_SIGNALS if signal.getsignal(one) != signal.SIG_IGN]
        self.handlers_before = {number: signal.signal(number, lambda *_: None) for number in caught}
        self.watcher = threading.Thread(target=self.watch, args=(self.pipe[0],), daemon=True)
        self.watcher.start()
        return self

    def __exit__(self, _kind: object, error: BaseException | None, _traceback: object) -> None:
        if error is not None:
            error.received = self.received  # type: ignore[attr-defined]  # for the exit status
        if self.pipe is None:
            return
        signal.set_wakeup_fd(self.wakeup_before)
        for number, handler in self.handlers_before.items():
            signal.signal(number, handler)
        reader, writer = self.pipe
        os.close(writer)  # ends the watcher
        self.watcher.join()
        os.close(reader)

    def watch(self, reader: int) -> None:
        """Handle the signal numbers that the pipe delivers."""
        while numbers := os.read(reader, 1):
            number = numbers[0]
            if number not in self.handlers_before:
                continue
            if self.received is not None or self.stop is None:
                end_process(number)
            self.received = number
            self.stop.request()
            print_status(f"{signal.Signals(number).name}: stopping; repeat to quit")


def end_process(number: int) -> NoReturn:
    """Remove unfinished output files and end the process."""
    from dcsvm.data.files import remove_unfinished

    remove_unfinished()
    print_status("interrupted")
    os._exit(128 + number)


FAILED, USAGE, NOT_CONVERGED, INTERRUPTED = 1, 2, 3, 130
ENVIRONMENT = {  # read once, when the libraries are loaded
    "OMP_WAIT_POLICY": "passive",  # spinning threads starve others on shared cores
    "OPENBLAS_NUM_THREADS": "1",  # OpenBLAS is unused, but its threads would spin
}


def run(module: str, job: DataJob, *args: object, function: str | None = None) -> NoReturn:
    """Check the files of a job, call a function with the job, and exit with the returned status.

    The function is in `module` of dcsvm.cli and has the same name by default. Files are checked
    first, because importing NumPy and much more takes time.
    """
    for name, value in ENVIRONMENT.items():
        os.environ.setdefault(name, value)
    # a closed stream would give its number to the next file that is opened
    occupy_closed()
    try:
        with Interrupts():
            check_files(click.get_current_context().command.params, job)
            status = getattr(import_module(f"dcsvm.cli.{module}"), function or module)(job, *args)
    except KeyboardInterrupt:
        print_status("interrupted")
        status = INTERRUPTED
    except dcsvm.Stopped as error:
        print_status(f"error: {error or 'stopped before a model existed'}")
        status = status_of(getattr(error, "received", None), FAILED)
    except (MemoryError, OSError, ValueError) as error:
        print_status(f"error: {sentence_of(error)}")
        status = FAILED
    sys.exit(status)


def sentence_of(error: Exception) -> str:
    """Format an error for the user."""
    if isinstance(error, MemoryError):
        return "not enough memory"
    if isinstance(error, OSError):
        return reason_of(error)
    return as_typed(error)


def status_of(received: int | None, otherwise: int) -> int:
    """Return 128 + the number of the received signal, or `otherwise`."""
    return 128 + received if received else otherwise


def as_typed(error: Exception) -> str:
    """Format an error of an option with its name on the command line: -m for cache_mb."""
    name = getattr(error, "option", None)
    for parameter in click.get_current_context().command.params:
        if name is not None and parameter.name == name:
            return f"{parameter.opts[0]} {error.reason}"  # type: ignore[attr-defined]
    return str(error)
