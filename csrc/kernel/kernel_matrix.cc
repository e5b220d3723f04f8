#include "kernel/kernel_matrix.h"

#include <algorithm>
#include <vector>

#include "kernel/kernel_cost.h"
#include "kernel/kernel_tile.h"
#include "kernel/row_panels.h"
#include "simd/aligned_vector.h"
#include "threads/parallel.h"

namespace dcsvm {

namespace {

// Rows of the longer list in a tile, and blocks of the other one that keep a thread busy.
constexpr std::size_t many_at_once = 32, blocks_of_thread = 4;

// Lanes of a tile: as many as products take, fewer where the threads would have too few blocks.
std::size_t lanes_of_block(const KernelSetup& setup, const RowList& rows, int n_threads) {
  const std::size_t n_panels = (rows.size + panel_rows - 1) / panel_rows;
  const std::size_t shared = n_panels / (blocks_of_thread * static_cast<std::size_t>(n_threads));
  return std::clamp<std::size_t>(shared, 1, panels_per_block(setup, *rows.points)) * panel_rows;
}

}  // namespace

// Where rows are expensive to pack, lanes are the fewer ones: a value is the same bits either way
// round.
void kernel_matrix(const KernelSetup& setup, const RowList& targets, const RowList& sources,
                   int n_threads, float* out) {
  const bool swapped = targets.size < sources.size && has_expensive_rows(setup, *targets.points);
  std::vector<std::int32_t> few_numbers, many_numbers;
  const RowList few = indexed(swapped ? targets : sources, few_numbers),
                many = indexed(swapped ? sources : targets, many_numbers);
  const int threads = threads_pay(n_threads, targets.size * sources.size) ? n_threads : 1;
  const std::size_t block = lanes_of_block(setup, few, threads);
  struct State {
    TileScratch scratch;
    AlignedVector<float> tile;
  };
  parallel_for(
      {threads, (few.size + block - 1) / block},
      [&] { return State{{}, AlignedVector<float>(many_at_once * block)}; },
      [&](State& own, std::size_t b) {
        const std::size_t begin = b * block;
        const RowPanels lanes(setup, few.slice(begin, begin + block));
        const std::size_t stride = lanes.n_panels() * panel_rows;
        own.scratch.select(setup, lanes, 0, lanes.n_panels());
        for (std::size_t first = 0; first < many.size; first += many_at_once) {
          const std::size_t n = std::min(many_at_once, many.size - first);
          const float* tile = own.tile.data();
          own.scratch.rows(*many.points, many.index + first, n, own.tile.data(), stride);
          for (std::size_t lane = 0; swapped && lane < lanes.size(); ++lane) {
            float* to = out + (begin + lane) * sources.size + first;
            for (std::size_t i = 0; i < n; ++i) to[i] = tile[i * stride + lane];
          }
          for (std::size_t i = 0; !swapped && i < n; ++i)
            std::copy_n(tile + i * stride, lanes.size(), out + (first + i) * sources.size + begin);
        }
      });
}

}  // namespace dcsvm
