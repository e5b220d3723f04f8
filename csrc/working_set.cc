#include "working_set.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <limits>

#include "box_qp.h"
#include "isa.h"

namespace dcsvm {

namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();
constexpr double smallest_curvature = 1e-12;
constexpr double smallest_ridge = 1e-7, largest_ridge = 1e-3;  // relative to the mean diagonal

// Nanoseconds, fixed: what decides between coordinate descent and Newton.
constexpr double coordinate_cost = 0.3;    // per entry of a kernel row
constexpr double cholesky_cost = 0.015;    // per |F|^3
constexpr double newton_entry_cost = 2.0;  // per |F|^2

double seconds_since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

}  // namespace

void WorkingSetSolver::refresh_room(std::size_t i) {
  room_up_[i] = set_.alpha[i] < set_.upper[i] ? infinity : 0.0;
  room_down_[i] = set_.alpha[i] > set_.lower[i] ? infinity : 0.0;
}

WorkingSetReport WorkingSetSolver::solve(const WorkingSet& set, double tolerance,
                                         std::int64_t max_updates, int n_threads) {
  set_ = set;
  report_ = {};
  room_up_.assign(set.stride, 0.0);
  room_down_.assign(set.stride, 0.0);
  scale_.assign(set.stride, 0.0);
  for (std::size_t i = set.size; i < set.stride; ++i) set_.gradient[i] = 0.0;
  for (std::size_t i = 0; i < set.size; ++i) {
    refresh_room(i);
    const double diagonal = set.kernel[i * set.stride + i];
    scale_[i] = 1.0 / std::sqrt(std::max(diagonal, 1e-6));
  }
  const auto size = static_cast<std::int64_t>(set.size);
  double before = violation();
  bool newton_works = true;
  while (before > tolerance && report_.updates < max_updates) {
    const std::int64_t round = std::min(2 * size + 16, max_updates - report_.updates);
    if (set_.group) {
      descend_pairs(tolerance, round);
    } else {
      descend_coordinates(tolerance, round);
    }
    double after = violation();
    if (after <= tolerance) {
      before = after;
      break;
    }
    const double n_free = static_cast<double>(std::count_if(
        room_up_.begin(), room_up_.begin() + size,
        [this, k = std::size_t{0}](double up) mutable { return (up > 0) & (room_down_[k++] > 0); }));
    const double rate = std::log(std::max(before / after, 1.05));
    const double rounds_left = std::log(after / tolerance) / rate;
    const double descent_cost = rounds_left * static_cast<double>(round * size) * coordinate_cost;
    const double newton_cost = n_free * n_free * (cholesky_cost * n_free + newton_entry_cost);
    if (newton_works && n_free > 0 && newton_cost < descent_cost) {
      newton_works = newton_step(n_threads);
      after = violation();
    }
    before = after;
  }
  report_.violation = before;
  return report_;
}

double WorkingSetSolver::violation() const {
  const BoxQp qp{set_.size, nullptr, nullptr, set_.lower, set_.upper, set_.group, set_.n_groups};
  std::vector<GroupRange> ranges(static_cast<std::size_t>(set_.n_groups));
  double largest = 0;
  for (std::size_t i = 0; i < set_.size; ++i) {
    if (const int group = qp.group_of(i); group >= 0) {
      ranges[static_cast<std::size_t>(group)].include(set_.alpha[i], set_.lower[i], set_.upper[i], set_.gradient[i]);
    } else {
      largest = std::max(largest, projected_gradient(set_.alpha[i], set_.lower[i], set_.upper[i], set_.gradient[i]));
    }
  }
  for (const GroupRange& range : ranges) largest = std::max(largest, range.violation());
  return largest;
}

// Coordinate descent on the variable with the largest scaled violation (equation (4) of the
// paper's update rule), one fused pass over a kernel row per update.
void WorkingSetSolver::descend_coordinates(double tolerance, std::int64_t max_updates) {
  const CoordinateState state{set_.stride, set_.gradient, room_up_.data(), room_down_.data(), scale_.data()};
  const double target = tolerance * *std::min_element(scale_.begin(), scale_.begin() + static_cast<std::ptrdiff_t>(set_.size));
  double largest = 0;
  std::size_t i = isa().descend(state, set_.kernel, 0.0, &largest);
  for (std::int64_t k = 0; k < max_updates && largest > target; ++k) {
    const float* row = set_.kernel + i * set_.stride;
    const double gradient = set_.gradient[i], curvature = row[i], old = set_.alpha[i];
    double alpha;
    if (curvature > smallest_curvature) {
      alpha = std::clamp(old - gradient / curvature, set_.lower[i], set_.upper[i]);
    } else {
      alpha = gradient > 0 ? set_.lower[i] : set_.upper[i];
    }
    set_.alpha[i] = alpha;
    refresh_room(i);
    ++report_.updates;
    if (alpha == old) break;  // the step is below the resolution of alpha
    i = isa().descend(state, row, alpha - old, &largest);
  }
}

