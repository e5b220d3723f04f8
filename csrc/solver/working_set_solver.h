// Solves one working set, whose kernel matrix is in memory: rounds of descent (in pairs where
// variables have sums), and Newton steps on the free variables where those are cheaper.
//
// Steps are taken only where they lower the objective. How much work goes where is decided from
// counts and fixed costs, never from clocks.
#pragma once

#include <cstdint>

#include "solver/newton_step.h"
#include "solver/working_set.h"

namespace dcsvm {

struct WorkingSetReport {
  std::int64_t updates = 0;  // by descent
  NewtonCount newton;
  double cost = 0;  // nanoseconds by the fixed model, Newton included
};

class WorkingSetSolver {
 public:
  // Solves to `tolerance` or until max_updates updates are spent.
  WorkingSetReport solve(WorkingSet& set, double tolerance, std::int64_t max_updates,
                         int n_threads);

 private:
  NewtonStep newton_;
};

}  // namespace dcsvm
