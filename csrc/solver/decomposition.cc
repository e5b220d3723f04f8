#include <algorithm>
#include <cmath>
#include <iterator>
#include <limits>
#include <vector>

#include "kernel/kernel_setup.h"
#include "solver/active_kernel.h"
#include "solver/active_set.h"
#include "solver/full_gradient.h"
#include "solver/snapshot.h"
#include "solver/solve.h"
#include "solver/working_step.h"

namespace dcsvm {

namespace {

// Fraction of the tolerance. If the truncation error of the gradient may exceed it, the gradient is
// reconstructed from scratch before convergence is declared.
constexpr double max_neglected = 0.1;
// Truncation undoes the steps if over `max_checks_undone` checks the violation does not fall below
// `least_fall` times its least value.
constexpr double least_fall = 0.9;
constexpr int max_checks_undone = 5;
// A variable is shrinkable if its gradient points out of the box by more than the largest violation
// or this margin, whichever is smaller. Smaller margins shrink sooner and reactivate more
// variables.
constexpr double max_shrink_margin = 0.2;
// Compacting pays once at least 1 / shrinkable_part of the active variables is shrinkable.
constexpr std::size_t shrinkable_part = 5;
// The initial kernel rows are cached only if the cache has space for 1 / spare_part more of them.
constexpr std::size_t spare_part = 4;
// Bytes per pair of a working set: kernel matrices (current, previous, computed) and a float64
// factor. Bytes per variable: arrays of a solve, of a kernel product, and the iterate.
constexpr std::size_t bytes_per_pair(Precision precision) {
  return 3 * (precision == Precision::double_tiles ? sizeof(double) : sizeof(float)) +
         sizeof(double);
}
constexpr std::size_t bytes_per_variable = 135;

// The variables that a change moves, positions of active variables, and their steps.
struct Change {
  std::vector<std::int32_t> positions;
  std::vector<double> step;

  Change(const ActiveSet& active, const WorkingChange& change) {
    for (std::size_t k = 0; k < change.members.size(); ++k) {
      const double before = active.alpha[static_cast<std::size_t>(change.members[k])];
      if (change.alpha[k] == before) continue;
      positions.push_back(change.members[k]);
      step.push_back(change.alpha[k] - before);
    }
  }
};

bool has_equal_rows(const BoxQP& qp, std::size_t n_rows) {
  std::vector<bool> is_seen(n_rows, false);
  for (std::size_t i = 0; i < qp.size; ++i) {
    if (is_seen[qp.row_of(i)]) return true;
    is_seen[qp.row_of(i)] = true;
  }
  return false;
}

// Shows alpha and gradient of the members of a change as they are after it, in its scope.
class Preview {
 public:
  Preview(ActiveSet& active, WorkingChange& change) : active_(active), change_(change) { swap(); }
  Preview(const Preview&) = delete;
  Preview& operator=(const Preview&) = delete;
  ~Preview() { swap(); }

 private:
  void swap() {
    for (std::size_t k = 0; k < change_.members.size(); ++k) {
      const auto p = static_cast<std::size_t>(change_.members[k]);
      std::swap(active_.alpha[p], change_.alpha[k]);
      std::swap(active_.gradient[p], change_.gradient[k]);
    }
  }

  ActiveSet& active_;
  WorkingChange& change_;
};

template <class Real>
class Solver {
 public:
  Solver(const KernelSetup& setup, const Points& points, const BoxQP& qp, const Iterate& iterate,
         const SolveOptions& options)
      : setup_(setup),
        points_(points),
        qp_(qp),
        iterate_(iterate),
        options_(options),
        full_{setup, points, qp, iterate, options, report_},
        kernel_(setup, points, options, report_),
        working_(setup, points, qp, options, report_),
        shares_rows_(qp.size > complete_set && has_equal_rows(qp, points.n_samples)) {}

