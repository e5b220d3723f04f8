// Proximal point steps on the dual of a linear SVM, each solved by a semismooth Newton method in
// the space of w (an augmented Lagrangian method of the primal: Rockafellar 1976; Li, Sun and Toh,
// SIAM J. Optimization 28, 2018).
//
// A step moves alpha to the minimum of the objective plus |alpha - center|^2 / (2 sigma). For given
// w and multipliers b, the minimizer is alpha(w, b) = center - sigma (X w - linear + b), clipped to
// the box. A step solves the piecewise linear equations w = X' alpha(w, b). Their residual w - X'
// alpha(w, b) is the gradient of a convex function. Its Jacobian is I + sigma X_F' X_F for the free
// rows F.
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

  // Takes a proximal step. It ends when the residual changes gradients by at most `accuracy`. Alpha
  // stays in the box; equality constraints hold up to the residual. Returns false if the step took
  // too many iterations or was stopped: the state is unchanged and the next step is shorter.
  bool step(double accuracy, const Stop* stop);

  std::int64_t steps() const { return steps_; }  // Newton iterations
  // Return the work of all steps, and the usual work of one Newton iteration, in stored values
  // visited.
  double values() const { return values_ + system_.values(); }
  double usual_cost(double n_free) const {
    return system_.usual_cost(n_free) + 2 * state_.n_values;
  }

  // State kept from one step to the next.
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
  double sigma_, growth_;  // growth_: factor of sigma_ between steps
  std::size_t dimension_;
  std::vector<double> center_, gradient_, along_;     // of each variable; along_: X direction
  std::vector<double> point_, residual_, direction_;  // w, then multipliers
  std::int64_t steps_ = 0;
  double values_ = 0;
};

}  // namespace dcsvm
