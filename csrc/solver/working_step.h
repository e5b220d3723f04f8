// One outer step on the active variables: select a working set, complete its kernel matrix, solve
// it.
//
// The working set, its kernel matrix and its target size persist between steps. The gradient of the
// other active variables is updated by decomposition.cc, while the next set is solved.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "solver/active_kernel.h"
#include "solver/active_set.h"
#include "solver/box_qp.h"
#include "solver/solve.h"
#include "solver/working_set.h"
#include "solver/working_set_solver.h"

namespace dcsvm {

// The kernel matrix of the smallest set (1 MiB) fits the L2 cache; larger sets were slower on most
// data sets and are used only if outer steps dominate the cost.
constexpr std::size_t min_working_set = 512;
constexpr std::size_t max_working_set = 1024;
// A problem of at most this many active variables is one working set and is not shrunk further.
constexpr std::size_t complete_set = 1024;

// Solution of a working set, until it is applied: alpha and gradient of its members, which are
// positions of active variables, ascending.
struct WorkingChange {
  std::vector<std::int32_t> members;
  std::vector<double> alpha, gradient;

  bool is_empty() const { return members.empty(); }

  template <class Archive>
  void archive(Archive& archive) {
    archive(members);
    archive(alpha);
    archive(gradient);
  }
};

template <class Real>
class WorkingStep {
 public:
  WorkingStep(const KernelSetup& setup, const Points& points, const BoxQP& qp,
              const SolveOptions& options, SolveReport& report)
      : setup_(setup), points_(points), qp_(qp), options_(options), report_(report) {}

  // Selects the working set and computes its kernel matrix; `tolerance` is unscaled.
  void select(const ActiveSet& active, ActiveKernel& kernel, double tolerance);
  // Solves the set, without reading the active variables.
  WorkingChange solve();

  // The members of the set, positions of active variables, and their gradients at its start.
  const std::vector<std::int32_t>& members() const { return members_; }
  std::vector<double>& gradient() { return set_->gradient; }

  // Returns whether several consecutive steps, each with a tighter tolerance, made no changes, or
  // only changes that rounding undoes.
  bool is_stuck() const { return stalls_ >= max_stalls; }

  // Forget the members, or map them to new positions of the active variables (-1: dropped).
  void reset() { members_.clear(); }
  void compact(const std::vector<std::int32_t>& position);

  template <class Archive>
  void archive(Archive& archive) {
    archive(members_);
    archive(stalls_);
    archive(target_size_);
    archive(steps_counted_);
    archive(inner_cost_);
    archive(outer_cost_);
    solver_.archive(archive);
  }
  // Recomputes the kernel matrix after archive() has read the members; counts nothing. Throws
  // std::invalid_argument for invalid positions.
  void restore(const ActiveSet& active);

 private:
  static constexpr int max_stalls = 6;

  void choose(const ActiveSet& active, ActiveKernel& kernel, double tolerance);
  void fill_kernel(const ActiveSet& active, ActiveKernel& kernel,
                   const std::vector<std::int32_t>& previous);
  double inner_tolerance() const;
  void balance();

  const KernelSetup& setup_;
  const Points& points_;
  const BoxQP& qp_;
  const SolveOptions& options_;
  SolveReport& report_;

  std::vector<std::int32_t> members_;  // positions of active variables, ascending
  // of the selected set, until it is solved
  std::optional<WorkingSet<Real>> set_;
  bool is_complete_ = false;  // all active variables
  double tolerance_ = 0, largest_violation_ = 0, entry_cost_ = 0;
  WorkingKernel<Real> working_kernel_;
  WorkingSetSolver<Real> solver_;
  int stalls_ = 0;  // consecutive steps without a change, or stuck
  std::size_t target_size_ = min_working_set;
  int steps_counted_ = 0;
  double inner_cost_ = 0,
         outer_cost_ = 0;  // nanoseconds by the fixed cost model, since the last balance()
};

}  // namespace dcsvm
