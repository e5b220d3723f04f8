"""Typed wrappers of csrc/text: convert text to dense or CSR arrays and back, and CSR to dense.

The wrappers check shapes, allocate arrays, release the GIL and call; they open no files.
"""

from cpython.object cimport PyObject
from libc.stdint cimport int32_t, int64_t, uint8_t
from libcpp cimport bool as cbool
from libcpp.string cimport string
from libcpp.utility cimport move

import numpy as np


cdef extern from "text/svmlight_writer.h" namespace "dcsvm" nogil:
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
        size_t first_index
        cbool float64

    void densify_rows "dcsvm::densify"(const TextCsr&, size_t, float*, int) except +
    void write_rows(string&, const TextLines&, const TextDense&, int) except +
    void write_rows(string&, const TextLines&, const TextCsr&, int) except +


cdef extern from *:
    """
    #include "text/svmlight_errors.h"

    static PyObject *parse_error, *zero_index;  // the classes below

    // A C++ exception with fields does not pass Cython's own "except +".
    static void raise_parse_error() {
      try {
        throw;
      } catch (const dcsvm::ParseError& error) {
        const bool is_zero_index = dynamic_cast<const dcsvm::ZeroIndex*>(&error) != nullptr;
        PyObject* arguments =
            Py_BuildValue("(nns)", static_cast<Py_ssize_t>(error.line),
                          static_cast<Py_ssize_t>(error.column), error.what());
        if (arguments) PyErr_SetObject(is_zero_index ? zero_index : parse_error, arguments);
        Py_XDECREF(arguments);
      } catch (const std::bad_alloc&) {
        PyErr_NoMemory();
      } catch (const std::exception& error) {
        PyErr_SetString(PyExc_RuntimeError, error.what());
      }
    }
    """
    PyObject* parse_error
    PyObject* zero_index
    void raise_parse_error()


cdef extern from "text/text_chunks.h" namespace "dcsvm" nogil:
    cdef struct TextSource:
        const char* memory
        int file
        size_t offset
        size_t size

    cdef cppclass CText "dcsvm::Text":
        size_t n_rows
        size_t n_lines
        size_t n_pairs
        int32_t n_features

    const size_t usual_chunk_bytes
    CText scan_text(const TextSource&, int, size_t, cbool) except +raise_parse_error


cdef extern from "text/svmlight_reader.h" namespace "dcsvm" nogil:
    cdef enum class Serials:
        none
        training
        any

    cdef cppclass TextFormat:
        size_t n_prefix
        const char* prefix_name
        size_t first_line
        cbool lenient
        Serials serials
        int64_t first_index
        size_t prefix_size() const

    cdef cppclass CsrTarget[Number]:
        int64_t* indptr
        int32_t* indices
        Number* values

    size_t parse_bytes(const CText&, const TextFormat&, double*, uint8_t*, size_t, int,
                       cbool&) except +raise_parse_error
    size_t parse_dense(const CText&, const TextFormat&, double*, float*,
                       int) except +raise_parse_error
    size_t parse_csr(const CText&, const TextFormat&, double*, const CsrTarget[float]&,
                     int) except +raise_parse_error
    size_t parse_csr(const CText&, const TextFormat&, double*, const CsrTarget[double]&,
                     int) except +raise_parse_error


SERIALS = {None: Serials.none, "training": Serials.training, "any": Serials.any}


class ParseError(ValueError):
    """Malformed text; `line` and `column` count from 1, columns in bytes.

    Line 0 means the whole text: the file changed or cannot be read.
    """

    def __init__(self, line, column, reason):
        super().__init__(line, column, reason)
        self.line, self.column, self.reason = line, column, reason

    def __str__(self):
        return f"{self.line}:{self.column}: {self.reason}" if self.line else f" {self.reason}"


class ZeroIndex(ParseError):
    """Feature index 0 in text with the first index 1."""


parse_error, zero_index = <PyObject*>ParseError, <PyObject*>ZeroIndex


