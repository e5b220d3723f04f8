#include "kernel/sign_sums.h"

#include <algorithm>

#include "simd/aligned_vector.h"
#include "simd/isa.h"

namespace dcsvm {

// The lanes of an incomplete panel that no row fills have the weight 0.
void sign_sums(const float* rows, std::size_t n_rows, const float* others, std::size_t n_others,
               std::size_t n_features, const float* weights, float* out) {
  AlignedVector<float> panel(n_features * panel_rows), own_weights(n_rows * panel_rows),
      sums(n_features * panel_rows);
  for (std::size_t first = 0; first < n_others; first += panel_rows) {
    const std::size_t n_lanes = std::min(panel_rows, n_others - first);
    for (std::size_t lane = 0; lane < n_lanes; ++lane) {
      const float* other = others + (first + lane) * n_features;
      for (std::size_t k = 0; k < n_features; ++k) panel[k * panel_rows + lane] = other[k];
    }
    for (std::size_t i = 0; i < n_rows; ++i) {
      float* const own = own_weights.data() + i * panel_rows;
      std::copy_n(weights + i * n_others + first, n_lanes, own);
      std::fill(own + n_lanes, own + panel_rows, 0.0f);
    }
    isa().sign_sums({n_rows, n_features, rows, panel.data(), own_weights.data()}, sums.data());
    for (std::size_t lane = 0; lane < n_lanes; ++lane) {
      float* const derivatives = out + (first + lane) * n_features;
      for (std::size_t k = 0; k < n_features; ++k) derivatives[k] = sums[k * panel_rows + lane];
    }
  }
}

}  // namespace dcsvm
