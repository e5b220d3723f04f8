// K(targets, sources) W without storing K: the first of the core's two operations.
//
// It is the gradient of a warm start, the check of the optimality conditions over all rows, the
// assignment step of two-step kernel k-means (W = weighted cluster indicators) and every decision
// value. Sums are taken in float64 in the order of the sources, each by one thread, so the result
// does not depend on the number of threads.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "kernel/kernel_setup.h"
#include "kernel/row_panels.h"
#include "rows/cutoff.h"
#include "rows/points.h"
#include "simd/isa.h"
#include "threads/parallel.h"

namespace dcsvm {

enum class Precision { single_tiles, double_tiles };

// Kernel evaluations, and pairs skipped because they are beyond the cutoff.
struct ProductCount {
  std::int64_t evaluated = 0;
  std::int64_t skipped = 0;
  bool complete = true;  // false: stopped, the output is invalid

  void add(const ProductCount& other) {
    evaluated += other.evaluated;
    skipped += other.skipped;
    complete = complete && other.complete;
  }
};

// Computes the product and overwrites `out`, n_targets x n_columns. Only the difference form skips
// pairs beyond the cutoff. The truncation error of an entry is at most cutoff.value times the sum
// of its column's |weights|. Skipping is effective if consecutive rows are near each other.
ProductCount kernel_product(const KernelSetup& setup, const RowList& targets,
                            const RowList& sources, const SourceWeights& weights,
                            Precision precision, const Cutoff& cutoff, int n_threads, double* out,
                            const Stop* stop = nullptr);

// Adds the product of targets that are packed already, with one weight per source:
// sums[lane] += the product. After a stop the sums are invalid. `boxes` are the lane_boxes() of the
// same rows and cutoff. One thread carries out the task first.
ProductCount add_product(const KernelSetup& setup, const RowPanels& lanes,
                         const BoundingBoxes& boxes, const RowList& sources, const double* weights,
                         Precision precision, const Cutoff& cutoff, int n_threads, double* sums,
                         const Stop* stop = nullptr, const Task& task = {});

// Adds the same to a few lanes only, ascending, with the same bits: sums[k] += the product of the
// lane places[k].
void add_product_at(const KernelSetup& setup, const RowList& lanes,
                    const std::vector<std::int32_t>& places, const BoundingBoxes& boxes,
                    const RowList& sources, const double* weights, Precision precision,
                    const Cutoff& cutoff, int n_threads, double* sums);

// Returns boxes around the blocks of lanes of add_product(); empty if no pair can be skipped.
BoundingBoxes lane_boxes(const KernelSetup& setup, const Points& points,
                         const std::vector<std::int32_t>& rows, const Cutoff& cutoff);

// Adds the weights in column c of the sources from `begin` to before `end` to sums[c], to correct
// for kernel values stored less 1.
void add_weights(const SourceWeights& weights, std::size_t begin, std::size_t end, double* sums);

// Cluster c has the targets target_start[c] to before target_start[c + 1] and the sources
// source_begin[c] to before source_end[c]: positions in their lists.
struct ClusterRanges {
  const std::int64_t* target_start;
  const std::int64_t* source_begin;
  const std::int64_t* source_end;
  std::size_t n_clusters;
};

// Computes kernel_product() for every cluster; out is n_targets x n_columns, overwritten. Threads
// share the clusters, and the targets of large clusters. Both lists have an index.
ProductCount cluster_product(const KernelSetup& setup, const RowList& targets,
                             const RowList& sources, const SourceWeights& weights,
                             const ClusterRanges& ranges, Precision precision, const Cutoff& cutoff,
                             int n_threads, double* out, const Stop* stop = nullptr);

}  // namespace dcsvm
