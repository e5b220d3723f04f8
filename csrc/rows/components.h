// Groups: independent rows, provably far apart.
//
// Rows of different groups are further apart than a given distance, so that an RBF kernel value
// between them is below a known bound and need never be computed. Groups are the connected
// components of the leaves of a box tree; the proof is by boxes, so rows that are far apart may
// still be in one group.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "rows/cutoff.h"
#include "rows/points.h"

namespace dcsvm {

struct Components {
  std::vector<std::int32_t> order;  // rows, group by group, neighbours in the tree together
  std::vector<std::int64_t> start;  // of each group in `order`, and the end
};

// Components of dense points: rows of different components have at least this distance.
// Groups of fewer than min_component rows are put together. One group when nothing is that far.
// The tree takes at most memory_bytes: with fewer boxes than it would have, fewer groups are found.
Components find_components(const Points& points, const Distance& distance,
                           std::size_t min_component, std::size_t memory_bytes, int n_threads);

// All rows of dense points, in the order of the leaves of their box tree: rows that follow each
// other are near.
std::vector<std::int32_t> neighbour_order(const Points& points, int n_threads);

// Makes row order[i] of n_rows x row_bytes row i, in place; `order` names every row once.
void reorder_rows(std::uint8_t* rows, std::size_t row_bytes, const std::int32_t* order,
                  std::size_t n_rows);

}  // namespace dcsvm
