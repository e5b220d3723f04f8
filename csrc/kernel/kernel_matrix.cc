#include "kernel/kernel_matrix.h"

#include <algorithm>
#include <numeric>
#include <vector>

#include "kernel/kernel_setup.h"
#include "kernel/kernel_tile.h"
#include "kernel/row_panels.h"
#include "simd/aligned_vector.h"
#include "threads/parallel.h"

namespace dcsvm {

namespace {

// Rows of a tile, and the number of blocks of lanes per thread that balances the load.
constexpr std::size_t tile_rows = 32, blocks_of_thread = 4;

// Returns the lanes of a tile: as in products, or fewer to give every thread enough blocks.
std::size_t lanes_of_block(const KernelSetup& setup, const RowList& rows, int n_threads) {
  const std::size_t n_panels = (rows.size + panel_rows - 1) / panel_rows;
  const std::size_t shared = n_panels / (blocks_of_thread * static_cast<std::size_t>(n_threads));
  return std::clamp<std::size_t>(shared, 1, panels_per_block(setup, *rows.points)) * panel_rows;
}

// Values of consecutive rows and lanes: row i and lane j at i * stride + j.
template <class Real>
struct Tile {
  std::size_t first_row, n_rows, first_lane, n_lanes;
  const Real* values;
  std::size_t stride;
};

// Calls take(tile) for the tiles of K(rows, lanes). The first n_shared lanes are also the first
// n_shared rows: at least one of the pairs (i, j) and (j, i) of these rows is in a tile.
template <class Real, class Take>
void for_tiles(const KernelSetup& setup, const RowList& rows, const RowList& lanes,
               std::size_t n_shared, int n_threads, Take take) {
  const int threads = threads_for(rows.size * lanes.size, n_threads);
  const std::size_t block = lanes_of_block(setup, lanes, threads);
  const std::size_t n_blocks_shared = (n_shared + block - 1) / block;
  const std::size_t n_blocks = n_blocks_shared + (lanes.size - n_shared + block - 1) / block;
  struct State {
    TileScratch scratch;
    AlignedVector<Real> tile;
  };
  parallel_for(
      {threads, n_blocks}, [&] { return State{{}, AlignedVector<Real>(tile_rows * block)}; },
      [&](State& own, std::size_t b) {
        const bool shared = b < n_blocks_shared;
        const std::size_t begin = shared ? b * block : n_shared + (b - n_blocks_shared) * block;
        const RowPanels panels(
            setup, lanes.slice(begin, std::min(begin + block, shared ? n_shared : lanes.size)));
        const std::size_t stride = panels.n_panels() * panel_rows;
        own.scratch.select(setup, panels, 0, panels.n_panels());
        for (std::size_t first = shared ? begin : 0; first < rows.size; first += tile_rows) {
          const std::size_t n = std::min(tile_rows, rows.size - first);
          own.scratch.rows(*rows.points, rows.index + first, n, own.tile.data(), stride);
          take(Tile<Real>{first, n, begin, panels.size(), own.tile.data(), stride});
        }
      });
}

}  // namespace

// The smaller side becomes the lanes if packing is expensive: values are bitwise symmetric.
void kernel_matrix(const KernelSetup& setup, const RowList& targets, const RowList& sources,
                   int n_threads, float* out) {
  const bool swapped = targets.size < sources.size && has_expensive_rows(setup, *targets.points);
  std::vector<std::int32_t> few_numbers, many_numbers;
  const RowList few = indexed(swapped ? targets : sources, few_numbers),
                many = indexed(swapped ? sources : targets, many_numbers);
  for_tiles<float>(setup, many, few, 0, n_threads, [&](const Tile<float>& tile) {
    for (std::size_t j = 0; swapped && j < tile.n_lanes; ++j) {
      float* to = out + (tile.first_lane + j) * sources.size + tile.first_row;
      for (std::size_t i = 0; i < tile.n_rows; ++i) to[i] = tile.values[i * tile.stride + j];
    }
    for (std::size_t i = 0; !swapped && i < tile.n_rows; ++i)
      std::copy_n(tile.values + i * tile.stride, tile.n_lanes,
                  out + (tile.first_row + i) * sources.size + tile.first_lane);
  });
}

template <class Real>
void symmetric_matrix(const KernelSetup& setup, const RowList& rows, std::size_t n_new,
                      const std::int32_t* places, int n_threads, Real* out, std::size_t stride) {
  if (n_new == 0) return;
  std::vector<std::int32_t> numbers;
  const RowList all = indexed(rows, numbers), some = all.slice(0, n_new);
  const bool swapped = has_expensive_rows(setup, *rows.points);
  for_tiles<Real>(setup, swapped ? all : some, swapped ? some : all, n_new, n_threads,
                  [&](const Tile<Real>& tile) {
                    const std::int32_t* row = places + tile.first_row;
                    const std::int32_t* lane = places + tile.first_lane;
                    for (std::size_t i = 0; i < tile.n_rows; ++i) {
                      Real* to = out + static_cast<std::size_t>(row[i]) * stride;
                      const Real* from = tile.values + i * tile.stride;
                      for (std::size_t j = 0; j < tile.n_lanes; ++j) to[lane[j]] = from[j];
                    }
                    for (std::size_t j = 0; j < tile.n_lanes; ++j) {
                      Real* to = out + static_cast<std::size_t>(lane[j]) * stride;
                      for (std::size_t i = 0; i < tile.n_rows; ++i)
                        to[row[i]] = tile.values[i * tile.stride + j];
                    }
                  });
}

template void symmetric_matrix<float>(const KernelSetup&, const RowList&, std::size_t,
                                      const std::int32_t*, int, float*, std::size_t);
template void symmetric_matrix<double>(const KernelSetup&, const RowList&, std::size_t,
                                       const std::int32_t*, int, double*, std::size_t);

void symmetric_matrix(const KernelSetup& setup, const RowList& rows, int n_threads, float* out) {
  std::vector<std::int32_t> places(rows.size);
  std::iota(places.begin(), places.end(), 0);
  symmetric_matrix(setup, rows, rows.size, places.data(), n_threads, out, rows.size);
}

void sparse_sums(const double* matrix, const SourceWeights& weights, const std::int32_t* rows,
                 const std::int32_t* groups, std::size_t n_sums, int n_threads, double* out) {
  parallel_for({n_threads, n_sums, batch_rows}, [&](std::size_t k) {
    const double* row = matrix + static_cast<std::size_t>(rows[k]) * weights.n_columns;
    double sum = 0;
    for (auto t = weights.indptr[groups[k]]; t < weights.indptr[groups[k] + 1]; ++t)
      sum += weights.values[t] * row[weights.columns[t]];
    out[k] = sum;
  });
}

}  // namespace dcsvm
