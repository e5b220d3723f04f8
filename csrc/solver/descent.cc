#include "solver/descent.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "simd/isa.h"

namespace dcsvm {

namespace {

constexpr double smallest_curvature = 1e-12;  // below, a variable goes to its bound
constexpr double smallest_diagonal = 1e-6;    // for the scale of violations

// 1/2 quadratic in two steps s and t, of variables with these bounds.
struct TwoVariables {
  double slope_s, slope_t;              // gradients
  double curve_s, curve_t, curve_st;    // kernel values
  double low_s, high_s, low_t, high_t;  // bounds of the steps

  double value(double s, double t) const {
    return s * (slope_s + 0.5 * curve_s * s) + t * (slope_t + 0.5 * curve_t * t) + curve_st * s * t;
  }
};

struct Steps {
  double s = 0, t = 0, value = 0;
};

double best_step(double slope, double curvature, double low, double high) {
  if (curvature > smallest_curvature) return std::clamp(-slope / curvature, low, high);
  return slope > 0 ? low : high;
}

// The minimum inside the bounds: of the first variable alone, or of both where that is lower.
Steps minimise(const TwoVariables& q, bool both) {
  Steps best;
  best.s = best_step(q.slope_s, q.curve_s, q.low_s, q.high_s);
  best.value = q.value(best.s, 0);
  if (!both) return best;
  const auto consider = [&](double s, double t) {
    const double value = q.value(s, t);
    if (value < best.value) best = {s, t, value};
  };
  const double determinant = q.curve_s * q.curve_t - q.curve_st * q.curve_st;
  const double s = (q.curve_st * q.slope_t - q.curve_t * q.slope_s) / determinant;
  const double t = (q.curve_st * q.slope_s - q.curve_s * q.slope_t) / determinant;
  if (determinant > smallest_share * q.curve_s * q.curve_t && s >= q.low_s && s <= q.high_s &&
      t >= q.low_t && t <= q.high_t) {
    consider(s, t);
    return best;
  }
  for (const double end : {q.low_s, q.high_s})
    consider(end, best_step(q.slope_t + q.curve_st * end, q.curve_t, q.low_t, q.high_t));
  for (const double end : {q.low_t, q.high_t})
    consider(best_step(q.slope_s + q.curve_st * end, q.curve_s, q.low_s, q.high_s), end);
  return best;
}

// Moves alpha_i by a step; a step to a bound ends exactly there. Returns what it moved.
template <class Real>
double apply(WorkingSet<Real>& set, std::size_t i, double step, double low, double high) {
  const double old = set.alpha[i];
  set.set_alpha(i, step == low    ? set.lower[i]
                   : step == high ? set.upper[i]
                                  : std::clamp(old + step, set.lower[i], set.upper[i]));
  return set.alpha[i] - old;
}

// Minimises over two variables (one where they are the same); the value is that of the objective's
// change.
template <class Real>
Steps move_two(WorkingSet<Real>& set, std::size_t i, std::size_t j) {
  const TwoVariables q{set.gradient[i],
                       set.gradient[j],
                       set.diagonal[i],
                       set.diagonal[j],
                       set.kernel_row(i)[j],
                       set.lower[i] - set.alpha[i],
                       set.upper[i] - set.alpha[i],
                       set.lower[j] - set.alpha[j],
                       set.upper[j] - set.alpha[j]};
  const Steps best = minimise(q, i != j);
  Steps moved;
  moved.value = best.value;
  moved.s = apply(set, i, best.s, q.low_s, q.high_s);
  moved.t = i == j ? 0.0 : apply(set, j, best.t, q.low_t, q.high_t);
  return moved;
}

}  // namespace

template <class Real>
DescentRound descend_coordinates(WorkingSet<Real>& set, double tolerance,
                                 std::int64_t max_updates) {
  std::vector<double> scale(set.stride, 1.0);
  for (std::size_t i = 0; i < set.size; ++i)
    scale[i] = 1.0 / std::sqrt(std::max(double{set.diagonal[i]}, smallest_diagonal));
  const bool scaled = std::any_of(scale.begin(), scale.end(), [](double s) { return s != 1.0; });
  const double target = tolerance * *std::min_element(scale.begin(), scale.end());
  const CoordinateState state{set.stride, set.gradient.data(), set.side.data(),
                              scaled ? scale.data() : nullptr};
  DescentRound round;
  double largest = 0;
  std::size_t i = descent<Real>().descend(state, set.kernel, 0.0, set.kernel, 0.0, &largest);
  while (round.updates < max_updates && largest > target) {
    const Real* row_i = set.kernel_row(i);
    double gain = 0;
    std::size_t j = i;
    if (row_i[i] > smallest_curvature)
      j = descent<Real>().best_companion(state, set.diagonal.data(), row_i, i, &gain);
    if (!(gain > 0) || j >= set.size) j = i;
    const Steps moved = move_two(set, i, j);
    ++round.updates;
    if (moved.s == 0.0 && moved.t == 0.0) break;
    round.decrease -= moved.value;
    i = descent<Real>().descend(state, row_i, moved.s, set.kernel_row(j), moved.t, &largest);
  }
  return round;
}

template DescentRound descend_coordinates<float>(WorkingSet<float>&, double, std::int64_t);
template DescentRound descend_coordinates<double>(WorkingSet<double>&, double, std::int64_t);

namespace {

template <class Real>
double pair_curvature(const WorkingSet<Real>& set, std::size_t i, std::size_t j) {
  return std::max(double{set.diagonal[i]} + set.diagonal[j] - 2.0 * set.kernel_row(i)[j],
                  smallest_pair_curvature);
}

struct PairStep {
  double up = 0, down = 0;  // what alpha_i and alpha_j moved, down < 0
  double decrease = 0;
};

// Moves alpha_i up and alpha_j down by the same, as far as the objective falls and the bounds
// allow. Moves nothing where that is below the resolution of alpha. One of them whose bound is
// nearer than the resolution is set to it, or it would be chosen for ever.
template <class Real>
PairStep move_pair(WorkingSet<Real>& set, std::size_t i, std::size_t j) {
  const double old_i = set.alpha[i], old_j = set.alpha[j];
  const double room_i = set.upper[i] - old_i, room_j = old_j - set.lower[j];
  const double curvature = pair_curvature(set, i, j), slope = set.gradient[j] - set.gradient[i];
  const double room = std::min(room_i, room_j), t = std::min(slope / curvature, room);
  const double new_i = t == room_i ? set.upper[i] : old_i + t;
  const double new_j = t == room_j ? set.lower[j] : old_j - t;
  if (t < room && (new_i == old_i || new_j == old_j)) return {};
  set.set_alpha(i, new_i);
  set.set_alpha(j, new_j);
  return {new_i - old_i, new_j - old_j, t * (slope - 0.5 * curvature * t)};
}

bool is_nothing(const PairStep& step) { return step.up == 0.0 && step.down == 0.0; }

// One sum of a working set as the passes of isa.h see it: `side` is that of its own variables, the
// others cannot move.
template <class Real>
struct OwnSum {
  std::vector<float> side;
  std::size_t first = 0;  // the variable with the largest -gradient of those that may go up
  double up = 0, down = 0;

