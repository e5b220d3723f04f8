"""Arrays: checked and converted from the user's, sorted by group, allocated in memory or a file.

Group numbers are nonnegative integers; sorting, counting and reducing by them is faster than with
np.argsort and np.unique. Arrays of rows that do not fit in memory are in a mapped temporary file in
TMPDIR. It has no name, and the system deletes it when the process ends.

CSR rows have `indptr` int64 (n + 1,), `indices` int32 ascending within a row, and `values` float32
without zeros.
"""

from __future__ import annotations

import math
import mmap
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from decimal import Decimal
from fractions import Fraction
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from dcsvm import system
from dcsvm.data.files import DataError
from dcsvm.machine import available_memory, usable_memory

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, DTypeLike


DIGIT_BITS = 16  # NumPy uses radix sort for 16-bit integers, comparisons for longer ones
SPARSE = 8  # largest group number per entry; above it, np.bincount is slower than np.unique


def group_order(group: np.ndarray) -> np.ndarray:
    """Return the indices of the entries sorted by group, int64 (n,); the sort is stable."""
    order = np.argsort(group.astype(np.uint16), kind="stable")
    for shift in range(DIGIT_BITS, int(group.max(initial=0)).bit_length(), DIGIT_BITS):
        digits = (group >> shift).astype(np.uint16)
        order = order[np.argsort(digits[order], kind="stable")]
    return order


def distinct(values: np.ndarray) -> np.ndarray:
    """Return the different values, ascending.

    Without counts, np.unique of NumPy 2.4 imports numpy.ma: 14 ms of the start of a command.
    """
    return np.unique(values, return_counts=True)[0]


