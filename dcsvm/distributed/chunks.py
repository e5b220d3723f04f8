"""Chunks of rows, what tasks hold: their form, what is known of them, some of their rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from dask.sizeof import sizeof

from dcsvm.data.rows import Rows, Storage, stacked, storage_of
from dcsvm.kernel.kernel_sums import Terms
from dcsvm.solving.checkpoint import digest_of


@dataclass(frozen=True, eq=False)
class Section:
    """Consecutive rows as they were read, and their labels or targets (n,). A chunk has one or
    more."""

    rows: Rows
    labels: np.ndarray


def kept(*values) -> tuple:
    """Values from the client for many tasks: it sends them to one, and workers to each other."""
    return values


def nbytes_of(value) -> int:
    """Bytes of the arrays in a value."""
    if isinstance(value, np.ndarray):
        return value.nbytes
    if isinstance(value, (list, tuple)):
        return sum(nbytes_of(one) for one in value)
    if hasattr(value, "__dataclass_fields__"):
        return sum(nbytes_of(getattr(value, name)) for name in value.__dataclass_fields__)
    return 0


# Dask places tasks where most of the bytes are that they need, and knows those of arrays only
sizeof.register((Rows, Section, Terms), nbytes_of)


@dataclass(frozen=True, eq=False)
class Facts:
    """What the client has to know of a section: `n_values` are not zero, their sum is the `total`
    and that of their `squares`; `nbytes` are those of the rows, `digest` that of their values where
    it is wanted."""

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
    """The form of all rows: how many features, in which storage."""

    n_features: int
    storage: Storage

    @staticmethod
    def of_all(facts: Sequence[Facts]) -> Form:
        """That which the rows of all sections would have in one memory."""
        n_rows, n_values = (sum(getattr(one, name) for one in facts) for name in
                            ("n_rows", "n_values"))  # fmt: skip
        n_features = max(one.n_features for one in facts)
        are_bytes = all(one.are_bytes for one in facts)
        return Form(n_features, storage_of(n_rows, n_features, n_values, are_bytes=are_bytes))

    @property
    def no_rows(self) -> Rows:
        none, start = np.zeros(0, np.float32), np.zeros(1, np.int64)
        rows = Rows(0, self.n_features, indptr=start, indices=none.astype(np.int32), values=none)
        return rows.in_storage(self.storage)


def facts_of(chunk: Sequence[Section], *, with_digest: bool) -> list[Facts]:
    """Of each section of a chunk."""
    return [_facts_of(section, with_digest=with_digest) for section in chunk]


def _facts_of(section: Section, *, with_digest: bool) -> Facts:
    rows = section.rows
    values = rows.values if rows.dense is None else rows.dense.reshape(-1)
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
    """The rows of a chunk in a form."""
    sections = [section for section in chunk if section.rows.n_samples]
    return put_together([_formed(section, form) for section in sections], None)


def _formed(section: Section, form: Form) -> Rows:
    return section.rows.with_features(form.n_features).in_storage(form.storage)


def taken(rows: Rows, numbers: np.ndarray | None) -> Rows:
    """Some of the rows, None for all."""
    return rows if numbers is None else rows.take(numbers)


def put_together(pieces: Sequence[Rows], order: np.ndarray | None) -> Rows:
    """Rows of several pieces in an order, which has a place among all of them for each row."""
    return taken(pieces[0] if len(pieces) == 1 else stacked(*pieces), order)
