#include "rows/bytes.h"

#include <algorithm>
#include <cstddef>

#include "simd/byte_dots.h"

namespace dcsvm {

namespace {

// With fewer features padding and terms cost more than they save; with more a sum of products could
// reach 2^30, half of what 32-bit integers hold.
constexpr std::size_t fewest_features = 16, most_features = 8192;

bool is_byte(float x) {
  // outside the range the conversion would be undefined
  return x >= 0.0f && x <= 255.0f && x == static_cast<float>(static_cast<std::int32_t>(x));
}

}  // namespace

bool are_bytes(const Points& points, int n_threads) {
  const std::size_t d = points.n_features;
  if (!byte_dots() || d < fewest_features || d > most_features) return false;
  const auto n = static_cast<std::int64_t>(points.n_samples);
  bool all = true;
#pragma omp parallel for num_threads(n_threads) schedule(static) \
    reduction(&& : all) if (n_threads > 1)
  for (std::int64_t i = 0; i < n; ++i) {
    const float* row = points.dense + static_cast<std::size_t>(i) * d;
    all = all && std::all_of(row, row + d, is_byte);
  }
  return all;
}

void encode_bytes(const Points& points, int n_threads, std::uint8_t* out, std::int32_t* sums) {
  const std::size_t d = points.n_features, stride = points.byte_row_size();
  const auto n = static_cast<std::int64_t>(points.n_samples);
#pragma omp parallel for num_threads(n_threads) schedule(static) if (n_threads > 1)
  for (std::int64_t i = 0; i < n; ++i) {
    const float* row = points.dense + static_cast<std::size_t>(i) * d;
    std::uint8_t* to = out + static_cast<std::size_t>(i) * stride;
    std::int32_t sum = 0;
    for (std::size_t k = 0; k < d; ++k) {
      to[k] = static_cast<std::uint8_t>(row[k]);
      sum += to[k];
    }
    std::fill(to + d, to + stride, std::uint8_t{0});
    sums[i] = sum;
  }
}

}  // namespace dcsvm
