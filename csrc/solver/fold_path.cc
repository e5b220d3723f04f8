#include "solver/fold_path.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "kernel/kernel_product.h"
#include "kernel/row_panels.h"
#include "simd/isa.h"
#include "solver/solve.h"

namespace dcsvm {

namespace {

constexpr std::int64_t member_updates = 1000;  // limit of updates per variable
// Fraction of the tolerance to solve to, so that the recomputed violation meets the tolerance.
constexpr double inner_share = 0.9;
// Number of variables whose gradient is compared with the gradient from float64 kernel values, and
// a bound on the rounding error of a kernel value up to 1.
constexpr std::size_t n_compared = 8;
constexpr double value_error = 0x1p-22;

template <class Value>
void reorder(std::vector<Value>& values, const std::vector<std::size_t>& order) {
  if (values.empty()) return;
  std::vector<Value> reordered;
  reordered.reserve(values.size());
  for (const std::size_t i : order) reordered.push_back(values[i]);
  values.swap(reordered);
}

}  // namespace

FoldProblem::FoldProblem(const BoxQP& whole, const std::vector<std::int32_t>& variables,
                         const double* weight)
    : n_constraints(whole.n_constraints), violation_scale(whole.violation_scale) {
  for (const std::int32_t variable : variables) {
    const auto v = static_cast<std::size_t>(variable);
    const std::size_t row = whole.row_of(v);
    rows.push_back(static_cast<std::int32_t>(row));
    linear.push_back(whole.linear[v]);
    lower.push_back(whole.lower[v] * weight[row]);
    upper.push_back(whole.upper[v] * weight[row]);
    if (whole.constraint_of) constraint_of.push_back(whole.constraint_of[v]);
  }
}

bool FoldProblem::is_one_sided() const {
  const double total = std::accumulate(linear.begin(), linear.end(), 0.0);
  return std::fabs(total) == static_cast<double>(size());
}

void FoldProblem::sort(const std::vector<std::int32_t>& positions_of_rows) {
  const std::size_t n = size();
  std::vector<std::size_t> order(n);
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    return positions_of_rows[a] < positions_of_rows[b];
  });
  std::vector<std::size_t> sorted, second;
  for (std::size_t k = 0; k < n; ++k) {
    const bool repeats = k > 0 && positions_of_rows[order[k]] == positions_of_rows[order[k - 1]];
    (repeats ? second : sorted).push_back(order[k]);
  }
  sorted.insert(sorted.end(), second.begin(), second.end());
  positions = positions_of_rows;
  reorder(positions, sorted);
  reorder(rows, sorted);
  reorder(linear, sorted);
  reorder(lower, sorted);
  reorder(upper, sorted);
  reorder(constraint_of, sorted);
}

FoldPath::FoldPath(const FoldProblem& problem, const FoldContext& context)
    : problem_(problem), context_(context) {
  const std::size_t n = problem_.size();
  alpha_.assign(n, 0.0);
  lower_.resize(n);
  upper_.resize(n);
  gradient_.resize(n);
  for (std::size_t i = 0; i < n; ++i) gradient_[i] = -problem_.linear[i];
  if (context_.kernel) gather_kernel();
}

// Copies columns in runs of consecutive positions.
void FoldPath::gather_kernel() {
  const std::size_t n = problem_.size();
  stride_ = (n + panel_rows - 1) / panel_rows * panel_rows;
  kernel_.reset(new float[n * stride_]);
  std::vector<std::size_t> ends;
  for (std::size_t i = 1; i <= n; ++i) {
    if (i == n || problem_.positions[i] != problem_.positions[i - 1] + 1) ends.push_back(i);
  }
  for (std::size_t i = 0; i < n; ++i) {
    const float* from =
        context_.kernel + static_cast<std::size_t>(problem_.positions[i]) * context_.n_positions;
    float* to = kernel_.get() + i * stride_;
    std::size_t begin = 0;
    for (const std::size_t end : ends) {
      std::copy_n(from + problem_.positions[begin], end - begin, to + begin);
      begin = end;
    }
    std::fill(to + n, to + stride_, 0.0f);
  }
}

