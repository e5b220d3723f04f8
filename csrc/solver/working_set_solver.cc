#include "solver/working_set_solver.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include "simd/isa.h"
#include "solver/working_set.h"

namespace dcsvm {

namespace {

// Descent on a working set, two variables at a time.
//
// Without equality constraints the first variable has the largest violation relative to its
// curvature; the second lowers the objective most together with the first. Both move to the minimum
// within their bounds (Steinwart, Hush and Scovel, "Training SVMs without offset", JMLR 12, 2011).
//
// With equality constraints it is SMO: one variable of a constraint increases and another
// decreases. The first is the most violating variable that can increase. The second lowers the
// objective most together with the first (second-order selection: Fan, Chen and Lin, JMLR 6, 2005).
struct DescentRound {
  double decrease = 0;  // of the objective
  std::int64_t updates = 0;
};

constexpr double min_curvature = 1e-12;  // with less curvature a variable moves to its bound
constexpr double min_diagonal = 1e-6;    // lower limit in the scaling of violations

// A quadratic in two bounded steps s and t.
struct TwoVariables {
  double slope_s, slope_t;              // gradients
  double curve_s, curve_t, curve_st;    // kernel values
  double low_s, high_s, low_t, high_t;  // bounds of the steps

  double value(double s, double t) const {
    return s * (slope_s + 0.5 * curve_s * s) + t * (slope_t + 0.5 * curve_t * t) + curve_st * s * t;
  }
};

struct Steps {
  double s = 0, t = 0, value = 0;
};

double best_step(double slope, double curvature, double low, double high) {
  if (curvature > min_curvature) return std::clamp(-slope / curvature, low, high);
  return slope > 0 ? low : high;
}

// Returns the minimizer within the bounds: of the first variable alone, or of both if that is
// lower.
Steps minimise(const TwoVariables& q, bool both) {
  Steps best;
  best.s = best_step(q.slope_s, q.curve_s, q.low_s, q.high_s);
  best.value = q.value(best.s, 0);
  if (!both) return best;
  const auto consider = [&](double s, double t) {
    const double value = q.value(s, t);
    if (value < best.value) best = {s, t, value};
  };
  const double determinant = q.curve_s * q.curve_t - q.curve_st * q.curve_st;
  const double s = (q.curve_st * q.slope_t - q.curve_t * q.slope_s) / determinant;
  const double t = (q.curve_st * q.slope_s - q.curve_s * q.slope_t) / determinant;
  if (determinant > min_share * q.curve_s * q.curve_t && s >= q.low_s && s <= q.high_s &&
      t >= q.low_t && t <= q.high_t) {
    consider(s, t);
    return best;
  }
  for (const double end : {q.low_s, q.high_s})
    consider(end, best_step(q.slope_t + q.curve_st * end, q.curve_t, q.low_t, q.high_t));
  for (const double end : {q.low_t, q.high_t})
    consider(best_step(q.slope_s + q.curve_st * end, q.curve_s, q.low_s, q.high_s), end);
  return best;
}

// Moves alpha_i by a step, exactly to a bound if the step ends there. Returns the actual change.
template <class Real>
double apply(WorkingSet<Real>& set, std::size_t i, double step, double low, double high) {
  const double old = set.alpha[i];
  set.set_alpha(i, step == low    ? set.lower[i]
                   : step == high ? set.upper[i]
                                  : std::clamp(old + step, set.lower[i], set.upper[i]));
  return set.alpha[i] - old;
}

// Minimizes over two variables (or one if i == j); `value` is the change of the objective.
template <class Real>
Steps move_two(WorkingSet<Real>& set, std::size_t i, std::size_t j) {
  const TwoVariables q{set.gradient[i],
                       set.gradient[j],
                       set.diagonal[i],
                       set.diagonal[j],
                       set.kernel_row(i)[j],
                       set.lower[i] - set.alpha[i],
                       set.upper[i] - set.alpha[i],
                       set.lower[j] - set.alpha[j],
                       set.upper[j] - set.alpha[j]};
  const Steps best = minimise(q, i != j);
  Steps moved;
  moved.value = best.value;
  moved.s = apply(set, i, best.s, q.low_s, q.high_s);
  moved.t = i == j ? 0.0 : apply(set, j, best.t, q.low_t, q.high_t);
  return moved;
}

// Runs descent until the violation reaches `tolerance`, max_updates is reached, or steps are below
// the resolution of alpha.
template <class Real>
DescentRound descend_coordinates(WorkingSet<Real>& set, double tolerance,
                                 std::int64_t max_updates) {
  std::vector<double> scale(set.stride, 1.0);
  for (std::size_t i = 0; i < set.size; ++i)
    scale[i] = 1.0 / std::sqrt(std::max(double{set.diagonal[i]}, min_diagonal));
  const bool scaled = std::any_of(scale.begin(), scale.end(), [](double s) { return s != 1.0; });
  const double target = tolerance * *std::min_element(scale.begin(), scale.end());
  const CoordinateState state{set.stride, set.gradient.data(), set.side.data(),
                              scaled ? scale.data() : nullptr};
  DescentRound round;
  double largest = 0;
  std::size_t i = loops<Real>().descend(state, set.kernel, 0.0, set.kernel, 0.0, &largest);
  while (round.updates < max_updates && largest > target) {
    const Real* row_i = set.kernel_row(i);
    double gain = 0;
    std::size_t j = i;
    if (row_i[i] > min_curvature)
      j = loops<Real>().best_companion(state, set.diagonal.data(), row_i, i, &gain);
    if (!(gain > 0) || j >= set.size) j = i;
    const Steps moved = move_two(set, i, j);
    ++round.updates;
    if (moved.s == 0.0 && moved.t == 0.0) break;
    round.decrease -= moved.value;
    i = loops<Real>().descend(state, row_i, moved.s, set.kernel_row(j), moved.t, &largest);
  }
  return round;
}

template <class Real>
double pair_curvature(const WorkingSet<Real>& set, std::size_t i, std::size_t j) {
  return std::max(double{set.diagonal[i]} + set.diagonal[j] - 2.0 * set.kernel_row(i)[j],
                  min_pair_curvature);
}

struct PairStep {
  double up = 0, down = 0;  // changes of alpha_i and alpha_j, down < 0
  double decrease = 0;
};

// Increases alpha_i and decreases alpha_j by the same amount, to the minimum or the first bound.
// Does not move if the step is below the resolution of alpha. A variable that is closer than this
// to its bound is nevertheless set to the bound; otherwise the pair would be selected forever.
template <class Real>
PairStep move_pair(WorkingSet<Real>& set, std::size_t i, std::size_t j) {
  const double old_i = set.alpha[i], old_j = set.alpha[j];
  const double slack_i = set.upper[i] - old_i, slack_j = old_j - set.lower[j];
  const double curvature = pair_curvature(set, i, j), slope = set.gradient[j] - set.gradient[i];
  const double slack = std::min(slack_i, slack_j), t = std::min(slope / curvature, slack);
  const double new_i = t == slack_i ? set.upper[i] : old_i + t;
  const double new_j = t == slack_j ? set.lower[j] : old_j - t;
  if (t < slack && (new_i == old_i || new_j == old_j)) return {};
  set.set_alpha(i, new_i);
  set.set_alpha(j, new_j);
  return {new_i - old_i, new_j - old_j, t * (slope - 0.5 * curvature * t)};
}

bool is_zero(const PairStep& step) { return step.up == 0.0 && step.down == 0.0; }

// One equality constraint as seen by the loops of isa.h: `side` fixes the variables of all other
// constraints.
template <class Real>
struct ActiveConstraint {
  std::vector<float> side;
  std::size_t first = 0;  // variable with the largest -gradient that can increase
  double up = 0, down = 0;

