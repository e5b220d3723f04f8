// A copy of some rows without the features and codes that are the same in all of them.
//
// They add nothing to a distance, and a group of rows or a cluster has many of them. Up to
// chain_length features (isa.h) kernel values stay the same bits.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "rows/points.h"
#include "simd/aligned_vector.h"
#include "simd/kernel.h"

namespace dcsvm {

class VaryingRows {
 public:
  // Copies nothing unless the form is the difference form, something is the same in all rows, and
  // the rest takes at most `most_bytes`.
  VaryingRows(Form form, const RowList& rows, std::size_t most_bytes);

  // The points to use: the copy, whose row k is rows[k], or those that were given.
  bool is_copy() const { return !dense_.empty(); }
  const Points& points() const { return points_; }
  std::size_t bytes() const {
    return dense_.size() * sizeof(float) + codes_.size() + half_norms_.size() * sizeof(double);
  }

 private:
  Points points_;
  AlignedVector<float> dense_;
  AlignedVector<std::uint8_t> codes_;
  std::vector<double> half_norms_;
};

}  // namespace dcsvm
