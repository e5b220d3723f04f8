"""The text of a model file, ours or of LIBSVM's svm-train, as a model; see model_file.py.

What stands in the file is not trusted: every count is checked against what follows before
anything of its size is allocated, and every complaint is one sentence with its line.
"""

from __future__ import annotations

import math
import mmap
from dataclasses import replace

import numpy as np

from dcsvm import _svmlight
from dcsvm.data.dataset import parsed_rows
from dcsvm.data.rows import AT_ONCE, LARGEST_N_FEATURES, Rows, slices
from dcsvm.kernel.kernels import NAMES, Kernel
from dcsvm.kernel.partition import Partition
from dcsvm.model.model import Model
from dcsvm.model.parts import EarlyModel, ExactModel, Probability, Worth
from dcsvm.model.writer import EARLY_ONLY, SECTION, VERSION
from dcsvm.problem.svm_types import CLASSIFIERS, SVM_TYPES

LONGEST_QUOTE = 40
SCANNED_AT_ONCE = 2**22  # bytes, whole pages
LARGEST_EXPANSION = 256  # bytes of dense rows for a byte of text
KERNEL_KEYS = {"kernel_type", "degree", "gamma", "coef0"}
LIBSVM_KEYS = {
    *KERNEL_KEYS,
    *("svm_type", "nr_class", "total_sv", "rho", "label", "probA", "probB", "nr_sv"),
    "prob_density_marks",  # of one-class models, not used
}
EARLY_KEYS = {
    *("early_level", "n_features", "rows", "n_clusters", "total_center_rows", "total_early_sv"),
    *(f"center_{key}" for key in KERNEL_KEYS),
    "center_squared_norms",
}
WORTH_KEYS = {"converged", "violation", "gap"}
SECTION_KEYS = {"row_numbers", *WORTH_KEYS, *EARLY_KEYS}
EARLY_ONLY_KEYS = {EARLY_ONLY, *LIBSVM_KEYS, *EARLY_KEYS} - {"total_sv", "rho", "nr_sv"}


class ModelError(ValueError):
    """A model file that cannot be used: `file:line: reason` or `file: reason`."""


def _shown(words: list[str]) -> str:
    """What stands in a file, for an error: not too long, and printable."""
    text = "".join(c if c.isprintable() else "?" for c in " ".join(words))
    return text if len(text) <= LONGEST_QUOTE else text[:LONGEST_QUOTE] + "..."


