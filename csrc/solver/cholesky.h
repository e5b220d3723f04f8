// Cholesky factorisation of a dense float64 matrix, and solutions with its factor.
//
// Right-looking, by fixed blocks of 32 x 32 whatever the number of threads, so the bits do not
// depend on it. A block below the diagonal is multiplied with the inverse of the diagonal block's
// factor, which makes all of the work products (subtract_product of isa.h).
#pragma once

#include <cstddef>
#include <vector>

namespace dcsvm {

class Cholesky {
 public:
  // Starts a matrix of n x n: the caller writes its lower triangle, at(i, j) with i >= j.
  void reset(std::size_t n);
  double& at(std::size_t i, std::size_t j) { return matrix_[i * stride_ + j]; }
  // Factors it in place. False when a pivot is not positive.
  bool factor(int n_threads);
  // Solves in place; b has n entries.
  void solve(double* b) const;

 private:
  bool factor_diagonal(std::size_t k, double* inverse_transposed);
  void divide_block(std::size_t i, std::size_t k);
  void update_row(std::size_t i, std::size_t k);

  std::size_t size_ = 0, stride_ = 0;
  // the blocks below the diagonal that were divided last, and their transposes
  std::vector<double> matrix_, panel_, panel_transposed_, inverse_;
};

}  // namespace dcsvm
