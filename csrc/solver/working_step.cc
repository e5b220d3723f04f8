#include "solver/working_step.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "solver/active_set.h"
#include "solver/snapshot.h"
#include "solver/solve.h"

namespace dcsvm {

namespace {

// The size of the working set is reconsidered every `steps_compared` steps. It changes if inner
// work costs more than `imbalance` times the outer work, or the reverse.
constexpr int steps_compared = 8;
constexpr double imbalance = 2.0;
constexpr double selection_cost = 10.0;  // nanoseconds per active variable, fixed

// Relative tolerances. A working set is solved to `inner_reduction` of its own violation, but not
// below `inner_share` of the tolerance: an exact solution is wasted while other variables move. A
// set that is the whole problem is solved to `complete_share`, so that the recomputed violation
// meets the tolerance.
constexpr double inner_reduction = 0.1;
constexpr double inner_share = 0.3;
constexpr double complete_share = 0.9;
// For a whole problem whose tolerance depends on its margin, which is unknown before the solve. The
// margin is evaluated again after this reduction of the violation.
constexpr double first_reduction = 0.01;
// Limits of updates per member, for a part of the problem and for the whole problem.
constexpr std::int64_t member_updates = 20, complete_member_updates = 1000;

}  // namespace

template <class Real>
WorkingChange WorkingStep<Real>::run(ActiveSet& active, ActiveKernel& kernel, double tolerance) {
  const std::vector<std::int32_t> previous = members_;
  {
    Timer timer(report_.seconds_selection);
    choose(active, kernel, tolerance);
  }
  fill_kernel(active, kernel, previous);
  WorkingChange change = solve(active, tolerance);
  ++report_.outer_steps;
  const double rows = static_cast<double>(change.positions.size());
  outer_cost_ += static_cast<double>(active.size()) * (rows * kernel.row_cost() + selection_cost);
  balance();
  return change;
}

template <class Real>
void WorkingStep<Real>::choose(const ActiveSet& active, ActiveKernel& kernel, double tolerance) {
  if (active.size() <= complete_set) {
    members_.resize(active.size());
    std::iota(members_.begin(), members_.end(), 0);
    return;
  }
  if (report_.outer_steps % 2 == 0 && is_distance(setup_.kernel.argument)) {
    select_neighbourhood(active, kernel.kernel_values(most_violating(active)),
                         inner_share * tolerance, target_size_, members_);
  } else {
    select_working_set(active, target_size_, members_);
  }
}

template <class Real>
void WorkingStep<Real>::fill_kernel(const ActiveSet& active, ActiveKernel& kernel,
                                    const std::vector<std::int32_t>& previous) {
  Timer timer(report_.seconds_tiles);
  Members members;
  members.lanes = members_;
  std::vector<std::int32_t> from(members_.size(), -1);
  std::size_t k = 0;
  kernel.compute_absent(members_);
  for (std::size_t w = 0; w < members_.size(); ++w) {
    const std::int32_t variable = active.index[static_cast<std::size_t>(members_[w])];
    members.rows.push_back(
        static_cast<std::int32_t>(qp_.row_of(static_cast<std::size_t>(variable))));
    members.cached.push_back(kernel.cached(members_[w]));
    while (k < previous.size() && previous[k] < members_[w]) ++k;
    if (k < previous.size() && previous[k] == members_[w]) from[w] = static_cast<std::int32_t>(k);
  }
  report_.kernel_evaluations +=
      working_kernel_.fill(setup_, points_, members, from, options_.n_threads);
}

// Each consecutive step without a change divides the tolerance by ten.
template <class Real>
double WorkingStep<Real>::inner_tolerance(const ActiveSet& active, double tolerance) const {
  if (members_.size() == active.size()) {
    const double target = complete_share * tolerance;
    const double first = first_reduction * active.largest_violation;
    return qp_.divides_by_margin ? std::max(target, first) : target;
  }
  double largest = 0;
  for (const std::int32_t p : members_)
    largest = std::max(largest, active.violation[static_cast<std::size_t>(p)]);
  return std::max(inner_reduction * largest, inner_share * tolerance) * std::pow(0.1, stalls_);
}

template <class Real>
WorkingChange WorkingStep<Real>::solve(ActiveSet& active, double tolerance) {
  const bool is_complete = members_.size() == active.size();
  const std::int64_t budget = (is_complete ? complete_member_updates : member_updates) *
                              static_cast<std::int64_t>(members_.size());
  WorkingSet<Real> set(active, members_, working_kernel_, qp_.n_constraints);
  WorkingSetReport inner;
  {
    Timer timer(report_.seconds_inner);
    inner = solver_.solve(set, inner_tolerance(active, tolerance),
                          std::min(options_.limits.iterations - report_.iterations, budget),
                          options_.n_threads);
  }
  report_.iterations += std::max<std::int64_t>(inner.updates, 1);
  report_.newton_steps += inner.newton.steps;
  report_.seconds_newton += inner.newton.seconds;
  inner_cost_ += inner.cost;
  WorkingChange change;
  change.is_complete = is_complete;
  for (std::size_t w = 0; w < members_.size(); ++w) {
    const auto p = static_cast<std::size_t>(members_[w]);
    if (set.alpha[w] == active.alpha[p]) continue;
    change.positions.push_back(members_[w]);
    change.after.push_back(set.alpha[w]);
  }
  if (inner.is_stuck && is_complete) {
    stalls_ = max_stalls;  // another step would do the same
  } else {
    stalls_ = inner.is_stuck || change.positions.empty() ? stalls_ + 1 : 0;
  }
  if (is_complete) {
    std::copy_n(set.alpha.begin(), members_.size(), active.alpha.begin());
    std::copy_n(set.gradient.begin(), members_.size(), active.gradient.begin());
  }
  return change;
}

// Adapts the size of the set: larger sets make more progress per outer step, at a higher cost per
// update.
template <class Real>
void WorkingStep<Real>::balance() {
  if (++steps_counted_ < steps_compared) return;
  if (outer_cost_ > imbalance * inner_cost_) {
    target_size_ = std::min(2 * target_size_, max_working_set);
  } else if (inner_cost_ > imbalance * outer_cost_) {
    target_size_ = std::max(target_size_ / 2, min_working_set);
  }
  steps_counted_ = 0;
  inner_cost_ = outer_cost_ = 0;
}

// Remaining members keep their kernel values.
template <class Real>
void WorkingStep<Real>::compact(const std::vector<std::int32_t>& position) {
  std::vector<std::int32_t> carried, from;
  for (std::size_t w = 0; w < members_.size(); ++w) {
    const std::int32_t now = position[static_cast<std::size_t>(members_[w])];
    if (now < 0) continue;
    carried.push_back(now);
    from.push_back(static_cast<std::int32_t>(w));
  }
  members_ = carried;
  working_kernel_.keep(from);
}

template <class Real>
void WorkingStep<Real>::restore(const ActiveSet& active) {
  check_snapshot(are_positions(members_, active.size()) && members_.size() <= complete_set &&
                 target_size_ >= min_working_set && target_size_ <= max_working_set);
  Members members{{}, members_, std::vector<const float*>(members_.size(), nullptr)};
  for (const std::int32_t p : members_) {
    const auto variable = static_cast<std::size_t>(active.index[static_cast<std::size_t>(p)]);
    members.rows.push_back(static_cast<std::int32_t>(qp_.row_of(variable)));
  }
  const std::vector<std::int32_t> from(members_.size(), -1);
  working_kernel_.fill(setup_, points_, members, from, options_.n_threads);
}

template class WorkingStep<float>;
template class WorkingStep<double>;

}  // namespace dcsvm
