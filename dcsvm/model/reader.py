"""Read model files of dcsvm and of LIBSVM's svm-train.

The file of an exact model begins as a LIBSVM model. svm-predict can read it, since it stops after
the last support vector. The line SV announces the section that follows, with the other contents.
The file of a model without an exact solution begins with a key that LIBSVM rejects. float32
features and float64 coefficients are restored bit for bit.

The file is not trusted. Every count is checked against the rest of the file before memory is
allocated. Errors name the line.
"""

import math
import os
from dataclasses import replace
from typing import TypeVar

import numpy as np

from dcsvm import _svmlight
from dcsvm.data.arrays import MAX_N_FEATURES, distinct, slices
from dcsvm.data.files import DataError, FileText, as_utf8, read_bytes
from dcsvm.data.reading import parsed_rows, shift_of_text, shifted_text
from dcsvm.data.rows import Rows, copy_rows, stacked
from dcsvm.data.scaling import Interval, Offsets, Quantiles, Scaling
from dcsvm.kernel.kernels import TYPES, Kernel
from dcsvm.kernel.sources import Partition, partition_of
from dcsvm.machine import usable_threads
from dcsvm.model.model import Model
from dcsvm.model.parts import N_MARKS, ConvergenceStatus, EarlyModel, ExactModel, Probability
from dcsvm.model.writer import (
    COLUMNS,
    DENSITY_MARKS,
    EARLY_ONLY,
    FIRST_INDEX,
    KNOTS,
    LABEL_NAMES,
    LEVELS,
    LIMITS,
    MAXIMA,
    MINIMA,
    N_KNOTS,
    SCALING,
    SECTION,
    TABLE,
    TABLE_KEYS,
    TABLE_LABEL,
    VERSION,
    WEIGHTS,
    table_of,
    text_of,
)
from dcsvm.problem.option_table import CLASSIFIERS, SVM_TYPES
from dcsvm.problem.options import TrainOptions

MAX_QUOTE = 40  # characters of the file in an error message
BATCH_SCANNED = 2**22  # bytes scanned at a time for line ends
MAX_EXPANSION = 256  # bytes of dense rows per byte of the file

Header = dict[str, list[str]]  # keys and the words that follow them
Features = tuple[int | None, str | None]  # n_features and storage format of rows; None: any
Number = TypeVar("Number", int, float)


class ModelError(ValueError):
    """A model file that cannot be used: `file:line: reason` or `file: reason`."""


def shown(words: list[str]) -> str:
    """Return words of a file for an error message, printable and not too long."""
    text = "".join(c if c.isprintable() else "?" for c in " ".join(words))
    return text if len(text) <= MAX_QUOTE else text[:MAX_QUOTE] + "..."


KERNEL_KEYS = {"kernel_type", "degree", "gamma", "coef0"}
LIBSVM_KEYS = {
    *KERNEL_KEYS,
    *("svm_type", "nr_class", "total_sv", "rho", "label", "probA", "probB", "nr_sv"),
    DENSITY_MARKS,
}
EARLY_KEYS = {
    *("early_level", "n_features", "rows", "n_clusters", "total_center_rows", "total_early_sv"),
    *(f"center_{key}" for key in KERNEL_KEYS),
    *("blend", "n_parts", "center_products"),
}
STATUS_KEYS = {"converged", "violation", "gap"}
SCALING_KEYS = {COLUMNS, WEIGHTS, LIMITS, MINIMA, MAXIMA, N_KNOTS, KNOTS, LEVELS}
FILE_KEYS = {FIRST_INDEX, SCALING, *SCALING_KEYS, *TABLE_KEYS}
SECTION_KEYS = {"row_numbers", *FILE_KEYS, *STATUS_KEYS, *EARLY_KEYS}
EARLY_ONLY_KEYS = {EARLY_ONLY, *FILE_KEYS, *LIBSVM_KEYS, *EARLY_KEYS} - {"total_sv", "rho", "nr_sv"}


