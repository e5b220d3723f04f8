#include "rows/row_sums.h"

#include <algorithm>

#include "threads/parallel.h"

namespace dcsvm {

namespace {
// Their part of a row is whole cache lines; a sum for each fits the first-level cache many times.
constexpr std::size_t columns_at_once = 64;
}  // namespace

void add_rows(const MatrixView& matrix, const std::int32_t* sum_of, int n_threads, double* sums) {
  const std::size_t d = matrix.n_columns;
  parallel_for({n_threads, (d + columns_at_once - 1) / columns_at_once}, [&](std::size_t block) {
    const std::size_t begin = block * columns_at_once, end = std::min(begin + columns_at_once, d);
    for (std::size_t i = 0; i < matrix.n_rows; ++i) {
      if (sum_of[i] < 0) continue;
      const float* row = matrix.values + i * d;
      double* sum = sums + static_cast<std::size_t>(sum_of[i]) * d;
      for (std::size_t k = begin; k < end; ++k) sum[k] += row[k];
    }
  });
}

}  // namespace dcsvm
