// Decision values of rows by solutions that have not seen them, for many settings of a grid at
// once: every fold of every cluster is solved for one kernel and ascending C.
//
// Kernel values of a cluster are computed once for all folds and all C, and stay in the caches. A
// solution begins from that of the C before, and is not sought again where none of its variables
// was at its bound: it is then the solution for every larger C.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "kernel/kernel_setup.h"
#include "solver/box_qp.h"
#include "solver/cluster_solver.h"

namespace dcsvm {

struct HeldOutJob {
  std::size_t n_clusters = 0, n_columns = 0, n_folds = 0;
  // variables of column j of cluster c: part c * n_columns + j; a column is a pair of classes
  Clusters parts;
  // the weight of each row in what a fold learns from, n_folds x n_samples: as many times the
  // bounds of the problem as a row counts; 0 where the fold holds it out
  const double* train_weight = nullptr;
  // rows of cluster c that fold k holds out: from start[c * n_folds + k]
  const std::int64_t* start = nullptr;  // n_clusters * n_folds + 1
  const std::int32_t* rows = nullptr;
};

struct HeldOutOptions {
  std::vector<double> scales;  // of the bounds: C, ascending
  bool is_classification = true;
  // a cluster without support vectors, or with one class only, decides for what most of its rows
  // are; otherwise one class is nothing to learn from
  bool decides = true;
  double tolerance = 1e-3;
  std::size_t memory_bytes = 0;  // for kernel values of all threads; 0: none
  int n_threads = 1;
  const Stop* stop = nullptr;
};

struct HeldOutReport {
  std::int64_t missed = 0;      // solutions that did not converge
  std::int64_t support = 0;     // support vectors of all solutions
  std::int64_t iterations = 0;  // coordinate updates
};

// values[s * n * n_columns + e * n_columns + j], n = start[last], is the value of entry e, of
// rows, in column j for scale s. It is nan where a fold of a cluster has nothing to learn the
// column from. Returns a report for each scale, or none where it was stopped.
std::vector<HeldOutReport> held_out_values(const KernelSetup& setup, const Points& points,
                                           const BoxQP& qp, const HeldOutJob& job,
                                           const HeldOutOptions& options, double* values);

}  // namespace dcsvm
