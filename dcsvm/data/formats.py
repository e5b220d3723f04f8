"""Formats of data files, by name; without NumPy, for the help of the commands."""

from __future__ import annotations

FORMATS = ("csv", "tsv", "parquet", "arrow", "libsvm")
ENDINGS = {
    "csv": "csv", "tsv": "tsv", "tab": "tsv", "parquet": "parquet", "pq": "parquet",
    "arrow": "arrow", "feather": "arrow", "ipc": "arrow",
}  # fmt: skip
PACKED = (".gz", ".bz2", ".xz")


def table_format(path: str, given: str | None = None) -> str | None:
    """Return the format of a table by `given` or its name; None for LIBSVM text."""
    if given is not None:
        return None if given == "libsvm" else given
    name = path.lower()
    for ending in PACKED:
        name = name.removesuffix(ending)
    return ENDINGS.get(name.rpartition(".")[2]) if "." in name else None
