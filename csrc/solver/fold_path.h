// One problem solved for ascending C, its kernel matrix in memory where there is room for it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "kernel/kernel_setup.h"
#include "solver/box_qp.h"
#include "solver/working_set.h"
#include "solver/working_set_solver.h"
#include "threads/parallel.h"

namespace dcsvm {

// Some variables of a box QP, with the weight of their rows in their bounds.
struct FoldProblem {
  // `weight` is that of each row of the points.
  FoldProblem(const BoxQP& whole, const std::vector<std::int32_t>& variables, const double* weight);

  std::size_t size() const { return rows.size(); }
  // Whether all linear terms are 1, or all are -1.
  bool is_one_sided() const;
  // Puts the variables in the order of these places, of the rows in a kernel matrix; the second
  // variables of rows after all the first.
  void sort(const std::vector<std::int32_t>& positions_of_rows);

  std::vector<std::int32_t> rows;
  std::vector<std::int32_t> positions;  // empty where there is no kernel matrix
  std::vector<double> linear;
  std::vector<double> lower, upper;        // for scale 1
  std::vector<std::int8_t> constraint_of;  // empty: there are no sums
  int n_constraints = 0;
  double violation_scale = 1;
};

struct FoldContext {
  const KernelSetup& setup;
  const Points& points;
  const float* kernel;  // of all places, or null
  std::size_t n_positions;
  double tolerance;  // in the unit of the problem
  const Stop* stop;
  std::size_t cache_bytes;  // of kernel rows, where there is no matrix
};

class FoldPath {
 public:
  // The problem must stay.
  FoldPath(const FoldProblem& problem, const FoldContext& context);

  struct Step {
    bool converged = false;
    std::int64_t iterations = 0;
  };

  // Solves with the bounds times a scale that is larger than any before, from the solution before.
  Step solve(double scale);

  // Of the solution: whether no variable is at the bound that grows with the scale, so that it is
  // that of all larger scales.
  bool has_no_bounded() const;
  std::int64_t n_support() const;
  // Sums of alpha times kernel values with these rows, which are at these places.
  void sums(const RowList& targets, const std::vector<std::int32_t>& positions, double* out) const;
  // What is taken from the sums (LIBSVM's rho); of a cluster that `decides`, where there is nothing
  // but one class, or no support vector, what decides for most of the variables.
  double offset(bool decides, bool is_classification) const;

 private:
  void gather_kernel();
  void rescale(double scale);
  Step solve_in_memory();
  Step solve_outside();

  const FoldProblem& problem_;
  FoldContext context_;
  std::vector<double> alpha_, gradient_, lower_, upper_;
  std::vector<float> kernel_;  // of the variables
  std::size_t stride_ = 0;
  double scale_ = 0;
  WorkingSetSolver<float> solver_;
};

}  // namespace dcsvm
