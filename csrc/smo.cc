#include "smo.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <limits>
#include <vector>

#include "kernel_product.h"
#include "row_cache.h"
#include "working_set.h"

namespace dcsvm {

namespace {

constexpr std::size_t smallest_working_set = 256;
constexpr std::size_t largest_working_set = 2048;
constexpr double inner_reduction = 0.1;       // of the working set's own violation
constexpr double caching_pays_above = 0.8;    // nanoseconds a kernel value; reading one costs less
constexpr std::size_t query_block = 64;
constexpr int quiet_steps = 3;                // outer steps at a bound before a variable is shrunk
constexpr double largest_shrink_margin = 0.5;
constexpr int most_stalls = 6;                // each asks ten times more of the working set

class Timer {
 public:
  explicit Timer(double& total) : total_(total), start_(std::chrono::steady_clock::now()) {}
  ~Timer() { total_ += std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count(); }

 private:
  double& total_;
  std::chrono::steady_clock::time_point start_;
};

// Spreads equal scores over the whole list: ties are broken by this, then by position.
std::uint32_t scatter(std::size_t i) { return static_cast<std::uint32_t>(i) * 2654435761u; }

class Solver {
 public:
  Solver(const KernelSetup& setup, const Points& points, const BoxQp& qp, double* alpha,
         double* gradient, const SolveOptions& options)
      : setup_(setup), points_(points), qp_(qp), alpha_(alpha), gradient_(gradient), options_(options) {}

  SolveReport run();

 private:
  // gradient over all variables
  void rebuild(bool from_scratch);
  void activate();
  void write_back();
  double everywhere_violation() const;

  // one outer step on the active variables
  double measure();
  void select();
  void solve_working_set();
  void update_gradient(const std::vector<std::int32_t>& changed, const std::vector<double>& step);
  void shrink();
  void compact(const std::vector<std::int32_t>& kept);
  void load(const std::vector<std::int32_t>& variables);
  void fill_working_kernel(const std::vector<std::int32_t>& previous);
  bool may_go_on();

