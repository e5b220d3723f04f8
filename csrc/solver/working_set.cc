#include "solver/working_set.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <limits>

#include "simd/isa.h"
#include "solver/box_qp.h"

namespace dcsvm {

namespace {

constexpr double immovable = std::numeric_limits<double>::quiet_NaN();
constexpr double smallest_curvature = 1e-12;
constexpr double smallest_damping = 1e-7, largest_damping = 1e-1;
constexpr std::size_t most_held = 16;  // bounds a Newton step may run into

// Nanoseconds, fixed: what decides between coordinate descent and Newton.
constexpr double coordinate_cost = 0.25;   // per entry of a kernel row
constexpr double cholesky_cost = 0.0045;   // per |F|^3
constexpr double newton_entry_cost = 2.0;  // per |F|^2
// Coordinate descent slows down as it nears the optimum: what it says of itself is divided by this.
constexpr double slowing = 5.0;

double seconds_since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

}  // namespace

void WorkingSetSolver::refresh_side(std::size_t i) {
  const bool grows = set_.alpha[i]<set_.upper[i], shrinks = set_.alpha[i]> set_.lower[i];
  side_[i] = grows == shrinks ? (grows ? 0.0 : immovable) : grows ? 1.0 : -1.0;
}

WorkingSetReport WorkingSetSolver::solve(const WorkingSet& set, double tolerance,
                                         std::int64_t max_updates, int n_threads) {
  set_ = set;
  report_ = {};
  side_.assign(set.stride, immovable);
  scale_.assign(set.stride, 1.0);
  for (std::size_t i = set.size; i < set.stride; ++i) set_.gradient[i] = 0.0;
  for (std::size_t i = 0; i < set.size; ++i) {
    refresh_side(i);
    const double diagonal = set.kernel[i * set.stride + i];
    scale_[i] = 1.0 / std::sqrt(std::max(diagonal, 1e-6));
  }
  has_one_sum_ = set.group && std::all_of(set.group, set.group + set.size,
                                          [&set](std::int8_t g) { return g == set.group[0]; });
  has_one_sum_ = has_one_sum_ && set.size > 0 && set.group[0] >= 0;
  const auto size = static_cast<std::int64_t>(set.size);
  double before = violation();
  while (before > tolerance && report_.updates < max_updates) {
    const std::int64_t updates = report_.updates;
    const std::int64_t round = std::min(2 * size + 16, max_updates - report_.updates);
    const double gain = !set_.group    ? descend_coordinates(tolerance, round)
                        : has_one_sum_ ? descend_one_sum(tolerance, round)
                                       : descend_pairs(tolerance, round);
    bool moved = false;
    double after = violation();
    if (after > tolerance) {
      const double round_cost = static_cast<double>(round * size) * coordinate_cost;
      if (newton_pays(before, after, tolerance, gain, round_cost)) {
        moved = newton_step(n_threads) > 0;
        after = violation();
      }
    }
    // what is left is below the resolution of alpha
    if (!moved && report_.updates == updates) break;
    before = after;
  }
  report_.violation = before;
  report_.cost += static_cast<double>(report_.updates * size) * coordinate_cost;
  return report_;
}

// Newton is tried when coordinate descent, at the rate of its last round, would need longer to the
// tolerance than a factorisation takes, and the last step was worth more per nanosecond than that
// round. A step not taken doubles the belief in the next.
bool WorkingSetSolver::newton_pays(double before, double after, double tolerance,
                                   double descent_gain, double round_cost) {
  collect_free();
  if (free_.empty()) return false;
  const double rate = std::log(std::max(before / after, 1.05));
  const double n = static_cast<double>(free_.size());
  const double cost = n * n * (cholesky_cost * n + newton_entry_cost) / slowing;
  if (cost >= std::log(after / tolerance) / rate * round_cost) return false;
  if (newton_value_ > 0 && newton_value_ * slowing < descent_gain / round_cost) {
    newton_value_ *= 2;
    return false;
  }
  return true;
}

double WorkingSetSolver::violation() const {
  const BoxQp qp{set_.size, nullptr, nullptr, set_.lower, set_.upper, set_.group, set_.n_groups};
  std::vector<GroupRange> ranges(static_cast<std::size_t>(set_.n_groups));
  double largest = 0;
  for (std::size_t i = 0; i < set_.size; ++i) {
    if (const int group = qp.group_of(i); group >= 0) {
      ranges[static_cast<std::size_t>(group)].include(set_.alpha[i], set_.lower[i], set_.upper[i],
                                                      set_.gradient[i]);
    } else {
      largest = std::max(largest, projected_gradient(set_.alpha[i], set_.lower[i], set_.upper[i],
                                                     set_.gradient[i]));
    }
  }
  for (const GroupRange& range : ranges) largest = std::max(largest, range.violation());
  return largest;
}

// Descent on two variables: the one with the largest scaled violation and the one that lowers the
// objective most together with it. One fused pass over their kernel rows per update.
double WorkingSetSolver::descend_coordinates(double tolerance, std::int64_t max_updates) {
  const bool scaled = std::any_of(scale_.begin(), scale_.end(), [](double s) { return s != 1.0; });
  const CoordinateState state{set_.stride, set_.gradient, side_.data(),
                              scaled ? scale_.data() : nullptr};
  const double target = tolerance * *std::min_element(scale_.begin(), scale_.end());
  set_diagonal();
  double largest = 0, total_gain = 0;
  const float* none = set_.kernel;
  std::size_t i = isa().descend(state, none, 0.0, none, 0.0, &largest);
  for (std::int64_t k = 0; k < max_updates && largest > target; ++k) {
    const float* row_i = set_.kernel + i * set_.stride;
    double gain = 0;
    std::size_t j = i;
    if (row_i[i] > smallest_curvature)
      j = isa().best_companion(state, diagonal_.data(), row_i, i, &gain);
    if (!(gain > 0) || j >= set_.size) j = i;
    double step_i, step_j;
    const double fell = move_two(i, j, &step_i, &step_j);
    ++report_.updates;
    if (step_i == 0.0 && step_j == 0.0) break;  // below the resolution of alpha
    total_gain += fell;
    i = isa().descend(state, row_i, step_i, set_.kernel + j * set_.stride, step_j, &largest);
  }
  return total_gain;
}

// Minimises over two variables inside their bounds (one where they are the same) and returns by how
// much the objective fell.
double WorkingSetSolver::move_two(std::size_t i, std::size_t j, double* step_i, double* step_j) {
  const double g = set_.gradient[i], h = set_.gradient[j];
  const double a = diagonal_[i], c = diagonal_[j], b = set_.kernel[i * set_.stride + j];
  const double low_i = set_.lower[i] - set_.alpha[i], high_i = set_.upper[i] - set_.alpha[i];
  const double low_j = set_.lower[j] - set_.alpha[j], high_j = set_.upper[j] - set_.alpha[j];
  const auto best = [](double slope, double curvature, double low, double high) {
    if (curvature > smallest_curvature) return std::clamp(-slope / curvature, low, high);
    return slope > 0 ? low : high;
  };
  const auto value = [&](double s, double t) {
    return s * (g + 0.5 * a * s) + t * (h + 0.5 * c * t) + b * s * t;
  };
  double s = best(g, a, low_i, high_i), t = 0, lowest = value(s, 0);
  if (i != j) {
    const auto consider = [&](double new_s, double new_t) {
      const double now = value(new_s, new_t);
      if (!(now < lowest)) return;
      lowest = now;
      s = new_s;
      t = new_t;
    };
    const double determinant = a * c - b * b;
    const double free_s = (b * h - c * g) / determinant, free_t = (b * g - a * h) / determinant;
    if (determinant > smallest_share * a * c && free_s >= low_i && free_s <= high_i &&
        free_t >= low_j && free_t <= high_j) {
      consider(free_s, free_t);
    } else {
      for (const double end : {low_i, high_i}) consider(end, best(h + b * end, c, low_j, high_j));
      for (const double end : {low_j, high_j}) consider(best(g + b * end, a, low_i, high_i), end);
    }
  }
  const auto apply = [this](std::size_t k, double step, double low, double high) {
    const double old = set_.alpha[k];
    set_.alpha[k] = step == low    ? set_.lower[k]
                    : step == high ? set_.upper[k]
                                   : std::clamp(old + step, set_.lower[k], set_.upper[k]);
    refresh_side(k);
    return set_.alpha[k] - old;
  };
  *step_i = apply(i, s, low_i, high_i);
  *step_j = i == j ? 0.0 : apply(j, t, low_j, high_j);
  return -lowest;
}

void WorkingSetSolver::set_diagonal() {
  diagonal_.assign(set_.stride, 1.0);
  for (std::size_t i = 0; i < set_.size; ++i) diagonal_[i] = set_.kernel[i * set_.stride + i];
}

// SMO with second-order selection of the partner where all variables are in one sum.
double WorkingSetSolver::descend_one_sum(double tolerance, std::int64_t max_updates) {
  const CoordinateState state{set_.stride, set_.gradient, side_.data(), nullptr};
  set_diagonal();
  double grow = 0, shrink = 0, total_gain = 0;
  std::size_t i = isa().descend_pair(state, set_.kernel, 0.0, set_.kernel, 0.0, &grow, &shrink);
  for (std::int64_t k = 0; k < max_updates && grow - shrink > tolerance; ++k) {
    const float* row_i = set_.kernel + i * set_.stride;
    double gain = 0;
    const std::size_t j = isa().best_partner(state, diagonal_.data(), row_i, i, &gain);
    if (!(gain > 0)) break;
    const double curvature =
        std::max(diagonal_[i] + diagonal_[j] - 2.0 * row_i[j], smallest_pair_curvature);
    double step_i, step_j;
    if (!move_pair(i, j, curvature, &step_i, &step_j, &total_gain)) break;
    ++report_.updates;
    i = isa().descend_pair(state, row_i, step_i, set_.kernel + j * set_.stride, step_j, &grow,
                           &shrink);
  }
  return total_gain;
}

// Moves alpha_i up and alpha_j down by the same, as far as the objective falls and the bounds
// allow; false where that is below the resolution of alpha. One of them that is by less than that
// from its bound is put there, or it would be in the way for ever.
bool WorkingSetSolver::move_pair(std::size_t i, std::size_t j, double curvature, double* step_i,
                                 double* step_j, double* gain) {
  const double room = std::min(set_.upper[i] - set_.alpha[i], set_.alpha[j] - set_.lower[j]);
  const double slope = set_.gradient[j] - set_.gradient[i];
  const double t = std::min(slope / curvature, room);
  const double new_i = t == set_.upper[i] - set_.alpha[i] ? set_.upper[i] : set_.alpha[i] + t;
  const double new_j = t == set_.alpha[j] - set_.lower[j] ? set_.lower[j] : set_.alpha[j] - t;
  if (t < room && (new_i == set_.alpha[i] || new_j == set_.alpha[j])) return false;
  *gain += t * (slope - 0.5 * curvature * t);
  *step_i = new_i - set_.alpha[i];
  *step_j = new_j - set_.alpha[j];
  set_.alpha[i] = new_i;
  set_.alpha[j] = new_j;
  refresh_side(i);
  refresh_side(j);
  return true;
}

// SMO with second-order selection of the partner inside the group of the most violating pair
// (Fan, Chen and Lin, JMLR 6, 2005). Variables outside every group are updated alone. Both methods
// return by how much the objective fell.
double WorkingSetSolver::descend_pairs(double tolerance, std::int64_t max_updates) {
  double total_gain = 0;
  for (std::int64_t step = 0; step < max_updates; ++step) {
    std::vector<GroupRange> ranges(static_cast<std::size_t>(set_.n_groups));
    std::vector<std::size_t> top(ranges.size(), 0);
    double largest = tolerance;
    std::size_t i = set_.size;
    int worst_group = -1;
    for (std::size_t k = 0; k < set_.size; ++k) {
      const int group = set_.group[k];
      if (group < 0) {
        const double v =
            projected_gradient(set_.alpha[k], set_.lower[k], set_.upper[k], set_.gradient[k]);
        if (v > largest) {
          largest = v;
          i = k;
        }
        continue;
      }
      GroupRange& range = ranges[static_cast<std::size_t>(group)];
      if (side_[k] >= 0 && -set_.gradient[k] > range.grow) top[static_cast<std::size_t>(group)] = k;
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
    if (i == set_.size) break;
    ++report_.updates;
    const float* row_i = set_.kernel + i * set_.stride;
    if (worst_group < 0) {
      const double curvature = std::max<double>(row_i[i], smallest_curvature);
      move(i,
           std::clamp(set_.alpha[i] - set_.gradient[i] / curvature, set_.lower[i], set_.upper[i]));
      continue;
    }
    std::size_t j = set_.size;
    double best = 0;
    for (std::size_t k = 0; k < set_.size; ++k) {
      if (set_.group[k] != worst_group || !(side_[k] <= 0)) continue;
      const double difference = set_.gradient[k] - set_.gradient[i];
      if (difference <= 0) continue;
      const double curvature = std::max<double>(
          static_cast<double>(row_i[i]) + set_.kernel[k * set_.stride + k] - 2.0 * row_i[k],
          smallest_pair_curvature);
      const double gain = difference * difference / curvature;
      if (gain > best) {
        best = gain;
        j = k;
      }
    }
    if (j == set_.size) break;
    const double curvature = std::max<double>(
        static_cast<double>(row_i[i]) + set_.kernel[j * set_.stride + j] - 2.0 * row_i[j],
        smallest_curvature);
    double step_i, step_j;
    if (!move_pair(i, j, curvature, &step_i, &step_j, &total_gain)) break;
    add_row(i, step_i);
    add_row(j, step_j);
  }
  return total_gain;
}

void WorkingSetSolver::move(std::size_t i, double target) {
  const double change = target - set_.alpha[i];
  set_.alpha[i] = target;
  refresh_side(i);
  add_row(i, change);
}

// gradient += change times the kernel row of a member.
void WorkingSetSolver::add_row(std::size_t i, double change) {
  const float* row = set_.kernel + i * set_.stride;
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

void WorkingSetSolver::collect_free() {
  free_.clear();
  for (std::size_t i = 0; i < set_.size; ++i) {
    if (side_[i] == 0) free_.push_back(static_cast<std::int32_t>(i));
  }
}

// Factors K_FF + damping; false when it is not positive definite at any damping.
bool WorkingSetSolver::factor(int n_threads) {
  const std::size_t n = free_.size();
  double mean_diagonal = 0;
  for (const std::int32_t i : free_)
    mean_diagonal += set_.kernel[static_cast<std::size_t>(i) * (set_.stride + 1)];
  mean_diagonal /= static_cast<double>(n);
  for (; damping_ <= largest_damping; damping_ *= 10) {
    cholesky_.reset(n);
    for (std::size_t a = 0; a < n; ++a) {
      const float* row = set_.kernel + static_cast<std::size_t>(free_[a]) * set_.stride;
      for (std::size_t b = 0; b <= a; ++b) cholesky_.at(a, b) = row[free_[b]];
      cholesky_.at(a, a) += damping_ * mean_diagonal;
    }
    if (cholesky_.factor(n_threads)) return true;
  }
  damping_ = largest_damping;
  return false;
}

// Adds a linear constraint c'd = 0 on the direction.
void WorkingSetSolver::hold(const std::vector<double>& constraint) {
  constraints_.push_back(constraint);
  solved_constraints_.push_back(constraint);
  cholesky_.solve(solved_constraints_.back().data());
}

// Removes from an unconstrained Newton direction what the held constraints forbid:
// d - Z (C'Z)^-1 C'd with Z = K^-1 C.
void WorkingSetSolver::held_direction(std::vector<double>& direction) const {
  const std::size_t k = constraints_.size(), n = direction.size();
  if (k == 0) return;
  const auto dot = [n](const std::vector<double>& a, const std::vector<double>& b) {
    double sum = 0;
    for (std::size_t i = 0; i < n; ++i) sum += a[i] * b[i];
    return sum;
  };
  Cholesky small;
  small.reset(k);
  std::vector<double> multipliers(k);
  for (std::size_t i = 0; i < k; ++i) {
    for (std::size_t j = 0; j <= i; ++j)
      small.at(i, j) = dot(constraints_[i], solved_constraints_[j]);
    multipliers[i] = dot(constraints_[i], direction);
  }
  if (!small.factor(1)) {
    std::fill(direction.begin(), direction.end(), 0.0);
    return;
  }
  small.solve(multipliers.data());
  for (std::size_t j = 0; j < k; ++j) {
    for (std::size_t i = 0; i < n; ++i) direction[i] -= multipliers[j] * solved_constraints_[j][i];
  }
}

// Moves along a direction of the free variables to the first bound, or all the way; reports the
// free variables that are now at a bound and returns by how much the objective fell.
double WorkingSetSolver::step_to_bound(const std::vector<double>& direction, double* length,
                                       std::vector<std::int32_t>& blocked) {
  double t = 1.0, slope = 0.0;
  for (std::size_t a = 0; a < free_.size(); ++a) {
    const auto i = static_cast<std::size_t>(free_[a]);
    slope += set_.gradient[i] * direction[a];
    const double room =
        direction[a] > 0 ? set_.upper[i] - set_.alpha[i] : set_.alpha[i] - set_.lower[i];
    if (std::fabs(direction[a]) * t > room) t = room / std::fabs(direction[a]);
  }
  *length = t;
  blocked.clear();
  if (!(slope < 0)) return 0;
  std::vector<double> change(set_.size, 0.0), target(free_.size());
  for (std::size_t a = 0; a < free_.size(); ++a) {
    const auto i = static_cast<std::size_t>(free_[a]);
    const double resolution = 1e-13 * (set_.upper[i] - set_.lower[i]);
    target[a] = set_.alpha[i] + t * direction[a];
    if (direction[a] > 0 && target[a] >= set_.upper[i] - resolution) target[a] = set_.upper[i];
    if (direction[a] < 0 && target[a] <= set_.lower[i] + resolution) target[a] = set_.lower[i];
    change[i] = target[a] - set_.alpha[i];
  }
  const std::vector<double> kernel_change = product(change);
  double first = 0, second = 0;
  for (std::size_t i = 0; i < set_.size; ++i) {
    first += set_.gradient[i] * change[i];
    second += change[i] * kernel_change[i];
  }
  const double decrease = -(first + 0.5 * second);
  if (!(decrease > 0)) return 0;
  for (std::size_t i = 0; i < set_.size; ++i) set_.gradient[i] += kernel_change[i];
  for (std::size_t a = 0; a < free_.size(); ++a) {
    const auto i = static_cast<std::size_t>(free_[a]);
    if (change[i] == 0.0) continue;
    set_.alpha[i] = target[a];
    refresh_side(i);
    if (target[a] == set_.lower[i] || target[a] == set_.upper[i])
      blocked.push_back(static_cast<std::int32_t>(a));
  }
  return decrease;
}

// A damped Newton step on the free variables (Levenberg and Marquardt's damping: raised while the
// step would leave the box in many places, lowered when it hardly does). Bounds that are hit are
// held by constraints on the same factor, and the step goes on from there. Returns by how much
// the objective fell.
double WorkingSetSolver::newton_step(int n_threads) {
  const auto start = std::chrono::steady_clock::now();
  const std::size_t n = free_.size();
  double decrease = 0, cost = 0;
  std::vector<double> direction(n);
  for (;;) {
    cost += static_cast<double>(n) * static_cast<double>(n) *
            (cholesky_cost * static_cast<double>(n) + newton_entry_cost);
    if (!factor(n_threads)) break;
    ++report_.newton_steps;
    constraints_.clear();
    solved_constraints_.clear();
    for (int group = 0; group < set_.n_groups; ++group) {
      std::vector<double> members(n);
      for (std::size_t a = 0; a < n; ++a) members[a] = set_.group[free_[a]] == group ? 1.0 : 0.0;
      if (std::count(members.begin(), members.end(), 1.0) > 0) hold(members);
    }
    std::vector<std::int32_t> blocked;
    bool hits_many = false;
    // after a step t d the Newton direction is what is left of it, but for the damping
    std::vector<double> newton(n);
    for (std::size_t a = 0; a < n; ++a) newton[a] = -set_.gradient[free_[a]];
    cholesky_.solve(newton.data());
    for (std::size_t held = 0; held <= most_held; ++held) {
      direction = newton;
      held_direction(direction);
      std::size_t outside = 0;
      for (std::size_t a = 0; a < n; ++a) {
        const auto i = static_cast<std::size_t>(free_[a]);
        if (side_[i] != 0) direction[a] = 0.0;
        const double target = set_.alpha[i] + direction[a];
        outside += (target < set_.lower[i]) | (target > set_.upper[i]);
      }
      if (held == 0 && outside > most_held && damping_ < largest_damping) {
        hits_many = true;
        break;
      }
      if (held == 0 && outside <= most_held / 4)
        damping_ = std::max(damping_ / 10, smallest_damping);
      double t = 1.0;
      const double fell = step_to_bound(direction, &t, blocked);
      decrease += fell;
      cost += static_cast<double>(n * (2 * n + set_.size)) * coordinate_cost;
      if (blocked.empty() || !(fell > 0)) break;
      for (std::size_t a = 0; a < n; ++a) newton[a] -= t * direction[a];
      for (const std::int32_t a : blocked) {
        std::vector<double> unit(n, 0.0);
        unit[static_cast<std::size_t>(a)] = 1.0;
        hold(unit);
      }
    }
    if (!hits_many) break;
    damping_ *= 10;
  }
  newton_value_ = std::max(decrease / std::max(cost, 1.0), 1e-300);
  report_.seconds_newton += seconds_since(start);
  report_.cost += cost;
  return decrease;
}

}  // namespace dcsvm
