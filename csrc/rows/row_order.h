// Rows reordered in place: a copy would take as much memory again.
#pragma once

#include <cstddef>
#include <cstdint>

namespace dcsvm {

// Makes row order[i] of n_rows x row_bytes row i, in place; `order` names every row once.
void reorder_rows(std::uint8_t* rows, std::size_t row_bytes, const std::int32_t* order,
                  std::size_t n_rows);

}  // namespace dcsvm
