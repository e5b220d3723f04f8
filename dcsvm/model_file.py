"""The text file of a model.

An exact model begins as a LIBSVM model, which svm-predict reads as it stands: it stops after the
last support vector. What LIBSVM does not know follows in a section of its own. A model that has
only the early level begins with a key that LIBSVM refuses. float32 features and float64
coefficients come back bit for bit.
"""

from __future__ import annotations

import math
import os
import tempfile
from dataclasses import replace

import numpy as np

from dcsvm import _svmlight
from dcsvm.dataset import LARGEST_N_FEATURES, Rows
from dcsvm.kernels import NAMES, Kernel
from dcsvm.model import EarlyModel, ExactModel, Model
from dcsvm.partition import Partition

SECTION = "dcsvm_section"
EARLY_ONLY = "dcsvm_early_model"
VERSION = "1"
LONGEST_QUOTE = 40
LARGEST_EXPANSION = 256  # bytes of dense rows for a byte of text


class ModelError(ValueError):
    """A model file that cannot be used: `file:line: reason` or `file: reason`."""


def save_model(model: Model, path: str | os.PathLike[str]) -> None:
    """Write the model file; an interrupted save leaves an existing file as it was."""
    write_beside(path, _model_text(model))


def write_beside(path: str | os.PathLike[str], parts) -> None:
    """Write byte strings to a new file in the same folder, then rename it to `path`."""
    path = os.fspath(path)
    if path in ("-", "/dev/stdout") or (os.path.exists(path) and not os.path.isfile(path)):
        with open(1 if path == "-" else path, "wb", closefd=path != "-") as file:
            file.writelines(parts)
        return
    folder = os.path.dirname(os.path.realpath(path))
    handle, name = tempfile.mkstemp(prefix=f".{os.path.basename(path)}.", dir=folder)
    try:
        with os.fdopen(handle, "wb") as file:
            file.writelines(parts)
        os.chmod(name, 0o666 & ~_umask())
        os.replace(name, os.path.realpath(path))
    except BaseException:
        os.unlink(name)
        raise


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask


def plain(number: float) -> str:
    """A label as LIBSVM writes it: an integer without a point, else all digits."""
    number = float(number)
    return str(int(number)) if number.is_integer() and abs(number) < 2**53 else repr(number)


def _row_lines(prefix: np.ndarray, rows: Rows, row_numbers=None) -> bytes:
    prefix = np.ascontiguousarray(prefix, dtype=np.float64)
    if len(prefix) == 0:
        return b""
    if row_numbers is not None:
        row_numbers = np.ascontiguousarray(row_numbers, dtype=np.int64)
    if rows.columns is not None:
        serials = (rows.columns + 1).tolist()
        return b"".join(
            f"{' '.join(map(repr, line))} 0:{serial} \n".encode()
            for line, serial in zip(prefix.tolist(), serials, strict=True)
        )
    if rows.is_dense:
        if rows.n_features == 0:
            return b"".join(
                b" ".join(repr(v).encode() for v in line) + b" \n" for line in prefix.tolist()
            )
        return _svmlight.write_dense(prefix, rows.dense, row_numbers)
    return _svmlight.write_csr(prefix, rows.indptr, rows.indices, rows.values, row_numbers)


def _form(rows: Rows) -> str:
    if rows.columns is not None:
        return "serials"
    return "dense" if rows.is_dense else "sparse"


def _kernel_lines(kernel: Kernel) -> list[str]:
    values = kernel.parameters.items()
    return [f"kernel_type {kernel.name}", *(f"{name} {value!r}" for name, value in values)]


def _model_text(model: Model):
    """The file, in parts."""
    labels = " ".join(plain(label) for label in model.labels)
    if model.exact is None:
        yield "\n".join(
            [f"{EARLY_ONLY} {VERSION}", *_kernel_lines(model.kernel), f"label {labels}", ""]
        ).encode()
        yield from _early_text(model.early, None)
        return
    exact = model.exact
    n_first = int(np.count_nonzero(exact.alpha > 0))
    header = [
        "svm_type c_svc",
        *_kernel_lines(model.kernel),
        "nr_class 2",
        f"total_sv {len(exact.alpha)}",
        f"rho {-exact.bias if exact.bias else 0!r}",
        f"label {labels}",
        f"nr_sv {n_first} {len(exact.alpha) - n_first}",
        "SV",
        "",
    ]
    yield "\n".join(header).encode()
    yield _row_lines(exact.alpha[:, None], exact.rows)
    if exact.row_numbers is None:
        return
    form = _form(exact.rows)
    section = f"{SECTION} {VERSION}\nn_features {exact.rows.n_features}\nrows {form}\nrow_numbers"
    yield section.encode()
    yield "".join(f" {number + 1}" for number in exact.row_numbers).encode()
    yield b"\n"
    if model.early is not None:
        yield from _early_text(model.early, exact)


