#include "solver/working_kernel.h"

#include <algorithm>

#include "kernel/kernel_matrix.h"
#include "simd/isa.h"
#include "threads/parallel.h"

namespace dcsvm {

namespace {
// Members from which on threads share the copying, and of which a thread takes some at a time.
constexpr std::size_t worth_threads = 256, members_at_once = 16;

std::size_t padded(std::size_t n) { return (n + panel_rows - 1) / panel_rows * panel_rows; }
}  // namespace

std::int64_t WorkingKernel::fill(const KernelSetup& setup, const Points& points,
                                 const Members& members, const std::vector<std::int32_t>& from,
                                 int n_threads) {
  const std::size_t n = members.rows.size();
  new_.clear();
  old_.clear();
  for (std::size_t w = 0; w < n; ++w)
    (from[w] < 0 ? new_ : old_).push_back(static_cast<std::int32_t>(w));
  if (new_.empty() && n == size_) return 0;
  const std::int64_t n_computed = compute(setup, points, members, n_threads);
  previous_.swap(kernel_);
  const std::size_t previous_stride = stride_;
  size_ = n;
  stride_ = padded(n);
  kernel_.resize(n * stride_);
  if (n < worth_threads) n_threads = 1;
  parallel_for({n_threads, new_.size(), members_at_once},
               [&](std::size_t k) { fill_new_row(members, k); });
  parallel_for({n_threads, old_.size(), members_at_once}, [&](std::size_t k) {
    const auto w = static_cast<std::size_t>(old_[k]);
    float* row = kernel_.data() + w * stride_;
    const float* old_row = previous_.data() + static_cast<std::size_t>(from[w]) * previous_stride;
    for (const std::int32_t place : old_)
      row[place] = old_row[from[static_cast<std::size_t>(place)]];
    for (const std::int32_t place : new_)
      row[place] = kernel_[static_cast<std::size_t>(place) * stride_ + w];
    std::fill(row + n, row + stride_, 0.0f);
  });
  return n_computed;
}

// Values of new members that no cached row has: between those and members without one.
std::int64_t WorkingKernel::compute(const KernelSetup& setup, const Points& points,
                                    const Members& members, int n_threads) {
  std::vector<std::int32_t> targets, sources;
  uncached_.clear();
  computed_at_.assign(new_.size(), 0);
  for (std::size_t w = 0; w < members.rows.size(); ++w) {
    if (members.cached[w]) continue;
    uncached_.push_back(static_cast<std::int32_t>(w));
    sources.push_back(members.rows[w]);
  }
  for (std::size_t k = 0; k < new_.size(); ++k) {
    const auto w = static_cast<std::size_t>(new_[k]);
    if (members.cached[w]) continue;
    computed_at_[k] = targets.size() * sources.size();
    targets.push_back(members.rows[w]);
  }
  computed_.resize(targets.size() * sources.size());
  if (computed_.empty()) return 0;
  kernel_matrix(setup, {&points, targets.data(), targets.size()},
                {&points, sources.data(), sources.size()}, n_threads, computed_.data());
  return static_cast<std::int64_t>(computed_.size());
}

// Values are the same bits either way round: one cached row of the two members is enough.
void WorkingKernel::fill_new_row(const Members& members, std::size_t k) {
  const auto w = static_cast<std::size_t>(new_[k]);
  float* row = kernel_.data() + w * stride_;
  if (const float* own = members.cached[w]) {
    for (std::size_t v = 0; v < size_; ++v) row[v] = own[members.lanes[v]];
  } else {
    for (std::size_t v = 0; v < size_; ++v) {
      if (members.cached[v]) row[v] = members.cached[v][members.lanes[w]];
    }
    const float* computed = computed_.data() + computed_at_[k];
    for (std::size_t u = 0; u < uncached_.size(); ++u) row[uncached_[u]] = computed[u];
  }
  std::fill(row + size_, row + stride_, 0.0f);
}

void WorkingKernel::keep(const std::vector<std::int32_t>& places) {
  if (places.size() == size_) return;
  const std::size_t stride = padded(places.size());
  previous_.assign(places.size() * stride, 0.0f);
  for (std::size_t i = 0; i < places.size(); ++i) {
    const float* row = kernel_.data() + static_cast<std::size_t>(places[i]) * stride_;
    for (std::size_t j = 0; j < places.size(); ++j) previous_[i * stride + j] = row[places[j]];
  }
  kernel_.swap(previous_);
  size_ = places.size();
  stride_ = stride;
}

}  // namespace dcsvm
