// A box QP of the linear kernel where the solvers of it stand: alpha with w = X' alpha.
//
// Sums that stay as they are have multipliers here, and `excess`, by how much a sum is off: while
// variables move one by one a sum is kept by a penalty and its multiplier (the method of
// multipliers; Hestenes 1969, Powell 1969).
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
  std::vector<std::int32_t> row;  // of a variable
  std::vector<double> diagonal;   // <x, x> of a variable
  double mean_diagonal = 1, largest_diagonal = 0;
  double n_values = 0;  // of all rows together, by which work is counted
  std::vector<double> alpha, w;
  std::vector<double> totals, excess, multipliers;  // of the sums

  RowList row_list() const { return {&rows.points(), row.data(), row.size()}; }
  // What the sum of a variable adds to its gradient.
  double multiplier_at(std::size_t i) const {
    const int constraint = qp.constraint_at(i);
    return constraint < 0 ? 0.0 : multipliers[static_cast<std::size_t>(constraint)];
  }
  // w and the excess of the sums, from alpha.
  void recompute();
  // Moves free variables, by the same amount as far as they can, until the sums are what they were;
  // and recomputes.
  void restore_constraints();
  // X w - linear, without multipliers.
  void gradient(double* out) const;

  // What is not made of the problem alone.
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
