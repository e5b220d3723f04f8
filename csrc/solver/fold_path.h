// A regularization path: solves one problem for ascending C. Its kernel matrix is in memory if it
// fits. From the first C whose solution shows the rounding of float32 kernel values, the path uses
// float64 values, which are computed again for every C.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "kernel/kernel_product.h"
#include "kernel/kernel_setup.h"
#include "solver/box_qp.h"
#include "solver/working_set.h"
#include "solver/working_set_solver.h"
#include "threads/parallel.h"

namespace dcsvm {

// A subset of the variables of a box QP, with bounds multiplied by training weights.
struct FoldProblem {
  // `weight` has one entry per row of the points.
  FoldProblem(const BoxQP& whole, const std::vector<std::int32_t>& variables, const double* weight);

  std::size_t size() const { return rows.size(); }
  // Returns whether all linear terms are 1, or all are -1.
  bool is_one_sided() const;
  // Sorts the variables by the position of their rows in a kernel matrix. If two variables have the
  // same row, the second one follows after all first ones.
  void sort(const std::vector<std::int32_t>& positions_of_rows);

  std::vector<std::int32_t> rows;
  std::vector<std::int32_t> positions;  // empty without a kernel matrix
  std::vector<double> linear;
  std::vector<double> lower, upper;        // for scale 1
  std::vector<std::int8_t> constraint_of;  // empty: no equality constraints
  int n_constraints = 0;
  double violation_scale = 1;
};

struct FoldContext {
  const KernelSetup& setup;
  const Points& points;
  const float* kernel;  // of all positions, or null
  std::size_t n_positions;
  double tolerance;  // in units of the violation scale
  const Stop* stop;
  std::size_t cache_bytes;  // budget of the row cache if there is no matrix
};

class FoldPath {
 public:
  // `problem` must outlive the path.
  FoldPath(const FoldProblem& problem, const FoldContext& context);

  struct Step {
    bool converged = false;
    std::int64_t iterations = 0;
  };

  // Solves for bounds times `scale`, which must ascend, from the previous solution. Converged means
  // that the violation reaches the tolerance, and that the gradients of a sample of variables are
  // nearly the same with float64 kernel values.
  Step solve(double scale);

  // Returns whether no variable is at a bound that grows with the scale, so that the solution holds
  // for all larger scales.
  bool has_no_bounded() const;
  std::int64_t n_support() const;
  // Computes kernel sums of the solution for target rows, given their positions.
  void sums(const RowList& targets, const std::vector<std::int32_t>& positions, double* out) const;
  // Returns LIBSVM's rho, which is subtracted from kernel sums. If `decides` and there is one class
  // or no support vector, returns a value that predicts the majority class.
  double offset(bool decides, bool is_classification) const;

 private:
  void gather_kernel();
  void rescale(double scale);
  Step solve_in_memory();
  Step solve_outside();
  bool shows_rounding() const;

  const FoldProblem& problem_;
  FoldContext context_;
  std::vector<double> alpha_, gradient_, lower_, upper_;
  std::unique_ptr<float[]> kernel_;  // kernel matrix of the variables, not initialized
  std::size_t stride_ = 0;
  double scale_ = 0;
  Precision precision_ = Precision::single_tiles;
  WorkingSetSolver<float> solver_;
};

}  // namespace dcsvm
