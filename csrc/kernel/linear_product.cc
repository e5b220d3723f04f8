#include "kernel/linear_product.h"

#include <algorithm>
#include <vector>

#include "kernel/kernel_cost.h"
#include "kernel/linear_rows.h"
#include "threads/parallel.h"

namespace dcsvm {

namespace {
// Entries of X' W at a time: 16 MB.
constexpr std::size_t most_entries = 2000000;
}  // namespace

bool is_linear_product(const KernelSetup& setup, const RowList& targets, const RowList& sources,
                       const SourceWeights& weights) {
  return setup.kernel.type == KernelType::linear && sources.size > weights.n_columns &&
         (targets.points == sources.points || sources.points->n_codes == 0);
}

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

}  // namespace dcsvm
