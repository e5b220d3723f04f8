// Boxes around consecutive rows, which prove that pairs of rows are beyond the cutoff.
//
// With rows in spatial order (components.h), most pairs of boxes are far apart if an RBF kernel is
// narrow, and their kernel values are negligible. Bounds are float64 and rounded outwards.
// Conservative: every skipped pair is beyond the cutoff.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

#include "rows/points.h"
#include "simd/kernel.h"

namespace dcsvm {

// A distance of rows: |x - z|^2, or the sum of |x_k - z_k|.
struct Distance {
  double value = std::numeric_limits<double>::infinity();
  Argument argument = default_distance;
};

// Kernel values of rows at this distance or farther are at most `value` and may be skipped. By
// default no pair is skipped.
struct Cutoff {
  Distance distance;
  double value = 0;

  bool is_finite() const { return distance.value < std::numeric_limits<double>::infinity(); }
};

// Rows of a list in blocks of at most this many, feature by feature, to be compared with a box at
// once.
constexpr std::size_t blocked_rows = 64;

class BlockedRows {
 public:
  BlockedRows() = default;
  BlockedRows(const Points& points, const std::int32_t* rows, std::size_t n);

 private:
  friend class BoundingBoxes;
  std::size_t n_ = 0;
  std::vector<float> features_;      // blocked_rows of each feature of each block
  std::vector<std::uint8_t> codes_;  // the same of codes
};

// Boxes around blocks of `block_rows` consecutive rows of a list of dense points. A code counts
// where all rows of a block have the same value.
class BoundingBoxes {
 public:
  BoundingBoxes() = default;
  BoundingBoxes(const Points& points, const std::int32_t* rows, std::size_t n,
                std::size_t block_rows);

  bool empty() const { return extents_.empty(); }

  bool are_apart(std::size_t block, const BoundingBoxes& other, std::size_t other_block,
                 const Distance& distance) const;
  bool is_apart(std::size_t block, const Points& points, std::size_t row,
                const Distance& distance) const;
  // Which rows of a block of others are not provably that far from this block: their places in it,
  // ascending, to `near`. Returns how many they are.
  std::size_t find_near(std::size_t block, const BlockedRows& others, std::size_t other_block,
                        const Distance& distance, std::uint32_t* near) const;
  // Whether no row of one block is as far as that from a row of the other.
  bool are_near(std::size_t block, const BoundingBoxes& other, std::size_t other_block,
                const Distance& distance) const;

 private:
  const float* low(std::size_t block) const { return extents_.data() + block * 2 * d_; }
  const float* high(std::size_t block) const { return low(block) + d_; }

  std::size_t d_ = 0, n_codes_ = 0;
  std::vector<float> extents_;       // of each block, the lowest of each feature, then the highest
  std::vector<std::int16_t> codes_;  // of each block, or `mixed`
};

// Of the pairs of a row (at most n_tried of them, evenly spaced) and a block of rows, both in the
// given order, the share that is at least that far apart by the block's box.
double share_apart(const RowList& rows, const Distance& distance, std::size_t n_tried,
                   int n_threads);

}  // namespace dcsvm
