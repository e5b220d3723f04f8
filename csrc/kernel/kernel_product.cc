#include "kernel/kernel_product.h"

#include <algorithm>
#include <atomic>
#include <numeric>
#include <vector>

#include "kernel/kernel_cost.h"
#include "kernel/kernel_tile.h"
#include "kernel/linear_product.h"
#include "simd/isa.h"
#include "threads/parallel.h"

namespace dcsvm {

namespace {

// Sources whose kernel values with a block of lanes are computed before they are summed: their tile
// (64 x 128 floats, 32 KiB) stays in the first-level cache, and boxes around as many rows are
// small.
constexpr std::size_t source_block = blocked_rows;
// Of lanes that are packed, which a thread takes at a time.
constexpr std::size_t blocks_at_once = 4;

bool can_skip(const KernelSetup& setup, const Reach& reach) {
  return reach.is_finite() && setup.form == Form::difference;
}

// A weight of W with the place of its source in a block of sources.
struct PlacedWeight {
  std::int32_t column;
  std::uint32_t place;
  double value;
};

// The weights sorted by column inside each block of sources, sources of a column in order: the sum
// of a column then stays in registers for a whole block.
std::vector<PlacedWeight> by_column(const SourceWeights& w, std::size_t n_sources) {
  std::vector<PlacedWeight> sorted;
  for (std::size_t first = 0; first < n_sources; first += source_block) {
    const std::size_t end = std::min(first + source_block, n_sources), begin = sorted.size();
    for (std::size_t j = first; j < end; ++j) {
      for (std::int64_t at = w.indptr[j]; at < w.indptr[j + 1]; ++at)
        sorted.push_back({w.columns[at], static_cast<std::uint32_t>(j - first), w.values[at]});
    }
    std::stable_sort(
        sorted.begin() + static_cast<std::ptrdiff_t>(begin), sorted.end(),
        [](const PlacedWeight& a, const PlacedWeight& b) { return a.column < b.column; });
  }
  return sorted;
}

// Of each column, where all kernel values have 1 taken off.
std::vector<double> sums_of_weights(const SourceWeights& w, std::size_t n_sources) {
  std::vector<double> sums(w.n_columns, 0.0);
  const std::size_t n = w.indptr ? static_cast<std::size_t>(w.indptr[n_sources]) : n_sources;
  for (std::size_t k = 0; k < n; ++k)
    sums[w.indptr ? static_cast<std::size_t>(w.columns[k]) : 0] += w.values[k];
  return sums;
}

// The sources of a product with their weights, and boxes around blocks of them.
struct Sources {
  Sources(const KernelSetup& s, const RowList& list, const SourceWeights& w, const Reach& r)
      : setup(s.is_flat && !can_skip(s, r) ? s.less_one() : s),
        points(*list.points),
        rows(indexed(list, numbers)),
        weights(w),
        reach(r) {
    if (can_skip(setup, reach)) {
      boxes = Boxes(points, rows.index, rows.size, source_block);
      blocked = BlockedRows(points, rows.index, rows.size);
    }
    if (w.indptr) placed = by_column(w, rows.size);
    if (setup.kernel.less_one) taken_off = sums_of_weights(w, rows.size);
  }

  KernelSetup setup;  // of the tiles

  const Points& points;
  std::vector<std::int32_t> numbers;
  RowList rows;
  SourceWeights weights;
  std::vector<PlacedWeight> placed;  // the same by column; only for weights in CSR form
  std::vector<double> taken_off;     // of the sum of each column; empty: nothing
  Reach reach;
  Boxes boxes;  // empty: nothing is left out
  BlockedRows blocked;
};

// Per-thread state of a product: blocks of lanes, one at a time, against all sources.
template <class Real>
class LaneProduct {
 public:
  explicit LaneProduct(const Sources& sources)
      : sources_(sources), tile_(source_block * panels_per_block(sources.setup) * panel_rows) {}

