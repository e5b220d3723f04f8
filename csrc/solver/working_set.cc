#include "solver/working_set.h"

#include <limits>

#include "simd/isa.h"

namespace dcsvm {

namespace {

constexpr double immovable = std::numeric_limits<double>::quiet_NaN();

}  // namespace

WorkingSet::WorkingSet(const ActiveSet& active, const std::vector<std::int32_t>& members,
                       const WorkingKernel& values, int sums)
    : size(members.size()), stride(values.stride()), kernel(values.data()), n_sums(sums) {
  for (std::vector<double>* array : {&alpha, &gradient, &lower, &upper}) array->assign(stride, 0.0);
  diagonal.assign(stride, 1.0);
  side.assign(stride, immovable);
  if (!active.sum_of.empty()) sum_of.assign(stride, -1);
  for (std::size_t i = 0; i < size; ++i) {
    const auto p = static_cast<std::size_t>(members[i]);
    alpha[i] = active.alpha[p];
    gradient[i] = active.gradient[p];
    lower[i] = active.lower[p];
    upper[i] = active.upper[p];
    if (has_sums()) sum_of[i] = active.sum_of[p];
    diagonal[i] = kernel_row(i)[i];
    refresh_side(i);
  }
}

void WorkingSet::refresh_side(std::size_t i) {
  const bool goes_up = alpha[i] < upper[i], goes_down = lower[i] < alpha[i];
  side[i] = goes_up == goes_down ? (goes_up ? 0.0 : immovable) : goes_up ? 1.0 : -1.0;
}

void WorkingSet::set_alpha(std::size_t i, double value) {
  alpha[i] = value;
  refresh_side(i);
}

double WorkingSet::violation() const {
  return measure_violation({size, alpha.data(), gradient.data(), lower.data(), upper.data(),
                            has_sums() ? sum_of.data() : nullptr, n_sums})
      .largest;
}

std::vector<double> WorkingSet::product(const std::vector<double>& change) const {
  std::vector<double> sum(stride, 0.0), weights;
  std::vector<const float*> rows;
  for (std::size_t i = 0; i < size; ++i) {
    if (change[i] == 0.0) continue;
    rows.push_back(kernel_row(i));
    weights.push_back(change[i]);
  }
  add_weighted(rows.data(), weights.data(), rows.size(), stride, sum.data());
  return sum;
}

}  // namespace dcsvm