// SMO with second-order selection of the partner inside the group of the most violating pair
// (Fan, Chen and Lin, JMLR 6, 2005). Variables outside every group are updated alone.
void WorkingSetSolver::descend_pairs(double tolerance, std::int64_t max_updates) {
  for (std::int64_t step = 0; step < max_updates; ++step) {
    std::vector<GroupRange> ranges(static_cast<std::size_t>(set_.n_groups));
    std::vector<std::size_t> top(ranges.size(), 0);
    double largest = tolerance;
    std::size_t i = set_.size;
    int worst_group = -1;
    for (std::size_t k = 0; k < set_.size; ++k) {
      const int group = set_.group[k];
      if (group < 0) {
        const double v = projected_gradient(set_.alpha[k], set_.lower[k], set_.upper[k], set_.gradient[k]);
        if (v > largest) {
          largest = v;
          i = k;
        }
        continue;
      }
      GroupRange& range = ranges[static_cast<std::size_t>(group)];
      if (room_up_[k] > 0 && -set_.gradient[k] > range.grow) top[static_cast<std::size_t>(group)] = k;
      range.include(set_.alpha[k], set_.lower[k], set_.upper[k], set_.gradient[k]);
    }
    for (int group = 0; group < set_.n_groups; ++group) {
      const double v = ranges[static_cast<std::size_t>(group)].violation();
      if (v > largest) {
        largest = v;
        i = top[static_cast<std::size_t>(group)];
        worst_group = group;
      }
    }
    if (i == set_.size) return;
    ++report_.updates;
    const float* row_i = set_.kernel + i * set_.stride;
    if (worst_group < 0) {
      const double curvature = std::max<double>(row_i[i], smallest_curvature);
      move(i, std::clamp(set_.alpha[i] - set_.gradient[i] / curvature, set_.lower[i], set_.upper[i]));
      continue;
    }
    std::size_t j = set_.size;
    double best = 0;
    for (std::size_t k = 0; k < set_.size; ++k) {
      if (set_.group[k] != worst_group || !(room_down_[k] > 0)) continue;
      const double difference = set_.gradient[k] - set_.gradient[i];
      if (difference <= 0) continue;
      const double curvature = std::max<double>(
          static_cast<double>(row_i[i]) + set_.kernel[k * set_.stride + k] - 2.0 * row_i[k], smallest_curvature);
      const double gain = difference * difference / curvature;
      if (gain > best) {
        best = gain;
        j = k;
      }
    }
    if (j == set_.size) return;
    const double curvature = std::max<double>(
        static_cast<double>(row_i[i]) + set_.kernel[j * set_.stride + j] - 2.0 * row_i[j], smallest_curvature);
    const double room = std::min(set_.upper[i] - set_.alpha[i], set_.alpha[j] - set_.lower[j]);
    const double t = std::min((set_.gradient[j] - set_.gradient[i]) / curvature, room);
    const double new_i = t == set_.upper[i] - set_.alpha[i] ? set_.upper[i] : set_.alpha[i] + t;
    const double new_j = t == set_.alpha[j] - set_.lower[j] ? set_.lower[j] : set_.alpha[j] - t;
    if (new_i == set_.alpha[i] || new_j == set_.alpha[j]) return;
    move(i, new_i);
    move(j, new_j);
  }
}

void WorkingSetSolver::move(std::size_t i, double target) {
  const double change = target - set_.alpha[i];
  const float* row = set_.kernel + i * set_.stride;
  set_.alpha[i] = target;
  refresh_room(i);
  for (std::size_t k = 0; k < set_.size; ++k) set_.gradient[k] += change * row[k];
}

// K change over the working set.
std::vector<double> WorkingSetSolver::product(const std::vector<double>& change) const {
  std::vector<double> sum(set_.stride, 0.0), weights;
  std::vector<const float*> rows;
  for (std::size_t i = 0; i < set_.size; ++i) {
    if (change[i] == 0.0) continue;
    rows.push_back(set_.kernel + i * set_.stride);
    weights.push_back(change[i]);
  }
  isa().weighted_sum_f32(rows.data(), weights.data(), rows.size(), set_.stride, sum.data());
  return sum;
}

