#include "solver/working_set_solver.h"

#include <algorithm>

#include "solver/coordinate_descent.h"
#include "solver/pair_descent.h"

namespace dcsvm {

WorkingSetReport WorkingSetSolver::solve(WorkingSet& set, double tolerance,
                                         std::int64_t max_updates, int n_threads) {
  WorkingSetReport report;
  const auto size = static_cast<std::int64_t>(set.size);
  double before = set.violation();
  while (before > tolerance && report.updates < max_updates) {
    // every variable may move once or twice in a round; then the methods are compared
    const std::int64_t budget = std::min(2 * size + 16, max_updates - report.updates);
    const DescentRound round = set.has_sums() ? descend_pairs(set, tolerance, budget)
                                              : descend_coordinates(set, tolerance, budget);
    report.updates += round.updates;
    bool moved = round.updates > 0;
    double after = set.violation();
    if (after > tolerance) {
      const double cost = static_cast<double>(budget * size) * update_entry_cost;
      if (newton_.pays(set, {before, after, round.decrease, cost}, tolerance)) {
        moved = newton_.take(set, n_threads) > 0 || moved;
        after = set.violation();
      }
    }
    if (!moved) break;  // what is left is below the resolution of alpha
    before = after;
  }
  report.newton = newton_.take_count();
  report.cost = report.newton.cost + static_cast<double>(report.updates * size) * update_entry_cost;
  return report;
}

}  // namespace dcsvm
