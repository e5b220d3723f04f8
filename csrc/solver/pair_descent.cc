#include "solver/pair_descent.h"

#include <algorithm>
#include <vector>

#include "simd/isa.h"

namespace dcsvm {

namespace {

constexpr double smallest_curvature = 1e-12;

double pair_curvature(const WorkingSet& set, std::size_t i, std::size_t j) {
  return std::max(set.diagonal[i] + set.diagonal[j] - 2.0 * set.kernel_row(i)[j],
                  smallest_pair_curvature);
}

struct PairStep {
  double up = 0, down = 0;  // what alpha_i and alpha_j moved, down < 0
  double decrease = 0;
};

// Moves alpha_i up and alpha_j down by the same, as far as the objective falls and the bounds
// allow. Moves nothing where that is below the resolution of alpha. One of them whose bound is
// nearer than the resolution is set to it, or it would be chosen for ever.
PairStep move_pair(WorkingSet& set, std::size_t i, std::size_t j) {
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

// gradient += change times the kernel row of a member.
void add_row(WorkingSet& set, std::size_t i, double change) {
  const float* row = set.kernel_row(i);
  for (std::size_t k = 0; k < set.size; ++k) set.gradient[k] += change * row[k];
}

// The usual case, all variables in one sum, with the fused passes of isa.h.
DescentRound descend_one_sum(WorkingSet& set, double tolerance, std::int64_t max_updates) {
  const CoordinateState state{set.stride, set.gradient.data(), set.side.data(), nullptr};
  DescentRound round;
  double up = 0, down = 0;
  std::size_t i = isa().descend_pair(state, set.kernel, 0.0, set.kernel, 0.0, &up, &down);
  while (round.updates < max_updates && up - down > tolerance) {
    double gain = 0;
    const std::size_t j =
        isa().best_partner(state, set.diagonal.data(), set.kernel_row(i), i, &gain);
    if (!(gain > 0)) break;
    const PairStep step = move_pair(set, i, j);
    if (is_nothing(step)) break;
    round.decrease += step.decrease;
    ++round.updates;
    i = isa().descend_pair(state, set.kernel_row(i), step.up, set.kernel_row(j), step.down, &up,
                           &down);
  }
  return round;
}

// A variable that violates by more than the tolerance, and the sum it is to be moved in (-1:
// alone); `place` is the size of the set where there is none.
struct First {
  std::size_t place;
  int sum = -1;
};

First most_violating(const WorkingSet& set, double tolerance) {
  First first{set.size};
  std::vector<SumRange> ranges(static_cast<std::size_t>(set.n_sums));
  std::vector<std::size_t> top(ranges.size(), 0);
  double largest = tolerance;
  const auto consider = [&](double violation, std::size_t place, int sum) {
    if (!(violation > largest)) return;
    largest = violation;
    first = {place, sum};
  };
  for (std::size_t k = 0; k < set.size; ++k) {
    const double alpha = set.alpha[k], g = set.gradient[k];
    if (set.sum_of[k] < 0) {
      consider(violation_of(alpha, set.lower[k], set.upper[k], g), k, -1);
      continue;
    }
    const auto sum = static_cast<std::size_t>(set.sum_of[k]);
    if (set.side[k] >= 0 && -g > ranges[sum].up) top[sum] = k;
    ranges[sum].include(alpha, set.lower[k], set.upper[k], g);
  }
  for (std::size_t sum = 0; sum < ranges.size(); ++sum)
    consider(ranges[sum].violation(), top[sum], static_cast<int>(sum));
  return first;
}

// The variable of the same sum that lowers the objective most with i; the size of the set where
// there is none.
std::size_t best_partner(const WorkingSet& set, const First& first) {
  std::size_t partner = set.size;
  double best = 0;
  for (std::size_t k = 0; k < set.size; ++k) {
    if (set.sum_of[k] != first.sum || !(set.side[k] <= 0)) continue;
    const double difference = set.gradient[k] - set.gradient[first.place];
    if (difference <= 0) continue;
    const double gain = difference * difference / pair_curvature(set, first.place, k);
    if (gain > best) {
      best = gain;
      partner = k;
    }
  }
  return partner;
}

void move_alone(WorkingSet& set, std::size_t i) {
  const double curvature = std::max(set.diagonal[i], smallest_curvature), old = set.alpha[i];
  set.set_alpha(i, std::clamp(old - set.gradient[i] / curvature, set.lower[i], set.upper[i]));
  add_row(set, i, set.alpha[i] - old);
}

DescentRound descend_sums(WorkingSet& set, double tolerance, std::int64_t max_updates) {
  DescentRound round;
  while (round.updates < max_updates) {
    const First first = most_violating(set, tolerance);
    if (first.place == set.size) break;
    ++round.updates;
    if (first.sum < 0) {
      move_alone(set, first.place);
      continue;
    }
    const std::size_t partner = best_partner(set, first);
    if (partner == set.size) break;
    const PairStep step = move_pair(set, first.place, partner);
    if (is_nothing(step)) break;
    round.decrease += step.decrease;
    add_row(set, first.place, step.up);
    add_row(set, partner, step.down);
  }
  return round;
}

}  // namespace

DescentRound descend_pairs(WorkingSet& set, double tolerance, std::int64_t max_updates) {
  const std::int8_t* sum_of = set.sum_of.data();
  const bool has_one_sum =
      sum_of[0] >= 0 &&
      std::all_of(sum_of, sum_of + set.size, [sum_of](std::int8_t s) { return s == sum_of[0]; });
  return has_one_sum ? descend_one_sum(set, tolerance, max_updates)
                     : descend_sums(set, tolerance, max_updates);
}

}  // namespace dcsvm
