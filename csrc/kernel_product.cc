#include "kernel_product.h"

#include <algorithm>
#include <vector>

namespace dcsvm {

namespace {

constexpr std::size_t source_block = 64;
// Kernel values below which starting threads costs more than it saves.
constexpr std::size_t worth_threads = 100000;

bool worthwhile(int n_threads, const RowList& targets, const RowList& sources) {
  return n_threads > 1 && targets.size * sources.size >= worth_threads;
}

std::vector<std::int32_t> row_numbers(const RowList& rows) {
  std::vector<std::int32_t> numbers(rows.size);
  for (std::size_t i = 0; i < rows.size; ++i) numbers[i] = static_cast<std::int32_t>(rows[i]);
  return numbers;
}

RowList slice(const std::vector<std::int32_t>& numbers, const Points* points, std::size_t begin,
              std::size_t end) {
  return {points, numbers.data() + begin, std::min(end, numbers.size()) - begin};
}

template <class Real>
void add_weighted(const SourceWeights& weights, std::size_t first, std::size_t n,
                  std::size_t n_lanes, const Real* tile, double* sums) {
  const Real* rows[source_block];
  for (std::size_t j = 0; j < n; ++j) rows[j] = tile + j * n_lanes;
  const auto add = [n_lanes](const Real* const* r, const double* w, std::size_t count,
                             double* sum) {
    if constexpr (sizeof(Real) == sizeof(float)) {
      isa().weighted_sum_f32(r, w, count, n_lanes, sum);
    } else {
      isa().weighted_sum_f64(r, w, count, n_lanes, sum);
    }
  };
  if (!weights.indptr) {
    add(rows, weights.values + first, n, sums);
    return;
  }
  for (std::size_t j = 0; j < n; ++j) {
    for (std::int64_t k = weights.indptr[first + j]; k < weights.indptr[first + j + 1]; ++k) {
      add(rows + j, weights.values + k, 1,
          sums + static_cast<std::size_t>(weights.columns[k]) * n_lanes);
    }
  }
}

template <class Real>
void product(const KernelSetup& setup, const RowList& targets, const RowList& sources,
             const SourceWeights& weights, int n_threads, double* out) {
  const std::vector<std::int32_t> target_rows = row_numbers(targets),
                                  source_rows = row_numbers(sources);
  const std::size_t n_panels = panels_per_block(setup), block = n_panels * panel_rows;
  const std::size_t n_columns = weights.n_columns;
  const auto n_blocks = static_cast<std::int64_t>((targets.size + block - 1) / block);
#pragma omp parallel num_threads(n_threads) if (worthwhile(n_threads, targets, sources))
  {
    TileScratch scratch;
    std::vector<Real> tile(source_block * block);
    std::vector<double> sums;  // column by column
#pragma omp for schedule(dynamic)
    for (std::int64_t b = 0; b < n_blocks; ++b) {
      const std::size_t begin = static_cast<std::size_t>(b) * block;
      const RowPanels lanes(slice(target_rows, targets.points, begin, begin + block));
      const std::size_t n_lanes = lanes.n_panels() * panel_rows;
      scratch.select(setup, lanes, 0, lanes.n_panels());
      sums.assign(n_columns * n_lanes, 0.0);
      for (std::size_t first = 0; first < sources.size; first += source_block) {
        const std::size_t n = std::min(source_block, sources.size - first);
        scratch.rows(*sources.points, source_rows.data() + first, n, tile.data(), n_lanes);
        add_weighted(weights, first, n, n_lanes, tile.data(), sums.data());
      }
      for (std::size_t i = 0; i < lanes.size(); ++i) {
        for (std::size_t c = 0; c < n_columns; ++c)
          out[(begin + i) * n_columns + c] = sums[c * n_lanes + i];
      }
    }
  }
}

}  // namespace

void kernel_product(const KernelSetup& setup, const RowList& targets, const RowList& sources,
                    const SourceWeights& weights, Precision precision, int n_threads, double* out) {
  if (precision == Precision::single_tiles) {
    product<float>(setup, targets, sources, weights, n_threads, out);
  } else {
    product<double>(setup, targets, sources, weights, n_threads, out);
  }
}

void kernel_matrix(const KernelSetup& setup, const RowList& targets, const RowList& sources,
                   int n_threads, float* out) {
  const std::vector<std::int32_t> target_rows = row_numbers(targets),
                                  source_rows = row_numbers(sources);
  const auto n_blocks = static_cast<std::int64_t>((sources.size + panel_rows - 1) / panel_rows);
#pragma omp parallel num_threads(n_threads) if (worthwhile(n_threads, targets, sources))
  {
    TileScratch scratch;
    float tile[panel_rows * panel_rows];
#pragma omp for schedule(dynamic)
    for (std::int64_t b = 0; b < n_blocks; ++b) {
      const std::size_t begin = static_cast<std::size_t>(b) * panel_rows;
      const RowPanels lanes(slice(source_rows, sources.points, begin, begin + panel_rows));
      scratch.select(setup, lanes, 0, 1);
      for (std::size_t first = 0; first < targets.size; first += panel_rows) {
        const std::size_t n = std::min(panel_rows, targets.size - first);
        scratch.rows(*targets.points, target_rows.data() + first, n, tile, panel_rows);
        for (std::size_t i = 0; i < n; ++i) {
          std::copy_n(tile + i * panel_rows, lanes.size(),
                      out + (first + i) * sources.size + begin);
        }
      }
    }
  }
}

}  // namespace dcsvm
