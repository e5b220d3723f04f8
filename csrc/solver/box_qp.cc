#include "solver/box_qp.h"

namespace dcsvm {

Optimality optimality(const BoxQp& qp, const double* alpha, const double* gradient) {
  std::vector<GroupRange> ranges(static_cast<std::size_t>(qp.n_groups));
  for (std::size_t i = 0; i < qp.size; ++i) {
    if (const int group = qp.group_of(i); group >= 0) {
      ranges[static_cast<std::size_t>(group)].include(alpha[i], qp.lower[i], qp.upper[i],
                                                      gradient[i]);
    }
  }
  Optimality result;
  for (const GroupRange& range : ranges) {
    result.violation = std::max(result.violation, range.violation());
    result.multipliers.push_back(range.multiplier());
  }
  for (std::size_t i = 0; i < qp.size; ++i) {
    const int group = qp.group_of(i);
    const double g =
        group < 0 ? gradient[i] : gradient[i] + result.multipliers[static_cast<std::size_t>(group)];
    if (group < 0) {
      result.violation =
          std::max(result.violation, projected_gradient(alpha[i], qp.lower[i], qp.upper[i], g));
    }
    result.gap += g > 0 ? (alpha[i] - qp.lower[i]) * g : (alpha[i] - qp.upper[i]) * g;
    result.objective += 0.5 * alpha[i] * (gradient[i] - qp.linear[i]);
  }
  return result;
}

}  // namespace dcsvm
