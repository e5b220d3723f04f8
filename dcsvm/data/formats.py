"""Formats of data files, by name; without NumPy, for the help of the commands."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

FORMATS = ("csv", "tsv", "parquet", "arrow", "libsvm")
ENDINGS = {
    "csv": "csv", "tsv": "tsv", "tab": "tsv", "parquet": "parquet", "pq": "parquet",
    "arrow": "arrow", "feather": "arrow", "ipc": "arrow",
}  # fmt: skip
PACKED = (".gz", ".bz2", ".xz")


@dataclass(frozen=True)
class FileOptions:
    """How a file is read, see `Dataset.read`; None means the default."""

    format: str | None = None
    label: str | None = None
    drop: Sequence[str] = ()
    weight: str | None = None
    lenient: bool = False
    kernel_values: bool = False
    threads: int | None = None


def table_format(path: str, given: str | None = None) -> str | None:
    """Return the format of a table by `given` or its name; None for LIBSVM text."""
    if given is not None:
        return None if given == "libsvm" else given
    name = path.lower()
    for ending in PACKED:
        name = name.removesuffix(ending)
    return ENDINGS.get(name.rpartition(".")[2]) if "." in name else None