FoldPath::Step FoldPath::solve(double scale) {
  rescale(scale);
  Step step;
  if (precision_ == Precision::single_tiles) {
    step = context_.kernel ? solve_in_memory() : solve_outside();
    if (!shows_rounding()) return step;
    precision_ = Precision::double_tiles;
  }
  const Step exact = solve_outside();
  return {exact.converged, step.iterations + exact.iterations};
}

// Returns whether float64 kernel values change the gradient by more than the tolerance.
bool FoldPath::shows_rounding() const {
  const double tolerance = context_.tolerance * problem_.violation_scale;
  std::vector<std::int32_t> sources, targets;
  std::vector<double> weights;
  double total = 0;
  for (std::size_t i = 0; i < problem_.size(); ++i) {
    if (alpha_[i] == 0.0) continue;
    sources.push_back(problem_.rows[i]);
    weights.push_back(alpha_[i]);
    total += std::fabs(alpha_[i]);
  }
  const bool is_within_one = is_distance(context_.setup.kernel.argument);
  if (total == 0 || (is_within_one && value_error * total <= tolerance)) return false;
  const std::size_t step = (problem_.size() + n_compared - 1) / n_compared;
  for (std::size_t i = 0; i < problem_.size(); i += step) targets.push_back(problem_.rows[i]);
  std::vector<double> sums(targets.size());
  kernel_product(context_.setup, {&context_.points, targets.data(), targets.size()},
                 {&context_.points, sources.data(), sources.size()},
                 {1, nullptr, nullptr, weights.data()}, Precision::double_tiles, {}, 1, sums.data(),
                 context_.stop);
  for (std::size_t k = 0; k < targets.size(); ++k) {
    const double stored = gradient_[k * step] + problem_.linear[k * step];
    if (!(std::fabs(sums[k] - stored) <= tolerance)) return true;
  }
  return false;
}

// Bounded variables move with their bound (Chu, Ho, Tsai, Lin and Lin, KDD 2015). With an equality
// constraint all variables are scaled, which preserves its zero sum.
void FoldPath::rescale(double scale) {
  const double factor = scale_ > 0 ? scale / scale_ : 1.0;
  for (std::size_t i = 0; i < problem_.size(); ++i) {
    const bool is_bounded = alpha_[i] == lower_[i] || alpha_[i] == upper_[i];
    const bool is_lower = alpha_[i] == lower_[i];
    lower_[i] = problem_.lower[i] * scale;
    upper_[i] = problem_.upper[i] * scale;
    if (alpha_[i] == 0.0 || scale_ == 0) continue;
    if (is_bounded) {
      alpha_[i] = is_lower ? lower_[i] : upper_[i];
    } else if (problem_.n_constraints > 0) {
      alpha_[i] = std::clamp(alpha_[i] * factor, lower_[i], upper_[i]);
    }
  }
  scale_ = scale;
}

FoldPath::Step FoldPath::solve_in_memory() {
  const std::size_t n = problem_.size();
  WorkingSet<float> set(kernel_.get(), n, stride_, problem_.n_constraints);
  std::copy(alpha_.begin(), alpha_.end(), set.alpha.begin());
  std::copy(lower_.begin(), lower_.end(), set.lower.begin());
  std::copy(upper_.begin(), upper_.end(), set.upper.begin());
  std::copy(problem_.constraint_of.begin(), problem_.constraint_of.end(),
            set.constraint_of.begin());
  set.refresh();
  set.gradient = set.product(set.alpha);
  for (std::size_t i = 0; i < n; ++i) set.gradient[i] -= problem_.linear[i];
  const double target = inner_share * context_.tolerance * problem_.violation_scale;
  const WorkingSetReport report =
      solver_.solve(set, target, member_updates * static_cast<std::int64_t>(n), 1);
  std::copy_n(set.alpha.begin(), n, alpha_.begin());
  std::copy_n(set.gradient.begin(), n, gradient_.begin());
  return {set.violation() <= context_.tolerance * problem_.violation_scale, report.updates};
}

