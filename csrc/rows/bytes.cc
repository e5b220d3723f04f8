#include "rows/bytes.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <vector>

#include "rows/points.h"
#include "simd/isa.h"
#include "threads/parallel.h"

namespace dcsvm {

namespace {

// With fewer features, padding and terms cost more than bytes save. With more, |x|^2 + |z|^2 could
// reach 2^30, half of the range of 32-bit integers.
constexpr std::size_t min_features = 16, max_features = 8192;
constexpr double max_byte = 255;

bool is_byte(float x) {
  // the conversion is undefined outside this range
  return x >= 0.0f && x <= 255.0f && x == static_cast<float>(static_cast<std::int32_t>(x));
}

}  // namespace

bool suit_bytes(std::size_t n_features) {
  return n_features >= min_features && n_features <= max_features;
}

bool may_be_bytes(std::size_t n_features, Argument argument) {
  return byte_loop(argument) && suit_bytes(n_features);
}

bool are_bytes(const Points& points, int n_threads) {
  std::vector<std::uint8_t> fits(points.n_samples);
  find_bytes(points, n_threads, fits.data());
  return std::find(fits.begin(), fits.end(), 0) == fits.end();
}

void find_bytes(const Points& points, int n_threads, std::uint8_t* fits) {
  const std::size_t d = points.n_features;
  if (points.dense_bytes) {
    std::fill_n(fits, points.n_samples, std::uint8_t{1});
    return;
  }
  parallel_for({n_threads, points.n_samples, batch_rows}, [&](std::size_t i) {
    const float* row = features_of(points, i);
    fits[i] = std::all_of(row, row + d, is_byte);
  });
}

void sum_bytes(const Points& points, int n_threads, std::int32_t* sums) {
  parallel_for({n_threads, points.n_samples, batch_rows}, [&](std::size_t i) {
    const std::uint8_t* x = points.bytes + i * points.byte_row_size();
    std::int32_t sum = 0;
    for (std::size_t k = 0; k < points.n_features; ++k) sum += x[k];
    sums[i] = sum;
  });
}

void encode_bytes(const Points& points, int n_threads, std::uint8_t* out, std::int32_t* sums) {
  const std::size_t d = points.n_features, stride = points.byte_row_size();
  parallel_for({n_threads, points.n_samples, batch_rows}, [&](std::size_t i) {
    const float* row = features_of(points, i);
    std::uint8_t* to = out + i * stride;
    std::int32_t sum = 0;
    for (std::size_t k = 0; k < d; ++k) {
      to[k] = is_byte(row[k]) ? static_cast<std::uint8_t>(row[k]) : std::uint8_t{0};
      sum += to[k];
    }
    std::fill(to + d, to + stride, std::uint8_t{0});
    sums[i] = sum;
  });
}

bool may_step(std::size_t n_features, double origin, double step) {
  if (origin != std::nearbyint(origin) || step != std::nearbyint(step) || step < 1) return false;
  const double largest = std::max(std::abs(origin), std::abs(origin + max_byte * step));
  // the terms of TileScratch::byte_rows: a dot product with bytes less 128, and the row terms
  const double a_feature = 4 * 128 * step * max_byte + 2 * std::abs(origin) * max_byte +
                           max_byte * max_byte + largest * largest;
  return static_cast<double>(n_features) * a_feature < 2147483648.0;
}

}  // namespace dcsvm
