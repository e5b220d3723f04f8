// K w where the targets are the sources: every kernel value is computed once, for both its rows.
//
// Rows are cut into parts, of which every two meet once. They meet in rounds, as players of a
// tournament do: in a round no part has two partners, so that threads share nothing, and the sums
// of a part are added to in the order of the rounds, whatever the number of threads.
#pragma once

#include "kernel/kernel_product.h"

namespace dcsvm {

// Whether targets and sources are the same list with one weight each, of a kernel and of a size for
// which that pays.
bool is_symmetric_product(const KernelSetup& setup, const RowList& targets, const RowList& sources,
                          const SourceWeights& weights);

// As kernel_product() in float32 tiles.
ProductCount symmetric_product(const KernelSetup& setup, const RowList& rows,
                               const SourceWeights& weights, const Reach& reach, int n_threads,
                               double* out, const Stop* stop);

}  // namespace dcsvm
