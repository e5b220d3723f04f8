"""Write a model as text; reader.py describes the file and reads it.

Keys, coefficients and support vectors are in LIBSVM's order. The encoding of a table is written and
read here: words of JSON without spaces.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, replace
from typing import Any, TypeVar

import numpy as np

from dcsvm import _core, _svmlight
from dcsvm.data.arrays import BATCH_SIZE, Csr, slices
from dcsvm.data.columns import Column, TableEncoding
from dcsvm.data.notations import (
    BOOLEAN,
    CATEGORY,
    DATE,
    KINDS,
    MAX_DAYS,
    MAX_WORDS,
    ORDERS,
    PARTS,
    PLAIN,
    Notation,
)
from dcsvm.data.rows import ChosenRows, Rows
from dcsvm.data.scaling import Interval, Offsets, Scaling
from dcsvm.kernel.kernels import Kernel
from dcsvm.machine import usable_threads
from dcsvm.model.parts import ConvergenceStatus, EarlyModel, ExactModel, ModelParts, Probability
from dcsvm.model.predict import is_seen

# keys of a model file; LABEL_NAMES are the labels that the numbers of `label` stand for
TABLE, TABLE_LABEL, LABEL_NAMES = "table_columns", "table_label", "label_names"
TABLE_KEYS = {TABLE, TABLE_LABEL, LABEL_NAMES}


def word_of(value: object) -> str:
    """Return JSON without whitespace: one word of a line."""
    return json.dumps(value, separators=(",", ":")).replace(" ", "\\u0020")


def table_lines(table: TableEncoding) -> list[str]:
    """Return the lines of an encoding."""
    words = [word_of(_values(column)) for column in table.columns]
    label = {"name": table.label, "has_names": table.has_names}
    return [f"{TABLE} {' '.join(words)}".rstrip(), f"{TABLE_LABEL} {word_of(label)}"]


def _values(column: Column) -> dict[str, Any]:
    values: dict[str, Any] = {"name": column.name, "kind": column.kind}
    if column.kind == CATEGORY:
        return values | {"categories": column.categories}
    if column.kind == BOOLEAN:
        return values | ({"fill": column.fill} if column.fill else {})
    values |= {"fill": column.fill, "missing": column.has_indicator}
    if column.kind == DATE:
        values |= {"first": column.first, "parts": column.parts}
    notation, plain = asdict(column.notation), asdict(PLAIN)
    return values | {key: one for key, one in notation.items() if one != plain[key]}


def table_of(columns: list[str], label: list[str]) -> TableEncoding:
    """Return the encoding in the words of TABLE and TABLE_LABEL. Raises ValueError."""
    encoded = [_column_of(_object(word)) for word in columns]
    if len({column.name for column in encoded}) < len(encoded):
        raise ValueError("two columns have the same name")
    if len(label) != 1:
        raise ValueError("must be one JSON object")
    values = _object(label[0])
    name, has_names = values.get("name"), values.get("has_names")
    if not (name is None or isinstance(name, str)) or not isinstance(has_names, bool):
        raise ValueError("must have a name and has_names")
    return TableEncoding(tuple(encoded), name, has_names)


def text_of(word: str) -> str:
    """Return the text of a JSON word. Raises ValueError."""
    value = _parsed(word)
    if not isinstance(value, str):
        raise ValueError(f"{word[:40]!r} is no JSON text")
    return value


def _parsed(word: str) -> Any:
    try:
        return json.loads(word)
    except (ValueError, RecursionError):
        raise ValueError(f"{word[:40]!r} is not JSON") from None


def _object(word: str) -> dict[str, Any]:
    value = _parsed(word)
    if not isinstance(value, dict):
        raise ValueError(f"{word[:40]!r} is no JSON object")
    return value


def _column_of(values: dict[str, Any]) -> Column:
    name, kind = values.get("name"), values.get("kind")
    if not isinstance(name, str) or kind not in KINDS:
        raise ValueError("a column must have a name and a kind")

    def check(key: str, is_right: bool) -> None:
        if not is_right:
            raise ValueError(f"column {name[:40]!r} has a wrong {key}")

    fill, missing = values.get("fill", 0.0), values.get("missing", False)
    first, parts = values.get("first", 0.0), values.get("parts", [])
    largest = MAX_DAYS if kind == DATE else float(np.finfo(float).max)
    check("fill or missing", _is_number(fill, largest) and isinstance(missing, bool))
    check("first", _is_number(first, MAX_DAYS))
    check("parts", _are_texts(parts) and set(parts) <= set(PARTS) and (kind != DATE or parts))
    categories = values.get("categories", [])
    check("categories", _are_texts(categories))
    own = {key: values[key] for key in asdict(PLAIN) if key in values}
    words = own.get("words", [])
    check("words", _are_texts(words) and len(words) <= MAX_WORDS)
    notation = Notation(**(own | {"words": tuple(words)}))
    check("decimal", notation.decimal in ("", ".", ","))
    check("thousands", notation.thousands in ("", ".", ","))
    check("unit", isinstance(notation.unit, str))
    check("order", notation.order in ORDERS)
    return Column(
        name, kind, float(fill), missing, tuple(categories), notation, float(first), tuple(parts)
    )


def _is_number(value: Any, largest: float) -> bool:
    """Return whether a value is a finite number of at most a size."""
    is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
    return is_number and abs(value) <= largest


def _are_texts(values: Any) -> bool:
    """Return whether values are a list of different texts."""
    return (
        isinstance(values, list)
        and all(isinstance(one, str) for one in values)
        and len(set(values)) == len(values)
    )


SECTION = "dcsvm_section"
EARLY_ONLY = "dcsvm_early_model"
SCALING = "scaling"  # its value is minmax, quantile or shift; the other keys of a scaling follow
COLUMNS, WEIGHTS, LIMITS, MINIMA, MAXIMA, N_KNOTS, KNOTS, LEVELS = (
    f"scaling_{key}"
    for key in ("columns", "weights", "limits", "minima", "maxima", "n_knots", "knots", "levels")
)
DENSITY_MARKS = "prob_density_marks"  # of one-class models, in LIBSVM 3.3 and later
FIRST_INDEX = "first_index"  # index of the first feature; written only if it is 0
VERSION = "4"
FORMATS = ("dcsvm", "libsvm")


def label_text(number: float | str) -> str:
    """Format a label as LIBSVM does: integers without a decimal point, others with all digits."""
    if isinstance(number, str):
        return str(number)
    number = float(number)
    return str(int(number)) if number.is_integer() and abs(number) < 2**53 else repr(number)


def model_text(
    model: ModelParts, format: str = "dcsvm", threads: int | None = None
) -> Iterator[bytes]:
    """Yield the file in parts. Raises ValueError if the format cannot hold the model."""
    threads = usable_threads(threads)
    if format not in FORMATS:
        raise ValueError(f"format must be one of {', '.join(FORMATS)}, got {format!r}")
    exact, early = model.exact, model.early
    if format == "libsvm":
        _check_libsvm(model)
    if exact is None:
        assert early is not None  # a model has at least one of the two parts
        yield _joined(
            [
                f"{EARLY_ONLY} {VERSION}",
                *_problem_lines(model),
                *_section_lines(model, early.rows),
                *_early_lines(early),
            ]
        )
    else:
        row_numbers = None if format == "libsvm" else exact.row_numbers
        # LIBSVM's readers skip the words after SV in its line
        last = "SV" if row_numbers is None else f"SV {SECTION}"
        yield _joined([*_problem_lines(model, exact), last])
        float64 = _needs_float64_digits(model.kernel, exact)
        coefficients = [*exact.dual_coef]
        yield from _row_lines(exact.rows, coefficients, model, threads, float64=float64)
        if row_numbers is None:
            return
        yield _joined(
            [
                f"{SECTION} {VERSION}",
                *_section_lines(model, exact.rows),
                *_status_lines(exact.status),
                *_early_lines(early),
            ]
        )
        # the last line that every section has, so that a truncated file is noticed
        yield b"row_numbers"
        for batch in slices(len(row_numbers), BATCH_SIZE // 8):
            yield f" {_listed(row_numbers[batch] + 1)}".encode()
        yield b"\n"
    if early is not None:
        yield from _early_text(early, exact, model, threads)


def _check_libsvm(model: ModelParts) -> None:
    if model.exact is None:
        raise ValueError("LIBSVM has no early models, and this model has no exact solution")
    if not model.kernel.type.is_in_libsvm:
        raise ValueError(f"LIBSVM has no kernel {model.kernel.name}")
    if model.labels.dtype.kind == "U":
        raise ValueError("LIBSVM's labels must be integers, got text")
    for label in model.labels:
        if not (label.is_integer() and abs(label) < 2**31):
            raise ValueError(f"LIBSVM's labels must be integers, got {label_text(label)}")


def _joined(lines: list[str]) -> bytes:
    return "\n".join([*lines, ""]).encode()


def _listed(numbers: Iterable[float]) -> str:
    if isinstance(numbers, np.ndarray) and numbers.dtype.kind == "i":
        return " ".join(map(str, numbers.tolist()))
    return " ".join(map(label_text, numbers))


def _kernel_lines(kernel: Kernel) -> list[str]:
    values = kernel.parameters.items()
    return [f"kernel_type {kernel.name}", *(f"{name} {value!r}" for name, value in values)]


def _problem_lines(model: ModelParts, exact: ExactModel | None = None) -> list[str]:
    """Return the lines of LIBSVM's header, without total_sv, rho and nr_sv if `exact` is None."""
    lines = [f"svm_type {model.svm_type}", *_kernel_lines(model.kernel)]
    lines += [f"nr_class {len(model.labels) if model.is_classifier else 2}"]
    if exact is not None:
        lines += [f"total_sv {exact.rows.n_samples}", f"rho {_listed(exact.rho)}"]
    if model.is_classifier:
        is_text = model.labels.dtype.kind == "U"
        lines += [f"label {_listed(range(len(model.labels)) if is_text else model.labels)}"]
    if model.probability is not None:
        name = DENSITY_MARKS if model.svm_type == "one_class" else "probA"
        lines += [f"{name} {_listed(model.probability.A)}"]
        if model.probability.B is not None:
            lines += [f"probB {_listed(model.probability.B)}"]
    if exact is not None and exact.n_sv is not None:
        lines += [f"nr_sv {_listed(exact.n_sv)}"]
    return lines