  OwnSum(const WorkingSet<Real>& set, int sum)
      : side(set.stride, std::numeric_limits<float>::quiet_NaN()) {
    for (std::size_t k = 0; k < set.size; ++k) {
      if (set.sum_of[k] == sum) side[k] = set.side[k];
    }
  }
  CoordinateState state(WorkingSet<Real>& set) const {
    return {set.stride, set.gradient.data(), side.data(), nullptr};
  }
  double violation() const { return up - down; }
};

}  // namespace

// With the fused passes of isa.h. The gradient is updated by the pass of the first sum.
template <class Real>
DescentRound descend_pairs(WorkingSet<Real>& set, double tolerance, std::int64_t max_updates) {
  std::vector<OwnSum<Real>> sums;
  for (int sum = 0; sum < set.n_sums; ++sum) sums.emplace_back(set, sum);
  const auto update = [&](const Real* row_up, double up, const Real* row_down, double down) {
    for (OwnSum<Real>& sum : sums) {
      sum.first = descent<Real>().descend_pair(sum.state(set), row_up, up, row_down, down, &sum.up,
                                               &sum.down);
      up = down = 0.0;
    }
  };
  DescentRound round;
  update(set.kernel, 0.0, set.kernel, 0.0);
  while (round.updates < max_updates) {
    OwnSum<Real>& sum = *std::max_element(
        sums.begin(), sums.end(),
        [](const auto& a, const auto& b) { return a.violation() < b.violation(); });
    if (!(sum.violation() > tolerance)) break;
    const std::size_t i = sum.first;
    double gain = 0;
    const std::size_t j = descent<Real>().best_partner(sum.state(set), set.diagonal.data(),
                                                       set.kernel_row(i), i, &gain);
    if (!(gain > 0)) break;
    const PairStep step = move_pair(set, i, j);
    if (is_nothing(step)) break;
    sum.side[i] = set.side[i];
    sum.side[j] = set.side[j];
    round.decrease += step.decrease;
    ++round.updates;
    update(set.kernel_row(i), step.up, set.kernel_row(j), step.down);
  }
  return round;
}

template DescentRound descend_pairs<float>(WorkingSet<float>&, double, std::int64_t);
template DescentRound descend_pairs<double>(WorkingSet<double>&, double, std::int64_t);

}  // namespace dcsvm