class ModelReader:
    """Walks through the lines of a model file; `name` stands for it in errors."""

    def __init__(self, text: bytearray | mmap.mmap, name: str, threads: int):
        self.text, self.name, self.threads = text, name, threads
        self.ends = _ends_of_lines(text)
        self.line = 0  # number of lines read
        self.has_serials = False  # rows are serial numbers: a precomputed kernel

    def read(self) -> Model:
        """The model. Raises ModelError."""
        first = (self.next_line() or "").split()
        if first[:1] == [EARLY_ONLY]:
            self.check_version(first)
            self.line = 0
            values = self.header("CENTERS", EARLY_ONLY_KEYS)
            model = self.problem(values)
            return self.with_early(model, values)
        if first[:1] not in (["svm_type"], ["kernel_type"]):
            raise self.error("this is not a model file")
        self.line = 0
        values = self.header("SV", LIBSVM_KEYS)
        return self.with_exact(self.problem(values), values)

    def error(self, reason: str) -> ModelError:
        return ModelError(f"{self.name}:{self.line}: {reason}")

    def next_line(self) -> str | None:
        if self.line >= len(self.ends):
            return None
        begin = self.ends[self.line - 1] + 1 if self.line else 0
        line = self.text[begin : self.ends[self.line]]
        self.line += 1
        return line.decode("utf-8", "replace").strip()

    def header(self, last_key: str, known: set[str], *, may_end=False) -> dict[str, list[str]]:
        """Keys and values of the lines up to the one that is `last_key`, or the file's end."""
        values: dict[str, list[str]] = {}
        while (line := self.next_line()) is not None:
            words = line.split()
            if not words:
                raise self.error("blank line")
            if words[0] == last_key:
                return values
            if words[0] not in known:
                raise self.error(f"unknown key {_shown(words[:1])}")
            values[words[0]] = words[1:]
        if may_end:
            return values
        raise self.error(f"the file ends before the line {last_key}")

    def number(self, values: dict[str, list[str]], key: str, kind):
        """The one value of a key: finite, and from 0 to 2^31 - 2 where kind is int."""
        try:
            (word,) = values[key]
            number = _number(kind, word)
        except KeyError:
            raise self.error(f"the key {key} is missing") from None
        except ValueError:
            raise self.error(f"{key} {_shown(values[key])!r} is not one {kind.__name__}") from None
        if kind is int and not 0 <= number <= LARGEST_N_FEATURES:
            raise self.error(f"{key} {_shown([word])} is not between 0 and {LARGEST_N_FEATURES}")
        if not math.isfinite(number):
            raise self.error(f"{key} {number} is not finite")
        return number

    def numbers(self, values: dict[str, list[str]], key: str, count: int, **allowed) -> np.ndarray:
        """The values of a key, float64 (count,), finite unless `floats` is told otherwise."""
        if key not in values:
            raise self.error(f"the key {key} is missing")
        return self.floats(values[key], key, count, **allowed)

    def floats(
        self, words: list[str], what: str, count: int, *, nan_allowed=False, inf_allowed=False
    ) -> np.ndarray:
        try:
            numbers = np.array([_number(float, word) for word in words], dtype=np.float64)
        except ValueError:
            raise self.error(f"{what} {_shown(words)!r} is not a list of numbers") from None
        if len(numbers) != count:
            raise self.error(f"{what} has {len(numbers)} numbers, not {count}")
        allowed = np.isnan(numbers) & nan_allowed | np.isinf(numbers) & inf_allowed
        if not np.all(np.isfinite(numbers) | allowed):
            raise self.error(f"a number of {what} is not finite")
        return numbers

    def lines(self, n_lines: int, n_prefix: int, what: bytes, features=(None, None)):
        """The next n_lines as (prefix, rows); `features` are how many there are and the rows' form,
        or None for what is best."""
        n_features, form = features
        if n_lines == 0:
            return np.empty((0, n_prefix)), self.no_rows(n_features or 0, form)
        begin, end = self.extent(n_lines)
        if 2 * n_lines * n_prefix > end - begin + 1:
            raise self.error(f"{n_lines} lines do not hold {n_prefix} numbers each")
        part = memoryview(self.text)[begin:end]
        serials = "any" if self.has_serials else None
        try:
            text = _svmlight.Text(
                part, n_prefix, self.line + 1, self.threads, what, serials=serials
            )
            if self.has_serials:
                prefix, rows = self.serial_rows(text, n_features)
            else:
                self.check_features(text, n_features, form)
                prefix, rows = parsed_rows(text, form)
        except _svmlight.ParseError as error:
            raise ModelError(f"{self.name}:{error}") from None
        self.line += n_lines
        if len(prefix) < n_lines:  # the last one is not a row for the parser
            raise self.error("blank line")
        return prefix, rows

    def extent(self, n_lines: int) -> tuple[int, int]:
        """Where the next n_lines begin and end in the text."""
        if n_lines > len(self.ends) - self.line:
            raise self.error(f"{n_lines} lines are announced, {len(self.ends) - self.line} follow")
        return int(self.ends[self.line - 1]) + 1, int(self.ends[self.line + n_lines - 1])

    def no_rows(self, n_features: int, form: str | None) -> Rows:
        if self.has_serials:
            return Rows(0, n_features, columns=np.empty(0, np.int32))
        if form == "sparse":
            none = np.empty(0, np.float32)
            return Rows(0, n_features, indptr=np.zeros(1, np.int64),
                        indices=none.astype(np.int32), values=none)  # fmt: skip
        return Rows(0, n_features, dense=np.empty((0, n_features), np.float32))

    def serial_rows(self, text: _svmlight.Text, n_features: int | None):
        """Lines that end in serial numbers."""
        prefix, _, _, _, n_columns = text.csr()
        if n_columns:
            raise self.error("the rows of a precomputed kernel have more than a serial number")
        serial = prefix[:, -1]
        wrong = (serial != np.floor(serial)) | (serial < 1) | (serial > LARGEST_N_FEATURES)
        if wrong.any():
            self.line += int(wrong.argmax()) + 1
            raise self.error("a serial number is not a whole number from 1")
        columns = serial.astype(np.int32) - 1
        if n_features is None:
            n_features = int(serial.max())
        elif serial.max() > n_features:
            self.line += text.n_rows
            raise self.error(
                f"a feature index {int(serial.max())} is above n_features {n_features}"
            )
        return prefix[:, :-1], Rows(len(columns), n_features, columns=columns)

    def check_features(self, text: _svmlight.Text, n_features: int | None, form: str | None):
        """Make it rows of n_features, if that is possible."""
        if n_features is None:
            return
        if text.n_features > n_features:
            text.csr()  # an error in the text comes first
            self.line += text.n_rows
            raise self.error(f"a feature index {text.n_features} is above n_features {n_features}")
        if form == "dense" and text.n_rows * n_features * 4 > (
            LARGEST_EXPANSION * len(self.text) + 2**20
        ):
            self.line += text.n_rows
            raise self.error(f"dense rows of {n_features} features do not fit this file")
        text.widen(n_features)

    def problem(self, values: dict[str, list[str]]) -> Model:
        """What both parts of a model share."""
        svm_type = " ".join(values.get("svm_type", ["missing"]))
        if svm_type not in SVM_TYPES:
            raise self.error(f"svm_type {_shown([svm_type])} is not supported")
        model = Model(self.kernel(values), self.labels(values, svm_type), None, None, svm_type)
        return replace(model, probability=self.probability(values, model))

    def kernel(self, values: dict[str, list[str]], prefix: str = "") -> Kernel:
        name = " ".join(values.get(prefix + "kernel_type", ["missing"]))
        if name not in NAMES:
            raise self.error(f"kernel_type {_shown([name])} is not supported")
        used = {
            key: self.number(values, prefix + key, int if key == "degree" else float)
            for key in Kernel(name).parameters
        }
        try:
            kernel = Kernel(name, **used)
        except ValueError as error:
            raise self.error(str(error)) from None
        if prefix and kernel.is_precomputed != self.has_serials:
            raise self.error(f"the centers cannot have the kernel {name}")
        self.has_serials = kernel.is_precomputed
        return kernel

    def labels(self, values: dict[str, list[str]], svm_type: str) -> np.ndarray:
        n_classes = self.number(values, "nr_class", int)
        if svm_type not in CLASSIFIERS:
            return np.empty(0)
        labels = self.numbers(values, "label", n_classes)
        if n_classes == 0:
            raise self.error("nr_class is 0")
        if len(np.unique(labels)) != n_classes:
            raise self.error("a label stands there twice")
        return labels

    def probability(self, values: dict[str, list[str]], model: Model) -> Probability | None:
        if model.svm_type == "one_class" or not values.keys() & {"probA", "probB"}:
            return None
        A = self.numbers(values, "probA", model.n_pairs)
        B = self.numbers(values, "probB", model.n_pairs) if model.is_classifier else None
        return Probability(A, B)

    def with_exact(self, model: Model, values: dict[str, list[str]]) -> Model:
        # svm-train's with -n 1, where every alpha is at its bound: all rows are outliers
        is_one_class = model.svm_type == "one_class"
        rho = self.numbers(values, "rho", model.n_pairs, inf_allowed=is_one_class)
        total = self.number(values, "total_sv", int)
        n_sv = self.class_sizes(values, model, total) if model.is_classifier else None
        begin, n_coefficients = self.line, self.n_coefficients(model, total)
        self.extent(total)
        self.line += total
        section = self.section(total)
        features = None, None
        if section:  # it says how to read the lines before it
            features = self.number(section, "n_features", int), self.form(section)
        end, self.line = self.line, begin
        coef, rows = self.lines(total, n_coefficients, b"coefficient", features)
        self.line = end
        numbers = np.array(section["row_numbers"], np.int64) - 1 if section else None
        worth = self.worth(section) if section and "converged" in section else None
        exact = ExactModel(rows, np.ascontiguousarray(coef.T), rho, n_sv, numbers, worth)
        model = replace(model, exact=exact)
        return self.with_early(model, section) if section and "early_level" in section else model

    def worth(self, values: dict[str, list[str]]) -> Worth:
        converged = self.number(values, "converged", int)
        violation = self.number(values, "violation", float)
        gap = self.number(values, "gap", float) if "gap" in values else None
        if converged > 1:
            raise self.error(f"converged is 0 or 1, not {converged}")
        return Worth(bool(converged), violation, gap)

    def n_coefficients(self, model: Model, total: int) -> int:
        """Number of coefficients of a support vector, of which there are `total`."""
        n_coefficients = len(model.labels) - 1 if model.is_classifier else 1
        if n_coefficients == 0 and total > 0:
            raise self.error("there are support vectors of one class without another")
        return n_coefficients

    def class_sizes(self, values: dict[str, list[str]], model: Model, total: int) -> np.ndarray:
        n_sv = self.whole(self.numbers(values, "nr_sv", len(model.labels)))
        if np.any(n_sv > total) or n_sv.sum() != total:
            raise self.error(f"the sum of nr_sv is not total_sv, {total}")
        return n_sv

    def section(self, n_sv: int) -> dict[str, list[str]] | None:
        """What follows the support vectors; None when nothing of ours does."""
        words = (self.next_line() or "").split()
        if words[:1] != [SECTION]:
            return None
        self.check_version(words)
        section = self.header("CENTERS", SECTION_KEYS, may_end=True)
        numbers = section.get("row_numbers", [])
        if len(numbers) != n_sv or not all(map(_is_row_number, numbers)):
            raise self.error(f"row_numbers are not {n_sv} numbers from 1")
        return section

    def check_version(self, words: list[str]) -> None:
        if words[1:] in (["1"], ["2"]):
            raise self.error("an earlier dcsvm wrote this file: train the model again")
        if words[1:] != [VERSION]:
            raise self.error(
                f"version {_shown(words[1:])} is not {VERSION}; a newer dcsvm wrote it"
            )

    def form(self, values: dict[str, list[str]]) -> str:
        form = " ".join(values.get("rows", ["missing"]))
        known = ("serials",) if self.has_serials else ("dense", "sparse")
        if form not in known:
            raise self.error(f"rows {_shown([form])} is not {' or '.join(known)}")
        return form

    def with_early(self, model: Model, values: dict[str, list[str]]) -> Model:
        n_clusters = self.number(values, "n_clusters", int)
        features = self.number(values, "n_features", int), self.form(values)
        n_centers = self.number(values, "total_center_rows", int)
        center, sample = self.lines(n_centers, 1, b"cluster", features)
        center = self.below(center[:, 0], n_clusters, "cluster")
        if n_clusters == 0 or len(np.unique(center)) != n_clusters:
            raise self.error(f"the centers do not have {n_clusters} clusters")
        rho = self.early_rho(n_clusters, model.n_pairs)
        total = self.number(values, "total_early_sv", int)
        n_coefficients = self.n_coefficients(model, total)
        prefix, rows = self.lines(total, 4 + n_coefficients, b"coefficient", features)
        cluster = self.below(prefix[:, 0], n_clusters, "cluster")
        class_ = self.below(prefix[:, 1], max(len(model.labels), 1), "class")
        if np.any(np.diff(cluster) < 0):
            raise self.error("the early support vectors are not sorted by cluster")
        row_numbers = self.whole(prefix[:, 2]) - 1
        if len(np.unique(row_numbers)) != total:
            raise self.error("a row stands twice among the early support vectors")
        shared = np.flatnonzero(prefix[:, 3])
        if len(shared) and not self.has_serials:
            rows = self.fill(rows, shared, row_numbers, model.exact)
        early = EarlyModel(
            level=self.number(values, "early_level", int),
            partition=Partition(
                self.kernel(values, "center_"),
                sample,
                center,
                self.squared_norms(values, n_clusters),
            ),
            cluster=cluster,
            class_=class_ if model.is_classifier else None,
            rows=rows,
            dual_coef=np.ascontiguousarray(prefix[:, 4:].T),
            rho=rho,
            row_numbers=row_numbers,
        )
        return replace(model, early=early)

    def squared_norms(self, values: dict[str, list[str]], n_clusters: int) -> np.ndarray | None:
        if not self.has_serials:
            return None
        return self.numbers(values, "center_squared_norms", n_clusters)

    def early_rho(self, n_clusters: int, n_pairs: int) -> np.ndarray:
        """The lines EARLY_RHO to EARLY_SV: float64 (n_clusters, n_pairs)."""
        if self.next_line() != "EARLY_RHO":
            raise self.error("the line EARLY_RHO is missing")
        rho = [
            self.floats((self.next_line() or "").split(), "rho", n_pairs, nan_allowed=True)
            for _ in range(n_clusters)
        ]
        if self.next_line() != "EARLY_SV":
            raise self.error("the line EARLY_SV is missing")
        return np.array(rho).reshape(n_clusters, n_pairs)

    def whole(self, numbers: np.ndarray) -> np.ndarray:
        if np.any((numbers != np.floor(numbers)) | (numbers < 0) | (numbers > 2**53)):
            raise self.error("a number of a row, a cluster or a class is not a whole number")
        return numbers.astype(np.int64)

    def below(self, numbers: np.ndarray, end: int, what: str) -> np.ndarray:
        whole = self.whole(numbers)
        if np.any(whole >= end):
            raise self.error(f"a {what} number is not below {end}")
        return whole.astype(np.int32)

    def fill(self, rows: Rows, shared, row_numbers, exact: ExactModel | None) -> Rows:
        """The rows with those that are also exact support vectors taken from there."""
        numbers = np.empty(0, np.int64) if exact is None else exact.row_numbers
        order = np.argsort(numbers)
        at = np.searchsorted(numbers, row_numbers[shared], sorter=order)
        if len(numbers) == 0 or np.any(
            numbers[order[np.minimum(at, len(numbers) - 1)]] != row_numbers[shared]
        ):
            raise self.error("an early support vector refers to an exact one that does not exist")
        if rows.is_dense:
            for some in slices(len(shared), AT_ONCE // exact.rows.row_size):
                rows.dense[shared[some]] = exact.rows.dense[order[at[some]]]
            return rows
        source = np.arange(rows.n_samples) + exact.rows.n_samples
        source[shared] = order[at]
        return stacked(exact.rows, rows).take(source)


def _ends_of_lines(text: bytes | mmap.mmap) -> np.ndarray:
    """Where the lines end, int64; pages of a mapped file are let go again."""
    parts = []
    for some in slices(len(text), SCANNED_AT_ONCE):
        block = np.frombuffer(text, np.uint8, some.stop - some.start, some.start)
        parts.append(np.flatnonzero(block == ord("\n")) + some.start)
        if isinstance(text, mmap.mmap) and hasattr(mmap, "MADV_DONTNEED"):
            text.madvise(mmap.MADV_DONTNEED, some.start, some.stop - some.start)
    if len(text) and text[-1:] != b"\n":
        parts.append(np.array([len(text)]))
    return np.concatenate(parts) if parts else np.empty(0, np.int64)


def _number(kind, word: str):
    """int or float of a word, but not with the underscores that Python allows."""
    if "_" in word:
        raise ValueError(word)
    return kind(word)


def _is_row_number(word: str) -> bool:
    return word.isascii() and word.isdecimal() and len(word) < 16 and int(word) > 0


def stacked(a: Rows, b: Rows) -> Rows:
    """The rows of a, then those of b, which is in the same form."""
    n_samples = a.n_samples + b.n_samples
    if a.is_dense:
        return Rows(n_samples, a.n_features, dense=np.concatenate((a.dense, b.dense)))
    return Rows(
        n_samples,
        a.n_features,
        indptr=np.concatenate((a.indptr, b.indptr[1:] + a.indptr[-1])),
        indices=np.concatenate((a.indices, b.indices)),
        values=np.concatenate((a.values, b.values)),
    )
