// State of the linear-kernel solvers: alpha and w = X' alpha of a box QP.
//
// While variables move one at a time, each equality constraint is enforced by a penalty on its
// residual `excess` and a multiplier (method of multipliers; Hestenes 1969, Powell 1969).
#pragma once

#include <cstddef>
#include <vector>

#include "kernel/linear_rows.h"
#include "solver/box_qp.h"

namespace dcsvm {

struct LinearState {
  LinearState(const Points& points, const BoxQP& problem, const double* start, int threads);

  LinearRows rows;
  const BoxQP& qp;
  int n_threads;
  std::vector<std::int32_t> row;  // of each variable
  std::vector<double> diagonal;   // <x, x> of each variable
  double mean_diagonal = 1, largest_diagonal = 0;
  double n_values = 0;  // stored values of all rows, the unit of work
  std::vector<double> alpha, w;
  std::vector<double> totals, excess,
      multipliers;  // of the equality constraints; totals: their fixed sums

  RowList row_list() const { return {&rows.points(), row.data(), row.size()}; }
  // Returns the multiplier of the variable's constraint, which is added to its gradient.
  double multiplier_at(std::size_t i) const {
    const int constraint = qp.constraint_at(i);
    return constraint < 0 ? 0.0 : multipliers[static_cast<std::size_t>(constraint)];
  }
  // Recomputes w and the excess from alpha.
  void recompute();
  // Moves free variables by equal amounts within their bounds until the equality constraints hold,
  // then recomputes.
  void restore_constraints();
  // X w - linear, without multipliers.
  void gradient(double* out) const;

  // State that the problem does not determine.
  template <class Archive>
  void archive(Archive& archive) {
    archive(alpha);
    archive(w);
    archive(totals);
    archive(excess);
    archive(multipliers);
  }
  bool is_sound() const {
    const auto n_constraints = static_cast<std::size_t>(qp.n_constraints);
    return alpha.size() == qp.size && w.size() == rows.dimension() &&
           totals.size() == n_constraints && excess.size() == n_constraints &&
           multipliers.size() == n_constraints;
  }
};

}  // namespace dcsvm