  ActiveConstraint(const WorkingSet<Real>& set, int constraint)
      : side(set.stride, std::numeric_limits<float>::quiet_NaN()) {
    for (std::size_t k = 0; k < set.size; ++k) {
      if (set.constraint_of[k] == constraint) side[k] = set.side[k];
    }
  }
  CoordinateState state(WorkingSet<Real>& set) const {
    return {set.stride, set.gradient.data(), side.data(), nullptr};
  }
  double violation() const { return up - down; }
};

// Runs descent under equality constraints, with the fused loops of isa.h. The loop of the first
// constraint updates the gradient.
template <class Real>
DescentRound descend_pairs(WorkingSet<Real>& set, double tolerance, std::int64_t max_updates) {
  std::vector<ActiveConstraint<Real>> constraints;
  for (int constraint = 0; constraint < set.n_constraints; ++constraint)
    constraints.emplace_back(set, constraint);
  const auto update = [&](const Real* row_up, double up, const Real* row_down, double down) {
    for (ActiveConstraint<Real>& constraint : constraints) {
      constraint.first = loops<Real>().descend_pair(constraint.state(set), row_up, up, row_down,
                                                    down, &constraint.up, &constraint.down);
      up = down = 0.0;
    }
  };
  DescentRound round;
  update(set.kernel, 0.0, set.kernel, 0.0);
  while (round.updates < max_updates) {
    ActiveConstraint<Real>& constraint = *std::max_element(
        constraints.begin(), constraints.end(),
        [](const auto& a, const auto& b) { return a.violation() < b.violation(); });
    if (!(constraint.violation() > tolerance)) break;
    const std::size_t i = constraint.first;
    double gain = 0;
    const std::size_t j = loops<Real>().best_partner(constraint.state(set), set.diagonal.data(),
                                                     set.kernel_row(i), i, &gain);
    if (!(gain > 0)) break;
    const PairStep step = move_pair(set, i, j);
    if (is_zero(step)) break;
    constraint.side[i] = set.side[i];
    constraint.side[j] = set.side[j];
    round.decrease += step.decrease;
    ++round.updates;
    update(set.kernel_row(i), step.up, set.kernel_row(j), step.down);
  }
  return round;
}

// Shrinking within a working set of at least `min_shrunk_set` members. Far from the tolerance,
// members at a bound are dropped if their gradient points outwards by more than `shrink_margin`
// times the largest violation. Nothing is dropped if more than `shrunk_share` of the members would
// remain.
constexpr double far_off = 10;  // times the tolerance
constexpr double shrink_margin = 0.5;
constexpr double shrunk_share = 0.75;
constexpr std::size_t min_shrunk_set = 128;

// Limit of the cost of a solve, in updates per member: a Newton step costs as much as many updates,
// and stop requests are checked only between solves.
constexpr double most_member_updates = 1000;

// Rounds are stuck if rounding undoes their steps, for example with two variables of one row whose
// gradients differ only by rounding. Test: over `rounds_compared` rounds, the violation fell by a
// share below `least_fall`, and the objective by less than `least_share` of its distance to the
// optimum.
constexpr int rounds_compared = 8;
constexpr double least_fall = 0.1;
constexpr double least_share = 1e-6;

template <class Real>
class Rounds {
 public:
  // Counts a round; returns whether the rounds are stuck.
  bool count(const WorkingSet<Real>& set, double violation, double decrease) {
    decrease_ += decrease;
    if (violation < (1.0 - least_fall) * least_) {
      least_ = violation;
    } else if (++n_rounds_ < rounds_compared) {
      return false;
    } else if (!(decrease_ > least_share * distance(set))) {
      return true;
    }
    n_rounds_ = 0;
    decrease_ = 0;
    return false;
  }

