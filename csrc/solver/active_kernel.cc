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
// Threads divide a single kernel row from this cost on, in nanoseconds by the fixed cost model.
constexpr double parallel_cost = 20000;
// Leaving out fewer members saves no more than packing the other rows costs.
constexpr std::size_t left_out_part = 8;

}  // namespace

void ActiveKernel::set_rows(const std::vector<std::int32_t>& rows) {
  rows_ = rows;
  lanes_ = {};  // frees memory before packing
}

// Packs the rows when their first kernel row is needed: never, if a working set has all of them.
void ActiveKernel::pack() {
  if (lanes_.n_panels() > 0 || rows_.empty()) return;
  const bool packed = rows_.size() * packed_row_bytes(setup_, points_) <= options_.lane_bytes;
  lanes_ = RowPanels(setup_, {&points_, rows_.data(), rows_.size()}, options_.n_threads, packed);
  boxes_ = lane_boxes(setup_, points_, rows_, options_.cutoff);
}

void ActiveKernel::load(const std::vector<std::int32_t>& rows) {
  set_rows(rows);
  if (!rows.empty()) cache_.reset(rows.size(), n_lanes(), has_cache_ ? options_.cache_bytes : 0);
}

void ActiveKernel::compact(const std::vector<std::int32_t>& kept,
                           const std::vector<std::int32_t>& rows) {
  set_rows(rows);
  cache_.compact(kept, n_lanes());
}

std::vector<std::int32_t> ActiveKernel::rows_of(const std::vector<std::int32_t>& positions) const {
  std::vector<std::int32_t> rows;
  for (const std::int32_t p : positions) rows.push_back(rows_[static_cast<std::size_t>(p)]);
  return rows;
}

// If kernel values are stored less 1, tiles are more accurate than the matrix of a working set.
bool ActiveKernel::leaves_out(std::size_t n_members) const {
  return !has_cache_ && !setup_.is_flat && n_members * left_out_part >= rows_.size();
}

bool ActiveKernel::begin_add(const std::vector<std::int32_t>& changed,
                             const std::vector<std::int32_t>& members, const Stop* stop) {
  pack();
  changed_ = changed;
  others_.clear();
  if (leaves_out(members.size())) {
    auto member = members.begin();
    for (std::size_t p = 0; p < rows_.size(); ++p) {
      if (member != members.end() && static_cast<std::size_t>(*member) == p) {
        ++member;
      } else {
        others_.push_back(static_cast<std::int32_t>(p));
      }
    }
    rows_of_others_ = rows_of(others_);
    boxes_of_others_ = lane_boxes(setup_, points_, rows_of_others_, options_.cutoff);
  }
  n_computed_ = static_cast<std::int64_t>(changed.size());
  was_stopped_ = false;
  if (!has_cache_) return true;
  cache_.copy_contents(contents_);
  compute_absent(changed);
  look_up();
  // rows that the cache has no space for are computed while they are added
  std::vector<std::int32_t> missing;
  StoredRows slots;
  for (std::size_t j = 0; j < changed.size(); ++j) {
    if (!stored_.is_missing[j] || !stored_.rows[j]) continue;
    missing.push_back(changed[j]);
    slots.rows.push_back(stored_.rows[j]);
    stored_.is_missing[j] = 0;
  }
  slots.is_missing.assign(missing.size(), 1);
  compute(missing, slots, stop);
  was_stopped_ = is_requested(stop);
  return !was_stopped_;
}

