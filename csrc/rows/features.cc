#include "rows/features.h"

#include <vector>

namespace dcsvm {

const float* widened_row(const Points& points, std::size_t row) {
  thread_local std::vector<float> features;
  features.resize(points.n_features);
  widen_row(points, row, features.data());
  return features.data();
}

}  // namespace dcsvm
