// The gradient of all variables of a solve, shrunk away or not, and how it is brought up to date.
//
// Gradients are those of `base` or of `alpha` (Iterate); the difference is added by a kernel
// product, in blocks, so that little is lost when it is stopped.
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
  // Variables whose gradient is that.
  std::vector<std::int32_t> at_base() const { return variables(GradientState::at_base); }
  std::vector<std::int32_t> at_alpha() const { return variables(GradientState::at_alpha); }
  std::vector<std::int32_t> variables(GradientState known) const;

  // Makes it that of zero, with base zero.
  void set_to_zero();
  // Declares it that of alpha, and alpha the base.
  void settle();
  // Takes alpha and gradient of the active variables over; the gradients of the others are at base.
  void take(const ActiveSet& active);
  // Whether values out of reach were left out of a sum that is stopped, or not done yet.
  bool has_skipped = false;

  // Adds K (alpha - base) to the gradient of some variables, which are at base. `between` is called
  // between blocks. Returns false where it was stopped: it goes on with those that are still at
  // base. What is counted is that of the blocks that are done.
  bool add_change(const std::vector<std::int32_t>& variables, const std::function<void()>& between);
  // Reports that kernel values out of reach were left out of a product with these weights.
  void neglect(const std::vector<double>& weights);

  Optimality optimality() const;
};

}  // namespace dcsvm
