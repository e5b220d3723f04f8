#include "solver/active_set.h"

#include <algorithm>
#include <cmath>

namespace dcsvm {

namespace {

constexpr int quiet_steps = 3;  // outer steps at a bound before a variable is shrunk

}  // namespace

void ActiveSet::load(const BoxQp& qp, const std::vector<std::int32_t>& variables,
                     const double* alpha_of, const double* gradient_of, std::size_t n_lanes) {
  index = variables;
  const std::size_t n = size();
  for (std::vector<double>* values : {&alpha, &gradient, &lower, &upper, &violation})
    values->assign(n_lanes, 0.0);
  quiet_.assign(n, 0);
  grows.assign(n, 0);
  group.clear();
  if (qp.group) group.resize(n);
  for (std::size_t p = 0; p < n; ++p) {
    const auto i = static_cast<std::size_t>(index[p]);
    alpha[p] = alpha_of[i];
    gradient[p] = gradient_of[i];
    lower[p] = qp.lower[i];
    upper[p] = qp.upper[i];
    if (qp.group) group[p] = qp.group[i];
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

double ActiveSet::measure(int n_groups) {
  std::vector<GroupRange> ranges(static_cast<std::size_t>(n_groups));
  for (std::size_t p = 0; p < group.size(); ++p) {
    if (group[p] >= 0)
      ranges[static_cast<std::size_t>(group[p])].include(alpha[p], lower[p], upper[p], gradient[p]);
  }
  double largest = 0;
  multipliers.clear();
  for (const GroupRange& range : ranges) {
    multipliers.push_back(range.multiplier());
    largest = std::max(largest, range.violation());
  }
  if (group.empty()) {
    largest = std::max(largest, largest_projected_gradient());
  } else {
    for (std::size_t p = 0; p < size(); ++p) {
      violation[p] = projected_gradient(alpha[p], lower[p], upper[p], reduced_gradient(p));
      if (group[p] < 0) largest = std::max(largest, violation[p]);
    }
  }
  violators.clear();
  for (std::size_t p = 0; p < size(); ++p) {
    if (violation[p] > 0) violators.push_back(static_cast<std::int32_t>(p));
  }
  for (const std::int32_t p : violators)
    grows[static_cast<std::size_t>(p)] = reduced_gradient(static_cast<std::size_t>(p)) < 0;
  largest_violation = largest;
  return largest;
}

// Fills the violations where there are no groups; plain arrays and no branches, for vectors.
double ActiveSet::largest_projected_gradient() {
  const std::size_t n = size();
  const double *a = alpha.data(), *g = gradient.data(), *l = lower.data(), *u = upper.data();
  double* v = violation.data();
  double largest = 0;
  for (std::size_t p = 0; p < n; ++p) {
    const double down = a[p] > l[p] ? g[p] : 0.0, up = a[p] < u[p] ? -g[p] : 0.0;
    const double either = down > up ? down : up;
    v[p] = either > 0 ? either : 0.0;
  }
  for (std::size_t p = 0; p < n; ++p) largest = v[p] > largest ? v[p] : largest;
  return largest;
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
  const auto keep_in = [&kept](auto& values) {
    for (std::size_t k = 0; k < kept.size(); ++k)
      values[k] = values[static_cast<std::size_t>(kept[k])];
    values.resize(kept.size());
  };
  keep_in(index);
  keep_in(quiet_);
  keep_in(grows);
  if (!group.empty()) keep_in(group);
  for (std::vector<double>* values : {&alpha, &gradient, &lower, &upper, &violation}) {
    keep_in(*values);
    values->resize(n_lanes, 0.0);
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
