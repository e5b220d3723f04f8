#include "solver/newton_step.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "solver/solve.h"
#include "threads/parallel.h"

namespace dcsvm {

namespace {

// The matrix is copied by several threads from this number of rows.
constexpr std::size_t threads_threshold = 256, copied_rows = 16;
// Relative to the mean diagonal; with more damping the step is hardly a Newton step.
constexpr double max_damping = 1e-1;
// Maximum number of bounds that a step reaches: beyond it, factoring again with more damping is
// cheaper.
constexpr std::size_t max_fixed = 16;

// Fixed cost model in nanoseconds: the factorization and the rest of a step. F is the set of free
// variables.
constexpr double cholesky_cost = 0.0045;  // per |F|^3
constexpr double step_cost = 2.0;         // per |F|^2
// Descent slows down near the optimum, so its estimated progress is divided by this factor. Larger
// values prefer Newton steps sooner.
constexpr double slowing = 5.0;
constexpr double slowest_rate = 1.05;  // minimum assumed reduction of the violation per round

// Relative to the larger of alpha and the step: a step that ends this close to a bound ends at it.
constexpr double resolution = 1e-13;

double factor_cost(std::size_t n_free) {
  const double n = static_cast<double>(n_free);
  return n * n * (cholesky_cost * n + step_cost);
}

}  // namespace

// A step pays under two conditions. Descent at the rate of its last round would reach the tolerance
// later than the factorization ends. The last Newton step lowered the objective by more per cost
// than the last round. Each refusal doubles the estimated efficiency, so that a step is tried
// again.
template <class Real>
bool NewtonStep<Real>::pays(const WorkingSet<Real>& set, const RoundResult& round,
                            double tolerance) {
  collect_free(set);
  if (free_.empty()) return false;
  const double rate = std::log(std::max(round.before / round.after, slowest_rate));
  const double rounds_left = std::log(round.after / tolerance) / rate;
  if (factor_cost(free_.size()) / slowing >= rounds_left * round.cost) return false;
  if (efficiency_ > 0 && efficiency_ * slowing < round.decrease / round.cost) {
    efficiency_ *= 2;
    return false;
  }
  return true;
}

template <class Real>
double NewtonStep<Real>::run(WorkingSet<Real>& set, int n_threads, NewtonCount& count) {
  Timer timer(count.seconds);
  double decrease = 0, cost = 0;
  for (;;) {
    cost += factor_cost(free_.size());
    if (!factor(set, n_threads)) break;
    ++count.steps;
    fixed_.clear();
    fix_equality_constraints(set);
    if (follow(set, &decrease, &cost)) break;
    damping_ *= 10;
  }
  efficiency_ = std::max(decrease / std::max(cost, 1.0), 1e-300);
  count.cost += cost;
  return decrease;
}

template <class Real>
void NewtonStep<Real>::collect_free(const WorkingSet<Real>& set) {
  free_.clear();
  for (std::size_t i = 0; i < set.size; ++i) {
    if (set.side[i] == 0) free_.push_back(i);
  }
}

// Factors K_FF plus damping; returns false if it is not positive definite at max_damping.
template <class Real>
bool NewtonStep<Real>::factor(const WorkingSet<Real>& set, int n_threads) {
  const std::size_t n = free_.size();
  double mean_diagonal = 0;
  for (const std::size_t i : free_) mean_diagonal += set.diagonal[i];
  mean_diagonal /= static_cast<double>(n);
  const int together = n >= threads_threshold ? n_threads : 1;
  for (; damping_ <= max_damping; damping_ *= 10) {
    cholesky_.reset(n);
    parallel_for({together, n, copied_rows}, [&](std::size_t k) {
      const std::size_t a = n - 1 - k;  // long rows first
      const Real* row = set.kernel_row(free_[a]);
      for (std::size_t b = 0; b <= a; ++b) cholesky_.at(a, b) = row[free_[b]];
      cholesky_.at(a, a) += damping_ * mean_diagonal;
    });
    if (cholesky_.factor(n_threads)) return true;
  }
  damping_ = max_damping;
  return false;
}

template <class Real>
void NewtonStep<Real>::fix_equality_constraints(const WorkingSet<Real>& set) {
  for (int constraint = 0; constraint < set.n_constraints; ++constraint) {
    std::vector<double> members(free_.size());
    for (std::size_t a = 0; a < free_.size(); ++a)
      members[a] = set.constraint_of[free_[a]] == constraint ? 1.0 : 0.0;
    if (std::count(members.begin(), members.end(), 1.0) > 0)
      fixed_.add(cholesky_, std::move(members));
  }
}

// Follows the Newton direction from bound to bound. Returns false, without moving, if the direction
// leaves the box at many bounds and more damping is possible.
template <class Real>
bool NewtonStep<Real>::follow(WorkingSet<Real>& set, double* decrease, double* cost) {
  const std::size_t n = free_.size();
  std::vector<double> newton(n);
  for (std::size_t a = 0; a < n; ++a) newton[a] = -set.gradient[free_[a]];
  cholesky_.solve(newton.data());
  for (std::size_t n_fixed = 0; n_fixed <= max_fixed; ++n_fixed) {
    std::vector<double> direction = newton;
    fixed_.project(direction);
    // damping is so small with float64 that rounding errors of one projection would violate the
    // equality constraints
    if (sizeof(Real) == sizeof(double)) fixed_.project(direction);
    const std::size_t n_outside = keep_inside(set, direction);
    if (n_fixed == 0 && n_outside > max_fixed && damping_ < max_damping) return false;
    if (n_fixed == 0 && n_outside <= max_fixed / 4)
      damping_ = std::max(damping_ / 10, min_damping<Real>);
    const Moved moved = step_to_bound(set, direction);
    *decrease += moved.decrease;
    *cost += static_cast<double>(n * (2 * n + set.size)) * update_entry_cost;
    if (moved.blocked.empty() || !(moved.decrease > 0)) break;
    // after a step of length t along d, the Newton direction is newton - t d, except for damping
    for (std::size_t a = 0; a < n; ++a) newton[a] -= moved.length * direction[a];
    for (const std::size_t a : moved.blocked) {
      std::vector<double> unit(n, 0.0);
      unit[a] = 1.0;
      fixed_.add(cholesky_, std::move(unit));
    }
  }
  return true;
}

// Sets the direction to exactly 0 for variables at a bound; returns how many other variables it
// moves outside their bounds.
template <class Real>
std::size_t NewtonStep<Real>::keep_inside(const WorkingSet<Real>& set,
                                          std::vector<double>& direction) const {
  std::size_t n_outside = 0;
  for (std::size_t a = 0; a < free_.size(); ++a) {
    const std::size_t i = free_[a];
    if (set.side[i] != 0) direction[a] = 0.0;
    const double target = set.alpha[i] + direction[a];
    n_outside += (target < set.lower[i]) | (target > set.upper[i]);
  }
  return n_outside;
}

// Moves along a direction to its end or the first bound.
template <class Real>
typename NewtonStep<Real>::Moved NewtonStep<Real>::step_to_bound(
    WorkingSet<Real>& set, const std::vector<double>& direction) const {
  Moved moved;
  double slope = 0.0;
  for (std::size_t a = 0; a < free_.size(); ++a) {
    const std::size_t i = free_[a];
    slope += set.gradient[i] * direction[a];
    const double slack =
        direction[a] > 0 ? set.upper[i] - set.alpha[i] : set.alpha[i] - set.lower[i];
    if (std::fabs(direction[a]) * moved.length > slack)
      moved.length = slack / std::fabs(direction[a]);
  }
  if (!(slope < 0)) return moved;
  std::vector<double> target = targets(set, direction, moved.length);
  for (int constraint = 0; constraint < set.n_constraints; ++constraint)
    keep_sum(set, constraint, target);
  std::vector<double> change(set.size, 0.0);
  for (std::size_t a = 0; a < free_.size(); ++a) change[free_[a]] = target[a] - set.alpha[free_[a]];
  const std::vector<double> kernel_change = set.product(change);
  double first = 0, second = 0;
  for (std::size_t i = 0; i < set.size; ++i) {
    first += set.gradient[i] * change[i];
    second += change[i] * kernel_change[i];
  }
  const double decrease = -(first + 0.5 * second);
  if (!(decrease > 0)) return moved;
  moved.decrease = decrease;
  for (std::size_t i = 0; i < set.size; ++i) set.gradient[i] += kernel_change[i];
  for (std::size_t a = 0; a < free_.size(); ++a) {
    const std::size_t i = free_[a];
    if (change[i] == 0.0) continue;
    set.set_alpha(i, target[a]);
    if (target[a] == set.lower[i] || target[a] == set.upper[i]) moved.blocked.push_back(a);
  }
  return moved;
}

// Returns alpha of the free variables after a step. An alpha next to a bound is set to the bound.
template <class Real>
std::vector<double> NewtonStep<Real>::targets(const WorkingSet<Real>& set,
                                              const std::vector<double>& direction,
                                              double length) const {
  std::vector<double> target(free_.size());
  for (std::size_t a = 0; a < free_.size(); ++a) {
    const std::size_t i = free_[a];
    const double step = length * direction[a];
    const double margin = resolution * std::max(std::fabs(set.alpha[i]), std::fabs(step));
    target[a] = set.alpha[i] + step;
    if (direction[a] > 0 && target[a] >= set.upper[i] - margin) target[a] = set.upper[i];
    if (direction[a] < 0 && target[a] <= set.lower[i] + margin) target[a] = set.lower[i];
  }
  return target;
}

// Takes the change of an equality constraint's sum off the variable that is farthest from its
// bounds. The direction keeps the sum only up to rounding errors, which are large if it is long.
template <class Real>
void NewtonStep<Real>::keep_sum(const WorkingSet<Real>& set, int constraint,
                                std::vector<double>& target) const {
  double change = 0, most = 0;
  std::size_t farthest = 0;
  for (std::size_t a = 0; a < free_.size(); ++a) {
    const std::size_t i = free_[a];
    if (set.constraint_of[i] != constraint) continue;
    change += target[a] - set.alpha[i];
    const double slack = std::min(target[a] - set.lower[i], set.upper[i] - target[a]);
    if (slack > most) {
      most = slack;
      farthest = a;
    }
  }
  if (std::fabs(change) < most) target[farthest] -= change;
}

template class NewtonStep<float>;
template class NewtonStep<double>;

}  // namespace dcsvm
