// Coordinate and pair descent on a working set. Part of isa_impl.h, inside its namespace.
//
// An update is two passes: one over the kernel row of the first variable to choose its partner, and
// one over both rows that updates the gradient and finds the next first variable on the way.

// |g| where alpha may move against the gradient, else 0.
template <bool is_scaled>
DCSVM_INLINE DoubleVector scaled_violation(const CoordinateState& s, std::size_t i,
                                           DoubleVector g) {
  const DoubleVector zero = {}, size = g < zero ? -g : g;
  const DoubleVector inward = load_lanes<double>(s.side + i) * g <= zero ? size : zero;
  return is_scaled ? inward * load<DoubleVector>(s.scale + i) : inward;
}

// The largest of some values and its place. The loop keeps the chunk of panel_rows that has the
// largest so far; the place inside that chunk is looked up at the end.
template <class Real>
struct Largest {
  using Vector = typename Traits<Real>::Vector;
  using Integers = typename Traits<Real>::Integers;
  Vector best;
  Integers best_chunk = {}, chunk = {};

  explicit Largest(Real below) : best(Vector{} + below) {}

  static __attribute__((always_inline)) inline void include(Largest& self, Vector top) {
    const Integers better = top > self.best;
    self.best = better ? top : self.best;
    self.best_chunk = better ? self.chunk : self.best_chunk;
    self.chunk += 1;
  }

  template <class ValuesAt>
  std::size_t place(ValuesAt values_at, double* largest) const {
    constexpr std::size_t w = width<Real>;
    Real top = best[0];
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
      const Vector values = values_at(i);
      for (std::size_t k = 0; k < w; ++k) {
        if (values[k] == top) return i + k;
      }
    }
    return first;
  }
};

template <std::size_t... lane>
DCSVM_INLINE FloatVector joined(HalfFloatVector low, HalfFloatVector high,
                                std::index_sequence<lane...>) {
  return __builtin_shufflevector(low, high, static_cast<int>(lane)...);
}

// The lanes of a vector of float, from differences that need the accuracy of double.
template <class DifferencesAt>
DCSVM_INLINE FloatVector narrowed(DifferencesAt differences_at, std::size_t i) {
  return joined(__builtin_convertvector(differences_at(i), HalfFloatVector),
                __builtin_convertvector(differences_at(i + width<double>), HalfFloatVector),
                std::make_index_sequence<width<float>>());
}

template <bool is_scaled>
static std::size_t descended(const CoordinateState s, const float* first_row, double first_step,
                             const float* second_row, double second_step, double* largest) {
  constexpr std::size_t w = width<double>;
  const DoubleVector zero = {}, t = zero + first_step, u = zero + second_step;
  Largest<double> found(-1.0);
  for (std::size_t begin = 0; begin < s.size; begin += panel_rows) {
    DoubleVector top = zero;
#pragma GCC unroll 16
    for (std::size_t i = begin; i < begin + panel_rows; i += w) {
      const DoubleVector g = load<DoubleVector>(s.gradient + i) +
                             t * load_lanes<double>(first_row + i) +
                             u * load_lanes<double>(second_row + i);
      store(s.gradient + i, g);
      top = maximum(top, scaled_violation<is_scaled>(s, i, g));
    }
    found.include(found, top);
  }
  return found.place(
      [&s](std::size_t i) {
        return scaled_violation<is_scaled>(s, i, load<DoubleVector>(s.gradient + i));
      },
      largest);
}

static std::size_t descend(const CoordinateState& state, const float* first_row, double first_step,
                           const float* second_row, double second_step, double* largest) {
  const auto work = state.scale ? descended<true> : descended<false>;
  return work(state, first_row, first_step, second_row, second_step, largest);
}

