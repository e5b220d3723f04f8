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

// Constants of a tile, for decays: the factor of the argument, and the largest argument whose value
// is a normal number. Larger arguments are clipped to it.
template <class Real>
struct Constants {
  Factor<Real> factor;
  Real limit;
  explicit Constants(const Kernel& kernel)
      : factor(-1.44269504088896340736 * kernel.gamma),
        limit(factor.high < 0 ? Traits<Real>::lowest_exponent / factor.high : Real(0)) {}
};

// Returns the kernel values of arguments.
template <class Real>
DCSVM_INLINE typename Traits<Real>::Vector kernel_value(const Kernel& kernel,
                                                        const Constants<Real>& constants,
                                                        typename Traits<Real>::Vector argument) {
  using Vector = typename Traits<Real>::Vector;
  switch (kernel.function) {
    case Function::identity:
      return argument;
    case Function::root_decay:
      argument = square_root(argument);
      [[fallthrough]];
    case Function::decay:
      argument = minimum(argument, Vector{} + constants.limit);
      return kernel.less_one ? exp2_product_less_one<Real>(argument, constants.factor)
                             : exp2_product<Real>(argument, constants.factor);
    case Function::tanh:
      return tanh_vector<Real>(argument * static_cast<Real>(kernel.gamma) +
                               static_cast<Real>(kernel.coef0));
    case Function::power: {
      Vector base = argument * static_cast<Real>(kernel.gamma) + static_cast<Real>(kernel.coef0);
      Vector power = Vector{} + Real(1);
      for (int e = kernel.degree; e > 0; e >>= 1) {
        if (e & 1) power *= base;
        base *= base;
      }
      return power;
    }
  }
  return Vector{} + std::numeric_limits<Real>::quiet_NaN();  // unknown function
}
