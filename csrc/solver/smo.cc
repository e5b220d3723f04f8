#include "solver/smo.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <vector>

#include "kernel/kernel_cost.h"
#include "solver/active_kernel.h"
#include "solver/active_set.h"
#include "solver/selection.h"
#include "solver/timer.h"
#include "solver/whole_gradient.h"
#include "solver/working_kernel.h"
#include "solver/working_set.h"

namespace dcsvm {

namespace {

// The smallest has kernel values that stay in the second-level cache. Larger ones are for problems
// whose outer steps cost most: they are compared after every few.
constexpr std::size_t smallest_working_set = 512;
constexpr std::size_t largest_working_set = 1024;
constexpr int steps_compared = 8;
constexpr double too_dear = 2.0;            // times the other cost
constexpr double selection_cost = 10.0;     // nanoseconds, fixed, for an active variable
constexpr std::size_t complete_set = 1024;  // a problem of at most this many is one working set
constexpr double inner_reduction = 0.1;     // of the working set's own violation
constexpr double inner_share = 0.3;         // of the tolerance: no need to be better than that
// Of the tolerance: where more than that may have been left out of the gradient on the way, it is
// computed from nothing before convergence is declared.
constexpr double largest_neglected = 0.1;
constexpr double largest_shrink_margin = 0.2;
// Of a working set: float32 values as they are, as they were and as they are computed, and a
// float64 factor. Of a variable: counted from the arrays below, those of a kernel product, and the
// iterate.
constexpr std::size_t bytes_per_pair = 3 * sizeof(float) + sizeof(double);
constexpr std::size_t bytes_per_variable = 135;
constexpr int most_stalls = 6;  // each asks ten times more of the working set

class Solver {
 public:
  Solver(const KernelSetup& setup, const Points& points, const BoxQp& qp, const Iterate& iterate,
         const SolveOptions& options)
      : setup_(setup),
        points_(points),
        qp_(qp),
        iterate_(iterate),
        options_(options),
        whole_(setup, points, qp, iterate, options, report_),
        kernel_(setup, points, options.reach, options.cache_bytes, options.lane_bytes,
                options.n_threads) {}

  SolveReport run();

 private:
  void descend();

  // gradient over all variables; false: stopped before it was known
  bool start();
  bool synchronise();
  bool rebuild();
  bool add_everything_cached();
  bool add_change(const std::vector<std::int32_t>& variables);
  void activate();

  // one outer step on the active variables
  double measure();
  void select();
  void choose_working_set();
  void balance();
  void solve_working_set();
  void update_gradient(const std::vector<std::int32_t>& changed, const std::vector<double>& step);
  void shrink();
  void compact(const std::vector<std::int32_t>& kept);
  void load(const std::vector<std::int32_t>& variables);
  void fill_working_kernel(const std::vector<std::int32_t>& previous);
  bool is_asked();
  bool may_go_on();
  bool is_stopped() const { return options_.stop && options_.stop->is_requested(); }

  std::size_t n_active() const { return active_.size(); }
  std::int32_t row_at(std::int32_t position) const {
    return static_cast<std::int32_t>(
        qp_.row_of(static_cast<std::size_t>(active_.index[static_cast<std::size_t>(position)])));
  }

  const KernelSetup& setup_;
  const Points& points_;
  const BoxQp& qp_;
  const Iterate& iterate_;
  const SolveOptions& options_;
  SolveReport report_;

  WholeGradient whole_;
  ActiveSet active_;
  ActiveKernel kernel_;
  std::int64_t rows_since_rebuild_ = 0;
  int stalls_ = 0;  // outer steps in a row that changed nothing
  std::size_t working_set_size_ = smallest_working_set;
  int steps_counted_ = 0;
  double inner_cost_ = 0, outer_cost_ = 0;  // nanoseconds by the fixed model, of those steps

