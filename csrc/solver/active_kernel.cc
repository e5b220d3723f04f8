#include "solver/active_kernel.h"

#include <algorithm>

#include "kernel/kernel_cost.h"
#include "kernel/kernel_tile.h"
#include "simd/isa.h"

namespace dcsvm {

namespace {

constexpr std::size_t query_block = 64;

}  // namespace

ActiveKernel::ActiveKernel(const KernelSetup& setup, const Points& points, const Reach& reach,
                           std::size_t cache_bytes, std::size_t lane_bytes, int n_threads)
    : setup_(setup),
      points_(points),
      reach_(reach),
      cache_bytes_(cache_bytes),
      lane_bytes_(lane_bytes),
      n_threads_(n_threads),
      row_cost_(tile_cost(setup, points)),
      has_cache_(caching_pays(setup, points)) {}

void ActiveKernel::pack(const std::vector<std::int32_t>& rows) {
  rows_ = rows;
  lanes_ = {};  // what they hold is freed before it is made anew
  const bool packed = rows.size() * packed_row_bytes(setup_, points_) <= lane_bytes_;
  if (!rows.empty())
    lanes_ = RowPanels(setup_, {&points_, rows.data(), rows.size()}, n_threads_, packed);
  boxes_ = lane_boxes(setup_, points_, rows, reach_);
}

void ActiveKernel::load(const std::vector<std::int32_t>& rows) {
  pack(rows);
  if (!rows.empty()) cache_.reset(rows.size(), n_lanes(), has_cache_ ? cache_bytes_ : 0);
}

void ActiveKernel::compact(const std::vector<std::int32_t>& kept,
                           const std::vector<std::int32_t>& rows) {
  pack(rows);
  cache_.compact(kept, n_lanes());
}

bool ActiveKernel::add(const std::vector<std::int32_t>& changed, const std::vector<double>& step,
                       double* sums, const Stop* stop) {
  if (has_cache_) {
    add_cached(changed, step, sums, stop);
    return false;
  }
  std::vector<std::int32_t> rows(changed.size());
  for (std::size_t j = 0; j < changed.size(); ++j)
    rows[j] = rows_[static_cast<std::size_t>(changed[j])];
  const ProductCount done =
      add_product(setup_, lanes_, boxes_, {&points_, rows.data(), rows.size()}, step.data(), reach_,
                  n_threads_, sums);
  count_.rows_computed += static_cast<std::int64_t>(changed.size());
  count_.evaluated += done.evaluated;
  count_.skipped += done.skipped;
  return done.skipped > 0;
}

void ActiveKernel::add_cached(const std::vector<std::int32_t>& changed,
                              const std::vector<double>& step, double* sums, const Stop* stop) {
  const std::size_t n = changed.size();
  std::vector<float*> stored(n, nullptr);
  std::vector<std::uint8_t> missing(n, 1);
  cache_.begin_batch();
  std::vector<std::int32_t> absent;
  std::vector<std::size_t> absent_at;
  for (std::size_t j = 0; j < n; ++j) {
    stored[j] = cache_.find(changed[j]);
    missing[j] = stored[j] == nullptr;
    if (!missing[j]) continue;
    absent.push_back(changed[j]);
    absent_at.push_back(j);
  }
  std::vector<float*> inserted;
  cache_.insert(absent, inserted);
  for (std::size_t k = 0; k < absent.size(); ++k) stored[absent_at[k]] = inserted[k];
  const auto n_missing = static_cast<std::int64_t>(absent.size());
  count_.rows_computed += n_missing;
  count_.rows_reused += static_cast<std::int64_t>(n) - n_missing;
  count_.evaluated += n_missing * static_cast<std::int64_t>(rows_.size());
  const std::size_t panels = panels_per_block(setup_), block = panels * panel_rows;
  const auto n_blocks = static_cast<std::int64_t>((n_lanes() + block - 1) / block);
#pragma omp parallel num_threads(n_threads_) if (n_threads_ > 1)
  {
    TileScratch scratch;
    std::vector<float> tile(query_block * block);
    std::vector<const float*> rows(query_block);
    std::vector<std::int32_t> queries;
#pragma omp for schedule(dynamic, 4)
    for (std::int64_t b = 0; b < n_blocks; ++b) {
      if (stop && stop->is_requested()) continue;
      const std::size_t begin = static_cast<std::size_t>(b) * block;
      const std::size_t lanes = std::min(begin + block, n_lanes()) - begin;
      if (n_missing > 0) scratch.select(setup_, lanes_, begin / panel_rows, lanes / panel_rows);
      for (std::size_t first = 0; first < n; first += query_block) {
        const std::size_t last = std::min(first + query_block, n);
        queries.clear();
        for (std::size_t j = first; j < last; ++j) {
          if (!missing[j]) {
            rows[j - first] = stored[j] + begin;
            continue;
          }
          rows[j - first] = tile.data() + queries.size() * lanes;
          queries.push_back(rows_[static_cast<std::size_t>(changed[j])]);
        }
        if (!queries.empty()) {
          scratch.rows(points_, queries.data(), queries.size(), tile.data(), lanes);
          for (std::size_t j = first; j < last; ++j) {
            if (missing[j] && stored[j]) std::copy_n(rows[j - first], lanes, stored[j] + begin);
          }
        }
        isa().weighted_sum_f32(rows.data(), step.data() + first, last - first, lanes, sums + begin);
      }
    }
  }
}

std::vector<float> ActiveKernel::values_of(std::int32_t position) {
  const std::int32_t row = rows_[static_cast<std::size_t>(position)];
  std::vector<float> values(n_lanes());
  TileScratch scratch;
  const std::size_t panels = panels_per_block(setup_);
  for (std::size_t first = 0; first < lanes_.n_panels(); first += panels) {
    const std::size_t n = std::min(panels, lanes_.n_panels() - first);
    scratch.select(setup_, lanes_, first, n);
    scratch.rows(points_, &row, 1, values.data() + first * panel_rows, n * panel_rows);
  }
  count_.evaluated += static_cast<std::int64_t>(rows_.size());
  return values;
}

}  // namespace dcsvm
