// LIBSVM (svmlight) text, written: dense or CSR rows, so that every float32 reads back bit for bit.
// Also CSR rows made dense. Opens no files, prints nothing.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

namespace dcsvm {

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

// The numbers before the features of each written line, and which row the features come from.
struct TextLines {
  const double* prefix;  // n_lines x n_prefix, row-major: line k takes row k of it
  std::size_t n_prefix;
  const std::int64_t* row_numbers;  // n_lines, or null: line k holds row k
  std::size_t n_lines;
  std::size_t first_index = 1;  // that of column 0
  bool float64 = false;         // features with the digits by which float64 is the same number, too
};

// Scatters CSR rows into `out` (n_rows x n_features, zeroed by the caller).
// Throws std::invalid_argument where indptr or a column does not fit.
void densify(const TextCsr& rows, std::size_t n_features, float* out, int threads);

// Appends one line per selected row: the prefix, then the nonzero features, each followed by one
// space, as svm-train writes its support vectors. Numbers are the shortest text that reads back
// bit for bit. Rows are TextDense or TextCsr. Throws std::out_of_range for a row number that does
// not exist and std::invalid_argument for a number that is not finite or columns that do not
// ascend.
template <class Rows>
void write_rows(std::string& out, const TextLines& lines, const Rows& rows);

}  // namespace dcsvm
