#include "solver/held_constraints.h"

#include <algorithm>
#include <cstddef>
#include <utility>

namespace dcsvm {

namespace {

double dot(const std::vector<double>& a, const std::vector<double>& b) {
  double sum = 0;
  for (std::size_t i = 0; i < a.size(); ++i) sum += a[i] * b[i];
  return sum;
}

}  // namespace

void HeldConstraints::clear() {
  constraints_.clear();
  solved_.clear();
}

void HeldConstraints::add(const Cholesky& factored, std::vector<double> constraint) {
  solved_.push_back(constraint);
  factored.solve(solved_.back().data());
  constraints_.push_back(std::move(constraint));
}

void HeldConstraints::project(std::vector<double>& direction) const {
  const std::size_t k = constraints_.size();
  if (k == 0) return;
  Cholesky small;
  small.reset(k);
  std::vector<double> multipliers(k);
  for (std::size_t i = 0; i < k; ++i) {
    for (std::size_t j = 0; j <= i; ++j) small.at(i, j) = dot(constraints_[i], solved_[j]);
    multipliers[i] = dot(constraints_[i], direction);
  }
  if (!small.factor(1)) {
    std::fill(direction.begin(), direction.end(), 0.0);
    return;
  }
  small.solve(multipliers.data());
  for (std::size_t j = 0; j < k; ++j) {
    for (std::size_t i = 0; i < direction.size(); ++i)
      direction[i] -= multipliers[j] * solved_[j][i];
  }
}

}  // namespace dcsvm
