#include "kernel/lane_product.h"

namespace dcsvm {

namespace {

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

// Of each column: what is taken off where all kernel values have 1 taken off.
std::vector<double> sums_of_weights(const SourceWeights& w, std::size_t n_sources) {
  std::vector<double> sums(w.n_columns, 0.0);
  const std::size_t begin = w.indptr ? static_cast<std::size_t>(w.indptr[0]) : 0,
                    end = w.indptr ? static_cast<std::size_t>(w.indptr[n_sources]) : n_sources;
  for (std::size_t k = begin; k < end; ++k)
    sums[w.indptr ? static_cast<std::size_t>(w.columns[k]) : 0] += w.values[k];
  return sums;
}

}  // namespace

Sources::Sources(const KernelSetup& s, const RowList& list, const SourceWeights& w, const Reach& r)
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

}  // namespace dcsvm
