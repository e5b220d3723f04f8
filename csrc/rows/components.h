// Components: sets of rows that are provably far apart.
//
// Rows of different components are at least a given distance apart. An RBF kernel value between
// them has a known bound and need never be computed. Components are connected components of the
// leaves of a box tree: two leaves are connected unless their boxes are far apart. So rows that are
// far apart may share a component.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "rows/cutoff.h"
#include "rows/points.h"

namespace dcsvm {

struct Components {
  std::vector<std::int32_t> order;  // rows by component, neighbours in the tree adjacent
  std::vector<std::int64_t> start;  // of each component in `order`, and the end
};

// Returns components of dense points: rows of different components are at least this distance
// apart. Components of fewer than min_component rows are merged. All rows are one component if
// no two are provably this far apart. The tree takes at most memory_bytes; with fewer boxes, fewer
// components are found.
Components find_components(const Points& points, const Distance& distance,
                           std::size_t min_component, std::size_t memory_bytes, int n_threads);

// Returns a spatial order of the rows of dense points: adjacent rows are near each other. It is the
// order of the leaves of their box tree.
std::vector<std::int32_t> neighbour_order(const Points& points, int n_threads);

// Reorders n_rows rows of row_bytes bytes in place: row order[i] becomes row i. Throws
// std::invalid_argument if the order, of numbers of rows, is no permutation.
void reorder_rows(std::uint8_t* rows, std::size_t row_bytes, const std::int32_t* order,
                  std::size_t n_rows, int n_threads);

// Writes a 64-bit hash of each row of 32-bit words: the sum of its words, each mixed and multiplied
// by the odd factor of its place.
void hash_rows(const std::uint32_t* words, std::size_t n_rows, std::size_t stride,
               const std::uint64_t* factors, std::size_t n_words, int n_threads,
               std::uint64_t* hashes);

// Returns whether rows first[i] and second[i], of row_bytes bytes, are equal for all i < n.
bool are_equal_rows(const std::uint8_t* rows, std::size_t row_bytes, const std::int32_t* first,
                    const std::int32_t* second, std::size_t n, int n_threads);

// Writes the index of the first of the keys that are equal to each key. Keys are hashes.
void find_first_equal(const std::uint64_t* keys, std::size_t n, int n_threads, std::int32_t* first);

}  // namespace dcsvm
