// The quadratic program solved by every solver, and its optimality measures.
//
// minimize 1/2 a'Ka - linear'a subject to lower <= a <= upper,
//
// optionally with equality constraints that fix sums of variables. `alpha` is signed: y_i alpha_i
// of the paper, so labels do not appear below. C-SVC without bias has linear = y, bounds [0, C] or
// [-C, 0] and no equality constraint; with bias all variables are in constraint 0. The gradient is
// Ka - linear.
//
// All solvers share one definition of the KKT violation. Without equality constraints it is the
// gradient projected onto the box. With them it is m - M of LIBSVM (Keerthi et al., Neural
// Computation 13, 2001): m is the largest -gradient of variables that can increase, M the smallest
// -gradient of variables that can decrease.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <numeric>
#include <vector>

namespace dcsvm {

// Returns the KKT violation of a variable. Branch-free, so that loops over it vectorize.
inline double violation_of(double alpha, double lower, double upper, double gradient) {
  const double down = alpha > lower ? gradient : 0.0, up = alpha < upper ? -gradient : 0.0;
  const double either = down > up ? down : up;
  return either > 0 ? either : 0.0;
}

// Range of an equality constraint: m (up) and M (down) of LIBSVM.
struct ConstraintRange {
  double up = -std::numeric_limits<double>::infinity();
  double down = std::numeric_limits<double>::infinity();

  void include(double alpha, double lower, double upper, double gradient) {
    if (alpha < upper) up = std::max(up, -gradient);
    if (alpha > lower) down = std::min(down, -gradient);
  }
  double violation() const { return std::max(up - down, 0.0); }
  // Returns the multiplier. At the optimum, gradient plus multiplier is zero for the constraint's
  // free variables.
  double multiplier() const {
    if (up == -std::numeric_limits<double>::infinity())
      return down == std::numeric_limits<double>::infinity() ? 0.0 : down;
    if (down == std::numeric_limits<double>::infinity()) return up;
    return 0.5 * (up + down);
  }
};

// Arguments of measure_violation().
struct BoxState {
  std::size_t size = 0;
  const double* alpha = nullptr;
  const double* gradient = nullptr;
  const double* lower = nullptr;
  const double* upper = nullptr;
  const std::int8_t* constraint_of = nullptr;  // of each variable; null: no equality constraints
  int n_constraints = 0;
};

struct Violation {
  double largest = 0;
  std::vector<double> multipliers;  // of the equality constraints

  // Returns the gradient plus the multiplier of the variable's constraint (-1: unconstrained).
  double reduced(double gradient, int constraint) const {
    return constraint < 0 ? gradient : gradient + multipliers[static_cast<std::size_t>(constraint)];
  }
};

// Stores the violation of each variable in `each` unless it is null.
Violation measure_violation(const BoxState& state, double* each = nullptr);

struct BoxQP {
  std::size_t size = 0;
  const std::int32_t* row = nullptr;  // row of K of each variable; null: variable i uses row i
  const double* linear = nullptr;
  const double* lower = nullptr;
  const double* upper = nullptr;
  const std::int8_t* constraint_of = nullptr;  // of each variable; null: no equality constraints
  int n_constraints = 0;
  double violation_scale = 1;      // unit of reported violations and of the tolerance
  bool divides_by_margin = false;  // nu-SVC: the solution is divided by its margin

  std::size_t row_of(std::size_t i) const { return row ? static_cast<std::size_t>(row[i]) : i; }
  int constraint_at(std::size_t i) const { return constraint_of ? constraint_of[i] : -1; }
  BoxState state(const double* alpha, const double* gradient) const {
    return {size, alpha, gradient, lower, upper, constraint_of, n_constraints};
  }
  // Returns the violation scale at the given multipliers. For nu-SVC it is the margin if that is
  // smaller, since dividing the solution by the margin also divides the violation.
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
  double violation_scale = 1;       // unit of the reported violation
  double gap = 0;                   // Frank-Wolfe gap; without equality constraints the duality gap
  std::vector<double> multipliers;  // of the equality constraints
};

Optimality optimality(const BoxQP& qp, const double* alpha, const double* gradient);

// State of a solve, in arrays of the problem's size; a solve can stop and resume at any outer step.
//
// The gradient of a shrunk variable is not updated: it belongs to `base`, the alpha at which all
// gradients were last known. Gradient reconstruction adds the change since.

// Which alpha the stored gradient of a variable belongs to.
enum class GradientState : std::uint8_t {
  unknown,   // the stored value is meaningless
  at_base,   // K base - linear
  at_alpha,  // K alpha - linear
};

struct Iterate {
  double* alpha = nullptr;
  double* gradient = nullptr;
  double* base = nullptr;  // alpha at the last full gradient
  GradientState* known = nullptr;
};

}  // namespace dcsvm
