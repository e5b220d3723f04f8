// Sums and products of float64 arrays: rows times weights, and the update of a Cholesky factor.
// Part of isa_impl.h, inside its namespace.

// Keeps n_vectors vectors of sums in registers while all rows are added to them.
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
      total[v] += w * load_lanes<double>(row + v * width<double>);
    }
  }
#pragma GCC unroll 16
  for (std::size_t v = 0; v < n_vectors; ++v) {
    store(sum + begin + v * width<double>, total[v]);
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

// Returns a b + c with the rounding of weighted_sum(). Compilers fuse the operations there, but may
// multiply whole vectors in a loop over numbers (gcc 16 does), which rounds twice.
DCSVM_INLINE double multiply_add(double a, double b, double c) {
#if defined(__FMA__) || defined(__ARM_FEATURE_FMA)
  constexpr bool is_fused = true;
#else
  constexpr bool is_fused = vector_bytes > 16;  // AVX2 and AVX-512, whose macros clang does not set
#endif
  if constexpr (is_fused) return __builtin_fma(a, b, c);
  return a * b + c;
}

// Adds values times weights: CSR rows of weights, or one weight per value if indptr is null.
static void add_in_order(const float* values, const SourceWeights& w, std::size_t n, double* sums) {
  const double* const weight = w.values;
  if (!w.indptr) {
    double total = *sums;
    for (std::size_t j = 0; j < n; ++j)
      total = multiply_add(weight[j], static_cast<double>(values[j]), total);
    *sums = total;
    return;
  }
  for (std::size_t j = 0; j < n; ++j) {
    const double value = static_cast<double>(values[j]);
    for (std::int64_t at = w.indptr[j]; at < w.indptr[j + 1]; ++at)
      sums[w.columns[at]] = multiply_add(weight[at], value, sums[w.columns[at]]);
  }
}

// Returns <x, w>; four partial sums hide the latency of additions.
static double dot(const float* x, const double* w, std::size_t n) {
  constexpr std::size_t step = 4 * width<double>;
  DoubleVector sum[4] = {};
  std::size_t j = 0;
  for (; j + step <= n; j += step) {
#pragma GCC unroll 4
    for (std::size_t v = 0; v < 4; ++v) {
      const std::size_t at = j + v * width<double>;
      sum[v] += load_lanes<double>(x + at) * load<DoubleVector>(w + at);
    }
  }
  for (; j + width<double> <= n; j += width<double>)
    sum[0] += load_lanes<double>(x + j) * load<DoubleVector>(w + j);
  const DoubleVector all = (sum[0] + sum[1]) + (sum[2] + sum[3]);
  double total = 0;
  for (std::size_t v = 0; v < width<double>; ++v) total += all[v];
  for (; j < n; ++j) total += static_cast<double>(x[j]) * w[j];
  return total;
}

// w += weight x
static void add_multiple(const float* x, double weight, std::size_t n, double* w) {
  const DoubleVector factor = broadcast<DoubleVector>(weight);
  std::size_t j = 0;
  for (; j + width<double> <= n; j += width<double>)
    store(w + j, load<DoubleVector>(w + j) + factor * load_lanes<double>(x + j));
  for (; j < n; ++j) w[j] += weight * static_cast<double>(x[j]);
}

// C -= A B'. Rows of A are `depth` long and contiguous; B' is stored depth x columns. `rows` and
// `columns` are multiples of the tile.
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
          store(at, load<DoubleVector>(at) - sum[r][v]);
        }
      }
    }
  }
}
