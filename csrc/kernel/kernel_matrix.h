// K(targets, sources) written out: for working sets and other small blocks only.
#pragma once

#include "kernel/kernel_setup.h"
#include "rows/points.h"

namespace dcsvm {

// out is n_targets x n_sources, row-major, float32.
void kernel_matrix(const KernelSetup& setup, const RowList& targets, const RowList& sources,
                   int n_threads, float* out);

}  // namespace dcsvm
