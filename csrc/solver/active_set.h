// The active variables of a solve, those that are not shrunk away: in ascending order, one lane
// each.
//
// Shrinking is Joachims's, with LIBSVM's rule made lazier in time and stricter in size: a variable
// is dropped after some quiet steps, and only with a margin. Knows nothing of kernel values.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "solver/box_qp.h"
#include "solver/selection.h"

namespace dcsvm {

struct ActiveSet {
  std::vector<std::int32_t> index;  // variables of the problem
  // padded to whole panels of lanes
  std::vector<double> alpha, gradient, lower, upper, violation;
  std::vector<std::int8_t> sum_of;      // empty: there are no sums
  std::vector<std::uint8_t> goes_up;    // whether a violator's alpha should go up
  std::vector<std::int32_t> violators;  // positions, ascending
  std::vector<double> multipliers;      // of the sums
  double largest_violation = 0;

  std::size_t size() const { return index.size(); }
  double reduced_gradient(std::size_t p) const {
    return sum_of.empty() ? gradient[p]
                          : gradient[p] + multipliers[static_cast<std::size_t>(sum_of[p])];
  }
  SelectionView view() const {
    return {violators,    size(),       violation.data(), goes_up.data(),
            alpha.data(), lower.data(), upper.data(),     index.data()};
  }

  void load(const BoxQp& qp, const std::vector<std::int32_t>& variables, const double* alpha_of,
            const double* gradient_of, std::size_t n_lanes);
  void write_back(double* alpha_of) const;
  // The variables of the problem that are shrunk away, ascending.
  std::vector<std::int32_t> others(std::size_t n_variables) const;
  // Computes violations, violators and multipliers; returns the largest violation.
  double measure(int n_sums);
  // Counts another outer step; returns how many variables have been quiet for long enough to be
  // shrunk: at a bound and pointing outwards by more than the largest violation, or `most`.
  std::size_t count_quiet(double most);
  std::vector<std::int32_t> not_quiet() const;  // positions
  // Keeps these positions, ascending; returns where each is now, or -1.
  std::vector<std::int32_t> keep(const std::vector<std::int32_t>& kept, std::size_t n_lanes);

 private:
  std::vector<std::uint8_t> quiet_;  // outer steps in a row
};

}  // namespace dcsvm