FoldPath::Step FoldPath::solve_outside() {
  const std::size_t n = problem_.size();
  const BoxQP qp{n,
                 problem_.rows.data(),
                 problem_.linear.data(),
                 lower_.data(),
                 upper_.data(),
                 problem_.n_constraints > 0 ? problem_.constraint_of.data() : nullptr,
                 problem_.n_constraints,
                 problem_.violation_scale};
  std::vector<double> base(n, 0.0);
  std::vector<GradientState> known(n, GradientState::unknown);
  SolveOptions options;
  options.tolerance = context_.tolerance;
  options.cache_bytes = context_.cache_bytes;
  options.stop = const_cast<Stop*>(context_.stop);
  options.precision = precision_;
  if (precision_ == Precision::double_tiles)
    options.limits.iterations = member_updates * static_cast<std::int64_t>(n);
  const SolveReport report =
      dcsvm::solve(context_.setup, context_.points, qp,
                   {alpha_.data(), gradient_.data(), base.data(), known.data()}, options);
  return {report.converged, report.iterations};
}

bool FoldPath::has_no_bounded() const {
  for (std::size_t i = 0; i < problem_.size(); ++i) {
    if (alpha_[i] != 0.0 && (alpha_[i] == lower_[i] || alpha_[i] == upper_[i])) return false;
  }
  return true;
}

std::int64_t FoldPath::n_support() const {
  return std::count_if(alpha_.begin(), alpha_.end(), [](double a) { return a != 0.0; });
}

void FoldPath::sums(const RowList& targets, const std::vector<std::int32_t>& positions,
                    double* out) const {
  std::fill_n(out, targets.size, 0.0);
  const bool in_memory = context_.kernel && precision_ == Precision::single_tiles;
  std::vector<std::int32_t> rows;
  std::vector<double> weights;
  for (std::size_t i = 0; i < problem_.size(); ++i) {
    if (alpha_[i] == 0.0) continue;
    rows.push_back(in_memory ? problem_.positions[i] : problem_.rows[i]);
    weights.push_back(alpha_[i]);
  }
  if (!in_memory) {
    kernel_product(context_.setup, targets, {&context_.points, rows.data(), rows.size()},
                   {1, nullptr, nullptr, weights.data()}, precision_, {}, 1, out, context_.stop);
    return;
  }
  // over the range of target positions: the rows of a fold are contiguous
  const auto [low, high] = std::minmax_element(positions.begin(), positions.end());
  const std::size_t first = static_cast<std::size_t>(*low);
  const std::size_t n = static_cast<std::size_t>(*high) - first + 1;
  std::vector<double> sum(n, 0.0);
  for (std::size_t k = 0; k < rows.size(); ++k) {
    const float* row =
        context_.kernel + static_cast<std::size_t>(rows[k]) * context_.n_positions + first;
    for (std::size_t j = 0; j < n; ++j) sum[j] += weights[k] * row[j];
  }
  for (std::size_t e = 0; e < targets.size; ++e)
    out[e] = sum[static_cast<std::size_t>(positions[e]) - first];
}

double FoldPath::offset(bool decides, bool is_classification) const {
  const std::size_t n = problem_.size();
  if (decides && (n_support() == 0 || (is_classification && problem_.is_one_sided()))) {
    const double total = std::accumulate(problem_.linear.begin(), problem_.linear.end(), 0.0);
    return -total / static_cast<double>(n);
  }
  if (problem_.n_constraints == 0) return 0.0;
  double sum = 0, n_free = 0;
  double lowest = std::numeric_limits<double>::infinity(), highest = -lowest;
  for (std::size_t i = 0; i < n; ++i) {
    const bool can_rise = alpha_[i]<upper_[i], can_fall = alpha_[i]> lower_[i];
    if (can_rise && can_fall) {
      sum += gradient_[i];
      ++n_free;
    }
    if (can_rise) lowest = std::min(lowest, gradient_[i]);
    if (can_fall) highest = std::max(highest, gradient_[i]);
  }
  if (n_free > 0) return sum / n_free;
  if (std::isinf(lowest) || std::isinf(highest)) return std::isinf(lowest) ? highest : lowest;
  return 0.5 * (lowest + highest);
}

}  // namespace dcsvm
