#include "kernel/kernel_product.h"

#include <algorithm>
#include <vector>

#include "kernel/kernel_cost.h"
#include "kernel/lane_product.h"
#include "kernel/linear_rows.h"
#include "kernel/symmetric_product.h"
#include "threads/parallel.h"

namespace dcsvm {

namespace {

// Of lanes that are packed, which a thread takes at a time.
constexpr std::size_t blocks_at_once = 4;

template <class Real>
ProductCount product(const KernelSetup& setup, const RowList& targets, const RowList& source_list,
                     const SourceWeights& weights, const Reach& reach, int n_threads, double* out,
                     const Stop* stop) {
  std::vector<std::int32_t> numbers;
  const RowList target_rows = indexed(targets, numbers);
  const Sources sources(setup, source_list, weights, reach);
  const std::size_t block = panels_per_block(setup, *targets.points) * panel_rows;
  const std::size_t n_columns = weights.n_columns;
  const std::size_t n_blocks = (targets.size + block - 1) / block;
  ProductCount count;
  parallel_for(
      {threads_pay(n_threads, targets.size * source_list.size) ? n_threads : 1, n_blocks},
      [&] { return LaneProduct<Real>(sources, stop); },
      [&](LaneProduct<Real>& one, std::size_t b) {
        if (stop && stop->is_requested()) return;
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
  count.complete = !(stop && stop->is_requested());
  return count;
}

template <class Real>
ProductCount add_to_lanes(const Sources& sources, const RowPanels& lanes, const Boxes& boxes,
                          int n_threads, double* sums, const Stop* stop) {
  const std::size_t panels = panels_per_block(sources.setup, lanes.points());
  const std::size_t n_blocks = (lanes.n_panels() + panels - 1) / panels;
  ProductCount count;
  parallel_for(
      {n_threads, n_blocks, blocks_at_once}, [&] { return LaneProduct<Real>(sources, stop); },
      [&](LaneProduct<Real>& one, std::size_t b) {
        const std::size_t first = b * panels;
        one.select(lanes, first, std::min(panels, lanes.n_panels() - first), boxes, b);
        one.add(sums + first * panel_rows);
      },
      [&](const LaneProduct<Real>& one) { count.add(one.count()); });
  return count;
}

// Entries of X' W at a time: 16 MB.
constexpr std::size_t most_entries = 2000000;

// Whether a product of the linear kernel is X (X' W), in float64: fewer operations, and no error of
// a kernel value, where there are more sources than columns of W. It does not depend on how many
// targets there are, so that the sums of a row are the same bits with whatever other rows they are
// asked for.
bool is_linear_product(const KernelSetup& setup, const RowList& targets, const RowList& sources,
                       const SourceWeights& weights) {
  return setup.kernel.type == KernelType::linear && sources.size > weights.n_columns &&
         (targets.points == sources.points || sources.points->n_codes == 0);
}

// No kernel value is computed.
ProductCount linear_product(const RowList& targets, const RowList& sources,
                            const SourceWeights& weights, int n_threads, double* out,
                            const Stop* stop) {
  const LinearRows from(*sources.points), to(*targets.points);
  const RowWeights by_row{weights.n_columns, weights.indptr, weights.columns, weights.values};
  const std::size_t dimension = from.dimension();
  const std::size_t at_once = std::clamp<std::size_t>(
      most_entries / std::max<std::size_t>(dimension, 1), 1, weights.n_columns);
  ProductCount count;
  std::vector<double> w(at_once * dimension);
  for (std::size_t begin = 0; begin < weights.n_columns; begin += at_once) {
    if (stop && stop->is_requested()) {
      count.complete = false;
      return count;
    }
    const std::size_t end = std::min(begin + at_once, weights.n_columns);
    std::fill(w.begin(), w.end(), 0.0);
    add_rows(from, sources, by_row, begin, end, n_threads, w.data());
    const bool is_shared = threads_pay(n_threads, targets.size * (end - begin));
    parallel_for({is_shared ? n_threads : 1, targets.size, rows_at_once}, [&](std::size_t k) {
      for (std::size_t c = begin; c < end; ++c)
        out[k * weights.n_columns + c] = to.dot(targets[k], w.data() + (c - begin) * dimension);
    });
  }
  return count;
}

}  // namespace

ProductCount kernel_product(const KernelSetup& setup, const RowList& targets,
                            const RowList& sources, const SourceWeights& weights,
                            Precision precision, const Reach& reach, int n_threads, double* out,
                            const Stop* stop) {
  if (is_linear_product(setup, targets, sources, weights))
    return linear_product(targets, sources, weights, n_threads, out, stop);
  const bool is_single = precision == Precision::single_tiles;
  if (is_single && is_symmetric_product(setup, targets, sources, weights))
    return symmetric_product(setup, sources, weights, reach, n_threads, out, stop);
  return is_single ? product<float>(setup, targets, sources, weights, reach, n_threads, out, stop)
                   : product<double>(setup, targets, sources, weights, reach, n_threads, out, stop);
}

Boxes lane_boxes(const KernelSetup& setup, const Points& points,
                 const std::vector<std::int32_t>& rows, const Reach& reach) {
  if (!can_skip(setup, reach)) return {};
  return {points, rows.data(), rows.size(), panels_per_block(setup, points) * panel_rows};
}

ProductCount add_product(const KernelSetup& setup, const RowPanels& lanes, const Boxes& boxes,
                         const RowList& source_list, const double* weights, Precision precision,
                         const Reach& reach, int n_threads, double* sums, const Stop* stop) {
  const Sources sources(setup, source_list, {1, nullptr, nullptr, weights}, reach);
  return precision == Precision::double_tiles
             ? add_to_lanes<double>(sources, lanes, boxes, n_threads, sums, stop)
             : add_to_lanes<float>(sources, lanes, boxes, n_threads, sums, stop);
}

}  // namespace dcsvm