  // Resumes from a snapshot unless it is empty.
  SolveReport run(const Snapshot& begin_with) {
    if (!begin_with.empty()) restore(begin_with);
    while (stage_ != Stage::done && run_stage()) continue;
    if (stage_ != Stage::done) store(false);
    report_.finished = stage_ == Stage::done;
    if (!full_.has(GradientState::unknown) && !full_.has(GradientState::at_base)) {
      const Optimality result = full_.optimality();
      report_.violation = result.violation / result.violation_scale;
      report_.objective = result.objective;
      report_.gap = result.gap;
      report_.converged = result.violation <= options_.tolerance_in(result.violation_scale);
    }
    return report_;
  }

 private:
  enum class Stage : std::uint8_t {
    start,
    initial_gradient,   // updates all gradients before the first step
    descent,            // outer steps
    final_gradient,     // reconstructs shrunk gradients, to check all variables
    reconstruction,     // recomputes all gradients after a large truncation error
    check,              // all gradients are known: checks convergence
    gradient_at_limit,  // like final_gradient, if no further step is possible
    done
  };

  // Runs the current stage. Returns false if stopped; the solve can then resume.
  bool run_stage() {
    switch (stage_) {
      case Stage::start:
        start();
        break;
      case Stage::initial_gradient:
        if (!update_gradient()) return false;
        if (n_active() == 0) activate();
        stage_ = Stage::descent;
        break;
      case Stage::descent:
        return descend();
      case Stage::final_gradient:
        if (!update_gradient()) return false;
        if (report_.neglected > max_neglected * target_) {
          reset_gradient();
          stage_ = Stage::reconstruction;
        } else {
          stage_ = Stage::check;
        }
        break;
      case Stage::reconstruction:
        if (!update_gradient()) return false;
        stage_ = Stage::check;
        break;
      case Stage::check:
        return check_optimality();
      case Stage::gradient_at_limit:
        if (!update_gradient()) return false;
        stage_ = Stage::done;
        break;
      case Stage::done:
        break;
    }
    return true;
  }

  // Prepares the initial gradient. If kernel rows are expensive and the cache can hold the rows of
  // all support vectors, all variables become active. The initial gradient and the first outer
  // steps then share the cached rows.
  void start() {
    stage_ = Stage::initial_gradient;
    if (!full_.has(GradientState::unknown)) {
      report_.neglected = options_.gradient_error;
      return;
    }
    const auto n_support = static_cast<std::size_t>(std::count_if(
        iterate_.alpha, iterate_.alpha + qp_.size, [](double a) { return a != 0.0; }));
    const bool fits =
        (n_support + n_support / spare_part) * qp_.size * sizeof(float) <= options_.cache_bytes;
    const bool keep_rows = fits && has_expensive_rows(setup_, points_);
    reset_gradient();
    if (n_support == 0) {
      full_.settle();
      stage_ = Stage::descent;
    }
    if (n_support == 0 || keep_rows) load(qp_.everything());
  }

  // Outer steps, two at a time: while one thread solves a working set, the others apply the change
  // of the set before. Members of the next set are therefore selected before all gradients are
  // known: the gradients of the last set's members are those of its solution, the others are from
  // before it. The gradients of the next set's members are then corrected, so each step lowers the
  // objective. Only measurements with all gradients end the descent. Variables that share a row, as
  // in regressions, do not overlap: a change of one is a change of the other's gradient, which
  // would be selected in vain.
  bool descend() {
    for (;;) {
      if (!unapplied_.is_empty() && !apply(unapplied_)) return false;
      const double violation = measure();
      target_ = std::min(options_.tolerance_in(qp_.violation_scale_at(active_.multipliers)),
                         checked_tolerance_);
      const bool is_done = violation <= target_ || is_exhausted();
      if (!change_.is_empty() && (is_done || shares_rows_ || n_active() <= complete_set)) {
        if (!apply(change_)) return false;
        continue;
      }
      if (is_done) {
        full_.take(active_);
        stage_ = violation <= target_ ? Stage::final_gradient : Stage::gradient_at_limit;
        return true;
      }
      if (!may_continue()) return false;
      // once per step, also if a stop in begin_add() and a resume repeat its beginning
      if (!is_counted_) {
        is_counted_ = true;
        if (shrinking_pays()) {
          compact();
          continue;  // as a resumed solve does: few variables left do not overlap
        }
      }
      if (!step()) return false;
    }
  }

