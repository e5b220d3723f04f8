#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "kernel/kernel_setup.h"
#include "solver/active_kernel.h"
#include "solver/active_set.h"
#include "solver/solve.h"
#include "solver/whole_gradient.h"
#include "solver/working_step.h"

namespace dcsvm {

namespace {

// Of the tolerance: where more than that may have been left out of the gradient on the way, it is
// computed from nothing before convergence is declared.
constexpr double largest_neglected = 0.1;
// A variable is shrunk only where its gradient points out of the box by more than the largest
// violation, or by more than this where the violation is larger still. Smaller values shrink sooner
// and activate more variables again.
constexpr double largest_shrink_margin = 0.2;
// Compacting pays for itself from this part of the active variables on.
constexpr std::size_t shrinkable_part = 5;
// Rows that are kept leave room for a quarter more support vectors than there are.
constexpr std::size_t spare_part = 4;
// Of a working set: kernel values as they are, as they were and as they are computed, and a float64
// factor. Of a variable: counted from the arrays of a solve, those of a kernel product, and the
// iterate.
constexpr std::size_t bytes_per_pair(Precision precision) {
  return 3 * (precision == Precision::double_tiles ? sizeof(double) : sizeof(float)) +
         sizeof(double);
}
constexpr std::size_t bytes_per_variable = 135;

template <class Real>
class Solver {
 public:
  Solver(const KernelSetup& setup, const Points& points, const BoxQp& qp, const Iterate& iterate,
         const SolveOptions& options)
      : setup_(setup),
        points_(points),
        qp_(qp),
        iterate_(iterate),
        options_(options),
        whole_{setup, points, qp, iterate, options, report_},
        kernel_(setup, points, options, report_),
        working_(setup, points, qp, options, report_) {}

  SolveReport run() {
    if (start()) descend();
    if (!whole_.has(Known::nothing) && !whole_.has(Known::at_base)) {
      const Optimality result = whole_.optimality();
      report_.violation = result.violation / result.unit;
      report_.objective = result.objective;
      report_.gap = result.gap;
      report_.converged = result.violation <= options_.tolerance_in(result.unit);
    }
    return report_;
  }

 private:
  void descend() {
    for (;;) {
      const double violation = measure();
      const double tolerance =
          std::min(options_.tolerance_in(qp_.unit_at(active_.multipliers)), most_);
      if (violation <= tolerance) {
        if (!synchronise()) return;
        if (report_.neglected > largest_neglected * tolerance && !rebuild()) return;
        const Optimality now = whole_.optimality();
        most_ = options_.tolerance_in(now.unit);
        if (now.violation <= most_ || !may_go_on()) return;
        if (n_active() < qp_.size) {
          activate();
        } else {
          std::copy_n(iterate_.gradient, qp_.size, active_.gradient.begin());
        }
        continue;
      }
      if (!may_go_on()) {
        synchronise();
        return;
      }
      shrink();
      const WorkingChange change = working_.take(active_, kernel_, tolerance);
      if (!change.has_gradient) update_gradient(change);
    }
  }

  // The initial gradient; false: stopped before it was known. Where rows are expensive and all fit
  // the cache, all variables are active and the rows are computed once, for the gradient and for
  // the steps to come.
  bool start() {
    if (!whole_.has(Known::nothing)) {
      report_.neglected = options_.gradient_error;
      if (!add_change(whole_.at_base())) return false;
      whole_.settle();
      activate();
      return true;
    }
    const auto n_support = static_cast<std::size_t>(std::count_if(
        iterate_.alpha, iterate_.alpha + qp_.size, [](double a) { return a != 0.0; }));
    const bool fits =
        (n_support + n_support / spare_part) * qp_.size * sizeof(float) <= options_.cache_bytes;
    const bool keep_rows = fits && has_expensive_rows(setup_, points_);
    if (n_support == 0 || keep_rows) {
      whole_.set_to_zero();
      if (n_support == 0) whole_.settle();
      load(qp_.everything());
      return n_support == 0 || rebuild();
    }
    if (!rebuild()) return false;
    activate();
    return true;
  }

  // Brings the iterate up to date for all variables: what changed is added to the gradients of
  // those that were shrunk away.
  bool synchronise() {
    whole_.take(active_);
    if (n_active() < qp_.size && !add_change(active_.others(qp_.size))) return false;
    rows_since_rebuild_ = 0;
    whole_.settle();
    return true;
  }

  // The gradient of all variables from nothing; where all of them are active, with the rows that
  // are cached.
  bool rebuild() {
    report_.neglected = 0;
    whole_.set_to_zero();
    const bool is_cached = kernel_.has_cache() && n_active() == qp_.size;
    if (!(is_cached ? add_everything_cached() : add_change(qp_.everything()))) return false;
    whole_.settle();
    return true;
  }

  bool add_everything_cached() {
    Timer timer(report_.seconds_rebuild);
    std::copy_n(iterate_.gradient, qp_.size, active_.gradient.begin());
    std::vector<std::int32_t> support;
    std::vector<double> weights;
    for (std::size_t p = 0; p < n_active(); ++p) {
      if (active_.alpha[p] == 0.0) continue;
      support.push_back(static_cast<std::int32_t>(p));
      weights.push_back(active_.alpha[p]);
    }
    kernel_.add(support, weights, active_.gradient.data(), options_.stop);
    if (is_stopped()) return false;
    std::copy_n(active_.gradient.begin(), qp_.size, iterate_.gradient);
    ++report_.rebuilds;
    return true;
  }

