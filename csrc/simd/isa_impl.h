// The bodies of the loops of isa.h, in GCC/Clang vector extensions: no intrinsics, any target.
// Included once per instruction set by isa.cc, which defines DCSVM_ISA (a namespace name),
// DCSVM_ISA_NAME and DCSVM_VECTOR_BYTES. Therefore neither this file nor its parts have an include
// guard.

namespace dcsvm {
namespace DCSVM_ISA {

constexpr std::size_t vector_bytes = DCSVM_VECTOR_BYTES;

// A tile of sums (tile_queries rows by tile_vectors vectors of lanes) stays in registers while one
// chain of features is added. AVX-512 has 32 registers, the other instruction sets 16.
constexpr std::size_t tile_queries = DCSVM_VECTOR_BYTES == 64 ? 8 : 4;
constexpr std::size_t tile_vectors = 2;

typedef float FloatVector __attribute__((vector_size(DCSVM_VECTOR_BYTES)));
typedef double DoubleVector __attribute__((vector_size(DCSVM_VECTOR_BYTES)));
typedef float HalfFloatVector __attribute__((vector_size(DCSVM_VECTOR_BYTES / 2)));
typedef std::int32_t IntVector __attribute__((vector_size(DCSVM_VECTOR_BYTES)));
typedef std::int32_t HalfIntVector __attribute__((vector_size(DCSVM_VECTOR_BYTES / 2)));
typedef std::int64_t LongVector __attribute__((vector_size(DCSVM_VECTOR_BYTES)));

template <class Real>
struct Traits;
template <>
struct Traits<float> {
  using Vector = FloatVector;
  using Integers = IntVector;
  using Lanes32 = IntVector;
  static constexpr float round_magic = 12582912.0f;  // 1.5 * 2^23
  static constexpr int mantissa_bits = 23;
  static constexpr float lowest_exponent = -126.0f;
  static constexpr std::int32_t no_sign = std::numeric_limits<std::int32_t>::max();
};
template <>
struct Traits<double> {
  using Vector = DoubleVector;
  using Integers = LongVector;
  using Lanes32 = HalfIntVector;                             // an int32 for every lane
  static constexpr double round_magic = 6755399441055744.0;  // 1.5 * 2^52
  static constexpr int mantissa_bits = 52;
  static constexpr double lowest_exponent = -1022.0;
  static constexpr std::int64_t no_sign = std::numeric_limits<std::int64_t>::max();
};

template <class Real>
constexpr std::size_t width = vector_bytes / sizeof(Real);

// Returns x in every lane, as x - 0: the sum 0 + x would turn -0 into 0.
template <class Vector, class Real>
DCSVM_INLINE Vector broadcast(Real x) {
  return x - Vector{};
}

template <class Vector, class Source>
DCSVM_INLINE Vector load(const Source* p) {
  Vector v;
  std::memcpy(&v, p, sizeof v);
  return v;
}

template <class Vector, class Target>
DCSVM_INLINE void store(Target* p, const Vector& v) {
  std::memcpy(p, &v, sizeof v);
}

// Converts lane by lane: gcc 12 compiles this to one instruction, but a vector conversion to four.
template <std::size_t... lane>
DCSVM_INLINE DoubleVector widened(const float* p, std::index_sequence<lane...>) {
  return DoubleVector{static_cast<double>(p[lane])...};
}

// Loads a vector of Real from floats.
template <class Real>
DCSVM_INLINE typename Traits<Real>::Vector load_lanes(const float* p) {
  if constexpr (sizeof(Real) == sizeof(float)) {
    return load<FloatVector>(p);
  } else {
    return widened(p, std::make_index_sequence<width<double>>());
  }
}

template <class Real>
DCSVM_INLINE DoubleVector load_lanes(const double* p) {
  static_assert(sizeof(Real) == sizeof(double));
  return load<DoubleVector>(p);
}

// Loads a vector of Real from doubles.
template <class Real>
DCSVM_INLINE typename Traits<Real>::Vector load_doubles(const double* p) {
  if constexpr (sizeof(Real) == sizeof(double)) {
    return load<DoubleVector>(p);
  } else {
    typedef double Wide __attribute__((vector_size(2 * DCSVM_VECTOR_BYTES)));
    Wide wide;
    std::memcpy(&wide, p, sizeof wide);
    return __builtin_convertvector(wide, FloatVector);
  }
}

template <class Vector>
DCSVM_INLINE Vector minimum(Vector a, Vector b) {
  return a < b ? a : b;
}
template <class Vector>
DCSVM_INLINE Vector maximum(Vector a, Vector b) {
  return a > b ? a : b;
}

// Clears the sign bits, which takes one instruction; a comparison takes three.
DCSVM_INLINE FloatVector absolute(FloatVector a) {
  return (FloatVector)((IntVector)a & Traits<float>::no_sign);
}
DCSVM_INLINE DoubleVector absolute(DoubleVector a) {
  return (DoubleVector)((LongVector)a & Traits<double>::no_sign);
}
template <class Vector>
DCSVM_INLINE Vector square_root(Vector a) {
  for (std::size_t k = 0; k < sizeof a / sizeof a[0]; ++k) a[k] = std::sqrt(a[k]);
  return a;
}

// in this order: each part uses those before it
// clang-format off
#include "simd/arguments_impl.h"
#include "simd/kernel_value_impl.h"
#include "simd/tiles_impl.h"
#include "simd/sums_impl.h"
#include "simd/sign_sums_impl.h"
#include "simd/descent_impl.h"
// clang-format on

template <class Real>
static constexpr Loops<Real> loops_of = {
    dense<Real>,   bytes<Real>,          sparse<Real>,       weighted_sum<Real>,
    descend<Real>, best_companion<Real>, descend_pair<Real>, best_partner<Real>};

static const Isa functions = {DCSVM_ISA_NAME, loops_of<float>,  loops_of<double>,
                              add_in_order,   subtract_product, dot,
                              add_multiple,   sign_sums};

}  // namespace DCSVM_ISA
}  // namespace dcsvm

#undef DCSVM_ISA
#undef DCSVM_ISA_NAME
#undef DCSVM_VECTOR_BYTES