// K_FF d = -g_F (with the groups' sums kept): fills `direction` over the free variables.
bool WorkingSetSolver::solve_free(std::vector<double>& direction, int n_threads) {
  const std::size_t n = free_.size();
  double mean_diagonal = 0;
  for (const std::int32_t i : free_) mean_diagonal += set_.kernel[static_cast<std::size_t>(i) * (set_.stride + 1)];
  mean_diagonal /= static_cast<double>(n);
  for (double ridge = smallest_ridge;; ridge *= 10) {
    if (ridge > largest_ridge) return false;
    cholesky_.reset(n);
    for (std::size_t a = 0; a < n; ++a) {
      const float* row = set_.kernel + static_cast<std::size_t>(free_[a]) * set_.stride;
      for (std::size_t b = 0; b <= a; ++b) cholesky_.at(a, b) = row[free_[b]];
      cholesky_.at(a, a) += ridge * mean_diagonal;
    }
    if (cholesky_.factor(n_threads)) break;
  }
  direction.resize(n);
  for (std::size_t a = 0; a < n; ++a) direction[a] = -set_.gradient[free_[a]];
  cholesky_.solve(direction.data());
  for (int group = 0; group < set_.n_groups; ++group) {
    std::vector<double> ones(n);
    for (std::size_t a = 0; a < n; ++a) ones[a] = set_.group[free_[a]] == group ? 1.0 : 0.0;
    std::vector<double> solution = ones;
    cholesky_.solve(solution.data());
    double sum_direction = 0, sum_solution = 0;
    for (std::size_t a = 0; a < n; ++a) {
      sum_direction += ones[a] * direction[a];
      sum_solution += ones[a] * solution[a];
    }
    if (sum_solution == 0) continue;
    for (std::size_t a = 0; a < n; ++a) direction[a] -= sum_direction / sum_solution * solution[a];
  }
  return true;
}

// Moves towards a feasible target as far as the exact line search says. False when the objective
// would not fall.
bool WorkingSetSolver::take_step(const std::vector<double>& target, double* decrease) {
  std::vector<double> change(set_.size);
  double slope = 0;
  for (std::size_t i = 0; i < set_.size; ++i) {
    change[i] = target[i] - set_.alpha[i];
    slope += set_.gradient[i] * change[i];
  }
  *decrease = 0;
  if (!(slope < 0)) return false;
  const std::vector<double> kernel_change = product(change);
  double curvature = 0;
  for (std::size_t i = 0; i < set_.size; ++i) curvature += change[i] * kernel_change[i];
  const double t = curvature > -slope ? -slope / curvature : 1.0;
  *decrease = -t * (slope + 0.5 * t * curvature);
  if (!(*decrease > 0)) return false;
  for (std::size_t i = 0; i < set_.size; ++i) {
    set_.gradient[i] += t * kernel_change[i];
    if (change[i] == 0.0) continue;
    set_.alpha[i] = t == 1.0 ? target[i] : std::clamp(set_.alpha[i] + t * change[i], set_.lower[i], set_.upper[i]);
    refresh_room(i);
  }
  return true;
}

// One projected Newton step on the free variables. Without sums the full step is clipped to the
// box; with them, and where clipping does not descend, it stops at the first bound.
bool WorkingSetSolver::newton_step(int n_threads) {
  const auto start = std::chrono::steady_clock::now();
  free_.clear();
  for (std::size_t i = 0; i < set_.size; ++i) {
    if (room_up_[i] > 0 && room_down_[i] > 0) free_.push_back(static_cast<std::int32_t>(i));
  }
  std::vector<double> direction;
  bool moved = false;
  if (solve_free(direction, n_threads)) {
    ++report_.newton_steps;
    std::vector<double> target(set_.alpha, set_.alpha + set_.size);
    double decrease = 0;
    if (!set_.group) {
      for (std::size_t a = 0; a < free_.size(); ++a) {
        const auto i = static_cast<std::size_t>(free_[a]);
        target[i] = std::clamp(set_.alpha[i] + direction[a], set_.lower[i], set_.upper[i]);
      }
      moved = take_step(target, &decrease);
    }
    if (!moved) {
      double t = 1.0;
      for (std::size_t a = 0; a < free_.size(); ++a) {
        const auto i = static_cast<std::size_t>(free_[a]);
        const double room = direction[a] > 0 ? set_.upper[i] - set_.alpha[i] : set_.alpha[i] - set_.lower[i];
        if (std::fabs(direction[a]) * t > room) t = room / std::fabs(direction[a]);
      }
      for (std::size_t a = 0; a < free_.size(); ++a) {
        const auto i = static_cast<std::size_t>(free_[a]);
        const double value = set_.alpha[i] + t * direction[a];
        const double resolution = 1e-14 * (set_.upper[i] - set_.lower[i]);
        target[i] = value >= set_.upper[i] - resolution   ? set_.upper[i]
                    : value <= set_.lower[i] + resolution ? set_.lower[i]
                                                          : value;
      }
      moved = take_step(target, &decrease);
    }
  }
  report_.seconds_newton += seconds_since(start);
  return moved;
}

}  // namespace dcsvm
