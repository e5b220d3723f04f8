#include "kernel/kernel_setup.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <stdexcept>

#include "rows/bytes.h"
#include "rows/codes.h"
#include "rows/points.h"
#include "simd/isa.h"
#include "threads/parallel.h"

namespace dcsvm {

namespace {

// Largest gamma |x|^2 2^-24 for the product form, that is, gamma |x|^2 up to 1. Rounding of the dot
// product and of the norms then changes an RBF value by a few times this limit. Half the limit
// would send more data sets to the slower difference form; twice the limit would double the error.
constexpr double product_error = 6e-8;
constexpr double half_unit = 5.9604644775390625e-8;  // 2^-24, relative rounding of float32
// Up to this many features, distances use the difference form, which is more accurate and allows a
// cutoff. Compared with the product form, it costs the same at 32 features and 15 % more at 128
// with AVX2; with AVX-512 it costs 25 % more at 32 features, 50 % at 64 and 70 % at 128.
constexpr std::size_t difference_features = 64;

// Returns whether all features are integers and no sum of products over a chain reaches 2^24.
bool has_exact_products(const Points& points) {
  for (std::size_t i = 0; i < points.n_samples; ++i) {
    const float* row = features_of(points, i);
    for (std::size_t begin = 0; begin < points.n_features; begin += chain_length) {
      double sum = static_cast<double>(points.n_codes);
      for (std::size_t k = begin; k < std::min(begin + chain_length, points.n_features); ++k) {
        if (row[k] != std::nearbyint(row[k])) return false;
        sum += static_cast<double>(row[k]) * row[k];
      }
      if (sum >= 16777216.0) return false;
    }
  }
  return true;
}

// Returns the sum of the terms of n values, as independent partial sums. Trailing zeros do not
// change it.
template <class Of>
double sum_of_terms(const float* x, std::size_t n) {
  constexpr std::size_t n_sums = 8;
  double sums[n_sums] = {};
  std::size_t k = 0;
  for (; k + n_sums <= n; k += n_sums) {
    for (std::size_t s = 0; s < n_sums; ++s) sums[s] += Of::row_term(double{x[k + s]});
  }
  for (std::size_t s = 0; k < n; ++k, ++s) sums[s] += Of::row_term(double{x[k]});
  return std::accumulate(sums, sums + n_sums, 0.0);
}

// Returns the term of a row's features, without its codes.
template <class Of>
double features_term(const Points& points, std::size_t row) {
  const float* x =
      points.is_dense() ? features_of(points, row) : points.values + points.indptr[row];
  const auto n = points.is_dense()
                     ? points.n_features
                     : static_cast<std::size_t>(points.indptr[row + 1] - points.indptr[row]);
  return sum_of_terms<Of>(x, n);
}

// Returns the number of columns that are set in the codes of a row.
template <class Of>
double codes_term(const Points& points, std::size_t row) {
  static_assert(Of::row_term(1.0) == 1 && Of::gap(0.0, 1.0) == 1 && Of::gap(1.0, 0.0) == 1,
                "the contribution of a code to a distance is a number of columns");
  double term = 0;
  for (std::size_t k = 0; k < points.n_codes; ++k) term += points.codes_of(row)[k] != no_code;
  return term;
}

// Returns the term of a row of bytes, an integer.
template <class Of>
double bytes_term(const Points& points, std::size_t row) {
  if (Of::sums != Sums::products) return 0.0;
  const std::uint8_t* x = points.bytes + row * points.byte_row_size();
  std::int64_t term = 0;
  for (std::size_t k = 0; k < points.n_features; ++k)
    term += Of::row_term(std::int64_t{points.byte_origin + points.byte_step * x[k]});
  return static_cast<double>(term);
}

// Nanoseconds for the kernel function and for each feature. Measured on one core of a Xeon with
// AVX-512 (model in parentheses): differences of 16 features take 0.62 (0.73), of 128 features 3.1
// (3.8); products of 128 features take 1.9 (2.7). AVX2 takes 1.5 times as long for differences and
// twice as long for products. A feature of bytes takes 1.2 times as long in absolute differences as
// in products (EPYC with AVX-512). The model decides which rows are cached, when Newton steps pay
// and when variables are shrunk.
struct TileCost {
  double value, feature;
};
constexpr TileCost difference_tiles{0.3, 0.027}, product_tiles{0.4, 0.018},
    byte_product_tiles{0.26, 0.0019}, byte_distance_tiles{0.26, 0.0023}, sparse_tiles{0.5, 0.15},
    sparse_tiles_of_ones{0.5, 0.06};  // 9, 30 and 100 ones take 1.2, 2.6 and 6.5 (AVX2)
constexpr double precomputed_cost = 0.5;
// Costs relative to a feature, of a code that is set and of finding out whether one is.
constexpr double set_code_features = 0.55, code_features = 0.05;

// Values that cost more nanoseconds than this are cached. For cheaper values, writing to fresh
// memory cost more than the cache saved.
constexpr double caching_threshold = 2.0;
constexpr double expensive_ratio = 8.0;  // cost of computing a value over that of reading it

// Below this number of kernel values, about 0.02 ms of work, starting threads costs more than it
// saves.
constexpr std::size_t threads_threshold = 20000;

double of(const TileCost& cost, double n_features) {
  return cost.value + cost.feature * n_features;
}

TileCost bytes_tiles(Argument argument) {
  return is_from_products(argument) ? byte_product_tiles : byte_distance_tiles;
}

double sparse_tile_cost(const Points& points) {
  const double stored = static_cast<double>(points.indptr[points.n_samples]) /
                        static_cast<double>(std::max<std::size_t>(points.n_samples, 1));
  return of(points.has_only_ones ? sparse_tiles_of_ones : sparse_tiles, stored);
}

}  // namespace

KernelSetup choose_setup(const Points& points, const Kernel& kernel, double largest_squared_norm) {
  if (kernel.argument == Argument::none) return {kernel, Form::precomputed, false};
  if (points.bytes && !byte_loop(kernel.argument))
    throw std::invalid_argument("this processor has no tiles of bytes for this kernel");
  KernelSetup setup{kernel, points.bytes ? Form::bytes : Form::sparse, false};
  if (points.bytes || !points.is_dense()) return setup;
  const bool has_differences = is_distance(kernel.argument);
  const bool is_short = points.n_features <= difference_features;
  if (has_differences && (is_short || !is_from_products(kernel.argument))) {
    setup.form = Form::difference;
    return setup;
  }
  setup.form = Form::product;
  setup.exact_products = has_exact_products(points);
  const double rounding = largest_squared_norm * half_unit;
  const bool has_root = properties_of(kernel.function).has_root;
  const bool accurate = kernel.gamma * (has_root ? std::sqrt(rounding) : rounding) <= product_error;
  if (has_differences && !accurate && !setup.exact_products) setup.form = Form::difference;
  return setup;
}

double largest_squared_norm(const Points& points, int n_threads) {
  double largest = 0;
  parallel_for(
      {n_threads, points.n_samples, batch_rows}, [] { return 0.0; },
      [&](double& own, std::size_t row) {
        own = std::max(own, features_term<SquaredDistance>(points, row) +
                                codes_term<SquaredDistance>(points, row));
      },
      [&](double own) { largest = std::max(largest, own); });
  return largest;
}

void compute_row_terms(const Points& points, const KernelSetup& setup, int n_threads,
                       double* row_terms) {
  std::fill_n(row_terms, points.n_samples, 0.0);
  with_distance(setup.kernel.argument, [&](auto of) {
    using Of = decltype(of);
    parallel_for({n_threads, points.n_samples, batch_rows}, [&](std::size_t row) {
      if (setup.form == Form::bytes) {
        row_terms[row] = bytes_term<Of>(points, row);
        return;
      }
      double term = setup.form == Form::difference ? 0.0 : features_term<Of>(points, row);
      term += codes_term<Of>(points, row);
      if (points.other_terms) term += points.other_terms[row];
      row_terms[row] = term;
    });
  });
}

double tile_cost(const KernelSetup& setup, const Points& points) {
  const double d = static_cast<double>(points.n_features) + set_code_features * points.mean_set +
                   code_features * static_cast<double>(points.n_codes);
  switch (setup.form) {
    case Form::difference:
      return of(difference_tiles, d);
    case Form::product:
      return of(product_tiles, d);
    case Form::bytes:
      return of(bytes_tiles(setup.kernel.argument), d);
    case Form::precomputed:
      return precomputed_cost;
    case Form::sparse:
      break;
  }
  return sparse_tile_cost(points);
}

bool bytes_beat_sparse(const Points& points, Argument argument) {
  const double of_bytes = of(bytes_tiles(argument), static_cast<double>(points.n_features));
  return of_bytes < sparse_tile_cost(points);
}

bool caching_pays(const KernelSetup& setup, const Points& points) {
  return tile_cost(setup, points) > caching_threshold;
}

bool has_expensive_rows(const KernelSetup& setup, const Points& points) {
  return tile_cost(setup, points) > expensive_ratio * cached_entry_cost;
}

int threads_for(std::size_t n_values, int n_threads) {
  return n_values >= threads_threshold ? n_threads : 1;
}

}  // namespace dcsvm
