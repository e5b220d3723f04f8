// Stored kernel matrices, for working sets and other small blocks only.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernel/kernel_setup.h"
#include "rows/points.h"
#include "simd/isa.h"

namespace dcsvm {

// Computes K(targets, sources); out is n_targets x n_sources, row-major, float32.
void kernel_matrix(const KernelSetup& setup, const RowList& targets, const RowList& sources,
                   int n_threads, float* out);

// Computes the entries of K(rows, rows) that involve the first n_new rows: each value once, in
// float32 or float64, stored symmetrically. The value of rows i and j is stored in out[places[i] *
// stride + places[j]].
template <class Real>
void symmetric_matrix(const KernelSetup& setup, const RowList& rows, std::size_t n_new,
                      const std::int32_t* places, int n_threads, Real* out, std::size_t stride);

// Computes all of K(rows, rows), row-major.
void symmetric_matrix(const KernelSetup& setup, const RowList& rows, int n_threads, float* out);

// Sums entries of a stored float64 matrix by sparse weights: out[k] is the inner product of the
// matrix's row rows[k] and the weights' row groups[k]. Both have n_columns columns. Terms are
// added in the order of the weights.
void sparse_sums(const double* matrix, const SourceWeights& weights, const std::int32_t* rows,
                 const std::int32_t* groups, std::size_t n_sums, int n_threads, double* out);

}  // namespace dcsvm
