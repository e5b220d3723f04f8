"""Chunks of rows, held by tasks: their statistics, common storage, and selections of rows."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from dask.sizeof import sizeof

from dcsvm.data.rows import Rows, Storage, stacked, storage_of
from dcsvm.kernel.kernel_sums import Terms
from dcsvm.solving.checkpoint import digest_of


@dataclass(frozen=True, eq=False)
class Section:
    """Consecutive rows as read, with labels or targets (n,); a chunk has one or more."""

    rows: Rows
    labels: np.ndarray


def share(*values: object) -> tuple[object, ...]:
    """Return the arguments; as a task, it sends values once, and workers pass them on."""
    return values


def nbytes_of(value: object) -> int:
    """Count the bytes of the arrays in a value."""
    if isinstance(value, np.ndarray):
        return value.nbytes
    if isinstance(value, (list, tuple)):
        return sum(nbytes_of(one) for one in value)
    if hasattr(value, "__dataclass_fields__"):
        return sum(nbytes_of(getattr(value, name)) for name in value.__dataclass_fields__)
    return 0


# Dask runs a task on the worker with most bytes of its arguments, and knows the size of arrays only
sizeof.register((Rows, Section, Terms), nbytes_of)


@dataclass(frozen=True, eq=False)
class Facts:
    """Statistics of a section, for the client.

    `n_values` values are not zero; `total` and `squares` are the sums of all values and of their
    squares. `nbytes` is the size of the rows, `digest` a digest of the values for checkpoints.
    """

    n_rows: int
    n_features: int
    n_values: int
    are_bytes: bool
    nbytes: int
    total: float
    squares: float
    labels: np.ndarray
    digest: str | None = None


@dataclass(frozen=True)
class Form:
    """The storage format of all rows, and their number of features."""

    n_features: int
    storage: Storage

    @staticmethod
    def of_all(facts: Sequence[Facts]) -> "Form":
        """Choose the format that all sections would have as rows of one process."""
        n_rows, n_values = sum(one.n_rows for one in facts), sum(one.n_values for one in facts)
        n_features = max(one.n_features for one in facts)
        are_bytes = all(one.are_bytes for one in facts)
        return Form(n_features, storage_of(n_rows, n_features, n_values, are_bytes=are_bytes))

    @property
    def no_rows(self) -> Rows:
        """Make an empty matrix of this format."""
        empty, start = np.zeros(0, np.float32), np.zeros(1, np.int64)
        rows = Rows(0, self.n_features, indptr=start, indices=empty.astype(np.int32), values=empty)
        return rows.in_storage(self.storage)


def facts_of(chunk: Sequence[Section], *, with_digest: bool) -> list[Facts]:
    """Compute the statistics of each section of a chunk."""
    return [_facts_of(section, with_digest=with_digest) for section in chunk]


def _facts_of(section: Section, *, with_digest: bool) -> Facts:
    rows = section.rows
    values = rows.values if rows.dense is None else rows.dense.reshape(-1)
    assert values is not None  # rows are dense or CSR
    return Facts(
        rows.n_samples,
        rows.n_features,
        rows.count_values(),
        rows.are_bytes(),
        rows.nbytes,
        float(values.sum(dtype=np.float64)),
        float(np.einsum("i,i->", values, values, dtype=np.float64)),
        section.labels,
        digest_of(rows) if with_digest else None,
    )


def formed(chunk: Sequence[Section], form: Form) -> Rows:
    """Convert the rows of a chunk to a storage format."""
    return put_together([_formed(one, form) for one in chunk if one.rows.n_samples], None)


def _formed(section: Section, form: Form) -> Rows:
    return section.rows.with_features(form.n_features).in_storage(form.storage)


def taken(rows: Rows, indices: np.ndarray | None) -> Rows:
    """Select rows; None selects all."""
    return rows if indices is None else rows.take(indices)


def put_together(pieces: Sequence[Rows], order: np.ndarray | None) -> Rows:
    """Concatenate pieces and reorder the rows; row i of the result is row order[i]."""
    return taken(pieces[0] if len(pieces) == 1 else stacked(*pieces), order)
