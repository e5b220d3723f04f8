// Solver of one working set with its kernel matrix in memory: rounds of descent (over pairs if
// there are equality constraints), and Newton steps on the free variables when they are cheaper.
// Far from the tolerance, members that stay at a bound are shrunk and the others get a compact
// kernel matrix.
//
// Steps that do not lower the objective are rejected. Counts and fixed costs decide how work is
// divided; clocks never do.
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
  double cost = 0;        // nanoseconds by the fixed cost model, including Newton steps
  bool is_stuck = false;  // rounding undid the steps of the last rounds
};

template <class Real>
class WorkingSetSolver {
 public:
  // Solves to `tolerance`, or until max_updates updates are used up.
  WorkingSetReport solve(WorkingSet<Real>& set, double tolerance, std::int64_t max_updates,
                         int n_threads);

  // State kept from one set to the next.
  template <class Archive>
  void archive(Archive& archive) {
    newton_.archive(archive);
  }

 private:
  double solve_rounds(WorkingSet<Real>& set, double tolerance, std::int64_t max_updates,
                      int n_threads, WorkingSetReport& report, bool is_shrunk);
  bool select_moving(const WorkingSet<Real>& set, double largest, double tolerance);

  NewtonStep<Real> newton_;
  std::vector<std::size_t> moving_;
  double most_cost_ = 0;  // of the solve, in nanoseconds
};

}  // namespace dcsvm