  // Solves the next working set while the last change is applied. Returns false if stopped.
  bool step() {
    const Change before(active_, change_);
    bool is_applied = before.positions.empty();
    if (!is_applied) {
      Timer timer(report_.seconds_tiles);
      if (!kernel_.begin_add(before.positions, change_.members, options_.stop)) return false;
    }
    is_counted_ = false;
    {
      const Preview preview(active_, change_);
      working_.select(active_, kernel_, target_);
    }
    if (!is_applied) {
      // without helpers the change is applied first: the gradients have the same bits
      is_applied = !has_helpers(options_.n_threads) && add(before, {});
      correct_gradient(before, is_applied);
    }
    WorkingChange next;
    const Task solve = [&] { next = working_.solve(); };
    if (is_applied) {
      solve();
    } else {
      is_applied = add(before, solve);
    }
    if (is_applied) take_members(change_);
    unapplied_ = is_applied ? WorkingChange() : std::move(change_);
    change_ = std::move(next);
    return is_applied;
  }

  bool check_optimality() {
    const Optimality now = full_.optimality();
    checked_tolerance_ = options_.tolerance_in(now.violation_scale);
    if (now.violation <= checked_tolerance_ || is_exhausted() || is_undone(now.violation)) {
      stage_ = Stage::done;
      return true;
    }
    if (!may_continue()) return false;
    if (n_active() < qp_.size) {
      activate();
    } else {
      std::copy_n(iterate_.gradient, qp_.size, active_.gradient.begin());
    }
    stage_ = Stage::descent;
    return true;
  }

  // Returns whether truncation undoes the steps: although the gradients were recomputed, its bound
  // exceeds `max_neglected` of the tolerance, and the violation did not fall over the last checks.
  bool is_undone(double violation) {
    if (report_.neglected <= max_neglected * target_) return false;
    if (violation < least_fall * least_checked_) {
      least_checked_ = violation;
      checks_undone_ = 0;
      return false;
    }
    return ++checks_undone_ >= max_checks_undone;
  }

  // Sets all gradients to the gradient at alpha = 0, before they are recomputed.
  void reset_gradient() {
    report_.neglected = 0;
    full_.set_to_zero();
  }

  // Adds the change since `base` to the gradients that are at base. Uses cached rows if all
  // variables are active. Returns false if stopped.
  bool update_gradient() {
    const std::vector<std::int32_t> variables = full_.at_base();
    if (!variables.empty()) {
      const bool is_cached = kernel_.has_cache() && n_active() == qp_.size;
      if (!(is_cached ? add_all_cached() : add_change(variables))) return false;
    }
    full_.settle();
    rows_since_rebuild_ = 0;
    return true;
  }

  bool add_all_cached() {
    Timer timer(report_.seconds_rebuild);
    std::copy_n(iterate_.gradient, qp_.size, active_.gradient.begin());
    std::vector<std::int32_t> support;
    std::vector<double> weights;
    for (std::size_t p = 0; p < n_active(); ++p) {
      if (active_.alpha[p] == 0.0) continue;
      support.push_back(static_cast<std::int32_t>(p));
      weights.push_back(active_.alpha[p]);
    }
    if (!kernel_.begin_add(support, {}, options_.stop) ||
        !kernel_.add(weights, active_.gradient.data(), options_.stop).is_complete)
      return false;
    std::copy_n(active_.gradient.begin(), qp_.size, iterate_.gradient);
    ++report_.rebuilds;
    return true;
  }

