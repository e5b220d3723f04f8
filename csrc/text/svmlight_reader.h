// Reader of LIBSVM (svmlight) text: parses lines of "label index:value index:value ..." directly
// into the caller's arrays.
//
// This is the second of two passes: scan_text() of text_chunks.h counts rows and values,
// parse_dense() and parse_csr() read the numbers. Results do not depend on the number of threads.
//
// Unless the format is lenient, the grammar is stricter than LIBSVM's reader: text that LIBSVM
// drops or misreads is an error with its line and column (in bytes, from 1).
#pragma once

#include <cstddef>
#include <cstdint>

#include "text/text_chunks.h"

namespace dcsvm {

// Lines of a precomputed kernel are 0:serial_number, then all columns 1, 2, 3, ... A serial number
// must be a column with `training`, and may be any number with `any`.
enum class Serials { none, training, any };

// Prefix of the lines, and strictness.
struct TextFormat {
  std::size_t n_prefix;     // numbers before the features of a line, at least 1
  const char* prefix_name;  // name of such a number in errors
  std::size_t first_line;   // number of the first line, for errors
  bool lenient;             // accept text that LIBSVM's reader drops or reads differently
  Serials serials = Serials::none;
  std::int64_t first_index = 1;  // index of column 0, 0 or 1

  // Returns how many numbers of a line are stored in `prefix`; the serial number is the last.
  std::size_t prefix_size() const { return n_prefix + (serials != Serials::none); }
};

template <class Number>
struct CsrTarget {
  std::int64_t* indptr;   // n_rows + 1
  std::int32_t* indices;  // capacity n_pairs: columns from 0, ascending within a row
  Number* values;         // capacity n_pairs: never zero
};

// Parse the lines of a text: first finite numbers into `prefix` (n_rows x prefix_size(),
// row-major), then index:value pairs with ascending indices in 1..2^31-2. Numbers become the
// nearest double; float values are rounded from it. Zeros are not stored. The lenient format
// accepts blanks after a colon, drops words without a colon at the end of a line, and accepts
// hexadecimal numbers. Return the number of values stored. Throw the first ParseError
// (svmlight_errors.h) in the text.
//
// Dense rows and rows of bytes are n_rows x n_features, zeroed by the caller; rows of bytes are
// `stride` apart. parse_bytes() sets `fits` to whether all values are integers from 0 to 255. If
// not, it does not parse the text to its end, the bytes are invalid, and it throws no error.
std::size_t parse_bytes(const Text& text, const TextFormat& format, double* prefix,
                        std::uint8_t* rows, std::size_t stride, int threads, bool& fits);
std::size_t parse_dense(const Text& text, const TextFormat& format, double* prefix, float* dense,
                        int threads);
template <class Number>
std::size_t parse_csr(const Text& text, const TextFormat& format, double* prefix,
                      const CsrTarget<Number>& rows, int threads);

}  // namespace dcsvm
