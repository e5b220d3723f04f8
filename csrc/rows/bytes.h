// Rows of integers from 0 to 255, such as images, stored as bytes: for processors that multiply
// or compare bytes (isa.h). Kernel values are then exact except for one rounding.
#pragma once

#include <cstddef>
#include <cstdint>

#include "rows/points.h"
#include "simd/kernel.h"

namespace dcsvm {

// Operations per pair of rows as bytes, to compare with CodedColumns::cost().
constexpr double bytes_cost(std::size_t n_features, Argument argument) {
  return (is_from_products(argument) ? 0.14 : 0.3) * static_cast<double>(n_features);
}

// Returns whether tiles of bytes suit n_features: enough to pay, too few to overflow.
bool suit_bytes(std::size_t n_features);

// Returns whether this machine has tiles of bytes for the argument, and they suit n_features.
bool may_be_bytes(std::size_t n_features, Argument argument);

// Returns whether all features of dense points are integers from 0 to 255.
bool are_bytes(const Points& points, int n_threads);

// Returns whether rows of integers byte_origin + byte_step * k, with bytes k, can be combined with
// rows of bytes if the argument comes from products: no term of it reaches 2^31.
bool may_step(std::size_t n_features, double byte_origin, double byte_step);

// fits[i]: whether all features of row i are integers from 0 to 255.
void find_bytes(const Points& points, int n_threads, std::uint8_t* fits);

// Computes the sum of each row of `bytes`.
void sum_bytes(const Points& points, int n_threads, std::int32_t* sums);

// Writes the features as bytes, n_samples x byte_row_size(), and the sum of each row.
// Values that are not integers from 0 to 255 become 0.
void encode_bytes(const Points& points, int n_threads, std::uint8_t* out, std::int32_t* sums);

}  // namespace dcsvm
