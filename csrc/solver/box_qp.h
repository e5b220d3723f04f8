// The problem every solver sees, and its optimality measures.
//
//   minimise 1/2 a'Ka - linear'a   with   lower <= a <= upper,
//
// and optionally groups of variables whose sums stay as they are. `alpha` is signed: it is y_i
// alpha_i of the paper, so no label appears below. C-SVC without bias is linear = y, bounds
// [0, C] or [-C, 0] and no group; with bias all variables are group 0. The gradient is Ka - linear.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <numeric>
#include <vector>

namespace dcsvm {

struct BoxQp {
  std::size_t size = 0;
  const std::int32_t* row = nullptr;  // row of K a variable uses; null: variable i uses row i
  const double* linear = nullptr;
  const double* lower = nullptr;
  const double* upper = nullptr;
  const std::int8_t* group = nullptr;  // -1: not in a sum; null: no sums at all
  int n_groups = 0;

  std::size_t row_of(std::size_t i) const { return row ? static_cast<std::size_t>(row[i]) : i; }
  int group_of(std::size_t i) const { return group ? group[i] : -1; }
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

// Amount by which moving alpha inside its bounds can still follow the negative gradient.
inline double projected_gradient(double alpha, double lower, double upper, double gradient) {
  if (gradient > 0) return alpha > lower ? gradient : 0.0;
  return alpha < upper ? -gradient : 0.0;
}

// For every group the largest -gradient that may grow and the smallest that may shrink (m and M
// of LIBSVM); their middle is the multiplier of the group's sum.
struct GroupRange {
  double grow = -std::numeric_limits<double>::infinity();
  double shrink = std::numeric_limits<double>::infinity();

  void include(double alpha, double lower, double upper, double gradient) {
    if (alpha < upper) grow = std::max(grow, -gradient);
    if (alpha > lower) shrink = std::min(shrink, -gradient);
  }
  double violation() const { return std::max(grow - shrink, 0.0); }
  // What is added to the gradient of the group's variables so that the optimum reads as zero.
  double multiplier() const {
    if (grow == -std::numeric_limits<double>::infinity())
      return shrink == std::numeric_limits<double>::infinity() ? 0.0 : shrink;
    if (shrink == std::numeric_limits<double>::infinity()) return grow;
    return 0.5 * (grow + shrink);
  }
};

struct Optimality {
  double objective = 0;
  double violation = 0;
  double gap = 0;  // Frank-Wolfe gap at the groups' multipliers; the duality gap without groups
  std::vector<double> multipliers;  // of the groups
};

Optimality optimality(const BoxQp& qp, const double* alpha, const double* gradient);

}  // namespace dcsvm
