// A working set: its part of the problem, gathered from the active variables.
//
// Arrays are padded with fixed variables to `stride` entries, a multiple of panel_rows, for the
// loops of isa.h. The gradient is the full problem's gradient, updated for the members only.
// working_set_solver.h solves the set.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "kernel/kernel_setup.h"
#include "simd/aligned_vector.h"
#include "solver/active_set.h"
#include "solver/box_qp.h"

namespace dcsvm {

// Members of a working set: rows, lanes in cached kernel rows, and their cached kernel rows or
// null.
struct Members {
  std::vector<std::int32_t> rows, lanes;
  std::vector<const float*> cached;
};

// Kernel matrix of the working set, kept between outer steps: values among remaining members are
// copied, values of new members are read from cached rows, and only the others are computed.
template <class Real>
class WorkingKernel {
 public:
  std::size_t stride() const { return stride_; }  // a multiple of panel_rows; padding is zero
  const Real* data() const { return kernel_.data(); }

  // Builds the matrix of the members; from[w] is the position of member w in the previous matrix,
  // -1 for a new member. Returns the number of kernel evaluations.
  std::int64_t fill(const KernelSetup& setup, const Points& points, const Members& members,
                    const std::vector<std::int32_t>& from, int n_threads);

  // Keeps the members at the given positions, ascending.
  void keep(const std::vector<std::int32_t>& positions);

 private:
  std::int64_t compute(const KernelSetup& setup, const Points& points, const Members& members,
                       int n_threads);
  void read_cached(const Members& members, const std::vector<std::int32_t>& from, int n_threads);

  UninitializedVector<Real> kernel_, previous_;
  // positions of new members, of remaining ones, and of members without a cached row (new ones
  // first)
  std::vector<std::int32_t> new_, old_, uncached_;
  std::size_t size_ = 0, stride_ = 0;
};

// Nanoseconds per entry of a kernel row of a descent update, by the fixed cost model.
constexpr double update_entry_cost = 0.25;

template <class Real>
struct WorkingSet {
  // Gathers active variables at the positions `members`; `values` is their kernel matrix and must
  // outlive the set.
  WorkingSet(const ActiveSet& active, const std::vector<std::int32_t>& members,
             const WorkingKernel<Real>& values, int n_constraints);
  // Creates the set of a whole problem: the caller writes alpha, bounds, constraints and gradient,
  // then calls refresh().
  WorkingSet(const Real* kernel, std::size_t size, std::size_t stride, int n_constraints);
  void refresh();
  // Returns a subset of the members, ascending; its kernel values are copied to `values`.
  WorkingSet part(const std::vector<std::size_t>& members, std::vector<Real>& values) const;
  // Applies the solution of a part to this set.
  void update_from(const WorkingSet& part, const std::vector<std::size_t>& members);

  std::size_t size, stride;
  const Real* kernel;  // size rows of `stride`
  std::vector<double> alpha, gradient, lower, upper;
  std::vector<std::int8_t> constraint_of;  // empty: no equality constraints
  int n_constraints;
  std::vector<Real> diagonal;  // of the kernel matrix; 1 in the padding
  std::vector<float> side;     // see CoordinateState of isa.h

  const Real* kernel_row(std::size_t i) const { return kernel + i * stride; }
  bool has_constraints() const { return !constraint_of.empty(); }
  Violation measure() const;
  double violation() const { return measure().largest; }

  // Sets alpha_i and its side, but not the gradient.
  void set_alpha(std::size_t i, double value);
  // Returns K change over the working set, `stride` entries.
  std::vector<double> product(const std::vector<double>& change) const;

 private:
  // Copies alpha, gradient, bounds and constraints of members of `whole`, and refreshes.
  template <class Whole, class Index>
  void gather(const Whole& whole, const std::vector<Index>& members);
  void refresh_side(std::size_t i);
};

}  // namespace dcsvm
