"""Around the work of a command: its exit status, and one sentence for what goes wrong."""

from __future__ import annotations

import os
import sys
from importlib import import_module

import click

from dcsvm.cli.interrupts import Interrupts
from dcsvm.cli.streams import occupy_closed, reason_of, say
from dcsvm.problem.option_rules import OptionError

FAILED, USAGE, NOT_CONVERGED, INTERRUPTED = 1, 2, 3, 130
ENVIRONMENT = {  # read once, when the libraries are loaded
    "OMP_WAIT_POLICY": "passive",  # threads that spin starve the others where cores are shared
    "OPENBLAS_NUM_THREADS": "1",  # unused, but its threads would spin
}


def run(function: str, *given) -> None:
    """Call a function of this folder, which its module is named after, and exit with the status
    that it returns; one sentence for what goes wrong."""
    for name, value in ENVIRONMENT.items():
        os.environ.setdefault(name, value)
    occupy_closed()
    try:
        with Interrupts():
            status = getattr(import_module(f"dcsvm.cli.{function}"), function)(*given)
    except KeyboardInterrupt:
        say("interrupted")
        status = INTERRUPTED
    except (MemoryError, OSError, ValueError) as error:
        say(f"error: {sentence_of(error)}")
        status = FAILED
    sys.exit(status)


def sentence_of(error: Exception) -> str:
    if isinstance(error, MemoryError):
        return "not enough memory"
    if isinstance(error, OSError):
        return reason_of(error)
    return as_typed(error) if isinstance(error, OptionError) else str(error)


def status_of(received: int | None, otherwise: int) -> int:
    """Return 128 + the number of the signal that stopped a run, else `otherwise`."""
    return 128 + received if received else otherwise


def as_typed(error: OptionError) -> str:
    """The sentence with the option's name in the command that runs: -m for cache_mb."""
    for parameter in click.get_current_context().command.params:
        if parameter.name == error.option:
            return f"{parameter.opts[0]} {error.reason}"
    return str(error)
