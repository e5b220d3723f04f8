// Newton steps on the free variables of a dense box QP: blocked Cholesky and the step itself.
//
// The factorisation works on fixed 64 x 64 blocks whatever the number of threads, so its bits do
// not depend on it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace dcsvm {

class Cholesky {
 public:
  // Factors the n x n matrix whose lower triangle `entry(i, j)`, i >= j, the caller has written
  // through at(). False when a pivot is not positive.
  void reset(std::size_t n);
  double& at(std::size_t i, std::size_t j) { return matrix_[i * stride_ + j]; }
  bool factor(int n_threads);
  // Solves in place; b has n entries.
  void solve(double* b) const;

 private:
  bool factor_diagonal(std::size_t k, double* inverse_transposed);

  std::size_t size_ = 0, stride_ = 0;
  std::vector<double> matrix_, panel_, panel_transposed_, inverse_;
};

}  // namespace dcsvm
