// K W of the linear kernel as X (X' W), in float64: fewer operations, and no error of a kernel
// value, where there are more sources than columns of W.
#pragma once

#include "kernel/kernel_product.h"

namespace dcsvm {

// Whether a product takes this way. It does not depend on how many targets there are, so that the
// sums of a row are the same bits with whatever other rows they are asked for.
bool is_linear_product(const KernelSetup& setup, const RowList& targets, const RowList& sources,
                       const SourceWeights& weights);

// As kernel_product(), whose other arguments do not matter here. No kernel value is computed.
ProductCount linear_product(const RowList& targets, const RowList& sources,
                            const SourceWeights& weights, int n_threads, double* out,
                            const Stop* stop);

}  // namespace dcsvm
