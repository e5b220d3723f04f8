// One outer step on the active variables: choose a working set, complete its kernel matrix, solve
// it.
//
// Keeps the working set and its kernel matrix from one step to the next, and the size that suits
// the problem. The gradient of the other active variables is not touched: that is for
// decomposition.cc.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "solver/active_kernel.h"
#include "solver/active_set.h"
#include "solver/box_qp.h"
#include "solver/solve.h"
#include "solver/working_set.h"
#include "solver/working_set_solver.h"

namespace dcsvm {

// The kernel values of the smallest (1 MiB) stay in the second-level cache, and larger ones lost on
// most data sets. They are for problems whose outer steps cost most.
constexpr std::size_t min_working_set = 512;
constexpr std::size_t max_working_set = 1024;
// A problem of at most so many active variables is one working set, and is not shrunk further.
constexpr std::size_t complete_set = 1024;

// What a step does to alpha: positions of active variables, and where they go.
struct WorkingChange {
  std::vector<std::int32_t> positions;
  std::vector<double> after;
  // all active variables are at the end of the step already, with their gradient
  bool is_complete = false;

  template <class Archive>
  void archive(Archive& archive) {
    archive(positions);
    archive(after);
    archive(is_complete);
  }
};

template <class Real>
class WorkingStep {
 public:
  WorkingStep(const KernelSetup& setup, const Points& points, const BoxQP& qp,
              const SolveOptions& options, SolveReport& report)
      : setup_(setup), points_(points), qp_(qp), options_(options), report_(report) {}

  // `tolerance` is the violation asked for, in no unit.
  WorkingChange run(ActiveSet& active, ActiveKernel& kernel, double tolerance);

  // Whether several steps in a row have changed nothing, each more exact than the one before.
  bool is_stuck() const { return stalls_ >= max_stalls; }

  // The active variables are others now, or those at these positions (-1: gone).
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
  // Computes the kernel matrix of the members again, after archive() has read them; counts nothing.
  // Throws where they cannot be positions of active variables.
  void restore(const ActiveSet& active);

 private:
  static constexpr int max_stalls = 6;

  void choose(const ActiveSet& active, ActiveKernel& kernel, double tolerance);
  void fill_kernel(const ActiveSet& active, ActiveKernel& kernel,
                   const std::vector<std::int32_t>& previous);
  double inner_tolerance(const ActiveSet& active, double tolerance) const;
  WorkingChange solve(ActiveSet& active, double tolerance);
  void balance();

  const KernelSetup& setup_;
  const Points& points_;
  const BoxQP& qp_;
  const SolveOptions& options_;
  SolveReport& report_;

  std::vector<std::int32_t> members_;  // positions of active variables, ascending
  WorkingKernel<Real> working_kernel_;
  WorkingSetSolver<Real> solver_;
  int stalls_ = 0;  // steps in a row that changed nothing
  std::size_t target_size_ = min_working_set;
  int steps_counted_ = 0;
  double inner_cost_ = 0, outer_cost_ = 0;  // nanoseconds by the fixed model, of those steps
};

}  // namespace dcsvm
