// Sums of rows of a matrix, several at once.
#pragma once

#include <cstddef>
#include <cstdint>

namespace dcsvm {

struct MatrixView {
  const float* values;  // row by row
  std::size_t n_rows, n_columns;
};

// sums[s * n_columns + k] += values of column k in the rows with sum_of[row] == s; a row with -1 is
// in none. Each is added up row by row.
void add_rows(const MatrixView& matrix, const std::int32_t* sum_of, int n_threads, double* sums);

}  // namespace dcsvm
