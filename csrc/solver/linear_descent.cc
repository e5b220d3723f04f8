#include "solver/linear_descent.h"

#include <algorithm>
#include <cmath>

namespace dcsvm {

namespace {

constexpr std::size_t prefetch_distance = 2;  // rows

// xorshift64* (Vigna 2016)
std::uint64_t next(std::uint64_t& state) {
  state ^= state >> 12;
  state ^= state << 25;
  state ^= state >> 27;
  return state * 2685821657736338717ULL;
}

}  // namespace

LinearDescent::LinearDescent(LinearState& state) : state_(state) { activate(); }

void LinearDescent::activate() {
  active_ = state_.qp.everything();
  high_ = std::numeric_limits<double>::infinity();
  low_ = -high_;
}

void LinearDescent::shuffle() {
  for (std::size_t k = active_.size(); k > 1; --k)
    std::swap(active_[k - 1], active_[((next(random_) >> 32) * k) >> 32]);
}

double LinearDescent::pass(std::int64_t most_steps) {
  LinearState& s = state_;
  const double penalty = s.mean_diagonal;
  double largest = 0, high = 0, low = 0;
  shuffle();
  std::size_t kept = 0;
  std::int64_t done = 0;
  for (std::size_t k = 0; k < active_.size(); ++k) {
    const auto i = static_cast<std::size_t>(active_[k]);
    if (done == most_steps) {
      active_[kept++] = active_[k];
      continue;
    }
    if (k + prefetch_distance < active_.size())
      s.rows.prefetch(static_cast<std::size_t>(
          s.row[static_cast<std::size_t>(active_[k + prefetch_distance])]));
    const auto row = static_cast<std::size_t>(s.row[i]);
    const int sum = s.qp.sum_at(i);
    double g = s.rows.dot(row, s.w.data()) - s.qp.linear[i], curvature = s.diagonal[i];
    values_ += 1 + static_cast<double>(s.rows.stored(row));
    if (sum >= 0) {
      const auto at = static_cast<std::size_t>(sum);
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
    const double wanted = before - g / std::max(curvature, 1e-300);
    const double after = std::clamp(wanted, lower, upper);
    if (after == before) continue;
    s.alpha[i] = after;
    s.rows.add(row, after - before, s.w.data());
    values_ += static_cast<double>(s.rows.stored(row));
    if (sum >= 0) s.excess[static_cast<std::size_t>(sum)] += after - before;
  }
  active_.resize(kept);
  steps_ += done;
  for (std::size_t at = 0; at < s.sums.size(); ++at) s.multipliers[at] += penalty * s.excess[at];
  // nothing violated: no other variable may be shrunk by it
  high_ = high > 0 ? high : std::numeric_limits<double>::infinity();
  low_ = low < 0 ? low : -std::numeric_limits<double>::infinity();
  return largest;
}

}  // namespace dcsvm
