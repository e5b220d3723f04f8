// What a kernel value is made of in one run: the kernel, and one form for all its tiles.
//
// The form decides the accuracy of every value and what rows have to be prepared: norms, codes,
// bytes. It is chosen once, from all the points, so that a value is the same bits everywhere.
#pragma once

#include "rows/points.h"
#include "simd/kernel.h"

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
// points have them. Dense rows take the product form, but RBF takes the difference form where that
// is as cheap, or where the product form would be inaccurate: gamma |x|^2 2^-24 is large and the
// products are not exact.
KernelSetup choose_setup(const Points& points, const Kernel& kernel);

// Half of what each of two rows adds to a kernel value's argument, in float64: 1/2 |x|^2, codes
// included; for the difference form the codes alone.
void compute_half_norms(const Points& points, Form form, int n_threads, double* half_norms);

}  // namespace dcsvm