def _early_text(early: EarlyModel, exact: ExactModel | None):
    """The early section: centers (cluster, then the row), then support vectors (cluster, alpha and
    row number; the features only of rows that are not support vectors of the exact model)."""
    partition = early.partition
    norms = partition.squared_norms
    lines = [
        f"early_level {early.level}",
        *(
            [f"n_features {early.rows.n_features}", f"rows {_form(early.rows)}"]
            if exact is None
            else []
        ),
        f"n_clusters {partition.n_clusters}",
        *(f"center_{line}" for line in _kernel_lines(partition.kernel)),
        *([] if norms is None else [f"center_squared_norms {' '.join(map(repr, norms.tolist()))}"]),
        f"total_center_rows {len(partition.cluster)}",
        f"total_early_sv {len(early.alpha)}",
        "CENTERS",
        "",
    ]
    yield "\n".join(lines).encode()
    yield _row_lines(partition.cluster[:, None], partition.sample)
    yield b"EARLY_SV\n"
    shared = (
        np.zeros(len(early.alpha), bool)
        if exact is None or early.rows.columns is not None
        else np.isin(early.row_numbers, exact.row_numbers)
    )
    prefix = np.stack([early.cluster, early.alpha, early.row_numbers + 1, shared], axis=1)
    yield _row_lines(prefix, _blanked(early.rows, shared))


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


def load_model(path: str | os.PathLike[str], *, threads: int = 1) -> Model:
    """Read a model file written by `save_model`, or a binary C-SVC model of LIBSVM's svm-train.

    Raises ModelError for what cannot be opened or used.
    """
    name = os.fspath(path)
    try:
        with open(name, "rb") as file:
            text = file.read()
    except IsADirectoryError:
        raise ModelError(f"{name}: is a directory") from None
    except FileNotFoundError:
        raise ModelError(f"{name}: no such file") from None
    except OSError as error:
        raise ModelError(f"{name}: {(error.strerror or str(error)).lower()}") from error
    return _ModelReader(text, name, threads).read()


def _shown(words: list[str]) -> str:
    """What stands in a file, for an error: not too long, and printable."""
    text = "".join(c if c.isprintable() else "?" for c in " ".join(words))
    return text if len(text) <= LONGEST_QUOTE else text[:LONGEST_QUOTE] + "..."


