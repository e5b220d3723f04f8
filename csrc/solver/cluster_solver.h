// The clusters of one level: one independent box QP each (Algorithm 1 of Hsieh, Si and Dhillon,
// 2014), shared among threads and within one memory budget.
//
// Which clusters there are and in what order levels follow is decided by the caller.
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
  // variables of cluster c: members[start[c]] to before members[start[c + 1]]
  const std::int32_t* members = nullptr;
};

// Where the solve of a cluster is. It goes on from the cluster's part of the iterate, and from the
// snapshot, if there is one.
struct ClusterState {
  bool is_done = false;
  SolveReport report;  // of what is done
  Snapshot snapshot;

  template <class Archive>
  void archive(Archive& archive) {
    archive(is_done);
    archive(report);
    archive(snapshot);
  }
};

// The states of all clusters as bytes, and back: throws for what is none.
Snapshot bytes_of(std::vector<ClusterState>& states);
std::vector<ClusterState> states_of(const std::uint8_t* bytes, std::size_t size);

struct ClusterProgress {
  std::size_t clusters_done = 0;
  std::size_t variables_done = 0;
  SolveProgress current;
};

struct ClusterOptions {
  SolveOptions solve;  // n_threads are those of all clusters together, memory is shared out
  // For caches, matrices and copies of all clusters at work together. What a cluster needs at least
  // (matrix_bytes(), array_bytes()) it takes anyway.
  std::size_t memory_bytes = 0;
  // Called by one thread at a time, while no thread writes to the iterate or the states. Where it
  // returns true, every cluster brings its part of them up to date at its next outer step.
  std::function<bool(const ClusterProgress&)> progress;
};

// Solves every cluster from its part of the iterate, whose gradients are those inside the clusters,
// and from its state. Clusters not begun when it is stopped are left as they were. As many as there
// is memory for are solved side by side, the largest first; threads without a cluster help in the
// others. No bit of the result depends on that.
void solve_clusters(const KernelSetup& setup, const Points& points, const BoxQP& qp,
                    const Clusters& clusters, const Iterate& iterate, const ClusterOptions& options,
                    std::vector<ClusterState>& states);

// span[i] = S_i^2 (span.cc) for those support vectors among the members of the clusters that are
// wanted; other entries are not written. In a cluster with more than n_exact free ones the span is
// that of some of them, which can only make S_i larger. A thread needs about 12 n_exact^2 bytes.
void squared_spans(const KernelSetup& setup, const Points& points, const BoxQP& qp,
                   const Clusters& clusters, const double* alpha, const std::uint8_t* is_target,
                   std::size_t n_exact, int n_threads, double* span);

}  // namespace dcsvm
