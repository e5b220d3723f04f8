#include "smo.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <limits>
#include <numeric>
#include <vector>

#include "active_kernel.h"
#include "kernel_product.h"
#include "selection.h"
#include "working_kernel.h"
#include "working_set.h"

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
constexpr int quiet_steps = 3;  // outer steps at a bound before a variable is shrunk
constexpr double largest_shrink_margin = 0.2;
constexpr int most_stalls = 6;  // each asks ten times more of the working set

class Timer {
 public:
  explicit Timer(double& total) : total_(total), start_(std::chrono::steady_clock::now()) {}
  ~Timer() {
    total_ += std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count();
  }

 private:
  double& total_;
  std::chrono::steady_clock::time_point start_;
};

class Solver {
 public:
  Solver(const KernelSetup& setup, const Points& points, const BoxQp& qp, double* alpha,
         double* gradient, const SolveOptions& options)
      : setup_(setup),
        points_(points),
        qp_(qp),
        alpha_(alpha),
        gradient_(gradient),
        options_(options),
        kernel_(setup, points, options.reach, options.cache_bytes, options.n_threads) {}

  SolveReport run();

 private:
  // gradient over all variables
  void start();
  void synchronise();
  void rebuild();
  void add_change(const std::vector<std::int32_t>& variables, const std::vector<double>& since);
  void neglect(const std::vector<double>& weights);
  void activate();
  void write_back();
  double everywhere_violation() const;

  // one outer step on the active variables
  double measure();
  double largest_projected_gradient(std::size_t n);
  void select();
  void choose_working_set();
  void balance();
  void solve_working_set();
  void update_gradient(const std::vector<std::int32_t>& changed, const std::vector<double>& step);
  void shrink();
  void compact(const std::vector<std::int32_t>& kept);
  void load(const std::vector<std::int32_t>& variables);
  void fill_working_kernel(const std::vector<std::int32_t>& previous);
  bool may_go_on();

  std::size_t n_active() const { return active_.size(); }
  std::int32_t row_at(std::int32_t position) const {
    return static_cast<std::int32_t>(
        qp_.row_of(static_cast<std::size_t>(active_[static_cast<std::size_t>(position)])));
  }
  double reduced_gradient(std::size_t p) const {
    return group_.empty() || group_[p] < 0
               ? g_[p]
               : g_[p] + multipliers_[static_cast<std::size_t>(group_[p])];
  }

  const KernelSetup& setup_;
  const Points& points_;
  const BoxQp& qp_;
  double* alpha_;
  double* gradient_;
  const SolveOptions& options_;
  SolveReport report_;

  std::vector<double> base_alpha_;  // alpha at which gradient_ is exact

  // active variables in ascending order, one lane each
  std::vector<std::int32_t> active_;
  std::vector<double> a_, g_, lower_, upper_, violation_;
  std::vector<std::int8_t> group_;
  std::vector<std::uint8_t> quiet_, grows_;
  std::vector<std::int32_t> violators_;  // positions, ascending
  double largest_violation_ = 0;
  std::vector<double> multipliers_;
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
  start();
  for (;;) {
    const double violation = measure();
    if (violation <= options_.tolerance) {
      synchronise();
      if (report_.neglected > largest_neglected * options_.tolerance) rebuild();
      if (everywhere_violation() <= options_.tolerance || !may_go_on()) break;
      if (n_active() < qp_.size) {
        activate();
      } else {
        std::copy_n(gradient_, qp_.size, g_.begin());
      }
      continue;
    }
    if (!may_go_on()) {
      synchronise();
      break;
    }
    shrink();
    select();
    solve_working_set();
    ++report_.outer_steps;
    balance();
  }
  const ActiveKernel::Count& count = kernel_.count();
  report_.kernel_evaluations += count.evaluated;
  report_.pairs_skipped += count.skipped;
  report_.rows_computed = count.rows_computed;
  report_.rows_reused = count.rows_reused;
  const Optimality result = optimality(qp_, alpha_, gradient_);
  report_.violation = result.violation;
  report_.objective = result.objective;
  report_.gap = result.gap;
  report_.converged = result.violation <= options_.tolerance;
  return report_;
}

