// Products of few sources with many targets: of small models, and of the means of a fork's parts.
//
// kernel_product() packs the targets, which takes longer than their kernel values where these are
// few. Here the sources are packed, and the targets are the queries. K(x, z) is the same bits as
// K(z, x) and sums are taken in the same order, so the results are the same bits.
#pragma once

#include "kernel/kernel_product.h"

namespace dcsvm {

// Whether this takes less than packing the targets. For dense rows, with codes or without.
bool are_few_sources(const KernelSetup& setup, const RowList& sources, const SourceWeights& weights,
                     const Reach& reach);

ProductCount few_sources_product(const KernelSetup& setup, const RowList& targets,
                                 const RowList& sources, const SourceWeights& weights,
                                 int n_threads, double* out, const Stop* stop);

}  // namespace dcsvm
