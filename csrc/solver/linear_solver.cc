#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

#include "solver/linear_newton.h"
#include "solver/linear_state.h"
#include "solver/snapshot.h"
#include "solver/solve.h"

namespace dcsvm {

namespace {

constexpr std::size_t prefetch_distance = 2;  // rows

// xorshift64* (Vigna 2016)
std::uint64_t next_random(std::uint64_t& state) {
  state ^= state >> 12;
  state ^= state << 25;
  state ^= state >> 27;
  return state * 2685821657736338717ULL;
}

// Coordinate descent on the dual of a linear SVM, in random order and with shrinking (Hsieh, Chang,
// Lin, Keerthi and Sundararajan, ICML 2008). An update visits the values of one row.
class LinearDescent {
 public:
  explicit LinearDescent(LinearState& state) : state_(state) { activate(); }

  // Passes over the active variables, at most max_steps of them. Returns the largest violation
  // seen.
  double pass(std::int64_t max_steps) {
    LinearState& s = state_;
    const double penalty = s.mean_diagonal;
    double largest = 0, high = 0, low = 0;
    shuffle();
    std::size_t kept = 0;
    std::int64_t done = 0;
    for (std::size_t k = 0; k < active_.size(); ++k) {
      const auto i = static_cast<std::size_t>(active_[k]);
      if (done == max_steps) {
        active_[kept++] = active_[k];
        continue;
      }
      if (k + prefetch_distance < active_.size())
        s.rows.prefetch(static_cast<std::size_t>(
            s.row[static_cast<std::size_t>(active_[k + prefetch_distance])]));
      const auto row = static_cast<std::size_t>(s.row[i]);
      const int constraint = s.qp.constraint_at(i);
      double g = s.rows.dot(row, s.w.data()) - s.qp.linear[i], curvature = s.diagonal[i];
      values_ += 1 + static_cast<double>(s.rows.stored(row));
      if (constraint >= 0) {
        const auto at = static_cast<std::size_t>(constraint);
        g += s.multipliers[at] + penalty * s.excess[at];
        curvature += penalty;
      }
      const double lower = s.qp.lower[i], upper = s.qp.upper[i], before = s.alpha[i];
      if ((before <= lower && g > high_) || (before >= upper && g < low_)) continue;
      active_[kept++] = active_[k];
      ++done;
      const double violation = violation_of(before, lower, upper, g);
      if (violation == 0.0) continue;
      largest = std::max(largest, violation);
      high = std::max(high, g);
      low = std::min(low, g);
      const double unclipped = before - g / std::max(curvature, 1e-300);
      const double after = std::clamp(unclipped, lower, upper);
      if (after == before) continue;
      s.alpha[i] = after;
      s.rows.add(row, after - before, s.w.data());
      values_ += static_cast<double>(s.rows.stored(row));
      if (constraint >= 0) s.excess[static_cast<std::size_t>(constraint)] += after - before;
    }
    active_.resize(kept);
    steps_ += done;
    for (std::size_t at = 0; at < s.totals.size(); ++at)
      s.multipliers[at] += penalty * s.excess[at];
    // without violations, no variable may be shrunk in the next pass
    high_ = high > 0 ? high : std::numeric_limits<double>::infinity();
    low_ = low < 0 ? low : -std::numeric_limits<double>::infinity();
    return largest;
  }

  // Makes all variables active.
  void activate() {
    active_ = state_.qp.everything();
    high_ = std::numeric_limits<double>::infinity();
    low_ = -high_;
  }

  std::size_t n_active() const { return active_.size(); }
  std::int64_t steps() const { return steps_; }  // of all passes
  double values() const { return values_; }      // stored values visited in all passes

  template <class Archive>
  void archive(Archive& archive) {
    archive(active_);
    archive(high_);
    archive(low_);
    archive(random_);
    archive(steps_);
    archive(values_);
  }
  bool is_sound() const {
    std::vector<std::int32_t> variables = active_;
    std::sort(variables.begin(), variables.end());
    return are_positions(variables, state_.qp.size);
  }

 private:
  void shuffle() {
    for (std::size_t k = active_.size(); k > 1; --k)
      std::swap(active_[k - 1], active_[((next_random(random_) >> 32) * k) >> 32]);
  }

