// The kernel of a run and the evaluation form of all its tiles.
//
// The form determines the accuracy of values and the preparation of rows: norms, codes, bytes. It
// is chosen once, from all points, so that values are bitwise reproducible.
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

  // Returns the setup for products without a cutoff, which sum values less 1 and add the sum of the
  // weights.
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
// for bytes if the processor has no byte_loop() for the argument.
KernelSetup choose_setup(const Points& points, const Kernel& kernel, double largest_squared_norm);

// Returns the largest |x|^2 of dense or sparse points; 0 without points.
double largest_squared_norm(const Points& points, int n_threads);

// Computes the term of each row of the argument of the kernel, in float64: |x|^2 for a squared
// distance, codes included (the number of codes set, in the difference form); 0 for a product and
// for absolute differences of bytes.
void compute_row_terms(const Points& points, const KernelSetup& setup, int n_threads,
                       double* row_terms);

// The cost of kernel values, by a fixed model. Decisions based on it (caching, choice of method)
// are the same in every run, and so are the bits of the result.

// Nanoseconds of one kernel value on one core.
double tile_cost(const KernelSetup& setup, const Points& points);
// The same for reading a cached value while a gradient is updated.
constexpr double cached_entry_cost = 0.3;

// Whether bytes of all features are cheaper than the sparse rows that the points are.
bool bytes_beat_sparse(const Points& points, Argument argument);

// Returns whether caching kernel rows pays: a value costs more than writing to fresh memory.
bool caching_pays(const KernelSetup& setup, const Points& points);
// Whether computing a kernel row costs many times reading it.
bool has_expensive_rows(const KernelSetup& setup, const Points& points);

// Returns how many threads share n_values kernel evaluations: one if they are few.
int threads_for(std::size_t n_values, int n_threads);

}  // namespace dcsvm
