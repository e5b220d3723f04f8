#include "rows/row_order.h"

#include <algorithm>
#include <vector>

namespace dcsvm {

// Follows each cycle of the permutation, with one row set aside.
void reorder_rows(float* rows, std::size_t n_features, const std::int32_t* order,
                  std::size_t n_rows) {
  std::vector<bool> is_done(n_rows, false);
  std::vector<float> aside(n_features);
  const auto row = [rows, n_features](std::size_t i) { return rows + i * n_features; };
  for (std::size_t start = 0; start < n_rows; ++start) {
    if (is_done[start] || static_cast<std::size_t>(order[start]) == start) continue;
    std::copy_n(row(start), n_features, aside.data());
    std::size_t to = start;
    for (std::size_t from; (from = static_cast<std::size_t>(order[to])) != start; to = from) {
      std::copy_n(row(from), n_features, row(to));
      is_done[to] = true;
    }
    std::copy_n(aside.data(), n_features, row(to));
    is_done[to] = true;
  }
}

}  // namespace dcsvm