  LinearState& state_;
  std::vector<std::int32_t> active_;
  // A variable at its lower bound is shrunk if its gradient is above `high_`, at its upper bound if
  // it is below `low_`. These are the extreme gradients of violating variables in the last pass.
  double high_ = std::numeric_limits<double>::infinity();
  double low_ = -std::numeric_limits<double>::infinity();
  std::uint64_t random_ = 1;
  std::int64_t steps_ = 0;
  double values_ = 0;
};

// Descent has the first turn, with the work of `first_newton_steps` Newton steps. From then on, a
// turn ends when the method has done `turn` times the total work of the other.
constexpr double first_newton_steps = 10, turn = 2;
// A proximal step that reduces the violation to at most this fraction is followed by another.
constexpr double fast_reduction = 0.5;
// Target of a Newton step, as a fraction of the violation.
constexpr double newton_accuracy = 0.01;
// Lower limit of the target, as a fraction of the tolerance.
constexpr double final_accuracy = 0.05;
// Fraction of variables assumed to be free when the cost of the first Newton step is estimated.
constexpr double usual_free = 0.1;

// After this many consecutive checks without progress in violation or objective, rounding is
// assumed to prevent further progress.
constexpr int max_stalls = 12;
constexpr double better_violation = 0.99, better_objective = 1e-13;  // factor; relative

class LinearSolver {
 public:
  LinearSolver(const Points& points, const BoxQP& qp, const Iterate& iterate,
               const SolveOptions& options)
      : qp_(qp),
        iterate_(iterate),
        options_(options),
        state_(points, qp, iterate.alpha, options.n_threads),
        descent_(state_),
        newton_(state_),
        best_(iterate.alpha, iterate.alpha + qp.size) {}

  // Resumes from a snapshot unless it is empty.
  SolveReport run(const Snapshot& begin_with) {
    const double n_free = usual_free * static_cast<double>(qp_.size);
    turn_ends_ = first_newton_steps * newton_.usual_cost(n_free);
    if (!begin_with.empty()) restore(begin_with);
    while (stage_ != Stage::done && run_stage()) continue;
    report_.finished = stage_ == Stage::done;
    Snapshot here;
    if (!report_.finished) {
      here = before_step_.empty() ? snapshot() : std::move(before_step_);
      measure();
    }
    write();
    if (!report_.finished && options_.published) options_.published(here);
    const Optimality result = optimality(qp_, iterate_.alpha, iterate_.gradient);
    report_.violation = result.violation;
    report_.objective = result.objective;
    report_.gap = result.gap;
    report_.converged = result.violation <= options_.tolerance_in(result.violation_scale);
    report_.newton_steps = newton_.steps();
    return report_;
  }

 private:
  enum class Stage : std::uint8_t {
    check,    // checks optimality
    turn,     // starts a turn, or takes a Newton step
    descent,  // continues the turn of descent
    done
  };

  // Runs the current stage. Returns false if stopped; the solve can then resume.
  bool run_stage() {
    const bool is_at_limit = options_.limits.are_reached(report_);
    switch (stage_) {
      case Stage::check:
        stage_ = measure() || is_stuck() ? Stage::done : Stage::turn;
        return true;
      case Stage::turn:
        if (!is_at_limit) return may_continue() && begin_turn();
        stage_ = Stage::done;
        return true;
      case Stage::descent:
        if (violation_ > tolerance_ && descent_.values() < turn_ends_) {
          if (!is_at_limit && !may_continue()) return false;
          if (!is_at_limit) {
            descend();
            return true;
          }
        } else if (violation_ <= tolerance_) {
          descent_.activate();  // shrunk variables may violate the tolerance
        }
        stage_ = Stage::check;
        return true;
      case Stage::done:
        break;
    }
    return true;
  }

  // Returns false if stopped.
  bool begin_turn() {
    const double now = is_descent_turn_ ? descent_.values() : newton_.values();
    const bool is_fast = !is_descent_turn_ && violation_ <= fast_reduction * before_;
    const bool is_over = now >= turn_ends_ && !is_fast;
    Snapshot here;  // a stopped Newton step is repeated from here
    if (options_.stop && is_descent_turn_ == is_over) here = snapshot();
    if (is_over) {
      is_descent_turn_ = !is_descent_turn_;
      turn_ends_ = turn * now;
    }
    before_ = violation_;
    if (is_descent_turn_) {
      descend();
      stage_ = Stage::descent;
      return true;
    }
    take_newton_step();
    if (is_requested(options_.stop)) {
      before_step_ = std::move(here);
      return false;
    }
    descent_.activate();
    stage_ = Stage::check;
    return true;
  }