def _section_lines(model: ModelParts, rows: Rows) -> list[str]:
    """Return the lines with the first index, text labels, table, scaling and form of the rows."""
    lines = [] if model.first_index == 1 else [f"{FIRST_INDEX} {model.first_index}"]
    if model.labels.dtype.kind == "U":
        lines += [f"{LABEL_NAMES} {' '.join(map(word_of, model.labels.tolist()))}"]
    if model.table is not None:
        lines += table_lines(model.table)
    if model.scaling is not None:
        lines += _scaling_lines(model.scaling)
    return [*lines, f"n_features {rows.n_features}", f"rows {_form(rows)}"]


def _scaling_lines(scaling: Scaling) -> list[str]:
    """Return a line with the kind of scaling, then a line for each of its arrays."""
    maps = scaling.features
    arrays: dict[str, np.ndarray | list[float]] = {COLUMNS: scaling.indices}
    if scaling.weights is not None:
        arrays[WEIGHTS] = scaling.weights
    if isinstance(maps, Offsets):
        arrays[MINIMA] = maps.offset
    elif isinstance(maps, Interval):
        arrays |= {LIMITS: [maps.lower, maps.upper], MINIMA: maps.minimum, MAXIMA: maps.maximum}
    else:
        arrays |= {N_KNOTS: np.diff(maps.start), KNOTS: maps.knots, LEVELS: maps.levels}
    kind = {Interval: "minmax", Offsets: "shift"}.get(type(maps), "quantile")
    numbers = {key: " ".join(map(repr, np.asarray(a).tolist())) for key, a in arrays.items()}
    return [f"{SCALING} {kind}", *(f"{key} {text}".rstrip() for key, text in numbers.items())]