class _ModelReader:
    """Walks through the lines of a model file; every complaint names the line it is about."""

    def __init__(self, text: bytes, name: str, threads: int):
        self.text, self.name, self.threads = text, name, threads
        ends = np.flatnonzero(np.frombuffer(text, np.uint8) == 10)
        if len(text) and not text.endswith(b"\n"):
            ends = np.append(ends, len(text))
        self.ends = ends
        self.line = 0  # number of lines read
        self.has_serials = False  # rows are serial numbers: a precomputed kernel

    def error(self, reason: str) -> ModelError:
        return ModelError(f"{self.name}:{self.line}: {reason}")

    def next_line(self) -> str | None:
        if self.line >= len(self.ends):
            return None
        begin = self.ends[self.line - 1] + 1 if self.line else 0
        line = self.text[begin : self.ends[self.line]]
        self.line += 1
        return line.decode("utf-8", "replace").strip()

    def header(self, last_key: str) -> dict[str, list[str]]:
        """Keys and values of the lines up to and including the one that is `last_key`."""
        values: dict[str, list[str]] = {}
        while (line := self.next_line()) is not None:
            words = line.split()
            if not words:
                raise self.error("blank line")
            if words[0] == last_key:
                return values
            values[words[0]] = words[1:]
        raise self.error(f"the file ends before the line {last_key}")

    def number(self, values: dict[str, list[str]], key: str, kind, default=None):
        if key not in values and default is not None:
            return default
        try:
            (word,) = values[key]
            number = kind(word)
        except KeyError:
            raise self.error(f"the key {key} is missing") from None
        except ValueError:
            raise self.error(f"{key} {_shown(values[key])!r} is not one {kind.__name__}") from None
        if not math.isfinite(number):
            raise self.error(f"{key} {number} is not finite")
        if kind is int and not 0 <= number <= LARGEST_N_FEATURES:
            raise self.error(f"{key} {number} is not between 0 and {LARGEST_N_FEATURES}")
        return number

    def lines(self, n_lines: int, n_prefix: int, what: bytes):
        """The next n_lines as (prefix, indptr, indices, values, n_features)."""
        if n_lines > len(self.ends) - self.line:
            raise self.error(f"{n_lines} lines are announced, {len(self.ends) - self.line} follow")
        if n_lines == 0:
            empty = np.empty(0, np.float32)
            return np.empty((0, n_prefix)), np.zeros(1, np.int64), empty.astype(np.int32), empty, 0
        begin = self.ends[self.line - 1] + 1
        end = self.ends[self.line + n_lines - 1]
        part = memoryview(self.text)[begin:end]
        serials = "any" if self.has_serials else None
        try:
            text = _svmlight.Text(
                part, n_prefix, self.line + 1, self.threads, what, serials=serials
            )
            parsed = text.csr()
        except _svmlight.ParseError as error:
            raise ModelError(f"{self.name}:{error}") from None
        self.line += n_lines
        return self.serial_rows(*parsed) if self.has_serials else parsed

    def serial_rows(self, prefix, indptr, indices, values, n_columns):
        """Lines that end in serial numbers, as rows with one feature of that index."""
        if n_columns:
            raise self.error("the rows of a precomputed kernel have more than a serial number")
        serial = prefix[:, -1]
        wrong = (serial != np.floor(serial)) | (serial < 1) | (serial > LARGEST_N_FEATURES)
        if wrong.any():
            self.line += int(wrong.argmax()) + 1 - len(serial)
            raise self.error("a serial number is not a whole number from 1")
        columns = serial.astype(np.int32) - 1
        ends = np.arange(len(serial) + 1, dtype=np.int64)
        return prefix[:, :-1], ends, columns, np.ones(len(serial), np.float32), int(serial.max())

    def rows(self, csr, n_features: int, form: str | None) -> Rows:
        indptr, indices, values, largest = csr
        if largest > n_features:
            raise self.error(f"a feature index {largest} is above n_features {n_features}")
        if self.has_serials:
            return Rows(len(indptr) - 1, n_features, columns=indices)
        if form is None:
            return Rows.chosen(indptr, indices, values, n_features, threads=self.threads)
        sparse = Rows(len(indptr) - 1, n_features, indptr=indptr, indices=indices, values=values)
        if form == "sparse":
            return sparse
        if sparse.n_samples * n_features * 4 > LARGEST_EXPANSION * len(self.text) + 2**20:
            raise self.error(f"dense rows of {n_features} features do not fit this file")
        return sparse.in_form_of(Rows(0, n_features, dense=np.empty((0, n_features))), self.threads)

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

    def labels(self, values: dict[str, list[str]]) -> np.ndarray:
        try:
            labels = np.array([float(word) for word in values["label"]])
        except (KeyError, ValueError):
            raise self.error("the key label is missing or not a list of numbers") from None
        if not np.all(np.isfinite(labels)):
            raise self.error("the labels are not finite numbers")
        if len(labels) != 2:
            raise self.error(f"found {len(labels)} labels; only two are supported")
        return labels

    def read(self) -> Model:
        first = (self.next_line() or "").split()
        if first[:1] == [EARLY_ONLY]:
            self.check_version(first)
            self.line = 0
            values = self.header("CENTERS")
            kernel, labels = self.kernel(values), self.labels(values)
            return Model(kernel, labels, None, self.early(values, None))
        if first[:1] not in (["svm_type"], ["kernel_type"]):
            raise self.error("this is not a model file")
        self.line = 0
        values = self.header("SV")
        if values.get("svm_type") != ["c_svc"]:
            svm_type = _shown(values.get("svm_type", ["missing"]))
            raise self.error(f"svm_type {svm_type} is not supported")
        labels, kernel = self.labels(values), self.kernel(values)
        bias = -self.number(values, "rho", float)
        n_sv = self.number(values, "total_sv", int)
        prefix, *csr = self.lines(n_sv, 1, b"coefficient")
        section = self.section(n_sv)
        n_features = self.number(section, "n_features", int, csr[3]) if section else csr[3]
        form = self.form(section) if section else None
        rows = self.rows(csr, n_features, form)
        numbers = np.array(section["row_numbers"], np.int64) - 1 if section else None
        exact = ExactModel(rows, prefix[:, 0].copy(), numbers, bias)
        early = self.early(section, exact) if section and "early_level" in section else None
        return Model(kernel, labels, exact, early)

    def check_version(self, words: list[str]) -> None:
        if words[1:] != [VERSION]:
            raise self.error(
                f"version {_shown(words[1:])} is not {VERSION}; a newer dcsvm wrote it"
            )

    def section(self, n_sv: int) -> dict[str, list[str]] | None:
        """What follows the support vectors; None when nothing of ours does."""
        words = (self.next_line() or "").split()
        if words[:1] != [SECTION]:
            return None
        self.check_version(words)
        section: dict[str, list[str]] = {}
        while (line := self.next_line()) is not None and line != "CENTERS":
            key, *words = line.split() or [""]
            section[key] = words
        numbers = section.get("row_numbers", [])
        if len(numbers) != n_sv or not all(map(_is_row_number, numbers)):
            raise self.error(f"row_numbers are not {n_sv} numbers from 1")
        return section

    def form(self, values: dict[str, list[str]]) -> str:
        form = " ".join(values.get("rows", ["missing"]))
        known = ("serials",) if self.has_serials else ("dense", "sparse")
        if form not in known:
            raise self.error(f"rows {_shown([form])} is not {' or '.join(known)}")
        return form

    def early(self, values: dict[str, list[str]], exact: ExactModel | None) -> EarlyModel:
        n_clusters = self.number(values, "n_clusters", int)
        n_features = self.number(values, "n_features", int)
        form = self.form(values)
        prefix, *csr = self.lines(self.number(values, "total_center_rows", int), 1, b"cluster")
        sample = self.rows(csr, n_features, form)
        cluster = self.clusters(prefix[:, 0], n_clusters)
        if n_clusters == 0 or len(np.unique(cluster)) != n_clusters:
            raise self.error(f"the centers do not have {n_clusters} clusters")
        if self.next_line() != "EARLY_SV":
            raise self.error("the line EARLY_SV is missing")
        prefix, *csr = self.lines(self.number(values, "total_early_sv", int), 4, b"coefficient")
        row_numbers = self.whole(prefix[:, 2]) - 1
        rows = self.rows(csr, n_features, form)
        shared = np.flatnonzero(prefix[:, 3])
        if len(shared) and not self.has_serials:
            rows = self.fill(rows, shared, row_numbers, exact)
        return EarlyModel(
            level=self.number(values, "early_level", int),
            partition=Partition(
                self.kernel(values, "center_"),
                sample,
                cluster,
                self.squared_norms(values, n_clusters),
            ),
            cluster=self.clusters(prefix[:, 0], n_clusters),
            rows=rows,
            alpha=prefix[:, 1].copy(),
            row_numbers=row_numbers,
        )

    def squared_norms(self, values: dict[str, list[str]], n_clusters: int) -> np.ndarray | None:
        if not self.has_serials:
            return None
        try:
            norms = np.array([float(word) for word in values["center_squared_norms"]])
        except (KeyError, ValueError):
            raise self.error("center_squared_norms are missing or not numbers") from None
        if len(norms) != n_clusters or not np.all(np.isfinite(norms)):
            raise self.error(f"center_squared_norms are not {n_clusters} finite numbers")
        return norms

    def whole(self, numbers: np.ndarray) -> np.ndarray:
        if np.any((numbers != np.floor(numbers)) | (numbers < 0) | (numbers > 2**53)):
            raise self.error("a row or cluster number is not a whole number")
        return numbers.astype(np.int64)

    def clusters(self, numbers: np.ndarray, n_clusters: int) -> np.ndarray:
        cluster = self.whole(numbers)
        if np.any(cluster >= n_clusters):
            raise self.error(f"a cluster number is not below {n_clusters}")
        return cluster.astype(np.int32)

    def fill(self, rows: Rows, shared, row_numbers, exact: ExactModel | None) -> Rows:
        """The rows with those that are also exact support vectors taken from there."""
        numbers = np.empty(0, np.int64) if exact is None else exact.row_numbers
        order = np.argsort(numbers)
        at = np.searchsorted(numbers, row_numbers[shared], sorter=order)
        if len(numbers) == 0 or np.any(
            numbers[order[np.minimum(at, len(numbers) - 1)]] != row_numbers[shared]
        ):
            raise self.error("an early support vector refers to an exact one that does not exist")
        source = np.arange(rows.n_samples) + exact.rows.n_samples
        source[shared] = order[at]
        return stacked(exact.rows, rows).take(source)


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
