#include "working_kernel.h"

#include <algorithm>

#include "kernel_product.h"

namespace dcsvm {

namespace {
// Members from which on threads share the copying.
constexpr std::size_t worth_threads = 256;

std::size_t padded(std::size_t n) { return (n + panel_rows - 1) / panel_rows * panel_rows; }
}  // namespace

std::int64_t WorkingKernel::fill(const KernelSetup& setup, const Points& points,
                                 const std::vector<std::int32_t>& rows,
                                 const std::vector<std::int32_t>& from, int n_threads) {
  const std::size_t n = rows.size();
  std::vector<std::int32_t> fresh, fresh_rows,
      old;  // places of new members, their rows, places of the others
  for (std::size_t w = 0; w < n; ++w) {
    if (from[w] >= 0) {
      old.push_back(static_cast<std::int32_t>(w));
      continue;
    }
    fresh.push_back(static_cast<std::int32_t>(w));
    fresh_rows.push_back(rows[w]);
  }
  if (fresh.empty() && n == size_) return 0;
  computed_.resize(fresh.size() * n);
  if (!fresh.empty()) {
    kernel_matrix(setup, {&points, fresh_rows.data(), fresh_rows.size()}, {&points, rows.data(), n},
                  n_threads, computed_.data());
  }
  previous_.swap(kernel_);
  const std::size_t previous_stride = stride_;
  size_ = n;
  stride_ = padded(n);
  kernel_.resize(n * stride_);
  std::vector<std::size_t> place_in_fresh(n, 0);
  for (std::size_t f = 0; f < fresh.size(); ++f)
    place_in_fresh[static_cast<std::size_t>(fresh[f])] = f;
  const bool parallel = n_threads > 1 && n >= worth_threads;
#pragma omp parallel for num_threads(n_threads) schedule(static) if (parallel)
  for (std::int64_t i = 0; i < static_cast<std::int64_t>(n); ++i) {
    const auto w = static_cast<std::size_t>(i);
    float* row = kernel_.data() + w * stride_;
    if (from[w] < 0) {
      std::copy_n(computed_.data() + place_in_fresh[w] * n, n, row);
    } else {
      const float* old_row = previous_.data() + static_cast<std::size_t>(from[w]) * previous_stride;
      for (const std::int32_t place : old)
        row[place] = old_row[from[static_cast<std::size_t>(place)]];
      for (std::size_t f = 0; f < fresh.size(); ++f) row[fresh[f]] = computed_[f * n + w];
    }
    std::fill(row + n, row + stride_, 0.0f);
  }
  return static_cast<std::int64_t>(computed_.size());
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
