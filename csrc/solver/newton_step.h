// Newton steps on the free variables of a working set.
//
// The step is damped as Levenberg and Marquardt's: more while it would leave the box in many
// places, less when it hardly does. Bounds that are hit are held by constraints on the same factor
// (FixedConstraints) and the step goes on from there. A step is taken only where it lowers the
// objective; whether one pays is decided from counts and fixed costs.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "solver/cholesky.h"
#include "solver/working_set.h"

namespace dcsvm {

// A round of coordinate descent: violations before and after it, by how much the objective fell,
// and nanoseconds by the fixed model.
struct RoundResult {
  double before, after;
  double decrease;
  double cost;
};

struct NewtonCount {
  std::int64_t steps = 0;
  double seconds = 0;
  double cost = 0;  // nanoseconds by the fixed model
};

// Relative to the mean diagonal: the rounding of kernel values.
template <class Real>
constexpr double min_damping = sizeof(Real) == sizeof(float) ? 1e-7 : 1e-15;

// Keeps from one working set to the next what a step was worth and which damping suited.
template <class Real>
class NewtonStep {
 public:
  // Whether a step is worth more than going on with descent to the tolerance.
  bool pays(const WorkingSet<Real>& set, const RoundResult& round, double tolerance);
  // Returns by how much the objective fell; counts what was done.
  double run(WorkingSet<Real>& set, int n_threads, NewtonCount& count);

  template <class Archive>
  void archive(Archive& archive) {
    archive(damping_);
    archive(efficiency_);
  }

 private:
  struct Moved {
    double decrease = 0;
    double length = 1;                 // of the direction
    std::vector<std::size_t> blocked;  // free variables that are now at a bound
  };

  void collect_free(const WorkingSet<Real>& set);
  bool factor(const WorkingSet<Real>& set, int n_threads);
  void fix_equality_constraints(const WorkingSet<Real>& set);
  bool follow(WorkingSet<Real>& set, double* decrease, double* cost);
  std::size_t keep_inside(const WorkingSet<Real>& set, std::vector<double>& direction) const;
  Moved step_to_bound(WorkingSet<Real>& set, const std::vector<double>& direction) const;
  std::vector<double> targets(const WorkingSet<Real>& set, const std::vector<double>& direction,
                              double length) const;

  std::vector<std::size_t> free_;  // members that are not at a bound
  Cholesky cholesky_;
  FixedConstraints fixed_;
  double damping_ = min_damping<Real>;
  double efficiency_ = 0;  // decrease of the objective per nanosecond of the last step; 0: none yet
};

}  // namespace dcsvm
