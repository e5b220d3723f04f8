#include "rows/row_order.h"

#include <algorithm>
#include <vector>

namespace dcsvm {

// Follows each cycle of the permutation, with one row set aside.
void reorder_rows(std::uint8_t* rows, std::size_t row_bytes, const std::int32_t* order,
                  std::size_t n_rows) {
  std::vector<bool> is_done(n_rows, false);
  std::vector<std::uint8_t> aside(row_bytes);
  const auto row = [rows, row_bytes](std::size_t i) { return rows + i * row_bytes; };
  for (std::size_t start = 0; start < n_rows; ++start) {
    if (is_done[start] || static_cast<std::size_t>(order[start]) == start) continue;
    std::copy_n(row(start), row_bytes, aside.data());
    std::size_t to = start;
    for (std::size_t from; (from = static_cast<std::size_t>(order[to])) != start; to = from) {
      std::copy_n(row(from), row_bytes, row(to));
      is_done[to] = true;
    }
    std::copy_n(aside.data(), row_bytes, row(to));
    is_done[to] = true;
  }
}

}  // namespace dcsvm
