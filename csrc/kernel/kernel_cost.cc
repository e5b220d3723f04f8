#include "kernel/kernel_cost.h"

#include <algorithm>

namespace dcsvm {

namespace {

// Nanoseconds for the kernel itself and for every feature. On one core of a Xeon with AVX-512 a
// value takes 0.62 (model: 0.73) at 16 and 3.1 (3.8) at 128 features as differences, 1.9 (2.7) at
// 128 as products; with AVX2 half as much again for differences and twice as much for products. The
// model decides what is cached, when Newton steps pay and when variables are shrunk.
struct TileCost {
  double value, feature;
};
constexpr TileCost difference_cost{0.3, 0.027}, product_cost{0.4, 0.018}, bytes_cost{0.26, 0.0019},
    sparse_cost{0.5, 0.15};
constexpr double precomputed_cost = 0.5;
constexpr double code_features = 0.6;  // a code costs as much as that part of a feature

// Nanoseconds from which a value is cached. Below, fresh memory cost more than it saved.
constexpr double worth_caching = 2.0;
constexpr double expensive_ratio = 8.0;  // of computing a value to reading it

// Kernel values below which starting threads costs more than it saves: some 0.1 ms of work.
constexpr std::size_t worth_threads = 100000;

double of(const TileCost& cost, double n_features) {
  return cost.value + cost.feature * n_features;
}

double sparse_tile_cost(const Points& points) {
  const double stored = static_cast<double>(points.indptr[points.n_samples]) /
                        static_cast<double>(std::max<std::size_t>(points.n_samples, 1));
  return of(sparse_cost, stored);
}

}  // namespace

double tile_cost(const KernelSetup& setup, const Points& points) {
  const double d =
      static_cast<double>(points.n_features) + code_features * static_cast<double>(points.n_codes);
  switch (setup.form) {
    case Form::difference:
      return of(difference_cost, d);
    case Form::product:
      return of(product_cost, d);
    case Form::bytes:
      return of(bytes_cost, d);
    case Form::precomputed:
      return precomputed_cost;
    case Form::sparse:
      break;
  }
  return sparse_tile_cost(points);
}

bool bytes_beat_sparse(const Points& points) {
  return of(bytes_cost, static_cast<double>(points.n_features)) < sparse_tile_cost(points);
}

bool caching_pays(const KernelSetup& setup, const Points& points) {
  return tile_cost(setup, points) > worth_caching;
}

bool has_expensive_rows(const KernelSetup& setup, const Points& points) {
  return tile_cost(setup, points) > expensive_ratio * cached_entry_cost;
}

bool threads_pay(int n_threads, std::size_t n_values) {
  return n_threads > 1 && n_values >= worth_threads;
}

}  // namespace dcsvm
