#include "solver/linear_newton.h"

#include <algorithm>
#include <cmath>

namespace dcsvm {

namespace {

constexpr double first_sigma = 10, sigma_growth = 10;  // first_sigma in units of 1 / mean <x, x>
constexpr int max_steps = 50;                          // Newton iterations of a proximal step
constexpr int max_trials = 30;                         // of a line search
constexpr double flat = 0.1;  // a line search ends at this slope, relative to the initial one

}  // namespace

LinearNewton::LinearNewton(LinearState& state)
    : state_(state),
      system_(state),
      sigma_(first_sigma / state.mean_diagonal),
      growth_(sigma_growth),
      dimension_(state.rows.dimension()),
      gradient_(state.qp.size),
      along_(state.qp.size),
      point_(dimension_ + state.totals.size()),
      residual_(point_.size()) {}

// Stores the residuals of w = X' alpha(w, b) and of the equality constraints in `residual_`;
// returns a bound on their effect on a gradient.
double LinearNewton::residual() {
  const BoxQP& qp = state_.qp;
  for (std::size_t i = 0; i < qp.size; ++i)  // alpha(w, b)
    state_.alpha[i] = std::clamp(center_[i] - sigma_ * gradient_[i], qp.lower[i], qp.upper[i]);
  state_.recompute();
  values_ += state_.n_values;
  double length = 0, excess = 0;
  for (std::size_t j = 0; j < dimension_; ++j) {
    residual_[j] = state_.w[j] - point_[j];
    length += residual_[j] * residual_[j];
  }
  for (std::size_t s = 0; s < state_.totals.size(); ++s) {
    residual_[dimension_ + s] = state_.excess[s];
    excess = std::max(excess, std::fabs(state_.excess[s]));
  }
  return std::sqrt(length * state_.largest_diagonal) + excess * state_.mean_diagonal;
}

// Returns the derivative of the convex function along the direction, at step length t.
double LinearNewton::slope(double t) const {
  const BoxQP& qp = state_.qp;
  double sum = 0;
  for (std::size_t j = 0; j < dimension_; ++j)
    sum += (point_[j] + t * direction_[j]) * direction_[j];
  for (std::size_t s = 0; s < state_.totals.size(); ++s)
    sum += state_.totals[s] * direction_[dimension_ + s];
  for (std::size_t i = 0; i < qp.size; ++i) {
    const double g = gradient_[i] + t * along_[i];
    sum -= std::clamp(center_[i] - sigma_ * g, qp.lower[i], qp.upper[i]) * along_[i];
  }
  return sum;
}

// Returns a step length at which the increasing slope is nearly zero; 0 if there is no descent.
double LinearNewton::search() const {
  const double start = slope(0.0);
  if (!(start < 0)) return 0.0;
  double low = 0, at_low = start, high = 0, at_high = 0, t = 1;
  for (int k = 0; k < max_trials; ++k) {
    const double now = slope(t);
    if (std::fabs(now) <= flat * -start) return t;
    if (now < 0) {
      low = t;
      at_low = now;
      if (high == 0) {
        t *= 2;
        continue;
      }
    } else {
      high = t;
      at_high = now;
    }
    const double share = at_low / (at_low - at_high);
    t = low + (high - low) * std::clamp(share, 0.1, 0.9);
  }
  return low > 0 ? low : t;
}

bool LinearNewton::step(double accuracy, const Stop* stop) {
  const BoxQP& qp = state_.qp;
  center_ = state_.alpha;
  std::copy(state_.w.begin(), state_.w.end(), point_.begin());
  std::copy(state_.multipliers.begin(), state_.multipliers.end(),
            point_.begin() + static_cast<std::ptrdiff_t>(dimension_));
  state_.gradient(gradient_.data());
  for (std::size_t i = 0; i < qp.size; ++i) gradient_[i] += state_.multiplier_at(i);
  std::vector<std::uint8_t> is_free(qp.size);
  double missing = residual();
  for (int k = 0; k < max_steps && missing > accuracy; ++k) {
    if (is_requested(stop)) break;
    for (std::size_t i = 0; i < qp.size; ++i)
      is_free[i] = state_.alpha[i] > qp.lower[i] && state_.alpha[i] < qp.upper[i];
    system_.set_free(is_free);
    direction_ = residual_;
    system_.solve(sigma_, direction_, stop);
    values_ += state_.n_values;
    multiply_rows(state_.rows, state_.row_list(), direction_.data(), state_.n_threads,
                  along_.data());
    for (std::size_t i = 0; i < qp.size; ++i) {
      if (qp.constraint_at(i) >= 0)
        along_[i] += direction_[dimension_ + static_cast<std::size_t>(qp.constraint_at(i))];
    }
    const double length = search();
    ++steps_;
    if (length == 0) break;
    for (std::size_t j = 0; j < point_.size(); ++j) point_[j] += length * direction_[j];
    for (std::size_t i = 0; i < qp.size; ++i) gradient_[i] += length * along_[i];
    missing = residual();
  }
  if (missing > accuracy) {
    state_.alpha = center_;
    state_.recompute();
    sigma_ /= growth_;
    growth_ = std::sqrt(growth_);
    return false;
  }
  std::copy(point_.begin() + static_cast<std::ptrdiff_t>(dimension_), point_.end(),
            state_.multipliers.begin());
  sigma_ *= growth_;
  return true;
}

}  // namespace dcsvm