  bool add_change(const std::vector<std::int32_t>& variables) {
    return full_.add_change(variables, [this] {
      if (report_progress()) store(true);
    });
  }

  // Chooses the active variables when all gradients are known: the variables that are not
  // shrinkable, or all of them in a cold start.
  void activate() {
    const Violation now = measure_violation(qp_.state(iterate_.alpha, iterate_.gradient));
    const double* alpha = iterate_.alpha;
    const bool started = std::any_of(alpha, alpha + qp_.size, [](double a) { return a != 0.0; });
    std::vector<std::int32_t> variables;
    for (std::size_t i = 0; i < qp_.size; ++i) {
      const double g = now.reduced(iterate_.gradient[i], qp_.constraint_at(i));
      const bool shrinkable = violation_of(alpha[i], qp_.lower[i], qp_.upper[i], g) == 0.0 &&
                              std::fabs(g) > max_shrink_margin;
      if (!started || !shrinkable) variables.push_back(static_cast<std::int32_t>(i));
    }
    load(variables);
  }

  // Measures the violation of the active variables, as far as their gradients are known.
  double measure() {
    Timer timer(report_.seconds_selection);
    const Preview preview(active_, change_);
    return active_.measure(qp_.n_constraints);
  }

  // Applies a change, and forgets it. If stopped, returns false and changes nothing.
  bool apply(WorkingChange& change) {
    if (change.members.size() == n_active()) {  // a solution of all active variables
      std::copy(change.alpha.begin(), change.alpha.end(), active_.alpha.begin());
      std::copy(change.gradient.begin(), change.gradient.end(), active_.gradient.begin());
    } else if (const Change moved(active_, change); !moved.positions.empty()) {
      {
        Timer timer(report_.seconds_tiles);
        if (!kernel_.begin_add(moved.positions, change.members, options_.stop)) return false;
      }
      if (!add(moved, {})) return false;
      take_members(change);
    }
    change = {};
    return true;
  }

  // Copies the solution of the members of an applied change: alpha, and gradients that were left
  // out.
  void take_members(const WorkingChange& change) {
    const bool has_gradient = kernel_.leaves_out(change.members.size());
    for (std::size_t k = 0; k < change.members.size(); ++k) {
      const auto p = static_cast<std::size_t>(change.members[k]);
      active_.alpha[p] = change.alpha[k];
      if (has_gradient) active_.gradient[p] = change.gradient[k];
    }
  }

  // Updates the active gradients: g += K(active, changed) step, for the variables of begin_add().
  // One thread carries out the task first. If stopped, returns false; the gradients are unchanged.
  bool add(const Change& change, const Task& task) {
    const double seconds_inner = report_.seconds_inner;
    double seconds = 0;
    gradient_before_ = active_.gradient;
    ActiveKernel::Added added;
    {
      Timer timer(seconds);
      added = kernel_.add(change.step, active_.gradient.data(), options_.stop, task);
    }
    report_.seconds_tiles += std::max(seconds - (report_.seconds_inner - seconds_inner), 0.0);
    if (!added.is_complete) {
      active_.gradient.swap(gradient_before_);
      return false;
    }
    rows_since_rebuild_ += static_cast<std::int64_t>(change.positions.size());
    if (added.has_skipped) full_.neglect(change.step);
    return true;
  }

  // Adds a change to the gradients of the working set, except for members of the last set.
  void correct_gradient(const Change& change, bool is_applied) {
    Timer timer(report_.seconds_tiles);
    const std::vector<std::int32_t>& members = working_.members();
    std::vector<std::int32_t> others;
    std::vector<std::size_t> place;
    std::vector<double> gradient;
    auto last = change_.members.begin();
    for (std::size_t w = 0; w < members.size(); ++w) {
      last = std::lower_bound(last, change_.members.end(), members[w]);
      if (last != change_.members.end() && *last == members[w]) continue;
      others.push_back(members[w]);
      place.push_back(w);
      gradient.push_back(active_.gradient[static_cast<std::size_t>(members[w])]);
    }
    if (!is_applied) kernel_.add_at(others, change.step, gradient.data());
    for (std::size_t k = 0; k < place.size(); ++k) working_.gradient()[place[k]] = gradient[k];
  }

