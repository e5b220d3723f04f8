#include "solver/linear_solver.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "solver/linear_descent.h"
#include "solver/linear_newton.h"
#include "solver/linear_state.h"
#include "solver/timer.h"

namespace dcsvm {

namespace {

// Descent begins, with as much work as so many Newton steps take; a method then has its turn until
// it has done so many times the work of the other.
constexpr double first_newton_steps = 10, turn = 2;
// A proximal step that leaves no more than this part of the violation is followed by another.
constexpr double fast = 0.5;
// Of the violation: what a Newton step may leave.
constexpr double newton_accuracy = 0.01;
// Of the tolerance: what the last one may leave.
constexpr double final_accuracy = 0.05;
// Free variables foreseen for a Newton step, of all.
constexpr double usual_free = 0.1;

// So often in a row neither violation nor objective got better: rounding allows no more.
constexpr int most_stalls = 12;
constexpr double better_violation = 0.99, better_objective = 1e-13;  // factor; relative

class LinearSolver {
 public:
  LinearSolver(const Points& points, const BoxQp& qp, const Iterate& iterate,
               const SolveOptions& options)
      : qp_(qp),
        iterate_(iterate),
        options_(options),
        state_(points, qp, iterate.alpha, options.n_threads),
        descent_(state_),
        newton_(state_),
        best_(iterate.alpha, iterate.alpha + qp.size) {}

  SolveReport run();

 private:
  bool measure();
  void descend();
  void take_newton_step();
  bool is_stuck();
  bool may_go_on();
  void write();

  const BoxQp& qp_;
  const Iterate& iterate_;
  const SolveOptions& options_;
  SolveReport report_;
  LinearState state_;
  LinearDescent descent_;
  LinearNewton newton_;
  // the best feasible alpha there was, which is what the iterate gets
  std::vector<double> best_;
  double best_objective_ = std::numeric_limits<double>::infinity();
  double violation_ = std::numeric_limits<double>::infinity();  // of the state
  double objective_ = 0;
  // the least of the turns so far, and how many since
  double least_violation_ = std::numeric_limits<double>::infinity();
  double least_objective_ = std::numeric_limits<double>::infinity();
  int n_stalls_ = 0;
  double tolerance_ = 0;  // of violations in no unit; measure() sets it

  double tolerance_in(double unit) const {
    return std::max(options_.tolerance * unit, options_.attainable);
  }
};

SolveReport LinearSolver::run() {
  bool descends = true;
  const double n_free = usual_free * static_cast<double>(qp_.size);
  double turn_ends = first_newton_steps * newton_.usual_cost(n_free);
  double before = std::numeric_limits<double>::infinity();
  while (!measure() && !is_stuck() && may_go_on()) {
    const double now = descends ? descent_.values() : newton_.values();
    const bool is_fast = !descends && violation_ <= fast * before;
    if (now >= turn_ends && !is_fast) {
      descends = !descends;
      turn_ends = turn * now;
    }
    before = violation_;
    if (descends) {
      do {
        descend();
      } while (violation_ > tolerance_ && descent_.values() < turn_ends && may_go_on());
      // variables that were shrunk away may violate as well
      if (violation_ <= tolerance_) descent_.activate();
    } else {
      take_newton_step();
      descent_.activate();
    }
  }
  write();
  const Optimality result = optimality(qp_, iterate_.alpha, iterate_.gradient);
  report_.violation = result.violation;
  report_.objective = result.objective;
  report_.gap = result.gap;
  report_.converged = result.violation <= tolerance_in(result.unit);
  report_.newton_steps = newton_.steps();
  return report_;
}

// Whether the state, with its sums restored, is optimal to the tolerance.
bool LinearSolver::measure() {
  Timer timer(report_.seconds_rebuild);
  state_.restore_sums();
  state_.gradient(iterate_.gradient);
  const Optimality now = optimality(qp_, state_.alpha.data(), iterate_.gradient);
  if (best_objective_ == std::numeric_limits<double>::infinity())
    state_.multipliers = now.multipliers;
  violation_ = now.violation;
  tolerance_ = tolerance_in(now.unit);
  const bool is_optimal = violation_ <= tolerance_;
  objective_ = now.objective;
  if (is_optimal || now.objective < best_objective_) {
    best_ = state_.alpha;
    best_objective_ = now.objective;
  }
  ++report_.rebuilds;
  return is_optimal;
}

void LinearSolver::descend() {
  Timer timer(report_.seconds_inner);
  const std::int64_t limit = options_.max_iterations;
  violation_ = descent_.pass(limit < 0 ? std::numeric_limits<std::int64_t>::max()
                                       : limit - report_.iterations);
  report_.iterations = descent_.steps() + newton_.steps();
  ++report_.outer_steps;
}

void LinearSolver::take_newton_step() {
  Timer timer(report_.seconds_newton);
  newton_.step(std::max(newton_accuracy * violation_, final_accuracy * tolerance_), options_.stop);
  report_.iterations = descent_.steps() + newton_.steps();
  ++report_.outer_steps;
}

bool LinearSolver::is_stuck() {
  const bool is_better = violation_ < better_violation * least_violation_ ||
                         objective_ < least_objective_ - better_objective * std::fabs(objective_);
  n_stalls_ = is_better ? 0 : n_stalls_ + 1;
  least_violation_ = std::min(least_violation_, violation_);
  least_objective_ = std::min(least_objective_, objective_);
  return n_stalls_ >= most_stalls;
}

bool LinearSolver::may_go_on() {
  if (options_.max_iterations >= 0 && report_.iterations >= options_.max_iterations) return false;
  if (options_.progress &&
      options_.progress({violation_, descent_.n_active(), report_.outer_steps})) {
    // what is published changes nothing of what comes
    const std::vector<double> alpha = state_.alpha, w = state_.w, excess = state_.excess;
    const double violation = violation_;
    measure();
    write();
    options_.published();
    state_.alpha = alpha;
    state_.w = w;
    state_.excess = excess;
    violation_ = violation;
  }
  return !(options_.stop && options_.stop->is_requested());
}

// Gives the iterate the best alpha and its gradient.
void LinearSolver::write() {
  state_.alpha = best_;
  state_.recompute();
  state_.gradient(iterate_.gradient);
  std::copy(best_.begin(), best_.end(), iterate_.alpha);
  std::copy(best_.begin(), best_.end(), iterate_.base);
  std::fill_n(iterate_.known, qp_.size, Known::at_alpha);
}

}  // namespace

SolveReport solve_linear(const Points& points, const BoxQp& qp, const Iterate& iterate,
                         const SolveOptions& options) {
  return LinearSolver(points, qp, iterate, options).run();
}

}  // namespace dcsvm
