"""A model as text; file.py says what the file looks like, reader.py reads it.

Keys and their order are LIBSVM's, and so is the order of coefficients and support vectors.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from dcsvm import _core, _svmlight
from dcsvm.data.rows import ChosenRows, Rows
from dcsvm.data.sorting import AT_ONCE, slices
from dcsvm.kernel.kernels import Kernel
from dcsvm.model.pair_weights import is_seen
from dcsvm.model.parts import EarlyModel, ExactModel, ModelParts, Worth

SECTION = "dcsvm_section"
EARLY_ONLY = "dcsvm_early_model"
RANGE_FILE = "range_file_crc32"
FIRST_INDEX = "first_index"  # of the features, where that is 0
VERSION = "4"
FORMATS = ("dcsvm", "libsvm")


def plain(number: float) -> str:
    """A label as LIBSVM writes it: an integer without a point, else all digits."""
    number = float(number)
    return str(int(number)) if number.is_integer() and abs(number) < 2**53 else repr(number)


def model_text(model: ModelParts, format: str = "dcsvm"):
    """The file, in parts of bytes. Raises ValueError for what the format cannot hold."""
    if format not in FORMATS:
        raise ValueError(f"the format must be one of {', '.join(FORMATS)}, not {format!r}")
    if model.labels.dtype.kind == "U":
        raise ValueError(
            "a model file keeps numbers, and the labels of this model are strings: train with "
            "numbers to save it"
        )
    if format == "libsvm":
        _check_libsvm(model)
    if model.exact is None:
        yield _joined([f"{EARLY_ONLY} {VERSION}", *_problem_lines(model), *_file_lines(model)])
        yield from _early_text(model.early, None, Digits(model.first_index))
        return
    exact = model.exact
    lines = _problem_lines(model, exact)
    yield _joined([*lines, "SV"])
    digits = Digits(model.first_index, _needs_digits(model))
    yield from _row_lines(exact.rows, exact.dual_coef, digits)
    if exact.row_numbers is None or format == "libsvm":
        return
    yield _joined(
        [
            f"{SECTION} {VERSION}",
            *_file_lines(model),
            f"n_features {exact.rows.n_features}",
            f"rows {_form(exact.rows)}",
        ]
    )
    yield b"row_numbers"
    for some in slices(len(exact.row_numbers), AT_ONCE // 8):
        yield f" {_listed(exact.row_numbers[some] + 1)}".encode()
    yield _joined(["", *_worth_lines(exact.worth)])
    if model.early is not None:
        yield from _early_text(model.early, exact, Digits(model.first_index))


def _check_libsvm(model: ModelParts) -> None:
    if model.exact is None:
        raise ValueError("LIBSVM has no early models, and this model has no exact solution")
    if not model.kernel.type.is_in_libsvm:
        raise ValueError(f"LIBSVM has no kernel {model.kernel.name}")
    for label in model.labels:
        if not (label.is_integer() and abs(label) < 2**31):
            raise ValueError(f"LIBSVM's labels are whole numbers, not {plain(label)}")


def _joined(lines: list[str]) -> bytes:
    return "\n".join([*lines, ""]).encode()


def _listed(numbers) -> str:
    return " ".join(map(plain, numbers))


def _kernel_lines(kernel: Kernel) -> list[str]:
    values = kernel.parameters.items()
    return [f"kernel_type {kernel.name}", *(f"{name} {value!r}" for name, value in values)]


def _problem_lines(model: ModelParts, exact: ExactModel | None = None) -> list[str]:
    """The header, with what only an exact model has where LIBSVM has it."""
    lines = [f"svm_type {model.svm_type}", *_kernel_lines(model.kernel)]
    lines += [f"nr_class {len(model.labels) if model.is_classifier else 2}"]
    if exact is not None:
        lines += [f"total_sv {exact.rows.n_samples}", f"rho {_listed(exact.rho)}"]
    if model.is_classifier:
        lines += [f"label {_listed(model.labels)}"]
    if model.probability is not None:
        lines += [f"probA {_listed(model.probability.A)}"]
        if model.probability.B is not None:
            lines += [f"probB {_listed(model.probability.B)}"]
    if exact is not None and exact.n_sv is not None:
        lines += [f"nr_sv {_listed(exact.n_sv)}"]
    return lines


def _file_lines(model: ModelParts) -> list[str]:
    """Return the lines on the training file."""
    crc32 = model.range_file_crc32
    lines = [] if crc32 is None else [f"{RANGE_FILE} {crc32}"]
    return lines if model.first_index == 1 else [*lines, f"{FIRST_INDEX} {model.first_index}"]


def _worth_lines(worth: Worth | None) -> list[str]:
    if worth is None:
        return []
    lines = [f"converged {int(worth.converged)}", f"violation {worth.violation!r}"]
    return lines if worth.gap is None else [*lines, f"gap {worth.gap!r}"]


def _form(rows: Rows | ChosenRows) -> str:
    rows = rows.part(slice(0, 0))
    if rows.columns is not None:
        return "serials"
    return "dense" if rows.is_dense else "sparse"


def _early_text(early: EarlyModel, exact: ExactModel | None, digits: Digits):
    """The early section: centers (level, cluster, then the row), a line of rho for each cluster,
    then support vectors (cluster, class, row number, where the features are that are not repeated,
    coefficients, then the row)."""
    partition, n_sv = early.partition, early.rows.n_samples
    forks = partition.forks
    lines = [f"early_level {early.level}"]
    if exact is None:
        lines += [f"n_features {early.rows.n_features}", f"rows {_form(early.rows)}"]
    lines += [f"n_clusters {partition.n_clusters}", f"blend {float(partition.blend)!r}"]
    lines += [f"n_parts {_listed(np.concatenate([fork.n_parts for fork in forks]))}"]
    lines += [f"center_{line}" for line in _kernel_lines(partition.kernel)]
    if partition.kernel.is_precomputed:  # they do not follow from the sample
        lines += [f"center_products {_listed(np.concatenate([one.products for one in forks]))}"]
    lines += [f"total_center_rows {partition.sample.n_samples}", f"total_early_sv {n_sv}"]
    yield _joined([*lines, "CENTERS"])
    level = np.repeat(np.arange(len(forks)), [len(fork.part) for fork in forks]) + 1
    cluster = np.concatenate([fork.cluster for fork in forks])
    yield from _row_lines(partition.sample, [level, cluster], digits)
    yield _joined(["EARLY_RHO", *map(_listed, early.rho), "EARLY_SV"])
    elsewhere = _elsewhere(early, exact)
    class_ = np.zeros(n_sv, np.int8) if early.class_ is None else early.class_
    prefix = [early.cluster, class_, early.row_numbers + 1, elsewhere, *early.dual_coef]
    yield from _row_lines(early.rows, prefix, digits, blank=elsewhere > 0)


def _elsewhere(early: EarlyModel, exact: ExactModel | None) -> np.ndarray:
    """Where the features of each early support vector are: 0 with it, 1 with the exact one of the
    same row, 2 with the first early one."""
    place = np.zeros(early.rows.n_samples, np.int8)
    if _form(early.rows) == "serials":
        return place
    again = np.ones(len(place), bool)
    again[np.unique(early.row_numbers, return_index=True)[1]] = False
    place[again] = 2
    if exact is not None:
        place[np.isin(early.row_numbers, exact.row_numbers)] = 1
    return place


@dataclass(frozen=True)
class Digits:
    """How features are written: the index of the first one, and whether values have the digits by
    which float64 is the same number as float32."""

    first_index: int
    float64: bool = False


def _needs_digits(model: ModelParts) -> bool:
    """Whether terms of the decision values are so large that LIBSVM's tools, which read features as
    float64, have to read the numbers that float32 holds."""
    largest, rows = 1.0, model.exact.rows
    if model.kernel.is_precomputed:
        return False
    if not model.kernel.type.is_within_one:
        norms = [_largest_norm(rows.part(some)) for some in _parts(rows, 1)]
        largest = model.kernel.largest_value(max(norms, default=0.0))
    return is_seen(2.0**-24 * largest * np.abs(model.exact.dual_coef).max(initial=0.0), 1.0)


def _largest_norm(rows: Rows) -> float:
    """|x|^2 of the longest row."""
    return _core.Points(rows.as_floats(), 1).largest_squared_norm


def _parts(rows: Rows | ChosenRows, n_prefix: int):
    return slices(rows.n_samples, AT_ONCE // 4 // (rows.row_size + n_prefix))


def _row_lines(rows: Rows | ChosenRows, prefix, digits: Digits, *, blank: np.ndarray | None = None):
    """A line for each row: the numbers before it, from the columns of `prefix`, then its features,
    none where it is `blank`. In parts, for which rows are taken one after the other."""
    for some in _parts(rows, len(prefix)):
        numbers = np.column_stack([column[some] for column in prefix]).astype(np.float64)
        part = rows.part(some).as_floats()
        yield _lines(numbers, part if blank is None else _blanked(part, blank[some]), digits)


def _lines(prefix: np.ndarray, rows: Rows, digits: Digits) -> bytes:
    if rows.columns is not None:
        return b"".join(
            f"{' '.join(map(repr, line))} 0:{serial} \n".encode()
            for line, serial in zip(prefix.tolist(), (rows.columns + 1).tolist(), strict=True)
        )
    if not rows.is_dense:
        return _svmlight.write_csr(
            prefix, rows.indptr, rows.indices, rows.values,
            first_index=digits.first_index, float64=digits.float64,
        )  # fmt: skip
    if rows.n_features == 0:
        return b"".join(
            b" ".join(repr(v).encode() for v in line) + b" \n" for line in prefix.tolist()
        )
    return _svmlight.write_dense(
        prefix, rows.dense, first_index=digits.first_index, float64=digits.float64
    )


def _blanked(rows: Rows, blank: np.ndarray) -> Rows:
    """The rows with those marked as all zero."""
    if not blank.any():
        return rows
    if rows.is_dense:
        return replace(rows, dense=np.where(blank[:, None], np.float32(0), rows.dense))
    lengths = np.diff(rows.indptr)
    keep = np.repeat(~blank, lengths)
    indptr = np.concatenate(([0], np.cumsum(np.where(blank, 0, lengths))))
    return replace(rows, indptr=indptr, indices=rows.indices[keep], values=rows.values[keep])
