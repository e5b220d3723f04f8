// LIBSVM (svmlight) text: rows of "label index:value index:value ..." read into CSR arrays, and
// dense or CSR rows written back so that every float32 returns bit for bit.
//
// The grammar is narrower than LIBSVM's own reader: whatever that one silently drops or misreads
// is an error here, with its line and column (in bytes, from 1). Knows nothing of files, labels as
// classes, or model headers; prints nothing; needs only the standard library.
#pragma once

#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <vector>

namespace dcsvm {

struct ParseError : std::runtime_error {
  ParseError(std::size_t line_number, std::size_t column_number, const std::string& reason)
      : std::runtime_error(reason), line(line_number), column(column_number) {}
  std::size_t line;
  std::size_t column;
};

struct TextRows {
  std::size_t n_prefix = 0;
  std::vector<double> prefix;         // n_rows x n_prefix, row-major
  std::vector<std::int64_t> indptr;   // n_rows + 1
  std::vector<std::int32_t> indices;  // columns from 0, ascending within a row
  std::vector<float> values;          // never zero
  std::int32_t n_features = 0;        // the largest 1-based index seen, even with a zero value
};

// Rows to be written or made dense. Views only.
struct TextDense {
  const float* values;  // n_rows x n_features, row-major
  std::size_t n_rows;
  std::size_t n_features;
};

struct TextCsr {
  const std::int64_t* indptr;   // n_rows + 1
  const std::int32_t* indices;  // n_values
  const float* values;          // n_values
  std::size_t n_rows;
  std::size_t n_values;
};

// What stands before the features of each written line, and which row the features come from.
struct TextLines {
  const double* prefix;  // n_lines x n_prefix, row-major: line k takes row k of it
  std::size_t n_prefix;
  const std::int64_t* row_numbers;  // n_lines, or null: line k holds row k
  std::size_t n_lines;
};

// Parses [begin, end): on each line n_prefix (at least 1) finite numbers, then index:value pairs
// with ascending indices in 1..2^31-2. A value is the float nearest to the double nearest to its
// text; zeros are not stored. `first_line` is the number of the first line and `prefix_name` what
// a prefix number is called in errors. Throws the ParseError that stands first in the text.
// The result does not depend on `threads`.
TextRows parse_rows(const char* begin, const char* end, std::size_t n_prefix,
                    std::size_t first_line, int threads, const char* prefix_name = "label");

// Scatters CSR rows into `out` (n_rows x n_features, zeroed by the caller).
// Throws std::invalid_argument where indptr or a column does not fit.
void densify(const TextCsr& rows, std::size_t n_features, float* out, int threads);

// Appends one line per selected row: the prefix, then the nonzero features, each followed by one
// space, as svm-train writes its support vectors. Numbers are the shortest text that reads back
// bit for bit. Throws std::out_of_range for a row number that does not exist and
// std::invalid_argument for a number that is not finite or columns that do not ascend.
void write_rows(std::string& out, const TextLines& lines, const TextDense& rows);
void write_rows(std::string& out, const TextLines& lines, const TextCsr& rows);

}  // namespace dcsvm
