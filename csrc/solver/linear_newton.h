// Proximal point steps on the dual of a linear SVM, each solved by a semismooth Newton method in
// the space of w (an augmented Lagrangian method of the primal: Rockafellar 1976; Li, Sun and Toh,
// SIAM J. Optimization 28, 2018).
//
// A step moves alpha to the minimum of the objective plus |alpha - center|^2 / (2 sigma). For a
// given w and multipliers b of the sums that is alpha(w, b) = center - sigma (X w - linear + b) in
// the box, and w = X' alpha(w, b) is a system of piecewise linear equations, the gradient of a
// convex function. Its Jacobian I + sigma X_F' X_F comes from the free rows F alone.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "solver/linear_state.h"
#include "solver/linear_system.h"
#include "threads/parallel.h"

namespace dcsvm {

class LinearNewton {
 public:
  explicit LinearNewton(LinearState& state);

  // One proximal step from the state, to residuals of the gradient of at most `accuracy`. Alpha
  // stays in the box; sums are kept up to the residual. False: that took too many steps, or was
  // stopped; the state stays, and the next step is shorter.
  bool step(double accuracy, const Stop* stop);

  std::int64_t steps() const { return steps_; }  // of Newton's method
  // Work in values of rows that are touched: of all steps, and what one of Newton's usually is.
  double values() const { return values_ + system_.values(); }
  double usual_cost(double n_free) const {
    return system_.usual_cost(n_free) + 2 * state_.n_values;
  }

  // What it keeps from one step to the next.
  template <class Archive>
  void archive(Archive& archive) {
    system_.archive(archive);
    archive(sigma_);
    archive(growth_);
    archive(steps_);
    archive(values_);
  }
  bool is_sound() const { return system_.is_sound(); }

 private:
  double residual();
  double slope(double t) const;
  double search() const;

  LinearState& state_;
  LinearSystem system_;
  double sigma_, growth_;  // growth: factor from one step to the next
  std::size_t dimension_;
  std::vector<double> center_, gradient_, along_;     // of variables; `along_` of the direction
  std::vector<double> point_, residual_, direction_;  // w, and the multipliers of the sums
  std::int64_t steps_ = 0;
  double values_ = 0;
};

}  // namespace dcsvm
