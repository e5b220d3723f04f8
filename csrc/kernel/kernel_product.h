// K(targets, sources) W without ever storing K: the first of the project's two verbs.
//
// It is the gradient of a warm start, the check of the optimality conditions over all rows, the
// assignment step of two-step kernel k-means (W = weighted cluster indicators) and every decision
// value. Sums are taken in float64 in the order of the sources, one target's by one thread, so
// the result does not depend on the number of threads.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "kernel/kernel_tile.h"
#include "kernel/stop.h"
#include "rows/reach.h"

namespace dcsvm {

// One row of weights per source, in CSR form: n_columns sums are taken for every target.
struct SourceWeights {
  std::size_t n_columns = 1;
  const std::int64_t* indptr = nullptr;  // null: exactly one weight per source, in column 0
  const std::int32_t* columns = nullptr;
  const double* values = nullptr;
};

enum class Precision { single_tiles, double_tiles };

// Kernel values computed, and those left out because their rows are out of reach.
struct ProductCount {
  std::int64_t evaluated = 0;
  std::int64_t skipped = 0;
  bool complete = true;  // false: it was stopped, and what it gives is of no use

  void add(const ProductCount& other) {
    evaluated += other.evaluated;
    skipped += other.skipped;
    complete = complete && other.complete;
  }
};

// out is n_targets x n_columns, overwritten. What is left out changes no entry by more than
// reach.value times the sum of its column's |weights|. Only the difference form leaves anything
// out; it finds most to leave out where neighbours in both lists are near.
ProductCount kernel_product(const KernelSetup& setup, const RowList& targets,
                            const RowList& sources, const SourceWeights& weights,
                            Precision precision, const Reach& reach, int n_threads, double* out,
                            const Stop* stop = nullptr);

// The same for lanes that are packed already, one weight a source: sums[lane] += the product.
// `boxes` are those of the lanes' blocks, see lane_boxes(); empty where the reach is infinite.
ProductCount add_product(const KernelSetup& setup, const RowPanels& lanes, const Boxes& boxes,
                         const RowList& sources, const double* weights, const Reach& reach,
                         int n_threads, double* sums);

// Boxes of the blocks of lanes that add_product() takes together, of rows of points.
Boxes lane_boxes(const KernelSetup& setup, const Points& points,
                 const std::vector<std::int32_t>& rows, const Reach& reach);

// out is n_targets x n_sources, float32 values of K.
void kernel_matrix(const KernelSetup& setup, const RowList& targets, const RowList& sources,
                   int n_threads, float* out);

}  // namespace dcsvm
