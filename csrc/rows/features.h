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

// One feature of all rows.
class FeatureColumn {
 public:
  FeatureColumn(const Points& points, std::size_t feature);

  float operator[](std::size_t row) const {
    const std::uint8_t* at = first_ + row * stride_;
    switch (kind_) {
      case Kind::number:
        return *reinterpret_cast<const float*>(at);
      case Kind::byte:
        return static_cast<float>(*at);
      case Kind::code:
        return *at == code_ ? 1.0f : 0.0f;
      case Kind::zero:
        break;
    }
    return 0.0f;
  }

 private:
  enum class Kind : std::uint8_t { number, byte, code, zero };

  const std::uint8_t* first_ = nullptr;
  std::size_t stride_ = 0;
  Kind kind_ = Kind::zero;
  std::uint8_t code_ = 0;  // of a row that has the feature set
};

// Writes the features of all rows, n_samples x n_features.
void copy_features(const Points& points, int n_threads, float* out);

}  // namespace dcsvm
