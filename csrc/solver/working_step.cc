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
void WorkingStep<Real>::select(const ActiveSet& active, ActiveKernel& kernel, double tolerance) {
  const std::vector<std::int32_t> previous = members_;
  {
    Timer timer(report_.seconds_selection);
    choose(active, kernel, tolerance);
  }
  fill_kernel(active, kernel, previous);
  set_.emplace(active, members_, working_kernel_, qp_.n_constraints);
  is_complete_ = members_.size() == active.size();
  tolerance_ = tolerance;
  largest_violation_ = active.largest_violation;
  const auto n_active = static_cast<double>(active.size());
  entry_cost_ = n_active * kernel.row_cost();
  outer_cost_ += n_active * selection_cost;
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
double WorkingStep<Real>::inner_tolerance() const {
  if (is_complete_) {
    const double target = complete_share * tolerance_;
    const double first = first_reduction * largest_violation_;
    return qp_.divides_by_margin ? std::max(target, first) : target;
  }
  return std::max(inner_reduction * set_->violation(), inner_share * tolerance_) *
         std::pow(0.1, stalls_);
}

template <class Real>
WorkingChange WorkingStep<Real>::solve() {
  const std::int64_t budget = (is_complete_ ? complete_member_updates : member_updates) *
                              static_cast<std::int64_t>(members_.size());
  const std::vector<double> before = set_->alpha;
  WorkingSetReport inner;
  {
    Timer timer(report_.seconds_inner);
    inner = solver_.solve(*set_, inner_tolerance(),
                          std::min(options_.limits.iterations - report_.iterations, budget),
                          options_.n_threads);
  }
  ++report_.outer_steps;
  report_.iterations += std::max<std::int64_t>(inner.updates, 1);
  report_.newton_steps += inner.newton.steps;
  report_.seconds_newton += inner.newton.seconds;
  inner_cost_ += inner.cost;
  std::size_t n_changed = 0;
  for (std::size_t w = 0; w < members_.size(); ++w) n_changed += set_->alpha[w] != before[w];
  outer_cost_ += static_cast<double>(n_changed) * entry_cost_;
  if (inner.is_stuck && is_complete_) {
    stalls_ = max_stalls;  // another step would do the same
  } else {
    stalls_ = inner.is_stuck || n_changed == 0 ? stalls_ + 1 : 0;
  }
  balance();
  WorkingChange change{members_, std::move(set_->alpha), std::move(set_->gradient)};
  change.alpha.resize(members_.size());
  change.gradient.resize(members_.size());
  set_.reset();
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