ActiveKernel::Added ActiveKernel::add(const std::vector<double>& step, double* sums,
                                      const Stop* stop, const Task& task) {
  ProductCount done;
  if (has_cache_) {
    for_parts(changed_, stored_, stop, task, [&](const float* const* rows, const Part& part) {
      loops<float>().add_weighted(rows, step.data() + part.first, part.n, part.lanes,
                                  sums + part.begin);
    });
    done.evaluated = n_computed_ * static_cast<std::int64_t>(rows_.size());
  } else {
    const std::vector<std::int32_t> rows = rows_of(changed_);
    const auto add_to = [&](const RowPanels& lanes, const BoundingBoxes& boxes, double* to) {
      done = add_product(setup_, lanes, boxes, {&points_, rows.data(), rows.size()}, step.data(),
                         options_.precision, options_.cutoff, options_.n_threads, to, stop, task);
    };
    if (others_.empty()) {
      add_to(lanes_, boxes_, sums);
    } else {
      const RowPanels lanes(setup_, {&points_, rows_of_others_.data(), others_.size()},
                            options_.n_threads, false);
      AlignedVector<double> own(lanes.n_panels() * panel_rows);
      for (std::size_t k = 0; k < others_.size(); ++k) own[k] = sums[others_[k]];
      add_to(lanes, boxes_of_others_, own.data());
      for (std::size_t k = 0; k < others_.size(); ++k) sums[others_[k]] = own[k];
    }
  }
  was_stopped_ = is_requested(stop);
  if (!was_stopped_) {
    report_.rows_computed += n_computed_;
    report_.rows_reused += static_cast<std::int64_t>(changed_.size()) - n_computed_;
    report_.kernel_evaluations += done.evaluated;
    report_.pairs_skipped += done.skipped;
  }
  return {!was_stopped_, done.skipped > 0};
}

void ActiveKernel::add_at(const std::vector<std::int32_t>& positions,
                          const std::vector<double>& step, double* sums) const {
  if (!has_cache_) {
    const std::vector<std::int32_t> rows = rows_of(changed_);
    std::vector<std::int32_t> places = positions;
    if (!others_.empty()) {
      auto other = others_.begin();
      for (std::int32_t& place : places) {
        other = std::lower_bound(other, others_.end(), place);
        place = static_cast<std::int32_t>(other - others_.begin());
      }
    }
    const std::vector<std::int32_t>& lanes = others_.empty() ? rows_ : rows_of_others_;
    add_product_at(setup_, {&points_, lanes.data(), lanes.size()}, places,
                   others_.empty() ? boxes_ : boxes_of_others_,
                   {&points_, rows.data(), rows.size()}, step.data(), options_.precision,
                   options_.cutoff, options_.n_threads, sums);
    return;
  }
  // gather the lanes of cached rows; the others are computed
  const std::vector<std::int32_t> all_rows = rows_of(positions);
  struct State {
    TileScratch scratch;
    std::vector<float> tile;
  };
  parallel_for(
      {options_.n_threads, (positions.size() + panel_rows - 1) / panel_rows},
      [] { return State{{}, std::vector<float>(query_block * panel_rows)}; },
      [&](State& own, std::size_t b) {
        const std::size_t begin = b * panel_rows;
        const std::size_t n = std::min(begin + panel_rows, positions.size()) - begin;
        const RowPanels panels(setup_, {&points_, all_rows.data() + begin, n});
        own.scratch.select(setup_, panels, 0, 1);
        AlignedVector<double> total(panel_rows);
        std::copy_n(sums + begin, n, total.begin());
        for (std::size_t first = 0; first < changed_.size(); first += query_block) {
          const std::size_t n_rows = std::min(query_block, changed_.size() - first);
          const float* rows[query_block];
          for (std::size_t k = 0; k < n_rows; ++k) {
            float* row = own.tile.data() + k * panel_rows;
            rows[k] = row;
            if (stored_.is_missing[first + k]) {
              const std::int32_t query = rows_[static_cast<std::size_t>(changed_[first + k])];
              own.scratch.rows(points_, &query, 1, row, panel_rows);
            } else {
              const float* cached = stored_.rows[first + k];
              for (std::size_t i = 0; i < n; ++i) row[i] = cached[positions[begin + i]];
            }
          }
          loops<float>().add_weighted(rows, step.data() + first, n_rows, panel_rows, total.data());
        }
        std::copy_n(total.begin(), n, sums + begin);
      });
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
  pack();
  StoredRows stored{{}, std::vector<std::uint8_t>(absent.size(), 1)};
  for (const std::int32_t position : absent) stored.rows.push_back(cache_.row_of(position));
  compute(absent, stored, nullptr);
}

