#include "kernel/kernel_matrix.h"

#include <algorithm>
#include <vector>

#include "kernel/kernel_cost.h"
#include "kernel/kernel_tile.h"
#include "kernel/row_panels.h"
#include "threads/parallel.h"

namespace dcsvm {

// Where rows are expensive to pack, lanes are the fewer ones: a value is the same bits either way
// round.
void kernel_matrix(const KernelSetup& setup, const RowList& targets, const RowList& sources,
                   int n_threads, float* out) {
  const bool swapped = targets.size < sources.size && has_expensive_rows(setup, *targets.points);
  std::vector<std::int32_t> few_numbers, many_numbers;
  const RowList few = indexed(swapped ? targets : sources, few_numbers),
                many = indexed(swapped ? sources : targets, many_numbers);
  const std::size_t n_blocks = (few.size + panel_rows - 1) / panel_rows;
  parallel_for(
      {threads_pay(n_threads, targets.size * sources.size) ? n_threads : 1, n_blocks},
      [] { return TileScratch(); },
      [&](TileScratch& scratch, std::size_t b) {
        float tile[panel_rows * panel_rows];
        const std::size_t begin = b * panel_rows;
        const RowPanels lanes(setup, few.slice(begin, begin + panel_rows));
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
      });
}

}  // namespace dcsvm
