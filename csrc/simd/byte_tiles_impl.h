// Tiles of 8-bit integers: kernel values from the dot products of byte_dots.h. Part of isa_impl.h,
// inside its namespace.

// Arguments are integers below 2^30, rounded once, like those of exact_tile.
template <class Real>
static void bytes(const ByteTile& t, Real* out) {
  using Vector = typename Traits<Real>::Vector;
  using Integers = typename Traits<Real>::Lanes32;
  const RbfScale<Real> scale(*t.kernel, 1.0);
  for (std::size_t r = 0; r < t.n_queries; ++r) {
    for (std::size_t lane = 0; lane < panel_rows; lane += width<Real>) {
      const Integers argument = load<Integers>(t.dots + r * panel_rows + lane) * t.factor +
                                load<Integers>(t.lane_terms + lane) + t.query_terms[r];
      store(out + r * t.out_stride + lane,
            kernel_value<Real>(*t.kernel, scale, __builtin_convertvector(argument, Vector)));
    }
  }
}