// The initial gradient. Where rows are cached and dear, all variables are active and their rows are
// computed once for the gradient and for the steps to come.
void Solver::start() {
  if (options_.gradient_given) {
    report_.neglected = options_.gradient_error;
    base_alpha_.assign(alpha_, alpha_ + qp_.size);
    activate();
    return;
  }
  const auto n_support = static_cast<std::size_t>(
      std::count_if(alpha_, alpha_ + qp_.size, [](double a) { return a != 0.0; }));
  const bool fits = (n_support + n_support / 4) * qp_.size * sizeof(float) <= options_.cache_bytes;
  const bool keep_rows = fits && has_dear_rows(setup_, points_);
  if (n_support == 0 || keep_rows) {
    for (std::size_t i = 0; i < qp_.size; ++i) gradient_[i] = -qp_.linear[i];
    std::vector<std::int32_t> everything(qp_.size);
    std::iota(everything.begin(), everything.end(), 0);
    load(everything);
    if (n_support > 0) rebuild();
    base_alpha_.assign(alpha_, alpha_ + qp_.size);
  } else {
    rebuild();
    activate();
  }
}

// Brings alpha_ and gradient_ up to date for all variables: those that were shrunk away get what
// changed since.
void Solver::synchronise() {
  write_back();
  for (std::size_t p = 0; p < n_active(); ++p) gradient_[active_[p]] = g_[p];
  if (n_active() < qp_.size) {
    std::vector<std::int32_t> inactive;
    std::size_t p = 0;
    for (std::size_t i = 0; i < qp_.size; ++i) {
      if (p < n_active() && static_cast<std::size_t>(active_[p]) == i) {
        ++p;
      } else {
        inactive.push_back(static_cast<std::int32_t>(i));
      }
    }
    add_change(inactive, base_alpha_);
  }
  base_alpha_.assign(alpha_, alpha_ + qp_.size);
  rows_since_rebuild_ = 0;
}

// The gradient of all variables from nothing; where all of them are active, with the rows that are
// cached.
void Solver::rebuild() {
  report_.neglected = 0;
  for (std::size_t i = 0; i < qp_.size; ++i) gradient_[i] = -qp_.linear[i];
  if (kernel_.has_cache() && n_active() == qp_.size) {
    Timer timer(report_.seconds_rebuild);
    std::vector<std::int32_t> support;
    std::vector<double> weights;
    for (std::size_t p = 0; p < n_active(); ++p) {
      g_[p] = -qp_.linear[p];
      if (a_[p] == 0.0) continue;
      support.push_back(static_cast<std::int32_t>(p));
      weights.push_back(a_[p]);
    }
    update_gradient(support, weights);
    std::copy_n(g_.begin(), qp_.size, gradient_);
    ++report_.rebuilds;
  } else {
    std::vector<std::int32_t> everything(qp_.size);
    std::iota(everything.begin(), everything.end(), 0);
    add_change(everything, std::vector<double>(qp_.size, 0.0));
  }
  base_alpha_.assign(alpha_, alpha_ + qp_.size);
}

// gradient_ of some variables += K (alpha_ - since).
void Solver::add_change(const std::vector<std::int32_t>& variables,
                        const std::vector<double>& since) {
  Timer timer(report_.seconds_rebuild);
  std::vector<std::int32_t> sources, targets;
  std::vector<double> weights;
  for (std::size_t i = 0; i < qp_.size; ++i) {
    if (alpha_[i] == since[i]) continue;
    sources.push_back(static_cast<std::int32_t>(qp_.row_of(i)));
    weights.push_back(alpha_[i] - since[i]);
  }
  if (sources.empty() || variables.empty()) return;
  for (const std::int32_t i : variables)
    targets.push_back(static_cast<std::int32_t>(qp_.row_of(static_cast<std::size_t>(i))));
  std::vector<double> sums(targets.size(), 0.0);
  const ProductCount done = kernel_product(
      setup_, {&points_, targets.data(), targets.size()},
      {&points_, sources.data(), sources.size()}, {1, nullptr, nullptr, weights.data()},
      Precision::single_tiles, options_.reach, options_.n_threads, sums.data());
  for (std::size_t k = 0; k < sums.size(); ++k) gradient_[variables[k]] += sums[k];
  report_.kernel_evaluations += done.evaluated;
  report_.pairs_skipped += done.skipped;
  if (done.skipped > 0) neglect(weights);
  ++report_.rebuilds;
}