  // Counts an outer step; returns whether enough variables are shrinkable to pay for compacting.
  bool shrinking_pays() {
    Timer timer(report_.seconds_selection);
    const std::size_t n = n_active();
    if (n <= complete_set) return false;
    const std::size_t n_shrinkable = active_.count_shrinkable(max_shrink_margin);
    if (n_shrinkable * shrinkable_part < n) return false;
    // Reconstructing the gradient of a dropped variable costs a kernel value for each support
    // vector. Wait until updating it since the last reconstruction has cost as much.
    const double row_cost = kernel_.has_cache() ? cached_entry_cost : kernel_.row_cost();
    const auto n_support = std::count_if(active_.alpha.begin(), active_.alpha.end(),
                                         [](double a) { return a != 0.0; });
    return static_cast<double>(rows_since_rebuild_) * row_cost >=
           static_cast<double>(n_support) * kernel_.row_cost();
  }

  // Drops shrinkable variables, except for those whose change is not applied yet.
  void compact() {
    Timer timer(report_.seconds_selection);
    const std::vector<std::int32_t> others = active_.not_shrinkable();
    std::vector<std::int32_t> kept;
    std::set_union(others.begin(), others.end(), change_.members.begin(), change_.members.end(),
                   std::back_inserter(kept));
    active_.write_back(iterate_.alpha);
    std::vector<std::int32_t> variables;
    for (const std::int32_t p : kept)
      variables.push_back(active_.index[static_cast<std::size_t>(p)]);
    kernel_.compact(kept, qp_.rows_of(variables));
    const std::vector<std::int32_t> position = active_.keep(kept, kernel_.n_lanes());
    working_.compact(position);
    for (std::int32_t& member : change_.members)
      member = position[static_cast<std::size_t>(member)];
  }

  void load(const std::vector<std::int32_t>& variables) {
    kernel_.load(qp_.rows_of(variables));
    active_.load(qp_, variables, iterate_.alpha, iterate_.gradient, kernel_.n_lanes());
    working_.reset();
  }

  // Reports progress; returns whether the caller requests an updated iterate.
  bool report_progress() {
    return options_.progress && options_.progress({active_.largest_violation /
                                                       qp_.violation_scale_at(active_.multipliers),
                                                   n_active(), report_.outer_steps});
  }

  // Returns whether no further step is possible.
  bool is_exhausted() const { return working_.is_stuck() || options_.limits.are_reached(report_); }

  // Reports progress. Returns false if a stop was requested.
  bool may_continue() {
    if (report_progress()) store(true);
    return !is_requested(options_.stop);
  }

  // Returns whether a snapshot of this stage contains the active variables and the cache.
  bool stores_active() const {
    return stage_ == Stage::descent || (n_active() > 0 && n_active() == qp_.size);
  }

  // State that the updated iterate does not contain.
  template <class Archive>
  void archive(Archive& archive) {
    archive(report_);
    archive(checked_tolerance_);
    archive(least_checked_);
    archive(checks_undone_);
    archive(target_);
    archive(rows_since_rebuild_);
    archive(full_.has_skipped);
    archive(at_base_);
    archive(is_counted_);
    unapplied_.archive(archive);
    change_.archive(archive);
    working_.archive(archive);
  }

