"""Standard streams of the commands, and values in place of file names."""

import errno
import os
import sys
from collections.abc import Callable

import click

OUTPUT = "standard output"
STANDARD_INPUT = ("-", "/dev/stdin")
# values of --scale: by the ranges or by the quantiles of the training set
AUTO, QUANTILE = "auto", "quantile"
LEARN, BALANCED, MEDIAN = "learn", "balanced", "median"


def print_result(line: str) -> None:
    """Print a line of results on stdout. Raises OSError that names standard output."""
    try:
        if sys.stdout is None:
            raise OSError(errno.EBADF, os.strerror(errno.EBADF))
        click.echo(line)
    except OSError as error:
        point_at_nothing(1)  # otherwise Python reports unwritten output at exit
        raise OSError(error.errno, error.strerror, OUTPUT) from None


def show_beside(*outputs: str | None) -> Callable[[str], None]:
    """Return `print_result`, or `print_status` if an output file is standard output."""
    return print_status if {"-", "/dev/stdout"} & set(outputs) else print_result


def print_status(line: str) -> None:
    """Print a line of status on stderr; write errors are ignored."""
    try:
        click.echo(line, err=True)
    except OSError:
        point_at_nothing(2)


def reason_of(error: OSError) -> str:
    """Format an error as FILE: REASON."""
    reason = (error.strerror or str(error)).lower()
    return f"{error.filename}: {reason}" if error.filename else reason


def occupy_closed() -> None:
    """Open the null device for closed standard streams, so that no file gets their descriptors.

    Reading or writing such a stream remains an error.
    """
    for stream in range(3):
        try:
            os.fstat(stream)
        except OSError:
            os.open(os.devnull, os.O_WRONLY if stream == 0 else os.O_RDONLY)
    if sys.stderr is None:
        sys.stderr = open(os.devnull, "w")  # noqa: SIM115 (until the process ends)


def point_at_nothing(stream: int) -> None:
    """Redirect a descriptor to the null device."""
    null = os.open(os.devnull, os.O_WRONLY)
    os.dup2(null, stream)
    os.close(null)


def is_stream(path: str) -> bool:
    """Return whether an output is standard output, a device or a pipe."""
    if path in ("-", "/dev/stdout"):
        return True
    return os.path.exists(path) and not os.path.isfile(path) and not os.path.isdir(path)