// Finds or makes the cache slots of the changed variables.
void ActiveKernel::look_up() {
  stored_.rows.assign(changed_.size(), nullptr);
  stored_.is_missing.assign(changed_.size(), 0);
  cache_.begin_batch();
  std::vector<std::int32_t> absent;
  for (std::size_t j = 0; j < changed_.size(); ++j) {
    stored_.rows[j] = cache_.find(changed_[j]);
    stored_.is_missing[j] = stored_.rows[j] == nullptr;
    if (stored_.is_missing[j]) absent.push_back(changed_[j]);
  }
  std::vector<float*> inserted;
  cache_.insert(absent, inserted);
  std::size_t k = 0;
  for (std::size_t j = 0; j < changed_.size(); ++j) {
    if (stored_.is_missing[j]) stored_.rows[j] = inserted[k++];
  }
  n_computed_ = static_cast<std::int64_t>(absent.size());
}

// Computes the missing rows.
void ActiveKernel::compute(const std::vector<std::int32_t>& changed, const StoredRows& stored,
                           const Stop* stop) const {
  if (!changed.empty())
    for_parts(changed, stored, stop, {}, [](const float* const*, const Part&) {});
}

// Calls use(kernel rows, part) for all parts. Parts with the same lanes follow in the order of
// `changed`. Missing rows are computed and stored.
template <class Use>
void ActiveKernel::for_parts(const std::vector<std::int32_t>& changed, const StoredRows& stored,
                             const Stop* stop, const Task& task, Use use) const {
  const std::size_t block = panels_per_block(setup_, points_) * panel_rows;
  const std::size_t n_blocks = (n_lanes() + block - 1) / block;
  struct State {
    TileScratch scratch;
    std::vector<float> tile;
  };
  const bool has_missing = stored.has_missing();
  parallel_for(
      {options_.n_threads, n_blocks}, task,
      [&] { return State{{}, std::vector<float>(query_block * block)}; },
      [&](State& own, std::size_t b) {
        const std::size_t begin = b * block;
        const std::size_t lanes = std::min(begin + block, n_lanes()) - begin;
        if (has_missing) own.scratch.select(setup_, lanes_, begin / panel_rows, lanes / panel_rows);
        for (std::size_t first = 0; first < changed.size(); first += query_block) {
          if (is_requested(stop)) return;
          const Part part{first, std::min(query_block, changed.size() - first), begin, lanes};
          const float* rows[query_block];
          collect_rows(changed, stored, part, own.scratch, own.tile.data(), rows);
          use(rows, part);
        }
      },
      [](const State&) {});
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
  pack();
  compute_absent({position});
  if (const float* row = cached(position)) return {row, row + n_lanes()};
  const std::int32_t row = rows_[static_cast<std::size_t>(position)];
  std::vector<float> values(n_lanes());
  const std::size_t panels = panels_per_block(setup_, points_);
  const std::size_t n_blocks = (lanes_.n_panels() + panels - 1) / panels;
  const bool is_long = static_cast<double>(n_lanes()) * row_cost_ >= parallel_cost;
  parallel_for(
      {is_long ? options_.n_threads : 1, n_blocks}, [] { return TileScratch(); },
      [&](TileScratch& scratch, std::size_t b) {
        const std::size_t first = b * panels, n = std::min(panels, lanes_.n_panels() - first);
        scratch.select(setup_, lanes_, first, n);
        scratch.rows(points_, &row, 1, values.data() + first * panel_rows, n * panel_rows);
      });
  report_.kernel_evaluations += static_cast<std::int64_t>(rows_.size());
  return values;
}

}  // namespace dcsvm
