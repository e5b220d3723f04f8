// Rows reordered in place: a copy would take as much memory again.
#pragma once

#include <cstddef>
#include <cstdint>

namespace dcsvm {

// Makes row order[i] of n_rows x n_features row i, in place; `order` names every row once.
void reorder_rows(float* rows, std::size_t n_features, const std::int32_t* order,
                  std::size_t n_rows);

}  // namespace dcsvm