// Gains only choose the partner: float is exact enough for them, and its divisions are cheaper.
static std::size_t best_companion(const CoordinateState& state, const float* diagonal,
                                  const float* row, std::size_t place, double* gain) {
  const CoordinateState s = state;
  constexpr std::size_t w = width<float>;
  const DoubleVector ratio = DoubleVector{} + s.gradient[place] / diagonal[place];
  const FloatVector zero = {}, inverse = zero + 1.0f / diagonal[place],
                    share = zero + static_cast<float>(smallest_share);
  const auto left_at = [&](std::size_t i) {
    return load<DoubleVector>(s.gradient + i) - load_lanes<double>(row + i) * ratio;
  };
  const auto gains = [&](std::size_t i) {
    const FloatVector k = load<FloatVector>(row + i), left = narrowed(left_at, i);
    const FloatVector own = load<FloatVector>(diagonal + i);
    const FloatVector curvature = own - k * k * inverse, least = own * share;
    const FloatVector value = left * left / (curvature > least ? curvature : least);
    return load<FloatVector>(s.side + i) * left <= zero ? value : zero - 1.0f;
  };
  Largest<float> found(-2.0f);
  for (std::size_t begin = 0; begin < s.size; begin += panel_rows) {
    FloatVector top = zero - 1.0f;
#pragma GCC unroll 16
    for (std::size_t i = begin; i < begin + panel_rows; i += w) top = maximum(top, gains(i));
    found.include(found, top);
  }
  return found.place(gains, gain);
}

constexpr double nothing = -1e300;

// -gradient where alpha may go up.
DCSVM_INLINE DoubleVector upward(const CoordinateState& s, std::size_t i, DoubleVector g) {
  const DoubleVector zero = {};
  return load_lanes<double>(s.side + i) >= zero ? -g : zero + nothing;
}

static std::size_t descend_pair(const CoordinateState& state, const float* first_row,
                                double first_step, const float* second_row, double second_step,
                                double* up, double* down) {
  const CoordinateState s = state;
  constexpr std::size_t w = width<double>;
  const DoubleVector zero = {}, t = zero + first_step, u = zero + second_step;
  Largest<double> found(2 * nothing);
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
      const DoubleVector downward = load_lanes<double>(s.side + i) <= zero ? g : zero + nothing;
      largest = maximum(largest, downward);
    }
    found.include(found, top);
  }
  double most = largest[0];
  for (std::size_t k = 1; k < w; ++k) most = largest[k] > most ? largest[k] : most;
  *down = -most;
  return found.place(
      [&s](std::size_t i) { return upward(s, i, load<DoubleVector>(s.gradient + i)); }, up);
}

static std::size_t best_partner(const CoordinateState& state, const float* diagonal,
                                const float* row, std::size_t place, double* gain) {
  const CoordinateState s = state;
  constexpr std::size_t w = width<float>;
  const DoubleVector own = DoubleVector{} + s.gradient[place];
  const FloatVector zero = {}, curve = zero + diagonal[place],
                    least = zero + static_cast<float>(smallest_pair_curvature);
  const auto difference_at = [&](std::size_t i) {
    return load<DoubleVector>(s.gradient + i) - own;
  };
  const auto gains = [&](std::size_t i) {
    const FloatVector difference = narrowed(difference_at, i);
    const FloatVector curvature =
        curve + load<FloatVector>(diagonal + i) - 2.0f * load<FloatVector>(row + i);
    const FloatVector value = difference * difference / (curvature > least ? curvature : least);
    const FloatVector gain_down = load<FloatVector>(s.side + i) <= zero ? value : zero - 1.0f;
    return difference > zero ? gain_down : zero - 1.0f;
  };
  Largest<float> found(-2.0f);
  for (std::size_t begin = 0; begin < s.size; begin += panel_rows) {
    FloatVector top = zero - 1.0f;
#pragma GCC unroll 16
    for (std::size_t i = begin; i < begin + panel_rows; i += w) top = maximum(top, gains(i));
    found.include(found, top);
  }
  return found.place(gains, gain);
}
