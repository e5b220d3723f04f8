// Solves one working set, whose kernel matrix is in memory: rounds of descent (in pairs where
// variables have sums), and Newton steps on the free variables where those are cheaper. Far from
// the tolerance only the members that still move are worked on, with a kernel matrix of their own.
//
// Steps are taken only where they lower the objective. How much work goes where is decided from
// counts and fixed costs, never from clocks.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "solver/newton_step.h"
#include "solver/working_set.h"

namespace dcsvm {

struct WorkingSetReport {
  std::int64_t updates = 0;  // by descent
  NewtonCount newton;
  double cost = 0;  // nanoseconds by the fixed model, Newton included
};

template <class Real>
class WorkingSetSolver {
 public:
  // Solves to `tolerance` or until max_updates updates are spent.
  WorkingSetReport solve(WorkingSet<Real>& set, double tolerance, std::int64_t max_updates,
                         int n_threads);

  // What it keeps from one set to the next.
  template <class Archive>
  void archive(Archive& archive) {
    newton_.archive(archive);
  }

 private:
  void solve_rounds(WorkingSet<Real>& set, double tolerance, std::int64_t max_updates,
                    int n_threads, WorkingSetReport& report, bool is_shrunk);
  bool select_moving(const WorkingSet<Real>& set, double largest, double tolerance);

  NewtonStep<Real> newton_;
  std::vector<std::size_t> moving_;
};

}  // namespace dcsvm
