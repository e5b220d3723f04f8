// The Newton system of linear_newton.h: (I + sigma X_F' X_F) x = b, bordered by the equality
// constraints.
//
// In few dimensions it is solved by a Cholesky factorization, and X_F' X_F is updated for the rows
// that become free or bounded. In many dimensions it is solved by conjugate gradients with a
// diagonal preconditioner.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "solver/cholesky.h"
#include "solver/linear_state.h"
#include "threads/parallel.h"

namespace dcsvm {

class LinearSystem {
 public:
  explicit LinearSystem(const LinearState& state);

  // Sets which variables are free, one entry each.
  void set_free(const std::vector<std::uint8_t>& is_free);
  // Solves in place; b has the entries of w, then of the equality constraints. The result is zero
  // if rounding prevents a solution, and an approximation after a stop.
  void solve(double sigma, std::vector<double>& b, const Stop* stop);

  // Returns the usual work of a solve with n_free free variables, in stored values visited.
  double usual_cost(double n_free) const;
  // Returns the work of all solves so far.
  double values() const { return values_; }

  template <class Archive>
  void archive(Archive& archive) {
    archive(is_free_);
    archive(matrix_);
    archive(values_);
  }
  bool is_sound() const {
    return is_free_.size() == state_.qp.size &&
           (matrix_.empty() || (is_direct() && matrix_.size() == stride_ * stride_));
  }

 private:
  bool is_direct() const { return size_ <= max_direct; }
  double cost_of_products(double n_rows) const;
  double cost_of_factor() const;
  void add_outer_products(const std::vector<std::int32_t>& variables, double sign);
  void add_sparse(const std::vector<std::int32_t>& variables, double sign);
  void add_dense(const std::vector<std::int32_t>& variables, double sign);
  void solve_by_factor(double sigma, std::vector<double>& b);
  void solve_by_cg(double sigma, std::vector<double>& b, const Stop* stop);
  void multiply(double sigma, const std::vector<double>& x, std::vector<double>& out);

  // A matrix takes 8 MB, like the kernel matrix of a working set.
  static constexpr std::size_t max_direct = 1024;

  const LinearState& state_;
  std::size_t dimension_, size_, stride_;
  std::vector<std::uint8_t> is_free_;
  std::vector<std::int32_t> free_, free_rows_;
  std::vector<double> matrix_;  // X_F' X_F with the constraints, lower triangle; direct solves only
  Cholesky cholesky_;
  double values_ = 0;
};

}  // namespace dcsvm
