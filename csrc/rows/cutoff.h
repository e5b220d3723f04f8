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

// Bounds on the distance between rows of two boxes, from the minima and maxima of d features.
double least_distance(Argument distance, std::size_t d, const float* low_a, const float* high_a,
                      const float* low_b, const float* high_b);
double largest_distance(Argument distance, std::size_t d, const float* low_a, const float* high_a,
                        const float* low_b, const float* high_b);

// Rows of a list in blocks of at most this many, feature by feature: a block is compared with a box
// at once.
constexpr std::size_t blocked_rows = 64;

class BlockedRows {
 public:
  BlockedRows() = default;
  BlockedRows(const Points& points, const std::int32_t* rows, std::size_t n);

 private:
  friend class BoundingBoxes;
  std::size_t n_ = 0;
  std::vector<float> features_;      // blocked_rows of each feature of each block
  std::vector<std::uint8_t> codes_;  // the same for codes
};

// Boxes around blocks of `block_rows` consecutive rows of a list of dense points. A code adds to
// lower bounds only if all rows of a block have the same value.
class BoundingBoxes {
 public:
  BoundingBoxes() = default;
  BoundingBoxes(const Points& points, const std::int32_t* rows, std::size_t n,
                std::size_t block_rows);

  bool empty() const { return extents_.empty(); }

  // Whether every row of one block is provably this far from every row of the other.
  bool are_apart(std::size_t block, const BoundingBoxes& other, std::size_t other_block,
                 const Distance& distance) const;
  // Whether every row of a block is provably this far from a row.
  bool is_apart(std::size_t block, const Points& points, std::size_t row,
                const Distance& distance) const;
  // Finds the rows of a block of `others` that are not provably this far from a block. Writes their
  // positions in that block, ascending, to `near`; returns their number.
  std::size_t find_near(std::size_t block, const BlockedRows& others, std::size_t other_block,
                        const Distance& distance, std::uint32_t* near) const;
  // Whether every row of one block is provably nearer than this to every row of the other.
  bool are_near(std::size_t block, const BoundingBoxes& other, std::size_t other_block,
                const Distance& distance) const;

 private:
  const float* low(std::size_t block) const { return extents_.data() + block * 2 * d_; }
  const float* high(std::size_t block) const { return low(block) + d_; }

  std::size_t d_ = 0, n_codes_ = 0;
  std::vector<float> extents_;       // per block: minima of the features, then maxima
  std::vector<std::int16_t> codes_;  // per block: the common codes, or `mixed`
};

// Returns the share of pairs (row, block of consecutive rows) that are provably this far apart, by
// the block's box. At most n_tried rows, evenly spaced, are compared with all blocks.
double share_apart(const RowList& rows, const Distance& distance, std::size_t n_tried,
                   int n_threads);

}  // namespace dcsvm