  bool add_change(const std::vector<std::int32_t>& variables) {
    return whole_.add_change(variables, [this] {
      if (is_asked()) options_.published();
    });
  }

  // Chooses the active variables when all gradients are known: those that would not be shrunk at
  // once, or all, where the solve starts from zero.
  void activate() {
    const Violation now = measure_violation(qp_.state(iterate_.alpha, iterate_.gradient));
    const double* alpha = iterate_.alpha;
    const bool started = std::any_of(alpha, alpha + qp_.size, [](double a) { return a != 0.0; });
    std::vector<std::int32_t> variables;
    for (std::size_t i = 0; i < qp_.size; ++i) {
      const double g = now.reduced(iterate_.gradient[i], qp_.sum_at(i));
      const bool quiet = violation_of(alpha[i], qp_.lower[i], qp_.upper[i], g) == 0.0 &&
                         std::fabs(g) > largest_shrink_margin;
      if (!started || !quiet) variables.push_back(static_cast<std::int32_t>(i));
    }
    load(variables);
  }

  // one outer step on the active variables
  double measure() {
    Timer timer(report_.seconds_selection);
    return active_.measure(qp_.n_sums);
  }

  // g += K(active, changed) step. A step whose gradient is not known when it is stopped is taken
  // back.
  void update_gradient(const WorkingChange& change) {
    Timer timer(report_.seconds_tiles);
    rows_since_rebuild_ += static_cast<std::int64_t>(change.positions.size());
    gradient_before_ = active_.gradient;
    const bool has_skipped =
        kernel_.add(change.positions, change.step, active_.gradient.data(), options_.stop);
    if (is_stopped()) {
      active_.gradient.swap(gradient_before_);
      for (std::size_t k = 0; k < change.positions.size(); ++k)
        active_.alpha[static_cast<std::size_t>(change.positions[k])] = change.before[k];
    } else if (has_skipped) {
      whole_.neglect(change.step);
    }
  }

  // Drops variables that have been quiet for some outer steps, once they are enough to pay for
  // compacting.
  void shrink() {
    Timer timer(report_.seconds_selection);
    const std::size_t n = n_active();
    if (n <= complete_set) return;
    const std::size_t n_quiet = active_.count_quiet(largest_shrink_margin);
    if (n_quiet * shrinkable_part < n) return;
    // the gradient of a dropped variable has to be computed again, once, from all support vectors:
    // not before the rows used since the last time have cost as much
    const double row_cost = kernel_.has_cache() ? cached_entry_cost : kernel_.row_cost();
    const auto n_support = std::count_if(active_.alpha.begin(), active_.alpha.end(),
                                         [](double a) { return a != 0.0; });
    if (static_cast<double>(rows_since_rebuild_) * row_cost <
        static_cast<double>(n_support) * kernel_.row_cost())
      return;
    compact(active_.not_quiet());
  }

  void compact(const std::vector<std::int32_t>& kept) {
    active_.write_back(iterate_.alpha);
    std::vector<std::int32_t> variables;
    for (const std::int32_t p : kept)
      variables.push_back(active_.index[static_cast<std::size_t>(p)]);
    kernel_.compact(kept, qp_.rows_of(variables));
    const std::vector<std::int32_t> position = active_.keep(kept, kernel_.n_lanes());
    working_.compact(position);
  }

  void load(const std::vector<std::int32_t>& variables) {
    kernel_.load(qp_.rows_of(variables));
    active_.load(qp_, variables, iterate_.alpha, iterate_.gradient, kernel_.n_lanes());
    working_.reset();
  }

  // Tells the progress; returns whether the iterate is to be brought up to date and published.
  bool is_asked() {
    return options_.progress &&
           options_.progress({active_.largest_violation / qp_.unit_at(active_.multipliers),
                              n_active(), report_.outer_steps});
  }

  bool may_go_on() {
    if (working_.is_stuck()) return false;
    if (options_.iterations_left(report_.iterations) <= 0) return false;
    if (is_asked()) {
      // a variable that is shrunk away later needs its gradient at base
      const std::vector<double> at_base(iterate_.gradient, iterate_.gradient + qp_.size);
      whole_.take(active_);
      options_.published();
      std::copy(at_base.begin(), at_base.end(), iterate_.gradient);
    }
    return !is_stopped();
  }

  bool is_stopped() const { return is_requested(options_.stop); }

  std::size_t n_active() const { return active_.size(); }

  const KernelSetup& setup_;
  const Points& points_;
  const BoxQp& qp_;
  const Iterate& iterate_;
  const SolveOptions& options_;
  SolveReport report_;

  WholeGradient whole_;
  ActiveSet active_;
  ActiveKernel kernel_;
  WorkingStep<Real> working_;
  std::vector<double> gradient_before_;  // of the active variables, before a step
  std::int64_t rows_since_rebuild_ = 0;
  // The tolerance when all variables were last looked at: their margin may be smaller than that of
  // the active ones.
  double most_ = std::numeric_limits<double>::infinity();
};

}  // namespace

std::size_t matrix_bytes(std::size_t n_variables, Precision precision) {
  const std::size_t n = std::min(n_variables, largest_working_set);
  return n * n * bytes_per_pair(precision);
}

std::size_t array_bytes(std::size_t n_variables) { return n_variables * bytes_per_variable; }

SolveReport solve(const KernelSetup& setup, const Points& points, const BoxQp& qp,
                  const Iterate& iterate, const SolveOptions& options) {
  return options.precision == Precision::double_tiles
             ? Solver<double>(setup, points, qp, iterate, options).run()
             : Solver<float>(setup, points, qp, iterate, options).run();
}

}  // namespace dcsvm
