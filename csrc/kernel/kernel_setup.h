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
  bool is_flat = false;         // most values are above 1/2: products sum them minus 1

  // Returns the setup for kernel products without a cutoff, which sum values minus 1 and then add
  // the sum of the weights.
  KernelSetup less_one() const {
    KernelSetup setup = *this;
    setup.kernel.less_one = true;
    return setup;
  }
};

// Returns the setup for a kernel on points. The form is precomputed for a precomputed kernel, bytes
// for points with bytes and sparse for CSR rows. Dense rows use the product form, but for a
// distance the difference form if it is as cheap, or if the product form would be inaccurate: gamma
// |x|^2 2^-24 is large for the largest |x|^2, and the products are not exact. Throws
// std::invalid_argument for bytes if the processor has no byte_loop() for the argument.
KernelSetup choose_setup(const Points& points, const Kernel& kernel, double largest_squared_norm);

// Returns the largest |x|^2 of dense or sparse points; 0 without points.
double largest_squared_norm(const Points& points, int n_threads);

// Computes each row's term of the kernel argument, in float64. For a squared distance it is |x|^2,
// codes included; in the difference form, the number of codes set. For a product and for absolute
// differences of bytes it is 0.
void compute_row_terms(const Points& points, const KernelSetup& setup, int n_threads,
                       double* row_terms);

// Cost of kernel values by a fixed model. Decisions based on it (caching, choice of method) are the
// same in every run, so that results are bitwise reproducible.

// Returns the nanoseconds for one kernel value on one core.
double tile_cost(const KernelSetup& setup, const Points& points);
// Nanoseconds to read a cached value while a gradient is updated.
constexpr double cached_entry_cost = 0.3;

// Returns whether the sparse rows of the points would be cheaper as bytes of all features.
bool bytes_beat_sparse(const Points& points, Argument argument);

// Returns whether caching kernel rows pays: a value costs more than writing to fresh memory.
bool caching_pays(const KernelSetup& setup, const Points& points);
// Returns whether computing a kernel row costs many times as much as reading it.
bool has_expensive_rows(const KernelSetup& setup, const Points& points);

// Returns how many threads share n_values kernel evaluations: one if they are few.
int threads_for(std::size_t n_values, int n_threads);

}  // namespace dcsvm
