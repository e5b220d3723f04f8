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

  // Right-hand sides that are solved side by side: entry i of column c is entries[i * width + c].
  static constexpr std::size_t width = 32;
  struct Columns {
    std::vector<double> entries, rows;
  };
  // Sets all of them to 0.
  void reset(Columns& columns) const { columns.entries.assign(stride_ * width, 0.0); }
  // Divides by the factor alone, in place: the square of a column is b' A^-1 b then. Entries before
  // `first` are 0.
  void divide(Columns& columns, std::size_t first) const;

 private:
  bool factor_diagonal(std::size_t k, double* inverse_transposed);
  void divide_block(std::size_t i, std::size_t k);
  void update_row(std::size_t i, std::size_t k);

  std::size_t size_ = 0, stride_ = 0;
  // the blocks below the diagonal that were divided last, and their transposes
  std::vector<double> matrix_, panel_, panel_transposed_, inverse_;
};

double inner_product(const std::vector<double>& a, const std::vector<double>& b);

// Linear constraints c'd = 0 on a Newton direction, added one by one to a factor that stays.
//
// With K = L L' and the constraints C, the constrained direction is d - Z (C'Z)^-1 C'd with
// Z = K^-1 C (Nocedal and Wright, "Numerical Optimization", 16.2): for a few bounds that a step has
// run into, this saves another factorisation.
class FixedConstraints {
 public:
  void clear();
  // `factored` is the same matrix for all constraints.
  void add(const Cholesky& factored, std::vector<double> constraint);
  // Makes an unconstrained Newton direction obey the constraints; zero where these are dependent.
  void project(std::vector<double>& direction) const;

 private:
  std::vector<std::vector<double>> constraints_, solved_;  // C and Z
};

}  // namespace dcsvm
