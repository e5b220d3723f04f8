// Stored kernel matrices, for working sets and other small blocks only.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernel/kernel_setup.h"
#include "rows/points.h"

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

}  // namespace dcsvm