  template <class Archive>
  void archive(Archive& archive) {
    archive(stage_);
    archive(is_descent_turn_);
    archive(turn_ends_);
    archive(before_);
    archive(report_);
    state_.archive(archive);
    descent_.archive(archive);
    newton_.archive(archive);
    archive(best_);
    archive(best_objective_);
    archive(violation_);
    archive(objective_);
    archive(min_violation_);
    archive(min_objective_);
    archive(n_stalls_);
    archive(tolerance_);
  }

  Snapshot snapshot() {
    Snapshot bytes;
    SnapshotWriter writer(bytes);
    archive(writer);
    return bytes;
  }

  void restore(const Snapshot& bytes) {
    SnapshotReader reader(bytes);
    archive(reader);
    reader.check_end();
    check_snapshot(stage_ < Stage::done && state_.is_sound() && descent_.is_sound() &&
                   newton_.is_sound() && best_.size() == qp_.size);
  }

  // Restores the equality constraints; returns whether the state is optimal to the tolerance.
  bool measure() {
    Timer timer(report_.seconds_rebuild);
    state_.restore_constraints();
    state_.gradient(iterate_.gradient);
    const Optimality now = optimality(qp_, state_.alpha.data(), iterate_.gradient);
    if (best_objective_ == std::numeric_limits<double>::infinity())
      state_.multipliers = now.multipliers;
    violation_ = now.violation;
    tolerance_ = options_.tolerance_in(now.violation_scale);
    const bool is_optimal = violation_ <= tolerance_;
    objective_ = now.objective;
    if (is_optimal || now.objective < best_objective_) {
      best_ = state_.alpha;
      best_objective_ = now.objective;
    }
    ++report_.rebuilds;
    return is_optimal;
  }

  void descend() {
    Timer timer(report_.seconds_inner);
    violation_ = descent_.pass(options_.limits.iterations - report_.iterations);
    report_.iterations = descent_.steps() + newton_.steps();
    ++report_.outer_steps;
  }

  void take_newton_step() {
    Timer timer(report_.seconds_newton);
    newton_.step(std::max(newton_accuracy * violation_, final_accuracy * tolerance_),
                 options_.stop);
    report_.iterations = descent_.steps() + newton_.steps();
    ++report_.outer_steps;
  }

  bool is_stuck() {
    const bool is_better = violation_ < better_violation * min_violation_ ||
                           objective_ < min_objective_ - better_objective * std::fabs(objective_);
    n_stalls_ = is_better ? 0 : n_stalls_ + 1;
    min_violation_ = std::min(min_violation_, violation_);
    min_objective_ = std::min(min_objective_, objective_);
    return n_stalls_ >= max_stalls;
  }

  // Reports progress; publishes a snapshot on request, without updating the iterate. Returns false
  // if the solve must stop.
  bool may_continue() {
    if (options_.progress &&
        options_.progress({violation_, descent_.n_active(), report_.outer_steps}))
      options_.published(snapshot());
    return !is_requested(options_.stop);
  }

  // Writes the best alpha and its gradient to the iterate.
  void write() {
    state_.alpha = best_;
    state_.recompute();
    state_.gradient(iterate_.gradient);
    std::copy(best_.begin(), best_.end(), iterate_.alpha);
    std::copy(best_.begin(), best_.end(), iterate_.base);
    std::fill_n(iterate_.known, qp_.size, GradientState::at_alpha);
  }

  const BoxQP& qp_;
  const Iterate& iterate_;
  const SolveOptions& options_;
  SolveReport report_;
  Stage stage_ = Stage::check;
  bool is_descent_turn_ = true;  // false: turn of Newton steps
  double turn_ends_ = 0;         // total work of the current method at which its turn ends
  double before_ = std::numeric_limits<double>::infinity();  // violation before the current step
  Snapshot before_step_;                                     // start of a stopped step
  LinearState state_;
  LinearDescent descent_;
  LinearNewton newton_;
  // the best feasible alpha, which becomes the iterate
  std::vector<double> best_;
  double best_objective_ = std::numeric_limits<double>::infinity();
  double violation_ = std::numeric_limits<double>::infinity();  // of the state
  double objective_ = 0;
  // minima over all checks, and checks since the last progress
  double min_violation_ = std::numeric_limits<double>::infinity();
  double min_objective_ = std::numeric_limits<double>::infinity();
  int n_stalls_ = 0;
  double tolerance_ = 0;  // unscaled; set by measure()
};

}  // namespace

SolveReport solve_linear(const Points& points, const BoxQP& qp, const Iterate& iterate,
                         const SolveOptions& options, const Snapshot& begin_with) {
  return LinearSolver(points, qp, iterate, options).run(begin_with);
}

}  // namespace dcsvm