  std::size_t n_active() const { return active_.size(); }
  double reduced_gradient(std::size_t p) const {
    return group_.empty() || group_[p] < 0 ? g_[p] : g_[p] + multipliers_[static_cast<std::size_t>(group_[p])];
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
  std::vector<std::uint8_t> quiet_;
  std::vector<double> multipliers_;
  RowPanels lanes_;
  RowCache cache_;
  bool caching_ = false;
  int stalls_ = 0;  // outer steps in a row that changed nothing

  // working set: positions in the active list, ascending
  std::vector<std::int32_t> working_;
  std::vector<float> kernel_, previous_kernel_;
  std::size_t kernel_stride_ = 0;
  WorkingSetSolver working_set_solver_;
};

SolveReport Solver::run() {
  caching_ = tile_cost(setup_, points_) > caching_pays_above;
  if (options_.gradient_given) {
    base_alpha_.assign(alpha_, alpha_ + qp_.size);
  } else {
    rebuild(true);
  }
  activate();
  for (;;) {
    const double violation = measure();
    if (violation <= options_.tolerance) {
      write_back();
      const bool moved = !std::equal(base_alpha_.begin(), base_alpha_.end(), alpha_);
      if (moved) rebuild(!options_.gradient_given);
      if (everywhere_violation() <= options_.tolerance) break;
      if (!may_go_on()) break;
      activate();
      continue;
    }
    if (!may_go_on()) {
      write_back();
      rebuild(!options_.gradient_given);
      break;
    }
    shrink();
    select();
    solve_working_set();
    ++report_.outer_steps;
  }
  const Optimality result = optimality(qp_, alpha_, gradient_);
  report_.violation = result.violation;
  report_.objective = result.objective;
  report_.gap = result.gap;
  report_.converged = result.violation <= options_.tolerance;
  return report_;
}

bool Solver::may_go_on() {
  if (stalls_ >= most_stalls) return false;
  if (options_.max_iterations >= 0 && report_.iterations >= options_.max_iterations) return false;
  if (!options_.progress) return true;
  double largest = 0;
  for (const double v : violation_) largest = std::max(largest, v);
  return options_.progress({largest, n_active(), report_.outer_steps});
}

double Solver::everywhere_violation() const { return optimality(qp_, alpha_, gradient_).violation; }

void Solver::write_back() {
  for (std::size_t p = 0; p < n_active(); ++p) alpha_[active_[p]] = a_[p];
}

// The gradient of all variables at alpha_: from nothing, or from the base and what changed since.
void Solver::rebuild(bool from_scratch) {
  Timer timer(report_.seconds_rebuild);
  std::vector<std::int32_t> sources, targets(qp_.size);
  std::vector<double> weights;
  for (std::size_t i = 0; i < qp_.size; ++i) {
    const double weight = from_scratch ? alpha_[i] : alpha_[i] - base_alpha_[i];
    targets[i] = static_cast<std::int32_t>(qp_.row_of(i));
    if (weight == 0.0) continue;
    sources.push_back(targets[i]);
    weights.push_back(weight);
  }
  std::vector<double> sums(qp_.size, 0.0);
  if (!sources.empty()) {
    kernel_product(setup_, {&points_, targets.data(), targets.size()}, {&points_, sources.data(), sources.size()},
                   {1, nullptr, nullptr, weights.data()}, Precision::single_tiles, options_.n_threads, sums.data());
    report_.kernel_evaluations += static_cast<std::int64_t>(sources.size() * targets.size());
    ++report_.rebuilds;
  }
  for (std::size_t i = 0; i < qp_.size; ++i) {
    gradient_[i] = (from_scratch ? -qp_.linear[i] : gradient_[i]) + sums[i];
  }
  base_alpha_.assign(alpha_, alpha_ + qp_.size);
}

// Chooses the active variables after a rebuild: all but those far inside their bound's side.
void Solver::activate() {
  const Optimality now = optimality(qp_, alpha_, gradient_);
  const double margin = largest_shrink_margin;
  const bool started = std::any_of(alpha_, alpha_ + qp_.size, [](double a) { return a != 0.0; });
  std::vector<std::int32_t> variables;
  for (std::size_t i = 0; i < qp_.size; ++i) {
    const int group = qp_.group_of(i);
    const double g = gradient_[i] + (group < 0 ? 0.0 : now.multipliers[static_cast<std::size_t>(group)]);
    const bool quiet = projected_gradient(alpha_[i], qp_.lower[i], qp_.upper[i], g) == 0.0 && std::fabs(g) > margin;
    if (!started || !quiet) variables.push_back(static_cast<std::int32_t>(i));
  }
  load(variables);
}

void Solver::load(const std::vector<std::int32_t>& variables) {
  active_ = variables;
  const std::size_t n = n_active();
  std::vector<std::int32_t> rows(n);
  for (std::size_t p = 0; p < n; ++p) rows[p] = static_cast<std::int32_t>(qp_.row_of(static_cast<std::size_t>(active_[p])));
  lanes_ = n == 0 ? RowPanels() : RowPanels({&points_, rows.data(), n}, options_.n_threads);
  const std::size_t n_lanes = lanes_.n_panels() * panel_rows;
  a_.assign(n_lanes, 0.0);
  g_.assign(n_lanes, 0.0);
  lower_.assign(n_lanes, 0.0);
  upper_.assign(n_lanes, 0.0);
  violation_.assign(n_lanes, 0.0);
  quiet_.assign(n, 0);
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
  if (n > 0) cache_.reset(n, n_lanes, caching_ ? options_.cache_bytes : 0);
  working_.clear();
}

double Solver::measure() {
  Timer timer(report_.seconds_selection);
  std::vector<GroupRange> ranges(static_cast<std::size_t>(qp_.n_groups));
  for (std::size_t p = 0; p < group_.size(); ++p) {
    if (group_[p] >= 0) ranges[static_cast<std::size_t>(group_[p])].include(a_[p], lower_[p], upper_[p], g_[p]);
  }
  double largest = 0;
  multipliers_.clear();
  for (const GroupRange& range : ranges) {
    multipliers_.push_back(range.multiplier());
    largest = std::max(largest, range.violation());
  }
  for (std::size_t p = 0; p < n_active(); ++p) {
    violation_[p] = projected_gradient(a_[p], lower_[p], upper_[p], reduced_gradient(p));
    if (group_.empty() || group_[p] < 0) largest = std::max(largest, violation_[p]);
  }
  return largest;
}

// Working set: the free variables of the last one (carry-over, without which the method stalls on
// ill-conditioned problems), then the most violating variables.
void Solver::select() {
  Timer timer(report_.seconds_selection);
  const std::size_t n = n_active();
  std::size_t n_free = 0;
  for (std::size_t p = 0; p < n; ++p) n_free += (a_[p] > lower_[p]) & (a_[p] < upper_[p]);
  const std::size_t target = std::clamp(n_free + n_free / 4, smallest_working_set, largest_working_set);
  const std::vector<std::int32_t> previous = working_;
  working_.clear();
  if (n <= largest_working_set) {
    for (std::size_t p = 0; p < n; ++p) working_.push_back(static_cast<std::int32_t>(p));
  } else {
    const auto more = [this](std::int32_t p, std::int32_t q) {
      const double vp = violation_[static_cast<std::size_t>(p)], vq = violation_[static_cast<std::size_t>(q)];
      if (vp != vq) return vp > vq;
      const auto sp = scatter(static_cast<std::size_t>(active_[static_cast<std::size_t>(p)]));
      const auto sq = scatter(static_cast<std::size_t>(active_[static_cast<std::size_t>(q)]));
      return sp < sq;
    };
    const auto keep_top = [&more](std::vector<std::int32_t>& list, std::size_t count) {
      if (list.size() <= count) return;
      std::nth_element(list.begin(), list.begin() + static_cast<std::ptrdiff_t>(count), list.end(), more);
      list.resize(count);
    };
    std::vector<std::uint8_t> chosen(n, 0);
    for (const std::int32_t p : previous) {
      const auto k = static_cast<std::size_t>(p);
      if (a_[k] > lower_[k] && a_[k] < upper_[k]) working_.push_back(p);
    }
    keep_top(working_, target * 3 / 4);
    for (const std::int32_t p : working_) chosen[static_cast<std::size_t>(p)] = 1;
    std::vector<std::int32_t> others;
    for (std::size_t p = 0; p < n; ++p) {
      if (!chosen[p] && violation_[p] > 0) others.push_back(static_cast<std::int32_t>(p));
    }
    keep_top(others, target - working_.size());
    working_.insert(working_.end(), others.begin(), others.end());
    std::sort(working_.begin(), working_.end());
  }
  fill_working_kernel(previous);
}

// The kernel matrix of the working set: rows of members that stay are copied, those of new members
// computed and mirrored.
void Solver::fill_working_kernel(const std::vector<std::int32_t>& previous) {
  Timer timer(report_.seconds_tiles);
  const std::size_t previous_stride = kernel_stride_;
  previous_kernel_.swap(kernel_);
  kernel_stride_ = (working_.size() + panel_rows - 1) / panel_rows * panel_rows;
  kernel_.resize(working_.size() * kernel_stride_);
  if (kernel_stride_ == previous_stride && previous == working_) {
    kernel_.swap(previous_kernel_);
    return;
  }
  std::vector<std::int32_t> from(working_.size(), -1);
  std::size_t k = 0;
  for (std::size_t w = 0; w < working_.size(); ++w) {
    while (k < previous.size() && previous[k] < working_[w]) ++k;
    if (k < previous.size() && previous[k] == working_[w]) from[w] = static_cast<std::int32_t>(k);
  }
  std::vector<std::int32_t> rows(working_.size()), fresh, fresh_rows;
  for (std::size_t w = 0; w < working_.size(); ++w) {
    rows[w] = static_cast<std::int32_t>(qp_.row_of(static_cast<std::size_t>(active_[static_cast<std::size_t>(working_[w])])));
    if (from[w] >= 0) continue;
    fresh.push_back(static_cast<std::int32_t>(w));
    fresh_rows.push_back(rows[w]);
  }
  std::vector<float> computed(fresh.size() * working_.size());
  if (!fresh.empty()) {
    kernel_matrix(setup_, {&points_, fresh_rows.data(), fresh_rows.size()}, {&points_, rows.data(), rows.size()},
                  options_.n_threads, computed.data());
    report_.kernel_evaluations += static_cast<std::int64_t>(computed.size());
  }
  std::vector<std::int32_t> old;  // columns whose kernel values are copied
  for (std::size_t w = 0; w < working_.size(); ++w) {
    if (from[w] >= 0) old.push_back(static_cast<std::int32_t>(w));
  }
  const auto n_working = static_cast<std::int64_t>(working_.size());
  std::vector<std::int32_t> computed_row(working_.size(), -1);
  for (std::size_t f = 0; f < fresh.size(); ++f) computed_row[static_cast<std::size_t>(fresh[f])] = static_cast<std::int32_t>(f);
#pragma omp parallel for num_threads(options_.n_threads) schedule(static) if (options_.n_threads > 1)
  for (std::int64_t w = 0; w < n_working; ++w) {
    float* row = kernel_.data() + static_cast<std::size_t>(w) * kernel_stride_;
    const auto position = static_cast<std::size_t>(w);
    if (computed_row[position] >= 0) {
      std::copy_n(computed.data() + static_cast<std::size_t>(computed_row[position]) * working_.size(), working_.size(), row);
    } else {
      const float* old_row = previous_kernel_.data() + static_cast<std::size_t>(from[position]) * previous_stride;
      for (const std::int32_t column : old) row[column] = old_row[from[static_cast<std::size_t>(column)]];
      for (std::size_t f = 0; f < fresh.size(); ++f) row[fresh[f]] = computed[f * working_.size() + position];
    }
    std::fill(row + working_.size(), row + kernel_stride_, 0.0f);
  }
}

void Solver::solve_working_set() {
  const std::size_t n = working_.size(), stride = kernel_stride_;
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
  const double tolerance = complete ? 0.9 * options_.tolerance
                                    : std::max(inner_reduction * largest, 0.3 * options_.tolerance) * std::pow(0.1, stalls_);
  const std::int64_t limit = options_.max_iterations < 0 ? std::numeric_limits<std::int64_t>::max()
                                                         : options_.max_iterations - report_.iterations;
  WorkingSetReport inner;
  {
    Timer timer(report_.seconds_inner);
    const auto budget = static_cast<std::int64_t>(complete ? 1000 : 20) * static_cast<std::int64_t>(n);
    inner = working_set_solver_.solve(
        {n, stride, kernel_.data(), a.data(), g.data(), lower.data(), upper.data(),
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
  if (complete) {
    std::copy_n(g.begin(), n, g_.begin());
  } else {
    update_gradient(changed, step);
  }
}

// g += K(active, changed) step, rows from the cache where they are there.
void Solver::update_gradient(const std::vector<std::int32_t>& changed, const std::vector<double>& step) {
  Timer timer(report_.seconds_tiles);
  const std::size_t n = changed.size(), n_lanes = lanes_.n_panels() * panel_rows;
  std::vector<float*> stored(n, nullptr);
  std::vector<std::uint8_t> missing(n, 1);
  if (caching_) {
    cache_.begin_batch();
    std::vector<std::int32_t> absent;
    std::vector<std::size_t> absent_at;
    for (std::size_t j = 0; j < n; ++j) {
      stored[j] = cache_.find(changed[j]);
      missing[j] = stored[j] == nullptr;
      if (!missing[j]) continue;
      absent.push_back(changed[j]);
      absent_at.push_back(j);
    }
    std::vector<float*> rows;
    cache_.insert(absent, rows);
    for (std::size_t k = 0; k < absent.size(); ++k) stored[absent_at[k]] = rows[k];
  }
  std::vector<std::int32_t> row_number(n);
  std::int64_t n_missing = 0;
  for (std::size_t j = 0; j < n; ++j) {
    row_number[j] = static_cast<std::int32_t>(qp_.row_of(static_cast<std::size_t>(active_[static_cast<std::size_t>(changed[j])])));
    n_missing += missing[j];
  }
  report_.rows_computed += n_missing;
  report_.rows_reused += static_cast<std::int64_t>(n) - n_missing;
  report_.kernel_evaluations += n_missing * static_cast<std::int64_t>(n_active());
  const std::size_t panels = panels_per_block(setup_), block = panels * panel_rows;
  const auto n_blocks = static_cast<std::int64_t>((n_lanes + block - 1) / block);
#pragma omp parallel num_threads(options_.n_threads) if (options_.n_threads > 1)
  {
    TileScratch scratch;
    std::vector<float> tile(query_block * block);
    std::vector<const float*> rows(query_block);
    std::vector<std::int32_t> queries;
#pragma omp for schedule(dynamic, 4)
    for (std::int64_t b = 0; b < n_blocks; ++b) {
      const std::size_t begin = static_cast<std::size_t>(b) * block, end = std::min(begin + block, n_lanes);
      const std::size_t lanes = end - begin;
      if (n_missing > 0) scratch.select(setup_, lanes_, begin / panel_rows, lanes / panel_rows);
      for (std::size_t first = 0; first < n; first += query_block) {
        const std::size_t last = std::min(first + query_block, n);
        queries.clear();
        for (std::size_t j = first; j < last; ++j) {
          if (!missing[j]) {
            rows[j - first] = stored[j] + begin;
            continue;
          }
          rows[j - first] = tile.data() + queries.size() * lanes;
          queries.push_back(row_number[j]);
        }
        if (!queries.empty()) {
          scratch.rows(points_, queries.data(), queries.size(), tile.data(), lanes);
          for (std::size_t j = first; j < last; ++j) {
            if (missing[j] && stored[j]) std::copy_n(rows[j - first], lanes, stored[j] + begin);
          }
        }
        isa().weighted_sum_f32(rows.data(), step.data() + first, last - first, lanes, g_.data() + begin);
      }
    }
  }
}

// Drops variables that have been at a bound, pointing outwards, for some outer steps (the rule of
// LIBSVM, made lazier in time and stricter in size), once they are enough to pay for compacting.
void Solver::shrink() {
  Timer timer(report_.seconds_selection);
  const std::size_t n = n_active();
  if (n <= largest_working_set) return;
  double largest = 0;
  for (std::size_t p = 0; p < n; ++p) largest = std::max(largest, violation_[p]);
  const double margin = std::min(largest, largest_shrink_margin);
  std::size_t n_quiet = 0;
  for (std::size_t p = 0; p < n; ++p) {
    const bool quiet = violation_[p] == 0.0 && std::fabs(reduced_gradient(p)) > margin;
    quiet_[p] = quiet ? static_cast<std::uint8_t>(std::min(quiet_[p] + 1, quiet_steps)) : std::uint8_t{0};
    n_quiet += quiet_[p] == quiet_steps;
  }
  if (n_quiet * 5 < n) return;
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
    for (std::size_t k = 0; k < kept.size(); ++k) values[k] = values[static_cast<std::size_t>(kept[k])];
    values.resize(size);
  };
  lanes_ = kept.empty() ? RowPanels() : RowPanels({&points_, rows.data(), rows.size()}, options_.n_threads);
  const std::size_t n_lanes = lanes_.n_panels() * panel_rows;
  keep(active_, kept.size());
  keep(quiet_, kept.size());
  if (!group_.empty()) keep(group_, kept.size());
  for (std::vector<double>* values : {&a_, &g_, &lower_, &upper_, &violation_}) {
    keep(*values, kept.size());
    values->resize(n_lanes, 0.0);
  }
  cache_.compact(kept, n_lanes);
  // the working kernel stays valid for members that stay
  std::vector<std::int32_t> still;
  bool all_stay = true;
  for (const std::int32_t p : working_) {
    if (position[static_cast<std::size_t>(p)] < 0) {
      all_stay = false;
      break;
    }
    still.push_back(position[static_cast<std::size_t>(p)]);
  }
  if (all_stay) {
    working_ = still;
  } else {
    // members that left are at a bound: forget the matrix but carry the others over
    std::vector<std::int32_t> carried;
    for (const std::int32_t p : working_) {
      if (position[static_cast<std::size_t>(p)] >= 0) carried.push_back(position[static_cast<std::size_t>(p)]);
    }
    const std::size_t stride = (carried.size() + panel_rows - 1) / panel_rows * panel_rows;
    std::vector<float> kernel(carried.size() * stride, 0.0f);
    std::vector<std::size_t> at;
    for (std::size_t w = 0; w < working_.size(); ++w) {
      if (position[static_cast<std::size_t>(working_[w])] >= 0) at.push_back(w);
    }
    for (std::size_t i = 0; i < at.size(); ++i) {
      for (std::size_t j = 0; j < at.size(); ++j) kernel[i * stride + j] = kernel_[at[i] * kernel_stride_ + at[j]];
    }
    working_ = carried;
    kernel_.swap(kernel);
    kernel_stride_ = stride;
  }
}

}  // namespace

SolveReport solve(const KernelSetup& setup, const Points& points, const BoxQp& qp, double* alpha,
                  double* gradient, const SolveOptions& options) {
  return Solver(setup, points, qp, alpha, gradient, options).run();
}

}  // namespace dcsvm
