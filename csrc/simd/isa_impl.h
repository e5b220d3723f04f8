// The bodies behind isa.h, included once per instruction set by isa.cc, which defines
// DCSVM_ISA (a namespace name) and DCSVM_VECTOR_BYTES. Therefore no include guard.
//
// Written in GCC/Clang vector extensions: no intrinsics, any target. Arithmetic per row pair is
// one chain over the features in ascending order, whatever the tile it is part of.

namespace dcsvm {
namespace DCSVM_ISA {

constexpr std::size_t vector_bytes = DCSVM_VECTOR_BYTES;
constexpr std::size_t tile_queries = DCSVM_VECTOR_BYTES == 64 ? 8 : 4;
constexpr std::size_t tile_vectors = 2;

#define DCSVM_INLINE static inline __attribute__((always_inline))

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
};
template <>
struct Traits<double> {
  using Vector = DoubleVector;
  using Integers = LongVector;
  using Lanes32 = HalfIntVector;                             // an int32 for every lane
  static constexpr double round_magic = 6755399441055744.0;  // 1.5 * 2^52
  static constexpr int mantissa_bits = 52;
  static constexpr double lowest_exponent = -1022.0;
};

template <class Real>
constexpr std::size_t width = vector_bytes / sizeof(Real);

// x in every lane. Not 0 + x, which the compiler has to compute for the sake of -0.
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

// Lane by lane, which gcc 12 makes one instruction of, and of a vector's conversion four.
template <std::size_t... lane>
DCSVM_INLINE DoubleVector widened(const float* p, std::index_sequence<lane...>) {
  return DoubleVector{static_cast<double>(p[lane])...};
}

template <class Real>
DCSVM_INLINE typename Traits<Real>::Vector load_lanes(const float* p) {
  if constexpr (sizeof(Real) == sizeof(float)) {
    return load<FloatVector>(p);
  } else {
    return widened(p, std::make_index_sequence<width<double>>());
  }
}

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

// 2^f on [-1/2, 1/2]: minimax polynomial, relative error 2e-9 before rounding (float), Taylor to
// degree 13 (double, below 1e-16).
DCSVM_INLINE FloatVector fraction_power(FloatVector f) {
  constexpr float c[] = {1.0f,           0.69314718246f, 0.24022646248f, 0.05550328642f,
                         0.00961848907f, 0.00133999309f, 0.00015345812f};
  FloatVector p = f * c[6] + c[5];
  p = p * f + c[4];
  p = p * f + c[3];
  p = p * f + c[2];
  p = p * f + c[1];
  return p * f + c[0];
}

DCSVM_INLINE DoubleVector fraction_power(DoubleVector f) {
  constexpr double ln2 = 0.69314718055994530942;
  DoubleVector x = f * ln2;
  DoubleVector p = x * (1.0 / 13) + 1.0;
  for (int k = 12; k >= 1; --k) p = p * x * (1.0 / k) + 1.0;
  return p;
}

// 2^(x * factor), which must lie in the normal range below 1; the product is not rounded.
template <class Real>
DCSVM_INLINE typename Traits<Real>::Vector exp2_product(typename Traits<Real>::Vector x,
                                                        Real factor) {
  using T = Traits<Real>;
  using Vector = typename T::Vector;
  const Vector shifted = x * factor + T::round_magic;
  const Vector p = fraction_power(x * factor - (shifted - T::round_magic));
  typename T::Integers exponent, bits;
  std::memcpy(&exponent, &shifted, sizeof shifted);
  std::memcpy(&bits, &p, sizeof p);
  bits += exponent << T::mantissa_bits;
  Vector result;
  std::memcpy(&result, &bits, sizeof result);
  return result;
}

template <class Real>
DCSVM_INLINE typename Traits<Real>::Vector tanh_vector(typename Traits<Real>::Vector x) {
  using Vector = typename Traits<Real>::Vector;
  constexpr Real minus_two_log2e = static_cast<Real>(-2.88539008177792681472);
  const Vector zero = {};
  const Vector size = minimum(maximum(x, -x), Vector{} + Real(40));
  const Vector t = exp2_product<Real>(size, minus_two_log2e);
  const Vector value = (Real(1) - t) / (Real(1) + t);
  return x < zero ? -value : value;
}

// Constants of a tile: what its argument is multiplied with for RBF, and where it is cut so that
// the value stays a normal number.
template <class Real>
struct RbfScale {
  Real factor, limit;
  RbfScale(const Kernel& kernel, double squared_distance_per_argument)
      : factor(static_cast<Real>(-1.44269504088896340736 * kernel.gamma *
                                 squared_distance_per_argument)),
        limit(factor < 0 ? Traits<Real>::lowest_exponent / factor : Real(0)) {}
};

// The kernels. For RBF `argument` is the squared distance, or half of it, as `scale` knows; for the
// others it is x'z.
template <class Real>
DCSVM_INLINE typename Traits<Real>::Vector kernel_value(const Kernel& kernel,
                                                        const RbfScale<Real>& scale,
                                                        typename Traits<Real>::Vector argument) {
  using Vector = typename Traits<Real>::Vector;
  switch (kernel.type) {
    case KernelType::linear:
      return argument;
    case KernelType::rbf:
      return exp2_product<Real>(minimum(argument, Vector{} + scale.limit), scale.factor);
    case KernelType::sigmoid:
      return tanh_vector<Real>(argument * static_cast<Real>(kernel.gamma) +
                               static_cast<Real>(kernel.coef0));
    case KernelType::polynomial:
    case KernelType::precomputed:  // has no argument
      break;
  }
  Vector base = argument * static_cast<Real>(kernel.gamma) + static_cast<Real>(kernel.coef0);
  Vector power = Vector{} + Real(1);
  for (int e = kernel.degree; e > 0; e >>= 1) {
    if (e & 1) power *= base;
    base *= base;
  }
  return power;
}

template <class Real>
DCSVM_INLINE typename Traits<Real>::Vector from_dot(const Kernel& kernel,
                                                    typename Traits<Real>::Vector dot,
                                                    double query_half_norm,
                                                    typename Traits<Real>::Vector lane_half_norms) {
  if (kernel.type != KernelType::rbf) return dot;
  const typename Traits<Real>::Vector zero = {};
  return maximum((lane_half_norms + static_cast<Real>(query_half_norm)) - dot, zero);
}

// Equal codes of each query with the rows of a panel. Bytes count up to 127 of them at a time.
DCSVM_INLINE void count_matches(const DenseTile& t, const std::uint8_t* const* query,
                                float (&matches)[tile_queries][panel_rows]) {
  typedef std::int8_t Bytes __attribute__((vector_size(panel_rows)));
  for (std::size_t begin = 0; begin < t.n_codes; begin += 127) {
    const std::size_t end = begin + 127 < t.n_codes ? begin + 127 : t.n_codes;
    Bytes count[tile_queries] = {};
    for (std::size_t k = begin; k < end; ++k) {
      Bytes lanes;
      std::memcpy(&lanes, t.panel_codes + k * panel_rows, sizeof lanes);
#pragma GCC unroll 8
      for (std::size_t r = 0; r < tile_queries; ++r)
        count[r] -= (Bytes{} + static_cast<std::int8_t>(query[r][k])) == lanes;
    }
    for (std::size_t r = 0; r < tile_queries; ++r) {
      for (std::size_t lane = 0; lane < panel_rows; ++lane) {
        const auto found = static_cast<float>(count[r][lane]);
        matches[r][lane] = begin == 0 ? found : matches[r][lane] + found;
      }
    }
  }
}

// What the codes contribute: equal ones to a dot product, columns set in one row only to a squared
// distance. Whole numbers, so exact.
template <class Sum, bool difference>
DCSVM_INLINE typename Traits<Sum>::Vector coded_part(const DenseTile& t, const float* matches,
                                                     double norm, std::size_t at) {
  const auto equal = load_lanes<Sum>(matches + at);
  if constexpr (!difference) return equal;
  return (load_doubles<Sum>(t.lane_half_norms + at) + static_cast<Sum>(norm) - equal) * Sum(2);
}

// n float values as Real: themselves, or converted into the buffer.
template <class Real>
DCSVM_INLINE const Real* converted(const float* values, std::size_t n, Real* buffer) {
  if constexpr (sizeof(Real) == sizeof(float)) {
    return values;
  } else {
    for (std::size_t k = 0; k < n; ++k) buffer[k] = values[k];
    return buffer;
  }
}

template <class Real, bool difference>
DCSVM_INLINE void dense_tile(const DenseTile& t, const float* const* query, const double* norms,
                             const float (&matches)[tile_queries][panel_rows], std::size_t lane,
                             std::size_t n_queries, Real* out) {
  using Vector = typename Traits<Real>::Vector;
  Vector total[tile_queries][tile_vectors] = {};
  if (t.n_codes > 0) {
#pragma GCC unroll 8
    for (std::size_t r = 0; r < tile_queries; ++r) {
#pragma GCC unroll 8
      for (std::size_t v = 0; v < tile_vectors; ++v) {
        total[r][v] = coded_part<Real, difference>(t, matches[r], norms[r], lane + v * width<Real>);
      }
    }
  }
  for (std::size_t begin = 0; begin < t.n_features; begin += chain_length) {
    const std::size_t end =
        begin + chain_length < t.n_features ? begin + chain_length : t.n_features;
    Real buffer[tile_queries][chain_length];
    const Real* a_values[tile_queries];
    for (std::size_t r = 0; r < tile_queries; ++r)
      a_values[r] = converted<Real>(query[r] + begin, end - begin, buffer[r]);
    Vector sum[tile_queries][tile_vectors] = {};
    const float* panel = t.panel + begin * panel_rows + lane;
    for (std::size_t k = 0; k < end - begin; ++k, panel += panel_rows) {
      Vector b[tile_vectors];
#pragma GCC unroll 8
      for (std::size_t v = 0; v < tile_vectors; ++v)
        b[v] = load_lanes<Real>(panel + v * width<Real>);
#pragma GCC unroll 8
      for (std::size_t r = 0; r < tile_queries; ++r) {
        const Vector a = broadcast<Vector>(a_values[r][k]);
#pragma GCC unroll 8
        for (std::size_t v = 0; v < tile_vectors; ++v) {
          if constexpr (difference) {
            const Vector gap = b[v] - a;
            sum[r][v] += gap * gap;
          } else {
            sum[r][v] += a * b[v];
          }
        }
      }
    }
#pragma GCC unroll 8
    for (std::size_t r = 0; r < tile_queries; ++r) {
#pragma GCC unroll 8
      for (std::size_t v = 0; v < tile_vectors; ++v) total[r][v] += sum[r][v];
    }
  }
  const RbfScale<Real> scale(*t.kernel, difference ? 1.0 : 2.0);
  for (std::size_t r = 0; r < n_queries; ++r) {
    for (std::size_t v = 0; v < tile_vectors; ++v) {
      const std::size_t at = lane + v * width<Real>;
      Vector argument = total[r][v];
      if constexpr (!difference) {
        argument = from_dot<Real>(*t.kernel, argument, norms[r],
                                  load_doubles<Real>(t.lane_half_norms + at));
      }
      const auto value = kernel_value<Real>(*t.kernel, scale, argument);
      std::memcpy(out + r * t.out_stride + at, &value, sizeof value);
    }
  }
}

DCSVM_INLINE void add_lanes(const float* part, std::size_t n, double* total) {
  for (std::size_t k = 0; k < n; k += width<double>) {
    const DoubleVector value = load<DoubleVector>(total + k) + load_lanes<double>(part + k);
    std::memcpy(total + k, &value, sizeof value);
  }
}

// Dot products whose sums over chain_length features float holds exactly: totals and arguments in
// double, so that only the kernel's own rounding is left.
template <class Real>
DCSVM_INLINE void exact_tile(const DenseTile& t, const float* const* query, const double* norms,
                             const float (&matches)[tile_queries][panel_rows], std::size_t lane,
                             std::size_t n_queries, Real* out) {
  constexpr std::size_t lanes = tile_vectors * width<float>;
  double total[tile_queries][lanes] = {};
  float part[tile_queries][lanes];
  if (t.n_codes > 0) {
    for (std::size_t r = 0; r < tile_queries; ++r) add_lanes(matches[r] + lane, lanes, total[r]);
  }
  for (std::size_t begin = 0; begin < t.n_features; begin += chain_length) {
    const std::size_t end =
        begin + chain_length < t.n_features ? begin + chain_length : t.n_features;
    FloatVector sum[tile_queries][tile_vectors] = {};
    const float* panel = t.panel + begin * panel_rows + lane;
    for (std::size_t k = begin; k < end; ++k, panel += panel_rows) {
      FloatVector b[tile_vectors];
#pragma GCC unroll 8
      for (std::size_t v = 0; v < tile_vectors; ++v) {
        b[v] = load<FloatVector>(panel + v * width<float>);
      }
#pragma GCC unroll 8
      for (std::size_t r = 0; r < tile_queries; ++r) {
        const FloatVector a = broadcast<FloatVector>(query[r][k]);
#pragma GCC unroll 8
        for (std::size_t v = 0; v < tile_vectors; ++v) sum[r][v] += a * b[v];
      }
    }
#pragma GCC unroll 8
    for (std::size_t r = 0; r < tile_queries; ++r) {
#pragma GCC unroll 8
      for (std::size_t v = 0; v < tile_vectors; ++v) {
        const FloatVector value = sum[r][v];
        std::memcpy(&part[r][v * width<float>], &value, sizeof value);
      }
    }
    add_lanes(part[0], tile_queries * lanes, total[0]);
  }
  const RbfScale<Real> scale(*t.kernel, 2.0);
  for (std::size_t r = 0; r < n_queries; ++r) {
    for (std::size_t k = 0; k < lanes; k += width<double>) {
      const DoubleVector argument =
          from_dot<double>(*t.kernel, load<DoubleVector>(total[r] + k), norms[r],
                           load<DoubleVector>(t.lane_half_norms + lane + k));
      std::memcpy(total[r] + k, &argument, sizeof argument);
    }
    for (std::size_t k = 0; k < lanes; k += width<Real>) {
      const auto value = kernel_value<Real>(*t.kernel, scale, load_doubles<Real>(total[r] + k));
      std::memcpy(out + r * t.out_stride + lane + k, &value, sizeof value);
    }
  }
}

template <class Real, bool difference, bool exact>
DCSVM_INLINE void dense_tiles(const DenseTile& t, Real* out) {
  constexpr std::size_t lanes = tile_vectors * (exact ? width<float> : width<Real>);
  for (std::size_t first = 0; first < t.n_queries; first += tile_queries) {
    const std::size_t n = t.n_queries - first < tile_queries ? t.n_queries - first : tile_queries;
    const float* query[tile_queries];
    const std::uint8_t* codes[tile_queries];
    double norms[tile_queries];
    float matches[tile_queries][panel_rows];
    for (std::size_t r = 0; r < tile_queries; ++r) {
      const std::size_t j = first + (r < n ? r : n - 1);
      query[r] = t.queries[j];
      norms[r] = t.query_half_norms[j];
      if (t.n_codes > 0) codes[r] = t.query_codes[j];
    }
    if (t.n_codes > 0) count_matches(t, codes, matches);
    Real* rows = out + first * t.out_stride;
    for (std::size_t lane = 0; lane < panel_rows; lane += lanes) {
      if constexpr (exact) {
        exact_tile<Real>(t, query, norms, matches, lane, n, rows);
      } else {
        dense_tile<Real, difference>(t, query, norms, matches, lane, n, rows);
      }
    }
  }
}

template <class Real>
static void dense(const DenseTile& t, Real* out) {
  if (t.form == Form::difference) {
    dense_tiles<Real, true, false>(t, out);
  } else if (t.exact_products) {
    dense_tiles<Real, false, true>(t, out);
  } else {
    dense_tiles<Real, false, false>(t, out);
  }
}

// Integers below 2^30, so the argument is rounded once, like those of exact_tile.
template <class Real>
static void bytes(const ByteTile& t, Real* out) {
  using Vector = typename Traits<Real>::Vector;
  using Integers = typename Traits<Real>::Lanes32;
  const RbfScale<Real> scale(*t.kernel, 1.0);
  for (std::size_t r = 0; r < t.n_queries; ++r) {
    for (std::size_t lane = 0; lane < panel_rows; lane += width<Real>) {
      const Integers argument = load<Integers>(t.dots + r * panel_rows + lane) * t.factor +
                                load<Integers>(t.lane_terms + lane) + t.query_terms[r];
      const Vector value =
          kernel_value<Real>(*t.kernel, scale, __builtin_convertvector(argument, Vector));
      std::memcpy(out + r * t.out_stride + lane, &value, sizeof value);
    }
  }
}

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
      const DoubleVector value =
          from_dot<double>(*t.kernel, dot[v], t.query_half_norms[r],
                           load<DoubleVector>(t.lane_half_norms + v * width<double>));
      std::memcpy(argument + v * width<double>, &value, sizeof value);
    }
    for (std::size_t lane = 0; lane < panel_rows; lane += width<Real>) {
      const auto value = kernel_value<Real>(*t.kernel, scale, load_doubles<Real>(argument + lane));
      std::memcpy(out + r * t.out_stride + lane, &value, sizeof value);
    }
  }
}

