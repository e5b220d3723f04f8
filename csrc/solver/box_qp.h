// The problem every solver sees, and its optimality measures.
//
//   minimise 1/2 a'Ka - linear'a   with   lower <= a <= upper,
//
// and optionally sums of variables that stay as they are. `alpha` is signed: it is y_i alpha_i of
// the paper, so no label appears below. C-SVC without bias is linear = y, bounds [0, C] or [-C, 0]
// and no sum; with bias all variables are in sum 0. The gradient is Ka - linear.
//
// How far an alpha is from optimal, the violation of the KKT conditions, is said once for all
// solvers. Where there are no sums a variable violates them by its gradient projected onto the box.
// Variables of a sum need only agree with each other: -gradient of those that may go up must not
// exceed that of those that may go down (m and M of LIBSVM; Keerthi et al., Neural Computation 13,
// 2001).
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <numeric>
#include <vector>

namespace dcsvm {

// Amount by which moving alpha inside its bounds can still follow the negative gradient. Without
// branches, so that loops over it become vectors.
inline double violation_of(double alpha, double lower, double upper, double gradient) {
  const double down = alpha > lower ? gradient : 0.0, up = alpha < upper ? -gradient : 0.0;
  const double either = down > up ? down : up;
  return either > 0 ? either : 0.0;
}

// Of a sum: the largest -gradient of variables that may go up, the smallest of those that may go
// down.
struct ConstraintRange {
  double up = -std::numeric_limits<double>::infinity();
  double down = std::numeric_limits<double>::infinity();

  void include(double alpha, double lower, double upper, double gradient) {
    if (alpha < upper) up = std::max(up, -gradient);
    if (alpha > lower) down = std::min(down, -gradient);
  }
  double violation() const { return std::max(up - down, 0.0); }
  // What is added to the gradient of the sum's variables so that it is zero at the optimum.
  double multiplier() const {
    if (up == -std::numeric_limits<double>::infinity())
      return down == std::numeric_limits<double>::infinity() ? 0.0 : down;
    if (down == std::numeric_limits<double>::infinity()) return up;
    return 0.5 * (up + down);
  }
};

// What the violation at an alpha depends on.
struct BoxState {
  std::size_t size = 0;
  const double* alpha = nullptr;
  const double* gradient = nullptr;
  const double* lower = nullptr;
  const double* upper = nullptr;
  const std::int8_t* constraint_of = nullptr;  // of every variable; null: there are no sums
  int n_constraints = 0;
};

struct Violation {
  double largest = 0;
  std::vector<double> multipliers;  // of the sums

  // The gradient of a variable with the multiplier of its sum; -1: there are no sums.
  double reduced(double gradient, int sum) const {
    return sum < 0 ? gradient : gradient + multipliers[static_cast<std::size_t>(sum)];
  }
};

// `each`, unless null, gets the violation of every variable, of its reduced gradient.
Violation measure_violation(const BoxState& state, double* each = nullptr);

struct BoxQP {
  std::size_t size = 0;
  const std::int32_t* row = nullptr;  // row of K a variable uses; null: variable i uses row i
  const double* linear = nullptr;
  const double* lower = nullptr;
  const double* upper = nullptr;
  const std::int8_t* constraint_of = nullptr;  // of every variable; null: there are no sums
  int n_constraints = 0;
  double violation_scale = 1;      // of violations as they are told and asked for
  bool divides_by_margin = false;  // the solution of two sums is divided by its margin: nu-SVC

  std::size_t row_of(std::size_t i) const { return row ? static_cast<std::size_t>(row[i]) : i; }
  int constraint_at(std::size_t i) const { return constraint_of ? constraint_of[i] : -1; }
  BoxState state(const double* alpha, const double* gradient) const {
    return {size, alpha, gradient, lower, upper, constraint_of, n_constraints};
  }
  // The unit, or the margin where that is smaller: a violation over it is one of the divided
  // problem.
  double violation_scale_at(const std::vector<double>& multipliers) const {
    if (!divides_by_margin || multipliers.empty()) return violation_scale;
    const double margin = 0.5 * std::fabs(multipliers[0] - multipliers[1]);
    return std::clamp(margin, std::numeric_limits<double>::min(), violation_scale);
  }
  std::vector<std::int32_t> everything() const {
    std::vector<std::int32_t> variables(size);
    std::iota(variables.begin(), variables.end(), 0);
    return variables;
  }
  std::vector<std::int32_t> rows_of(const std::vector<std::int32_t>& variables) const {
    if (!row) return variables;
    std::vector<std::int32_t> rows;
    rows.reserve(variables.size());
    for (const std::int32_t i : variables) rows.push_back(row[i]);
    return rows;
  }
};

struct Optimality {
  double objective = 0;
  double violation = 0;
  double violation_scale = 1;  // in which it is told
  double gap = 0;  // Frank-Wolfe gap at the sums' multipliers; without sums the duality gap
  std::vector<double> multipliers;  // of the sums
};

Optimality optimality(const BoxQP& qp, const double* alpha, const double* gradient);

// The state of a solve, in arrays of the problem's size: it can end anywhere and go on from there.
//
// The gradient of a variable that is shrunk away is not kept up to date: it is that of `base`, the
// alpha when all gradients were last known, and what changed since is added when it is needed.

// What the gradient of a variable is.
enum class GradientState : std::uint8_t {
  unknown,   // not known
  at_base,   // K base - linear
  at_alpha,  // K alpha - linear
};

struct Iterate {
  double* alpha = nullptr;
  double* gradient = nullptr;
  double* base = nullptr;  // an earlier alpha
  GradientState* known = nullptr;
};

}  // namespace dcsvm