def _status_lines(status: ConvergenceStatus | None) -> list[str]:
    if status is None:
        return []
    lines = [f"converged {int(status.converged)}", f"violation {status.violation!r}"]
    return lines if status.gap is None else [*lines, f"gap {status.gap!r}"]


def _form(rows: Rows | ChosenRows) -> str:
    rows = rows.part(slice(0, 0))
    if rows.columns is not None:
        return "serials"
    return "dense" if rows.is_dense else "sparse"


def _early_lines(early: EarlyModel | None) -> list[str]:
    """Return the header of the early part."""
    if early is None:
        return []
    partition = early.partition
    splits = partition.splits
    lines = [
        f"early_level {early.level}",
        f"n_clusters {partition.n_clusters}",
        f"blend {float(partition.blend)!r}",
    ]
    lines += [f"n_parts {_listed(np.concatenate([split.n_parts for split in splits]))}"]
    lines += [f"center_{line}" for line in _kernel_lines(partition.kernel)]
    if partition.kernel.is_precomputed:  # not computable from the sample
        lines += [
            f"center_products {_listed(np.concatenate([split.products for split in splits]))}"
        ]
    n_centers, n_sv = partition.sample.n_samples, early.rows.n_samples
    return [*lines, f"total_center_rows {n_centers}", f"total_early_sv {n_sv}"]