template <class Real, std::size_t n_vectors>
DCSVM_INLINE void weighted_sum_step(const Real* const* rows, const double* weight, std::size_t n,
                                    std::size_t begin, double* sum) {
  DoubleVector total[n_vectors];
#pragma GCC unroll 16
  for (std::size_t v = 0; v < n_vectors; ++v)
    total[v] = load<DoubleVector>(sum + begin + v * width<double>);
  for (std::size_t j = 0; j < n; ++j) {
    const DoubleVector w = broadcast<DoubleVector>(weight[j]);
    const Real* row = rows[j] + begin;
#pragma GCC unroll 16
    for (std::size_t v = 0; v < n_vectors; ++v) {
      DoubleVector value;
      if constexpr (sizeof(Real) == sizeof(float)) {
        value = load_lanes<double>(row + v * width<double>);
      } else {
        value = load<DoubleVector>(row + v * width<double>);
      }
      total[v] += w * value;
    }
  }
#pragma GCC unroll 16
  for (std::size_t v = 0; v < n_vectors; ++v) {
    std::memcpy(sum + begin + v * width<double>, &total[v], sizeof(DoubleVector));
  }
}

template <class Real>
static void weighted_sum(const Real* const* rows, const double* weight, std::size_t n,
                         std::size_t lanes, double* sum) {
  constexpr std::size_t narrow = panel_rows / width<double> < 8 ? panel_rows / width<double> : 8;
  constexpr std::size_t wide = 2 * tile_queries;
  std::size_t begin = 0;
  for (; begin + wide * width<double> <= lanes; begin += wide * width<double>) {
    weighted_sum_step<Real, wide>(rows, weight, n, begin, sum);
  }
  for (; begin < lanes; begin += narrow * width<double>) {
    weighted_sum_step<Real, narrow>(rows, weight, n, begin, sum);
  }
}

