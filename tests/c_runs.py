"""Compile models in C and call their functions; NumPy's float64 values of the same models."""

import ctypes
import re
import shutil
import subprocess

import numpy as np
import pytest
from reference import kernel_values

from dcsvm.data.dataset import Dataset
from dcsvm.data.rows import Storage

FLAGS = ("-std=c99", "-Wall", "-Wextra", "-Wconversion", "-pedantic", "-Werror")
CLOSE = 1e-5  # of the spread of the values of dcsvm-predict
EXACT = 1e-12  # of the sum of |alpha| times the largest |K|, of NumPy's
DOUBLES = ctypes.POINTER(ctypes.c_double)


def compile_with(compiler, source, *arguments):
    done = subprocess.run(
        [compiler, *FLAGS, str(source), *arguments], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr[:4000]


class Program:
    """The functions of a model in C, called with rows (n, DCSVM_COLUMNS).

    The test is skipped without a C compiler. clang, if it is there, checks the file, too.
    """

    def __init__(self, text, folder):
        if shutil.which("cc") is None:
            pytest.skip("there is no C compiler")
        assert text.isascii()
        source, library = folder / "model.c", folder / f"model{len(list(folder.iterdir()))}.so"
        source.write_text(text)
        compile_with("cc", source, "-O2", "-shared", "-fPIC", "-o", str(library), "-lm")
        if shutil.which("clang"):
            compile_with("clang", source, "-fsyntax-only")
        self.library = ctypes.CDLL(str(library))
        self.library.dcsvm_label.restype = ctypes.c_double
        numbers = re.findall(r"^#define DCSVM_(\w+) (\d+)", text, re.M)
        self.sizes = {name.lower(): int(number) for name, number in numbers}

    def values(self, X):
        return self._by_row("dcsvm_values", X, self.sizes["values"])

    def probabilities(self, X):
        return self._by_row("dcsvm_probabilities", X, max(self.sizes["classes"], 2))

    def labels(self, X):
        return np.array([self.library.dcsvm_label(pointer(row)) for row in as_rows(X)])

    def named_labels(self, X):
        kind = ctypes.c_char_p * self.sizes["classes"]
        names = np.array([one.decode() for one in kind.in_dll(self.library, "dcsvm_label_names")])
        return names[self.labels(X).astype(int)]

    def code(self, column, text):
        self.library.dcsvm_code.restype = ctypes.c_double
        return self.library.dcsvm_code(column, ctypes.c_char_p(text.encode()))

    def rows_of(self, model, frame):
        """Return the rows of a data frame for a model of a table."""
        rows = np.empty((len(frame), len(model.table.columns)))
        for k, column in enumerate(model.table.columns):
            values = frame[column.name]
            if column.kind == "category":
                texts = ["" if one is None or one != one else str(one) for one in values]
                codes = {text: self.code(k, text) for text in set(texts)}
                values = [codes[text] for text in texts]
            elif column.kind in ("date", "time"):
                unit = 86400.0 if column.kind == "date" else 3600.0
                since = values - np.datetime64(0, "us") if column.kind == "date" else values
                values = since.dt.total_seconds() / unit
            rows[:, k] = values
        return rows

    def sparse_values(self, X):
        result = []
        for row in as_rows(X):
            places = np.flatnonzero(row).astype(np.int32)
            own, out = np.ascontiguousarray(row[places]), np.empty(max(self.sizes["values"], 1))
            index = places.ctypes.data_as(ctypes.POINTER(ctypes.c_int))
            found = self.library.dcsvm_values_sparse(len(own), index, pointer(own), pointer(out))
            assert found == self.sizes["values"]
            result.append(out)
        return np.array(result)

    def _by_row(self, name, X, n_values):
        rows, result = as_rows(X), np.empty((len(X), max(n_values, 1)))
        function = getattr(self.library, name)
        for row, out in zip(rows, result, strict=True):
            assert function(pointer(row), pointer(out)) == n_values
        return result[:, :n_values]


def as_rows(X):
    return np.ascontiguousarray(X, np.float64)


def pointer(values):
    return values.ctypes.data_as(DOUBLES)


def dense64(rows):
    return rows.part(slice(0, rows.n_samples)).in_storage(Storage.FLOATS).matrix.astype(np.float64)


def coefficients(part, n_pairs):
    """Return the coefficients of all pairs, (n_sv, n_pairs)."""
    coef, class_ = part.dual_coef.T, part.class_
    if n_pairs == 1:
        return coef
    k = coef.shape[1] + 1
    pairs = {}
    for i in range(k):
        for j in range(i + 1, k):
            pairs[i, j] = pairs[j, i] = len(pairs) // 2
    found = np.zeros((len(coef), n_pairs))
    for s, own in enumerate(class_):
        for line in range(k - 1):
            found[s, pairs[own, line + (line >= own)]] = coef[s, line]
    return found


def numpy_values(model, X, method=None):
    """Compute decision values and the unit of their errors in float64, (n, n_pairs) each."""
    data = X if isinstance(X, Dataset) else Dataset(X, like=model)
    part = model.with_own_rows().part(method)
    Z, A = dense64(part.rows), coefficients(part, model.n_pairs)
    rows = wide(dense64(data.rows), Z.shape[1])
    Z = wide(Z, rows.shape[1])
    K = kernel_values(model.kernel, rows, Z)
    size = np.abs(K).max(initial=1.0) * np.abs(A).sum(axis=0) + 1.0
    if not hasattr(part, "partition"):
        return K @ A - part.rho, np.broadcast_to(size, (len(rows), model.n_pairs))
    first, second, distance = routed(part.partition, rows)

    def of(clusters):
        own = part.cluster == clusters[:, None]
        return (K * own) @ A - part.rho[clusters]

    values, blend = of(first), part.partition.blend
    if blend > 0:
        share = np.minimum(0.5 * (1 + distance / blend), 1.0)
        near = np.flatnonzero((second >= 0) & (share < 1))
        one, other = values[near], of(np.maximum(second, 0))[near]
        mean = share[near, None] * one + (1 - share[near, None]) * other
        values[near] = np.where(np.isnan(mean), np.where(np.isnan(one), other, one), mean)
    return values, np.broadcast_to(size, values.shape)


def wide(rows, n_features):
    return np.pad(rows, ((0, 0), (0, max(n_features - rows.shape[1], 0))))


def routed(partition, rows):
    """Return the nearest clusters, the second ones and the distances to the boundaries."""
    sample = wide(dense64(partition.sample), rows.shape[1])
    K = kernel_values(partition.kernel, rows, wide(sample, rows.shape[1]))
    found = []
    for own in K:
        node, second, distance = 0, -1, np.inf
        begin = 0
        for split in partition.splits:
            node, across, to_boundary = child_of(split, own[begin:], node)
            if to_boundary < distance:
                second, distance = across, to_boundary
            elif second >= 0:
                second, _, _ = child_of(split, own[begin:], second)
            begin += len(split.child)
        found.append((node, second, distance))
    nearest, second, distance = (np.array(column) for column in zip(*found, strict=True))
    return nearest, second, distance


def child_of(split, K, node):
    first, n = split.first_child[node], int(split.n_parts[node])
    if n == 1:
        return int(first), -1, np.inf
    begin = int((split.n_parts[:node] ** 2).sum())
    products = split.products[begin : begin + n * n].reshape(n, n)
    own = slice(split.start[node], split.start[node + 1])
    part = split.child[own]
    means = np.bincount(part, K[own], n) / np.maximum(np.bincount(part, minlength=n), 1)
    squared = np.diagonal(products) - 2 * means
    best = int(np.argmin(squared))
    norms = np.diagonal(products)[best] + np.diagonal(products)
    between = np.maximum(norms - 2 * products[best], 1e-12 * np.abs(norms))
    between[best] = 1.0  # it has no boundary with itself
    distances = (squared - squared[best]) / (2 * np.sqrt(between))
    distances[best] = np.inf
    other = int(np.argmin(distances))
    return int(first) + best, int(first) + other, distances[other]


def check(model, program, given, X, method=None):
    """Compare values with those of NumPy and of dcsvm: of rows `given` in C, X in Python."""
    found = program.values(given)
    expected, unit = numpy_values(model, X, method)
    assert np.array_equal(np.isnan(found), np.isnan(expected))
    assert np.nanmax(np.abs(found - expected) / unit, initial=0.0) <= EXACT
    ours = model.decision_function(X, method=method).reshape(found.shape)
    spread = np.nanstd(ours) or 1.0
    np.testing.assert_allclose(found, ours, rtol=0, atol=CLOSE * spread)
    return found, ours


def same_labels(found, expected, values):
    """Compare labels, but for rows with a decision value (n, n_pairs) that is nearly 0."""
    sure = ~(np.abs(values) <= CLOSE * np.nanstd(values)).any(axis=1)
    assert np.array_equal(np.asarray(found)[sure], np.asarray(expected)[sure])
    assert sure.mean() > 0.9
