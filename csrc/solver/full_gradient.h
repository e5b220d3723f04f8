// The gradient of all variables of a solve, shrunk or active, and its reconstruction.
//
// Gradients belong to `base` or to `alpha` (Iterate). Reconstruction adds the difference by kernel
// products in blocks, so that a stop loses little work.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "kernel/kernel_setup.h"
#include "solver/active_set.h"
#include "solver/box_qp.h"
#include "solver/solve.h"

namespace dcsvm {

struct FullGradient {
  const KernelSetup& setup;
  const Points& points;
  const BoxQP& qp;
  const Iterate& iterate;
  const SolveOptions& options;
  SolveReport& report;

  bool has(GradientState known) const;
  // Return the variables whose gradient is in the given state.
  std::vector<std::int32_t> at_base() const { return variables(GradientState::at_base); }
  std::vector<std::int32_t> at_alpha() const { return variables(GradientState::at_alpha); }
  std::vector<std::int32_t> variables(GradientState known) const;

  // Sets base to zero and the gradient to the gradient there.
  void set_to_zero();
  // Marks all gradients as at alpha, and sets base to alpha.
  void settle();
  // Copies alpha and gradient of the active variables, and marks the other gradients as at base.
  void take(const ActiveSet& active);
  // Whether pairs beyond the cutoff were skipped in an unfinished reconstruction.
  bool has_skipped = false;

  // Adds K (alpha - base) to the gradient of `variables`, which are at base. Calls `between`
  // between blocks. Returns false if stopped; a later call with the variables still at base
  // resumes. The report counts finished blocks only.
  bool add_change(const std::vector<std::int32_t>& variables, const std::function<void()>& between);
  // Adds the truncation error of a product with these weights to the report.
  void neglect(const std::vector<double>& weights);

  Optimality optimality() const;
};

}  // namespace dcsvm
