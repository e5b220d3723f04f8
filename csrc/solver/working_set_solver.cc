#include "solver/working_set_solver.h"

#include <algorithm>

#include "solver/descent.h"

namespace dcsvm {

namespace {

// Far from the tolerance members are left out that are at a bound and point out of the box by more
// than this many times the largest violation, where at most this part is left of at least so many.
constexpr double far_off = 10;  // times the tolerance
constexpr double quiet_margin = 0.5;
constexpr double shrunk_share = 0.75;
constexpr std::size_t fewest_shrunk = 128;

}  // namespace

template <class Real>
WorkingSetReport WorkingSetSolver<Real>::solve(WorkingSet<Real>& set, double tolerance,
                                               std::int64_t max_updates, int n_threads) {
  WorkingSetReport report;
  solve_rounds(set, tolerance, max_updates, n_threads, report, false);
  report.newton = newton_.take_count();
  report.cost += report.newton.cost;
  return report;
}

template <class Real>
void WorkingSetSolver<Real>::solve_rounds(WorkingSet<Real>& set, double tolerance,
                                          std::int64_t max_updates, int n_threads,
                                          WorkingSetReport& report, bool is_shrunk) {
  const auto size = static_cast<std::int64_t>(set.size);
  double before = set.violation();
  bool is_newton = false;  // the last round took a Newton step
  while (before > tolerance && report.updates < max_updates) {
    // every variable may move once or twice in a round, fewer between Newton steps; then the
    // methods are compared
    const bool is_far = before > far_off * tolerance;
    const std::int64_t most = (is_newton && is_far ? size / 2 : 2 * size) + 16;
    const std::int64_t budget = std::min(most, max_updates - report.updates);
    const DescentRound round = set.has_sums() ? descend_pairs(set, tolerance, budget)
                                              : descend_coordinates(set, tolerance, budget);
    report.updates += round.updates;
    report.cost += static_cast<double>(round.updates * size) * update_entry_cost;
    bool moved = round.updates > 0;
    is_newton = false;
    double after = set.violation();
    if (after > tolerance) {
      const double cost = static_cast<double>(budget * size) * update_entry_cost;
      if (newton_.pays(set, {before, after, round.decrease, cost}, tolerance)) {
        is_newton = newton_.take(set, n_threads) > 0;
        moved = is_newton || moved;
        after = set.violation();
      }
    }
    if (!moved) break;  // what is left is below the resolution of alpha
    if (after > tolerance && !is_shrunk && shrinks(set, after, tolerance)) {
      std::vector<Real> values;
      WorkingSet<Real> part = set.part(moving_, values);
      solve_rounds(part, tolerance, max_updates, n_threads, report, true);
      set.take(part, moving_);
      after = set.violation();
    }
    before = after;
  }
}

// Chooses the members that may still move; whether few enough are left.
template <class Real>
bool WorkingSetSolver<Real>::shrinks(const WorkingSet<Real>& set, double largest,
                                     double tolerance) {
  if (set.size < fewest_shrunk || largest < far_off * tolerance) return false;
  moving_.clear();
  const Violation now = set.measure();
  for (std::size_t i = 0; i < set.size; ++i) {
    const double g = now.reduced(set.gradient[i], set.has_sums() ? set.sum_of[i] : -1);
    const bool is_quiet = set.side[i] != 0 && !(set.side[i] * g <= quiet_margin * largest);
    if (!is_quiet) moving_.push_back(i);
  }
  return static_cast<double>(moving_.size()) <= shrunk_share * static_cast<double>(set.size);
}

template class WorkingSetSolver<float>;
template class WorkingSetSolver<double>;

}  // namespace dcsvm
