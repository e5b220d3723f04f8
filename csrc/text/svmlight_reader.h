// LIBSVM (svmlight) text, read: lines of "label index:value index:value ..." straight into the
// arrays that keep them.
//
// The second of two passes: scan_text() of text_chunks.h has counted, parse_dense or parse_csr
// reads the numbers. No result depends on the threads.
//
// Unless the format is lenient the grammar is narrower than LIBSVM's own reader: whatever that one
// silently drops or misreads is an error here, with its line and column (in bytes, from 1). Knows
// nothing of files, labels as classes, or model headers; prints nothing.
#pragma once

#include <cstddef>
#include <cstdint>

#include "text/text_chunks.h"

namespace dcsvm {

// Lines of a precomputed kernel are 0:serial_number, then the columns 1, 2, 3, ... with none left
// out. Serial numbers for `training` are those of columns; `any` may be any number.
enum class Serials { none, training, any };

// How a text is to be read: what stands before the features, and how strictly.
struct TextFormat {
  std::size_t n_prefix;     // numbers before the features of a line, at least 1
  const char* prefix_name;  // what such a number is called in errors
  std::size_t first_line;   // number of the first line, for errors
  bool lenient;             // accept what LIBSVM's reader drops or reads differently
  Serials serials = Serials::none;
  std::int64_t first_index = 1;  // of the features, 0 or 1: the column 0 of rows

  // Numbers a line has in `prefix`: the serial number is the last of them.
  std::size_t prefix_size() const { return n_prefix + (serials != Serials::none); }
};

template <class Number>
struct CsrTarget {
  std::int64_t* indptr;   // n_rows + 1
  std::int32_t* indices;  // room for n_pairs: columns from 0, ascending within a row
  Number* values;         // room for n_pairs: never zero
};

// Parse the text's lines: finite numbers (the doubles nearest to their text) into `prefix`
// (n_rows x prefix_size(), row-major), then index:value pairs with ascending indices in
// 1..2^31-2. A float value is the one nearest to the double nearest to its text; zeros are
// not stored. Lenient is: blanks after a colon, words without a colon at the end of a line
// (dropped), hexadecimal numbers. Return the number of values stored. Throw the ParseError
// (svmlight_errors.h) that stands first in the text.
//
// Rows are n_rows x n_features of the text, zeroed by the caller; those of bytes begin `stride`
// apart. `fits` says whether all values are integers from 0 to 255; where they are not, bytes are
// of no use, the text was not parsed to its end, and no error is thrown.
std::size_t parse_bytes(const Text& text, const TextFormat& format, double* prefix,
                        std::uint8_t* rows, std::size_t stride, int threads, bool& fits);
std::size_t parse_dense(const Text& text, const TextFormat& format, double* prefix, float* dense,
                        int threads);
template <class Number>
std::size_t parse_csr(const Text& text, const TextFormat& format, double* prefix,
                      const CsrTarget<Number>& rows, int threads);

}  // namespace dcsvm
