// Kernel k-means of sampled rows, for many nodes of a tree at once.
//
// A center is the mean of sampled rows in kernel space and represents a cluster of many more rows.
// The mean for a sampled row therefore excludes the row itself, and squared norms use pairs of
// different rows only. Otherwise a center of few rows would look far from all rows outside the
// sample, and nearly all of these would be assigned to the largest cluster.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernel/kernel_setup.h"
#include "rows/points.h"

namespace dcsvm {

// Sampled rows of nodes, node by node: node p has rows start[p] to before start[p + 1].
struct NodeSamples {
  RowList rows;  // with an index
  const std::int64_t* start = nullptr;
  std::size_t n_nodes = 0;

  std::size_t size(std::size_t node) const {
    return static_cast<std::size_t>(start[node + 1] - start[node]);
  }
  RowList of(std::size_t node) const {
    return rows.slice(static_cast<std::size_t>(start[node]),
                      static_cast<std::size_t>(start[node + 1]));
  }
};

// Splits the rows of each node into at most n_parts[node] nonempty children; part[i] is the child
// of row i, from 0 within its node. k-means++ (Arthur and Vassilvitskii 2007) in kernel space, then
// Lloyd's steps. Results do not depend on the number of threads.
void kernel_kmeans(const KernelSetup& setup, const NodeSamples& nodes, const std::int32_t* n_parts,
                   std::uint64_t seed, int n_threads, std::int32_t* part);

// Computes the inner products of the centers of the children of each node. The block of a node, of
// n_parts x n_parts entries, begins at block_start[node].
void mean_products(const KernelSetup& setup, const NodeSamples& nodes, const std::int32_t* part,
                   const std::int64_t* block_start, int n_threads, double* products);

}  // namespace dcsvm