 private:
  // Returns a bound on the distance to the optimum of a convex problem, the Frank-Wolfe gap.
  static double distance(const WorkingSet<Real>& set) {
    const Violation now = set.measure();
    double gap = 0;
    for (std::size_t i = 0; i < set.size; ++i) {
      const double g =
          now.reduced(set.gradient[i], set.has_constraints() ? set.constraint_of[i] : -1);
      gap += g > 0 ? (set.alpha[i] - set.lower[i]) * g : (set.alpha[i] - set.upper[i]) * g;
    }
    return gap;
  }

  double least_ = std::numeric_limits<double>::infinity();
  double decrease_ = 0;
  int n_rounds_ = 0;
};

}  // namespace

template <class Real>
WorkingSetReport WorkingSetSolver<Real>::solve(WorkingSet<Real>& set, double tolerance,
                                               std::int64_t max_updates, int n_threads) {
  WorkingSetReport report;
  const double n_entries = static_cast<double>(set.size) * static_cast<double>(set.size);
  most_cost_ = most_member_updates * n_entries * update_entry_cost;
  solve_rounds(set, tolerance, max_updates, n_threads, report, false);
  report.cost += report.newton.cost;
  return report;
}

// Returns the decrease of the objective.
template <class Real>
double WorkingSetSolver<Real>::solve_rounds(WorkingSet<Real>& set, double tolerance,
                                            std::int64_t max_updates, int n_threads,
                                            WorkingSetReport& report, bool is_shrunk) {
  const auto size = static_cast<std::int64_t>(set.size);
  double before = set.violation(), total = 0;
  bool is_newton = false;  // whether the last round took a Newton step
  Rounds<Real> rounds;
  while (before > tolerance && report.updates < max_updates && !report.is_stuck &&
         report.cost + report.newton.cost < most_cost_) {
    // each variable can move once or twice in a round, less often between Newton steps; then the
    // methods are compared
    const bool is_far = before > far_off * tolerance;
    const std::int64_t max_round = (is_newton && is_far ? size / 2 : 2 * size) + 16;
    const std::int64_t budget = std::min(max_round, max_updates - report.updates);
    const DescentRound round = set.has_constraints() ? descend_pairs(set, tolerance, budget)
                                                     : descend_coordinates(set, tolerance, budget);
    report.updates += round.updates;
    report.cost += static_cast<double>(round.updates * size) * update_entry_cost;
    bool moved = round.updates > 0;
    double decrease = round.decrease;
    is_newton = false;
    double after = set.violation();
    if (after > tolerance) {
      const double cost = static_cast<double>(budget * size) * update_entry_cost;
      if (newton_.pays(set, {before, after, round.decrease, cost}, tolerance)) {
        const double of_newton = newton_.run(set, n_threads, report.newton);
        is_newton = of_newton > 0;
        decrease += of_newton;
        moved = is_newton || moved;
        after = set.violation();
      }
    }
    if (!moved) break;  // further steps are below the resolution of alpha
    if (after > tolerance && !is_shrunk && select_moving(set, after, tolerance)) {
      std::vector<Real> values;
      WorkingSet<Real> part = set.part(moving_, values);
      decrease += solve_rounds(part, tolerance, max_updates, n_threads, report, true);
      set.update_from(part, moving_);
      after = set.violation();
    }
    // a part that was stuck does not end the set: other members may move
    report.is_stuck = after > tolerance && rounds.count(set, after, decrease);
    total += decrease;
    before = after;
  }
  return total;
}

// Collects the members that can still move; returns whether they are few enough.
template <class Real>
bool WorkingSetSolver<Real>::select_moving(const WorkingSet<Real>& set, double largest,
                                           double tolerance) {
  if (set.size < min_shrunk_set || largest < far_off * tolerance) return false;
  moving_.clear();
  const Violation now = set.measure();
  for (std::size_t i = 0; i < set.size; ++i) {
    const double g =
        now.reduced(set.gradient[i], set.has_constraints() ? set.constraint_of[i] : -1);
    const bool is_shrinkable = set.side[i] != 0 && !(set.side[i] * g <= shrink_margin * largest);
    if (!is_shrinkable) moving_.push_back(i);
  }
  return static_cast<double>(moving_.size()) <= shrunk_share * static_cast<double>(set.size);
}

template class WorkingSetSolver<float>;
template class WorkingSetSolver<double>;

}  // namespace dcsvm