// Kernel values out of reach were left out of a product with these weights.
void Solver::neglect(const std::vector<double>& weights) {
  for (const double w : weights) report_.neglected += options_.reach.value * std::fabs(w);
}

bool Solver::may_go_on() {
  if (stalls_ >= most_stalls) return false;
  if (options_.max_iterations >= 0 && report_.iterations >= options_.max_iterations) return false;
  if (!options_.progress) return true;
  return options_.progress({largest_violation_, n_active(), report_.outer_steps});
}

double Solver::everywhere_violation() const { return optimality(qp_, alpha_, gradient_).violation; }

void Solver::write_back() {
  for (std::size_t p = 0; p < n_active(); ++p) alpha_[active_[p]] = a_[p];
}

// Chooses the active variables after a rebuild: all but those far inside their bound's side.
void Solver::activate() {
  const Optimality now = optimality(qp_, alpha_, gradient_);
  const double margin = largest_shrink_margin;
  const bool started = std::any_of(alpha_, alpha_ + qp_.size, [](double a) { return a != 0.0; });
  std::vector<std::int32_t> variables;
  for (std::size_t i = 0; i < qp_.size; ++i) {
    const int group = qp_.group_of(i);
    const double g =
        gradient_[i] + (group < 0 ? 0.0 : now.multipliers[static_cast<std::size_t>(group)]);
    const bool quiet = projected_gradient(alpha_[i], qp_.lower[i], qp_.upper[i], g) == 0.0 &&
                       std::fabs(g) > margin;
    if (!started || !quiet) variables.push_back(static_cast<std::int32_t>(i));
  }
  load(variables);
}

void Solver::load(const std::vector<std::int32_t>& variables) {
  active_ = variables;
  const std::size_t n = n_active();
  std::vector<std::int32_t> rows(n);
  for (std::size_t p = 0; p < n; ++p)
    rows[p] = static_cast<std::int32_t>(qp_.row_of(static_cast<std::size_t>(active_[p])));
  kernel_.load(rows);
  const std::size_t n_lanes = kernel_.n_lanes();
  a_.assign(n_lanes, 0.0);
  g_.assign(n_lanes, 0.0);
  lower_.assign(n_lanes, 0.0);
  upper_.assign(n_lanes, 0.0);
  violation_.assign(n_lanes, 0.0);
  quiet_.assign(n, 0);
  grows_.assign(n, 0);
  group_.clear();
  if (qp_.group) group_.resize(n);
  for (std::size_t p = 0; p < n; ++p) {
    const auto i = static_cast<std::size_t>(active_[p]);
    a_[p] = alpha_[i];
    g_[p] = gradient_[i];
    lower_[p] = qp_.lower[i];
    upper_[p] = qp_.upper[i];
    if (qp_.group) group_[p] = qp_.group[i];
  }
  working_.clear();
}

