// Linear constraints c'd = 0 on a Newton direction, added one by one to a factor that stays.
//
// With K = L L' and the constraints C, the constrained direction is d - Z (C'Z)^-1 C'd with
// Z = K^-1 C (Nocedal and Wright, "Numerical Optimization", 16.2): for a few bounds that a step has
// run into, this saves another factorisation.
#pragma once

#include <vector>

#include "solver/cholesky.h"

namespace dcsvm {

class HeldConstraints {
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
