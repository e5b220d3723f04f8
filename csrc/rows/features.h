// The features of dense rows as floats, whichever form they are in.
#pragma once

#include <cstddef>
#include <cstdint>

#include "rows/points.h"

namespace dcsvm {

// Writes the features of a row of bytes.
inline void widen_row(const Points& points, std::size_t row, float* out) {
  const std::uint8_t* x = points.dense_bytes + row * points.byte_row_size();
  for (std::size_t k = 0; k < points.n_features; ++k) out[k] = static_cast<float>(x[k]);
}

// The features of a row of bytes, until the calling thread asks for those of another.
const float* widened_row(const Points& points, std::size_t row);

// The features of a row: where they are, or as widened_row() gives them.
inline const float* features_of(const Points& points, std::size_t row) {
  return points.dense ? points.dense + row * points.n_features : widened_row(points, row);
}

inline float feature_of(const Points& points, std::size_t row, std::size_t feature) {
  return points.dense
             ? points.dense[row * points.n_features + feature]
             : static_cast<float>(points.dense_bytes[row * points.byte_row_size() + feature]);
}

}  // namespace dcsvm
