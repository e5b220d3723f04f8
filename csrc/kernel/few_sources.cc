#include "kernel/few_sources.h"

#include <algorithm>
#include <atomic>
#include <vector>

#include "kernel/kernel_cost.h"
#include "kernel/kernel_tile.h"
#include "kernel/lane_product.h"
#include "simd/isa.h"
#include "threads/parallel.h"

namespace dcsvm {

namespace {

constexpr std::size_t most_sources = 4 * panel_rows;
// Targets of a tile, and tiles a thread takes at a time.
constexpr std::size_t tile_targets = 32, tiles_at_once = 16;
// Nanoseconds, fixed: to pack a feature of a target; a kernel value of a lane that is no source;
// what adding a weighted value takes more than where targets are the lanes.
constexpr double packing_cost = 1.0, padding_cost = 0.5, adding_cost = 0.5;

std::size_t n_weights(const SourceWeights& w, std::size_t n_sources) {
  return w.indptr ? static_cast<std::size_t>(w.indptr[n_sources] - w.indptr[0]) : n_sources;
}

}  // namespace

bool are_few_sources(const KernelSetup& setup, const RowList& sources, const SourceWeights& weights,
                     const Reach& reach) {
  const bool is_dense = setup.form == Form::difference || setup.form == Form::product;
  if (!is_dense || sources.size > most_sources || can_skip(setup, reach)) return false;
  const std::size_t n_padding =
      (sources.size + panel_rows - 1) / panel_rows * panel_rows - sources.size;
  const Points& points = *sources.points;
  return padding_cost * static_cast<double>(n_padding) +
             adding_cost * static_cast<double>(n_weights(weights, sources.size)) <
         packing_cost * static_cast<double>(points.n_features + points.n_codes);
}

ProductCount few_sources_product(const KernelSetup& setup, const RowList& targets,
                                 const RowList& sources, const SourceWeights& weights,
                                 int n_threads, double* out, const Stop* stop) {
  std::vector<std::int32_t> numbers;
  const RowList rows = indexed(targets, numbers);
  const KernelSetup own = setup.is_flat ? setup.less_one() : setup;
  const std::vector<double> taken_off =
      own.kernel.less_one ? sums_of_weights(weights, sources.size) : std::vector<double>();
  const std::size_t n_columns = weights.n_columns;
  const RowPanels lanes(setup, sources);
  const std::size_t stride = lanes.n_panels() * panel_rows;
  struct State {
    TileScratch scratch;
    AlignedVector<float> tile;
  };
  std::atomic<bool> stopped{false};
  parallel_for(
      {threads_pay(n_threads, targets.size * sources.size) ? n_threads : 1,
       (rows.size + tile_targets - 1) / tile_targets, tiles_at_once},
      [&] {
        State state{{}, AlignedVector<float>(tile_targets * stride)};
        state.scratch.select(own, lanes, 0, lanes.n_panels());
        return state;
      },
      [&](State& state, std::size_t t) {
        if (stop && stop->is_requested()) stopped = true;
        if (stopped) return;
        const std::size_t begin = t * tile_targets, n = std::min(tile_targets, rows.size - begin);
        state.scratch.rows(*rows.points, rows.index + begin, n, state.tile.data(), stride);
        double* const sums = out + begin * n_columns;
        for (std::size_t i = 0; i < n; ++i) {
          for (std::size_t c = 0; c < n_columns; ++c)
            sums[i * n_columns + c] = taken_off.empty() ? 0.0 : taken_off[c];
        }
        isa().add_in_order({state.tile.data(), stride, n}, weights, sources.size, sums);
      });
  ProductCount count;
  count.evaluated = static_cast<std::int64_t>(targets.size * sources.size);
  count.complete = !stopped;
  return count;
}

}  // namespace dcsvm
