// Newton steps on the free variables of a working set.
//
// Damping follows Levenberg and Marquardt: it grows while the step would leave the box at many
// bounds, and shrinks when it hardly does. A bound reached by the step becomes a fixed constraint
// on the same factor (FixedConstraints), and the step continues. Steps that do not lower the
// objective are rejected. Counts and fixed costs decide whether a step pays.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "solver/cholesky.h"
#include "solver/working_set.h"

namespace dcsvm {

// A round of descent: violations before and after, decrease of the objective, and cost in
// nanoseconds by the fixed model.
struct RoundResult {
  double before, after;
  double decrease;
  double cost;
};

struct NewtonCount {
  std::int64_t steps = 0;
  double seconds = 0;
  double cost = 0;  // nanoseconds by the fixed cost model
};

// Relative to the mean diagonal: the rounding error of kernel values.
template <class Real>
constexpr double min_damping = sizeof(Real) == sizeof(float) ? 1e-7 : 1e-15;

// Keeps damping and efficiency from one working set to the next.
template <class Real>
class NewtonStep {
 public:
  // Returns whether a step is cheaper than reaching the tolerance by descent.
  bool pays(const WorkingSet<Real>& set, const RoundResult& round, double tolerance);
  // Takes a step and updates the counters; returns the decrease of the objective.
  double run(WorkingSet<Real>& set, int n_threads, NewtonCount& count);

  template <class Archive>
  void archive(Archive& archive) {
    archive(damping_);
    archive(efficiency_);
  }

 private:
  struct Moved {
    double decrease = 0;
    double length = 1;                 // fraction of the direction
    std::vector<std::size_t> blocked;  // free variables that reached a bound
  };

  void collect_free(const WorkingSet<Real>& set);
  bool factor(const WorkingSet<Real>& set, int n_threads);
  void fix_equality_constraints(const WorkingSet<Real>& set);
  bool follow(WorkingSet<Real>& set, double* decrease, double* cost);
  std::size_t keep_inside(const WorkingSet<Real>& set, std::vector<double>& direction) const;
  Moved step_to_bound(WorkingSet<Real>& set, const std::vector<double>& direction) const;
  std::vector<double> targets(const WorkingSet<Real>& set, const std::vector<double>& direction,
                              double length) const;
  void keep_sum(const WorkingSet<Real>& set, int constraint, std::vector<double>& target) const;

  std::vector<std::size_t> free_;  // members that are not at a bound
  Cholesky cholesky_;
  FixedConstraints fixed_;
  double damping_ = min_damping<Real>;
  double efficiency_ = 0;  // decrease per nanosecond of the last step; 0: no step yet
};

}  // namespace dcsvm
