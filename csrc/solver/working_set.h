// One working set: its part of the problem, gathered from the active variables, in memory.
//
// Arrays are padded with variables that cannot move to `stride` entries, a multiple of panel_rows,
// for the loops of isa.h. The gradient is that of the whole problem; it is kept up to date for the
// members only. How the set is solved: working_set_solver.h.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "solver/active_set.h"
#include "solver/box_qp.h"
#include "solver/working_kernel.h"

namespace dcsvm {

// Nanoseconds, by a fixed model, of an update by coordinate descent for each entry of a kernel row.
constexpr double update_entry_cost = 0.25;

template <class Real>
struct WorkingSet {
  // Members are positions of active variables; `values` is their kernel matrix and must stay.
  WorkingSet(const ActiveSet& active, const std::vector<std::int32_t>& members,
             const WorkingKernel<Real>& values, int sums);
  // All of a problem: alpha, bounds, sums and the gradient are still to be written, then
  // refresh()ed.
  WorkingSet(const Real* kernel, std::size_t size, std::size_t stride, int sums);
  void refresh();
  // Some members of this set, ascending; their kernel values are written to `values`.
  WorkingSet part(const std::vector<std::size_t>& members, std::vector<Real>& values) const;
  // Takes over what became of such a part.
  void take(const WorkingSet& part, const std::vector<std::size_t>& members);

  std::size_t size, stride;
  const Real* kernel;  // size rows of `stride`
  std::vector<double> alpha, gradient, lower, upper;
  std::vector<std::int8_t> sum_of;  // empty: there are no sums
  int n_sums;
  std::vector<Real> diagonal;  // of the kernel matrix; 1 in the padding
  std::vector<float> side;     // see CoordinateState of isa.h

  const Real* kernel_row(std::size_t i) const { return kernel + i * stride; }
  bool has_sums() const { return !sum_of.empty(); }
  Violation measure() const;
  double violation() const { return measure().largest; }

  // Sets alpha_i and what follows from it, but not the gradient.
  void set_alpha(std::size_t i, double value);
  // K change over the working set, `stride` entries.
  std::vector<double> product(const std::vector<double>& change) const;

 private:
  void refresh_side(std::size_t i);
};

}  // namespace dcsvm