def _early_text(
    early: EarlyModel, exact: ExactModel | None, model: ModelParts, threads: int
) -> Iterator[bytes]:
    """Yield the lines of the early part after its header.

    These are a line for each center (level, cluster, row), a line of rho for each cluster, and a
    line for each support vector (cluster, class, row number, place of the features, coefficients,
    row).
    """
    partition, n_sv = early.partition, early.rows.n_samples
    splits = partition.splits
    yield _joined(["CENTERS"])
    level = np.repeat(np.arange(len(splits)), [len(split.child) for split in splits]) + 1
    cluster = np.concatenate([split.cluster for split in splits])
    yield from _row_lines(partition.sample, [level, cluster], model, threads)
    yield _joined(["EARLY_RHO", *map(_listed, early.rho), "EARLY_SV"])
    place = _places_of_features(early, exact)
    class_ = np.zeros(n_sv, np.int8) if early.class_ is None else early.class_
    prefix = [early.cluster, class_, early.row_numbers + 1, place, *early.dual_coef]
    yield from _row_lines(early.rows, prefix, model, threads, blank=place > 0)


def _places_of_features(early: EarlyModel, exact: ExactModel | None) -> np.ndarray:
    """Return the place in the file of each early support vector's features, int8 (n_sv,).

    0 is its own line. 1 is the line of the exact support vector of the same row. 2 is the line of
    the first early support vector of the same row.
    """
    place = np.zeros(early.rows.n_samples, np.int8)
    if _form(early.rows) == "serials":
        return place
    again = np.ones(len(place), bool)
    again[np.unique(early.row_numbers, return_index=True)[1]] = False
    place[again] = 2
    if exact is not None and exact.row_numbers is not None:
        place[np.isin(early.row_numbers, exact.row_numbers)] = 1
    return place


def _needs_float64_digits(kernel: Kernel, exact: ExactModel) -> bool:
    """Return whether features need enough digits that a float64 reader gets their exact values.

    Terms of the decision values may be so large that float32 rounding matters.

    LIBSVM's tools read features as float64.
    """
    largest = 1.0
    if kernel.is_precomputed:
        return False
    if not kernel.type.is_within_one:
        norms = [_largest_norm(exact.rows.part(batch)) for batch in _slices(exact.rows, 1)]
        largest = kernel.largest_value(max(norms, default=0.0))
    largest *= float(np.abs(exact.dual_coef).max(initial=0.0))  # inf beyond float64
    return is_seen(2.0**-24 * largest, 1.0)


def _largest_norm(rows: Rows) -> float:
    """Return the largest squared norm |x|^2 of the rows."""
    return _core.Points(rows.as_floats(), 1).largest_squared_norm


