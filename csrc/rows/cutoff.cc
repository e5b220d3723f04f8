#include "rows/cutoff.h"

#include <algorithm>

#include "rows/codes.h"
#include "rows/points.h"
#include "simd/isa.h"
#include "threads/parallel.h"

namespace dcsvm {

namespace {

// Keeps a computed distance below (above) the true one: far more than the rounding error of a sum.
constexpr double outward = 1e-9;
// The same for sums of up to about 10^4 squares in float32.
constexpr double float_outward = 1e-3;
constexpr std::int16_t mixed = -1;

// Returns the contribution of two values of one code to a distance.
double code_distance(std::int16_t a, std::int16_t b) {
  if (a == b) return 0;
  return a == no_code || b == no_code ? 1 : 2;
}

}  // namespace

double least_distance(Argument distance, std::size_t d, const float* low_a, const float* high_a,
                      const float* low_b, const float* high_b) {
  double sum = 0;
  with_distance(distance, [&](auto of) {
    for (std::size_t k = 0; k < d; ++k)
      sum += of.template least<double>(low_a[k], high_a[k], low_b[k], high_b[k]);
  });
  return sum;
}

double largest_distance(Argument distance, std::size_t d, const float* low_a, const float* high_a,
                        const float* low_b, const float* high_b) {
  double sum = 0;
  with_distance(distance, [&](auto of) {
    for (std::size_t k = 0; k < d; ++k)
      sum += of.template most<double>(low_a[k], high_a[k], low_b[k], high_b[k]);
  });
  return sum;
}

BoundingBoxes::BoundingBoxes(const Points& points, const std::int32_t* rows, std::size_t n,
                             std::size_t block_rows)
    : d_(points.n_features), n_codes_(points.n_codes) {
  const std::size_t n_blocks = (n + block_rows - 1) / block_rows;
  extents_.resize(n_blocks * 2 * d_);
  codes_.resize(n_blocks * n_codes_);
  for (std::size_t b = 0; b < n_blocks; ++b) {
    float *lowest = extents_.data() + b * 2 * d_, *highest = lowest + d_;
    for (std::size_t i = b * block_rows; i < std::min(n, (b + 1) * block_rows); ++i) {
      const float* x = features_of(points, static_cast<std::size_t>(rows[i]));
      const bool is_first = i == b * block_rows;
      for (std::size_t k = 0; k < d_; ++k) {
        lowest[k] = is_first ? x[k] : std::min(lowest[k], x[k]);
        highest[k] = is_first ? x[k] : std::max(highest[k], x[k]);
      }
      const std::uint8_t* code = points.codes_of(static_cast<std::size_t>(rows[i]));
      std::int16_t* common = codes_.data() + b * n_codes_;
      for (std::size_t k = 0; k < n_codes_; ++k)
        common[k] = is_first || common[k] == code[k] ? code[k] : mixed;
    }
  }
}

BlockedRows::BlockedRows(const Points& points, const std::int32_t* rows, std::size_t n) : n_(n) {
  const std::size_t d = points.n_features, n_codes = points.n_codes;
  const std::size_t padded = (n + blocked_rows - 1) / blocked_rows * blocked_rows;
  features_.resize(padded * d);
  codes_.resize(padded * n_codes);
  for (std::size_t i = 0; i < n; ++i) {
    const std::size_t first = i / blocked_rows * blocked_rows, place = i - first;
    const float* x = features_of(points, static_cast<std::size_t>(rows[i]));
    const std::uint8_t* code = points.codes_of(static_cast<std::size_t>(rows[i]));
    for (std::size_t k = 0; k < d; ++k) features_[first * d + k * blocked_rows + place] = x[k];
    for (std::size_t k = 0; k < n_codes; ++k)
      codes_[first * n_codes + k * blocked_rows + place] = code[k];
  }
}

std::size_t BoundingBoxes::find_near(std::size_t block, const BlockedRows& others,
                                     std::size_t other_block, const Distance& distance,
                                     std::uint32_t* near) const {
  const float* x = others.features_.data() + other_block * blocked_rows * d_;
  const std::uint8_t* code = others.codes_.data() + other_block * blocked_rows * n_codes_;
  float sum[blocked_rows] = {};
  with_distance(distance.argument, [&](auto of) {
    for (std::size_t k = 0; k < d_; ++k, x += blocked_rows) {
      const float lowest = low(block)[k], highest = high(block)[k];
      for (std::size_t j = 0; j < blocked_rows; ++j)
        sum[j] += of.least(lowest, highest, x[j], x[j]);
    }
  });
  for (std::size_t k = 0; k < n_codes_; ++k, code += blocked_rows) {
    const std::int16_t common = codes_[block * n_codes_ + k];
    if (common == mixed) continue;
    const float to_none = common == no_code ? 0.0f : 1.0f, to_other = to_none + 1.0f;
    for (std::size_t j = 0; j < blocked_rows; ++j)
      sum[j] += code[j] == common ? 0.0f : code[j] == no_code ? to_none : to_other;
  }
  const std::size_t n = std::min(blocked_rows, others.n_ - other_block * blocked_rows);
  const double limit = distance.value * (1 + float_outward);
  std::size_t n_near = 0;
  for (std::size_t j = 0; j < n; ++j) {
    near[n_near] = static_cast<std::uint32_t>(j);
    n_near += !(static_cast<double>(sum[j]) >= limit);
  }
  return n_near;
}

bool BoundingBoxes::are_apart(std::size_t block, const BoundingBoxes& other,
                              std::size_t other_block, const Distance& distance) const {
  const double limit = distance.value * (1 + outward);
  double sum = 0;
  for (std::size_t k = 0; k < n_codes_; ++k) {
    const std::int16_t a = codes_[block * n_codes_ + k],
                       b = other.codes_[other_block * n_codes_ + k];
    if (a != mixed && b != mixed) sum += code_distance(a, b);
  }
  if (sum >= limit) return true;
  sum += least_distance(distance.argument, d_, low(block), high(block), other.low(other_block),
                        other.high(other_block));
  return sum >= limit;
}

bool BoundingBoxes::is_apart(std::size_t block, const Points& points, std::size_t place,
                             const Distance& distance) const {
  const float* row = features_of(points, place);
  double sum = least_distance(distance.argument, d_, low(block), high(block), row, row);
  for (std::size_t k = 0; k < n_codes_; ++k) {
    const std::int16_t common = codes_[block * n_codes_ + k];
    if (common != mixed) sum += code_distance(common, points.codes_of(place)[k]);
  }
  return sum * (1 - outward) >= distance.value;
}

bool BoundingBoxes::are_near(std::size_t block, const BoundingBoxes& other, std::size_t other_block,
                             const Distance& distance) const {
  double sum = largest_distance(distance.argument, d_, low(block), high(block),
                                other.low(other_block), other.high(other_block));
  for (std::size_t k = 0; k < n_codes_; ++k) {
    const std::int16_t a = codes_[block * n_codes_ + k],
                       b = other.codes_[other_block * n_codes_ + k];
    sum += a == mixed || b == mixed ? 2 : code_distance(a, b);
  }
  return sum * (1 + outward) < distance.value;
}

double share_apart(const RowList& list, const Distance& distance, std::size_t n_tried,
                   int n_threads) {
  constexpr std::size_t block_rows = 4 * panel_rows;
  const Points& points = *list.points;
  const std::size_t n = list.size, stride = (n + n_tried - 1) / n_tried;
  const std::size_t n_blocks = (n + block_rows - 1) / block_rows,
                    n_pairs = n_blocks * ((n + stride - 1) / stride);
  std::size_t apart = 0;
  parallel_for(
      {n_threads, n_blocks}, [] { return std::size_t{0}; },
      [&](std::size_t& found, std::size_t b) {
        const std::size_t first = b * block_rows;
        const BoundingBoxes box(points, list.index + first, std::min(block_rows, n - first),
                                block_rows);
        for (std::size_t i = 0; i < n; i += stride)
          found += box.is_apart(0, points, list[i], distance);
      },
      [&](std::size_t found) { apart += found; });
  return static_cast<double>(apart) / static_cast<double>(n_pairs);
}

}  // namespace dcsvm
