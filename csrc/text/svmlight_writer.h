// Writer of LIBSVM (svmlight) text: dense or CSR rows, such that every float32 reads back bit for
// bit. Also converts CSR rows to dense.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

namespace dcsvm {

// Views of rows to write or convert.
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

// The numbers before the features of each line, and the row that holds its features.
struct TextLines {
  const double* prefix;  // n_lines x n_prefix, row-major
  std::size_t n_prefix;
  const std::int64_t* row_numbers;  // n_lines, or null: line k holds row k
  std::size_t n_lines;
  std::size_t first_index = 1;  // index of column 0
  bool float64 = false;         // write enough digits for float64
};

// Scatters CSR rows into `out` (n_rows x n_features, zeroed by the caller). Throws
// std::invalid_argument for an inconsistent indptr or column.
void densify(const TextCsr& rows, std::size_t n_features, float* out, int threads);

// Appends one line per selected row: the prefix, then the nonzero features, each followed by a
// space, like svm-train's support vectors. Numbers are the shortest text that reads back bit for
// bit. Rows are TextDense or TextCsr. Throws std::out_of_range for a row that does not exist, and
// std::invalid_argument for numbers that are not finite or columns that do not ascend.
template <class Rows>
void write_rows(std::string& out, const TextLines& lines, const Rows& rows, int threads = 1);

}  // namespace dcsvm
