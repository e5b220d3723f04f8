// Formulas of the functions of kernel.h, for vectors of float and of double; defined only here.
// Part of isa_impl.h, inside its namespace.
//
// exp and tanh use polynomials, since the library functions vectorize only with -ffast-math.

// Returns (2^f - 1) / f for f in [-1/2, 1/2]. float: minimax polynomial; the relative error of 2^f
// is 2e-9 before rounding. double: Taylor polynomial of degree 13; the error is below 1e-16.
DCSVM_INLINE FloatVector fraction_slope(FloatVector f) {
  constexpr float c[] = {0.69314718246f, 0.24022646248f, 0.05550328642f,
                         0.00961848907f, 0.00133999309f, 0.00015345812f};
  FloatVector p = f * c[5] + c[4];
  p = p * f + c[3];
  p = p * f + c[2];
  p = p * f + c[1];
  return p * f + c[0];
}

DCSVM_INLINE DoubleVector fraction_slope(DoubleVector f) {
  constexpr double ln2 = 0.69314718055994530942;
  DoubleVector x = f * ln2;
  DoubleVector p = x * (1.0 / 13) + 1.0;
  for (int k = 12; k >= 2; --k) p = p * x * (1.0 / k) + 1.0;
  return p * ln2;
}

// A factor as the sum of two numbers, so that its rounding error is negligible.
template <class Real>
struct Factor {
  Real high, low;
  explicit Factor(double value)
      : high(static_cast<Real>(value)), low(static_cast<Real>(value - static_cast<double>(high))) {}
};

// Splits x * factor, which is not rounded, into `whole`, shifted to the exponent bits, and the
// returned fraction between -1/2 and 1/2.
template <class Real>
DCSVM_INLINE typename Traits<Real>::Vector split(typename Traits<Real>::Vector x,
                                                 const Factor<Real>& factor,
                                                 typename Traits<Real>::Integers& whole) {
  using T = Traits<Real>;
  const typename T::Vector shifted = x * factor.high + T::round_magic;
  std::memcpy(&whole, &shifted, sizeof shifted);
  whole <<= T::mantissa_bits;
  return x * factor.low + (x * factor.high - (shifted - T::round_magic));
}

// Returns values, which are near 1, times 2^whole.
template <class Real>
DCSVM_INLINE typename Traits<Real>::Vector scaled(typename Traits<Real>::Vector values,
                                                  typename Traits<Real>::Integers whole) {
  typename Traits<Real>::Integers bits;
  std::memcpy(&bits, &values, sizeof values);
  bits += whole;
  std::memcpy(&values, &bits, sizeof bits);
  return values;
}

// Returns 2^(x * factor), which must be a normal number of at most 1.
template <class Real>
DCSVM_INLINE typename Traits<Real>::Vector exp2_product(typename Traits<Real>::Vector x,
                                                        const Factor<Real>& factor) {
  typename Traits<Real>::Integers whole;
  const typename Traits<Real>::Vector f = split<Real>(x, factor, whole);
  return scaled<Real>(fraction_slope(f) * f + Real(1), whole);
}

// Returns 2^(x * factor) - 1, with a rounding error relative to this difference.
template <class Real>
DCSVM_INLINE typename Traits<Real>::Vector exp2_product_less_one(typename Traits<Real>::Vector x,
                                                                 const Factor<Real>& factor) {
  typename Traits<Real>::Integers whole;
  const typename Traits<Real>::Vector f = split<Real>(x, factor, whole);
  const auto power = scaled<Real>(typename Traits<Real>::Vector{} + Real(1), whole);
  return power * (fraction_slope(f) * f) + (power - Real(1));
}

template <class Real>
DCSVM_INLINE typename Traits<Real>::Vector tanh_vector(typename Traits<Real>::Vector x) {
  using Vector = typename Traits<Real>::Vector;
  const Factor<Real> minus_two_log2e(-2.88539008177792681472);
  const Vector zero = {};
  const Vector size = minimum(maximum(x, -x), Vector{} + Real(40));
  const Vector t = exp2_product<Real>(size, minus_two_log2e);
  const Vector value = (Real(1) - t) / (Real(1) + t);
  return x < zero ? -value : value;
}

// Replaces the arguments of a tile by kernel values: rows of whole vectors, `stride` apart. The
// function is chosen once, and its constants stay in registers: chosen for each vector, kernel
// values of few features took 1.3 times as long.
template <class Real>
static void take_function(const Kernel& kernel, std::size_t n_rows, std::size_t n_lanes,
                          std::size_t stride, Real* tile) {
  using Vector = typename Traits<Real>::Vector;
  const auto replace = [=](const auto& value_of) {
    for (std::size_t row = 0; row < n_rows; ++row) {
      for (std::size_t lane = 0; lane < n_lanes; lane += width<Real>) {
        Real* const at = tile + row * stride + lane;
        store(at, value_of(load<Vector>(at)));
      }
    }
  };
  // the largest argument whose value is a normal number; larger ones are clipped to it
  const Factor<Real> factor(-1.44269504088896340736 * kernel.gamma);
  const Vector limit =
      Vector{} + (factor.high < 0 ? Traits<Real>::lowest_exponent / factor.high : Real(0));
  const auto decay = [=](Vector argument) {
    return exp2_product<Real>(minimum(argument, limit), factor);
  };
  const auto decay_less_one = [=](Vector argument) {
    return exp2_product_less_one<Real>(minimum(argument, limit), factor);
  };
  const auto gamma = static_cast<Real>(kernel.gamma), coef0 = static_cast<Real>(kernel.coef0);
  switch (kernel.function) {
    case Function::identity:
      return;
    case Function::decay:
      return kernel.less_one ? replace(decay_less_one) : replace(decay);
    case Function::root_decay:
      if (kernel.less_one) return replace([=](Vector s) { return decay_less_one(square_root(s)); });
      return replace([=](Vector s) { return decay(square_root(s)); });
    case Function::tanh:
      return replace([=](Vector s) { return tanh_vector<Real>(s * gamma + coef0); });
    case Function::power:
      return replace([=, degree = kernel.degree](Vector s) {
        Vector base = s * gamma + coef0, power = Vector{} + Real(1);
        for (int e = degree; e > 0; e >>= 1) {
          if (e & 1) power *= base;
          base *= base;
        }
        return power;
      });
  }
}
