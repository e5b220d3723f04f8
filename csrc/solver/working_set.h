// One working set: its part of the problem, gathered from the active variables, in memory.
//
// Arrays are padded with variables that cannot move to `stride` entries, a multiple of panel_rows,
// for the loops of isa.h. The gradient is that of the whole problem; it is kept up to date for the
// members only. How the set is solved: working_set_solver.h.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "kernel/kernel_setup.h"
#include "simd/aligned_vector.h"
#include "solver/active_set.h"
#include "solver/box_qp.h"

namespace dcsvm {

// The members of a working set: their rows; the lanes at which kernel rows have their values; their
// own kernel rows where these are cached, else null.
struct Members {
  std::vector<std::int32_t> rows, lanes;
  std::vector<const float*> cached;
};

// The kernel matrix of the working set, kept from one outer step to the next: values between
// members that stay are copied, those of new members are read from cached kernel rows, and only
// what is in neither is computed.
template <class Real>
class WorkingKernel {
 public:
  std::size_t stride() const { return stride_; }  // a multiple of panel_rows; padding is zero
  const Real* data() const { return kernel_.data(); }

  // Makes this the matrix of the members; from[w] is the place of member w in the matrix so far, -1
  // for a new one. Returns the number of kernel values computed.
  std::int64_t fill(const KernelSetup& setup, const Points& points, const Members& members,
                    const std::vector<std::int32_t>& from, int n_threads);

  // Keeps the members at these places, ascending.
  void keep(const std::vector<std::int32_t>& places);

 private:
  std::int64_t compute(const KernelSetup& setup, const Points& points, const Members& members,
                       int n_threads);
  void read_cached(const Members& members, const std::vector<std::int32_t>& from, int n_threads);

  AlignedVector<Real> kernel_, previous_;
  // places of members: new ones, those that stay, and those without a cached row, new ones first
  std::vector<std::int32_t> new_, old_, uncached_;
  std::size_t size_ = 0, stride_ = 0;
};

// Nanoseconds, by a fixed model, of an update by coordinate descent for each entry of a kernel row.
constexpr double update_entry_cost = 0.25;

template <class Real>
struct WorkingSet {
  // Members are positions of active variables; `values` is their kernel matrix and must stay.
  WorkingSet(const ActiveSet& active, const std::vector<std::int32_t>& members,
             const WorkingKernel<Real>& values, int n_constraints);
  // All of a problem: alpha, bounds, sums and the gradient are still to be written, then
  // refresh()ed.
  WorkingSet(const Real* kernel, std::size_t size, std::size_t stride, int n_constraints);
  void refresh();
  // Some members of this set, ascending; their kernel values are written to `values`.
  WorkingSet part(const std::vector<std::size_t>& members, std::vector<Real>& values) const;
  // Takes over what became of such a part.
  void update_from(const WorkingSet& part, const std::vector<std::size_t>& members);

  std::size_t size, stride;
  const Real* kernel;  // size rows of `stride`
  std::vector<double> alpha, gradient, lower, upper;
  std::vector<std::int8_t> constraint_of;  // empty: there are no sums
  int n_constraints;
  std::vector<Real> diagonal;  // of the kernel matrix; 1 in the padding
  std::vector<float> side;     // see CoordinateState of isa.h

  const Real* kernel_row(std::size_t i) const { return kernel + i * stride; }
  bool has_constraints() const { return !constraint_of.empty(); }
  Violation measure() const;
  double violation() const { return measure().largest; }

  // Sets alpha_i and what follows from it, but not the gradient.
  void set_alpha(std::size_t i, double value);
  // K change over the working set, `stride` entries.
  std::vector<double> product(const std::vector<double>& change) const;

 private:
  // Takes over alpha, gradient, bounds and sums of some members of `whole`, and refreshes.
  template <class Whole, class Index>
  void gather(const Whole& whole, const std::vector<Index>& members);
  void refresh_side(std::size_t i);
};

}  // namespace dcsvm
