// Tiles of sparse rows: the stored entries of a query against a panel that is packed by column, in
// float64. Part of isa_impl.h, inside its namespace.
//
// A query's columns are looked up in the panel's slots; columns that no lane has are skipped.

template <class Real>
static void sparse(const SparseTile& t, Real* out) {
  constexpr std::size_t n_vectors = panel_rows / width<double>;
  const RbfScale<Real> scale(*t.kernel, 2.0);
  for (std::size_t r = 0; r < t.n_queries; ++r) {
    DoubleVector dot[n_vectors] = {};
    const std::int64_t row = t.queries[r];
    for (std::int64_t k = t.indptr[row]; k < t.indptr[row + 1]; ++k) {
      const std::int32_t slot = t.slot[t.indices[k]];
      if (slot == 0) continue;
      const float* lanes = t.packed + static_cast<std::size_t>(slot) * panel_rows;
      const DoubleVector a = broadcast<DoubleVector>(static_cast<double>(t.values[k]));
#pragma GCC unroll 16
      for (std::size_t v = 0; v < n_vectors; ++v)
        dot[v] += a * load_lanes<double>(lanes + v * width<double>);
    }
    double argument[panel_rows];
    for (std::size_t v = 0; v < n_vectors; ++v) {
      store(argument + v * width<double>,
            from_dot<double>(*t.kernel, dot[v], t.query_half_norms[r],
                             load<DoubleVector>(t.lane_half_norms + v * width<double>)));
    }
    for (std::size_t lane = 0; lane < panel_rows; lane += width<Real>) {
      store(out + r * t.out_stride + lane,
            kernel_value<Real>(*t.kernel, scale, load_doubles<Real>(argument + lane)));
    }
  }
}