  // working set: positions in the active list, ascending
  std::vector<std::int32_t> working_;
  WorkingKernel working_kernel_;
  WorkingSetSolver working_set_solver_;
};

SolveReport Solver::run() {
  if (start()) descend();
  const ActiveKernel::Count& count = kernel_.count();
  report_.kernel_evaluations += count.evaluated;
  report_.pairs_skipped += count.skipped;
  report_.rows_computed = count.rows_computed;
  report_.rows_reused = count.rows_reused;
  if (!whole_.has(Known::nothing) && !whole_.has(Known::at_base)) {
    const Optimality result = whole_.optimality();
    report_.violation = result.violation;
    report_.objective = result.objective;
    report_.gap = result.gap;
    report_.converged = result.violation <= options_.tolerance;
  }
  return report_;
}

void Solver::descend() {
  for (;;) {
    const double violation = measure();
    if (violation <= options_.tolerance) {
      if (!synchronise()) return;
      if (report_.neglected > largest_neglected * options_.tolerance && !rebuild()) return;
      if (whole_.optimality().violation <= options_.tolerance || !may_go_on()) return;
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
    select();
    solve_working_set();
    ++report_.outer_steps;
    balance();
  }
}

// The initial gradient. Where rows are cached and expensive, all variables are active and their
// rows are computed once for the gradient and for the steps to come.
bool Solver::start() {
  if (!whole_.has(Known::nothing)) {
    report_.neglected = options_.gradient_error;
    if (!add_change(whole_.at_base())) return false;
    whole_.settle();
    activate();
    return true;
  }
  const auto n_support = static_cast<std::size_t>(
      std::count_if(iterate_.alpha, iterate_.alpha + qp_.size, [](double a) { return a != 0.0; }));
  const bool fits = (n_support + n_support / 4) * qp_.size * sizeof(float) <= options_.cache_bytes;
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

// Brings the iterate up to date for all variables: those that were shrunk away get what changed
// since.
bool Solver::synchronise() {
  whole_.take(active_);
  if (n_active() < qp_.size && !add_change(active_.others(qp_.size))) return false;
  rows_since_rebuild_ = 0;
  whole_.settle();
  return true;
}

// The gradient of all variables from nothing; where all of them are active, with the rows that are
// cached.
bool Solver::rebuild() {
  report_.neglected = 0;
  whole_.set_to_zero();
  const bool is_cached = kernel_.has_cache() && n_active() == qp_.size;
  if (!(is_cached ? add_everything_cached() : add_change(qp_.everything()))) return false;
  whole_.settle();
  return true;
}

bool Solver::add_everything_cached() {
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

bool Solver::add_change(const std::vector<std::int32_t>& variables) {
  return whole_.add_change(variables, [this] {
    if (is_asked()) options_.published();
  });
}

// Returns whether the iterate is to be brought up to date, and `published` to be called.
bool Solver::is_asked() {
  return options_.progress &&
         options_.progress({active_.largest_violation, n_active(), report_.outer_steps});
}

bool Solver::may_go_on() {
  if (stalls_ >= most_stalls) return false;
  if (options_.max_iterations >= 0 && report_.iterations >= options_.max_iterations) return false;
  if (is_asked()) {
    // those that are shrunk away later need their gradient at base
    const std::vector<double> at_base(iterate_.gradient, iterate_.gradient + qp_.size);
    whole_.take(active_);
    options_.published();
    std::copy(at_base.begin(), at_base.end(), iterate_.gradient);
  }
  return !is_stopped();
}

// Chooses the active variables after a rebuild: all but those far inside their bound's side.
void Solver::activate() {
  const Optimality now = whole_.optimality();
  const double* alpha = iterate_.alpha;
  const bool started = std::any_of(alpha, alpha + qp_.size, [](double a) { return a != 0.0; });
  std::vector<std::int32_t> variables;
  for (std::size_t i = 0; i < qp_.size; ++i) {
    const int group = qp_.group_of(i);
    const double g =
        iterate_.gradient[i] + (group < 0 ? 0.0 : now.multipliers[static_cast<std::size_t>(group)]);
    const bool quiet = projected_gradient(alpha[i], qp_.lower[i], qp_.upper[i], g) == 0.0 &&
                       std::fabs(g) > largest_shrink_margin;
    if (!started || !quiet) variables.push_back(static_cast<std::int32_t>(i));
  }
  load(variables);
}

void Solver::load(const std::vector<std::int32_t>& variables) {
  kernel_.load(qp_.rows_of(variables));
  active_.load(qp_, variables, iterate_.alpha, iterate_.gradient, kernel_.n_lanes());
  working_.clear();
}

double Solver::measure() {
  Timer timer(report_.seconds_selection);
  return active_.measure(qp_.n_groups);
}

void Solver::select() {
  const std::vector<std::int32_t> previous = working_;
  {
    Timer timer(report_.seconds_selection);
    choose_working_set();
  }
  fill_working_kernel(previous);
}

void Solver::choose_working_set() {
  if (n_active() <= complete_set) {
    working_.resize(n_active());
    std::iota(working_.begin(), working_.end(), 0);
  } else {
    const SelectionView view = active_.view();
    if (report_.outer_steps % 2 == 0 && setup_.kernel.type == KernelType::rbf) {
      select_neighbourhood(view, kernel_.values_of(most_violating(view)),
                           inner_share * options_.tolerance, working_set_size_, working_);
    } else {
      select_working_set(view, working_set_size_, working_);
    }
  }
}

// A larger working set does more with each outer step, and each of its updates costs more.
void Solver::balance() {
  if (++steps_counted_ < steps_compared) return;
  if (outer_cost_ > too_dear * inner_cost_) {
    working_set_size_ = std::min(2 * working_set_size_, largest_working_set);
  } else if (inner_cost_ > too_dear * outer_cost_) {
    working_set_size_ = std::max(working_set_size_ / 2, smallest_working_set);
  }
  steps_counted_ = 0;
  inner_cost_ = outer_cost_ = 0;
}

void Solver::fill_working_kernel(const std::vector<std::int32_t>& previous) {
  Timer timer(report_.seconds_tiles);
  Members members;
  members.lanes = working_;
  std::vector<std::int32_t> from(working_.size(), -1);
  std::size_t k = 0;
  for (std::size_t w = 0; w < working_.size(); ++w) {
    members.rows.push_back(row_at(working_[w]));
    members.cached.push_back(kernel_.cached(working_[w]));
    while (k < previous.size() && previous[k] < working_[w]) ++k;
    if (k < previous.size() && previous[k] == working_[w]) from[w] = static_cast<std::int32_t>(k);
  }
  report_.kernel_evaluations +=
      working_kernel_.fill(setup_, points_, members, from, options_.n_threads);
}

void Solver::solve_working_set() {
  const std::size_t n = working_.size(), stride = working_kernel_.stride();
  std::vector<double> a(stride, 0.0), g(stride, 0.0), lower(stride, 0.0), upper(stride, 0.0);
  std::vector<std::int8_t> group(active_.group.empty() ? 0 : stride, -1);
  double largest = 0;
  for (std::size_t w = 0; w < n; ++w) {
    const auto p = static_cast<std::size_t>(working_[w]);
    a[w] = active_.alpha[p];
    g[w] = active_.gradient[p];
    lower[w] = active_.lower[p];
    upper[w] = active_.upper[p];
    if (!active_.group.empty()) group[w] = active_.group[p];
    largest = std::max(largest, active_.violation[p]);
  }
  const bool complete = n == n_active();
  const double tolerance =
      complete ? 0.9 * options_.tolerance
               : std::max(inner_reduction * largest, inner_share * options_.tolerance) *
                     std::pow(0.1, stalls_);
  const std::int64_t limit = options_.max_iterations < 0
                                 ? std::numeric_limits<std::int64_t>::max()
                                 : options_.max_iterations - report_.iterations;
  WorkingSetReport inner;
  {
    Timer timer(report_.seconds_inner);
    const auto budget =
        static_cast<std::int64_t>(complete ? 1000 : 20) * static_cast<std::int64_t>(n);
    inner = working_set_solver_.solve(
        {n, stride, working_kernel_.data(), a.data(), g.data(), lower.data(), upper.data(),
         active_.group.empty() ? nullptr : group.data(), qp_.n_groups},
        tolerance, std::min(limit, budget), options_.n_threads);
  }
  report_.iterations += std::max<std::int64_t>(inner.updates, 1);
  report_.newton_steps += inner.newton_steps;
  report_.seconds_newton += inner.seconds_newton;
  std::vector<std::int32_t> changed;
  std::vector<double> step;
  for (std::size_t w = 0; w < n; ++w) {
    const auto p = static_cast<std::size_t>(working_[w]);
    if (a[w] == active_.alpha[p]) continue;
    changed.push_back(working_[w]);
    step.push_back(a[w] - active_.alpha[p]);
    active_.alpha[p] = a[w];
  }
  stalls_ = changed.empty() ? stalls_ + 1 : 0;
  inner_cost_ += inner.cost;
  outer_cost_ += static_cast<double>(n_active()) *
                 (static_cast<double>(changed.size()) * kernel_.row_cost() + selection_cost);
  if (complete) {
    std::copy_n(g.begin(), n, active_.gradient.begin());
  } else {
    update_gradient(changed, step);
  }
}

// g += K(active, changed) step.
void Solver::update_gradient(const std::vector<std::int32_t>& changed,
                             const std::vector<double>& step) {
  Timer timer(report_.seconds_tiles);
  rows_since_rebuild_ += static_cast<std::int64_t>(changed.size());
  if (kernel_.add(changed, step, active_.gradient.data())) whole_.neglect(step);
}

// Drops variables that have been at a bound, pointing outwards, for some outer steps (the rule of
// LIBSVM, made lazier in time and stricter in size), once they are enough to pay for compacting.
void Solver::shrink() {
  Timer timer(report_.seconds_selection);
  const std::size_t n = n_active();
  if (n <= complete_set) return;
  const std::size_t n_quiet = active_.count_quiet(largest_shrink_margin);
  if (n_quiet * 5 < n) return;
  // a lane that is dropped has to be rebuilt once, from all support vectors: not before the rows
  // used since the last rebuild have cost as much
  const double row_cost = kernel_.has_cache() ? cached_entry_cost : kernel_.row_cost();
  const auto n_support =
      std::count_if(active_.alpha.begin(), active_.alpha.end(), [](double a) { return a != 0.0; });
  if (static_cast<double>(rows_since_rebuild_) * row_cost <
      static_cast<double>(n_support) * kernel_.row_cost())
    return;
  compact(active_.not_quiet());
}

void Solver::compact(const std::vector<std::int32_t>& kept) {
  active_.write_back(iterate_.alpha);
  std::vector<std::int32_t> variables;
  for (const std::int32_t p : kept) variables.push_back(active_.index[static_cast<std::size_t>(p)]);
  kernel_.compact(kept, qp_.rows_of(variables));
  const std::vector<std::int32_t> position = active_.keep(kept, kernel_.n_lanes());
  // members of the working set that stay are carried over with their kernel values
  std::vector<std::int32_t> carried, from;
  for (std::size_t w = 0; w < working_.size(); ++w) {
    const std::int32_t now = position[static_cast<std::size_t>(working_[w])];
    if (now < 0) continue;
    carried.push_back(now);
    from.push_back(static_cast<std::int32_t>(w));
  }
  working_ = carried;
  working_kernel_.keep(from);
}

}  // namespace

std::size_t matrix_bytes(std::size_t n_variables) {
  const std::size_t n = std::min(n_variables, largest_working_set);
  return n * n * bytes_per_pair;
}

std::size_t array_bytes(std::size_t n_variables) { return n_variables * bytes_per_variable; }

SolveReport solve(const KernelSetup& setup, const Points& points, const BoxQp& qp,
                  const Iterate& iterate, const SolveOptions& options) {
  return Solver(setup, points, qp, iterate, options).run();
}

}  // namespace dcsvm
