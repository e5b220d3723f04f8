"""The standard streams: results go to standard output and have to arrive; talk goes to standard
error, and where nobody listens the work goes on."""

from __future__ import annotations

import errno
import os
import sys
from collections.abc import Callable

import click

OUTPUT = "standard output"
STANDARD_INPUT = ("-", "/dev/stdin")


def show(line: str) -> None:
    """Print a line of results. Raises OSError that names standard output."""
    try:
        if sys.stdout is None:
            raise OSError(errno.EBADF, os.strerror(errno.EBADF))
        click.echo(line)
    except OSError as error:
        point_at_nothing(1)  # Python would complain of the rest at its exit
        raise OSError(error.errno, error.strerror, OUTPUT) from None


def show_beside(*outputs: str | None) -> Callable[[str], None]:
    """What prints results where standard output may be one of the files that are written, in which
    they have no place."""
    return say if {"-", "/dev/stdout"} & set(outputs) else show


def say(line: str) -> None:
    """Print a line of talk, or not."""
    try:
        click.echo(line, err=True)
    except OSError:
        point_at_nothing(2)


def reason_of(error: OSError) -> str:
    """What went wrong with which file."""
    reason = (error.strerror or str(error)).lower()
    return f"{error.filename}: {reason}" if error.filename else reason


def occupy_closed() -> None:
    """Make sure that no file which is opened takes the place of a standard stream that is closed;
    such a stream still can be neither read nor written."""
    for stream in range(3):
        try:
            os.fstat(stream)
        except OSError:
            os.open(os.devnull, os.O_WRONLY if stream == 0 else os.O_RDONLY)
    if sys.stderr is None:
        sys.stderr = open(os.devnull, "w")  # noqa: SIM115 (until the process ends)


def point_at_nothing(stream: int) -> None:
    nothing = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nothing, stream)
    os.close(nothing)
