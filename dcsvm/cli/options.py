"""What both commands share: exit codes, the error boundary, options."""

from __future__ import annotations

import math
import os
import sys

# Threads that wait sleep: spinning ones starve the others where cores are shared. Read once, when
# the OpenMP runtime is loaded.
os.environ.setdefault("OMP_WAIT_POLICY", "passive")
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # unused, but its threads would spin

from collections.abc import Callable

import click

import dcsvm
from dcsvm.cli.interrupts import Interrupts
from dcsvm.cli.streams import occupy_closed, reason_of, say
from dcsvm.machine import MOST_THREADS

FAILED, USAGE, NOT_CONVERGED, INTERRUPTED = 1, 2, 3, 130

# -h is LIBSVM's shrinking option, so help has only its long name
CONTEXT = {"help_option_names": ["--help"], "max_content_width": 100}


class Finite(click.FloatRange):
    """A range of numbers that neither nan nor inf are in."""

    def convert(self, value, param, ctx) -> float:
        number = super().convert(value, param, ctx)
        if not math.isfinite(number):
            self.fail(f"{number} is not a finite number", param, ctx)
        return number


POSITIVE = Finite(min=0, min_open=True)
NOT_NEGATIVE = Finite(min=0)

threads_option = click.option(
    "--threads",
    type=click.IntRange(1, MOST_THREADS),
    metavar="N",
    help="Threads to use. Default: OMP_NUM_THREADS, else the cores this process may use.",
)
lenient_option = click.option(
    "--lenient",
    is_flag=True,
    help="Accept data lines as svm-train does: blanks after a colon, words without a colon at the "
    "end (dropped), hexadecimal numbers. nan, inf and index 0 stay errors.",
)
scale_option = click.option(
    "--scale",
    "scale_file",
    metavar="FILE",
    help="Scale the data by a range file that svm-scale -s saved.",
)
version_option = click.version_option(dcsvm.__version__, message="%(prog)s %(version)s")


def guarded(command: Callable[[], int]) -> None:
    """Run the body of a command and exit with its status; one sentence for what goes wrong."""
    occupy_closed()
    try:
        with Interrupts():
            status = command()
    except KeyboardInterrupt:
        say("interrupted")
        status = INTERRUPTED
    except MemoryError:
        say("error: not enough memory")
        status = FAILED
    except OSError as error:
        say(f"error: {reason_of(error)}")
        status = FAILED
    except ValueError as error:
        say(f"error: {error}")
        status = FAILED
    sys.exit(status)


def read_data(path: str, *, lenient: bool, scale_file: str | None, threads: int, serials=None):
    """The data set that the options describe; `serials` as in `parse_dataset`."""
    from dcsvm.data.dataset import read_dataset
    from dcsvm.data.scaling import load_scaling

    scaling = None if scale_file is None else load_scaling(scale_file)
    return read_dataset(path, threads=threads, lenient=lenient, scaling=scaling, serials=serials)


def check_writable(path: str, *others: str | None) -> None:
    """Complain about a file that could not be written before the work for it is done, or that would
    replace one of the others, which the command reads or writes."""
    if path == "-" or (
        os.path.exists(path) and not os.path.isfile(path) and not os.path.isdir(path)
    ):
        return
    if os.path.isdir(path):
        raise IsADirectoryError(21, "is a directory", path)
    if os.path.realpath(path) in [os.path.realpath(other) for other in others if other]:
        raise FileExistsError(17, "the output would replace another file of the command", path)
    if os.path.exists(path) and not os.access(path, os.W_OK):
        raise PermissionError(13, "is not writable", path)
    folder = os.path.dirname(os.path.abspath(path))
    if not os.path.isdir(folder):
        raise FileNotFoundError(2, "no such folder", folder)
    if not os.access(folder, os.W_OK):
        raise PermissionError(13, "folder is not writable", folder)
