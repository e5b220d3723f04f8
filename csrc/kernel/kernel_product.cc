#include "kernel/kernel_product.h"

#include <algorithm>
#include <numeric>
#include <vector>

namespace dcsvm {

namespace {

constexpr std::size_t source_block = 64;
// Kernel values below which starting threads costs more than it saves.
constexpr std::size_t worth_threads = 100000;

bool worthwhile(int n_threads, const RowList& targets, const RowList& sources) {
  return n_threads > 1 && targets.size * sources.size >= worth_threads;
}

// The same rows with an index, which is put into `numbers` where there is none.
RowList indexed(const RowList& rows, std::vector<std::int32_t>& numbers) {
  if (rows.index) return rows;
  numbers.resize(rows.size);
  std::iota(numbers.begin(), numbers.end(), 0);
  return {rows.points, numbers.data(), rows.size};
}

RowList slice(const RowList& rows, std::size_t begin, std::size_t end) {
  return {rows.points, rows.index + begin, std::min(end, rows.size) - begin};
}

bool can_skip(const KernelSetup& setup, const Reach& reach) {
  return reach.is_finite() && setup.form == Form::difference;
}

// A weight in CSR form with the place of its source in a block of sources.
struct PlacedWeight {
  std::int32_t column;
  std::uint32_t place;
  double value;
};

// The weights by column inside each block of sources, where a column's sources stay in order: so
// the sum of a column is kept in registers for a whole block.
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

// Rows with their boxes, 64 at a time, and their weights.
struct Sources {
  Sources(const KernelSetup& setup, const RowList& list, const SourceWeights& w, const Reach& r)
      : points(*list.points), rows(indexed(list, numbers)), weights(w), reach(r) {
    if (can_skip(setup, reach)) boxes = Boxes(points, rows.index, rows.size, source_block);
    if (w.indptr) placed = by_column(w, rows.size);
  }

  const Points& points;
  std::vector<std::int32_t> numbers;
  RowList rows;
  SourceWeights weights;
  std::vector<PlacedWeight> placed;  // the same, where they are in CSR form
  Reach reach;
  Boxes boxes;  // empty: none are left out
};

// Per-thread state of a product: one block of lanes against all sources.
template <class Real>
class LaneProduct {
 public:
  LaneProduct(const KernelSetup& setup, const Sources& sources)
      : setup_(setup),
        sources_(sources),
        tile_(source_block * panels_per_block(setup) * panel_rows) {}

