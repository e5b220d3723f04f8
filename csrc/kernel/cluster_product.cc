#include "kernel/cluster_product.h"

#include <algorithm>
#include <vector>

#include "kernel/kernel_cost.h"
#include "threads/parallel.h"

namespace dcsvm {

namespace {

constexpr std::size_t targets_at_once = 1024;

// Some targets of a cluster, and its sources.
struct Block {
  std::size_t target_begin, target_end, source_begin, source_end;
};

std::vector<Block> blocks_of(const ClusterRanges& ranges) {
  std::vector<Block> blocks;
  for (std::size_t c = 0; c < ranges.n_clusters; ++c) {
    const auto end = static_cast<std::size_t>(ranges.target_start[c + 1]);
    for (auto begin = static_cast<std::size_t>(ranges.target_start[c]); begin < end;
         begin += targets_at_once) {
      blocks.push_back({begin, std::min(begin + targets_at_once, end),
                        static_cast<std::size_t>(ranges.source_begin[c]),
                        static_cast<std::size_t>(ranges.source_end[c])});
    }
  }
  return blocks;
}

std::size_t n_values(const std::vector<Block>& blocks) {
  std::size_t n = 0;
  for (const Block& b : blocks)
    n += (b.target_end - b.target_begin) * (b.source_end - b.source_begin);
  return n;
}

}  // namespace

void cluster_product(const KernelSetup& setup, const RowList& targets, const RowList& sources,
                     const SourceWeights& weights, const ClusterRanges& ranges, Precision precision,
                     int n_threads, double* out) {
  const std::vector<Block> blocks = blocks_of(ranges);
  if (!threads_pay(n_threads, n_values(blocks))) n_threads = 1;
  parallel_for({n_threads, blocks.size()}, [&](std::size_t k) {
    const Block& b = blocks[k];
    double* const sums = out + b.target_begin * weights.n_columns;
    if (b.source_begin == b.source_end) {
      std::fill_n(sums, (b.target_end - b.target_begin) * weights.n_columns, 0.0);
      return;
    }
    SourceWeights own = weights;
    if (weights.indptr) {
      own.indptr += b.source_begin;
    } else {
      own.values += b.source_begin;
    }
    kernel_product(setup, targets.slice(b.target_begin, b.target_end),
                   sources.slice(b.source_begin, b.source_end), own, precision, Reach(), 1, sums);
  });
}

}  // namespace dcsvm
