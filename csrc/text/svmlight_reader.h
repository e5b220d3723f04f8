// LIBSVM (svmlight) text, read: lines of "label index:value index:value ..." straight into the
// arrays that keep them.
//
// Two passes. scan_text counts lines and colons, so that the caller knows what to allocate and
// which form the rows should have; parse_dense or parse_csr reads the numbers. Both cut the text
// at newlines into chunks and take these side by side; no result depends on the threads.
//
// Unless the format is lenient the grammar is narrower than LIBSVM's own reader: whatever that one
// silently drops or misreads is an error here, with its line and column (in bytes, from 1). Knows
// nothing of files, labels as classes, or model headers; prints nothing.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

namespace dcsvm {

struct TextChunk {
  const char* begin;
  const char* end;  // after a newline
  std::size_t n_rows, n_pairs;
  std::size_t first_row, first_pair;
  std::int32_t n_features;
};

// The text must stay where it is; its last lines are copied, with room to read ahead.
struct Text {
  std::vector<TextChunk> chunks;
  std::unique_ptr<char[]> last_lines;
  bool is_mapped = false;  // pages of a file: they are let go as soon as they are read
  std::size_t n_rows = 0;
  std::size_t n_pairs = 0;  // at least the number of index:value pairs
  // The largest index, even with a zero value, of text that is well formed; of other text some
  // number in 0..2^31-2.
  std::int32_t n_features = 0;
};

// Lines of a precomputed kernel: 0:serial_number, then the columns 1, 2, 3, ... with none left out.
// `training` serial numbers name a column, `any` ones are what they like.
enum class Serials { none, training, any };

struct TextFormat {
  std::size_t n_prefix;     // numbers before the features of a line, at least 1
  const char* prefix_name;  // what such a number is called in errors
  std::size_t first_line;   // number of the first line, for errors
  bool lenient;             // accept what LIBSVM's reader drops or reads in its own way
  Serials serials = Serials::none;

  // Numbers a line has in `prefix`: the serial number is the last of them.
  std::size_t prefix_size() const { return n_prefix + (serials != Serials::none); }
};

template <class Number>
struct CsrTarget {
  std::int64_t* indptr;   // n_rows + 1
  std::int32_t* indices;  // room for n_pairs: columns from 0, ascending within a row
  Number* values;         // room for n_pairs: never zero
};

constexpr std::size_t kChunkBytes = std::size_t{1} << 18;

// Chunks have about `chunk_bytes`, more where there would be too many. Text that is a mapped file
// is read from there again when it is parsed, and does not stay in memory.
Text scan_text(const char* begin, const char* end, int threads,
               std::size_t chunk_bytes = kChunkBytes, bool is_mapped = false);

// Parse the text's lines: finite numbers (the doubles nearest to their text) into `prefix`
// (n_rows x prefix_size(), row-major), then index:value pairs with ascending indices in
// 1..2^31-2. A float value is the one nearest to the double nearest to its text; zeros are
// not stored. Lenient is: blanks after a colon, words without a colon at the end of a line
// (dropped), hexadecimal numbers. Return the number of values stored. Throw the ParseError
// (svmlight_errors.h) that stands first in the text.
//
// `dense` is n_rows x n_features of the text, zeroed by the caller.
std::size_t parse_dense(const Text& text, const TextFormat& format, double* prefix, float* dense,
                        int threads);
std::size_t parse_csr(const Text& text, const TextFormat& format, double* prefix,
                      const CsrTarget<float>& rows, int threads);
std::size_t parse_csr(const Text& text, const TextFormat& format, double* prefix,
                      const CsrTarget<double>& rows, int threads);

}  // namespace dcsvm
