// Products of targets with the sources of one cluster each: the decision values of an early model.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernel/kernel_product.h"
#include "kernel/kernel_setup.h"
#include "rows/points.h"

namespace dcsvm {

// The targets from target_start[c] to before target_start[c + 1], in the order of their list, meet
// the sources from source_begin[c] to before source_end[c].
struct ClusterRanges {
  const std::int64_t* target_start;
  const std::int64_t* source_begin;
  const std::int64_t* source_end;
  std::size_t n_clusters;
};

// As kernel_product() for every cluster; out is n_targets x n_columns, overwritten. Threads share
// the clusters, and parts of large ones. Both lists have an index.
void cluster_product(const KernelSetup& setup, const RowList& targets, const RowList& sources,
                     const SourceWeights& weights, const ClusterRanges& ranges, Precision precision,
                     int n_threads, double* out);

}  // namespace dcsvm
