#include "solver/box_qp.h"

namespace dcsvm {

namespace {

// Two loops if each violation is stored: the first one vectorizes.
double largest_in_box(const BoxState& s, double* each) {
  double largest = 0;
  if (!each) {
    for (std::size_t i = 0; i < s.size; ++i)
      largest = std::max(largest, violation_of(s.alpha[i], s.lower[i], s.upper[i], s.gradient[i]));
    return largest;
  }
  for (std::size_t i = 0; i < s.size; ++i)
    each[i] = violation_of(s.alpha[i], s.lower[i], s.upper[i], s.gradient[i]);
  for (std::size_t i = 0; i < s.size; ++i) largest = each[i] > largest ? each[i] : largest;
  return largest;
}

}  // namespace

Violation measure_violation(const BoxState& s, double* each) {
  Violation result;
  if (!s.constraint_of) {
    result.largest = largest_in_box(s, each);
    return result;
  }
  std::vector<ConstraintRange> ranges(static_cast<std::size_t>(s.n_constraints));
  for (std::size_t i = 0; i < s.size; ++i) {
    ranges[static_cast<std::size_t>(s.constraint_of[i])].include(s.alpha[i], s.lower[i], s.upper[i],
                                                                 s.gradient[i]);
  }
  for (const ConstraintRange& range : ranges) {
    result.multipliers.push_back(range.multiplier());
    result.largest = std::max(result.largest, range.violation());
  }
  for (std::size_t i = 0; each && i < s.size; ++i) {
    const double g = result.reduced(s.gradient[i], s.constraint_of[i]);
    each[i] = violation_of(s.alpha[i], s.lower[i], s.upper[i], g);
  }
  return result;
}

Optimality optimality(const BoxQP& qp, const double* alpha, const double* gradient) {
  const Violation measured = measure_violation(qp.state(alpha, gradient));
  Optimality result;
  result.violation_scale = qp.violation_scale_at(measured.multipliers);
  result.violation = measured.largest;
  result.multipliers = measured.multipliers;
  for (std::size_t i = 0; i < qp.size; ++i) {
    const double g = measured.reduced(gradient[i], qp.constraint_at(i));
    result.gap += g > 0 ? (alpha[i] - qp.lower[i]) * g : (alpha[i] - qp.upper[i]) * g;
    result.objective += 0.5 * alpha[i] * (gradient[i] - qp.linear[i]);
  }
  return result;
}

}  // namespace dcsvm