def numbered(values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the different values, ascending, and the index of each entry's value among them.

    `values` are integers from 0.
    """
    if values.max(initial=0) > SPARSE * len(values):
        return np.unique(values, return_inverse=True)
    is_present = np.zeros(values.max(initial=-1) + 1, bool)
    is_present[values] = True
    return np.flatnonzero(is_present), (np.cumsum(is_present) - 1)[values]


def group_sizes(group: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the groups with entries, ascending, and the number of entries of each, int64."""
    if group.max(initial=0) > SPARSE * len(group):
        return np.unique(group, return_counts=True)
    counts = np.bincount(group)
    groups = np.flatnonzero(counts)
    return groups, counts[groups]


def reduce_parts(
    ufunc: np.ufunc, values: np.ndarray, start: np.ndarray, initial: float = 0.0
) -> np.ndarray:
    """Reduce each of several consecutive parts, with the same bits as `ufunc.reduce`.

    Part c is values[start[c]:start[c + 1]]; `values` is float64 (n,), `start` int64 (n_parts + 1,).
    Returns float64 (n_parts,), `initial` for an empty part.
    """
    if len(start) == 2:
        return np.array([ufunc.reduce(values, initial=initial)])
    # each part starts with `initial`, as in `reduce`: otherwise sums round differently
    first = start[:-1] + np.arange(len(start) - 1)
    padded = np.full(len(values) + len(first), initial)
    is_value = np.ones(len(padded), bool)
    is_value[first] = False
    padded[is_value] = values
    return ufunc.reduceat(padded, first)


BATCH_SIZE = 2**20  # values per batch


def slices(end: int, size: int, begin: int = 0) -> list[slice]:
    """Return slices that split range(begin, end) into batches of max(size, 1)."""
    starts = range(begin, end, max(size, 1))
    return [slice(first, min(first + starts.step, end)) for first in starts]


MEMORY_SHARE = 0.6  # fraction of the usable memory for rows; the rest is for computations


def fits_memory(n_bytes: int) -> bool:
    """Return whether rows of this size may be held in memory."""
    return n_bytes <= min(MEMORY_SHARE * usable_memory(), available_memory())


def zeros(
    shape: tuple[int, ...], dtype: DTypeLike, name: str, total_bytes: int | None = None
) -> np.ndarray:
    """Allocate an array of zeros for rows.

    `name` is the file name for errors. `total_bytes` is the total size of all arrays that hold
    the rows; None means that this is the only one. Raises DataError if neither memory nor disk
    has enough space.
    """
    n_bytes = math.prod(shape) * np.dtype(dtype).itemsize
    if n_bytes == 0 or fits_memory(total_bytes or n_bytes):
        return np.zeros(shape, dtype)
    # rows that exceed the memory are in a temporary file, which the system drops with the process
    folder = "TMPDIR"
    try:
        folder = tempfile.gettempdir()
        free = shutil.disk_usage(folder).free
        if system.is_in_memory(folder):
            raise OSError("it is a file system in memory")
        if n_bytes > free:
            raise OSError(f"only {_mb(free)} MB are free")
        with tempfile.TemporaryFile(dir=folder) as file:
            system.reserve(file.fileno(), n_bytes)
            return np.asarray(np.memmap(file, dtype, "r+", shape=shape))
    except OSError as error:
        raise DataError(
            f"{name}: the rows take {_mb(n_bytes)} MB, more than the "
            f"{available_memory() // 1_000_000} MB of memory allow, and cannot be stored in "
            f"{folder} (TMPDIR): {error.strerror.lower() if error.strerror else error}"
        ) from error


def is_mapped(array: np.ndarray | None) -> bool:
    """Return whether an array is memory-mapped from a file on disk."""
    while isinstance(array, np.ndarray):
        if isinstance(array, np.memmap):
            name = array.filename
            return name is None or not system.is_in_memory(os.path.dirname(name))
        array = array.base
    return False


def _mb(n_bytes: int) -> int:
    return -(-n_bytes // 1_000_000)


BLOCK_BYTES = 2**25


def gather(source: np.ndarray, row_numbers: np.ndarray, out: np.ndarray) -> None:
    """Copy row row_numbers[i] of `source` (n, d) to row i of `out` (m, d), for all i.

    `out` is C-contiguous and may be mapped; indices may repeat.
    """
    size = max(BLOCK_BYTES // max(source[:1].nbytes, 1), 1)
    # rows of `out`, in the order of their source rows
    targets = np.argsort(row_numbers, kind="stable").astype(np.int32)
    blocks = slices(len(targets), size)
    filled = np.array([block.start for block in blocks])
    with page_by_page(out):
        for batch in blocks:
            target = targets[batch]
            target = target[np.argsort(target // size, kind="stable")]
            rows, begin = source[row_numbers[target]], 0
            for block, count in zip(*np.unique(target // size, return_counts=True), strict=True):
                out[filled[block] : filled[block] + count] = rows[begin : begin + count]
                filled[block] += count
                begin += count
    # each block of `out` now has its own rows, in source order: move them to their targets
    targets = targets[np.argsort(targets // size, kind="stable")]
    for batch in blocks:
        rows = np.array(out[batch])
        out[targets[batch]] = rows


@contextmanager
def page_by_page(array: np.ndarray | None) -> Iterator[None]:
    """Disable the system's read-ahead for a mapped array, for random access."""
    memory: object = array
    while memory is not None and not isinstance(memory, mmap.mmap):
        memory = getattr(memory, "base", None)
    if memory is None:
        yield
        return
    system.read_ahead(memory, is_on=False)
    try:
        yield
    finally:
        system.read_ahead(memory, is_on=True)


MAX_N_FEATURES = 2**31 - 2
MAX_INTEGER = 2**53  # float64 represents all integers up to this one
BYTES_OF_VALUE = 8  # a CSR value (float32) and its index (int32)
# real numbers in arrays of objects
NUMBERS = (bool, int, float, np.bool_, np.integer, np.floating, Decimal, Fraction)


def as_labels(y: ArrayLike) -> np.ndarray:
    """Convert labels or targets to float64 (n,) or strings. Raises ValueError."""
    labels = label_array(y).reshape(-1)
    row = first_missing(labels)
    if row is not None:
        raise RowError("the label of row", row, " is missing")
    if labels.dtype.kind in ("O", "T"):
        labels = _labels_of_objects(labels.tolist())
    if labels.dtype.kind == "U":
        return labels
    if labels.dtype.kind not in "biuf":
        raise ValueError("labels must be numbers, or strings all of them")
    if labels.dtype.kind in "iu" and np.any(np.abs(labels.astype(np.float64)) > MAX_INTEGER):
        raise ValueError("labels that are integers must be within 2^53 in size")
    return labels.astype(np.float64)


def has_label(labels: np.ndarray) -> np.ndarray:
    """Return which labels (n,) are known, bool (n,): neither nan nor an empty text."""
    if labels.dtype.kind == "f":
        return ~np.isnan(labels)
    # NumPy before 1.25 compares an array of integers with a text as a whole
    return labels != "" if labels.dtype.kind in "UO" else np.ones(len(labels), bool)


def _labels_of_objects(labels: list[Any]) -> np.ndarray:
    """Make an array of labels that are any objects. Raises ValueError."""
    are_text = [isinstance(label, str) for label in labels]
    if any(are_text) and not all(are_text):
        raise ValueError("labels must be numbers, or strings all of them")
    return array_of_numbers(labels)


def array_of_numbers(values: list[Any]) -> np.ndarray:
    """Make an array of objects, of numbers if decimals or fractions are among them."""
    is_exact = any(isinstance(one, (Decimal, Fraction)) for one in values)
    if is_exact and all(isinstance(one, NUMBERS) for one in values):
        return np.array([as_float(one) for one in values])
    return np.array(values)


def label_array(y: ArrayLike) -> np.ndarray:
    """Return labels as an array; a list of text with other values becomes one of objects."""
    labels = np.asarray(unmasked(y))
    if labels.dtype.kind == "U" and isinstance(y, (list, tuple)):
        objects = np.array(y, object)  # NumPy has made nan a word
        return labels if all(isinstance(one, str) for one in objects.flat) else objects
    return labels


def first_missing(labels: np.ndarray) -> int | None:
    """Return the first row of labels (n,) that has none, or None."""
    kind = labels.dtype.kind
    if kind in ("O", "T"):
        is_gap = np.array([is_missing(label) for label in labels.tolist()], bool)
    elif kind in "fMm":
        is_gap = np.isnan(labels) if kind == "f" else np.isnat(labels)
    else:
        return None
    return int(np.argmax(is_gap)) if is_gap.any() else None


def complete_labels(y: Any) -> Any:
    """Return labels as they are, without a mask. Raises RowError for the first missing one."""
    labels = label_array(y)
    row = first_missing(labels.reshape(-1)) if labels.ndim else None
    if row is not None:  # scikit-learn's words, and the row
        raise RowError("Input y contains NaN: the label of row", row, " is missing")
    return unmasked(y)


def unmasked(values: Any) -> Any:
    """Return a masked array as a plain one, where masked values are nan, or None among objects."""
    if not isinstance(values, np.ma.MaskedArray):
        return values
    if not np.ma.is_masked(values):
        return values.data
    kind = values.dtype.kind
    number = values.dtype if kind == "f" else np.float64
    plain = values.data.astype(number if kind in "biuf" else object)
    plain[np.ma.getmaskarray(values)] = np.nan if kind in "biuf" else None
    return plain


class RowError(ValueError):
    """An error that names a row, counted from 0; `after` counts it from another row."""

    def __init__(self, before: str, row: int, rest: str):
        super().__init__(before, row, rest)  # pickles have these arguments
        self.before, self.row, self.rest = before, row, rest

    def __str__(self) -> str:
        return f"{self.before} {self.row}{self.rest}"

    def after(self, n_rows: int) -> RowError:
        """Return the error of rows that follow `n_rows` others."""
        return RowError(self.before, self.row + n_rows, self.rest)


def is_missing(value: object) -> bool:
    """Return whether a value in an array of objects is missing: None, nan, NA or NaT."""
    is_nan = isinstance(value, (float, np.floating, Decimal)) and value != value
    return value is None or is_nan or type(value).__name__ in ("NAType", "NaTType")


def as_float64(values: ArrayLike, name: str) -> np.ndarray:
    """Convert numbers, which are named in errors, to float64. Raises ValueError."""
    array = np.asarray(unmasked(values))
    others = set() if array.dtype.kind in "biuf" else {str(array.dtype)}
    if array.dtype.kind == "O":
        kinds = {type(one) for one in array.flat}
        others = {one.__name__ for one in kinds if not issubclass(one, (*NUMBERS, type(None)))}
    if others:
        raise ValueError(f"{name} must be numbers, got values of type {min(others)}")
    return array.astype(np.float64, copy=False)


def as_weights(sample_weight: ArrayLike | None, n_rows: int) -> np.ndarray:
    """Convert sample weights to float64 (n_rows,), by default ones. Raises ValueError.

    A weight acts as the number of copies of a row. Rows of weight 0 are ignored.
    """
    if sample_weight is None:
        return np.ones(n_rows)
    weights = as_float64(sample_weight, "sample weights")
    if weights.shape != (n_rows,):
        raise ValueError(f"sample weights must have shape ({n_rows},), got {weights.shape}")
    for wrong, reason in ((~np.isfinite(weights), "finite numbers"), (weights < 0, "at least 0")):
        if wrong.any():
            row = int(np.argmax(wrong))
            raise ValueError(f"sample weights must be {reason}, got {weights[row]:g} (row {row})")
    # the sum scales the problem
    with np.errstate(over="ignore"):
        total = weights.sum()
    if not 0 < total < float("inf"):
        raise ValueError(
            f"the sum of the sample weights must be positive and finite, got {total:g}"
        )
    return weights


def check_form(shape: tuple[int, ...], dtype: np.dtype) -> None:
    """Raise ValueError unless the array is 2-D, real, and has at most MAX_N_FEATURES columns."""
    if len(shape) != 2:
        raise ValueError(f"expected rows and columns, got an array of {len(shape)} dimensions")
    if dtype.kind not in "biuf":
        raise ValueError(f"expected real numbers, got an array of {dtype}")
    if shape[1] > MAX_N_FEATURES:
        raise ValueError(f"rows must have at most {MAX_N_FEATURES} features, got {shape[1]}")


def as_matrix(X: ArrayLike) -> np.ndarray:
    """Return rows as an array; one of objects becomes float64, None is nan. Raises ValueError."""
    array = np.asarray(unmasked(X))
    if array.ndim != 2 or array.dtype.kind not in "OUST":
        return array
    numbers = np.full(array.shape, np.nan)
    for row, values in enumerate(array.tolist()):
        for column, value in enumerate(values):
            if isinstance(value, NUMBERS):
                numbers[row, column] = as_float(value)
            elif not is_missing(value):
                raise RowError(
                    f"expected real numbers, got {value!r:.40} in row", row,
                    f", column {column}; words need a data frame",
                )  # fmt: skip
    return numbers


def as_float(number: Any) -> float:
    """Convert a number to float; integers beyond its range become infinite."""
    try:
        return float(number)
    except OverflowError:
        return np.inf if number > 0 else -np.inf


def as_float32(array: ArrayLike) -> np.ndarray:
    """Convert to C-contiguous float32; values beyond its range become infinite."""
    with np.errstate(over="ignore", under="ignore"):
        return np.ascontiguousarray(array, dtype=np.float32)


def check_finite(
    values: np.ndarray,
    locate: Callable[[int], tuple[int, int]],
    problem: str = "is not a finite float32",
) -> None:
    """Raise ValueError for values that are not finite.

    `locate` turns a position in the flattened values into (row, column).
    """
    finite = np.isfinite(values)
    if not finite.all():
        row, column = locate(int(np.argmin(finite)))
        raise RowError("the value in row", row, f", column {column} {problem}")


class Csr(NamedTuple):
    """CSR arrays; they are shared, not copied: treat them as read-only.

    Values are float32 in Rows, float64 in batches of rows before scaling.
    """

    indptr: np.ndarray
    indices: np.ndarray
    values: np.ndarray

    @staticmethod
    def of_matrix(X: Any) -> Csr:
        """Return the float32 values of a SciPy sparse matrix. Raises ValueError.

        Values of float32 and indices of int32 that are sorted, without duplicates and zeros, are
        shared with a CSR matrix.
        """
        check_form(X.shape, X.dtype)
        matrix = X.tocsr()
        if matrix is X:  # the checks change attributes, which are the caller's
            matrix = type(X)((X.data, X.indices, X.indptr), shape=X.shape)
        matrix.check_format(full_check=True)
        if not matrix.has_canonical_format:
            matrix = matrix.copy()
            matrix.sum_duplicates()
        indptr = np.asarray(matrix.indptr, dtype=np.int64)
        csr = Csr(indptr, np.asarray(matrix.indices, dtype=np.int32), as_float32(matrix.data))
        check_finite(csr.values, csr.place_of)
        return csr.without_zeros()

    def without_zeros(self) -> Csr:
        """Drop the values that are zero; without any, the arrays are shared."""
        stored = self.values != 0
        if stored.all():
            return self
        indptr = np.concatenate(([0], np.cumsum(stored)))[self.indptr]
        return Csr(indptr, self.indices[stored], self.values[stored])

    def of_columns(self, columns: np.ndarray) -> np.ndarray:
        """Return the values of ascending columns, (n, n_columns); 0 where a row has none."""
        row, place, listed = self._places(columns)
        values = np.zeros((len(self.indptr) - 1, len(columns)), self.values.dtype)
        values[row[listed], place[listed]] = self.values[listed]
        return values

    def with_columns(self, columns: np.ndarray, values: np.ndarray) -> Csr:
        """Replace the values of ascending columns by those of `values` (n, n_columns)."""
        row, _, listed = self._places(columns)
        own_row, own = np.nonzero(values)
        rows = np.concatenate((row[~listed], own_row))
        indices = np.concatenate((self.indices[~listed], columns[own].astype(self.indices.dtype)))
        order = np.lexsort((indices, rows))
        merged = np.concatenate((self.values[~listed], values[own_row, own]))
        indptr = _indptr(np.bincount(rows, minlength=len(values)))
        return Csr(indptr, indices[order], merged[order])

    def _places(self, columns: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return for each value its row, its place in ascending columns, and whether it is one."""
        row = np.repeat(np.arange(len(self.indptr) - 1), np.diff(self.indptr))
        place = np.searchsorted(columns, self.indices)
        return row, place, np.append(columns, -1)[place] == self.indices

    def place_of(self, k: int) -> tuple[int, int]:
        """Return the row and the column of the k-th value."""
        return int(np.searchsorted(self.indptr, k, side="right")) - 1, int(self.indices[k])

    @staticmethod
    def of_dense(dense: np.ndarray, dtype: DTypeLike = np.float32) -> Csr:
        batches = slices(len(dense), BATCH_SIZE // max(dense.shape[1], 1))
        lengths = [np.count_nonzero(dense[rows], axis=1) for rows in batches]
        indptr = _indptr(np.concatenate([np.zeros(0, np.int64), *lengths]))
        indices, values = np.empty(indptr[-1], np.int32), np.empty(indptr[-1], dtype)
        for rows in batches:
            part = slice(indptr[rows.start], indptr[rows.stop])
            row, indices[part] = np.nonzero(dense[rows])
            values[part] = dense[rows][row, indices[part]]
        return Csr(indptr, indices, values)

    @staticmethod
    def joined(parts: Sequence[Csr]) -> Csr:
        """Join the rows of all parts, at least one, in order."""
        indptr = _indptr(np.concatenate([np.diff(part.indptr) for part in parts]))
        indices, values = (np.concatenate([part[k] for part in parts]) for k in (1, 2))
        return Csr(indptr, indices, values)

    def part(self, rows: slice) -> Csr:
        """Return consecutive rows; their indices and values are views of these arrays."""
        indptr = self.indptr[rows.start : rows.stop + 1]
        values = slice(indptr[0], indptr[-1])
        return Csr(indptr - indptr[0], self.indices[values], self.values[values])

    def take(self, row_numbers: np.ndarray) -> Csr:
        """Copy the rows with the given indices, in that order; indices may repeat.

        If these rows are mapped, the copy is mapped too unless it fits in memory.
        """
        starts = self.indptr[row_numbers]
        lengths = self.indptr[row_numbers + 1] - starts
        indptr = _indptr(lengths)
        size = (indptr[-1].item(),)
        make: Callable[[tuple[int], DTypeLike], np.ndarray] = np.empty
        if is_mapped(self.values):
            make = partial(zeros, name="the rows", total_bytes=BYTES_OF_VALUE * size[0])
        taken = Csr(indptr, make(size, self.indices.dtype), make(size, self.values.dtype))
        for rows in slices(len(starts), BATCH_SIZE // max(size[0] // max(len(starts), 1), 1)):
            part = slice(indptr[rows.start], indptr[rows.stop])
            shift = starts[rows] - indptr[rows]
            source = np.arange(part.start, part.stop) + np.repeat(shift, lengths[rows])
            taken.indices[part], taken.values[part] = self.indices[source], self.values[source]
        return taken


def _indptr(lengths: np.ndarray) -> np.ndarray:
    indptr = np.zeros(len(lengths) + 1, np.int64)
    np.cumsum(lengths, out=indptr[1:])
    return indptr
