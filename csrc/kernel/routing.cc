#include "kernel/routing.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <limits>
#include <vector>

#include "kernel/kernel_product.h"
#include "kernel/kernel_tile.h"
#include "kernel/row_panels.h"
#include "simd/aligned_vector.h"
#include "threads/parallel.h"

namespace dcsvm {

namespace {

constexpr std::size_t batch_targets = 1024, tile_targets = 32;
constexpr double same_center = 1e-12;  // relative to the squared norms: equal except for rounding

struct Block {
  std::size_t node, begin, end;  // positions of the targets in the order of their nodes
};

// The targets of each node, in blocks.
class ByNode {
 public:
  ByNode(const RowList& targets, const std::int32_t* node, std::size_t n_nodes)
      : place(targets.size), row(targets.index ? targets.size : 0) {
    std::vector<std::size_t> start(n_nodes + 2, 0);
    for (std::size_t i = 0; i < targets.size; ++i)
      ++start[static_cast<std::size_t>(node[i] + 1) + 1];
    for (std::size_t p = 0; p <= n_nodes; ++p) start[p + 1] += start[p];
    std::vector<std::size_t> next(start.begin(), start.end() - 1);
    for (std::size_t i = 0; i < targets.size; ++i) {
      const std::size_t at = next[static_cast<std::size_t>(node[i] + 1)]++;
      place[at] = static_cast<std::int32_t>(i);
      if (targets.index) row[at] = targets.index[i];
    }
    for (std::size_t p = 0; p < n_nodes; ++p) {
      for (std::size_t begin = start[p + 1]; begin < start[p + 2]; begin += batch_targets) {
        blocks.push_back({p, begin, std::min(begin + batch_targets, start[p + 2])});
      }
    }
  }

  // Returns the rows of the targets of a block.
  const std::int32_t* rows(const Block& block) const {
    return (row.empty() ? place : row).data() + block.begin;
  }