class ModelReader:
    """A reader of a model file, with a cursor on its lines; errors name the file `name`."""

    def __init__(self, text: bytearray | FileText, name: str, threads: int):
        self.text, self.name, self.threads = text, name, threads
        self.ends = _ends_of_lines(text)
        self.line = 0  # number of lines read
        self.line_of: dict[str, int] = {}  # the line of each key
        self.first_index = 1  # index of the first feature
        self.says_first_index = True  # false for a LIBSVM file
        self.remark: list[str] = []  # words after the last key of a header, in its line
        self.has_serials = False  # true for a precomputed kernel: rows are serial numbers
        self.shift: Scaling | None = None  # of the vectors
        self.finds_shift = False  # whether the vectors tell it

    def error(self, reason: str, key: str = "") -> ModelError:
        """Return an error that names the line of a key, else the last line read."""
        return ModelError(f"{self.name}:{self.line_of.get(key, self.line)}: {reason}")

    def next_line(self) -> str | None:
        if self.line >= len(self.ends):
            return None
        begin = self.ends[self.line - 1] + 1 if self.line else 0
        line = self.text[begin : self.ends[self.line]]
        self.line += 1
        return line.decode("utf-8", "replace").strip()

    def header(self, last_key: str, known: set[str], *, may_end: bool = False) -> Header:
        """Read keys and values up to the line `last_key`, or to the end of the file."""
        values: Header = {}
        while (line := self.next_line()) is not None:
            words = line.split()
            if not words:
                raise self.error("blank line")
            if words[0] == last_key:
                self.remark = words[1:]
                return values
            # each key must be known and appear once
            if words[0] not in known:
                raise self.error(f"unknown key {shown(words[:1])}")
            if words[0] in values:
                raise self.error(f"duplicate key {words[0]}")
            values[words[0]] = words[1:]
            self.line_of[words[0]] = self.line
        if may_end:
            return values
        raise self.error(f"the file ends before the line {last_key}")

    def number(self, values: Header, key: str, kind: type[Number]) -> Number:
        """Return the value of a key, which must be finite; an int must be from 0 to 2^31 - 2."""
        try:
            (word,) = values[key]
            number = _number(kind, word)
        except KeyError:
            raise self.error(f"the key {key} is missing") from None
        except ValueError:
            raise self.error(
                f"{key} must be one {kind.__name__}, got {shown(values[key])!r}", key
            ) from None
        if kind is int and not 0 <= number <= MAX_N_FEATURES:
            raise self.error(f"{key} must be from 0 to {MAX_N_FEATURES}, got {shown([word])}", key)
        if not math.isfinite(number):
            raise self.error(f"{key} must be finite, got {number}", key)
        return number

    def numbers(
        self, values: Header, key: str, count: int, *, inf_allowed: bool = False
    ) -> np.ndarray:
        """Return the values of a key, float64 (count,)."""
        if key not in values:
            raise self.error(f"the key {key} is missing")
        return self.floats(values[key], key, count, inf_allowed=inf_allowed)

    def floats(
        self,
        words: list[str],
        name: str,
        count: int,
        *,
        nan_allowed: bool = False,
        inf_allowed: bool = False,
    ) -> np.ndarray:
        try:
            numbers = np.array([_number(float, word) for word in words], dtype=np.float64)
        except ValueError:
            raise self.error(f"{name} must be numbers, got {shown(words)!r}", name) from None
        if len(numbers) != count:
            raise self.error(f"{name} must have {count} numbers, got {len(numbers)}", name)
        allowed = np.isnan(numbers) & nan_allowed | np.isinf(numbers) & inf_allowed
        if not np.all(np.isfinite(numbers) | allowed):
            raise self.error(f"{name} must be finite", name)
        return numbers

    def lines(
        self, n_lines: int, n_prefix: int, name: bytes, features: Features = (None, None)
    ) -> tuple[np.ndarray, Rows]:
        """Read n_lines as (prefix float64 (n_lines, n_prefix), rows).

        In errors, `name` stands for a number of the prefix.
        """
        n_features, form = features
        if n_lines == 0:
            return np.empty((0, n_prefix)), self.no_rows(n_features or 0, form)
        begin, end = self.extent(n_lines)
        if 2 * n_lines * n_prefix > end - begin + 1:
            raise self.error(f"{n_lines} lines are too short for {n_prefix} numbers each")
        try:
            text = _svmlight.Text(
                self.text, n_prefix, self.line + 1, self.threads, name,
                serials="any" if self.has_serials else None, first_index=self.first_index,
                part=(begin, end),
            )  # fmt: skip
            if self.has_serials:
                prefix, rows = self.serial_rows(text, n_features)
            else:
                self.check_features(text, n_features, form)
                prefix, rows = parsed_rows(text, form)
                if self.finds_shift:
                    self.shift = shift_of_text(text, rows, self.name, self.first_index)
                rows = shifted_text(text, rows, self.shift, form)
        except _svmlight.ZeroIndex as error:
            if self.says_first_index:
                raise ModelError(f"{self.name}:{error}") from None
            self.first_index, self.says_first_index = 0, True
            return self.lines(n_lines, n_prefix, name, features)
        except _svmlight.ParseError as error:
            raise ModelError(f"{self.name}:{error}") from None
        self.line += n_lines
        if len(prefix) < n_lines:  # the parser ignores a blank line at the end
            raise self.error("blank line")
        return prefix, rows

    def extent(self, n_lines: int) -> tuple[int, int]:
        """Return the byte offsets (begin, end) of the next n_lines in the text."""
        remaining = len(self.ends) - self.line
        if n_lines > remaining:
            raise self.error(f"expected {n_lines} lines, got {remaining}")
        return int(self.ends[self.line - 1]) + 1, int(self.ends[self.line + n_lines - 1])

    def no_rows(self, n_features: int, form: str | None) -> Rows:
        if self.has_serials:
            return Rows(0, n_features, columns=np.empty(0, np.int32))
        if form == "sparse":
            none = np.empty(0, np.float32)
            return Rows(0, n_features, indptr=np.zeros(1, np.int64),
                        indices=none.astype(np.int32), values=none)  # fmt: skip
        return Rows(0, n_features, dense=np.empty((0, n_features), np.float32))

    def serial_rows(self, text: _svmlight.Text, n_features: int | None) -> tuple[np.ndarray, Rows]:
        """Convert lines that end in a serial number to (prefix, rows)."""
        prefix, _, _, _, n_columns = text.csr()
        if n_columns:
            raise self.error("rows of a precomputed kernel must only have a serial number")
        serial = prefix[:, -1]
        is_invalid = (serial != np.floor(serial)) | (serial < 1) | (serial > MAX_N_FEATURES)
        if is_invalid.any():
            self.line += int(is_invalid.argmax()) + 1
            raise self.error("a serial number must be an integer from 1")
        columns = serial.astype(np.int32) - 1
        if n_features is None:
            n_features = int(serial.max())
        elif serial.max() > n_features:
            self.line += text.n_rows
            raise self.error(f"serial number {int(serial.max())} is above n_features {n_features}")
        return prefix[:, :-1], Rows(len(columns), n_features, columns=columns)

    def check_features(
        self, text: _svmlight.Text, n_features: int | None, form: str | None
    ) -> None:
        """Check the features of the text against n_features, and widen it to n_features."""
        if n_features is None:
            return
        if text.n_features > n_features:
            text.csr()  # reports errors in the text first
            self.line += text.n_rows
            index = text.n_features - 1 + self.first_index
            raise self.error(f"a feature index {index} is above n_features {n_features}")
        if form == "dense" and text.n_rows * n_features * 4 > (
            MAX_EXPANSION * len(self.text) + 2**20
        ):
            self.line += text.n_rows
            raise self.error(f"the file is too short for dense rows of {n_features} features")
        text.widen(n_features)

    def integers(self, numbers: np.ndarray) -> np.ndarray:
        if np.any((numbers != np.floor(numbers)) | (numbers < 0) | (numbers > 2**53)):
            raise self.error("numbers of rows, clusters and classes must be integers from 0")
        return numbers.astype(np.int64)

    def below(self, numbers: np.ndarray, end: int, name: str) -> np.ndarray:
        integers = self.integers(numbers)
        if np.any(integers >= end):
            raise self.error(f"a {name} must be below {end}, got {integers.max()}")
        return integers.astype(np.int32)

    def read(self) -> Model:
        """Read the model. Raises ModelError."""
        if not len(self.text):
            raise ModelError(f"{self.name}: the file is empty")
        model = self.parts()
        while (line := self.next_line()) is not None:
            if line:
                raise self.error("the model ends before this line")
        return model

    def parts(self) -> Model:
        first = (self.next_line() or "").split()
        if first[:1] not in ([EARLY_ONLY], ["svm_type"], ["kernel_type"]):
            raise self.error("this is not a model file")
        if self.text[-1:] != b"\n":
            self.line = len(self.ends)
            raise self.error("the file is cut off: its last line does not end")
        if first[0] == EARLY_ONLY:
            self.check_version(first)
            self.line = 0
            values = self.header("CENTERS", EARLY_ONLY_KEYS)
            model = self.with_file(self.problem(values), values)
            return self.with_early(model, values)
        self.line = 0
        values = self.header("SV", LIBSVM_KEYS)
        return self.with_exact(self.problem(values), values)

    def problem(self, values: Header) -> Model:
        """Return a model without parts, from the keys that both parts share."""
        svm_type = " ".join(values.get("svm_type", ["missing"]))
        if svm_type not in SVM_TYPES:
            raise self.error(f"svm_type {shown([svm_type])} is not supported", "svm_type")
        model = Model(self.kernel(values), self.labels(values, svm_type), None, None, svm_type)
        return replace(model, probability=self.probability(values, model))

    def kernel(self, values: Header, prefix: str = "") -> Kernel:
        name = " ".join(values.get(prefix + "kernel_type", ["missing"]))
        if name not in TYPES:
            raise self.error(
                f"kernel_type {shown([name])} is not supported", prefix + "kernel_type"
            )
        # parameters obey the rules of the options
        parameters = {}
        for key in TYPES[name].parameters:
            kind: type[float] = int if key == "degree" else float
            value = self.number(values, prefix + key, kind)
            try:
                parameters[key] = TrainOptions.check(key, value)
            except ValueError as error:
                raise self.error(str(error), prefix + key) from None
        kernel = Kernel(name, **parameters)
        # centers are rows of the same kind as the support vectors
        if prefix and kernel.is_precomputed != self.has_serials:
            raise self.error(f"the centers cannot have the kernel {name}")
        self.has_serials = kernel.is_precomputed
        return kernel

    def labels(self, values: Header, svm_type: str) -> np.ndarray:
        n_classes = self.number(values, "nr_class", int)
        if svm_type not in CLASSIFIERS:
            return np.empty(0)
        labels = self.numbers(values, "label", n_classes)
        if n_classes == 0:
            raise self.error("nr_class must be at least 1, got 0", "nr_class")
        if len(distinct(labels)) != n_classes:
            raise self.error("duplicate label", "label")
        return labels

    def probability(self, values: Header, model: Model) -> Probability | None:
        if model.svm_type == "one_class" and DENSITY_MARKS in values:
            return Probability(np.sort(self.numbers(values, DENSITY_MARKS, N_MARKS)))
        if model.svm_type == "one_class" or not values.keys() & {"probA", "probB"}:
            return None
        a = self.numbers(values, "probA", model.n_pairs)
        return Probability(
            a, self.numbers(values, "probB", model.n_pairs) if model.is_classifier else None
        )

    def with_exact(self, model: Model, values: Header) -> Model:
        # With -s 2 -n 1 all alphas are at their bounds, and svm-train writes an infinite rho.
        is_one_class = model.svm_type == "one_class"
        rho = self.numbers(values, "rho", model.n_pairs, inf_allowed=is_one_class)
        total = self.number(values, "total_sv", int)
        n_sv = self.class_sizes(values, model, total) if model.is_classifier else None
        begin, n_coefficients = self.line, self.n_coefficients(model, total)
        self.extent(total)
        self.line += total
        section = self.section(total)
        features: Features = None, None
        if section is not None:  # it defines the format of the lines before it
            features = self.number(section, "n_features", int), self.form(section)
            model = self.with_file(model, section)
        self.says_first_index = section is not None or self.has_serials
        self.finds_shift = section is None and model.kernel.type.is_of_distance
        end, self.line = self.line, begin
        coef, rows = self.lines(total, n_coefficients, b"coefficient", features)
        self.line = end
        numbers = np.array(section["row_numbers"], np.int64) - 1 if section else None
        status = self.status(section) if section and "converged" in section else None
        exact = ExactModel(rows, np.ascontiguousarray(coef.T), rho, n_sv, numbers, status)
        scaling = self.shift or model.scaling
        model = replace(model, exact=exact, first_index=self.first_index, scaling=scaling)
        return self.with_early(model, section) if section and "early_level" in section else model

    def with_file(self, model: Model, values: Header) -> Model:
        """Return the model with the scaling and the first index in `values`."""
        if FIRST_INDEX in values:
            self.first_index = self.number(values, FIRST_INDEX, int)
            if self.first_index > 1:
                raise self.error(
                    f"{FIRST_INDEX} must be 0 or 1, got {self.first_index}", FIRST_INDEX
                )
        if SCALING not in values and SCALING_KEYS & set(values):
            raise self.error(f"the key {SCALING} is missing")
        scaling = self.scaling(values) if SCALING in values else None
        self.shift = scaling if scaling is not None and scaling.is_shift else None
        model = replace(model, scaling=scaling, first_index=self.first_index)
        return self.with_table(model, values)

    def with_table(self, model: Model, values: Header) -> Model:
        """Return the model with the text labels and the encoding of a table in `values`."""
        # text labels take the place of class indices
        if LABEL_NAMES in values:
            try:
                names = [text_of(word) for word in values[LABEL_NAMES]]
            except ValueError as error:
                raise self.error(f"{LABEL_NAMES}: {error}", LABEL_NAMES) from None
            if len(set(names)) != len(model.labels) or len(names) != len(model.labels):
                raise self.error(
                    f"{LABEL_NAMES} must be {len(model.labels)} different texts", LABEL_NAMES
                )
            model = replace(model, labels=np.array(names, str))
        # the encoding of the columns
        if (TABLE in values) != (TABLE_LABEL in values):
            raise self.error(f"the keys {TABLE} and {TABLE_LABEL} must be together")
        if TABLE not in values:
            return model
        try:
            return replace(model, table=table_of(values[TABLE], values[TABLE_LABEL]))
        except ValueError as error:
            raise self.error(f"{TABLE}, {TABLE_LABEL}: {error}", TABLE) from None

    def scaling(self, values: Header) -> Scaling:
        """Read the scaling of the features."""
        kind = " ".join(values[SCALING])
        # the scaled columns
        n = len(values.get(COLUMNS, []))
        columns = self.integers(self.numbers(values, COLUMNS, n)) - self.first_index
        limit = self.number(values, "n_features", int) if kind == "shift" else MAX_N_FEATURES
        if np.any(np.diff(columns, prepend=-1) <= 0) or np.any(columns >= limit):
            raise self.error(f"{COLUMNS} must be ascending indices of features", COLUMNS)
        features: Interval | Quantiles | Offsets  # a map of each column
        if kind == "minmax":
            limits, minima, maxima = (
                self.numbers(values, key, size)
                for key, size in ((LIMITS, 2), (MINIMA, n), (MAXIMA, n))
            )
            if limits[0] >= limits[1] or np.any(minima >= maxima):
                raise self.error("a minimum of the scaling is not below its maximum", MINIMA)
            features = Interval(float(limits[0]), float(limits[1]), minima, maxima)
        elif kind == "quantile":
            size = len(values.get(KNOTS, []))
            knots, levels = (self.numbers(values, key, size) for key in (KNOTS, LEVELS))
            counts = self.integers(self.numbers(values, N_KNOTS, n))
            if counts.sum() != size or np.any(counts < 2):
                raise self.error(f"{N_KNOTS} must be at least 2 each, {size} in all", N_KNOTS)
            start = np.concatenate(([0], np.cumsum(counts)))
            # knots must ascend inside a column, not from one column to the next
            within = np.ones(max(size - 1, 0), bool)
            within[start[1:-1] - 1] = False
            if np.any(np.diff(knots)[within] <= 0) or np.any(np.diff(levels)[within] < 0):
                raise self.error(f"{KNOTS} and {LEVELS} of a column must ascend", KNOTS)
            features = Quantiles(start, knots, levels)
        elif kind == "shift":
            features = Offsets(self.numbers(values, MINIMA, n))
        else:
            raise self.error(
                f"{SCALING} must be minmax, quantile or shift, got {shown([kind])!r}", SCALING
            )
        weights = self.numbers(values, WEIGHTS, n) if WEIGHTS in values else None
        if weights is not None and np.any(weights < 0):
            raise self.error(f"{WEIGHTS} must be at least 0", WEIGHTS)
        return Scaling(self.name, columns, features, None, self.first_index, weights)

    def status(self, values: Header) -> ConvergenceStatus:
        converged = self.number(values, "converged", int)
        violation = self.number(values, "violation", float)
        gap = self.number(values, "gap", float) if "gap" in values else None
        if converged > 1:
            raise self.error(f"converged must be 0 or 1, got {converged}", "converged")
        return ConvergenceStatus(bool(converged), violation, gap)

    def n_coefficients(self, model: Model, total: int) -> int:
        """Return the number of coefficients per support vector, for `total` support vectors."""
        n_coefficients = len(model.labels) - 1 if model.is_classifier else 1
        if n_coefficients == 0 and total > 0:
            raise self.error("a model of one class cannot have support vectors")
        return n_coefficients

    def class_sizes(self, values: Header, model: Model, total: int) -> np.ndarray:
        n_sv = self.integers(self.numbers(values, "nr_sv", len(model.labels)))
        if np.any(n_sv > total) or n_sv.sum() != total:
            raise self.error(f"the sum of nr_sv must be total_sv, {total}", "nr_sv")
        return n_sv

    def section(self, n_sv: int) -> Header | None:
        """Read the section after the support vectors; return None if it is missing."""
        line = self.next_line()
        words = (line or "").split()
        # LIBSVM's files end here
        if words[:1] != [SECTION]:
            if line is None and self.remark == [SECTION]:
                raise self.error(f"the file is cut off before the line {SECTION}")
            if words:
                raise self.error(f"total_sv is {n_sv}, but there is a further line")
            return None
        self.check_version(words)
        section = self.header("CENTERS", SECTION_KEYS, may_end=True)
        # every section has row numbers; they come last
        if "row_numbers" not in section:
            raise self.error("the file is cut off: the key row_numbers is missing")
        numbers = section["row_numbers"]
        if len(numbers) != n_sv or not all(map(_is_row_number, numbers)):
            raise self.error(f"row_numbers must be {n_sv} integers from 1", "row_numbers")
        return section

    def check_version(self, words: list[str]) -> None:
        if words[1:] in (["1"], ["2"], ["3"]):
            raise self.error("an earlier dcsvm wrote this file: train the model again")
        if words[1:] != [VERSION]:
            raise self.error(f"version {shown(words[1:])} is not {VERSION}; a newer dcsvm wrote it")

    def form(self, values: Header) -> str:
        form = " ".join(values.get("rows", ["missing"]))
        known = ("serials",) if self.has_serials else ("dense", "sparse")
        if form not in known:
            raise self.error(f"rows must be {' or '.join(known)}, got {shown([form])}")
        return form

    def with_early(self, model: Model, values: Header) -> Model:
        n_clusters = self.number(values, "n_clusters", int)
        # the order of the file: centers, rho, support vectors
        features = self.number(values, "n_features", int), self.form(values)
        partition = self.partition(values, n_clusters, features)
        rho = self.early_rho(n_clusters, model.n_pairs)
        total = self.number(values, "total_early_sv", int)
        n_coefficients = self.n_coefficients(model, total)
        prefix, rows = self.lines(total, 4 + n_coefficients, b"coefficient", features)
        # the numbers before the coefficients: cluster, class, row number, place of the features
        cluster = self.below(prefix[:, 0], n_clusters, "cluster index")
        class_ = self.below(prefix[:, 1], max(len(model.labels), 1), "class index")
        if np.any(np.diff(cluster) < 0):
            raise self.error("early support vectors must be sorted by cluster")
        row_numbers = self.integers(prefix[:, 2]) - 1
        if total and np.unique(row_numbers, return_counts=True)[1].max() > 2:
            raise self.error("an early support vector is in more than two clusters")
        # a row may be a support vector of two clusters, once of each
        members = np.lexsort((row_numbers, cluster))
        if np.any((np.diff(cluster[members]) == 0) & (np.diff(row_numbers[members]) == 0)):
            raise self.error("duplicate row among the early support vectors of a cluster")
        rows = self.with_shared_features(rows, prefix[:, 3], row_numbers, model.exact)
        early = EarlyModel(
            level=self.number(values, "early_level", int),
            partition=partition,
            cluster=cluster,
            class_=class_ if model.is_classifier else None,
            rows=rows,
            dual_coef=np.ascontiguousarray(prefix[:, 4:].T),
            rho=rho,
            row_numbers=row_numbers,
        )
        return replace(model, early=early)

    def partition(self, values: Header, n_clusters: int, features: Features) -> Partition:
        """Read the tree of clusters from keys of the header and the lines after CENTERS."""
        n_centers = self.number(values, "total_center_rows", int)
        prefix, sample = self.lines(n_centers, 2, b"cluster", features)
        cluster = self.below(prefix[:, 1], n_clusters, "cluster index")
        # the kernel of the clusters, and the number of children of each node
        kernel = self.kernel(values, "center_")
        words = values.get("n_parts", [])
        n_parts = self.integers(self.floats(words, "n_parts", len(words)))
        level, products = self.integers(prefix[:, 0]), None
        if np.any(np.diff(level * n_clusters + cluster) < 0):
            raise self.error("centers must be sorted by level and cluster")
        # without features, the file has the inner products of the centers
        if kernel.is_precomputed:
            words = values.get("center_products", [])
            products = self.floats(words, "center_products", len(words))
        clusters = self.by_level(level, cluster, n_parts)
        blend = self.number(values, "blend", float)
        if blend < 0:
            raise self.error(f"blend must be at least 0, got {blend}")
        try:
            partition = partition_of(kernel, sample, n_parts, clusters, blend, products)
        except ValueError as error:
            raise self.error(str(error)) from None
        if partition.n_clusters != n_clusters:
            raise self.error(f"n_clusters must be {partition.n_clusters}, got {n_clusters}")
        return partition

    def by_level(
        self, level: np.ndarray, cluster: np.ndarray, n_parts: np.ndarray
    ) -> list[np.ndarray]:
        """Split `cluster`, one index per sampled row, by level."""
        n_levels, n_nodes, remaining = 0, 1, n_parts
        while len(remaining) >= n_nodes > 0 and len(remaining):
            n_levels += 1
            n_nodes, remaining = int(remaining[:n_nodes].sum()), remaining[n_nodes:]
        if np.any((level < 1) | (level > n_levels)):
            raise self.error(f"levels of centers must be from 1 to {n_levels}")
        ends = np.searchsorted(level, np.arange(1, n_levels + 2))
        return [cluster[a:b] for a, b in zip(ends[:-1], ends[1:], strict=True)]

    def early_rho(self, n_clusters: int, n_pairs: int) -> np.ndarray:
        """Read the lines from EARLY_RHO to EARLY_SV, float64 (n_clusters, n_pairs)."""
        if self.next_line() != "EARLY_RHO":
            raise self.error("the line EARLY_RHO is missing")
        rho = [
            self.floats((self.next_line() or "").split(), "rho", n_pairs, nan_allowed=True)
            for _ in range(n_clusters)
        ]
        if self.next_line() != "EARLY_SV":
            raise self.error("the line EARLY_SV is missing")
        return np.array(rho).reshape(n_clusters, n_pairs)

    def with_shared_features(
        self, rows: Rows, place: np.ndarray, row_numbers: np.ndarray, exact: ExactModel | None
    ) -> Rows:
        """Fill in features that the file stores with another support vector of the same row.

        `place` is as of writer.py's _places_of_features.
        """
        places = self.below(place, 3, "place of features")
        if self.has_serials or not places.any():
            return rows
        # where the features are: with an exact support vector, or an earlier one of this part
        shared, again = np.flatnonzero(places == 1), np.flatnonzero(places == 2)
        first = np.flatnonzero(places != 2)
        numbers = None if exact is None else exact.row_numbers
        exact_index = self.find(row_numbers[shared], numbers, "exact")
        earlier = first[self.find(row_numbers[again], row_numbers[first], "earlier")]
        if rows.is_dense:
            # dense rows have space for them, which is filled in
            if exact is not None and len(shared):
                rows = rows if exact.rows.is_bytes else rows.as_floats()
                copy_rows(rows.features, shared, exact.rows.features, exact_index)
            copy_rows(rows.features, again, rows.features, earlier)
            return rows
        # sparse rows are selected anew, with repetitions
        index = np.arange(rows.n_samples)
        if exact is not None and len(shared):
            rows, index = stacked(exact.rows, rows), index + exact.rows.n_samples
            index[shared] = exact_index
        index[again] = index[earlier]
        return rows.take(index)

    def find(self, targets: np.ndarray, numbers: np.ndarray | None, name: str) -> np.ndarray:
        """Return the index of each target in `numbers`."""
        numbers = np.empty(0, np.int64) if numbers is None else numbers
        order = np.argsort(numbers, kind="stable")
        at = np.searchsorted(numbers, targets, sorter=order)
        if len(at) and (at.max() == len(numbers) or np.any(numbers[order[at]] != targets)):
            raise self.error(f"an early support vector refers to a missing {name} one")
        return order[at]


