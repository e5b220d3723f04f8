// Kernel products of a block of lanes: tiles of lanes and sources, times the sources' weights.
// For kernel_product.cc only.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <vector>

#include "kernel/kernel_product.h"
#include "kernel/kernel_setup.h"
#include "kernel/kernel_tile.h"
#include "kernel/row_panels.h"
#include "rows/cutoff.h"
#include "rows/points.h"
#include "simd/aligned_vector.h"
#include "simd/isa.h"

namespace dcsvm {

// Sources of a tile. A tile is computed before its values are summed: 64 x 128 floats, 32 KiB, fit
// the L1 cache. Boxes around this number of rows are small.
constexpr std::size_t source_block = blocked_rows;

inline bool can_skip(const KernelSetup& setup, const Cutoff& cutoff) {
  return cutoff.is_finite() && setup.form == Form::difference;
}

// A weight of W with the position of its source in a block of sources.
struct PlacedWeight {
  std::int32_t column;
  std::uint32_t place;
  double value;
};

// Returns the weights sorted by column inside each block of sources, sources of a column in order
// (counting sort): the sum of a column then stays in registers for a whole block.
inline std::vector<PlacedWeight> by_column(const SourceWeights& w, std::size_t n_sources) {
  std::vector<PlacedWeight> sorted(static_cast<std::size_t>(w.indptr[n_sources] - w.indptr[0]));
  std::vector<std::size_t> next(w.n_columns + 1);
  for (std::size_t first = 0; first < n_sources; first += source_block) {
    const std::size_t end = std::min(first + source_block, n_sources);
    std::fill(next.begin(), next.end(), std::size_t{0});
    for (std::int64_t at = w.indptr[first]; at < w.indptr[end]; ++at)
      ++next[static_cast<std::size_t>(w.columns[at]) + 1];
    next[0] = static_cast<std::size_t>(w.indptr[first] - w.indptr[0]);
    std::partial_sum(next.begin(), next.end(), next.begin());
    for (std::size_t j = first; j < end; ++j) {
      const auto place = static_cast<std::uint32_t>(j - first);
      for (std::int64_t at = w.indptr[j]; at < w.indptr[j + 1]; ++at)
        sorted[next[static_cast<std::size_t>(w.columns[at])]++] = {w.columns[at], place,
                                                                   w.values[at]};
    }
  }
  return sorted;
}

// The sources of a product with their weights, and boxes around blocks of them.
struct SourceView {
  SourceView(const KernelSetup& s, const RowList& list, const SourceWeights& w, const Cutoff& r)
      : setup(s.is_flat && !can_skip(s, r) ? s.less_one() : s),
        points(*list.points),
        rows(indexed(list, numbers)),
        weights(w),
        cutoff(r) {
    if (can_skip(setup, cutoff)) {
      boxes = BoundingBoxes(points, rows.index, rows.size, source_block);
      blocked = BlockedRows(points, rows.index, rows.size);
    }
    if (w.indptr) placed = by_column(w, rows.size);
    if (setup.kernel.less_one) {
      taken_off.resize(w.n_columns);
      add_weights(w, 0, rows.size, taken_off.data());
    }
  }

  KernelSetup setup;  // of the tiles
  const Points& points;
  std::vector<std::int32_t> numbers;
  RowList rows;
  SourceWeights weights;
  std::vector<PlacedWeight> placed;  // `weights` by column; only in CSR form
  std::vector<double> taken_off;     // sum of weights per column; empty unless less_one
  Cutoff cutoff;
  BoundingBoxes boxes;  // empty: no pair is skipped
  BlockedRows blocked;
};

// Per-thread state of a product: blocks of lanes, one at a time, against sources.
template <class Real>
class LaneProduct {
 public:
  // After a stop, the remaining sources are skipped.
  explicit LaneProduct(const SourceView& sources, const Stop* stop = nullptr)
      : sources_(sources),
        stop_(stop),
        tile_(source_block * panels_per_block(sources.setup, sources.points) * panel_rows) {}

  // Chooses whole panels of lanes, with the box around them.
  void select(const RowPanels& lanes, std::size_t first_panel, std::size_t n_panels,
              const BoundingBoxes& boxes, std::size_t box) {
    scratch_.select(sources_.setup, lanes, first_panel, n_panels);
    n_lanes_ = n_panels * panel_rows;
    n_rows_ = std::min(lanes.size() - first_panel * panel_rows, n_lanes_);
    boxes_ = &boxes;
    box_ = box;
  }

  // sums[column * n_lanes + lane] += the product with all sources.
  void add(double* sums) {
    for (std::size_t c = 0; c < sources_.taken_off.size(); ++c) {
      for (std::size_t lane = 0; lane < n_lanes_; ++lane)
        sums[c * n_lanes_ + lane] += sources_.taken_off[c];
    }
    for (std::size_t first = 0; first < sources_.rows.size; first += source_block) {
      const std::size_t n = std::min(source_block, sources_.rows.size - first);
      if (!compute(first, n)) continue;
      if (sources_.weights.indptr) {
        add_columns(first, n, sums);
      } else {
        add_column(sums);
      }
    }
  }

