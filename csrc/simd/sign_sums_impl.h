// Weighted sums of the signs of differences: the derivatives of absolute distances. Part of
// isa_impl.h, inside its namespace.

// Computes the sums of some features for tile_vectors vectors of lanes, which stay in registers.
template <std::size_t n_features>
DCSVM_INLINE void sign_sums_of(const SignTile& t, std::size_t first, std::size_t lane, float* out) {
  FloatVector z[n_features][tile_vectors], sum[n_features][tile_vectors] = {};
#pragma GCC unroll 8
  for (std::size_t f = 0; f < n_features; ++f) {
#pragma GCC unroll 8
    for (std::size_t v = 0; v < tile_vectors; ++v)
      z[f][v] = load<FloatVector>(t.panel + (first + f) * panel_rows + lane + v * width<float>);
  }
  const FloatVector zero = {};
  const float *row = t.rows + first, *weights = t.weights + lane;
  for (std::size_t i = 0; i < t.n_rows; ++i, row += t.n_features, weights += panel_rows) {
    FloatVector weight[tile_vectors];
#pragma GCC unroll 8
    for (std::size_t v = 0; v < tile_vectors; ++v)
      weight[v] = load<FloatVector>(weights + v * width<float>);
#pragma GCC unroll 8
    for (std::size_t f = 0; f < n_features; ++f) {
      const FloatVector x = broadcast<FloatVector>(row[f]);
#pragma GCC unroll 8
      for (std::size_t v = 0; v < tile_vectors; ++v) {
        sum[f][v] += x > z[f][v] ? weight[v] : zero;
        sum[f][v] -= x < z[f][v] ? weight[v] : zero;
      }
    }
  }
#pragma GCC unroll 8
  for (std::size_t f = 0; f < n_features; ++f) {
#pragma GCC unroll 8
    for (std::size_t v = 0; v < tile_vectors; ++v)
      store(out + (first + f) * panel_rows + lane + v * width<float>, sum[f][v]);
  }
}

// Features that are summed together read the weights once.
static void sign_sums(const SignTile& t, float* out) {
  constexpr std::size_t together = 2;
  for (std::size_t lane = 0; lane < panel_rows; lane += tile_vectors * width<float>) {
    std::size_t k = 0;
    for (; k + together <= t.n_features; k += together) sign_sums_of<together>(t, k, lane, out);
    for (; k < t.n_features; ++k) sign_sums_of<1>(t, k, lane, out);
  }
}