def _slices(rows: Rows | ChosenRows, n_prefix: int) -> list[slice]:
    return slices(rows.n_samples, BATCH_SIZE // 4 // (rows.row_size + n_prefix))


def _row_lines(
    rows: Rows | ChosenRows,
    prefix: Sequence[np.ndarray],
    model: ModelParts,
    threads: int,
    *,
    float64: bool = False,
    blank: np.ndarray | None = None,
) -> Iterator[bytes]:
    """Yield the lines of the rows, in batches.

    A line has one number from each array in `prefix`, then the features, from the first index of
    the model. `float64` writes the digits of `_needs_float64_digits`. Rows marked in `blank` have
    no features. Shifted rows are written in the units of the data, in float64.
    """
    shift = None if model.is_scaled else model.scaling
    for batch in _slices(rows, len(prefix)):
        numbers = np.column_stack([column[batch] for column in prefix]).astype(np.float64)
        part, is_blank = rows.part(batch), None if blank is None else blank[batch]
        if shift is None:
            part = part.as_floats()
            part = part if is_blank is None else _blanked(part, is_blank)
            yield _lines(numbers, part, model.first_index, threads, float64=float64)
        else:
            yield _float64_lines(numbers, shift.restored(part), model.first_index, is_blank)


def _float64_lines(
    prefix: np.ndarray, rows: Csr, first_index: int, blank: np.ndarray | None
) -> bytes:
    """Format float64 rows with all digits, but without the features of blank rows."""
    lines, texts = [], rows.values.tolist()
    indices, ends = (rows.indices + first_index).tolist(), rows.indptr.tolist()
    for row, numbers in enumerate(prefix.tolist()):
        end = ends[row] if blank is not None and blank[row] else ends[row + 1]
        features = zip(indices[ends[row] : end], texts[ends[row] : end], strict=True)
        words = [*map(repr, numbers), *(f"{index}:{label_text(x)}" for index, x in features)]
        lines.append(" ".join([*words, "\n"]))
    return "".join(lines).encode()


def _lines(
    prefix: np.ndarray, rows: Rows, first_index: int, threads: int, *, float64: bool
) -> bytes:
    if rows.columns is not None:
        return b"".join(
            f"{' '.join(map(repr, line))} 0:{serial} \n".encode()
            for line, serial in zip(prefix.tolist(), (rows.columns + 1).tolist(), strict=True)
        )
    if not rows.is_dense:
        return _svmlight.write_csr(
            prefix, *rows.csr, first_index=first_index, float64=float64, threads=threads
        )
    if rows.n_features == 0:
        return b"".join(f"{' '.join(map(repr, line))} \n".encode() for line in prefix.tolist())
    return _svmlight.write_dense(
        prefix, rows.features, first_index=first_index, float64=float64, threads=threads
    )


def _blanked(rows: Rows, blank: np.ndarray) -> Rows:
    """Return the rows with the features of blank rows set to 0."""
    if not blank.any():
        return rows
    if rows.dense is not None:
        return replace(rows, dense=np.where(blank[:, None], np.float32(0), rows.dense))
    csr = rows.csr
    lengths = np.diff(csr.indptr)
    keep = np.repeat(~blank, lengths)
    indptr = np.concatenate(([0], np.cumsum(np.where(blank, 0, lengths))))
    return replace(rows, indptr=indptr, indices=csr.indices[keep], values=csr.values[keep])


Part = TypeVar("Part", ExactModel, EarlyModel)
AnyParts = TypeVar("AnyParts", bound=ModelParts)


def with_label_order(model: AnyParts, labels: np.ndarray) -> AnyParts:
    """Return the model with its classes in the order of `labels` (k,).

    Raises ValueError if `labels` is not a permutation of the model's labels.
    """
    if np.array_equal(model.labels, labels):
        return model
    if not np.array_equal(np.sort(model.labels), np.sort(labels)):
        raise ValueError("the model has other labels")
    sorted_rank = np.argsort(np.argsort(model.labels))
    rank = np.argsort(labels)[sorted_rank]  # the new index of each old class
    old_pair, sign = _pairs_in_order(np.argsort(rank))
    probability = model.probability
    if probability is not None and probability.B is not None:
        # Swapping a pair negates f. The other class has the probability 1 / (1 + exp(A f - B)).
        probability = Probability(probability.A[old_pair], probability.B[old_pair] * sign)
    return replace(
        model,
        labels=labels,
        exact=model.exact and _reordered(model.exact, rank),
        early=model.early and _reordered(model.early, rank),
        probability=probability,
    )


def _pairs_in_order(old: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the old index of each new pair, and -1 where its classes are swapped, else 1.

    `old` (k,) is the old index of each new class.
    """
    k = len(old)
    first, second = np.triu_indices(k, 1)
    a, b = old[first], old[second]
    low, high = np.minimum(a, b), np.maximum(a, b)
    return low * k - low * (low + 1) // 2 + high - low - 1, np.where(a < b, 1.0, -1.0)


def _coefficients(coef: np.ndarray, class_: np.ndarray, rank: np.ndarray) -> np.ndarray:
    """Convert sv_coef (k - 1, n) of support vectors with old classes `class_` (n,)."""
    line = np.arange(len(coef))[:, None]
    new = rank[class_]
    other = np.argsort(rank)[line + (line >= new)]  # old index of the other class of each line
    flipped = (class_ < other) != (new < rank[other])
    signs = np.where(flipped, -1.0, 1.0)
    return np.take_along_axis(coef, other - (other > class_), axis=0) * signs


def _reordered(part: Part, rank: np.ndarray) -> Part:
    assert part.class_ is not None  # a model with labels has classes
    old = np.argsort(rank)
    old_pair, sign = _pairs_in_order(old)
    class_ = rank[part.class_]
    cluster = part.cluster if isinstance(part, EarlyModel) else np.zeros(len(class_), np.int32)
    index = np.lexsort((class_, cluster))
    numbers = None if part.row_numbers is None else part.row_numbers[index]
    part = replace(
        part,
        rows=part.rows.take(index),
        dual_coef=_coefficients(part.dual_coef, part.class_, rank)[:, index],
        rho=np.ascontiguousarray(part.rho[..., old_pair]) * sign,
        row_numbers=numbers,
    )
    if isinstance(part, EarlyModel):
        return replace(part, class_=class_[index].astype(np.int32))
    assert part.n_sv is not None
    return replace(part, n_sv=part.n_sv[old])