  // Updates the iterate and publishes a snapshot with it. `continues`: the solve goes on.
  void store(bool continues) {
    if (!options_.published) return;
    // take() replaces gradients at base, which variables shrunk later still need
    std::vector<double> at_base;
    at_base_.clear();
    if (stage_ == Stage::descent) {
      at_base.assign(iterate_.gradient, iterate_.gradient + qp_.size);
      for (const std::int32_t i : active_.index)
        at_base_.push_back(at_base[static_cast<std::size_t>(i)]);
      full_.take(active_);
    }
    SnapshotWriter writer(snapshot_);
    writer(stage_);
    writer(stores_active());
    if (stores_active()) {
      RowCache::Contents cached = kernel_.contents();
      cached.archive(writer);
      active_.archive(writer);
    }
    archive(writer);
    options_.published(snapshot_);
    if (continues) std::copy(at_base.begin(), at_base.end(), iterate_.gradient);
  }

  // Restores the state; the iterate must be the one published with the snapshot.
  void restore(const Snapshot& snapshot) {
    SnapshotReader reader(snapshot);
    bool is_loaded = false;
    reader(stage_);
    reader(is_loaded);
    if (is_loaded) {
      const bool is_in_descent = stage_ == Stage::descent;
      load(is_in_descent ? full_.at_alpha() : qp_.everything());
      RowCache::Contents cached;
      cached.archive(reader);
      kernel_.set_contents(cached);
      active_.archive(reader);
    }
    archive(reader);
    reader.check_end();
    check_snapshot(stage_ < Stage::done && active_.is_sound());
    check_snapshot(is_loaded || stage_ != Stage::descent);
    check_snapshot(at_base_.size() == (stage_ == Stage::descent ? n_active() : 0));
    for (const WorkingChange* change : {&unapplied_, &change_}) {
      check_snapshot(change->alpha.size() == change->members.size() &&
                     change->gradient.size() == change->members.size() &&
                     (change->is_empty() ||
                      (stage_ == Stage::descent && are_positions(change->members, n_active()))));
    }
    for (std::size_t p = 0; p < at_base_.size(); ++p)
      iterate_.gradient[active_.index[p]] = at_base_[p];
    if (!is_loaded) working_.reset();
    working_.restore(active_);
  }

  std::size_t n_active() const { return active_.size(); }

  const KernelSetup& setup_;
  const Points& points_;
  const BoxQP& qp_;
  const Iterate& iterate_;
  const SolveOptions& options_;
  SolveReport report_;

  FullGradient full_;
  ActiveSet active_;
  ActiveKernel kernel_;
  WorkingStep<Real> working_;
  Stage stage_ = Stage::start;
  WorkingChange change_;                 // the solution of the last working set, not applied yet
  WorkingChange unapplied_;              // the one before, if a stop interrupted it
  bool is_counted_ = false;              // whether shrinking_pays() has counted the next step
  const bool shares_rows_;               // whether two variables have the same row
  std::vector<double> gradient_before_;  // of the active variables, before a step
  std::vector<double> at_base_;          // gradients at base of active variables, in a snapshot
  Snapshot snapshot_;
  std::int64_t rows_since_rebuild_ = 0;
  double target_ = 0;  // violation to reach, unscaled
  // tolerance at the last check of all variables; for nu-SVC it depends on the margin, which may be
  // smaller than the margin of the active variables
  double checked_tolerance_ = std::numeric_limits<double>::infinity();
  double least_checked_ = std::numeric_limits<double>::infinity();
  int checks_undone_ = 0;
};

}  // namespace

std::size_t matrix_bytes(std::size_t n_variables, Precision precision) {
  const std::size_t n = std::min(n_variables, max_working_set);
  return n * n * bytes_per_pair(precision);
}

std::size_t array_bytes(std::size_t n_variables) { return n_variables * bytes_per_variable; }

SolveReport solve(const KernelSetup& setup, const Points& points, const BoxQP& qp,
                  const Iterate& iterate, const SolveOptions& options, const Snapshot& begin_with) {
  return options.precision == Precision::double_tiles
             ? Solver<double>(setup, points, qp, iterate, options).run(begin_with)
             : Solver<float>(setup, points, qp, iterate, options).run(begin_with);
}

}  // namespace dcsvm