#include "simd/descent_impl.h"

// Rows of A are `depth` long and contiguous; B' is stored depth x columns, columns a multiple of
// the tile; `rows` is a multiple of the tile too.
static void subtract_product(const double* a, const double* b_transposed, std::size_t depth,
                             std::size_t rows, std::size_t columns, double* c,
                             std::size_t c_stride) {
  constexpr std::size_t w = width<double>;
  for (std::size_t i = 0; i < rows; i += tile_queries) {
    for (std::size_t j = 0; j < columns; j += tile_vectors * w) {
      DoubleVector sum[tile_queries][tile_vectors] = {};
      const double* b = b_transposed + j;
      for (std::size_t k = 0; k < depth; ++k, b += columns) {
        DoubleVector bv[tile_vectors];
#pragma GCC unroll 8
        for (std::size_t v = 0; v < tile_vectors; ++v) bv[v] = load<DoubleVector>(b + v * w);
#pragma GCC unroll 8
        for (std::size_t r = 0; r < tile_queries; ++r) {
          const DoubleVector av = broadcast<DoubleVector>(a[(i + r) * depth + k]);
#pragma GCC unroll 8
          for (std::size_t v = 0; v < tile_vectors; ++v) sum[r][v] += av * bv[v];
        }
      }
#pragma GCC unroll 8
      for (std::size_t r = 0; r < tile_queries; ++r) {
#pragma GCC unroll 8
        for (std::size_t v = 0; v < tile_vectors; ++v) {
          double* at = c + (i + r) * c_stride + j + v * w;
          const DoubleVector value = load<DoubleVector>(at) - sum[r][v];
          std::memcpy(at, &value, sizeof value);
        }
      }
    }
  }
}

static const Isa functions = {
    DCSVM_ISA_NAME, dense<float>,   dense<double>,       bytes<float>,         bytes<double>,
    sparse<float>,  sparse<double>, weighted_sum<float>, weighted_sum<double>, descend,
    best_companion, descend_pair,   best_partner,        subtract_product};

#undef DCSVM_INLINE

}  // namespace DCSVM_ISA
}  // namespace dcsvm
