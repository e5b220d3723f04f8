// The problem every solver sees, and its optimality measures.
//
//   minimise 1/2 a'Ka - linear'a   with   lower <= a <= upper,
//
// and optionally sums of variables that stay as they are. `alpha` is signed: it is y_i alpha_i of
// the paper, so no label appears below. C-SVC without bias is linear = y, bounds [0, C] or [-C, 0]
// and no sum; with bias all variables are in sum 0. The gradient is Ka - linear.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <numeric>
#include <vector>

#include "solver/violation.h"

namespace dcsvm {

struct BoxQp {
  std::size_t size = 0;
  const std::int32_t* row = nullptr;  // row of K a variable uses; null: variable i uses row i
  const double* linear = nullptr;
  const double* lower = nullptr;
  const double* upper = nullptr;
  const std::int8_t* sum_of = nullptr;  // of every variable; null: there are no sums
  int n_sums = 0;
  double unit = 1;                 // of violations as they are told and asked for
  bool divides_by_margin = false;  // the solution of two sums is divided by its margin: nu-SVC

  std::size_t row_of(std::size_t i) const { return row ? static_cast<std::size_t>(row[i]) : i; }
  int sum_at(std::size_t i) const { return sum_of ? sum_of[i] : -1; }
  BoxState state(const double* alpha, const double* gradient) const {
    return {size, alpha, gradient, lower, upper, sum_of, n_sums};
  }
  // The unit, or the margin where that is smaller: a violation over it is one of the divided
  // problem.
  double unit_at(const std::vector<double>& multipliers) const {
    if (!divides_by_margin || multipliers.empty()) return unit;
    const double margin = 0.5 * std::fabs(multipliers[0] - multipliers[1]);
    return std::clamp(margin, std::numeric_limits<double>::min(), unit);
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
  double unit = 1;  // in which it is told
  double gap = 0;   // Frank-Wolfe gap at the sums' multipliers; without sums the duality gap
  std::vector<double> multipliers;  // of the sums
};

Optimality optimality(const BoxQp& qp, const double* alpha, const double* gradient);

}  // namespace dcsvm