  std::vector<std::int32_t> place;  // index of each target
  std::vector<std::int32_t> row;    // empty if the targets are all rows
  std::vector<Block> blocks;
};

struct Scratch {
  std::vector<std::int64_t> indptr;
  std::vector<double> weights, sizes, means;
  TileScratch tiles;
  AlignedVector<float> tile;
};

// Returns whether each child of a node has one sampled row and the kernel is linear: a mean kernel
// value is then the inner product with this row.
bool has_single_centers(const KernelSetup& setup, const NodeSplit& split, std::size_t node) {
  const std::size_t n = split.n_parts(node);
  if (!is_linear(setup.kernel) || setup.form != Form::product || n > panel_rows ||
      split.samples.size(node) != n)
    return false;
  const std::int32_t* part = split.part + split.samples.start[node];
  for (std::size_t s = 0; s < n; ++s) {
    if (part[s] != static_cast<std::int32_t>(s)) return false;
  }
  return true;
}

// Calls take(target, means) with the mean kernel values of single centers, which are rows of tiles.
template <class Take>
void for_single_means(const KernelSetup& setup, const RowList& targets, const RowList& centers,
                      Scratch& scratch, Take take) {
  const RowPanels lanes(setup, centers);
  scratch.tile.resize(tile_targets * panel_rows);
  scratch.tiles.select(setup, lanes, 0, 1);
  for (std::size_t begin = 0; begin < targets.size; begin += tile_targets) {
    const std::size_t n = std::min(tile_targets, targets.size - begin);
    scratch.tiles.rows(*targets.points, targets.index + begin, n, scratch.tile.data(), panel_rows);
    for (std::size_t t = 0; t < n; ++t) take(begin + t, scratch.tile.data() + t * panel_rows);
  }
}

// Computes mean kernel values of a block's targets with the children of their node, by target.
void find_means(const KernelSetup& setup, const RowList& targets, const NodeSplit& split,
                std::size_t node, Precision precision, Scratch& scratch) {
  const RowList sources = split.samples.of(node);
  const std::int32_t* part = split.part + split.samples.start[node];
  scratch.sizes.assign(split.n_parts(node), 0.0);
  for (std::size_t s = 0; s < sources.size; ++s)
    scratch.sizes[static_cast<std::size_t>(part[s])] += 1;
  scratch.weights.resize(sources.size);
  scratch.indptr.resize(sources.size + 1);
  for (std::size_t s = 0; s < sources.size; ++s) {
    scratch.indptr[s + 1] = static_cast<std::int64_t>(s) + 1;
    scratch.weights[s] = 1.0 / scratch.sizes[static_cast<std::size_t>(part[s])];
  }
  const SourceWeights weights{split.n_parts(node), scratch.indptr.data(), part,
                              scratch.weights.data()};
  scratch.means.resize(targets.size * weights.n_columns);
  kernel_product(setup, targets, sources, weights, precision, Cutoff(), 1, scratch.means.data());
}

}  // namespace

template <class Real>
Assignment nearest_child(const NodeSplit& split, std::size_t node, const Real* means, bool second) {
  const std::size_t n = split.n_parts(node);
  const double* products = split.products + split.block_start[node];
  const auto squared = [&](std::size_t c) {
    return products[c * n + c] - 2 * static_cast<double>(means[c]);
  };
  std::size_t best = 0;
  double smallest = squared(0);
  for (std::size_t c = 1; c < n; ++c) {  // without a branch: which is nearer is unpredictable
    const double own = squared(c);
    best = own < smallest ? c : best;
    smallest = own < smallest ? own : smallest;
  }
  const auto first = static_cast<std::size_t>(split.first_child[node]);
  Assignment place{static_cast<std::int32_t>(first + best)};
  for (std::size_t c = 0; second && c < n; ++c) {
    if (c == best) continue;
    const double norms = products[best * n + best] + products[c * n + c];
    const double between =
        std::max(norms - 2 * products[best * n + c], same_center * std::abs(norms));
    const double distance = between > 0 ? (squared(c) - smallest) / (2 * std::sqrt(between)) : 0.0;
    if (distance < place.distance || place.second < 0)
      place.distance = distance, place.second = static_cast<std::int32_t>(first + c);
  }
  return place;
}

template Assignment nearest_child(const NodeSplit&, std::size_t, const double*, bool);

bool route(const KernelSetup& setup, const RowList& targets, const std::int32_t* node,
           const NodeSplit& split, Precision precision, int n_threads, const AssignmentArrays& out,
           const Stop* stop) {
  const ByNode by_node(targets, node, split.samples.n_nodes);
  std::fill_n(out.nearest, targets.size, -1);
  if (out.second) {
    std::fill_n(out.second, targets.size, -1);
    std::fill_n(out.distance, targets.size, std::numeric_limits<double>::infinity());
  }
  std::atomic<bool> complete{true};
  parallel_for(
      {n_threads, by_node.blocks.size()}, [] { return Scratch(); },
      [&](Scratch& scratch, std::size_t b) {
        const Block& block = by_node.blocks[b];
        if (is_requested(stop)) complete = false;
        if (!complete) return;
        if (split.n_parts(block.node) == 1) {
          const auto child = static_cast<std::int32_t>(split.first_child[block.node]);
          for (std::size_t t = block.begin; t < block.end; ++t)
            out.nearest[by_node.place[t]] = child;
          return;
        }
        const RowList rows{targets.points, by_node.rows(block), block.end - block.begin};
        const auto put = [&](std::size_t t, const auto* means) {
          const Assignment found = nearest_child(split, block.node, means, out.second);
          const std::int32_t i = by_node.place[block.begin + t];
          out.nearest[i] = found.nearest;
          if (!out.second) return;
          out.second[i] = found.second;
          out.distance[i] = found.distance;
        };
        const bool is_single = precision == Precision::single_tiles;
        if (is_single && has_single_centers(setup, split, block.node)) {
          for_single_means(setup, rows, split.samples.of(block.node), scratch, put);
          return;
        }
        find_means(setup, rows, split, block.node, precision, scratch);
        const std::size_t n_parts = split.n_parts(block.node);
        for (std::size_t t = 0; t < rows.size; ++t) put(t, scratch.means.data() + t * n_parts);
      });
  return complete;
}

}  // namespace dcsvm
