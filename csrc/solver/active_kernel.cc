#include "solver/active_kernel.h"

#include <algorithm>

#include "kernel/kernel_setup.h"
#include "kernel/kernel_tile.h"
#include "simd/isa.h"
#include "solver/snapshot.h"
#include "threads/parallel.h"

namespace dcsvm {

namespace {

// Number of kernel rows in a tile: 64 rows of 128 floats (32 KiB) fit the L1 cache.
constexpr std::size_t query_block = 64;
// Blocks of lanes per task of a thread.
constexpr std::size_t batch_blocks = 4;

}  // namespace

void ActiveKernel::pack(const std::vector<std::int32_t>& rows) {
  rows_ = rows;
  lanes_ = {};  // frees memory before packing
  const bool packed = rows.size() * packed_row_bytes(setup_, points_) <= options_.lane_bytes;
  if (!rows.empty())
    lanes_ = RowPanels(setup_, {&points_, rows.data(), rows.size()}, options_.n_threads, packed);
  boxes_ = lane_boxes(setup_, points_, rows, options_.cutoff);
}

void ActiveKernel::load(const std::vector<std::int32_t>& rows) {
  pack(rows);
  if (!rows.empty()) cache_.reset(rows.size(), n_lanes(), has_cache_ ? options_.cache_bytes : 0);
}

void ActiveKernel::compact(const std::vector<std::int32_t>& kept,
                           const std::vector<std::int32_t>& rows) {
  pack(rows);
  cache_.compact(kept, n_lanes());
}

ActiveKernel::Added ActiveKernel::add(const std::vector<std::int32_t>& changed,
                                      const std::vector<double>& step, double* sums,
                                      const Stop* stop) {
  const SolveReport before = report_;
  const bool has_skipped =
      has_cache_ ? add_cached(changed, step, sums, stop) : add_computed(changed, step, sums, stop);
  was_stopped_ = is_requested(stop);
  if (was_stopped_) report_ = before;
  return {!was_stopped_, has_skipped};
}

// Returns whether pairs beyond the cutoff were skipped.
bool ActiveKernel::add_computed(const std::vector<std::int32_t>& changed,
                                const std::vector<double>& step, double* sums, const Stop* stop) {
  std::vector<std::int32_t> rows(changed.size());
  for (std::size_t j = 0; j < changed.size(); ++j)
    rows[j] = rows_[static_cast<std::size_t>(changed[j])];
  const ProductCount done =
      add_product(setup_, lanes_, boxes_, {&points_, rows.data(), rows.size()}, step.data(),
                  options_.precision, options_.cutoff, options_.n_threads, sums, stop);
  report_.rows_computed += static_cast<std::int64_t>(changed.size());
  report_.kernel_evaluations += done.evaluated;
  report_.pairs_skipped += done.skipped;
  return done.skipped > 0;
}

const RowCache::Contents& ActiveKernel::contents() {
  if (!was_stopped_) cache_.copy_contents(contents_);
  return contents_;
}

void ActiveKernel::set_contents(const RowCache::Contents& contents) {
  std::vector<std::int32_t> keys = contents.keys;
  std::sort(keys.begin(), keys.end());
  check_snapshot(are_positions(keys, rows_.size()) && contents.used.size() == keys.size());
  cache_.set_contents(contents);
}

void ActiveKernel::compute_absent(const std::vector<std::int32_t>& positions) {
  const std::vector<std::int32_t> absent = cache_.claim_absent(positions);
  if (absent.empty()) return;
  StoredRows stored{{}, std::vector<std::uint8_t>(absent.size(), 1), absent.size()};
  for (const std::int32_t position : absent) stored.rows.push_back(cache_.row_of(position));
  for_parts(absent, stored, nullptr, [](const float* const*, const Part&) {});
}

ActiveKernel::StoredRows ActiveKernel::look_up(const std::vector<std::int32_t>& changed) {
  StoredRows stored{std::vector<float*>(changed.size(), nullptr), {}};
  cache_.begin_batch();
  std::vector<std::int32_t> absent;
  for (std::size_t j = 0; j < changed.size(); ++j) {
    stored.rows[j] = cache_.find(changed[j]);
    stored.is_missing.push_back(stored.rows[j] == nullptr);
    if (stored.is_missing[j]) absent.push_back(changed[j]);
  }
  std::vector<float*> inserted;
  cache_.insert(absent, inserted);
  std::size_t k = 0;
  for (std::size_t j = 0; j < changed.size(); ++j) {
    if (stored.is_missing[j]) stored.rows[j] = inserted[k++];
  }
  const auto n = static_cast<std::int64_t>(changed.size()),
             n_missing = static_cast<std::int64_t>(absent.size());
  report_.rows_computed += n_missing;
  report_.rows_reused += n - n_missing;
  report_.kernel_evaluations += n_missing * static_cast<std::int64_t>(rows_.size());
  stored.n_missing = absent.size();
  return stored;
}

bool ActiveKernel::add_cached(const std::vector<std::int32_t>& changed,
                              const std::vector<double>& step, double* sums, const Stop* stop) {
  cache_.copy_contents(contents_);
  compute_absent(changed);
  const StoredRows stored = look_up(changed);
  for_parts(changed, stored, stop, [&](const float* const* rows, const Part& part) {
    loops<float>().add_weighted(rows, step.data() + part.first, part.n, part.lanes,
                                sums + part.begin);
  });
  return false;
}

// Calls use(kernel rows, part) for all parts. Parts with the same lanes follow in the order of
// `changed`. Missing rows are computed and stored.
template <class Use>
void ActiveKernel::for_parts(const std::vector<std::int32_t>& changed, const StoredRows& stored,
                             const Stop* stop, Use use) const {
  const std::size_t block = panels_per_block(setup_, points_) * panel_rows;
  const std::size_t n_blocks = (n_lanes() + block - 1) / block;
  struct State {
    TileScratch scratch;
    std::vector<float> tile;
  };
  parallel_for(
      {options_.n_threads, n_blocks, batch_blocks},
      [&] { return State{{}, std::vector<float>(query_block * block)}; },
      [&](State& own, std::size_t b) {
        const std::size_t begin = b * block;
        const std::size_t lanes = std::min(begin + block, n_lanes()) - begin;
        if (stored.n_missing > 0)
          own.scratch.select(setup_, lanes_, begin / panel_rows, lanes / panel_rows);
        for (std::size_t first = 0; first < changed.size(); first += query_block) {
          if (is_requested(stop)) return;
          const Part part{first, std::min(query_block, changed.size() - first), begin, lanes};
          const float* rows[query_block];
          collect_rows(changed, stored, part, own.scratch, own.tile.data(), rows);
          use(rows, part);
        }
      });
}

// Collects pointers to the kernel rows of a part. Cached rows are used in place. Missing rows are
// computed in the tile and copied to their cache slots.
void ActiveKernel::collect_rows(const std::vector<std::int32_t>& changed, const StoredRows& stored,
                                const Part& part, TileScratch& scratch, float* tile,
                                const float** rows) const {
  std::int32_t queries[query_block];
  std::size_t n_queries = 0;
  for (std::size_t k = 0; k < part.n; ++k) {
    const std::size_t j = part.first + k;
    if (!stored.is_missing[j]) {
      rows[k] = stored.rows[j] + part.begin;
      continue;
    }
    rows[k] = tile + n_queries * part.lanes;
    queries[n_queries++] = rows_[static_cast<std::size_t>(changed[j])];
  }
  if (n_queries == 0) return;
  scratch.rows(points_, queries, n_queries, tile, part.lanes);
  for (std::size_t k = 0; k < part.n; ++k) {
    const std::size_t j = part.first + k;
    if (stored.is_missing[j] && stored.rows[j])
      std::copy_n(rows[k], part.lanes, stored.rows[j] + part.begin);
  }
}

std::vector<float> ActiveKernel::kernel_values(std::int32_t position) {
  const std::int32_t row = rows_[static_cast<std::size_t>(position)];
  std::vector<float> found(n_lanes());
  TileScratch scratch;
  const std::size_t panels = panels_per_block(setup_, points_);
  for (std::size_t first = 0; first < lanes_.n_panels(); first += panels) {
    const std::size_t n = std::min(panels, lanes_.n_panels() - first);
    scratch.select(setup_, lanes_, first, n);
    scratch.rows(points_, &row, 1, found.data() + first * panel_rows, n * panel_rows);
  }
  report_.kernel_evaluations += static_cast<std::int64_t>(rows_.size());
  return found;
}

}  // namespace dcsvm
