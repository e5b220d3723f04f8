#include "solver/working_set.h"

#include <algorithm>
#include <limits>

#include "kernel/kernel_matrix.h"
#include "simd/isa.h"
#include "threads/parallel.h"

namespace dcsvm {

namespace {

// Sets of at least threads_threshold members are copied in parallel, batch_members in a task.
constexpr std::size_t threads_threshold = 256, batch_members = 16;

constexpr float immovable = std::numeric_limits<float>::quiet_NaN();

std::size_t padded(std::size_t n) { return (n + panel_rows - 1) / panel_rows * panel_rows; }

}  // namespace

template <class Real>
std::int64_t WorkingKernel<Real>::fill(const KernelSetup& setup, const Points& points,
                                       const Members& members,
                                       const std::vector<std::int32_t>& from, int n_threads) {
  const std::size_t n = members.rows.size();
  new_.clear();
  old_.clear();
  for (std::size_t w = 0; w < n; ++w)
    (from[w] < 0 ? new_ : old_).push_back(static_cast<std::int32_t>(w));
  if (new_.empty() && n == size_) return 0;
  previous_.swap(kernel_);
  const std::size_t previous_stride = stride_;
  size_ = n;
  stride_ = padded(n);
  kernel_.resize(n * stride_);
  if (n < threads_threshold) n_threads = 1;
  parallel_for({n_threads, n, batch_members}, [&](std::size_t w) {
    Real* row = kernel_.data() + w * stride_;
    std::fill(row + n, row + stride_, Real(0));
    if (from[w] < 0) return;
    const Real* old_row = previous_.data() + static_cast<std::size_t>(from[w]) * previous_stride;
    for (const std::int32_t position : old_)
      row[position] = old_row[from[static_cast<std::size_t>(position)]];
  });
  read_cached(members, from, n_threads);
  return compute(setup, points, members, n_threads);
}

// Kernel values are bitwise symmetric, so a cached row of either member suffices.
template <class Real>
void WorkingKernel<Real>::read_cached(const Members& members, const std::vector<std::int32_t>& from,
                                      int n_threads) {
  const std::size_t n = size_;
  if (std::none_of(members.cached.begin(), members.cached.end(), [](auto* row) { return row; }))
    return;
  parallel_for({n_threads, n, batch_members}, [&](std::size_t w) {
    Real* row = kernel_.data() + w * stride_;
    const float* cached_row = members.cached[w];
    for (std::size_t v = 0; v < n; ++v) {
      if (from[w] >= 0 && from[v] >= 0) continue;
      if (cached_row) {
        row[v] = cached_row[members.lanes[v]];
      } else if (members.cached[v]) {
        row[v] = members.cached[v][members.lanes[w]];
      }
    }
  });
}

// Computes the values that no cached row has: for pairs of new members, and for pairs of a new and
// a remaining member, if both lack a cached row.
template <class Real>
std::int64_t WorkingKernel<Real>::compute(const KernelSetup& setup, const Points& points,
                                          const Members& members, int n_threads) {
  uncached_.clear();
  const auto collect = [&](std::int32_t w) {
    if (!members.cached[static_cast<std::size_t>(w)]) uncached_.push_back(w);
  };
  std::for_each(new_.begin(), new_.end(), collect);
  const std::size_t n_new = uncached_.size();
  std::for_each(old_.begin(), old_.end(), collect);
  std::vector<std::int32_t> rows;
  for (const std::int32_t w : uncached_) rows.push_back(members.rows[static_cast<std::size_t>(w)]);
  symmetric_matrix(setup, {&points, rows.data(), rows.size()}, n_new, uncached_.data(), n_threads,
                   kernel_.data(), stride_);
  const auto n = static_cast<std::int64_t>(n_new);
  return n * (n + 1) / 2 + n * static_cast<std::int64_t>(uncached_.size() - n_new);
}

template <class Real>
void WorkingKernel<Real>::keep(const std::vector<std::int32_t>& positions) {
  if (positions.size() == size_) return;
  const std::size_t stride = padded(positions.size());
  previous_.resize(positions.size() * stride);
  for (std::size_t i = 0; i < positions.size(); ++i) {
    const Real* from = kernel_.data() + static_cast<std::size_t>(positions[i]) * stride_;
    Real* to = previous_.data() + i * stride;
    for (std::size_t j = 0; j < positions.size(); ++j) to[j] = from[positions[j]];
    std::fill(to + positions.size(), to + stride, Real(0));
  }
  kernel_.swap(previous_);
  size_ = positions.size();
  stride_ = stride;
}

template class WorkingKernel<float>;
template class WorkingKernel<double>;

template <class Real>
WorkingSet<Real>::WorkingSet(const ActiveSet& active, const std::vector<std::int32_t>& members,
                             const WorkingKernel<Real>& values, int n_equality_constraints)
    : WorkingSet(values.data(), members.size(), values.stride(), n_equality_constraints) {
  gather(active, members);
}

template <class Real>
WorkingSet<Real>::WorkingSet(const Real* values, std::size_t n, std::size_t row_stride,
                             int n_equality_constraints)
    : size(n), stride(row_stride), kernel(values), n_constraints(n_equality_constraints) {
  for (std::vector<double>* array : {&alpha, &gradient, &lower, &upper}) array->assign(stride, 0.0);
  diagonal.assign(stride, Real(1));
  side.assign(stride, immovable);
  if (n_equality_constraints > 0) constraint_of.assign(stride, -1);
}

template <class Real>
template <class Whole, class Index>
void WorkingSet<Real>::gather(const Whole& whole, const std::vector<Index>& members) {
  for (std::size_t i = 0; i < size; ++i) {
    const auto p = static_cast<std::size_t>(members[i]);
    alpha[i] = whole.alpha[p];
    gradient[i] = whole.gradient[p];
    lower[i] = whole.lower[p];
    upper[i] = whole.upper[p];
    if (has_constraints()) constraint_of[i] = whole.constraint_of[p];
  }
  refresh();
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
  const std::size_t n = members.size(), row = padded(n);
  values.resize(n * row);
  WorkingSet<Real> subset(values.data(), n, row, n_constraints);
  for (std::size_t a = 0; a < n; ++a) {
    const Real* from = kernel_row(members[a]);
    Real* to = values.data() + a * row;
    for (std::size_t b = 0; b < n; ++b) to[b] = from[members[b]];
    std::fill(to + n, to + row, Real(0));
  }
  subset.gather(*this, members);
  return subset;
}

template <class Real>
void WorkingSet<Real>::update_from(const WorkingSet<Real>& part,
                                   const std::vector<std::size_t>& members) {
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
                            has_constraints() ? constraint_of.data() : nullptr, n_constraints});
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
  loops<Real>().add_weighted(rows.data(), weights.data(), rows.size(), stride, sum.data());
  return sum;
}

template struct WorkingSet<float>;
template struct WorkingSet<double>;

}  // namespace dcsvm
