"""What both commands share: exit codes, the error boundary, options."""

from __future__ import annotations

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

FAILED, USAGE, NOT_CONVERGED, INTERRUPTED = 1, 2, 3, 130

# -h is LIBSVM's shrinking option, so help has only its long name
CONTEXT = {"help_option_names": ["--help"], "max_content_width": 100}

threads_option = click.option(
    "--threads",
    type=click.IntRange(min=1),
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
    try:
        with Interrupts():
            status = command()
            sys.stdout.flush()
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        status = FAILED
    except KeyboardInterrupt:
        click.echo("interrupted", err=True)
        status = INTERRUPTED
    except MemoryError:
        click.echo("error: not enough memory", err=True)
        status = FAILED
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        click.echo(
            f"error: {error.filename}: {reason}" if error.filename else f"error: {reason}", err=True
        )
        status = FAILED
    except ValueError as error:
        click.echo(f"error: {error}", err=True)
        status = FAILED
    sys.exit(status)


def read_data(path: str, *, lenient: bool, scale_file: str | None, threads: int, serials=None):
    """The data set that the options describe; `serials` as in `parse_dataset`."""
    from dcsvm.dataset import read_dataset
    from dcsvm.scaling import load_scaling

    scaling = None if scale_file is None else load_scaling(scale_file)
    return read_dataset(path, threads=threads, lenient=lenient, scaling=scaling, serials=serials)


def check_writable(path: str) -> None:
    """Complain about a file that could not be written before the work for it is done."""
    if path == "-" or (
        os.path.exists(path) and not os.path.isfile(path) and not os.path.isdir(path)
    ):
        return
    if os.path.isdir(path):
        raise IsADirectoryError(21, "is a directory", path)
    folder = os.path.dirname(os.path.abspath(path))
    if not os.path.isdir(folder):
        raise FileNotFoundError(2, "no such folder", folder)
    if not os.access(folder, os.W_OK):
        raise PermissionError(13, "folder is not writable", folder)