cdef class Text:
    """LIBSVM text; its extent is scanned on construction.

    `data` is a contiguous buffer of bytes, or an open file with `fileno()`, `offset` and a length,
    which is read piece by piece. `part` is the range of its bytes (begin, end), or None for all.
    The text has `n_rows` rows, at most `n_pairs` values and, if well formed, `n_features` features.
    Each line has `n_prefix` numbers before the features, called `prefix_name` in errors. Lines are
    counted from `first_line`. `lenient` accepts comments, and lines that LIBSVM's reader drops or
    reads differently. `first_index` is the index of column 0: 0 or 1. `serials` is for text of a
    precomputed kernel. Each line then has a serial number, the last number of the prefix, and all
    kernel values. "training" serial numbers must be column indices; "any" are not checked. The
    methods raise ParseError for malformed text.
    """

    cdef CText text
    cdef TextFormat format
    cdef bytes prefix_name
    cdef int threads
    cdef object data

    def __init__(self, data, size_t n_prefix=1, size_t first_line=1, int threads=1,
                 bytes prefix_name=b"label", cbool lenient=False, serials=None,
                 int first_index=1, part=None):
        if n_prefix == 0:
            raise ValueError("n_prefix must be at least 1, got 0")
        cdef size_t begin, end
        cdef const unsigned char[::1] view
        cdef TextSource source
        begin, end = part or (0, len(data))
        if not begin < end <= <size_t>len(data):
            raise ParseError(first_line, 1, "no rows")
        source.memory = NULL
        source.file, source.offset, source.size = -1, 0, end - begin
        if hasattr(data, "fileno"):
            source.file, source.offset = data.fileno(), data.offset + begin
        else:
            view = data
            source.memory = <const char*>&view[begin]
        self.data, self.prefix_name, self.threads = data, prefix_name, threads
        self.format.n_prefix, self.format.first_line = n_prefix, first_line
        self.format.prefix_name, self.format.lenient = self.prefix_name, lenient
        self.format.serials, self.format.first_index = SERIALS[serials], first_index
        with nogil:
            self.text = move(scan_text(source, threads, usual_chunk_bytes, lenient))
        if self.text.n_rows == 0:
            raise ParseError(first_line, 1, "no rows")
        if self.text.n_pairs > 0:
            self.text.n_features += 1 - first_index

    @property
    def n_rows(self):
        return self.text.n_rows

    @property
    def n_lines(self):
        return self.text.n_lines

    @property
    def n_pairs(self):
        return self.text.n_pairs

    @property
    def n_features(self):
        return self.text.n_features

    def widen(self, int32_t n_features):
        """Set the minimum number of features."""
        self.text.n_features = max(self.text.n_features, n_features)

    def bytes(self, uint8_t[:, ::1] rows not None):
        """Write the values to uint8 rows (n_rows, n_features or more) of zeros.

        Returns (prefix, number of nonzero values), or None if a value is not an integer from 0 to
        255.
        """
        cdef double[:, ::1] prefix = np.empty((self.n_rows, self.format.prefix_size()))
        cdef cbool fits = True
        cdef size_t n_stored
        if rows.shape[0] != <Py_ssize_t>self.n_rows or rows.shape[1] < self.n_features:
            raise ValueError(f"rows must have shape ({self.n_rows}, {self.n_features} or more), got "
                             f"({rows.shape[0]}, {rows.shape[1]})")
        with nogil:
            n_stored = parse_bytes(self.text, self.format, &prefix[0, 0], &rows[0, 0],
                                   rows.shape[1], self.threads, fits)
        return (np.asarray(prefix), n_stored) if fits else None

    def dense(self, float[:, ::1] rows not None):
        """Write the values to float32 rows (n_rows, n_features) of zeros.

        Returns (prefix float64 (n_rows, n_prefix, or one more with serial numbers), number of
        nonzero values).
        """
        cdef double[:, ::1] prefix = np.empty((self.n_rows, self.format.prefix_size()))
        cdef size_t n_stored
        if rows.shape[0] != <Py_ssize_t>self.n_rows or rows.shape[1] != self.n_features:
            raise ValueError(f"rows must have shape ({self.n_rows}, {self.n_features}), got "
                             f"({rows.shape[0]}, {rows.shape[1]})")
        with nogil:
            n_stored = parse_dense(self.text, self.format, &prefix[0, 0], &rows[0, 0], self.threads)
        return np.asarray(prefix), n_stored

    def csr(self, *, cbool float64=False, make=np.empty):
        """Return (prefix, indptr int64 (n_rows + 1,), indices int32, values, n_features).

        Values are float32 or `float64` and never zero. make((size,), dtype) allocates the indices
        and values.
        """
        cdef double[:, ::1] prefix = np.empty((self.n_rows, self.format.prefix_size()))
        cdef int64_t[::1] indptr = np.empty(self.n_rows + 1, np.int64)
        columns = make((self.n_pairs,), np.int32)
        values = make((self.n_pairs,), np.float64 if float64 else np.float32)
        cdef int32_t[::1] indices = columns
        cdef double[::1] doubles = values if float64 else np.empty(0)
        cdef float[::1] floats = np.empty(0, np.float32) if float64 else values
        cdef double* out = &prefix[0, 0]
        cdef CsrTarget[double] into_doubles
        cdef CsrTarget[float] into_floats
        cdef size_t n_stored
        into_doubles.indptr = into_floats.indptr = &indptr[0]
        into_doubles.indices = into_floats.indices = &indices[0]
        into_doubles.values, into_floats.values = &doubles[0], &floats[0]
        with nogil:
            if float64:
                n_stored = parse_csr(self.text, self.format, out, into_doubles, self.threads)
            else:
                n_stored = parse_csr(self.text, self.format, out, into_floats, self.threads)
        return (
            np.asarray(prefix),
            np.asarray(indptr),
            _first(columns, n_stored),
            _first(values, n_stored),
            self.n_features,
        )


