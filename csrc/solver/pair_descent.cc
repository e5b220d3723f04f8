#include "solver/pair_descent.h"

#include <algorithm>
#include <limits>
#include <vector>

#include "simd/isa.h"

namespace dcsvm {

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
