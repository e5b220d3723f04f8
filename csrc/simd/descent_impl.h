// Coordinate and pair descent on a working set. Part of isa_impl.h, inside its namespace.
//
// An update is two passes: one over the kernel row of the first variable to choose its partner, and
// one over both rows that updates the gradient and finds the next first variable on the way.

// |g| where alpha may move against the gradient, else 0.
DCSVM_INLINE DoubleVector scaled_violation(const CoordinateState& s, std::size_t i,
                                           DoubleVector g) {
  const DoubleVector zero = {}, size = g < zero ? -g : g;
  const DoubleVector inward = load<DoubleVector>(s.side + i) * g <= zero ? size : zero;
  return s.scale ? inward * load<DoubleVector>(s.scale + i) : inward;
}

// The largest of some values and its place. The loop keeps the chunk of panel_rows that has the
// largest so far; the place inside that chunk is looked up at the end.
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
      store(s.gradient + i, g);
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

// -gradient where alpha may go up.
DCSVM_INLINE DoubleVector upward(const CoordinateState& s, std::size_t i, DoubleVector g) {
  const DoubleVector zero = {};
  return load<DoubleVector>(s.side + i) >= zero ? -g : zero + nothing;
}

static std::size_t descend_pair(const CoordinateState& s, const float* first_row, double first_step,
                                const float* second_row, double second_step, double* up,
                                double* down) {
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
      store(s.gradient + i, g);
      top = maximum(top, upward(s, i, g));
      const DoubleVector downward = load<DoubleVector>(s.side + i) <= zero ? g : zero + nothing;
      largest = maximum(largest, downward);
    }
    Largest::include(found, top);
  }
  double most = largest[0];
  for (std::size_t k = 1; k < w; ++k) most = largest[k] > most ? largest[k] : most;
  *down = -most;
  return found.place(
      [&s](std::size_t i) { return upward(s, i, load<DoubleVector>(s.gradient + i)); }, up);
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
    const DoubleVector gain_down = load<DoubleVector>(s.side + i) <= zero ? value : zero - 1.0;
    return difference > zero ? gain_down : zero - 1.0;
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
