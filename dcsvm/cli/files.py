"""Files that the arguments name: the data, read as the options say, and what will be written."""

from __future__ import annotations

import os


def read_data(path: str, *, lenient: bool, scale_file: str | None, threads: int, serials=None):
    """The data set that the options describe; `serials` as in `parse_dataset`."""
    from dcsvm.data.dataset import read_dataset

    scaling = None
    if scale_file is not None:
        from dcsvm.data.range_file import load_scaling

        scaling = load_scaling(scale_file)
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
