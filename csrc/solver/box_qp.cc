#include "solver/box_qp.h"

namespace dcsvm {

Optimality optimality(const BoxQp& qp, const double* alpha, const double* gradient) {
  const Violation measured = measure_violation(qp.state(alpha, gradient));
  Optimality result;
  result.unit = qp.unit_at(measured.multipliers);
  result.violation = measured.largest;
  result.multipliers = measured.multipliers;
  for (std::size_t i = 0; i < qp.size; ++i) {
    const double g = measured.reduced(gradient[i], qp.sum_at(i));
    result.gap += g > 0 ? (alpha[i] - qp.lower[i]) * g : (alpha[i] - qp.upper[i]) * g;
    result.objective += 0.5 * alpha[i] * (gradient[i] - qp.linear[i]);
  }
  return result;
}

}  // namespace dcsvm