  // Returns the product of all lanes, column by column, in a buffer that the next call overwrites.
  const double* product(const RowPanels& lanes, const BoundingBoxes& box, std::size_t n_columns) {
    sums_.assign(n_columns * lanes.n_panels() * panel_rows, 0.0);
    select(lanes, 0, lanes.n_panels(), box, 0);
    add(sums_.data());
    return sums_.data();
  }

  // Adds both products of the lanes and the sources begin to before end: sums[lane] += the product
  // with the sources' weights, source_sums[source - begin] += the product with the lanes' weights.
  // `begin` is a multiple of source_block. The caller adds `taken_off`.
  void add_both(std::size_t begin, std::size_t end, const double* lane_weights, double* sums,
                double* source_sums) {
    for (std::size_t first = begin; first < end; first += source_block) {
      if (!compute(first, std::min(source_block, end - first))) continue;
      add_column(sums);
      for (std::size_t k = 0; k < near_.size(); ++k) {
        Real* const values = tile_.data() + k * n_lanes_;
        std::fill(values + n_rows_, values + n_lanes_, Real(0));  // padding lanes
        source_sums[near_[k] - begin] += isa().dot(values, lane_weights, n_lanes_);
      }
    }
  }

  const ProductCount& count() const { return count_; }

 private:
  // Computes the tile of n sources; returns false if all pairs are beyond the cutoff, or when
  // stopped.
  bool compute(std::size_t first, std::size_t n) {
    if (is_requested(stop_)) return false;
    find_near(first, n);
    count_.evaluated += static_cast<std::int64_t>(near_.size() * n_rows_);
    count_.skipped += static_cast<std::int64_t>((n - near_.size()) * n_rows_);
    if (near_.empty()) return false;
    scratch_.rows(sources_.points, queries_.data(), queries_.size(), tile_.data(), n_lanes_);
    return true;
  }

  // Collects the sources of a block that are not provably beyond the cutoff from the box of lanes.
  void find_near(std::size_t first, std::size_t n) {
    std::uint32_t places[source_block];
    for (std::size_t k = 0; k < n; ++k) places[k] = static_cast<std::uint32_t>(k);
    if (!sources_.boxes.empty() && !boxes_->empty()) {
      const std::size_t block = first / source_block;
      const Distance& distance = sources_.cutoff.distance;
      if (boxes_->are_apart(box_, sources_.boxes, block, distance)) {
        n = 0;
      } else if (!boxes_->are_near(box_, sources_.boxes, block, distance)) {
        n = boxes_->find_near(box_, sources_.blocked, block, distance, places);
      }
    }
    near_.resize(n);
    queries_.resize(n);
    for (std::size_t k = 0; k < n; ++k) {
      near_[k] = first + places[k];
      queries_[k] = sources_.rows.index[near_[k]];
    }
  }

  // Adds the tile times the weights of its sources, one weight each.
  void add_column(double* sums) const {
    const Real* rows[source_block];
    double weights[source_block];
    for (std::size_t k = 0; k < near_.size(); ++k) {
      rows[k] = tile_.data() + k * n_lanes_;
      weights[k] = sources_.weights.values[near_[k]];
    }
    loops<Real>().add_weighted(rows, weights, near_.size(), n_lanes_, sums);
  }

  // The same with several columns, for n sources beginning with `first`.
  void add_columns(std::size_t first, std::size_t n, double* sums) const {
    const Real* tile_row[source_block] = {};  // null: beyond the cutoff
    for (std::size_t k = 0; k < near_.size(); ++k)
      tile_row[near_[k] - first] = tile_.data() + k * n_lanes_;
    const Real* rows[source_block];
    double weights[source_block];
    const std::int64_t* indptr = sources_.weights.indptr;
    const PlacedWeight* w = sources_.placed.data() + (indptr[first] - indptr[0]);
    const PlacedWeight* end = sources_.placed.data() + (indptr[first + n] - indptr[0]);
    while (w != end) {
      const std::int32_t column = w->column;
      std::size_t count = 0;
      for (; w != end && w->column == column && count < source_block; ++w) {
        if (!tile_row[w->place]) continue;
        rows[count] = tile_row[w->place];
        weights[count++] = w->value;
      }
      loops<Real>().add_weighted(rows, weights, count, n_lanes_,
                                 sums + static_cast<std::size_t>(column) * n_lanes_);
    }
  }

  const SourceView& sources_;
  const Stop* stop_;
  TileScratch scratch_;
  AlignedVector<Real> tile_;
  std::vector<double> sums_;
  const BoundingBoxes* boxes_ = nullptr;  // of the lanes
  std::size_t box_ = 0;
  std::size_t n_lanes_ = 0, n_rows_ = 0;
  std::vector<std::size_t> near_;      // sources within the cutoff of this tile
  std::vector<std::int32_t> queries_;  // their rows
  ProductCount count_;
};

}  // namespace dcsvm
