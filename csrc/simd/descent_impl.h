// Coordinate and pair descent on a working set. Part of isa_impl.h, inside its namespace.
//
// An update takes two passes. The first one, over the kernel row of the first variable, chooses its
// partner. The second one, over both rows, updates the gradient and finds the next first variable.

// Returns |g|, scaled, where alpha may move against the gradient, else 0.
template <bool is_scaled>
DCSVM_INLINE DoubleVector scaled_violation(const CoordinateState& s, std::size_t i,
                                           DoubleVector g) {
  const DoubleVector zero = {}, size = g < zero ? -g : g;
  const DoubleVector inward = load_lanes<double>(s.side + i) * g <= zero ? size : zero;
  return is_scaled ? inward * load<DoubleVector>(s.scale + i) : inward;
}

// The largest of several values and its index. The loop only tracks which chunk of panel_rows
// values contains the largest; place() finds the index in that chunk at the end.
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

// Returns the index of the largest gain; all gains are at least -1.
template <class Real, class GainsAt>
DCSVM_INLINE std::size_t largest_gain(std::size_t size, GainsAt gains, double* gain) {
  using Vector = typename Traits<Real>::Vector;
  Largest<Real> found(-Real(2));
  for (std::size_t begin = 0; begin < size; begin += panel_rows) {
    Vector top = Vector{} - Real(1);
#pragma GCC unroll 16
    for (std::size_t i = begin; i < begin + panel_rows; i += width<Real>)
      top = maximum(top, gains(i));
    found.include(found, top);
  }
  return found.place(gains, gain);
}

template <std::size_t... lane>
DCSVM_INLINE FloatVector joined(HalfFloatVector low, HalfFloatVector high,
                                std::index_sequence<lane...>) {
  return __builtin_shufflevector(low, high, static_cast<int>(lane)...);
}

// Returns a vector of Real from differences, which are computed in double for accuracy.
template <class Real, class DifferencesAt>
DCSVM_INLINE typename Traits<Real>::Vector lanes_of(DifferencesAt differences_at, std::size_t i) {
  if constexpr (sizeof(Real) == sizeof(double)) {
    return differences_at(i);
  } else {
    return joined(__builtin_convertvector(differences_at(i), HalfFloatVector),
                  __builtin_convertvector(differences_at(i + width<double>), HalfFloatVector),
                  std::make_index_sequence<width<float>>());
  }
}

template <class Real, bool is_scaled>
static std::size_t descended(const CoordinateState s, const Real* first_row, double first_step,
                             const Real* second_row, double second_step, double* largest) {
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

template <class Real>
static std::size_t descend(const CoordinateState& state, const Real* first_row, double first_step,
                           const Real* second_row, double second_step, double* largest) {
  const auto work = state.scale ? descended<Real, true> : descended<Real, false>;
  return work(state, first_row, first_step, second_row, second_step, largest);
}

// Gains only choose the partner, so float is accurate enough; its divisions are cheaper.
template <class Real>
static std::size_t best_companion(const CoordinateState& state, const Real* diagonal,
                                  const Real* row, std::size_t place, double* gain) {
  using Vector = typename Traits<Real>::Vector;
  const CoordinateState s = state;
  const DoubleVector ratio = DoubleVector{} + s.gradient[place] / diagonal[place];
  const Vector zero = {}, inverse = zero + Real(1) / diagonal[place],
               share = zero + static_cast<Real>(min_share);
  const auto left_at = [&](std::size_t i) {
    return load<DoubleVector>(s.gradient + i) - load_lanes<double>(row + i) * ratio;
  };
  const auto gains = [&](std::size_t i) {
    const Vector k = load<Vector>(row + i), left = lanes_of<Real>(left_at, i);
    const Vector own = load<Vector>(diagonal + i);
    const Vector curvature = own - k * k * inverse, least = own * share;
    const Vector value = left * left / (curvature > least ? curvature : least);
    return load_lanes<Real>(s.side + i) * left <= zero ? value : zero - Real(1);
  };
  return largest_gain<Real>(s.size, gains, gain);
}

constexpr double nothing = -1e300;

// Returns -gradient where alpha may increase, else `nothing`.
DCSVM_INLINE DoubleVector upward(const CoordinateState& s, std::size_t i, DoubleVector g) {
  const DoubleVector zero = {};
  return load_lanes<double>(s.side + i) >= zero ? -g : zero + nothing;
}

template <class Real>
static std::size_t descend_pair(const CoordinateState& state, const Real* first_row,
                                double first_step, const Real* second_row, double second_step,
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

template <class Real>
static std::size_t best_partner(const CoordinateState& state, const Real* diagonal, const Real* row,
                                std::size_t place, double* gain) {
  using Vector = typename Traits<Real>::Vector;
  const CoordinateState s = state;
  const DoubleVector own = DoubleVector{} + s.gradient[place];
  const Vector zero = {}, curve = zero + diagonal[place],
               least = zero + static_cast<Real>(min_pair_curvature);
  const auto difference_at = [&](std::size_t i) {
    return load<DoubleVector>(s.gradient + i) - own;
  };
  const auto gains = [&](std::size_t i) {
    const Vector difference = lanes_of<Real>(difference_at, i);
    const Vector curvature = curve + load<Vector>(diagonal + i) - Real(2) * load<Vector>(row + i);
    const Vector value = difference * difference / (curvature > least ? curvature : least);
    const Vector gain_down = load_lanes<Real>(s.side + i) <= zero ? value : zero - Real(1);
    return difference > zero ? gain_down : zero - Real(1);
  };
  return largest_gain<Real>(s.size, gains, gain);
}