  // sums[column * n_lanes + lane] += the product, for whole panels of lanes.
  void add(const RowPanels& lanes, std::size_t first_panel, std::size_t n_panels,
           const Boxes& boxes, std::size_t box, double* sums) {
    scratch_.select(sources_.setup, lanes, first_panel, n_panels);
    n_lanes_ = n_panels * panel_rows;
    for (std::size_t c = 0; c < sources_.taken_off.size(); ++c) {
      for (std::size_t lane = 0; lane < n_lanes_; ++lane)
        sums[c * n_lanes_ + lane] += sources_.taken_off[c];
    }
    const std::size_t n_rows = std::min(lanes.size() - first_panel * panel_rows, n_lanes_);
    for (std::size_t first = 0; first < sources_.rows.size; first += source_block) {
      const std::size_t n = std::min(source_block, sources_.rows.size - first);
      find_near(boxes, box, first, n);
      count_.evaluated += static_cast<std::int64_t>(near_.size() * n_rows);
      count_.skipped += static_cast<std::int64_t>((n - near_.size()) * n_rows);
      if (near_.empty()) continue;
      scratch_.rows(sources_.points, queries_.data(), queries_.size(), tile_.data(), n_lanes_);
      if (sources_.weights.indptr) {
        add_columns(first, n, sums);
      } else {
        add_column(sums);
      }
    }
  }

  // The product of all lanes with so many columns, for the next call to overwrite.
  const double* product(const RowPanels& lanes, const Boxes& box, std::size_t n_columns) {
    sums_.assign(n_columns * lanes.n_panels() * panel_rows, 0.0);
    add(lanes, 0, lanes.n_panels(), box, 0, sums_.data());
    return sums_.data();
  }

  const ProductCount& count() const { return count_; }

 private:
  // Collects the sources of a block that are not provably out of reach of a box of lanes.
  void find_near(const Boxes& boxes, std::size_t box, std::size_t first, std::size_t n) {
    std::uint32_t places[source_block];
    std::iota(places, places + n, 0u);
    if (!sources_.boxes.empty() && !boxes.empty()) {
      const std::size_t block = first / source_block;
      const double distance = sources_.reach.squared_distance;
      if (boxes.are_apart(box, sources_.boxes, block, distance)) {
        n = 0;
      } else if (!boxes.are_near(box, sources_.boxes, block, distance)) {
        n = boxes.find_near(box, sources_.blocked, block, distance, places);
      }
    }
    near_.resize(n);
    queries_.resize(n);
    for (std::size_t k = 0; k < n; ++k) {
      near_[k] = first + places[k];
      queries_[k] = sources_.rows.index[near_[k]];
    }
  }

  // Adds the tile times the weights of its sources, one each.
  void add_column(double* sums) const {
    const Real* rows[source_block];
    double weights[source_block];
    for (std::size_t k = 0; k < near_.size(); ++k) {
      rows[k] = tile_.data() + k * n_lanes_;
      weights[k] = sources_.weights.values[near_[k]];
    }
    add_weighted(rows, weights, near_.size(), n_lanes_, sums);
  }

  // The same with several columns, for the n sources from `first` on.
  void add_columns(std::size_t first, std::size_t n, double* sums) const {
    const Real* tile_row[source_block] = {};  // null: out of reach
    for (std::size_t k = 0; k < near_.size(); ++k)
      tile_row[near_[k] - first] = tile_.data() + k * n_lanes_;
    const Real* rows[source_block];
    double weights[source_block];
    const std::int64_t* indptr = sources_.weights.indptr;
    const PlacedWeight* w = sources_.placed.data() + indptr[first];
    const PlacedWeight* end = sources_.placed.data() + indptr[first + n];
    while (w != end) {
      const std::int32_t column = w->column;
      std::size_t count = 0;
      for (; w != end && w->column == column && count < source_block; ++w) {
        if (!tile_row[w->place]) continue;
        rows[count] = tile_row[w->place];
        weights[count++] = w->value;
      }
      add_weighted(rows, weights, count, n_lanes_,
                   sums + static_cast<std::size_t>(column) * n_lanes_);
    }
  }

