// The features of dense rows as floats, whichever form they are in.
#pragma once

#include <cstddef>
#include <cstdint>

#include "rows/points.h"

namespace dcsvm {

// Writes the features of a row of bytes, or of a coded one.
void widen_row(const Points& points, std::size_t row, float* out);

// The features of such a row, until the calling thread asks for those of another.
const float* widened_row(const Points& points, std::size_t row);

// The features of a row: where they are, or as widened_row() gives them.
inline const float* features_of(const Points& points, std::size_t row) {
  return points.dense ? points.dense_row(row) : widened_row(points, row);
}

float coded_feature(const Points& points, std::size_t row, std::size_t feature);

inline float feature_of(const Points& points, std::size_t row, std::size_t feature) {
  if (points.dense) return points.dense_row(row)[feature];
  return points.dense_bytes
             ? static_cast<float>(points.dense_bytes[row * points.byte_row_size() + feature])
             : coded_feature(points, row, feature);
}

// Writes the features of all rows, n_samples x n_features.
void copy_features(const Points& points, int n_threads, float* out);

}  // namespace dcsvm
