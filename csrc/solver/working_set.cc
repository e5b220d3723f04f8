#include "solver/working_set.h"

#include <algorithm>
#include <limits>

#include "simd/isa.h"

namespace dcsvm {

namespace {

constexpr float immovable = std::numeric_limits<float>::quiet_NaN();

}  // namespace

template <class Real>
WorkingSet<Real>::WorkingSet(const ActiveSet& active, const std::vector<std::int32_t>& members,
                             const WorkingKernel<Real>& values, int sums)
    : WorkingSet(values.data(), members.size(), values.stride(), sums) {
  if (active.sum_of.empty()) sum_of.clear();
  for (std::size_t i = 0; i < size; ++i) {
    const auto p = static_cast<std::size_t>(members[i]);
    alpha[i] = active.alpha[p];
    gradient[i] = active.gradient[p];
    lower[i] = active.lower[p];
    upper[i] = active.upper[p];
    if (has_sums()) sum_of[i] = active.sum_of[p];
  }
  refresh();
}

template <class Real>
WorkingSet<Real>::WorkingSet(const Real* values, std::size_t n, std::size_t row_stride, int sums)
    : size(n), stride(row_stride), kernel(values), n_sums(sums) {
  for (std::vector<double>* array : {&alpha, &gradient, &lower, &upper}) array->assign(stride, 0.0);
  diagonal.assign(stride, Real(1));
  side.assign(stride, immovable);
  if (sums > 0) sum_of.assign(stride, -1);
}

template <class Real>
void WorkingSet<Real>::refresh() {
  for (std::size_t i = 0; i < size; ++i) {
    diagonal[i] = kernel_row(i)[i];
    refresh_side(i);
  }
}

template <class Real>
WorkingSet<Real> WorkingSet<Real>::part(const std::vector<std::size_t>& members,
                                        std::vector<Real>& values) const {
  const std::size_t n = members.size(), row = (n + panel_rows - 1) / panel_rows * panel_rows;
  values.resize(n * row);
  WorkingSet<Real> some(values.data(), n, row, n_sums);
  for (std::size_t a = 0; a < n; ++a) {
    const Real* from = kernel_row(members[a]);
    Real* to = values.data() + a * row;
    for (std::size_t b = 0; b < n; ++b) to[b] = from[members[b]];
    std::fill(to + n, to + row, Real(0));
    some.alpha[a] = alpha[members[a]];
    some.gradient[a] = gradient[members[a]];
    some.lower[a] = lower[members[a]];
    some.upper[a] = upper[members[a]];
    if (has_sums()) some.sum_of[a] = sum_of[members[a]];
  }
  some.refresh();
  return some;
}

template <class Real>
void WorkingSet<Real>::take(const WorkingSet<Real>& part, const std::vector<std::size_t>& members) {
  std::vector<double> change(size, 0.0);
  for (std::size_t a = 0; a < members.size(); ++a) {
    change[members[a]] = part.alpha[a] - alpha[members[a]];
    set_alpha(members[a], part.alpha[a]);
  }
  const std::vector<double> kernel_change = product(change);
  for (std::size_t i = 0; i < size; ++i) gradient[i] += kernel_change[i];
  for (std::size_t a = 0; a < members.size(); ++a) gradient[members[a]] = part.gradient[a];
}

template <class Real>
void WorkingSet<Real>::refresh_side(std::size_t i) {
  const bool goes_up = alpha[i] < upper[i], goes_down = lower[i] < alpha[i];
  side[i] = goes_up == goes_down ? (goes_up ? 0.0f : immovable) : goes_up ? 1.0f : -1.0f;
}

template <class Real>
void WorkingSet<Real>::set_alpha(std::size_t i, double value) {
  alpha[i] = value;
  refresh_side(i);
}

template <class Real>
Violation WorkingSet<Real>::measure() const {
  return measure_violation({size, alpha.data(), gradient.data(), lower.data(), upper.data(),
                            has_sums() ? sum_of.data() : nullptr, n_sums});
}

template <class Real>
std::vector<double> WorkingSet<Real>::product(const std::vector<double>& change) const {
  std::vector<double> sum(stride, 0.0), weights;
  std::vector<const Real*> rows;
  for (std::size_t i = 0; i < size; ++i) {
    if (change[i] == 0.0) continue;
    rows.push_back(kernel_row(i));
    weights.push_back(change[i]);
  }
  add_weighted(rows.data(), weights.data(), rows.size(), stride, sum.data());
  return sum;
}

template struct WorkingSet<float>;
template struct WorkingSet<double>;

}  // namespace dcsvm