  const Sources& sources_;
  TileScratch scratch_;
  std::vector<Real> tile_;
  std::vector<double> sums_;
  std::size_t n_lanes_ = 0;
  std::vector<std::size_t> near_;      // sources not left out of this tile
  std::vector<std::int32_t> queries_;  // their rows
  ProductCount count_;
};

template <class Real>
ProductCount product(const KernelSetup& setup, const RowList& targets, const RowList& source_list,
                     const SourceWeights& weights, const Reach& reach, int n_threads, double* out,
                     const Stop* stop) {
  std::vector<std::int32_t> numbers;
  const RowList target_rows = indexed(targets, numbers);
  const Sources sources(setup, source_list, weights, reach);
  const std::size_t block = panels_per_block(setup) * panel_rows;
  const std::size_t n_columns = weights.n_columns;
  const std::size_t n_blocks = (targets.size + block - 1) / block;
  ProductCount count;
  std::atomic<bool> stopped{false};
  parallel_for(
      {threads_pay(n_threads, targets.size * source_list.size) ? n_threads : 1, n_blocks},
      [&] { return LaneProduct<Real>(sources); },
      [&](LaneProduct<Real>& one, std::size_t b) {
        if (stop && stop->is_requested()) stopped = true;
        if (stopped) return;
        const std::size_t begin = b * block;
        const RowPanels lanes(setup, target_rows.slice(begin, begin + block));
        const std::size_t n_lanes = lanes.n_panels() * panel_rows;
        Boxes box;
        if (!sources.boxes.empty())
          box = Boxes(*targets.points, target_rows.index + begin, lanes.size(), block);
        const double* sums = one.product(lanes, box, n_columns);
        for (std::size_t i = 0; i < lanes.size(); ++i) {
          for (std::size_t c = 0; c < n_columns; ++c)
            out[(begin + i) * n_columns + c] = sums[c * n_lanes + i];
        }
      },
      [&](const LaneProduct<Real>& one) { count.add(one.count()); });
  count.complete = !stopped;
  return count;
}

}  // namespace

ProductCount kernel_product(const KernelSetup& setup, const RowList& targets,
                            const RowList& sources, const SourceWeights& weights,
                            Precision precision, const Reach& reach, int n_threads, double* out,
                            const Stop* stop) {
  if (is_linear_product(setup, targets, sources, weights))
    return linear_product(targets, sources, weights, n_threads, out, stop);
  return precision == Precision::single_tiles
             ? product<float>(setup, targets, sources, weights, reach, n_threads, out, stop)
             : product<double>(setup, targets, sources, weights, reach, n_threads, out, stop);
}

Boxes lane_boxes(const KernelSetup& setup, const Points& points,
                 const std::vector<std::int32_t>& rows, const Reach& reach) {
  if (!can_skip(setup, reach)) return {};
  return {points, rows.data(), rows.size(), panels_per_block(setup) * panel_rows};
}

ProductCount add_product(const KernelSetup& setup, const RowPanels& lanes, const Boxes& boxes,
                         const RowList& source_list, const double* weights, const Reach& reach,
                         int n_threads, double* sums) {
  const Sources sources(setup, source_list, {1, nullptr, nullptr, weights}, reach);
  const std::size_t panels = panels_per_block(setup);
  const std::size_t n_blocks = (lanes.n_panels() + panels - 1) / panels;
  ProductCount count;
  parallel_for(
      {n_threads, n_blocks, blocks_at_once}, [&] { return LaneProduct<float>(sources); },
      [&](LaneProduct<float>& one, std::size_t b) {
        const std::size_t first = b * panels;
        one.add(lanes, first, std::min(panels, lanes.n_panels() - first), boxes, b,
                sums + first * panel_rows);
      },
      [&](const LaneProduct<float>& one) { count.add(one.count()); });
  return count;
}

}  // namespace dcsvm
