// K(targets, sources) W without ever storing K: the first of the project's two verbs.
//
// It is the gradient of a warm start, the check of the optimality conditions over all rows, the
// assignment step of two-step kernel k-means (W = weighted cluster indicators) and every decision
// value. Sums are taken in float64 in the order of the sources, one target's by one thread, so
// the result does not depend on the number of threads.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernel_tile.h"

namespace dcsvm {

// One row of weights per source, in CSR form: n_columns sums are taken for every target.
struct SourceWeights {
  std::size_t n_columns = 1;
  const std::int64_t* indptr = nullptr;  // null: exactly one weight per source, in column 0
  const std::int32_t* columns = nullptr;
  const double* values = nullptr;
};

enum class Precision { single_tiles, double_tiles };

// out is n_targets x n_columns, overwritten.
void kernel_product(const KernelSetup& setup, const RowList& targets, const RowList& sources,
                    const SourceWeights& weights, Precision precision, int n_threads, double* out);

// out is n_targets x n_sources, float32 values of K.
void kernel_matrix(const KernelSetup& setup, const RowList& targets, const RowList& sources,
                   int n_threads, float* out);

}  // namespace dcsvm
