// Solver of the clusters of a level: one independent box QP each (Algorithm 1 of Hsieh, Si and
// Dhillon, 2014), with shared threads and one memory budget.
//
// The caller chooses the clusters and the order of levels.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

#include "solver/solve.h"

namespace dcsvm {

struct Clusters {
  std::size_t n_clusters = 0;
  const std::int64_t* start = nullptr;  // n_clusters + 1
  // variables of cluster c: members[start[c]:start[c + 1]]
  const std::int32_t* members = nullptr;
};

// State of the solve of a cluster. It resumes from the cluster's part of the iterate and the
// snapshot.
struct ClusterState {
  bool is_done = false;
  SolveReport report;  // of the work so far
  Snapshot snapshot;

  template <class Archive>
  void archive(Archive& archive) {
    archive(is_done);
    archive(report);
    archive(snapshot);
  }
};

// Serialize the states of all clusters; states_of() throws std::invalid_argument for damaged bytes.
Snapshot bytes_of(std::vector<ClusterState>& states);
std::vector<ClusterState> states_of(const std::uint8_t* bytes, std::size_t size);

struct ClusterProgress {
  std::size_t clusters_done = 0;
  std::size_t variables_done = 0;
  SolveProgress current;
};

struct ClusterOptions {
  SolveOptions solve;  // n_threads is the total of all clusters; memory is divided among them
  // Budget for caches, matrices and copies of all clusters in progress. It is exceeded if a single
  // cluster needs more (matrix_bytes(), array_bytes()).
  std::size_t memory_bytes = 0;
  // Called by one thread at a time, while no thread writes to the iterate or the states. If it
  // returns true, every cluster updates its part of both at its next outer step.
  std::function<bool(const ClusterProgress&)> progress;
};

// Solves every cluster from its state and its part of the iterate, whose gradients are restricted
// to the cluster. Clusters not started before a stop are unchanged. Clusters run concurrently
// within the memory budget, largest first, and idle threads help inside them. Results do not depend
// on the schedule.
void solve_clusters(const KernelSetup& setup, const Points& points, const BoxQP& qp,
                    const Clusters& clusters, const Iterate& iterate, const ClusterOptions& options,
                    std::vector<ClusterState>& states);

// Computes span[i] = S_i^2 (span.cc) for support vectors of the clusters with is_target[i]; other
// entries are not written. In a cluster with more than n_exact free support vectors, the span is
// that of a subset, which can only make S_i larger. Memory per thread: about 12 n_exact^2 bytes.
void squared_spans(const KernelSetup& setup, const Points& points, const BoxQP& qp,
                   const Clusters& clusters, const double* alpha, const std::uint8_t* is_target,
                   std::size_t n_exact, int n_threads, double* span);

}  // namespace dcsvm