def _first(array, n):
    """Return the first n elements; a copy if the rest is large, so that it can be freed."""
    return array[:n] if 2 * n >= len(array) else array[:n].copy()


cdef TextCsr _csr(const int64_t[::1] indptr, const int32_t[::1] indices,
                  const float[::1] values) except *:
    if indptr.shape[0] < 1 or indices.shape[0] != values.shape[0]:
        raise ValueError(f"CSR arrays of sizes {indptr.shape[0]}, {indices.shape[0]} and "
                         f"{values.shape[0]} do not belong together")
    return TextCsr(&indptr[0], &indices[0], &values[0], indptr.shape[0] - 1, values.shape[0])


cdef TextLines _lines(const double[:, ::1] prefix, const int64_t[::1] row_numbers,
                      size_t n_rows, size_t first_index, cbool float64) except *:
    cdef size_t n_lines = n_rows if row_numbers is None else row_numbers.shape[0]
    if <size_t>prefix.shape[0] != n_lines:
        raise ValueError(f"{prefix.shape[0]} prefix rows for {n_lines} lines")
    cdef TextLines lines = TextLines(&prefix[0, 0], prefix.shape[1], NULL, n_lines, first_index,
                                     float64)
    if row_numbers is not None:
        lines.row_numbers = &row_numbers[0]
    return lines


def densify(const int64_t[::1] indptr not None, const int32_t[::1] indices not None,
            const float[::1] values not None, Py_ssize_t n_features, int threads, make=np.zeros):
    """Return the CSR rows as C-contiguous float32 (n_rows, n_features).

    make(shape, dtype) allocates an array of zeros.
    """
    cdef TextCsr rows = _csr(indptr, indices, values)
    dense = make((indptr.shape[0] - 1, n_features), np.float32)
    cdef float[:, ::1] view = dense
    cdef float* out = &view[0, 0]
    with nogil:
        densify_rows(rows, n_features, out, threads)
    return dense


def write_dense(const double[:, ::1] prefix not None, const float[:, ::1] rows not None,
                const int64_t[::1] row_numbers=None, size_t first_index=1, *, cbool float64=False,
                int threads=1):
    """Return lines of text, as bytes; `first_index` is the index of column 0.

    Line k is row k of `prefix`, then the nonzero features of row `row_numbers[k]` of `rows` (row k
    without `row_numbers`). Numbers read back bit for bit; with `float64`, so do features that are
    read as float64. Raises IndexError for a row that does not exist, and ValueError for a number
    that is not finite.
    """
    cdef string out
    cdef TextLines lines = _lines(prefix, row_numbers, rows.shape[0], first_index, float64)
    cdef TextDense view = TextDense(&rows[0, 0], rows.shape[0], rows.shape[1])
    with nogil:
        write_rows(out, lines, view, threads)
    return out


def write_csr(const double[:, ::1] prefix not None, const int64_t[::1] indptr not None,
              const int32_t[::1] indices not None, const float[::1] values not None,
              const int64_t[::1] row_numbers=None, size_t first_index=1, *, cbool float64=False,
              int threads=1):
    """Return the lines of `write_dense` for CSR rows."""
    cdef string out
    cdef TextCsr view = _csr(indptr, indices, values)
    cdef TextLines lines = _lines(prefix, row_numbers, view.n_rows, first_index, float64)
    with nogil:
        write_rows(out, lines, view, threads)
    return out
