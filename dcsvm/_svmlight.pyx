"""Typed wrappers of csrc/svmlight: text to CSR arrays and back, and CSR to dense.

Checks shapes, releases the GIL, calls. Opens no files and decides nothing about the data.
"""

from cpython.buffer cimport PyBuffer_FillInfo
from libc.stdint cimport int32_t, int64_t
from libcpp cimport bool as cbool
from libcpp.string cimport string
from libcpp.utility cimport move
from libcpp.vector cimport vector

import numpy as np


cdef extern from "svmlight.h" namespace "dcsvm" nogil:
    cdef cppclass TextRows:
        size_t n_prefix
        vector[double] prefix
        vector[int64_t] indptr
        vector[int32_t] indices
        vector[float] values
        int32_t n_features

    cdef struct TextDense:
        const float* values
        size_t n_rows
        size_t n_features

    cdef struct TextCsr:
        const int64_t* indptr
        const int32_t* indices
        const float* values
        size_t n_rows
        size_t n_values

    cdef struct TextLines:
        const double* prefix
        size_t n_prefix
        const int64_t* row_numbers
        size_t n_lines

    void densify_rows "dcsvm::densify"(const TextCsr&, size_t, float*, int) except +
    void write_rows(string&, const TextLines&, const TextDense&) except +
    void write_rows(string&, const TextLines&, const TextCsr&) except +


cdef extern from *:
    """
    // A C++ exception with fields does not pass Cython's "except +"; a struct does.
    struct ParseOutcome {
      dcsvm::TextRows rows;
      bool failed = false;
      std::size_t line = 0, column = 0;
      std::string reason;
    };

    static ParseOutcome parse_outcome(const char* begin, std::size_t size, std::size_t n_prefix,
                                      std::size_t first_line, int threads, const char* name) {
      ParseOutcome outcome;
      try {
        outcome.rows = dcsvm::parse_rows(begin, begin + size, n_prefix, first_line, threads, name);
      } catch (const dcsvm::ParseError& error) {
        outcome.failed = true;
        outcome.line = error.line;
        outcome.column = error.column;
        outcome.reason = error.what();
      }
      return outcome;
    }
    """
    cdef cppclass ParseOutcome:
        TextRows rows
        cbool failed
        size_t line
        size_t column
        string reason

    ParseOutcome parse_outcome(const char*, size_t, size_t, size_t, int, const char*) except + nogil


class ParseError(ValueError):
    """Malformed text: `line` and `column` count from 1 (columns in bytes); `reason` says why."""

    def __init__(self, line, column, reason):
        super().__init__(line, column, reason)
        self.line, self.column, self.reason = line, column, reason

    def __str__(self):
        return f"{self.line}:{self.column}: {self.reason}"


cdef class _Loan:
    """A C++ vector (one of the two) lent to NumPy without a copy; lives as long as its arrays."""

    cdef vector[int32_t] indices
    cdef vector[float] values
    cdef void* data
    cdef Py_ssize_t size

    def __getbuffer__(self, Py_buffer* view, int flags):
        PyBuffer_FillInfo(view, self, self.data, self.size, False, flags)


cdef _lend(_Loan loan, void* data, size_t n_bytes, dtype):
    if n_bytes == 0:
        return np.empty(0, dtype)
    loan.data = data
    loan.size = <Py_ssize_t>n_bytes
    return np.frombuffer(loan, dtype)


def parse(const unsigned char[::1] data not None, size_t n_prefix, size_t first_line, int threads,
          bytes prefix_name=b"label"):
    """Parse LIBSVM text from any contiguous buffer of bytes.

    Returns (prefix float64 (n, n_prefix), indptr int64 (n + 1,), indices int32, values float32,
    n_features). Raises ParseError for malformed text; lines are counted from `first_line`.
    """
    cdef const char* begin = <const char*>&data[0]
    cdef const char* name = prefix_name
    cdef size_t size = data.shape[0]
    cdef ParseOutcome outcome
    with nogil:
        outcome = move(parse_outcome(begin, size, n_prefix, first_line, threads, name))
    if outcome.failed:
        raise ParseError(outcome.line, outcome.column, outcome.reason.decode("ascii"))
    cdef Py_ssize_t n_rows = outcome.rows.indptr.size() - 1
    cdef _Loan indices = _Loan(), values = _Loan()
    indices.indices.swap(outcome.rows.indices)
    values.values.swap(outcome.rows.values)
    prefix = np.array(<double[:n_rows, :n_prefix]>outcome.rows.prefix.data())
    indptr = np.array(<int64_t[:n_rows + 1]>outcome.rows.indptr.data())
    return (
        prefix,
        indptr,
        _lend(indices, indices.indices.data(), indices.indices.size() * sizeof(int32_t), np.int32),
        _lend(values, values.values.data(), values.values.size() * sizeof(float), np.float32),
        outcome.rows.n_features,
    )


cdef TextCsr _csr(const int64_t[::1] indptr, const int32_t[::1] indices,
                  const float[::1] values) except *:
    if indptr.shape[0] < 1 or indices.shape[0] != values.shape[0]:
        raise ValueError(f"CSR arrays of sizes {indptr.shape[0]}, {indices.shape[0]} and "
                         f"{values.shape[0]} do not belong together")
    return TextCsr(&indptr[0], &indices[0], &values[0], indptr.shape[0] - 1, values.shape[0])


cdef TextLines _lines(const double[:, ::1] prefix, const int64_t[::1] row_numbers,
                      size_t n_rows) except *:
    cdef size_t n_lines = n_rows if row_numbers is None else row_numbers.shape[0]
    if <size_t>prefix.shape[0] != n_lines:
        raise ValueError(f"{prefix.shape[0]} prefix rows for {n_lines} lines")
    cdef TextLines lines = TextLines(&prefix[0, 0], prefix.shape[1], NULL, n_lines)
    if row_numbers is not None:
        lines.row_numbers = &row_numbers[0]
    return lines


def densify(const int64_t[::1] indptr not None, const int32_t[::1] indices not None,
            const float[::1] values not None, Py_ssize_t n_features, int threads):
    """Return the CSR rows as a new C-contiguous float32 array (n_rows, n_features)."""
    cdef TextCsr rows = _csr(indptr, indices, values)
    dense = np.zeros((indptr.shape[0] - 1, n_features), np.float32)
    cdef float[:, ::1] view = dense
    cdef float* out = &view[0, 0]
    with nogil:
        densify_rows(rows, n_features, out, threads)
    return dense


def write_dense(const double[:, ::1] prefix not None, const float[:, ::1] rows not None,
                const int64_t[::1] row_numbers=None):
    """Return lines of text, as bytes.

    Line k is row k of `prefix`, then the nonzero features of row `row_numbers[k]` of `rows` (row k
    without `row_numbers`). Every number reads back bit for bit. IndexError for a row that does not
    exist, ValueError for a number that is not finite.
    """
    cdef string out
    cdef TextLines lines = _lines(prefix, row_numbers, rows.shape[0])
    cdef TextDense view = TextDense(&rows[0, 0], rows.shape[0], rows.shape[1])
    with nogil:
        write_rows(out, lines, view)
    return out


def write_csr(const double[:, ::1] prefix not None, const int64_t[::1] indptr not None,
              const int32_t[::1] indices not None, const float[::1] values not None,
              const int64_t[::1] row_numbers=None):
    """Return the lines of `write_dense` for rows in CSR form."""
    cdef string out
    cdef TextCsr view = _csr(indptr, indices, values)
    cdef TextLines lines = _lines(prefix, row_numbers, view.n_rows)
    with nogil:
        write_rows(out, lines, view)
    return out
