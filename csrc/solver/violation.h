// How far an alpha is from optimal: the violation of the KKT conditions, said once for all solvers.
//
// Where there are no sums a variable violates them by its gradient projected onto the box. Variables
// of a sum need only agree with each other: -gradient of those that may go up must not exceed that of
// those that may go down (m and M of LIBSVM; Keerthi et al., Neural Computation 13, 2001).
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

namespace dcsvm {

// Amount by which moving alpha inside its bounds can still follow the negative gradient. Without
// branches, so that loops over it become vectors.
inline double violation_of(double alpha, double lower, double upper, double gradient) {
  const double down = alpha > lower ? gradient : 0.0, up = alpha < upper ? -gradient : 0.0;
  const double either = down > up ? down : up;
  return either > 0 ? either : 0.0;
}

// Of a sum: the largest -gradient of variables that may go up, the smallest of those that may go
// down.
struct SumRange {
  double up = -std::numeric_limits<double>::infinity();
  double down = std::numeric_limits<double>::infinity();

  void include(double alpha, double lower, double upper, double gradient) {
    if (alpha < upper) up = std::max(up, -gradient);
    if (alpha > lower) down = std::min(down, -gradient);
  }
  double violation() const { return std::max(up - down, 0.0); }
  // What is added to the gradient of the sum's variables so that it is zero at the optimum.
  double multiplier() const {
    if (up == -std::numeric_limits<double>::infinity())
      return down == std::numeric_limits<double>::infinity() ? 0.0 : down;
    if (down == std::numeric_limits<double>::infinity()) return up;
    return 0.5 * (up + down);
  }
};

// What the violation at an alpha depends on.
struct BoxState {
  std::size_t size = 0;
  const double* alpha = nullptr;
  const double* gradient = nullptr;
  const double* lower = nullptr;
  const double* upper = nullptr;
  const std::int8_t* sum_of = nullptr;  // of every variable; null: there are no sums
  int n_sums = 0;
};

struct Violation {
  double largest = 0;
  std::vector<double> multipliers;  // of the sums

  // The gradient of a variable with the multiplier of its sum; -1: there are no sums.
  double reduced(double gradient, int sum) const {
    return sum < 0 ? gradient : gradient + multipliers[static_cast<std::size_t>(sum)];
  }
};

// `each`, unless null, gets the violation of every variable, of its reduced gradient.
Violation measure_violation(const BoxState& state, double* each = nullptr);

}  // namespace dcsvm