def _ends_of_lines(text: bytearray | FileText) -> np.ndarray:
    """Return the byte offsets of line ends, int64."""
    parts = []
    for block in slices(len(text), BATCH_SCANNED):
        codes = np.frombuffer(text[block], np.uint8)
        parts.append(np.flatnonzero(codes == ord("\n")) + block.start)
    if len(text) and text[-1:] != b"\n":
        parts.append(np.array([len(text)]))
    return np.concatenate(parts) if parts else np.empty(0, np.int64)


def _number(kind: type[Number], word: str) -> Number:
    """Convert a word to a number; reject underscores, which Python allows."""
    if "_" in word:
        raise ValueError(word)
    return kind(word)


def _is_row_number(word: str) -> bool:
    return word.isascii() and word.isdecimal() and len(word) < 16 and int(word) > 0


def load_model(path: str | os.PathLike[str], *, threads: int | None = 1) -> Model:
    """Read a model file written by `Model.save` or by LIBSVM's svm-train.

    Parameters
    ----------
    path : str or path-like
        The model file. A model with a scaling applies it to the rows it predicts.
    threads : int or None, default 1
        Number of threads to parse the file; None is all available cores.

    Returns
    -------
    Model
        The model; its `report` is None.

    Raises
    ------
    ModelError
        If the file is missing, cannot be read, or is invalid.
    """
    name = os.fspath(path)
    try:
        return ModelReader(as_utf8(read_bytes(name), name), name, usable_threads(threads)).read()
    except DataError as error:
        raise ModelError(str(error)) from error.__cause__
