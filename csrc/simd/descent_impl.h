// Coordinate descent on a working set, one fused pass over kernel rows per update: part of
// isa_impl.h, inside its namespace.

// |g| where the gradient points into the room there is, else 0.
DCSVM_INLINE DoubleVector scaled_violation(const CoordinateState& s, std::size_t i,
                                           DoubleVector g) {
  const DoubleVector zero = {}, size = g < zero ? -g : g;
  const DoubleVector inward = load<DoubleVector>(s.side + i) * g <= zero ? size : zero;
  return s.scale ? inward * load<DoubleVector>(s.scale + i) : inward;
}

// The largest of some values and its place, in chunks of panel_rows: only the largest of a chunk is
// kept, and its place is looked up at the end.
struct Largest {
  DoubleVector best;
  LongVector best_chunk = {}, chunk = {};

  explicit Largest(double below) : best(DoubleVector{} + below) {}

  static __attribute__((always_inline)) inline void include(Largest& self, DoubleVector top) {
    const LongVector better = top > self.best;
    self.best = better ? top : self.best;
    self.best_chunk = better ? self.chunk : self.best_chunk;
    self.chunk += 1;
  }

  template <class ValuesAt>
  std::size_t place(ValuesAt values_at, double* largest) const {
    constexpr std::size_t w = width<double>;
    double top = best[0];
    std::int64_t at = best_chunk[0];
    for (std::size_t k = 1; k < w; ++k) {
      if (best[k] > top || (best[k] == top && best_chunk[k] < at)) {
        top = best[k];
        at = best_chunk[k];
      }
    }
    *largest = top;
    const std::size_t first = static_cast<std::size_t>(at) * panel_rows;
    for (std::size_t i = first; i < first + panel_rows; i += w) {
      const DoubleVector values = values_at(i);
      for (std::size_t k = 0; k < w; ++k) {
        if (values[k] == top) return i + k;
      }
    }
    return first;
  }
};

static std::size_t descend(const CoordinateState& s, const float* first_row, double first_step,
                           const float* second_row, double second_step, double* largest) {
  constexpr std::size_t w = width<double>;
  const DoubleVector zero = {}, t = zero + first_step, u = zero + second_step;
  Largest found(-1.0);
  for (std::size_t begin = 0; begin < s.size; begin += panel_rows) {
    DoubleVector top = zero;
#pragma GCC unroll 16
    for (std::size_t i = begin; i < begin + panel_rows; i += w) {
      const DoubleVector g = load<DoubleVector>(s.gradient + i) +
                             t * load_lanes<double>(first_row + i) +
                             u * load_lanes<double>(second_row + i);
      std::memcpy(s.gradient + i, &g, sizeof g);
      top = maximum(top, scaled_violation(s, i, g));
    }
    Largest::include(found, top);
  }
  return found.place(
      [&s](std::size_t i) { return scaled_violation(s, i, load<DoubleVector>(s.gradient + i)); },
      largest);
}

static std::size_t best_companion(const CoordinateState& s, const double* diagonal,
                                  const float* row, std::size_t place, double* gain) {
  constexpr std::size_t w = width<double>;
  const DoubleVector zero = {}, ratio = zero + s.gradient[place] / diagonal[place],
                     inverse = zero + 1.0 / diagonal[place];
  const auto gains = [&](std::size_t i) {
    const DoubleVector k = load_lanes<double>(row + i);
    const DoubleVector left = load<DoubleVector>(s.gradient + i) - k * ratio;
    const DoubleVector own = load<DoubleVector>(diagonal + i);
    const DoubleVector curvature = own - k * k * inverse, least = own * smallest_share;
    const DoubleVector value = left * left / (curvature > least ? curvature : least);
    return load<DoubleVector>(s.side + i) * left <= zero ? value : zero - 1.0;
  };
  Largest found(-2.0);
  for (std::size_t begin = 0; begin < s.size; begin += panel_rows) {
    DoubleVector top = zero - 1.0;
#pragma GCC unroll 16
    for (std::size_t i = begin; i < begin + panel_rows; i += w) top = maximum(top, gains(i));
    Largest::include(found, top);
  }
  return found.place(gains, gain);
}

constexpr double nothing = -1e300;

DCSVM_INLINE DoubleVector growing(const CoordinateState& s, std::size_t i, DoubleVector g) {
  const DoubleVector zero = {};
  return load<DoubleVector>(s.side + i) >= zero ? -g : zero + nothing;
}

static std::size_t descend_pair(const CoordinateState& s, const float* first_row, double first_step,
                                const float* second_row, double second_step, double* grow,
                                double* shrink) {
  constexpr std::size_t w = width<double>;
  const DoubleVector zero = {}, t = zero + first_step, u = zero + second_step;
  Largest found(2 * nothing);
  DoubleVector largest = zero + nothing;
  for (std::size_t begin = 0; begin < s.size; begin += panel_rows) {
    DoubleVector top = zero + nothing;
#pragma GCC unroll 16
    for (std::size_t i = begin; i < begin + panel_rows; i += w) {
      const DoubleVector g = load<DoubleVector>(s.gradient + i) +
                             t * load_lanes<double>(first_row + i) +
                             u * load_lanes<double>(second_row + i);
      std::memcpy(s.gradient + i, &g, sizeof g);
      top = maximum(top, growing(s, i, g));
      const DoubleVector shrinking = load<DoubleVector>(s.side + i) <= zero ? g : zero + nothing;
      largest = maximum(largest, shrinking);
    }
    Largest::include(found, top);
  }
  double most = largest[0];
  for (std::size_t k = 1; k < w; ++k) most = largest[k] > most ? largest[k] : most;
  *shrink = -most;
  return found.place(
      [&s](std::size_t i) { return growing(s, i, load<DoubleVector>(s.gradient + i)); }, grow);
}

static std::size_t best_partner(const CoordinateState& s, const double* diagonal, const float* row,
                                std::size_t place, double* gain) {
  constexpr std::size_t w = width<double>;
  const DoubleVector zero = {}, own = zero + s.gradient[place], curve = zero + diagonal[place];
  const auto gains = [&](std::size_t i) {
    const DoubleVector difference = load<DoubleVector>(s.gradient + i) - own;
    const DoubleVector curvature =
        curve + load<DoubleVector>(diagonal + i) - 2.0 * load_lanes<double>(row + i);
    const DoubleVector least = zero + smallest_pair_curvature;
    const DoubleVector value = difference * difference / (curvature > least ? curvature : least);
    const DoubleVector shrinks = load<DoubleVector>(s.side + i) <= zero ? value : zero - 1.0;
    return difference > zero ? shrinks : zero - 1.0;
  };
  Largest found(-2.0);
  for (std::size_t begin = 0; begin < s.size; begin += panel_rows) {
    DoubleVector top = zero - 1.0;
#pragma GCC unroll 16
    for (std::size_t i = begin; i < begin + panel_rows; i += w) top = maximum(top, gains(i));
    Largest::include(found, top);
  }
  return found.place(gains, gain);
}
