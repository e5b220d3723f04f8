#include "solver/active_set.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace dcsvm {

namespace {

// Outer steps at a bound before a variable is shrunk: one shrunk too early is found at the end
// only, one kept too long costs kernel values at every step.
constexpr int quiet_steps = 3;

}  // namespace

void ActiveSet::load(const BoxQp& qp, const std::vector<std::int32_t>& variables,
                     const double* alpha_of, const double* gradient_of, std::size_t n_lanes) {
  index = variables;
  const std::size_t n = size();
  for (std::vector<double>* array : {&alpha, &gradient, &lower, &upper, &violation})
    array->assign(n_lanes, 0.0);
  quiet_.assign(n, 0);
  goes_up.assign(n, 0);
  sum_of.clear();
  if (qp.sum_of) sum_of.resize(n);
  for (std::size_t p = 0; p < n; ++p) {
    const auto i = static_cast<std::size_t>(index[p]);
    alpha[p] = alpha_of[i];
    gradient[p] = gradient_of[i];
    lower[p] = qp.lower[i];
    upper[p] = qp.upper[i];
    if (qp.sum_of) sum_of[p] = qp.sum_of[i];
  }
}

void ActiveSet::write_back(double* alpha_of) const {
  for (std::size_t p = 0; p < size(); ++p) alpha_of[index[p]] = alpha[p];
}

std::vector<std::int32_t> ActiveSet::others(std::size_t n_variables) const {
  std::vector<std::int32_t> variables;
  std::size_t p = 0;
  for (std::size_t i = 0; i < n_variables; ++i) {
    if (p < size() && static_cast<std::size_t>(index[p]) == i) {
      ++p;
    } else {
      variables.push_back(static_cast<std::int32_t>(i));
    }
  }
  return variables;
}

double ActiveSet::measure(int n_sums) {
  Violation measured =
      measure_violation({size(), alpha.data(), gradient.data(), lower.data(), upper.data(),
                         sum_of.empty() ? nullptr : sum_of.data(), n_sums},
                        violation.data());
  largest_violation = measured.largest;
  multipliers = std::move(measured.multipliers);
  violators.clear();
  for (std::size_t p = 0; p < size(); ++p) {
    if (violation[p] > 0) violators.push_back(static_cast<std::int32_t>(p));
  }
  for (const std::int32_t p : violators)
    goes_up[static_cast<std::size_t>(p)] = reduced_gradient(static_cast<std::size_t>(p)) < 0;
  return largest_violation;
}

std::size_t ActiveSet::count_quiet(double most) {
  const double margin = std::min(largest_violation, most);
  std::size_t n_quiet = 0;
  for (std::size_t p = 0; p < size(); ++p) {
    const bool quiet = violation[p] == 0.0 && std::fabs(reduced_gradient(p)) > margin;
    const int steps = quiet_[p] + (quiet_[p] < quiet_steps);
    quiet_[p] = static_cast<std::uint8_t>(quiet ? steps : 0);
    n_quiet += quiet_[p] == quiet_steps;
  }
  return n_quiet;
}

std::vector<std::int32_t> ActiveSet::not_quiet() const {
  std::vector<std::int32_t> kept;
  for (std::size_t p = 0; p < size(); ++p) {
    if (quiet_[p] < quiet_steps) kept.push_back(static_cast<std::int32_t>(p));
  }
  return kept;
}

std::vector<std::int32_t> ActiveSet::keep(const std::vector<std::int32_t>& kept,
                                          std::size_t n_lanes) {
  std::vector<std::int32_t> position(size(), -1);
  for (std::size_t k = 0; k < kept.size(); ++k)
    position[static_cast<std::size_t>(kept[k])] = static_cast<std::int32_t>(k);
  const auto keep_in = [&kept](auto& array) {
    for (std::size_t k = 0; k < kept.size(); ++k)
      array[k] = array[static_cast<std::size_t>(kept[k])];
    array.resize(kept.size());
  };
  keep_in(index);
  keep_in(quiet_);
  keep_in(goes_up);
  if (!sum_of.empty()) keep_in(sum_of);
  for (std::vector<double>* array : {&alpha, &gradient, &lower, &upper, &violation}) {
    keep_in(*array);
    array->resize(n_lanes, 0.0);
  }
  std::vector<std::int32_t> violating;
  for (const std::int32_t p : violators) {
    if (position[static_cast<std::size_t>(p)] >= 0)
      violating.push_back(position[static_cast<std::size_t>(p)]);
  }
  violators = violating;
  return position;
}

}  // namespace dcsvm