  // sums[column * n_lanes + lane] += the product, for lanes of whole panels.
  void add(const RowPanels& lanes, std::size_t first_panel, std::size_t n_panels,
           const Boxes& boxes, std::size_t box, double* sums) {
    scratch_.select(setup_, lanes, first_panel, n_panels);
    n_lanes_ = n_panels * panel_rows;
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

  const ProductCount& count() const { return count_; }

 private:
  void find_near(const Boxes& boxes, std::size_t box, std::size_t first, std::size_t n) {
    near_.clear();
    queries_.clear();
    bool all = sources_.boxes.empty() || boxes.empty();
    if (!all) {
      const std::size_t block = first / source_block;
      const double distance = sources_.reach.squared_distance;
      if (boxes.are_apart(box, sources_.boxes, block, distance)) return;
      all = boxes.are_near(box, sources_.boxes, block, distance);
    }
    for (std::size_t j = first; j < first + n; ++j) {
      const std::int32_t row = sources_.rows.index[j];
      if (!all && boxes.is_apart(box, sources_.points, static_cast<std::size_t>(row),
                                 sources_.reach.squared_distance))
        continue;
      near_.push_back(j);
      queries_.push_back(row);
    }
  }

  void sum(const Real* const* rows, const double* weights, std::size_t n, double* sums) const {
    if constexpr (sizeof(Real) == sizeof(float)) {
      isa().weighted_sum_f32(rows, weights, n, n_lanes_, sums);
    } else {
      isa().weighted_sum_f64(rows, weights, n, n_lanes_, sums);
    }
  }

  void add_column(double* sums) const {
    const Real* rows[source_block];
    double values[source_block];
    for (std::size_t k = 0; k < near_.size(); ++k) {
      rows[k] = tile_.data() + k * n_lanes_;
      values[k] = sources_.weights.values[near_[k]];
    }
    sum(rows, values, near_.size(), sums);
  }

  // For the n sources from `first`.
  void add_columns(std::size_t first, std::size_t n, double* sums) const {
    const Real* tile_row[source_block] = {};  // null: out of reach
    for (std::size_t k = 0; k < near_.size(); ++k)
      tile_row[near_[k] - first] = tile_.data() + k * n_lanes_;
    const Real* rows[source_block];
    double values[source_block];
    const std::int64_t* indptr = sources_.weights.indptr;
    const PlacedWeight* w = sources_.placed.data() + indptr[first];
    const PlacedWeight* end = sources_.placed.data() + indptr[first + n];
    while (w != end) {
      const std::int32_t column = w->column;
      std::size_t count = 0;
      for (; w != end && w->column == column && count < source_block; ++w) {
        if (!tile_row[w->place]) continue;
        rows[count] = tile_row[w->place];
        values[count++] = w->value;
      }
      sum(rows, values, count, sums + static_cast<std::size_t>(column) * n_lanes_);
    }
  }

  const KernelSetup& setup_;
  const Sources& sources_;
  TileScratch scratch_;
  std::vector<Real> tile_;
  std::size_t n_lanes_ = 0;
  std::vector<std::size_t> near_;      // places in the sources
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
  const auto n_blocks = static_cast<std::int64_t>((targets.size + block - 1) / block);
  ProductCount count;
#pragma omp parallel num_threads(n_threads) if (worthwhile(n_threads, targets, source_list))
  {
    LaneProduct<Real> one(setup, sources);
    std::vector<double> sums;
    bool stopped = false;
#pragma omp for schedule(dynamic)
    for (std::int64_t b = 0; b < n_blocks; ++b) {
      stopped = stopped || (stop && stop->is_requested());
      if (stopped) continue;
      const std::size_t begin = static_cast<std::size_t>(b) * block;
      const RowPanels lanes(setup, slice(target_rows, begin, begin + block));
      const std::size_t n_lanes = lanes.n_panels() * panel_rows;
      Boxes box;
      if (!sources.boxes.empty())
        box = Boxes(*targets.points, target_rows.index + begin, lanes.size(), block);
      sums.assign(n_columns * n_lanes, 0.0);
      one.add(lanes, 0, lanes.n_panels(), box, 0, sums.data());
      for (std::size_t i = 0; i < lanes.size(); ++i) {
        for (std::size_t c = 0; c < n_columns; ++c)
          out[(begin + i) * n_columns + c] = sums[c * n_lanes + i];
      }
    }
#pragma omp critical(dcsvm_product_count)
    {
      count.add(one.count());
      count.complete = count.complete && !stopped;
    }
  }
  return count;
}

}  // namespace

ProductCount kernel_product(const KernelSetup& setup, const RowList& targets,
                            const RowList& sources, const SourceWeights& weights,
                            Precision precision, const Reach& reach, int n_threads, double* out,
                            const Stop* stop) {
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
  const auto n_blocks = static_cast<std::int64_t>((lanes.n_panels() + panels - 1) / panels);
  ProductCount count;
#pragma omp parallel num_threads(n_threads) if (n_threads > 1)
  {
    LaneProduct<float> one(setup, sources);
#pragma omp for schedule(dynamic, 4)
    for (std::int64_t b = 0; b < n_blocks; ++b) {
      const std::size_t first = static_cast<std::size_t>(b) * panels;
      one.add(lanes, first, std::min(panels, lanes.n_panels() - first), boxes,
              static_cast<std::size_t>(b), sums + first * panel_rows);
    }
#pragma omp critical(dcsvm_product_count)
    count.add(one.count());
  }
  return count;
}

// Where rows are expensive to pack, lanes are the fewer ones: a value is the same bits either way
// round.
void kernel_matrix(const KernelSetup& setup, const RowList& targets, const RowList& sources,
                   int n_threads, float* out) {
  const bool swapped = targets.size < sources.size && has_expensive_rows(setup, *targets.points);
  std::vector<std::int32_t> few_numbers, many_numbers;
  const RowList few = indexed(swapped ? targets : sources, few_numbers),
                many = indexed(swapped ? sources : targets, many_numbers);
  const auto n_blocks = static_cast<std::int64_t>((few.size + panel_rows - 1) / panel_rows);
#pragma omp parallel num_threads(n_threads) if (worthwhile(n_threads, targets, sources))
  {
    TileScratch scratch;
    float tile[panel_rows * panel_rows];
#pragma omp for schedule(dynamic)
    for (std::int64_t b = 0; b < n_blocks; ++b) {
      const std::size_t begin = static_cast<std::size_t>(b) * panel_rows;
      const RowPanels lanes(setup, slice(few, begin, begin + panel_rows));
      scratch.select(setup, lanes, 0, 1);
      for (std::size_t first = 0; first < many.size; first += panel_rows) {
        const std::size_t n = std::min(panel_rows, many.size - first);
        scratch.rows(*many.points, many.index + first, n, tile, panel_rows);
        for (std::size_t lane = 0; swapped && lane < lanes.size(); ++lane) {
          float* to = out + (begin + lane) * sources.size + first;
          for (std::size_t i = 0; i < n; ++i) to[i] = tile[i * panel_rows + lane];
        }
        for (std::size_t i = 0; !swapped && i < n; ++i) {
          std::copy_n(tile + i * panel_rows, lanes.size(),
                      out + (first + i) * sources.size + begin);
        }
      }
    }
  }
}

}  // namespace dcsvm
