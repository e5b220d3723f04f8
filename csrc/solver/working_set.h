// The box QP of one working set, whose kernel matrix is in memory: coordinate descent (pairs where
// variables have a fixed sum) and Newton steps on the free variables when those are cheaper.
//
// Steps are taken only where they lower the objective. How much work goes where is decided from
// counts and fixed cost constants.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "solver/newton.h"

namespace dcsvm {

// Arrays have `stride` entries, a multiple of panel_rows; those from `size` on are ignored on
// input.
struct WorkingSet {
  std::size_t size = 0, stride = 0;
  const float* kernel = nullptr;  // size rows of `stride`
  double* alpha = nullptr;
  double* gradient = nullptr;
  const double* lower = nullptr;
  const double* upper = nullptr;
  const std::int8_t* group = nullptr;  // null: no sums
  int n_groups = 0;
};

struct WorkingSetReport {
  double violation = 0;
  std::int64_t updates = 0;
  std::int64_t newton_steps = 0;
  double seconds_newton = 0;
  double cost = 0;  // nanoseconds by the fixed model
};

class WorkingSetSolver {
 public:
  // Solves to `tolerance` or until max_updates coordinate updates are spent.
  WorkingSetReport solve(const WorkingSet& set, double tolerance, std::int64_t max_updates,
                         int n_threads);

 private:
  void refresh_side(std::size_t i);
  void move(std::size_t i, double target);
  double descend_coordinates(double tolerance, std::int64_t max_updates);
  double descend_one_sum(double tolerance, std::int64_t max_updates);
  double descend_pairs(double tolerance, std::int64_t max_updates);
  double move_two(std::size_t i, std::size_t j, double* step_i, double* step_j);
  void set_diagonal();
  bool move_pair(std::size_t i, std::size_t j, double curvature, double* step_i, double* step_j,
                 double* gain);
  void add_row(std::size_t i, double change);
  double violation() const;
  bool newton_pays(double before, double after, double tolerance, double descent_gain,
                   double round_cost);
  void collect_free();
  double newton_step(int n_threads);
  bool factor(int n_threads);
  void hold(const std::vector<double>& constraint);
  void held_direction(std::vector<double>& direction) const;
  double step_to_bound(const std::vector<double>& direction, double* length,
                       std::vector<std::int32_t>& blocked);
  std::vector<double> product(const std::vector<double>& change) const;

  WorkingSet set_;
  WorkingSetReport report_;
  std::vector<double> side_, scale_, diagonal_;
  bool has_one_sum_ = false;

  // Newton: free variables, the damping that last suited the problem, and what a step was worth
  std::vector<std::int32_t> free_;
  Cholesky cholesky_;
  double damping_ = 1e-7;    // relative to the mean diagonal
  double newton_value_ = 0;  // decrease of the objective per nanosecond of the last step
  std::vector<std::vector<double>> constraints_, solved_constraints_;
};

}  // namespace dcsvm
