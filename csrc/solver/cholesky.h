// Cholesky factorization of a dense float64 matrix, and solutions with its factor.
//
// Right-looking, in fixed 32 x 32 blocks for any number of threads, so that results are bitwise
// reproducible. Blocks below the diagonal are multiplied with the inverse of the diagonal block's
// factor, so that all work consists of matrix products (subtract_product of isa.h).
#pragma once

#include <cstddef>
#include <vector>

namespace dcsvm {

class Cholesky {
 public:
  // Starts an n x n matrix; the caller writes its lower triangle, at(i, j) with i >= j.
  void reset(std::size_t n);
  double& at(std::size_t i, std::size_t j) { return matrix_[i * stride_ + j]; }
  // Factors in place. Returns false if a pivot is not positive.
  bool factor(int n_threads);
  // Solves in place; b has n entries.
  void solve(double* b) const;

  // Right-hand sides solved together: entry i of column c is entries[i * width + c].
  static constexpr std::size_t width = 32;
  struct Columns {
    std::vector<double> entries, rows;
  };
  // Sets all entries to 0.
  void reset(Columns& columns) const { columns.entries.assign(stride_ * width, 0.0); }
  // Solves with the lower factor only, in place. The squared norm of the result is b' A^-1 b for a
  // column b. Entries before `first` must be 0.
  void divide(Columns& columns, std::size_t first) const;

 private:
  bool factor_diagonal(std::size_t k, double* inverse_transposed);
  void divide_block(std::size_t i, std::size_t k);
  void update_row(std::size_t i, std::size_t k);

  std::size_t size_ = 0, stride_ = 0;
  // panel_: the last divided column of blocks; panel_transposed_: its transposed blocks
  std::vector<double> matrix_, panel_, panel_transposed_, inverse_;
};

double inner_product(const std::vector<double>& a, const std::vector<double>& b);

// Linear constraints c'd = 0 on a Newton direction, added one at a time to an existing factor.
//
// With K = L L' and constraints C, the constrained direction is d - Z (C'Z)^-1 C'd with Z = K^-1 C
// (Nocedal and Wright, "Numerical Optimization", 16.2). For a few bounds reached by a step, this
// saves another factorization.
class FixedConstraints {
 public:
  void clear();
  // `factored` must be the same matrix for all constraints.
  void add(const Cholesky& factored, std::vector<double> constraint);
  // Projects an unconstrained Newton direction onto the constraints; the result is zero if the
  // constraints are dependent.
  void project(std::vector<double>& direction) const;

 private:
  std::vector<std::vector<double>> constraints_, solved_;  // C and Z
};

}  // namespace dcsvm
