// Cross-validated decision values for many settings of a grid at once: solves every fold of every
// cluster for one kernel and ascending C.
//
// Kernel values of a cluster are computed once for all folds and all C. Each solution is a warm
// start for the next C. If no variable of a solution is at its bound, it is also the solution for
// every larger C.
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
  // variables of column j (a binary problem) of cluster c: part c * n_columns + j
  Clusters parts;
  // training weight of each row in each fold, n_folds x n_samples: multiplies the bounds of the
  // problem; 0 if the fold holds the row out
  const double* train_weight = nullptr;
  // held-out rows of fold k in cluster c: from start[c * n_folds + k]
  const std::int64_t* start = nullptr;  // n_clusters * n_folds + 1
  const std::int32_t* rows = nullptr;
};

struct HeldOutOptions {
  std::vector<double> scales;  // factors of the bounds: C, ascending
  bool is_classification = true;
  // whether a cluster with one class or no support vectors predicts its majority class; otherwise a
  // single class gives no decision value
  bool decides = true;
  double tolerance = 1e-3;
  std::size_t memory_bytes = 0;  // for kernel matrices of all threads; 0: none
  int n_threads = 1;
  const Stop* stop = nullptr;
};

struct HeldOutReport {
  std::int64_t missed = 0;      // solutions that did not converge
  std::int64_t support = 0;     // support vectors of all solutions
  std::int64_t iterations = 0;  // updates of one or two variables
};

// Computes values[s * n * n_columns + e * n_columns + j], n = start[last]: the decision value of
// entry e of `rows` in column j for scale s; NaN if the fold of the cluster has no training rows
// for the column. Returns one report per scale, or an empty vector if stopped.
std::vector<HeldOutReport> held_out_values(const KernelSetup& setup, const Points& points,
                                           const BoxQP& qp, const HeldOutJob& job,
                                           const HeldOutOptions& options, double* values);

}  // namespace dcsvm