double Solver::measure() {
  Timer timer(report_.seconds_selection);
  std::vector<GroupRange> ranges(static_cast<std::size_t>(qp_.n_groups));
  for (std::size_t p = 0; p < group_.size(); ++p) {
    if (group_[p] >= 0)
      ranges[static_cast<std::size_t>(group_[p])].include(a_[p], lower_[p], upper_[p], g_[p]);
  }
  double largest = 0;
  multipliers_.clear();
  for (const GroupRange& range : ranges) {
    multipliers_.push_back(range.multiplier());
    largest = std::max(largest, range.violation());
  }
  if (group_.empty()) {
    largest = std::max(largest, largest_projected_gradient(n_active()));
  } else {
    for (std::size_t p = 0; p < n_active(); ++p) {
      violation_[p] = projected_gradient(a_[p], lower_[p], upper_[p], reduced_gradient(p));
      if (group_[p] < 0) largest = std::max(largest, violation_[p]);
    }
  }
  violators_.clear();
  for (std::size_t p = 0; p < n_active(); ++p) {
    if (violation_[p] > 0) violators_.push_back(static_cast<std::int32_t>(p));
  }
  for (const std::int32_t p : violators_)
    grows_[static_cast<std::size_t>(p)] = reduced_gradient(static_cast<std::size_t>(p)) < 0;
  largest_violation_ = largest;
  return largest;
}

// Fills violation_ where there are no groups; plain arrays and no branches, for vectors.
double Solver::largest_projected_gradient(std::size_t n) {
  const double *a = a_.data(), *g = g_.data(), *lower = lower_.data(), *upper = upper_.data();
  double* violation = violation_.data();
  double largest = 0;
  for (std::size_t p = 0; p < n; ++p) {
    const double down = a[p] > lower[p] ? g[p] : 0.0, up = a[p] < upper[p] ? -g[p] : 0.0;
    const double v = down > up ? down : up;
    violation[p] = v > 0 ? v : 0.0;
  }
  for (std::size_t p = 0; p < n; ++p) largest = violation[p] > largest ? violation[p] : largest;
  return largest;
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
    const SelectionView view{violators_, n_active(),    violation_.data(), grows_.data(),
                             a_.data(),  lower_.data(), upper_.data(),     active_.data()};
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
  std::vector<std::int32_t> rows(working_.size()), from(working_.size(), -1);
  std::size_t k = 0;
  for (std::size_t w = 0; w < working_.size(); ++w) {
    rows[w] = row_at(working_[w]);
    while (k < previous.size() && previous[k] < working_[w]) ++k;
    if (k < previous.size() && previous[k] == working_[w]) from[w] = static_cast<std::int32_t>(k);
  }
  report_.kernel_evaluations +=
      working_kernel_.fill(setup_, points_, rows, from, options_.n_threads);
}

void Solver::solve_working_set() {
  const std::size_t n = working_.size(), stride = working_kernel_.stride();
  std::vector<double> a(stride, 0.0), g(stride, 0.0), lower(stride, 0.0), upper(stride, 0.0);
  std::vector<std::int8_t> group(group_.empty() ? 0 : stride, -1);
  double largest = 0;
  for (std::size_t w = 0; w < n; ++w) {
    const auto p = static_cast<std::size_t>(working_[w]);
    a[w] = a_[p];
    g[w] = g_[p];
    lower[w] = lower_[p];
    upper[w] = upper_[p];
    if (!group_.empty()) group[w] = group_[p];
    largest = std::max(largest, violation_[p]);
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
         group_.empty() ? nullptr : group.data(), qp_.n_groups},
        tolerance, std::min(limit, budget), options_.n_threads);
  }
  report_.iterations += std::max<std::int64_t>(inner.updates, 1);
  report_.newton_steps += inner.newton_steps;
  report_.seconds_newton += inner.seconds_newton;
  std::vector<std::int32_t> changed;
  std::vector<double> step;
  for (std::size_t w = 0; w < n; ++w) {
    const auto p = static_cast<std::size_t>(working_[w]);
    if (a[w] == a_[p]) continue;
    changed.push_back(working_[w]);
    step.push_back(a[w] - a_[p]);
    a_[p] = a[w];
  }
  stalls_ = changed.empty() ? stalls_ + 1 : 0;
  inner_cost_ += inner.cost;
  outer_cost_ += static_cast<double>(n_active()) *
                 (static_cast<double>(changed.size()) * kernel_.row_cost() + selection_cost);
  if (complete) {
    std::copy_n(g.begin(), n, g_.begin());
  } else {
    update_gradient(changed, step);
  }
}

