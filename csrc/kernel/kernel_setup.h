// What a kernel value is made of in one run: the kernel, and one form for all its tiles.
//
// The form decides the accuracy of every value and what rows have to be prepared: norms, codes,
// bytes. It is chosen once, from all the points, so that a value is the same bits everywhere.
#pragma once

#include <cstddef>

#include "rows/points.h"
#include "simd/isa.h"

namespace dcsvm {

struct KernelSetup {
  Kernel kernel;
  Form form = Form::product;
  bool exact_products = false;  // float32 sums of products over a chain are exact
  bool is_flat = false;         // most values are above 1/2: products sum them less 1

  // For products, where no value is left out: sums are then of weights times values, and weights.
  KernelSetup less_one() const {
    KernelSetup setup = *this;
    setup.kernel.less_one = true;
    return setup;
  }
};

// The setup for a kernel on points: precomputed for that kernel, sparse for CSR, bytes where the
// points have them. Dense rows take the product form, but a distance takes the difference form
// where that is as cheap, or where the product form would be inaccurate: gamma |x|^2 2^-24 is
// large, by largest_squared_norm(), and the products are not exact. Throws std::invalid_argument
// for bytes and an argument that does not come from products.
KernelSetup choose_setup(const Points& points, const Kernel& kernel, double largest_squared_norm);

// |x|^2 of the longest of dense or sparse points; 0 of none.
double largest_squared_norm(const Points& points, int n_threads);

// What each row adds to the argument of the kernel, in float64: to a squared distance |x|^2, codes
// included, in the difference form the number of codes set alone; to a product nothing.
void compute_row_terms(const Points& points, const KernelSetup& setup, int n_threads,
                       double* row_terms);

// What kernel values cost, by a fixed model: nothing is measured at run time. Decisions that rest
// on these costs (what is cached, which method goes on) are the same in every run, and so are the
// bits of the result.

// Nanoseconds of one kernel value on one core.
double tile_cost(const KernelSetup& setup, const Points& points);
// The same for reading a cached value while a gradient is updated.
constexpr double cached_entry_cost = 0.3;

// Whether bytes of all features are cheaper than the sparse rows that the points are.
bool bytes_beat_sparse(const Points& points);

// Whether kernel rows are worth keeping: a value costs more than memory that is touched for the
// first time.
bool caching_pays(const KernelSetup& setup, const Points& points);
// Whether computing a kernel row costs many times reading it.
bool has_expensive_rows(const KernelSetup& setup, const Points& points);

// How many of the threads share so many kernel values: one where they are few.
int threads_for(std::size_t n_values, int n_threads);

}  // namespace dcsvm