// g += K(active, changed) step.
void Solver::update_gradient(const std::vector<std::int32_t>& changed,
                             const std::vector<double>& step) {
  Timer timer(report_.seconds_tiles);
  rows_since_rebuild_ += static_cast<std::int64_t>(changed.size());
  if (kernel_.add(changed, step, g_.data())) neglect(step);
}

// Drops variables that have been at a bound, pointing outwards, for some outer steps (the rule of
// LIBSVM, made lazier in time and stricter in size), once they are enough to pay for compacting.
void Solver::shrink() {
  Timer timer(report_.seconds_selection);
  const std::size_t n = n_active();
  if (n <= complete_set) return;
  const double margin = std::min(largest_violation_, largest_shrink_margin);
  std::size_t n_quiet = 0;
  for (std::size_t p = 0; p < n; ++p) {
    const bool quiet = violation_[p] == 0.0 && std::fabs(reduced_gradient(p)) > margin;
    const int steps = quiet_[p] + (quiet_[p] < quiet_steps);
    quiet_[p] = static_cast<std::uint8_t>(quiet ? steps : 0);
    n_quiet += quiet_[p] == quiet_steps;
  }
  if (n_quiet * 5 < n) return;
  // a lane that is dropped has to be rebuilt once, from all support vectors: not before the rows
  // used since the last rebuild have cost as much
  const double row_cost = kernel_.has_cache() ? cached_entry_cost : kernel_.row_cost();
  const auto n_support = std::count_if(a_.begin(), a_.end(), [](double a) { return a != 0.0; });
  if (static_cast<double>(rows_since_rebuild_) * row_cost <
      static_cast<double>(n_support) * kernel_.row_cost())
    return;
  std::vector<std::int32_t> kept;
  for (std::size_t p = 0; p < n; ++p) {
    if (quiet_[p] < quiet_steps) kept.push_back(static_cast<std::int32_t>(p));
  }
  compact(kept);
}

void Solver::compact(const std::vector<std::int32_t>& kept) {
  std::vector<std::int32_t> rows(kept.size()), position(n_active(), -1);
  for (std::size_t k = 0; k < kept.size(); ++k) {
    const auto p = static_cast<std::size_t>(kept[k]);
    position[p] = static_cast<std::int32_t>(k);
    alpha_[active_[p]] = a_[p];
    rows[k] = static_cast<std::int32_t>(qp_.row_of(static_cast<std::size_t>(active_[p])));
  }
  for (std::size_t p = 0; p < n_active(); ++p) alpha_[active_[p]] = a_[p];
  const auto keep = [&kept](auto& values, std::size_t size) {
    for (std::size_t k = 0; k < kept.size(); ++k)
      values[k] = values[static_cast<std::size_t>(kept[k])];
    values.resize(size);
  };
  kernel_.compact(kept, rows);
  const std::size_t n_lanes = kernel_.n_lanes();
  keep(active_, kept.size());
  keep(quiet_, kept.size());
  keep(grows_, kept.size());
  if (!group_.empty()) keep(group_, kept.size());
  for (std::vector<double>* values : {&a_, &g_, &lower_, &upper_, &violation_}) {
    keep(*values, kept.size());
    values->resize(n_lanes, 0.0);
  }
  std::vector<std::int32_t> violating;
  for (const std::int32_t p : violators_) {
    if (position[static_cast<std::size_t>(p)] >= 0)
      violating.push_back(position[static_cast<std::size_t>(p)]);
  }
  violators_ = violating;
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

SolveReport solve(const KernelSetup& setup, const Points& points, const BoxQp& qp, double* alpha,
                  double* gradient, const SolveOptions& options) {
  return Solver(setup, points, qp, alpha, gradient, options).run();
}

}  // namespace dcsvm
